import { readFile, rm, writeFile } from 'node:fs/promises'
import { build, type Metafile, type Plugin, transform } from 'esbuild'
import { minify } from 'rolldown/utils'
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

/** Ink looks for its developer tools where the person's own environment says `DEV=true`, and complains without them. */
const withoutDeveloperTools: Plugin = {
  name: 'without-developer-tools',
  setup(builds) {
    builds.onLoad({ filter: /[\\/]ink[\\/]build[\\/](reconciler|ink)\.js$/ }, async ({ path }) => ({
      contents: (await readFile(path, 'utf8')).replaceAll(`process.env['DEV'] === 'true'`, 'false'),
    }))
  },
}

/**
 * Short names in what is not ours: a third of the package is libraries. Our functions and classes keep theirs: a stack
 * trace is to be read (`shortenInside`).
 */
const shortNamesOfLibraries: Plugin = {
  name: 'short-names-of-libraries',
  setup(builds) {
    builds.onLoad({ filter: /[\\/]node_modules[\\/].+\.[cm]?js$/ }, async ({ path }) => {
      const source = await readFile(path, 'utf8')
      // What a module declares at its top is nobody else's; of a script it may be.
      const format = /^(?:import|export)\b/m.test(source) ? ({ format: 'esm' } as const) : {}
      const { code } = await transform(source, { loader: 'js', minifyIdentifiers: true, ...format })
      return { contents: code, loader: 'js' }
    })
  },
}

// One bundle in a few chunks: a start reads four files instead of four hundred, which is most of its time and memory.
await rm('dist', { recursive: true, force: true })
const { metafile } = await build({
  entryPoints: {
    bin: 'src/bin.ts',
    'codex-flow': 'src/codex-flow.ts',
    entry: 'src/cli/entry.ts',
    index: 'src/index.ts',
  },
  outdir: 'dist',
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node22.12',
  external: ['./entry.js'],
  jsx: 'automatic',
  define: { 'process.env.NODE_ENV': '"production"' },
  minifySyntax: true,
  minifyWhitespace: true,
  legalComments: 'linked',
  metafile: true,
  plugins: [lightStart, withoutDeveloperTools, shortNamesOfLibraries],
  logLevel: 'warning',
  // What CommonJS dependencies expect to find.
  banner: {
    js: [
      "import { createRequire as __createRequire } from 'node:module';",
      'const require = __createRequire(import.meta.url), __filename = import.meta.filename, __dirname = import.meta.dirname;',
    ].join(''),
  },
})
await shortenInside(metafile)
// What is in which file, for the tests; it is not packed.
await writeFile('dist/metafile.json', JSON.stringify(metafile))

// Whoever gets the bundle gets the licences of all that is in it.
const { text, problems } = thirdParty(metafile, '.', readWithoutFile())
await writeFile('dist/THIRD-PARTY.txt', text)
for (const problem of problems) console.error(problem)
if (problems.length > 0) process.exitCode = 1
else await writeDeclarations('dist')

/** Short names for what is declared inside functions, which no stack trace shows: esbuild does that for all names or none. */
async function shortenInside({ outputs }: Metafile): Promise<void> {
  const files = Object.keys(outputs).filter(file => file.endsWith('.js'))
  for (const file of files) {
    const { code, errors } = await minify(file, await readFile(file, 'utf8'), {
      module: true,
      compress: false,
      mangle: { toplevel: false, keepNames: true },
      codegen: { removeWhitespace: true },
    })
    for (const { message } of errors) throw new Error(`${file}: ${message}`)
    await writeFile(file, code)
  }
}
