import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { beforeAll, expect, test } from 'vitest'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

const LOOK = 'src/cli/commands/look.ts'
const ASK = 'src/cli/commands/ask.ts'
/** What `status` loads where there is a session. */
const BOARD = 'src/app/watch/task-watch.ts'

type Outputs = Awaited<ReturnType<typeof built>>
let outputs: Outputs
beforeAll(async () => {
  outputs = await built()
})

async function built() {
  const { metafile } = await build({
    absWorkingDir: ROOT,
    entryPoints: [LOOK, ASK],
    outdir: 'dist',
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    external: ['react-devtools-core'],
    write: false,
    metafile: true,
  })
  return metafile.outputs
}

/** The sources that are loaded with one, before it runs. */
function loadedWith(source: string): string[] {
  const files = new Set(Object.keys(outputs).filter(file => outputs[file]?.entryPoint === source))
  expect(files.size).toBe(1)
  for (const file of files) {
    for (const { path, kind } of outputs[file]?.imports ?? []) if (kind === 'import-statement') files.add(path)
  }
  return inputsOf(files)
}

function inputsOf(files: Iterable<string>): string[] {
  return [...files].flatMap(each => Object.keys(outputs[each]?.inputs ?? {}))
}

const ofYaml = (inputs: readonly string[]) => inputs.filter(each => each.includes('node_modules/gray-matter/'))
const ofSettings = (inputs: readonly string[]) =>
  inputs.filter(each => /node_modules\/(toml-eslint-parser|picomatch)\/|^src\/settings\//.test(each))
const ofEditor = (inputs: readonly string[]) => inputs.filter(each => each === 'src/platform/terminal.ts')

test('status loads what reads YAML only where a session runs, and nothing that opens an editor', () => {
  expect(ofYaml(inputsOf(Object.keys(outputs)))).not.toEqual([])
  expect(ofYaml([...loadedWith(LOOK), ...loadedWith(BOARD)])).toEqual([])
  expect(ofEditor(inputsOf(Object.keys(outputs)))).not.toEqual([])
  expect(ofEditor([...loadedWith(LOOK), ...loadedWith(BOARD)])).toEqual([])
})

test('asking the session that runs for something, and looking at the queue, load no settings', () => {
  expect(ofSettings(inputsOf(Object.keys(outputs)))).not.toEqual([])
  expect(ofSettings(loadedWith(ASK))).toEqual([])
})
