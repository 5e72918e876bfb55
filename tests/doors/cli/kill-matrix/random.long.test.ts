import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test, vi } from 'vitest'
import { openQueue } from '../../../../src/session/records/queue.ts'
import { openSmallBuild, UNATTENDED } from '../../../support/build-scene.ts'
import { describePoint, type KillPoint, killsIn, startWithKills } from '../../../support/kill-points.ts'
import { processesOf } from '../../../support/processes.ts'
import { incident, promise } from '../../../support/promise.ts'
import { randomFrom, SEED } from '../../../support/random.ts'
import { openRealScene, type RealScene } from '../../../support/real-scene.ts'
import { eventsOf } from '../../../support/scene.ts'
import { eventsOfSession, expectKept, expectToGoOn, isUnderWay } from './survive.ts'
import { openWork, treeOf } from './work.ts'

vi.setConfig({ maxConcurrency: 4, testTimeout: 600_000 })

/** Sessions of each kind, beside each other; each is killed so often: 200 kills. */
const SESSIONS = 10
const KILLS = 10
/** The SIGKILL strikes at one of the first so many moments of a process: a session has more, a rewind a few. */
const MOMENTS = { session: 130, rewind: 12 }
const GATED = ['--json', '--no-keep-awake', '--verify', 'test -e parts/2.txt']

interface Night {
  scene: RealScene
  /** What is killed again and again; the place counts what was. */
  run(...args: string[]): Promise<boolean>
  /** What has been done to it, for whoever looks for what went wrong. */
  story: string[]
  isOver(): boolean
}

/** Runs commands of which each is killed at a random moment, until all kills are made. */
function openNight(scene: RealScene, seed: number): Night {
  const random = randomFrom(seed)
  const story: string[] = []
  return {
    scene,
    story,
    isOver: () => killsIn(scene.place).length >= KILLS,
    /** True once it has come to its end, alive. */
    async run(...args) {
      const point: KillPoint = {
        victim: random.below(3) === 0 ? 'both' : 'codemachine',
        any: 'moment',
        n: 1 + random.below(MOMENTS[args[0] === 'rewind' ? 'rewind' : 'session']),
        delayMs: random.below(2) * random.below(args[0] === 'rewind' ? 10 : 40),
      }
      const kills = killsIn(scene.place).length
      // Those that an earlier process was killed at are over.
      const points = kills < KILLS ? [...Array<KillPoint>(kills).fill(point), point] : []
      const ended = await startWithKills(scene.place, args, points).ended
      story.push(`${args.join(' ')}: ${ended.signal ?? ended.exitCode} (${describePoint(point)})`)
      if (ended.signal === 'SIGKILL') return false
      expect([ended.exitCode, ended.stderr]).toEqual([0, ''])
      return true
    },
  }
}

/** Has a session, and what waits behind it, worked on to the end, however often it is killed. */
async function workThrough({ scene, run }: Night, begin: readonly string[]): Promise<void> {
  let before: Buffer = Buffer.alloc(0)
  let id: string | undefined
  for (let isDone = false; !isDone; ) {
    const { sessions, waits } = await stateOf(scene)
    const newest = sessions.at(-1)
    if (newest !== id) before = Buffer.alloc(0)
    id = newest
    before = expectToGoOn(before, scene)
    // The session of what waits may have no event yet.
    const hasBegun = sessions.some(session => eventsOfSession(scene, session).length > 0)
    if (isUnderWay(before)) isDone = await run('resume', '--json')
    else if (!hasBegun) isDone = await run(...begin)
    // It was killed when its work was done already; what waits has its turn.
    else isDone = waits === 0 || (await run('--json', '--no-keep-awake'))
  }
}

async function stateOf(scene: RealScene): Promise<{ sessions: readonly string[]; waits: number }> {
  try {
    const sessions = readdirSync(join(scene.records(), 'sessions')).sort()
    const queue = openQueue(join(scene.records(), 'queue'))
    // One that was claimed when the run was killed waits again in the next.
    const [count, claimed] = await Promise.all([queue.count(), queue.claimed()])
    return { sessions, waits: count + claimed.length }
  } catch {
    return { sessions: [], waits: 0 }
  }
}

/** Plays a night with its seed; what fails is told with what was done before, and how to play it again. */
async function play(scene: RealScene, seed: number, work: (night: Night) => Promise<void>): Promise<void> {
  const night = openNight(scene, seed)
  try {
    await work(night)
    expect(killsIn(scene.place).length).toBe(KILLS)
    expect(processesOf(scene.place)).toEqual([])
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    throw new Error(`${message}\nWith the seed ${SEED}:\n${night.story.join('\n')}`, { cause: error })
  }
}

/** Each round that has ended has its savepoint, or the journal says why not; and all that are journaled can be had. */
async function expectSavepoints(scene: RealScene, sessions: readonly string[]): Promise<void> {
  const { stdout } = await scene.run('savepoints', '--json')
  const there = (JSON.parse(stdout) as { id: string; tree: string }[]).map(({ id, tree }) => [id, tree] as const)
  for (const session of sessions) {
    const events = eventsOfSession(scene, session)
    expectKept(events)
    // A round that is tried again is kept again, under the same name.
    const last = new Map(
      eventsOf(events, 'savepoint').map(({ round, tree }) => [`${session}/${round || 'start'}`, tree]),
    )
    expect(new Map(there.filter(([id]) => id.startsWith(`${session}/`)))).toEqual(last)
  }
}

let trees: { goal: string; build: string; start: string }
beforeAll(async () => {
  await using goal = await openWork()
  const start = treeOf(goal.place)
  expect(await goal.run('--no-keep-awake', 'build X')).toMatchObject({ exitCode: 0, stderr: '' })
  await using build = await openSmallBuild(undefined, openRealScene)
  expect(await build.run('start', ...UNATTENDED)).toMatchObject({ exitCode: 0, stderr: '' })
  trees = { goal: treeOf(goal.place), build: treeOf(build.place), start }
})

const seeds = Array.from({ length: SESSIONS }, (_, i) => SEED + i)

promise(
  'R30',
  'Killed 200 times at random moments, in a session, the queue behind it, a build or a rewind, what comes out is the tree of an undisturbed run',
)
incident('lost work', 'A queued prompt could be lost if codemachine was killed as it claimed it', {
  since: '2026-11-21',
  fixed: '2026-11-23',
  foundBy: 'kills at random moments',
})
describe.concurrent('killed at random moments, a session comes to the tree of an undisturbed one', () => {
  test.each(seeds)('a goal with a gate, what waits behind it, and the way back and forth again (%i)', async seed => {
    await using scene = await openWork()
    await play(scene, seed, async night => {
      expect((await scene.run('queue', 'add', 'build Y')).exitCode).toBe(0)
      await workThrough(night, [...GATED, 'build X'])
      expect(treeOf(scene.place)).toBe(trees.goal)
      const sessions = readdirSync(join(scene.records(), 'sessions')).sort()
      const events = sessions.flatMap(id => eventsOfSession(scene, id))
      // No prompt is lost, or worked on twice.
      expect(eventsOf(events, 'session-created').map(({ goal }) => goal)).toEqual(['build X', 'build Y'])
      const done = eventsOf(events, 'session-ended').filter(({ outcome }) => outcome.kind === 'done')
      expect(done.map(({ session }) => session)).toEqual(sessions.filter(id => eventsOfSession(scene, id).length > 0))
      await expectSavepoints(scene, sessions)
      for (let turn = 0; turn < 2 || !night.isOver(); turn++) {
        const to = turn % 2 === 0 ? `${done[0]?.session}/start` : 'before-rewind-1'
        while (!(await night.run('rewind', to)));
        expect(treeOf(scene.place)).toBe(turn % 2 === 0 ? trees.start : trees.goal)
      }
    })
  })

  test.each(seeds)('a build (%i)', async seed => {
    await using scene = await openSmallBuild(undefined, openRealScene)
    await play(scene, seed, async night => {
      await workThrough(night, ['start', ...UNATTENDED])
      expect(treeOf(scene.place)).toBe(trees.build)
      expect(eventsOf(eventsOfSession(scene), 'session-ended').at(-1)).toMatchObject({ outcome: { kind: 'done' } })
      await expectSavepoints(scene, readdirSync(join(scene.records(), 'sessions')))
      while (!night.isOver()) await night.run('rewind', 'start')
    })
  })
})
