import { createHash } from 'node:crypto'
import { readFile, rm, writeFile } from 'node:fs/promises'
// The metafile has the slashes of imports on every system.
import { basename, dirname, join } from 'node:path/posix'
import { build, type Metafile, type Plugin } from 'esbuild'
import { parseSync } from 'oxc-parser'

type Output = Metafile['outputs'][string]

/** Chunks, in the order in which they are evaluated, that become one file: paths, as the metafile has them. */
interface Together {
  /** That of the entry point among them, if there is one: what it exports keeps its name. */
  file: string
  chunks: readonly string[]
}

/**
 * Makes one file of the chunks that are always loaded together, with the entry point that is loaded whenever they are. A
 * splitting bundler makes a chunk of what the same entry points reach, and each `import()` is one: of seventy of them a
 * run came to load 130 files, at a third of a millisecond each.
 * @param metafile of a bundle that has been written; imports in it are not yet changed in any way
 * @param loads by name, the sources that are loaded together: each an entry point, or what an `import()` names
 * @returns the metafile of what then is there
 */
export async function joinChunks(
  { inputs, outputs }: Metafile,
  loads: Readonly<Record<string, readonly string[]>>,
): Promise<Metafile> {
  const groups = groupsOf(outputs, Object.values(loads))
  const groupOf = new Map(groups.flatMap(group => group.chunks.map(chunk => [chunk, group] as const)))
  const sources = new Map<string, string>()
  for (const file of Object.keys(outputs).filter(each => each.endsWith('.js')))
    sources.set(file, withImportsOf(groupOf, file, withoutHandedOn(file, await readFile(file, 'utf8'))))
  for (const [file, source] of sources) if (!groupOf.has(file)) await writeFile(file, source)
  for (const group of groups) {
    await writeTogether(group, sources)
    for (const chunk of group.chunks) if (chunk !== group.file) await rm(chunk)
  }
  const left = Object.entries(outputs).filter(([file]) => !groupOf.has(file))
  const joined = groups.map(group => [group.file, outputOf(group, outputs)] as const)
  const importing = ({ imports, ...rest }: Output, own: string): Output => {
    const moved = imports.map(each => ({ ...each, path: groupOf.get(each.path)?.file ?? each.path }))
    const isFirst = (path: string, at: number) => moved.findIndex(each => each.path === path) === at
    return {
      ...rest,
      imports: moved.filter(({ path, external }, at) => external || (path !== own && isFirst(path, at))),
    }
  }
  const all = [...left, ...joined].map(([file, output]) => [file, importing(output, file)] as const)
  return { inputs, outputs: Object.fromEntries(all) }
}

function groupsOf(outputs: Metafile['outputs'], loads: readonly (readonly string[])[]): Together[] {
  const files = new Map(Object.entries(outputs).map(([file, { entryPoint }]) => [entryPoint, file]))
  const loadedBy = new Map<string, number[]>()
  for (const [at, sources] of loads.entries()) {
    const loaded = new Set<string>()
    for (const source of sources) {
      const file = files.get(source)
      if (file === undefined)
        throw new Error(`${source} is no entry point of the bundle, and nothing imports it later.`)
      addLoaded(loaded, file, outputs)
    }
    for (const file of loaded) loadedBy.set(file, [...(loadedBy.get(file) ?? []), at])
  }
  const isEntry = (file: string) => outputs[file]?.entryPoint !== undefined
  return Object.values(Object.groupBy(loadedBy, ([, by]) => by.join())).flatMap((group = []) => {
    const files = group.map(([file]) => file)
    const entries = files.filter(isEntry)
    // Of several each has to be a file of its own.
    const [entry] = entries.length === 1 ? entries : []
    const chunks = files.filter(file => file === entry || !isEntry(file))
    return chunks.length < 2 ? [] : [{ file: entry ?? fileOf(chunks), chunks }]
  })
}

function addLoaded(loaded: Set<string>, file: string, outputs: Metafile['outputs']): void {
  if (loaded.has(file)) return
  for (const { path, kind, external } of outputs[file]?.imports ?? [])
    if (kind === 'import-statement' && !external) addLoaded(loaded, path, outputs)
  loaded.add(file)
}

/** By what is in it, as the names of the chunks are. */
function fileOf(chunks: readonly string[]): string {
  const hash = createHash('sha256')
    .update(chunks.map(each => basename(each)).join('\n'))
    .digest('hex')
  return join(dirname(chunks[0] ?? ''), `chunk-${hash.slice(0, 8).toUpperCase()}.js`)
}

/** The source with what it hands on of another file (`export {a} from './b.js'`) imported first, and then exported. */
function withoutHandedOn(file: string, source: string): string {
  let text = source
  for (const { start, end, entries } of parseSync(file, source).module.staticExports.toReversed()) {
    const from = entries[0]?.moduleRequest?.value
    if (from === undefined || !source.startsWith('export', start)) continue
    const pairs = entries.map(({ importName, exportName }, at) => {
      if (importName.kind !== 'Name') throw new Error(`${file} hands on all that ${from} exports.`)
      return { wanted: importName.name, given: exportName.name, own: `handedOn${start}_${at}` }
    })
    const imported = pairs.map(({ wanted, own }) => `${wanted} as ${own}`)
    const exported = pairs.map(({ own, given }) => `${own} as ${given}`)
    text = `${text.slice(0, start)}import{${imported}}from${JSON.stringify(from)};export{${exported}};${text.slice(end)}`
  }
  return text
}

/** The source of a file of the bundle that imports from other groups than its own what is in them. */
function withImportsOf(groupOf: ReadonlyMap<string, Together>, file: string, source: string): string {
  const { staticImports } = parseSync(file, source).module
  let text = source
  for (const { start, end, entries, moduleRequest } of staticImports.toReversed()) {
    const chunk = join(dirname(file), moduleRequest.value)
    const group = groupOf.get(chunk)
    if (group === undefined || group === groupOf.get(file)) continue
    const names = entries.map(
      ({ importName, localName }) => `${nameInGroup(group, chunk, importName.name ?? '')} as ${localName.value}`,
    )
    const from = JSON.stringify(`./${basename(group.file)}`)
    text = `${text.slice(0, start)}import${names.length === 0 ? '' : `{${names}}from`}${from};${text.slice(end)}`
  }
  return text
}

/** An export of one of the chunks, as the file has it: others may have the same name. */
function nameInGroup({ file, chunks }: Together, chunk: string, name: string): string {
  return chunk === file ? name : `${name}$${chunks.indexOf(chunk)}`
}

async function writeTogether(group: Together, sources: ReadonlyMap<string, string>): Promise<void> {
  const ofGroup: Plugin = {
    name: 'chunks-of-group',
    setup(builds) {
      builds.onResolve({ filter: /^\.\// }, ({ path }) => {
        const chunk = join(dirname(group.file), path)
        return group.chunks.includes(chunk) ? { path: chunk, namespace: 'chunk' } : { path, external: true }
      })
      builds.onLoad({ filter: /./, namespace: 'chunk' }, ({ path }) => ({ contents: sources.get(path) ?? '' }))
    },
  }
  const contents = group.chunks.map(chunk => {
    const { staticExports } = parseSync(chunk, sources.get(chunk) ?? '').module
    const names = staticExports.flatMap(({ entries }) => entries.map(({ exportName }) => exportName.name ?? ''))
    const exported = names.map(name => `${name} as ${nameInGroup(group, chunk, name)}`)
    return `import './${basename(chunk)}';export {${exported}} from './${basename(chunk)}'`
  })
  await build({
    stdin: { contents: contents.join('\n'), resolveDir: '.' },
    outfile: group.file,
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node22.12',
    minifySyntax: true,
    minifyWhitespace: true,
    legalComments: 'inline',
    plugins: [ofGroup],
    // Said of what a dependency does, which the bundle was made of without a word.
    logOverride: { 'direct-eval': 'silent' },
    logLevel: 'warning',
  })
}

function outputOf({ file, chunks }: Together, outputs: Metafile['outputs']): Output {
  const joined = chunks.flatMap(chunk => outputs[chunk] ?? [])
  return {
    ...outputs[file],
    bytes: joined.reduce((total, { bytes }) => total + bytes, 0),
    inputs: Object.assign({}, ...joined.map(({ inputs }) => inputs)),
    imports: joined.flatMap(({ imports }) => imports),
    exports: [],
  }
}
