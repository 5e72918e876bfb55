import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { systemClock } from '../../src/base/clock.ts'
import { forPerson, openControlGroup } from '../../src/platform/control-group.ts'
import { MARK_VARIABLE, makeMark } from '../../src/platform/end-processes.ts'
import { promise } from '../support/promise.ts'
import { isWindows, unless } from '../support/skipped.ts'

/** A process of a made-up machine; in the group at the top of those that it has if not said otherwise. */
interface Made {
  parent: number
  /** Process group and session. Default: of its own. */
  job?: [group: number, session: number]
  /** Null: no other process may read it. Default: empty. */
  env?: NodeJS.ProcessEnv | null
  /** When it was started. Default: by its pid. */
  startTime?: string
  /** A group below it, or null: it stands elsewhere. */
  below?: string | null
}

/** The pid of a codemachine in its own terminal session, whose pid is that of its shell outside of the group. */
const SELF = process.pid
const SHELL = 4_000_001
const ours: [number, number] = [SELF, SHELL]
const self: Made = { parent: SHELL, job: ours }

type Processes = Readonly<Record<number, Made>>

/** A made-up machine: what proc(5) and the control groups show of it. */
class Machine implements AsyncDisposable {
  others: number[] = []
  readonly #root: string
  readonly #proc: string
  /** Where the groups are mounted. */
  readonly #mount: string

  private constructor(root: string) {
    this.#root = root
    this.#proc = join(root, 'proc')
    this.#mount = join(root, 'all groups')
  }

  static async make(processes: Processes): Promise<Machine> {
    const machine = new Machine(await mkdtemp(join(tmpdir(), 'codemachine-groups-')))
    await machine.become(processes)
    await machine.mount('0::/user.slice/run.scope', '/user.slice')
    return machine
  }

  /** What /proc/self/cgroup says, and the root of the mount that has the groups. */
  async mount(group: string, root: string): Promise<void> {
    const at = this.#mount.replaceAll(' ', '\\040')
    const lines = [
      '22 1 0:20 / /proc rw - proc proc rw',
      `41 31 0:38 ${root} ${at} rw,relatime shared:9 - cgroup2 cgroup2 rw`,
    ]
    await writeFile(join(this.#proc, `${SELF}/cgroup`), `9:name=systemd:/\n${group}\n`)
    await writeFile(join(this.#proc, `${SELF}/mountinfo`), `${lines.join('\n')}\n`)
  }

  /** From now on these live, and no others. */
  async become(processes: Processes): Promise<void> {
    await mkdir(join(this.#proc, String(SELF)), { recursive: true })
    const groups = new Map<string, string[]>([['', []]])
    for (const [pid, made] of Object.entries(processes)) {
      const { parent, job = [pid, pid], env = {}, startTime = `10${pid}`, below = '' } = made
      if (below !== null) groups.set(below, [...(groups.get(below) ?? []), pid])
      // So is one written that cannot be seen from here.
      if (pid === '0') continue
      const folder = join(this.#proc, pid)
      await mkdir(folder, { recursive: true })
      const fields = ['S', parent, ...job, ...Array(15).fill(0), startTime, 0]
      await writeFile(join(folder, 'stat'), `${pid} (a (b) c) ${fields.join(' ')}\n`)
      const variables = Object.entries(env ?? {}).map(pair => `${pair.join('=')}\0`)
      if (env !== null) await writeFile(join(folder, 'environ'), variables.join(''))
      await writeFile(join(folder, 'cmdline'), `program\0${pid}\0`)
    }
    for (const [below, pids] of groups) {
      await mkdir(join(this.#mount, 'run.scope', below), { recursive: true })
      await writeFile(join(this.#mount, 'run.scope', below, 'cgroup.procs'), pids.map(pid => `${pid}\n`).join(''))
    }
  }

  open(platform: NodeJS.Platform = 'linux') {
    const otherRuns = async () => this.others
    return openControlGroup({ platform, self: SELF, clock: systemClock, graceMs: 100, otherRuns, proc: this.#proc })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.#root, { recursive: true })
  }
}

const markOf = (pid: number) => ({
  [MARK_VARIABLE]: makeMark({ key: 'x', owner: { pid, startTime: `10${pid}` }, n: 1 }),
})

/** What is found once these live, in a group that began with others. */
async function findAmong(now: Processes, start: Processes = { [SELF]: self }): Promise<number[] | null> {
  await using machine = await Machine.make(start)
  const group = await machine.open()
  await machine.become({ ...start, ...now })
  return group === null ? null : (await group.findStrays()).map(({ pid }) => pid)
}

describe.runIf(!isWindows)(`a control group${unless(!isWindows, 'there are none, nor such paths')}`, () => {
  promise('B32')
  test('what is orphaned in it, or in one below it, is found; what this process runs is not', async () => {
    const app = { parent: SELF }
    const orphans = {
      9000021: { parent: 1 },
      9000022: { parent: 9000021 },
      9000023: { parent: 1, below: 'a/b' },
      9000024: { parent: 9000009, below: 'c' },
    }
    const running = { 9000011: app, 9000012: { parent: 9000011 }, 9000013: { parent: 9000012, below: 'a' } }
    expect(await findAmong({ ...orphans, ...running, 9000031: { parent: 1, below: null } })).toEqual([
      9000021, 9000022, 9000024, 9000023,
    ])
  })

  test('what has something for a mark that is none is found', async () => {
    const found = await findAmong({ 9000021: { parent: 1, env: { [MARK_VARIABLE]: 'x' } } })
    expect(found).toEqual([9000021])
  })

  test('what has a mark is left to the search for marks, and keeps nothing else from being found', async () => {
    const marked = { 9000021: { parent: 1, env: markOf(SELF) }, 9000022: { parent: 1, env: markOf(4711) } }
    expect(await findAmong({ ...marked, 9000023: { parent: 1 } })).toEqual([9000023])
  })

  test('what has the pid of one that was there at the start, and has ended, is found', async () => {
    const [was, is] = [{ parent: SELF }, { parent: 1, startTime: '7' }]
    expect(await findAmong({ 9000021: is }, { [SELF]: self, 9000021: was })).toEqual([9000021])
  })

  promise('B33')
  test('what was started for the person is theirs, and so is what it starts', async () => {
    const theirs = {
      9000021: { parent: 1, env: forPerson({}) },
      9000022: { parent: 9000021 },
      9000023: { parent: 9000022, job: ours },
    } as const
    const ofAnother = { parent: 1, env: Object.fromEntries(Object.keys(forPerson({})).map(name => [name, '4711'])) }
    expect(await findAmong({ ...theirs, 9000030: { parent: 1 }, 9000031: ofAnother })).toEqual([9000030, 9000031])
  })

  promise('B33')
  test('what systemd has put into it is left alone, such as ExecStop= of its unit, and so is what that starts', async () => {
    const started = (pid: number) => ({ SYSTEMD_EXEC_PID: String(pid) })
    const found = await findAmong({
      // The service manager of the person, which takes what is orphaned.
      9000001: { parent: 1, env: started(9000001), below: null },
      9000021: { parent: 9000001, env: started(9000021) },
      9000022: { parent: 9000021, env: started(9000021) },
      9000023: { parent: 9000001, env: started(SELF) },
    })
    expect(found).toEqual([9000023])
  })

  promise('B33')
  test('what lets nobody read for whom it was started, as the agent that keeps a key does, is left alone', async () => {
    const found = await findAmong({ 9000021: { parent: 1, env: null }, 9000022: { parent: 1 } })
    expect(found).toEqual([9000022])
  })

  test('npx and sh -c above this process are no hindrance, and are left alone', async () => {
    const start = {
      [SELF]: { parent: 9000007, job: ours },
      9000007: { parent: 9000006, job: ours },
      9000006: { parent: SHELL, job: ours },
    } as const
    expect(await findAmong({ 9000021: { parent: 1 } }, start)).toEqual([9000021])
  })

  promise('B33', "Of a control group nothing of the person's is ended: their shells, editors and browsers, other runs")
  test.each<[string, Processes]>([
    [
      'an interactive shell',
      { [SELF]: { parent: 9000006, job: ours }, 9000006: { parent: SHELL, job: [9000006, SHELL] } },
    ],
    [
      'another job of a script',
      {
        [SELF]: { parent: 9000006, job: ours },
        9000006: { parent: 9000005, job: ours },
        9000007: { parent: 9000006, job: ours },
      },
    ],
    ['the init of a container', { [SELF]: { parent: 1, job: ours }, 1: { parent: 0, job: ours } }],
    ['the program that a container runs, this process itself,', { [SELF]: { parent: 0, job: ours } }],
    [
      'the program that a container runs, above this process,',
      { [SELF]: { parent: 9000006, job: ours }, 9000006: { parent: 0, job: ours } },
    ],
    ['what cannot be seen from here', { [SELF]: self, 0: { parent: 0 } }],
    ['anything else', { [SELF]: self, 9000050: { parent: 1 } }],
  ])('with %s in it at the start it does not count', async (_what, start) => {
    expect(await findAmong({ 9000021: { parent: 1 } }, start)).toBeNull()
  })

  test.each<[string, Processes]>([
    ['the session of this process', { 9000050: { parent: 1, job: [9000050, SHELL] } }],
    ['what an ancestor in it has started', { 9000050: { parent: 9000006 } }],
    [
      'a codemachine with other records, at work',
      { 9000050: { parent: 1 }, 9000051: { parent: 9000050, env: markOf(9000050) } },
    ],
  ])('nothing is found while it has a process of %s', async (_what, more) => {
    const start = { [SELF]: { parent: 9000006, job: ours }, 9000006: { parent: SHELL, job: ours } } as const
    expect(await findAmong({ 9000021: { parent: 1 }, ...more }, start)).toEqual([])
    expect(await findAmong({ 9000021: { parent: 1 } }, start)).toEqual([9000021])
  })

  promise('B33')
  test('nothing is found while another codemachine stands in it, or an agent works', async () => {
    await using machine = await Machine.make({ [SELF]: self })
    const group = await machine.open()
    await machine.become({ [SELF]: self, 9000021: { parent: 1 }, 9000050: { parent: 1 } })
    const find = async () => (await group?.findStrays())?.map(({ pid, command }) => `${command} ${pid}`)
    machine.others = [9000050]
    expect(await find()).toEqual([])
    machine.others = [4711]
    const ends = [group?.works(), group?.works()]
    expect(await find()).toEqual([])
    ends[0]?.()
    expect(await find()).toEqual([])
    ends[1]?.()
    expect(await find()).toEqual(['program 9000021 9000021', 'program 9000050 9000050'])
  })

  test.each([
    ['on another system', 'darwin', '0::/user.slice/run.scope', '/user.slice'],
    ['without cgroup v2', 'linux', '1:cpu:/', '/'],
    ['that is not mounted here', 'linux', '0::/user.slice/run.scope', '/misc.slice'],
    ['above its namespace', 'linux', '0::/../all groups/run.scope', '/'],
  ] as const)('one %s does not count', async (_where, platform, group, root) => {
    await using machine = await Machine.make({ [SELF]: self })
    expect(await machine.open('linux')).not.toBeNull()
    await machine.mount(group, root)
    expect(await machine.open(platform)).toBeNull()
  })
})
