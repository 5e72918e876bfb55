import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import type { Recorded } from '../../../../src/core/events/events.ts'
import type { Ended } from '../../../support/codemachine.ts'
import { type KillPoint, killsIn, startWithKills } from '../../../support/kill-points.ts'
import { processesOf } from '../../../support/processes.ts'
import type { RealScene, RealSceneOptions } from '../../../support/real-scene.ts'
import { eventsOf } from '../../../support/scene.ts'
import { openWork, type Turnout, treeOf } from './work.ts'

export interface SurviveOptions {
  /** What the model does otherwise than in `openWork`. */
  turnout?: Turnout
  scene?: RealSceneOptions
  /** Done before the session begins. */
  prepare?(scene: RealScene): Promise<void>
  env?: Readonly<Record<string, string>>
  /** Before the goal, when the session is started. */
  args?: readonly string[]
  /** After `resume`. */
  resumeArgs?: readonly string[]
  /** How a run may end by itself before the session is done, and is resumed: exit codes. */
  stops?: readonly number[]
}

/** What a session that was killed has come to. */
export interface Survived {
  events: readonly Recorded[]
  /** Of the last codemachine. */
  ended: Ended
}

/** The work tree of a session that nothing has disturbed. */
export async function undisturbedTree(): Promise<string> {
  await using scene = await openWork()
  expect(await scene.run('--no-keep-awake', 'build X')).toMatchObject({ exitCode: 0, stderr: '' })
  return treeOf(scene.place)
}

/**
 * Plays a session of several rounds, in which the SIGKILL strikes at each of these points, one after the other; after
 * each death of codemachine itself it is resumed, until it is done. Expects that nothing is lost, doubled or left over.
 */
export async function survive(
  points: readonly KillPoint[],
  tree: string,
  options: SurviveOptions = {},
): Promise<Survived> {
  await using scene = await openWork(options.turnout, options.scene)
  Object.assign(scene.place.env, options.env)
  await options.prepare?.(scene)
  const survived = await goOnToDone(scene, line => startWithKills(scene.place, line, points).ended, tree, options)
  // Every point was struck, and where codex was to die, one was there to die.
  expect(killsIn(scene.place).map(codexes => codexes > 0)).toEqual(points.map(({ victim }) => victim !== 'codemachine'))
  return survived
}

/** Runs a session, and resumes it as often as it has stopped, until it is done. Expects the same as `survive`. */
export async function goOnToDone(
  scene: RealScene,
  run: (line: readonly string[]) => Promise<Ended>,
  tree: string,
  { args = ['--no-keep-awake'], resumeArgs = [], stops = [] }: Pick<SurviveOptions, 'args' | 'resumeArgs' | 'stops'>,
): Promise<Survived> {
  const start = (...line: string[]) => run([...line, '--json'])
  let ended = await start(...args, 'build X')
  let journal: Buffer = Buffer.alloc(0)
  while (ended.signal === 'SIGKILL' || stops.includes(ended.exitCode ?? -1)) {
    journal = expectToGoOn(journal, scene)
    if (isUnderWay(journal)) {
      ended = await start('resume', ...resumeArgs)
    } else {
      journal = Buffer.alloc(0)
      ended = await start(...args, 'build X')
    }
  }
  expect(ended).toMatchObject({ exitCode: 0, signal: null, stderr: '' })
  const events = eventsIn(expectToGoOn(journal, scene))
  expectWholeSession(events)
  expect(treeOf(scene.place)).toBe(tree)
  expectTidy(scene)
  return { events, ended }
}

/** Every byte of the journal is there still, where it was, and what is new stands on lines of its own. Answers it. */
export function expectToGoOn(before: Buffer, scene: RealScene): Buffer {
  const now = journalOf(scene)
  expect(now.subarray(0, before.length).equals(before)).toBe(true)
  const isTorn = before.length > 0 && before.at(-1) !== NEWLINE
  if (isTorn && now.length > before.length) expect(now[before.length]).toBe(NEWLINE)
  return now
}

const NEWLINE = 0x0a

/** Of the newest session if not said; empty if there is none yet. */
function journalOf(scene: RealScene, session?: string): Buffer {
  const state = join(scene.place.home, '.codemachine', 'state')
  const [place = 'none'] = existsSync(state) ? readdirSync(state) : []
  const folder = join(state, place, 'sessions')
  const id = session ?? (existsSync(folder) ? readdirSync(folder).sort().at(-1) : undefined) ?? 'none'
  const path = join(folder, id, 'journal.ndjson')
  return existsSync(path) ? readFileSync(path) : Buffer.alloc(0)
}

/** Before its first line is whole there is no session yet, and after its last one there is nothing to go on with. */
export function isUnderWay(journal: Buffer): boolean {
  const last = eventsIn(journal).at(-1)
  return last !== undefined && !(last.type === 'session-ended' && last.outcome.kind === 'done')
}

/** What was journaled of a session; of the newest one if not said. */
export function eventsOfSession(scene: RealScene, session?: string): Recorded[] {
  return eventsIn(journalOf(scene, session))
}

/** What is torn is passed over. */
function eventsIn(journal: Buffer): Recorded[] {
  return journal
    .toString('utf8')
    .split('\n')
    .flatMap(line => {
      try {
        const value = JSON.parse(line)
        return 'type' in value ? [value] : []
      } catch {
        return []
      }
    })
}

/** The order of docs/events.md: one beginning, one end, rounds without a gap, and none again that had counted. */
function expectWholeSession(events: readonly Recorded[]): void {
  expect(events[0]?.type).toBe('session-created')
  expect(events.at(-1)).toMatchObject({ type: 'session-ended', outcome: { kind: 'done' }, exitCode: 0 })
  expect(eventsOf(events, 'session-created')).toHaveLength(1)
  let counted = 0
  let running: number | null = null
  let last: number | null = null
  for (const event of ofRounds(events)) {
    if (event.type === 'session-resumed') running = null
    if (event.type === 'round-started') {
      expect([event.round, running]).toEqual([counted + 1, null])
      running = event.round
    }
    if (event.type === 'round-ended') {
      expect(event.round).toBe(running)
      last = running
      running = null
      if (event.counts) counted += 1
    }
    if (event.type === 'turn-started' || event.type === 'usage' || event.type === 'item-completed')
      expect(event.round).toBe(running)
    if (event.type === 'done-nominated') expect([event.round, running]).toEqual([last, null])
  }
  expectKept(events)
  const ended = eventsOf(events, 'session-ended').at(-1)
  expect([ended?.rounds, ended?.tokens]).toEqual([counted, tokensOf(events)])

  const judged = eventsOf(events, 'round-ended').at(-1)
  const accepted = eventsOf(events, 'done-accepted').at(-1)
  expect([accepted?.round, accepted?.tree]).toEqual([judged?.round, judged?.treeAfter])
  expect(judged?.treeBefore).toBe(judged?.treeAfter)
}

/** Each round that has ended has a savepoint of what it left, or the journal says why there is none. */
export function expectKept(events: readonly Recorded[]): void {
  for (const [at, event] of events.entries()) {
    if (event.type !== 'round-ended') continue
    const later = events.slice(at)
    const { round, treeAfter } = event
    const isKept = eventsOf(later, 'savepoint').some(each => each.round === round && each.tree === treeAfter)
    const why = new RegExp(`^(?:Round ${round} has no savepoint|There is no savepoint of round ${round},)`)
    const isSaid = eventsOf(later, 'warning').some(({ message }) => why.test(message))
    expect([round, isKept || isSaid]).toEqual([round, true])
  }
}

/** What comes of the turn of a reviewer, of an author or of a control is of the round that it is about, and left out. */
function ofRounds(events: readonly Recorded[]): Recorded[] {
  let isOther = false
  return events.filter(({ type }) => {
    const begins = type === 'review-started' || type === 'contract-turn-started'
    const ends = type === 'review-ended' || type === 'contract-turn-ended' || type === 'session-resumed'
    isOther = begins || (isOther && !ends)
    return !isOther
  })
}

/** What the threads say last of themselves, each once. */
function tokensOf(events: readonly Recorded[]): number {
  const threads = new Map(eventsOf(events, 'usage').map(({ thread, total }) => [thread, total.total]))
  return [...threads.values()].reduce((sum, tokens) => sum + tokens, 0)
}

function expectTidy(scene: RealScene): void {
  const { place } = scene
  expect(processesOf(place)).toEqual([])
  expect(readdirSync(place.directory).sort()).toEqual(['.codemachine', '.git', 'README.md', 'parts'])
  expect(readdirSync(scene.records()).filter(name => name === 'lock' || name.startsWith('lock.'))).toEqual([])
  for (const file of ['guard.json', 'traces.json']) expect(existsSync(join(scene.records(), file))).toBe(false)
  expect(existsSync(join(place.directory, '.git', 'hooks', 'pre-commit'))).toBe(false)
  const newest = readdirSync(join(place.directory, '.codemachine', 'projects')).length
  expect(JSON.parse(scene.memory('tasks.json', newest))).toMatchObject({ tasks: [{ done: true }] })
  expect(scene.memory('MAIN.md', newest)).toContain('\nfinite_incantatem: true')
}
