import { execFile } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { Metafile } from 'esbuild'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { promise } from '../support/promise.ts'
import { openRealScene } from '../support/real-scene.ts'
import { claimDone, round } from '../support/rounds.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const run = promisify(execFile)

/** A project elsewhere, in which the packed codemachine is installed, and the program of docs/guides/library.md. */
let elsewhere: string

beforeAll(async () => {
  elsewhere = await mkdtemp(join(tmpdir(), 'codemachine-library-'))
  const npm = { cwd: elsewhere, env: { ...process.env, npm_config_cache: join(elsewhere, 'npm-cache') } }
  const quiet = ['--ignore-scripts', '--silent']
  const { stdout } = await run('npm', ['pack', ROOT, '--pack-destination', elsewhere, ...quiet], npm)
  await writeFile(join(elsewhere, 'package.json'), '{ "name": "elsewhere", "type": "module", "private": true }\n')
  const tarball = join(elsewhere, stdout.trim().split('\n').at(-1) ?? '')
  await run('npm', ['install', '--offline', '--no-audit', '--no-fund', ...quiet, tarball], npm)
  for (const [at, text] of samples().entries()) await writeFile(join(elsewhere, `sample${at}.ts`), text)
})
afterAll(() => rm(elsewhere, { recursive: true, force: true }))

/** The programs of the docs: the one of the guide, and those that show how a template and an engine are made. */
function samples(): string[] {
  const pages = ['docs/guides/library.md', 'docs/reference/library.md']
  const page = pages.map(path => readFileSync(join(ROOT, path), 'utf8')).join('\n')
  return [...page.matchAll(/```ts\n([\s\S]*?)```/g)].map(([, program = '']) => program)
}

/** The first program of the docs as JavaScript; rejects with what the compiler says of any of them. */
async function compiled(): Promise<string> {
  const tsconfig = {
    compilerOptions: {
      target: 'es2022',
      lib: ['es2022', 'esnext.disposable'],
      module: 'nodenext',
      strict: true,
      exactOptionalPropertyTypes: true,
      skipLibCheck: false,
      types: ['node'],
      typeRoots: [join(ROOT, 'node_modules/@types')],
    },
    files: samples().map((_, at) => `sample${at}.ts`),
  }
  await writeFile(join(elsewhere, 'tsconfig.json'), JSON.stringify(tsconfig))
  await run(process.execPath, [join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', elsewhere]).catch(error => {
    throw new Error(error.stdout)
  })
  return join(elsewhere, 'sample0.js')
}

promise('O11', 'codemachine is used from a program as a library')
promise('E35', 'A program runs a session by the library')
test('the program of the docs has about thirty lines, and runs a session where only the package is installed', async () => {
  expect(samples()[0]?.split('\n').length).toBeLessThan(45)
  const program = await compiled()
  await using scene = await openRealScene([round('echo hello > hello.txt', claimDone), round(claimDone)])
  const { place } = scene
  const env = { ...place.env, CODEX_BIN: join(ROOT, 'node_modules/.bin/codex') }
  const { stdout, stderr } = await run(process.execPath, [program, place.directory, 'Say hello.'], {
    env,
    cwd: place.root,
  })
  expect(stderr).toBe('')
  const lines = stdout.trim().split('\n')
  expect(lines[0]).toBe('session-created')
  expect(lines).toContain('  it says: This is as far as it goes.')
  expect(lines).toContain('round 1: worked; 1 used')
  expect(lines.at(-1)).toMatch(/^\d{8}_1 ended as done after 2 rounds$/)
  expect(await readFile(join(place.directory, 'hello.txt'), 'utf8')).toBe('hello\n')
  expect(scene.hasRecorded('report.html') || existsSync(join(scene.records(), 'sessions'))).toBe(true)
})

test('a mistake of the person is a sentence with a hint', async () => {
  const program = await compiled()
  const failed = await run(process.execPath, [program, join(elsewhere, 'nowhere')]).catch(error => error)
  expect([failed.code, failed.stdout]).toEqual([2, ''])
  expect(failed.stderr).toMatch(/nowhere/)
})

test('only the door and its manifest can be imported', async () => {
  const importing = (what: string) =>
    run(process.execPath, ['-e', `await import(${JSON.stringify(what)})`], { cwd: elsewhere })
  await expect(importing('@codemachine/cli/dist/entry.js')).rejects.toThrow('ERR_PACKAGE_PATH_NOT_EXPORTED')
  const manifest =
    "console.log((await import('@codemachine/cli/package.json', { with: { type: 'json' } })).default.name)"
  expect((await run(process.execPath, ['-e', manifest], { cwd: elsewhere })).stdout).toBe('@codemachine/cli\n')
})

test('importing it loads no screen, no command line and no charts, and not much else', () => {
  const { packages, bytes, inputs } = loadedBy('dist/index.js')
  expect(packages).toContain('valibot')
  for (const heavy of ['ink', 'react', 'react-reconciler', 'commander', 'd3-scale', 'vscode-jsonrpc', 'js-yaml']) {
    expect(packages).not.toContain(heavy)
  }
  // Answers are judged where a session is carried out, and not where its journal is folded.
  expect(inputs.filter(path => /modes\/change\/(?:effects|.*-rules)/.test(path))).toEqual([])
  expect(bytes).toBeLessThan(490_000)
})

test('a start of the command line loads what its help needs, and no engine, screen or settings', () => {
  const { packages, bytes } = loadedBy('dist/entry.js')
  expect(packages).toContain('commander')
  for (const heavy of ['ink', 'react', 'd3-scale', 'vscode-jsonrpc', 'js-yaml', 'valibot']) {
    expect(packages).not.toContain(heavy)
  }
  expect(bytes).toBeLessThan(250_000)
})

/** The packages in a file of the bundle and in those that it imports before it runs, and how many bytes they are. */
function loadedBy(entry: string): { packages: (string | undefined)[]; bytes: number; inputs: string[] } {
  const { outputs }: Metafile = JSON.parse(readFileSync(join(ROOT, 'dist/metafile.json'), 'utf8'))
  const files = new Set([entry])
  for (const file of files) {
    for (const { path, kind } of outputs[file]?.imports ?? []) if (kind === 'import-statement') files.add(path)
  }
  const loaded = [...files].flatMap(file => outputs[file] ?? [])
  const inputs = loaded.flatMap(output => Object.keys(output.inputs))
  return {
    packages: inputs.map(path => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1]),
    bytes: loaded.reduce((total, output) => total + output.bytes, 0),
    inputs,
  }
}
