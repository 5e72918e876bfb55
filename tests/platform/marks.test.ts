import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { readdir, readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { afterEach, describe, expect, test } from 'vitest'
import { systemClock } from '../../src/base/clock.ts'
import {
  endFound,
  endLeftovers,
  endMarked,
  endProcess,
  endTree,
  endUnfinishedSandboxes,
  findMarked,
  MARK_VARIABLE,
  makeMark,
  parseMark,
} from '../../src/platform/end-processes.ts'
import { isAlive, readStat, startTimeOf } from '../../src/platform/processes.ts'
import { killIfAlive } from '../support/kill-if-alive.ts'
import { promise } from '../support/promise.ts'
import { isLinux, unless } from '../support/skipped.ts'

const options = { clock: systemClock, platform: process.platform, self: process.pid, graceMs: 2000 }
const marksOfTest: string[] = []
const children: ChildProcess[] = []

/** A mark that no other test has. */
function newMark(): string {
  const mark = `test-${randomUUID()}`
  marksOfTest.push(mark)
  return mark
}

function start(mark: string, command: string, args: readonly string[], detached = false): ChildProcess {
  const child = spawn(command, args, { env: { ...process.env, [MARK_VARIABLE]: mark }, stdio: 'ignore', detached })
  children.push(child)
  return child
}

const find = (mark: string) => findMarked(MARK_VARIABLE, value => value === mark, process.platform)
const findExactly = (mark: string, count: number) =>
  expect.poll(() => find(mark), { timeout: 30_000, interval: 10 }).toHaveLength(count)
/** Waits until these run, and nothing that is still on its way to become one of them. */
const untilCommands = (mark: string, commands: readonly string[]) =>
  expect
    .poll(async () => (await find(mark)).map(({ command }) => command).sort(), { timeout: 30_000, interval: 10 })
    .toEqual(commands)

afterEach(async () => {
  for (const child of children.splice(0)) child.kill('SIGKILL')
  for (const mark of marksOfTest.splice(0)) for (const { pid } of await find(mark)) await killIfAlive(pid)
})

test('a mark is read as it was written', () => {
  const mark = { key: 'app-0123456789ab', owner: { pid: 4711, startTime: '2026-11-20T23:00:00.000Z' }, n: 3 }
  expect(makeMark(mark)).toBe('app-0123456789ab/4711/2026-11-20T23:00:00.000Z/3')
  expect(parseMark(makeMark(mark))).toEqual(mark)
  const unknown = { ...mark, owner: { pid: 1, startTime: null } }
  expect(parseMark(makeMark(unknown))).toEqual(unknown)
})

test.each(['', 'a', 'a/1/2', 'a/0/2/3', 'a/-1/2/3', 'a/x/2/3', 'a/1/2/3/4', '/1/2/3', 'a/1/2/x'])(
  'a text that is no mark is not taken for one: %j',
  value => expect(parseMark(value)).toBeNull(),
)

describe.runIf(isLinux)(`with real processes${unless(isLinux, 'they are looked for in /proc')}`, () => {
  promise('B8', 'What a round left running ends with it, in sessions of its own too')
  test('what a command left running in sessions of its own is found and ended', async () => {
    const mark = newMark()
    start(mark, 'bash', ['-c', 'setsid -f sleep 300; (setsid -f sleep 301 &); sleep 302 & disown'])
    const commands = ['sleep 300', 'sleep 301', 'sleep 302']
    await untilCommands(mark, commands)
    const { ended, left } = await endMarked(MARK_VARIABLE, value => value === mark, options)
    expect(ended.map(({ command }) => command).sort()).toEqual(commands)
    expect(left).toEqual([])
    expect(await find(mark)).toEqual([])
  })

  test('what does not listen to SIGTERM is killed after the grace', async () => {
    const mark = newMark()
    start(mark, 'bash', ['-c', 'trap "" TERM; while :; do sleep 0.2; done'])
    start(mark, 'sleep', ['300'])
    await expect.poll(() => find(mark).then(found => found.length), { timeout: 30_000 }).toBeGreaterThanOrEqual(2)
    const { ended, left } = await endMarked(MARK_VARIABLE, value => value === mark, { ...options, graceMs: 100 })
    expect(ended.map(({ command }) => command)).toContain('sleep 300')
    expect(left).toEqual([])
    expect(await find(mark)).toEqual([])
  })

  promise(
    'B101',
    'What codex leaves of a sandbox that it was just building when it ended is ended, too, also where codemachine itself was killed',
  )
  test('what is left in the session of a process that has ended is killed, without a mark and deaf to SIGTERM too', async () => {
    const line = 'env -i /bin/sh -c "trap \\"\\" TERM; echo ready; while :; do sleep 0.2; done" & read -r _'
    const begin = async () => {
      const leader = spawn('bash', ['-c', line], { stdio: ['pipe', 'pipe', 'ignore'], detached: true })
      children.push(leader)
      await once(leader.stdout, 'data')
      const pid = leader.pid ?? 0
      const inSession = async () => {
        const pids = (await readdir('/proc')).filter(name => /^\d+$/.test(name)).map(Number)
        const stats = await Promise.all(pids.map(async each => ({ pid: each, stat: await readStat(each) })))
        return stats.filter(({ stat }) => stat?.session === pid).map(each => each.pid)
      }
      return { leader, pid, inSession }
    }
    const [gone, alive] = await Promise.all([begin(), begin()])
    gone.leader.stdin.end()
    await once(gone.leader, 'exit')
    expect(await gone.inSession()).not.toEqual([])
    const { ended, left } = await endMarked(MARK_VARIABLE, () => false, options, new Set([gone.pid, alive.pid]))
    expect(ended.map(({ command }) => command)).toContainEqual(expect.stringMatching(/^\/bin\/sh -c trap/))
    expect(left).toEqual([])
    expect(await gone.inSession()).toEqual([])
    // Its leader lives: it is none of ours that has ended.
    expect(await alive.inSession()).toContain(alive.pid)
    await endTree(alive.pid, 'SIGKILL', process.platform)
  })

  promise('B101')
  test('a sandbox that was never finished is killed once the codex that built it has gone, of this directory alone', async () => {
    const directory = `/nowhere/${randomUUID()}`
    const waits = 'trap "" TERM; echo ready; while :; do sleep 0.2; done'
    const line = `(exec -a bwrap /bin/sh -c "${waits}" x --codex-run-as-fs-helper ${directory}/.env) & read -r _`
    const leader = spawn('bash', ['-c', line], { stdio: ['pipe', 'pipe', 'ignore'], detached: true })
    children.push(leader)
    await once(leader.stdout, 'data')
    const lives = async () => {
      const pids = (await readdir('/proc')).filter(name => /^\d+$/.test(name))
      const lines = await Promise.all(pids.map(pid => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')))
      // There are two for a moment, whenever it starts a sleep.
      return lines.some(each => each.startsWith('bwrap\0') && each.includes(directory))
    }
    expect(await lives()).toBe(true)
    await endUnfinishedSandboxes(directory, options)
    expect(await lives(), 'its codex lives').toBe(true)
    leader.stdin.end()
    await once(leader, 'exit')
    await endUnfinishedSandboxes(`/nowhere/${randomUUID()}`, options)
    expect(await lives(), 'it is of another directory').toBe(true)
    await endUnfinishedSandboxes(directory, options)
    expect(await lives()).toBe(false)
  })

  test('a mark is found behind an environment of any length', async () => {
    const mark = newMark()
    const before = [2_000, 4_000, 17_000, 70_000].map(length => ({ A: 'x'.repeat(length) }))
    for (const env of before)
      children.push(spawn('sleep', ['303'], { env: { ...env, [MARK_VARIABLE]: mark }, stdio: 'ignore' }))
    await findExactly(mark, before.length)
  })

  test('a variable whose name only ends alike, and another value, are not taken for the mark', async () => {
    const mark = newMark()
    const child = spawn('sleep', ['300'], {
      env: {
        ...process.env,
        [`X${MARK_VARIABLE}`]: mark,
        [MARK_VARIABLE]: `${mark}x`,
        OTHER: `${MARK_VARIABLE}=${mark}`,
      },
    })
    children.push(child)
    await once(child, 'spawn')
    expect(await find(`${mark}x`)).toHaveLength(1)
    expect(await find(mark)).toEqual([])
  })

  test('a codemachine that was itself started with the mark ends neither itself nor the shell it was typed into', async () => {
    const mark = newMark()
    start(mark, 'sleep', ['300'])
    await findExactly(mark, 1)
    const program = `
      import { endMarked } from ${JSON.stringify(new URL('../../src/platform/end-processes.ts', import.meta.url))}
      import { systemClock } from ${JSON.stringify(new URL('../../src/base/clock.ts', import.meta.url))}
      const { ended } = await endMarked('${MARK_VARIABLE}', value => value === '${mark}', {
        clock: systemClock, platform: process.platform, self: process.pid, graceMs: 2000 })
      console.log(ended.map(each => each.command).join())`
    const shell = ['-c', '"$0" --input-type=module -e "$1"; echo "the shell lives"', process.execPath, program]
    const env = { ...process.env, [MARK_VARIABLE]: mark }
    const { stdout } = await promisify(execFile)('bash', shell, { env })
    expect(stdout).toBe('sleep 300\nthe shell lives\n')
  })

  test('leftovers of a codemachine are ended once it has died, and not before', async () => {
    const key = newMark()
    const owner = spawn('sleep', ['300'], { stdio: 'ignore' })
    children.push(owner)
    await once(owner, 'spawn')
    const pid = owner.pid ?? 0
    const mark = makeMark({ key, owner: { pid, startTime: await startTimeOf(pid, process.platform) }, n: 1 })
    marksOfTest.push(mark)
    start(mark, 'bash', ['-c', 'setsid -f sleep 300'])
    // Before that it is bash, and setsid.
    await expect.poll(() => find(mark), { timeout: 30_000, interval: 10 }).toMatchObject([{ command: 'sleep 300' }])

    expect((await endLeftovers(key, options)).ended).toEqual([])
    owner.kill('SIGKILL')
    await once(owner, 'exit')
    expect((await endLeftovers('another-key', options)).ended).toEqual([])
    const { ended } = await endLeftovers(key, options)
    expect(ended).toMatchObject([{ command: 'sleep 300', value: mark }])
    expect(await find(mark)).toEqual([])
  })

  test('an owner whose pid has gone to another process counts as dead', async () => {
    const key = newMark()
    const mark = makeMark({ key, owner: { pid: process.pid, startTime: '1' }, n: 1 })
    marksOfTest.push(mark)
    start(mark, 'sleep', ['300'])
    await findExactly(mark, 1)
    expect((await endLeftovers(key, options)).ended).toHaveLength(1)
  })

  test('what is started again a moment after nothing was left is ended too, and bounded is how often', async () => {
    const process = (pid: number) => ({ pid: 10_000_000 + pid, startTime: '1', command: `${pid}` })
    const endWhatIs = (found: () => number[]) =>
      endFound(async () => found().map(process), { ...options, clock: { ...systemClock, wait: async () => {} } })
    const looks = [[1], [], [2], [], []]
    expect(await endWhatIs(() => looks.shift() ?? [])).toEqual({ ended: [process(1), process(2)], left: [] })
    expect(looks).toEqual([])
    let pid = 0
    const { ended, left } = await endWhatIs(() => [++pid])
    expect([ended.length, left]).toEqual([6, [process(7)]])
    // One that is there each time has not been ended.
    expect(await endWhatIs(() => [1])).toEqual({ ended: [], left: [process(1)] })
  })

  promise('B9', 'A signal never goes to a process that has got the pid since')
  test('a signal never goes to a process that has got the pid since', async () => {
    const child = start(newMark(), 'sleep', ['300'])
    await once(child, 'spawn')
    const pid = child.pid ?? 0
    expect(await endProcess({ pid, startTime: '1' }, 'SIGKILL', process.platform)).toBe(false)
    expect(await isAlive(pid, process.platform)).toBe(true)
    const startTime = await startTimeOf(pid, process.platform)
    const exited = once(child, 'exit')
    expect(await endProcess({ pid, startTime }, 'SIGKILL', process.platform)).toBe(true)
    await exited
  })

  test('a process group is ended with its leader, and the own group never', async () => {
    const mark = newMark()
    const leader = start(mark, 'bash', ['-c', 'sleep 300 & sleep 300 & wait'], true)
    await findExactly(mark, 3)
    const pid = leader.pid ?? 0
    expect(await endTree(pid, 'SIGKILL', process.platform)).toBe(true)
    await findExactly(mark, 0)
    const ended = start(newMark(), 'sleep', ['0'], true)
    await once(ended, 'exit')
    expect(await endTree(ended.pid ?? 0, 'SIGKILL', process.platform)).toBe(false)
    for (const wrong of [0, 1, -1, Number.NaN])
      await expect(endTree(wrong, 'SIGKILL', process.platform)).rejects.toThrow(RangeError)
  })
})

test('on Windows no process can be found by its mark', async () => {
  expect(await findMarked(MARK_VARIABLE, () => true, 'win32')).toEqual([])
})
