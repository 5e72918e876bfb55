import { once } from 'node:events'
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { expect } from 'vitest'
import { codemachine, startCodemachine } from '../../support/codemachine.ts'
import { git, makePlace, type TestPlace } from '../../support/place.ts'
import { promise } from '../../support/promise.ts'
import { openRealScene } from '../../support/real-scene.ts'
import { claimDone, round } from '../../support/rounds.ts'
import { openScene } from '../../support/scene.ts'
import { test } from '../../support/side-by-side.ts'

/** Has git ignore what setting up makes, and what is copied. */
function ignoreSome(place: TestPlace): void {
  writeFileSync(join(place.directory, '.gitignore'), 'deps/\n.env\nlocal.json\n')
  git(place, 'add', '.gitignore')
  git(place, 'commit', '-qm', 'Ignore')
}

const topOf = (place: TestPlace, name = 'docs') => join(place.root, 'work.worktrees', name)
const inTop = (place: TestPlace, file: string) => readFileSync(join(topOf(place), file), 'utf8')

/** The path of the log that a refusal names. */
const logIn = (stderr: string) => stderr.match(/Its output: (\S+)/)?.[1] ?? ''

promise(
  'O48',
  'A new worktree is set up once before its first session, in its sandbox, within a bound; where that fails or changes tracked files no session begins, and the next start does it again',
)
test('a new worktree is set up once, in the sandbox, before its first session', async () => {
  const see = 'cat deps/ready > seen.txt'
  await using scene = await openRealScene([round(see), round(claimDone), round(claimDone)], {
    person: '[worktree]\nsetup = "mkdir -p deps && echo $CODEX_SANDBOX_NETWORK_DISABLED ready >> deps/ready"\n',
  })
  const { place } = scene
  ignoreSome(place)
  const first = await scene.run('--worktree', 'docs', '--rounds', '1', 'look at it')
  expect(first).toMatchObject({ exitCode: 3, stderr: expect.stringContaining('Sets it up first: mkdir -p deps ') })
  expect(inTop(place, 'seen.txt')).toBe('1 ready\n')
  const second = await scene.run('--worktree', 'docs', '--rounds', '1', 'look again')
  expect(second.stderr).not.toContain('Sets it up')
  expect(inTop(place, 'deps/ready')).toBe('1 ready\n')
  expect(existsSync(join(place.directory, 'deps'))).toBe(false)
  // With the network, where the session has it; as a project's own file says, too.
  writeFileSync(join(place.directory, 'codemachine.toml'), '[worktree]\nsetup = "mkdir deps; env > deps/ready"\n')
  git(place, 'add', '.')
  git(place, 'commit', '-qm', 'Set up')
  await scene.run('--worktree', 'net', '--network', '--rounds', '1', 'look at it')
  expect(readFileSync(join(topOf(place, 'net'), 'deps/ready'), 'utf8')).not.toContain('CODEX_SANDBOX_NETWORK_DISABLED')
})

promise('B111', 'Setting up a worktree reaches the network only where its session may')
test('setting up reaches the network only where the session may', async () => {
  await using scene = await openScene([round(claimDone), round(claimDone)])
  const { place } = scene
  ignoreSome(place)
  const server = createServer(socket => socket.end('reached')).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const ask = `mkdir -p deps; (head -c 7 < /dev/tcp/127.0.0.1/${port}) > deps/said 2>&1; true`
  const start = (name: string, ...more: string[]) =>
    scene.command(['--worktree', name, ...more, '--rounds', '1', 'look at it'], {
      env: { ...place.env, CODEMACHINE_WORKTREE_SETUP: ask },
    }).ended
  await start('without')
  expect(readFileSync(join(topOf(place, 'without'), 'deps/said'), 'utf8')).not.toContain('reached')
  await start('with', '--network')
  expect(readFileSync(join(topOf(place, 'with'), 'deps/said'), 'utf8')).toBe('reached')
  server.close()
})

promise('O48')
test('where setting up fails no session begins, the log is named, and the next start sets up again', async () => {
  await using scene = await openScene([round(claimDone)])
  const { place } = scene
  ignoreSome(place)
  const start = (setup: string) =>
    scene.command(['--worktree', 'docs', '--rounds', '1', 'look at it'], {
      env: { ...place.env, CODEMACHINE_WORKTREE_SETUP: setup },
    }).ended
  const failed = await start('echo first; echo no such package >&2; exit 3')
  expect(failed).toMatchObject({ exitCode: 4, stdout: '' })
  expect(failed.stderr).toContain(
    `codemachine: The worktree ${topOf(place)} is not set up, and no session has begun: worktree.setup (echo first; echo no such package >&2; exit 3) ended with exit code 3 after `,
  )
  expect(failed.stderr).toContain('Its last line: no such package')
  expect(failed.stderr).toContain('To set it up again, and continue: codemachine --worktree docs "…"')
  expect(readFileSync(logIn(failed.stderr), 'utf8')).toMatch(
    /^\$ echo first;.*\nfirst\nno such package\nended with exit code 3 after /,
  )
  expect(existsSync(topOf(place))).toBe(true)
  expect((await scene.command(['list']).ended).stdout).toContain('No sessions in ')
  const mended = await start('mkdir -p deps')
  expect(mended).toMatchObject({ exitCode: 0, stderr: expect.stringContaining('Sets it up first: mkdir -p deps') })
  expect(existsSync(join(topOf(place), 'deps'))).toBe(true)
})

promise('O48')
test('setting up that does not end is ended, by its bound or by Ctrl+C', async () => {
  await using place = await makePlace('')
  const env = { ...place.env, CODEMACHINE_WORKTREE_SETUP: 'echo waits; touch begun; sleep 600' }
  const args = ['--worktree', 'docs', 'look at it']
  const bounded = { ...env, CODEMACHINE_WORKTREE_SETUP_MINUTES: '0.05' }
  const late = await codemachine(place, args, { env: bounded })
  expect(late.exitCode).toBe(4)
  expect(late.stderr).toContain('did not finish in 0.05 minutes (worktree.setup_minutes).')
  expect(readFileSync(logIn(late.stderr), 'utf8')).toContain('waits\n')

  rmSync(join(topOf(place), 'begun'))
  await using running = startCodemachine(place, args, { env })
  while (!existsSync(join(topOf(place), 'begun'))) await running.alive()
  process.kill(running.pid, 'SIGINT')
  expect(await running.ended).toMatchObject({ exitCode: 130 })
  expect(existsSync(topOf(place))).toBe(true)
})

promise('O48')
test('setting up that changes files which git tracks is refused, until they are put back', async () => {
  await using scene = await openScene([round(claimDone)])
  const { place } = scene
  const start = (setup: string) =>
    scene.command(['--worktree', 'docs', '--rounds', '1', 'look at it'], {
      env: { ...place.env, CODEMACHINE_WORKTREE_SETUP: setup },
    }).ended
  const said = 'changed files that git tracks: README.md.'
  expect(await start('echo x >> README.md; echo y > new.txt')).toMatchObject({
    exitCode: 4,
    stdout: '',
    stderr: expect.stringContaining(said),
  })
  // What it has changed then is still changed.
  expect(await start('true')).toMatchObject({ exitCode: 4, stderr: expect.stringContaining(said) })
  git(place, '-C', topOf(place), 'restore', '.')
  expect((await start('true')).exitCode).toBe(0)
})

promise('B104', 'What setting up a worktree does to config and hooks of the repository is put back')
test('what setting up does to the repository’s configuration is put back', async () => {
  await using place = await makePlace('')
  const config = readFileSync(join(place.directory, '.git/config'), 'utf8')
  const setup = `git config core.fsmonitor 'touch ${place.root}/ran'; exit 1`
  const { stderr } = await codemachine(place, ['--worktree', 'docs', 'look at it'], {
    env: { ...place.env, CODEMACHINE_WORKTREE_SETUP: setup },
  })
  expect(stderr).toContain('changed what your git runs, and codemachine restored it: ')
  expect(readFileSync(join(place.directory, '.git/config'), 'utf8')).toBe(config)
})

promise('O49', 'Files that git ignores are copied into a new worktree once')
test('files that git ignores are copied into a new worktree once, and one that is missing is named', async () => {
  await using scene = await openScene([round(claimDone), round(claimDone)], {
    person: '[worktree]\ncopy = [".env", "config/local.json", "none/.env", "README.md"]\n',
  })
  const { place } = scene
  ignoreSome(place)
  mkdirSync(join(place.directory, 'config'))
  writeFileSync(join(place.directory, '.env'), 'KEY=1\n', { mode: 0o600 })
  writeFileSync(join(place.directory, 'config/local.json'), '{}\n')
  const { exitCode, stderr } = await scene.run('--worktree', 'docs', '--rounds', '1', 'look at it')
  expect(exitCode).toBe(0)
  expect([inTop(place, '.env'), inTop(place, 'config/local.json')]).toEqual(['KEY=1\n', '{}\n'])
  expect(lstatSync(join(topOf(place), '.env')).mode & 0o777).toBe(0o600)
  expect(stderr).toMatch(/config\.toml:2: there is no none\/\.env in \S+\/work to copy\.\n/)
  writeFileSync(join(place.directory, '.env'), 'KEY=2\n')
  await scene.run('--worktree', 'docs', '--rounds', '1', 'look again')
  expect(inTop(place, '.env')).toBe('KEY=1\n')
})

promise(
  'B103',
  'What is copied into a worktree is said by the person alone, lies in the checkout, is no link, and would not be committed',
)
test('what may not be copied is refused in one sentence, and then no worktree is made', async () => {
  await using place = await makePlace('')
  ignoreSome(place)
  writeFileSync(join(place.home, 'secret'), 'mine\n')
  symlinkSync(join(place.home, 'secret'), join(place.directory, '.env'))
  symlinkSync(place.home, join(place.directory, 'deps'))
  mkdirSync(join(place.directory, 'config/.env'), { recursive: true })
  writeFileSync(join(place.directory, 'open.txt'), '')
  writeFileSync(join(place.directory, 'local.json'), Buffer.alloc(65 * 1024 * 1024))
  const refused = async (path: string, said: string) => {
    const env = { ...place.env, CODEMACHINE_WORKTREE_COPY: JSON.stringify([path]) }
    const { exitCode, stdout, stderr } = await codemachine(place, ['--worktree', 'docs', 'look at it'], { env })
    expect([exitCode, stdout, stderr]).toEqual([2, '', expect.stringContaining(`CODEMACHINE_WORKTREE_COPY${said}`)])
    expect(existsSync(topOf(place))).toBe(false)
  }
  const cannot = (path: string, why: string) => refused(path, `: ${path} cannot be copied into the worktree: ${why}`)
  await cannot('.env', 'it is a link; ')
  await cannot('deps/secret', 'deps is a link.')
  await cannot('config/.env', 'it is not a regular file; ')
  await cannot('local.json', '64 MiB in all are the most.')
  await cannot('open.txt', 'git does not ignore it there, so it would be committed with the work. To ignore it, ')
  for (const outside of ['../x', '/etc/passwd', 'a/../../x', './x', '.git/config', 'a\\b', ''])
    await refused(outside, ` is ${JSON.stringify(JSON.stringify([outside]))}; use a list of files inside the checkout`)
  expect(git(place, 'branch', '--list', 'codemachine/*')).toBe('')
})

promise('B103')
test('a project’s own file cannot say what is copied', async () => {
  await using place = await makePlace('')
  writeFileSync(join(place.directory, 'codemachine.toml'), '[worktree]\ncopy = [".env"]\n')
  writeFileSync(join(place.directory, '.env'), 'KEY=1\n')
  git(place, 'add', 'codemachine.toml')
  git(place, 'commit', '-qm', 'Copy')
  const { exitCode, stderr } = await codemachine(place, ['--worktree', 'docs', 'look at it'])
  expect(exitCode).toBe(2)
  expect(stderr).toContain(
    "codemachine.toml:2: worktree.copy cannot be set by a project's own file; if you want that, use CODEMACHINE_WORKTREE_COPY or your own config.toml.",
  )
  expect(existsSync(topOf(place))).toBe(false)
  expect(readdirSync(place.root)).not.toContain('work.worktrees')
})
