import { PassThrough } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { beforeAll, expect, test } from 'vitest'
import { runCommandLine } from '../../../src/doors/cli/entry.ts'
import { cliContext } from '../../support/cli-context.ts'
import { makePlace } from '../../support/place.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))

const LOOK = 'src/doors/cli/commands/look.ts'
const ASK = 'src/doors/cli/commands/ask.ts'

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

const ofYaml = (inputs: readonly string[]) => inputs.filter(each => each.includes('node_modules/js-yaml/'))
const ofSettings = (inputs: readonly string[]) =>
  inputs.filter(each => /node_modules\/toml-eslint-parser\/|^src\/settings\//.test(each))
const ofEditor = (inputs: readonly string[]) => inputs.filter(each => each === 'src/platform/terminal.ts')

test('status loads what reads YAML only where a session runs, and nothing that opens an editor', () => {
  expect(ofYaml(inputsOf(Object.keys(outputs)))).not.toEqual([])
  expect(ofYaml(loadedWith(LOOK))).toEqual([])
  expect(ofEditor(inputsOf(Object.keys(outputs)))).not.toEqual([])
  expect(ofEditor(loadedWith(LOOK))).toEqual([])
})

test('asking the session that runs for something, and looking at the queue, load no settings', () => {
  expect(ofSettings(inputsOf(Object.keys(outputs)))).not.toEqual([])
  expect(ofSettings(loadedWith(ASK))).toEqual([])
})

test('looking at the queue, and adding to it, load nothing that reads journals', () => {
  const ofJournals = (inputs: readonly string[]) => inputs.filter(each => each === 'src/session/records/journal.ts')
  expect(ofJournals(loadedWith(LOOK))).not.toEqual([])
  expect(ofJournals(loadedWith(ASK))).toEqual([])
})

test('status, list and the queue do not open standard input, which they have no use for', async () => {
  await using place = await makePlace('')
  const opened = new Set<string>()
  const opening = (name: string) => {
    opened.add(name)
    return Object.assign(new PassThrough(), { isTTY: false })
  }
  const { stdin: _in, stdout: _out, stderr: _err, ...rest } = cliContext(place, {})
  const streams = {
    get stdin() {
      return opening('stdin')
    },
    get stdout() {
      return opening('stdout')
    },
    get stderr() {
      return opening('stderr')
    },
  }
  for (const args of [['status'], ['list'], ['queue', 'add', 'Go on.'], ['queue', 'list']]) {
    expect(await runCommandLine(Object.assign(streams, rest), args)).toBe(0)
  }
  expect(opened).toContain('stdout')
  expect(opened).not.toContain('stdin')
})
