import { execFile } from 'node:child_process'
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import packageJson from '../../../package.json' with { type: 'json' }
import { codemachine } from '../../support/codemachine.ts'
import { findRealCodex } from '../../support/find-real-codex.ts'
import { makePlace } from '../../support/place.ts'

const BIN = fileURLToPath(new URL('../../../dist/bin.js', import.meta.url))

async function node(...args: readonly string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  const run = promisify(execFile)(process.execPath, [...args])
  return await run.then(
    output => ({ code: 0, ...output }),
    (error: { code: number; stdout: string; stderr: string }) => error,
  )
}

test('--version says the version, and nothing else', async () => {
  expect(await node(BIN, '--version')).toMatchObject({ code: 0, stdout: `${packageJson.version}\n`, stderr: '' })
})

test.each(['20.20.2', '22.11.0', '18.0.0'])('on Node %s one sentence says that it is too old', async version => {
  const pretend = `Object.defineProperty(process.versions, 'node', { value: '${version}' })
process.getBuiltinModule = undefined
await import(${JSON.stringify(BIN)})`
  const { code, stdout, stderr } = await node('--input-type=module', '-e', pretend)
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  expect(stderr).toBe(
    `codemachine needs Node 22.12 or newer, and this is Node ${version}; install a newer one from https://nodejs.org.\n`,
  )
})

test('in a directory that has been removed one sentence says so', async () => {
  const inRemoved = 'cd "$(mktemp -d)" && rmdir "$PWD" && exec "$0" "$1" status'
  const ended = await promisify(execFile)('/bin/sh', ['-c', inRemoved, process.execPath, BIN]).catch(error => error)
  expect(ended).toMatchObject({
    code: 2,
    stdout: '',
    stderr: 'codemachine: The current directory no longer exists; go to another one, and type it again. (CM0106)\n',
  })
})

test('where git is missing one sentence says so, once', async () => {
  const { path: codex } = await findRealCodex()
  await using place = await makePlace('', { git: false })
  const ended = await codemachine(place, ['--codex-bin', codex, 'x'], { env: { PATH: place.root } })
  expect(ended).toMatchObject({
    exitCode: 2,
    stdout: '',
    stderr:
      'codemachine: git was not found on the PATH; install git (https://git-scm.com), or put its folder on the PATH. (CM0501)\n',
  })
})

test('--help names the commands, and help options every option, with the exit codes', async () => {
  const { code, stdout } = await node(BIN, '--help')
  expect(code).toBe(0)
  for (const word of ['resume', 'list', 'status', 'logs', 'queue', 'steer', 'demo', 'doctor', 'complete']) {
    expect(stdout).toMatch(new RegExp(`^ {2}${word}\\b`, 'm'))
  }
  const options = await node(BIN, 'help', 'options')
  for (const flag of [
    '--rounds',
    '-C, --cd',
    '-m, --model',
    '--effort',
    '--sandbox',
    '--network',
    '--yolo',
    '-c, --config',
    '--codex-bin',
    '--plain',
    '--json',
  ]) {
    expect(options.stdout).toContain(flag)
  }
  expect(options.stdout).toContain('Exit codes:')
})

test('--yolo together with a sandbox is refused', async () => {
  await using place = await makePlace('', { git: false })
  for (const args of [['build X'], ['start'], ['resume'], ['--agent', 'backend-dev', 'Do the thing']]) {
    const { exitCode, stdout, stderr } = await codemachine(place, ['--sandbox', 'read-only', '--yolo', ...args])
    expect([exitCode, stdout]).toEqual([2, ''])
    expect(stderr).toMatch(/^codemachine: --yolo and --sandbox exclude each other; leave one of them out\. /)
  }
})

test.each([
  ['an absolute path', (root: string) => ({ XDG_CONFIG_HOME: join(root, 'xdg') }), 'xdg'],
  ['a relative path', () => ({ XDG_CONFIG_HOME: 'xdg' }), 'home/.config'],
  ['nothing', () => ({ XDG_CONFIG_HOME: '' }), 'home/.config'],
])('the settings of the person are read where XDG_CONFIG_HOME says, here %s', async (_what, env, folder) => {
  await using place = await makePlace('', { git: false })
  for (const each of ['xdg', 'home/.config', 'work/xdg']) {
    await mkdir(join(place.root, each, 'codemachine'), { recursive: true })
    await writeFile(join(place.root, each, 'codemachine', 'config.toml'), 'nonsense = 1\n')
  }
  const { exitCode, stderr } = await codemachine(place, ['logout'], { env: env(place.root) })
  expect(exitCode).toBe(2)
  expect(stderr).toContain(
    `codemachine: ${join(place.root, folder, 'codemachine', 'config.toml')}:1: nonsense is an unknown key`,
  )
})

test('a new install keeps its records where XDG_STATE_HOME says', async () => {
  await using place = await makePlace('', { git: false })
  await rm(join(place.home, '.codemachine'), { recursive: true, force: true })
  const env = { CODEMACHINE_HOME: '', XDG_STATE_HOME: join(place.root, 'state') }
  expect((await codemachine(place, ['queue', 'add', 'build X'], { env })).exitCode).toBe(0)
  expect(await readdir(join(place.root, 'state', 'codemachine'))).toContain('state')
  expect(await readdir(place.home)).not.toContain('.codemachine')
})
