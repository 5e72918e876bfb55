import { createHash } from 'node:crypto'
import { cp, glob, mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { isBuiltin } from 'node:module'
import { resolve } from 'node:path'
import { type BuildOptions, build, type Metafile, type Plugin, transform } from 'esbuild'
import { parseSync, Visitor } from 'oxc-parser'
import { minify } from 'rolldown/utils'
import { joinChunks } from './chunks.ts'
import { writeDeclarations } from './declarations.ts'
import { readWithoutFile, thirdParty } from './third-party.ts'

/**
 * What every start, `--version` and `--help` too, would load for nothing: `node:process` as a module brings half of
 * Node's own library with it, and commander needs `node:child_process` for a kind of command that we do not have.
 */
const lightStart: Plugin = {
  name: 'light-start',
  setup(builds) {
    builds.onResolve({ filter: /^node:(process|child_process)$/ }, ({ path, importer }) =>
      /[\\/](commander[\\/]|src[\\/](bin|codex-flow)\.ts$)/.test(importer) ? { path, namespace: 'light-start' } : null,
    )
    builds.onLoad({ filter: /./, namespace: 'light-start' }, ({ path }) => ({
      contents: `export default ${path === 'node:process' ? 'globalThis.process' : '{}'}`,
    }))
  },
}

/**
 * Modules of Node that our own sources need for one thing or another, if at all, and that bring many others with them: each
 * is loaded at the first call of one of its functions.
 */
const loadedAtFirstCall: Plugin = {
  name: 'loaded-at-first-call',
  setup(builds) {
    builds.onResolve({ filter: /^node:(crypto|child_process)$/ }, ({ path, importer, kind }) =>
      kind === 'import-statement' && importer.startsWith(resolve('src')) ? { path, namespace: 'first-call' } : null,
    )
    builds.onLoad({ filter: /./, namespace: 'first-call' }, async ({ path }) => {
      const names = Object.entries(await import(path)).flatMap(([name, value]) =>
        typeof value === 'function' && /^[a-z]/.test(name) && name !== 'default' ? [name] : [],
      )
      return {
        contents: `const node = () => globalThis.process.getBuiltinModule('${path}')
const promisified = Symbol.for('nodejs.util.promisify.custom')
const late = name => Object.defineProperty((...given) => node()[name](...given), promisified, {
  get: () => node()[name][promisified],
})
${names.map(name => `export const ${name} = /* @__PURE__ */ late('${name}')`).join('\n')}`,
      }
    })
  },
}

/** The text of a library's file with one thing in the place of another. Fails where it is not there: then the library has changed. */
async function replacedIn(path: string, pattern: RegExp, by: string): Promise<string> {
  const text = await readFile(path, 'utf8')
  const replaced = text.replace(pattern, by)
  if (replaced === text)
    throw new Error(`${path} has nothing that ${pattern} is; see what of it is to be replaced now.`)
  return replaced
}

/** Ink looks for its developer tools where the person's own environment says `DEV=true`, and complains without them. */
const withoutDeveloperTools: Plugin = {
  name: 'without-developer-tools',
  setup(builds) {
    builds.onLoad({ filter: /[\\/]ink[\\/]build[\\/](reconciler|ink)\.js$/ }, async ({ path }) => ({
      contents: await replacedIn(path, /process\.env\['DEV'\] === 'true'/g, 'false'),
    }))
  },
}

/**
 * Short names in what is not ours: a third of the package is libraries. Our functions and classes keep theirs: a stack
 * trace is to be read (`shortenedInside`).
 */
const shortNamesOfLibraries: Plugin = {
  name: 'short-names-of-libraries',
  setup(builds) {
    builds.onLoad({ filter: /[\\/]node_modules[\\/].+\.[cm]?js$/ }, async ({ path }) => ({
      contents: await withShortNames(await readFile(path, 'utf8')),
      loader: 'js',
    }))
  },
}

async function withShortNames(source: string): Promise<string> {
  // What a module declares at its top is nobody else's; of a script it may be.
  const format = /^(?:import|export)\b/m.test(source) ? ({ format: 'esm' } as const) : {}
  return (await transform(source, { loader: 'js', minifyIdentifiers: true, ...format })).code
}

/**
 * The MCP server comes with a validator of JSON Schemas, a third of its size, for what it would ask of a client: it asks
 * nothing. The process that it knows beside it is only for who names no streams.
 */
const withoutSchemaValidator: Plugin = {
  name: 'without-schema-validator',
  setup(builds) {
    builds.onResolve({ filter: /^@modelcontextprotocol\/server\/_shims$/ }, ({ path }) => ({
      path,
      namespace: 'without-schema-validator',
    }))
    builds.onLoad({ filter: /./, namespace: 'without-schema-validator' }, () => ({
      contents: 'export class DefaultJsonSchemaValidator {}\nexport const process = globalThis.process',
    }))
  },
}

/** Yoga lays out the screen. Its program is a file of its own: as text of a module it is a third longer, packed too. */
const yogaAsFile: Plugin = {
  name: 'yoga-as-file',
  setup(builds) {
    builds.onLoad({ filter: /[\\/]yoga-layout[\\/]dist[\\/]binaries[\\/].+\.js$/ }, async ({ path }) => {
      const [before, program, after, ...others] = (await readFile(path, 'utf8')).split(
        /(?<="data:application\/octet-stream;base64,)([A-Za-z0-9+/=]+)(?=")/,
      )
      if (program === undefined || others.length > 0) throw new Error(`${path} does not have one program.`)
      await mkdir('dist', { recursive: true })
      await writeFile('dist/yoga.wasm', Buffer.from(program, 'base64'))
      return { contents: await withShortNames(`${before}${after}`) }
    })
    builds.onLoad({ filter: /[\\/]yoga-layout[\\/]dist[\\/]src[\\/]index\.js$/ }, async ({ path }) => ({
      contents: `import { readFileSync } from 'node:fs'\n${await replacedIn(
        path,
        /loadYoga\(\)/,
        `loadYoga({ wasmBinary: readFileSync(new URL('yoga.wasm', import.meta.url)) })`,
      )}`,
    }))
  },
}

/** Grammars that share long lists of words stand beside each other, where the packer finds what they share. Rare ones are left out. */
const grammarsByKind: Plugin = {
  name: 'grammars-by-kind',
  setup(builds) {
    const kinds = ['css', 'scss', 'javascript', 'typescript', 'c', 'cpp']
    builds.onLoad({ filter: /[\\/]lowlight[\\/]lib[\\/]common\.js$/ }, async ({ path }) => {
      const first = kinds.map(name => `import 'highlight.js/lib/languages/${name}'\n`)
      const rare =
        /^import \w+ from 'highlight\.js\/lib\/languages\/(?:arduino|less|lua|objectivec|perl|php-template|python-repl|r|vbnet|wasm)'\n|^ {2}(?:arduino|less|lua|objectivec|perl|'php-template': phpTemplate|'python-repl': pythonRepl|r|vbnet|wasm),\n/gm
      const text = await readFile(path, 'utf8')
      const fewer = text.replace(rare, '')
      if (text.match(rare)?.length !== 20) throw new Error(`${path} names its grammars in another way.`)
      return { contents: `${first.join('')}${fewer}` }
    })
  },
}

/** Only name and version of our manifest are read. */
const nameAndVersion: Plugin = {
  name: 'name-and-version',
  setup(builds) {
    const ours = resolve('package.json')
    builds.onLoad({ filter: /[\\/]package\.json$/ }, async ({ path }) => {
      if (path !== ours) return null
      const { name, version }: { name: string; version: string } = JSON.parse(await readFile(path, 'utf8'))
      return { contents: JSON.stringify({ name, version }), loader: 'json' }
    })
  },
}

/** In a browser a path is shown as it was said. */
const withoutPaths: Plugin = {
  name: 'without-paths',
  setup(builds) {
    builds.onResolve({ filter: /^node:path$/ }, ({ path }) => ({ path, namespace: 'without-paths' }))
    builds.onLoad({ filter: /./, namespace: 'without-paths' }, () => ({
      contents:
        'export const isAbsolute = path => path.startsWith("/"), relative = (_, path) => path, basename = path => path.split("/").at(-1)',
    }))
  },
}

/** A file of `dist` that says which sources it was built of; it is not packed. */
const BUILT_OF = 'dist/built-of.txt'

const BEYOND_ASCII = /[\u0080-\uffff]/

const OF_EVERY_COMMAND = ['src/doors/cli/entry.ts', 'src/modes/registry.ts']
const OF_A_RUN = [
  ...OF_EVERY_COMMAND,
  'src/platform/heap.ts',
  'src/doors/cli/commands/run.ts',
  'src/project/open-run.ts',
  'src/project/run-queue.ts',
  'src/engines/codex/engine.ts',
]
/**
 * What is loaded together, by a command or a part of a run (`joinChunks`). None of these loads what it has no use for; a
 * command that is not named here may.
 */
const LOADED_TOGETHER = {
  help: ['src/doors/cli/entry.ts'],
  // Where a folder of the PATH lies in a checkout, as of npm's scripts.
  agentFolders: [...OF_EVERY_COMMAND, 'src/project/environment/agent-folders.ts'],
  look: [...OF_EVERY_COMMAND, 'src/doors/cli/commands/look.ts'],
  queueAdd: [...OF_EVERY_COMMAND, 'src/doors/cli/commands/ask.ts', 'src/doors/cli/run-options.ts'],
  stop: [...OF_EVERY_COMMAND, 'src/doors/cli/commands/ask.ts', 'src/project/commands/commands.ts'],
  flow: [...OF_EVERY_COMMAND, 'src/doors/cli/flow/look.ts'],
  team: [...OF_EVERY_COMMAND, 'src/doors/cli/team/look.ts'],
  run: OF_A_RUN,
  endOfRun: [...OF_A_RUN, 'src/project/reports.ts', 'src/tell/report/page/page.ts'],
  // It has all templates itself; named here, what they need lies in their file.
  library: ['src/index.ts', 'src/modes/registry.ts'],
}

const builtOf = await hashOf(['package.json', 'package-lock.json', 'scripts/**/*.ts', 'src/**/*'])
if (process.argv.includes('--if-changed') && (await readFile(BUILT_OF, 'utf8').catch(() => '')) === builtOf)
  process.exit()
await rm('dist', { recursive: true, force: true })
// What is typed is one small file, which answers --version by itself.
const typed = await bundle({ bin: 'src/bin.ts', 'codex-flow': 'src/codex-flow.ts' }, { external: ['./entry.js'] })
// A thread of its own.
const exporter = await bundle({ exporter: 'src/tell/opentelemetry/exporter.ts' }, {})
// All else is one bundle in a few files: a start reads ten instead of four hundred, which is most of its time and memory.
const split = await bundle({ entry: 'src/doors/cli/entry.ts', index: 'src/index.ts' }, { splitting: true })
const loaded = await joinChunks(split, LOADED_TOGETHER)
const metafile: Metafile = {
  inputs: { ...typed.inputs, ...exporter.inputs, ...loaded.inputs },
  outputs: { ...typed.outputs, ...exporter.outputs, ...loaded.outputs },
}
for (const file of Object.keys(metafile.outputs).filter(each => each.endsWith('.js'))) {
  const source = withOneImportEach(file, await readFile(file, 'utf8'))
  const code = withoutImportsOfNode(file, await shortenedInside(file, source))
  await writeFile(file, inAscii(file, code))
}
const ofPage = await buildPage()
// What is in which file, for the tests; it is not packed.
await writeFile('dist/metafile.json', JSON.stringify(metafile))

// Whoever gets the bundle gets the licences of all that is in it.
const { text, problems } = thirdParty({ inputs: { ...metafile.inputs, ...ofPage.inputs } }, '.', readWithoutFile())
await writeFile('dist/THIRD-PARTY.txt', text)
for (const problem of problems) console.error(problem)
if (problems.length > 0) {
  process.exitCode = 1
} else {
  await writeDeclarations('dist')
  await writeFile(BUILT_OF, builtOf)
}

/** The page of the browser, which loads nothing from elsewhere. Words of sessions are those of the program. */
async function buildPage(): Promise<Metafile> {
  const { version }: { version: string } = JSON.parse(await readFile('package.json', 'utf8'))
  const common = {
    outdir: 'dist/web',
    bundle: true,
    platform: 'browser',
    target: 'es2023',
    define: { PAGE_VERSION: JSON.stringify(version) },
    minify: true,
    metafile: true,
    legalComments: 'linked',
    logLevel: 'warning',
  } as const
  const page = await build({
    ...common,
    entryPoints: { main: 'src/doors/page/page/main.tsx', style: 'src/doors/page/page/main.css' },
    splitting: true,
    format: 'esm',
    jsx: 'automatic',
    jsxImportSource: 'preact',
    plugins: [nameAndVersion, withoutPaths],
  })
  // Not of parts: a browser may start it long after its page was closed.
  const worker = await build({ ...common, entryPoints: { sw: 'src/doors/page/page/sw.ts' }, format: 'iife' })
  await cp('src/doors/page/page/public', 'dist/web', { recursive: true })
  return {
    inputs: { ...page.metafile.inputs, ...worker.metafile.inputs },
    outputs: { ...page.metafile.outputs, ...worker.metafile.outputs },
  }
}

async function bundle(
  entryPoints: Record<string, string>,
  options: Pick<BuildOptions, 'external' | 'splitting'>,
): Promise<Metafile> {
  const { metafile } = await build({
    ...options,
    entryPoints,
    outdir: 'dist',
    bundle: true,
    // Installed by who has a fleet or a collector.
    external: [...(options.external ?? []), 'pg', 'pg-boss', '@opentelemetry/*'],
    format: 'esm',
    platform: 'node',
    target: 'node22.12',
    jsx: 'automatic',
    define: { 'process.env.NODE_ENV': '"production"', CODEMACHINE_SOURCE: JSON.stringify(await hashOfSource()) },
    minifySyntax: true,
    minifyWhitespace: true,
    legalComments: 'linked',
    metafile: true,
    plugins: [
      lightStart,
      loadedAtFirstCall,
      withoutDeveloperTools,
      yogaAsFile,
      grammarsByKind,
      shortNamesOfLibraries,
      nameAndVersion,
      withoutSchemaValidator,
    ],
    logLevel: 'warning',
  })
  return metafile
}

/**
 * Each module of a bundle imports from Node under its own names: one name for each import makes the file shorter. esbuild
 * gives no inner name that of an import.
 */
function withOneImportEach(file: string, code: string): string {
  const { module, program } = parseSync(file, code)
  const imports = module.staticImports.filter(each => isBuiltin(each.moduleRequest.value))
  const asked = new Map<string, string>()
  const names = new Map<string, string>()
  for (const { entries, moduleRequest } of imports) {
    for (const { importName, localName } of entries) {
      const of = `${moduleRequest.value} ${importName.kind === 'Name' ? importName.name : 'default'}`
      asked.set(of, asked.get(of) ?? `$node${asked.size}`)
      names.set(localName.value, asked.get(of) ?? '')
    }
  }
  const keys = new Set<number>()
  const noteKey = ({ computed, key }: { computed: boolean; key: { start: number } }) =>
    void (computed || keys.add(key.start))
  const edits = imports.map(({ start, end }) => ({ start, end, text: '' }))
  new Visitor({
    MemberExpression: ({ computed, property }) => void (computed || keys.add(property.start)),
    Property(property) {
      const { shorthand, key } = property
      const name = shorthand && key.type === 'Identifier' ? names.get(key.name) : undefined
      if (name !== undefined) edits.push({ start: key.end, end: key.end, text: `:${name}` })
      noteKey(property)
    },
    MethodDefinition: noteKey,
    PropertyDefinition: noteKey,
    Identifier({ name, start, end }) {
      const text = names.get(name)
      if (text === undefined || keys.has(start)) return
      if (!imports.some(each => each.start <= start && end <= each.end)) edits.push({ start, end, text })
    },
  }).visit(program)
  const [first] = edits
  if (first === undefined) return code
  first.text = [...asked].map(([of, name]) => of.replace(/(.+) (.+)/, `import{$2 as $${name}}from"$1";`)).join('')
  let [whole, from] = ['', 0]
  for (const { start, end, text } of edits.toSorted((a, b) => a.start - b.start)) {
    whole += code.slice(from, start) + text
    from = end
  }
  return whole + code.slice(from)
}

/** Short names for what is declared inside functions, which no stack trace shows: esbuild does that for all names or none. */
async function shortenedInside(file: string, source: string): Promise<string> {
  const { code, errors } = await minify(file, source, {
    module: true,
    compress: { target: 'es2023', keepNames: { function: true, class: true } },
    mangle: { toplevel: true, keepNames: { function: true, class: true } },
    codegen: { removeWhitespace: true },
  })
  for (const { message } of errors) throw new Error(`${file}: ${message}`)
  return code
}

/**
 * Node's own modules are asked of `process` in place of being imported: an import reads all that a module exports, and
 * so loads what nobody has asked for (of `node:fs` its promises and all streams, of `node:crypto` the whole of
 * WebCrypto). CommonJS dependencies find a `require` that knows the same modules.
 */
function withoutImportsOfNode(file: string, code: string): string {
  const imports = parseSync(file, code).module.staticImports.filter(each => isBuiltin(each.moduleRequest.value))
  const asked = imports.flatMap(({ entries, moduleRequest }) => {
    // What is imported by default is the whole module, whichever way that is written.
    const isNamed = ({ kind, name }: { kind: string; name: string | null }) => kind === 'Name' && name !== 'default'
    const named = entries.flatMap(({ importName, localName }) =>
      isNamed(importName) ? [`${importName.name}:${localName.value}`] : [],
    )
    const whole = entries.flatMap(({ importName, localName }) => (isNamed(importName) ? [] : [localName.value]))
    return [...whole, ...(named.length === 0 ? [] : [`{${named}}`])].map(
      local => `${local}=__builtin(${JSON.stringify(moduleRequest.value)})`,
    )
  })
  const needsRequire = code.includes('typeof require')
  if (asked.length === 0 && !needsRequire) return code
  const declared = ['__builtin=globalThis.process.getBuiltinModule', ...asked]
  if (needsRequire) declared.push('require=__builtin')
  const rest = imports.toReversed().reduce((text, { start, end }) => text.slice(0, start) + text.slice(end), code)
  const program = /^#!.*\n/.exec(rest)?.[0] ?? ''
  return `${program}const ${declared};${rest.slice(program.length)}`
}

/**
 * The same without a sign beyond ASCII: for a single one V8 keeps two bytes for each of the file, as long as the program runs.
 * In a template that is read as it is written it would be another one.
 */
function inAscii(file: string, code: string): string {
  new Visitor({
    TaggedTemplateExpression({ tag, quasi }) {
      const isRaw = /\braw$/.test(code.slice(tag.start, tag.end))
      const text = code.slice(quasi.start, quasi.end)
      if (isRaw && BEYOND_ASCII.test(text)) throw new Error(`${file}: String.raw with more than ASCII: ${text}`)
    },
  }).visit(parseSync(file, code).program)
  // A backslash before such a sign says nothing, but before the backslash that is put there it would.
  return code.replaceAll(new RegExp(`(\\\\*)(${BEYOND_ASCII.source})`, 'g'), (_, backslashes: string, unit: string) => {
    const number = unit.charCodeAt(0).toString(16).padStart(4, '0')
    return `${backslashes.slice(backslashes.length % 2)}\\u${number}`
  })
}

/** Of all that a session is folded by, and of what writes that down. */
async function hashOfSource(): Promise<string> {
  return await hashOf(['src/**/*.{ts,tsx}'])
}

/** Of what the files hold, in the order of their paths. */
async function hashOf(patterns: readonly string[]): Promise<string> {
  const hash = createHash('sha256')
  for (const path of (await Array.fromAsync(glob(patterns))).toSorted()) {
    if ((await stat(path)).isFile()) hash.update(await readFile(path))
  }
  return hash.digest('hex')
}
