import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import type { Recorded } from '../../../../src/core/events/events.ts'
import { type ModelRequest, reply, shell } from '../../../../src/demo/model/reply.ts'
import {
  type ChangeScene,
  type ChangeScript,
  openRealChangeScene,
  outputs,
  PROJECT,
  THREE_TASKS,
} from '../../../support/change-scene.ts'
import type { Ended, RunningCodemachine } from '../../../support/codemachine.ts'
import { type KillPoint, killsIn, startWithKills } from '../../../support/kill-points.ts'
import { hurryUntil } from '../../../support/night.ts'
import { says } from '../../../support/rounds.ts'
import { eventsOf } from '../../../support/scene.ts'
import { TestClock } from '../../../support/test-clock.ts'

/** What the models do follows from what they are asked, so that it does not matter how often that is. The first try at the limit is wrong. */
const SCRIPT: ChangeScript = {
  ...THREE_TASKS,
  executor: request => [
    reply(shell(isLookingUp(request) ? 'cat check.sh' : 'echo 9 > limit.txt')),
    outputs(isLookingUp(request) ? { limit: 'It is 10.' } : { written: 'limit.txt' }),
  ],
  fixer: [[reply(shell('echo 10 > limit.txt')), says('It says 10 now.')]],
}

const isLookingUp = ({ userTexts }: ModelRequest) => (userTexts.at(-1) ?? '').startsWith('Task T1 ')

/** Every state that such a change is in, in the order in which it comes into it first. */
export const STATES = [
  'GATHERING_CONTEXT',
  'GENERATING_PLAN',
  'REVIEWING_PLAN.user-review',
  'REVIEWING_PLAN.auto-accepted',
  'EXECUTING_TASKS.decomposition',
  'EXECUTING_TASKS.queue',
  'EXECUTING_TASKS.info-gathering',
  'EXECUTING_TASKS.result',
  'EXECUTING_TASKS.action',
  'EXECUTING_TASKS.verification',
  'EXECUTING_TASKS.fixing',
  'GENERATING_SUMMARY',
  'WAITING_FOR_INPUT',
] as const

/** The SIGKILL as soon as that state is entered, or just before that is journaled. */
export const inState = (state: string, when: 'before' | 'torn' | 'after' = 'after'): KillPoint => ({
  victim: 'codemachine',
  event: 'state-entered',
  state,
  when,
  n: 1,
})

/**
 * Makes a change in which the SIGKILL strikes at each of these points, one after the other, and which is resumed after each;
 * expects that it comes to the end to which it comes undisturbed. `manual`: a person accepts its plan, as often as they are asked.
 */
export async function surviveChange(points: readonly KillPoint[], { manual = false } = {}): Promise<void> {
  await using scene = await openRealChangeScene(SCRIPT, { files: PROJECT })
  const start = async (...args: string[]): Promise<Ended> => {
    const line = [...args, '--json', '--no-keep-awake']
    await using run = startWithKills(scene.place, line, points)
    if (manual) await acceptIn(scene, run)
    return await run.ended
  }
  const how = manual ? [] : ['--auto']
  const begin = ['change', ...how, '--verify', 'sh check.sh', 'write the limit']
  let ended = await start(...begin)
  while (ended.signal === 'SIGKILL' && !hasEnded(scene)) ended = await start(...(hasBegun(scene) ? ['resume'] : begin))
  if (ended.signal === null) expect(ended.exitCode, ended.stderr).toBe(0)
  expect(killsIn(scene.place)).toHaveLength(points.length)
  expectWhole(scene)
}

/** Accepts the plan that a run asks about, if it comes to that; it may be killed before, and in the middle of the answer. */
async function acceptIn(scene: ChangeScene, run: RunningCodemachine): Promise<void> {
  const isAsked = await run.event('decision-asked').then(
    () => true,
    () => false,
  )
  if (!isAsked) return
  const clock = new TestClock()
  const answer = scene.startInProcess(['plan', 'accept'], { clock })
  await Promise.race([answer.ended, run.ended])
  // Whoever asks a run that was killed waits for its reply a while.
  await hurryUntil(clock, answer.ended)
}

function journalOf({ place }: ChangeScene): Recorded[] {
  const state = join(place.home, '.codemachine', 'state')
  const [folder = 'none'] = existsSync(state) ? readdirSync(state) : []
  const sessions = join(state, folder, 'sessions')
  const [session = 'none', ...others] = existsSync(sessions) ? readdirSync(sessions) : []
  expect(others).toEqual([])
  const path = join(sessions, session, 'journal.ndjson')
  if (!existsSync(path)) return []
  const lines = readFileSync(path, 'utf8').split('\n')
  return lines.flatMap(line => {
    try {
      const value = JSON.parse(line)
      return 'type' in value ? [value] : []
    } catch {
      // It was torn.
      return []
    }
  })
}

const hasBegun = (scene: ChangeScene) => journalOf(scene).length > 0
const hasEnded = (scene: ChangeScene) => journalOf(scene).at(-1)?.type === 'session-ended'

function expectWhole(scene: ChangeScene): void {
  const events = journalOf(scene)
  expect(eventsOf(events, 'session-ended')).toMatchObject([{ outcome: { kind: 'done' } }])
  expect(eventsOf(events, 'done-accepted').at(-1)).toMatchObject({ verified: true })
  // Each state follows the one before it, whatever came in between, and none is entered twice in a row for a kill.
  const entered = eventsOf(events, 'state-entered')
  expect(entered.map(({ from }) => from)).toEqual([
    'WAITING_FOR_INPUT',
    ...entered.slice(0, -1).map(({ state }) => state),
  ])
  expect(entered.map(({ state }) => state)).toEqual(
    entered.map(({ state }) => state).filter((state, at, all) => all[at - 1] !== state),
  )
  const tasks = JSON.parse(scene.memory('tasks.json')).tasks
  expect(tasks).toMatchObject(['T1', 'T2', 'T3'].map(id => ({ id, done: true, status: 'COMPLETED' })))
  expect(scene.memory('summary.md')).toContain('The limit is 10 now.')
  expect(readFileSync(join(scene.place.directory, 'limit.txt'), 'utf8')).toBe('10\n')
  // What was finished is not done again.
  const worked = eventsOf(events, 'round-ended').filter(({ outcome }) => outcome.class === 'worked')
  expect(worked.map(({ round }) => round)).toEqual([...new Set(worked.map(({ round }) => round))])
  expect(eventsOf(events, 'answer-given').filter(({ name }) => name === 'T2').length).toBeLessThanOrEqual(2)
}
