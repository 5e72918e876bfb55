import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { delimiter, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { makePlace, type TestPlace } from '../../support/place.ts'
import { endProcessesOf, processesOf } from '../../support/processes.ts'
import { promise } from '../../support/promise.ts'
import { writePeer } from '../../support/scripted-peer.ts'
import { untilInFolder } from '../../support/until-in-folder.ts'
import { endAfterEach } from './end-after-each.ts'
import { openCommands } from './open-commands.ts'
import { WatchedGroup } from './watched-group.ts'

const place = await makePlace('')
const outside = await mkdtemp('/var/tmp/codemachine-outside-')
const after = endAfterEach()
afterAll(async () => {
  endProcessesOf(place)
  await place[Symbol.asyncDispose]()
  await rm(outside, { recursive: true })
})

const open = async (...[options, where = place]: [Parameters<typeof openCommands>[1]?, TestPlace?]) =>
  after.use(await openCommands(where, options))

/** Resolves once a command has made this file in the work directory, and removes it. */
async function made(name: string): Promise<void> {
  const file = join(place.directory, name)
  await untilInFolder(place.directory, name, () => existsSync(file) || null)
  await rm(file)
}

/** Leaves what has left its session, what ignores being asked to end, and what is nobody's child any more. */
const LEAVES_BEHIND = [
  'setsid sleep 1001 &',
  '(nohup sleep 1002 >/dev/null 2>&1 &)',
  '(setsid sh -c "setsid sleep 1003 >/dev/null 2>&1 &" >/dev/null 2>&1 &)',
  `setsid bash -c 'trap "" TERM; while :; do sleep 1004; done' >/dev/null 2>&1 &`,
].join('\n')

test('a command that passes is told with what it printed, both streams in their order', async () => {
  const { run } = await open()
  const end = await run('for n in $(seq 100); do echo out $n; echo err $n >&2; done')
  const output = Array.from({ length: 100 }, (_, i) => `out ${i + 1}\nerr ${i + 1}`).join('\n')
  expect(end).toEqual({ kind: 'exited', exitCode: 0, output, durationMs: expect.any(Number) })
  expect(end.durationMs).toBeGreaterThan(0)
})

test('colours, titles and what was written over are not told', async () => {
  const { run } = await open()
  const end = await run(String.raw`printf '10%%\r20%%\r30%%\n\033[31mred\033[0m \033]0;title\007h\303\251\b\r\n'`)
  expect(end.output).toBe('30%\nred hé')
})

test('of a command that fails, the exit code and the last lines are told', async () => {
  const { run } = await open()
  const end = await run('seq 100000; echo "1 test failed" >&2; exit 3')
  expect(end).toMatchObject({ kind: 'exited', exitCode: 3 })
  expect(end.output).toMatch(/^\d{5}\n[\s\S]*\n100000\n1 test failed$/)
  expect(end.output.length).toBeLessThanOrEqual(16_000)
})

test('a program that is not there, and a line that is no command, are exit codes', async () => {
  const { run } = await open()
  expect(await run('no-such-program --test')).toMatchObject({
    kind: 'exited',
    exitCode: 127,
    output: expect.stringContaining('no-such-program'),
  })
  expect(await run('if then (')).toMatchObject({ kind: 'exited', exitCode: 2 })
})

describe('a command writes where the rounds may', () => {
  const line = `touch inside; touch ${outside}/file; touch .git/of-git; test -e inside && echo inside; test -e .git/of-git && echo git`

  test.each([
    ['read-only', '', false],
    ['workspace-write', 'inside\ngit', false],
    ['danger-full-access', 'inside\ngit', true],
  ] as const)('%s', async (mode, expected, reachesOutside) => {
    const { run } = await open({ mode, writable: [join(place.directory, '.git')] })
    const { output } = await run(line)
    expect(output.replaceAll(/^touch: .*\n?/gm, '').trim()).toBe(expected)
    expect(existsSync(join(outside, 'file'))).toBe(reachesOutside)
    for (const left of [
      join(place.directory, 'inside'),
      join(place.directory, '.git', 'of-git'),
      join(outside, 'file'),
    ])
      await rm(left, { force: true })
  })

  promise('D25', 'A command of a template that is to read only can write nothing, whatever the rounds may')
  test.each(['workspace-write', 'danger-full-access'] as const)('nothing where it is to read only: %s', async mode => {
    const { run } = await open({ mode, writable: [join(place.directory, '.git')] })
    const { output } = await run(line, { readOnly: true })
    expect(output.replaceAll(/^touch: .*\n?/gm, '').trim()).toBe('')
    expect(existsSync(join(outside, 'file'))).toBe(false)
    // The next one may write again.
    expect((await run('touch inside && rm inside && echo yes')).output).toBe('yes')
  })

  test('and a link out of the work directory does not change that', async () => {
    const { run } = await open()
    const { output } = await run(`ln -s ${outside} link; touch link/file; echo "$?"; rm link`)
    expect(output).toContain('Read-only file system\n1')
    expect(await readdir(outside)).toEqual([])
  })
})

promise(
  'D72',
  "Rounds and all commands of codemachine may write in the folders that the person's configuration of codex, or `-c`, names",
)
test.each([
  ['as the rounds', {}],
  ['and is kept from reading', { unreadable: ['/etc/hostname'] }],
])("a command writes where the person's configuration of codex lets commands write, %s", async (_, more) => {
  await using other = await makePlace(`[sandbox_workspace_write]\nwritable_roots = ["${outside}", "/var/tmp/none"]\n`)
  const { commands } = await open({ writable: [join(other.directory, '.git')] }, other)
  const asked = { network: false, timeoutMs: 60_000, signal: new AbortController().signal, ...more }
  const { output } = await commands.run({ run: `touch ${outside}/file .git/file && echo both`, ...asked })
  expect(output).toBe('both')
  await rm(join(outside, 'file'))
  // What may write nothing may not write there.
  expect((await commands.run({ run: `touch ${outside}/file || echo none`, readOnly: true, ...asked })).output).toMatch(
    /none$/,
  )
})

promise('D75', 'A gate or round in which nothing could be started is a problem, and no failure')
test('a command that the sandbox does not start is no command that fails: what is in the way is named', async () => {
  await using other = await makePlace('')
  await symlink('nowhere', join(other.directory, '.agents'))
  const { run } = await open({}, other)
  expect(await run('true')).toEqual({
    kind: 'not-started',
    problem: `Codex's sandbox starts no command here: .agents in ${other.directory} is a link, which it cannot protect. Remove it, or replace it by its target (${join(other.directory, 'nowhere')}).`,
    durationMs: expect.any(Number),
    output: '',
  })
  await rm(join(other.directory, '.agents'))
  expect(await run('exit 1')).toMatchObject({ kind: 'exited', exitCode: 1 })
})

describe('a command reaches the network only where it and the rounds may', () => {
  const server = createServer(socket => socket.end('reached\n'))
  beforeAll(() => new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve)))
  afterAll(() => new Promise(resolve => server.close(resolve)))

  test.each([
    [true, true, 'reached'],
    [true, false, 'not permitted'],
    [false, true, 'not permitted'],
  ])('rounds: %s, command: %s', async (rounds, network, expected) => {
    const { run } = await open({ network: rounds })
    const address = server.address()
    const port = typeof address === 'object' ? address?.port : null
    const { output } = await run(`exec 3<>/dev/tcp/127.0.0.1/${port} && cat <&3`, { network })
    expect(output).toContain(expected)
  })
})

test('a command has the variables and programs that those of agents have', async () => {
  await using other = await makePlace('[shell_environment_policy]\nexclude = ["SECRET*"]\nset = { MINE = "mine" }\n')
  const bin = join(other.directory, 'node_modules', '.bin')
  await mkdir(bin, { recursive: true })
  await writeFile(join(bin, 'tool'), '#!/bin/sh\necho the tool\n', { mode: 0o755 })
  const env = { PATH: [bin, other.env.PATH].join(delimiter), SECRET_A: 'secret', OTHER: 'other' }
  const { run } = await open({ env }, other)
  const { output } = await run('echo "$GIT_DIR|$SECRET_A|$OTHER|$MINE"; tool; git status --short')
  expect(output).toBe('||other|mine\nthe tool\n?? node_modules/')
})

describe('nothing is left of a command', () => {
  test.each(['workspace-write', 'danger-full-access'] as const)('that hangs, %s', async mode => {
    const { run, timeIsUp } = await open({ mode })
    const running = run(`trap '' TERM\n${LEAVES_BEHIND}\ntouch hanging; while :; do sleep 1005; done`)
    await made('hanging')
    timeIsUp()
    expect(await running).toMatchObject({ kind: 'timed-out' })
    expect(processesOf(place)).toEqual([])
  })

  test.each(['workspace-write', 'danger-full-access'] as const)(
    'that passes and leaves things running, %s',
    async mode => {
      const { run } = await open({ mode })
      expect(await run(`${LEAVES_BEHIND}\necho passed`)).toMatchObject({
        kind: 'exited',
        exitCode: 0,
        output: 'passed',
      })
      expect(processesOf(place)).toEqual([])
    },
  )

  test('that the person’s own policy gives no variables', async () => {
    await using other = await makePlace('[shell_environment_policy]\ninherit = "none"\n')
    const { run } = await open({ mode: 'danger-full-access' }, other)
    await run('/usr/bin/setsid /bin/sleep 1001 > /dev/null 2>&1 & echo passed')
    expect(processesOf(other)).toEqual([])
  })

  test('and it is looked for in the control group, not before the command has ended', async () => {
    const group = new WatchedGroup()
    const opened = await openCommands(place, { controlGroup: group })
    const running = opened.run('touch begun; sleep 1006')
    await made('begun')
    expect(group.working).toBe(1)
    opened.timeIsUp()
    expect((await running).kind).toBe('timed-out')
    await opened[Symbol.asyncDispose]()
    expect([group.working, group.looks.at(-1)]).toEqual([0, 0])
  })

  test('that is broken off', async () => {
    const { run } = await open()
    const controller = new AbortController()
    const running = run(`${LEAVES_BEHIND}\ntouch begun; sleep 1005`, { signal: controller.signal })
    await made('begun')
    controller.abort()
    expect(await running).toMatchObject({ kind: 'broken-off' })
    expect(processesOf(place)).toEqual([])
  })
})

test('commands run one after another, and closing breaks off the one that runs and those that wait', async () => {
  const { run, commands } = await open()
  const first = run('touch first; sleep 0.3; rm first')
  // What it prints may come later than what it makes.
  const second = run('test -e first || touch second; sleep 1005')
  const third = run('touch third')
  expect(await first).toMatchObject({ exitCode: 0 })
  await made('second')
  await commands[Symbol.asyncDispose]()
  expect(await second).toMatchObject({ kind: 'broken-off' })
  expect(await third).toEqual({ kind: 'broken-off', durationMs: 0, output: '' })
  expect(existsSync(join(place.directory, 'third'))).toBe(false)
  expect(processesOf(place)).toEqual([])
})

test('a flood of output harms nobody: its end is told, and the memory stays', async () => {
  const { run } = await open()
  const before = process.memoryUsage().rss
  const end = await run('head -c 150000000 /dev/zero | tr "\\0" x; echo; echo the end')
  expect(end).toMatchObject({ kind: 'exited', exitCode: 0, output: 'the end' })
  expect(process.memoryUsage().rss - before).toBeLessThan(300_000_000)
})

test('a flood without an end is ended by the time', async () => {
  const { run, timeIsUp } = await open()
  const running = run('touch flooding; yes')
  await made('flooding')
  timeIsUp()
  expect(await running).toMatchObject({ kind: 'timed-out' })
  expect(processesOf(place)).toEqual([])
})

describe('a command that codex cannot run is not run at all, and it is told why', () => {
  const OLD = `on['command/exec'] = id => send({ id, error: { code: -32600, message: 'Invalid request: unknown variant command/exec' } })`
  const DIES = `on['command/exec'] = () => { process.stderr.write('panicked\\n', () => process.exit(101)) }`

  test.each([
    ['too old', OLD, 'codex did not run it in its sandbox: Invalid request: unknown variant command/exec'],
    ['dies', DIES, 'codex ended with exit code 101. panicked'],
    ['does not start', `process.stderr.write('no home\\n'); process.exit(1)`, 'codex ended with exit code 1. no home'],
  ])('%s', async (_what, changes, problem) => {
    const { run } = await open({ path: await writePeer(place.root, changes) })
    expect(await run('touch ran')).toMatchObject({ kind: 'not-started', problem, output: '' })
    expect(existsSync(join(place.directory, 'ran'))).toBe(false)
  })

  test('says nothing', async () => {
    const { run } = await open({ path: await writePeer(place.root, 'on.initialize = () => {}'), requestMs: 500 })
    const problem = 'codex did not answer initialize within 0.5 s.'
    expect(await run('true')).toMatchObject({ kind: 'not-started', problem })
  })

  test('is not there', async () => {
    const { run } = await open({ path: join(place.root, 'no-codex') })
    expect(await run('true')).toMatchObject({
      kind: 'not-started',
      problem: expect.stringContaining('codex could not be started'),
    })
  })
})
