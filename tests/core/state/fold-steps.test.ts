import { describe, expect, test } from 'vitest'
import type { SessionEvent } from '../../../src/core/events/events.ts'
import { tokensOfProviders } from '../../../src/core/state/state.ts'
import { sampleEvents } from '../../doors/screen/samples.ts'
import {
  created,
  ended,
  FIRST_AT,
  foldAll,
  refused,
  resumed,
  started,
  turn,
  usage,
  worked,
} from '../../support/session-events.ts'

const begun: SessionEvent = { ...created(), template: 'build', asksPlan: true }
const planned: SessionEvent = { ...sampleEvents['plan-ready'], tasks: [{ id: 'T1', name: 'one', phase: 'Building' }] }
const asked = sampleEvents['decision-asked']
const plan: SessionEvent = { ...asked, id: 'plan' }
const part = (round: number, of: string): SessionEvent => ({ ...started(round), part: of })
const looking: SessionEvent = { type: 'step-started', step: 1, kind: 'look', name: 'size' }
const over: SessionEvent = { ...sampleEvents['session-ended'], outcome: { kind: 'limit', limit: 'time' } }
const [pause, held, unpause]: SessionEvent[] = [{ type: 'paused' }, { type: 'held' }, { type: 'unpaused' }]
const refusal = sampleEvents['answer-refused']

test('a session that goes on is at no step, and asks nothing before its template does', () => {
  expect(foldAll([created(), looking, resumed()]).step).toBeNull()
  expect(foldAll([created(), asked, resumed()]).decision).toBeNull()
  expect(foldAll([created(), asked, over, resumed()]).decision).toBeNull()
})

test('a step that was broken off for a hold is at work no more, and is not counted', () => {
  expect(foldAll([created(), looking, pause, held] as SessionEvent[])).toMatchObject({ step: null, steps: 0 })
})

test('what was accepted is done no more once a command has changed files', () => {
  const claimAfter = (changed: string[]) =>
    foldAll([created(), sampleEvents['done-accepted'], { ...sampleEvents['command-ran'], changed }]).claim.state
  expect([claimAfter([]), claimAfter(['dist/a.js'])]).toEqual(['accepted', 'none'])
})

test('a session of which one round was replayed is one for good, and does not stall', () => {
  const same = { changed: [], changedCount: 0, treeBefore: 'a', treeAfter: 'a' }
  const replayed: SessionEvent = { ...started(1), replayed: true }
  const state = foldAll([created(), replayed, ended(1, worked, same), started(2), ended(2, worked, same)])
  expect([state.replayed, state.stall.idleRounds]).toEqual([true, 0])
})

test('a round for what this version does not know stays known, whatever comes after it', () => {
  const state = foldAll([begun, part(1, 'carving'), ended(1, worked), part(2, 'orchestration')])
  expect(state.unknownPart).toBe('carving')
})

test('the time for which a decision waits is worked on, and that for which a paused session holds after it is not', () => {
  const before = [created(), started(1), pause, ended(1, worked)] as SessionEvent[]
  expect(foldAll(before).heldSince).not.toBeNull()
  expect(foldAll([...before, asked]).heldSince).toBeNull()
  const made = [created(), asked, pause, sampleEvents['decision-made']] as SessionEvent[]
  expect(foldAll(made).heldSince).toBe(FIRST_AT + 3000)
})

describe('the plan of a person who wants to see it', () => {
  const isLetGo = (...events: (SessionEvent | undefined)[]) =>
    foldAll([begun, planned, ...events.filter(event => event !== undefined)]).taskPlan?.isLetGo

  test('is let go on by a round that gives work to agents, and by whoever lets a session go on that an earlier version held', () => {
    expect(isLetGo()).toBe(false)
    expect(isLetGo(part(2, 'team-building'))).toBe(false)
    expect(isLetGo(part(2, 'orchestration'))).toBe(true)
    expect(isLetGo(pause, held, unpause)).toBe(true)
  })

  test('is not let go on by a pause that ends while it is asked for, or after a change of it was', () => {
    expect(isLetGo(pause, held, plan, unpause)).toBe(false)
    const change: SessionEvent = { ...sampleEvents['decision-made'], id: 'plan', choice: 'change', text: null }
    expect(isLetGo(plan, change, pause, held, unpause)).toBe(false)
  })
})

test('a round that was cut off may have changed the plan, unless it only looks', () => {
  const cutOff = (of: string) => foldAll([begun, planned, part(2, of), resumed()]).taskPlan?.isCutOff
  expect([cutOff('orchestration'), cutOff('summary')]).toEqual([true, false])
})

describe('an answer that was refused', () => {
  const twice = [created(), refusal, refusal]
  const refusals = (events: readonly SessionEvent[]) => foldAll(events).refusedAnswers.verdict?.refusals

  test('stays so often refused through a crash, and begins anew once a person has looked at the end of the session', () => {
    expect(refusals([...twice, resumed()])).toBe(2)
    expect(refusals([...twice, over, resumed()])).toBe(0)
  })

  test('is not made good by the answer to a review of the same name', () => {
    const review = sampleEvents['review-started']
    const { refusedAnswers, reviews } = foldAll([...twice, review, refusal, sampleEvents['answer-given']])
    expect([refusedAnswers.verdict?.refusals, reviews.problem]).toEqual([2, null])
  })

  test('is forgotten of a plan once there is one', () => {
    const problem: SessionEvent = { ...refusal, name: 'plan' }
    expect(Object.keys(foldAll([begun, problem]).refusedAnswers)).toEqual(['plan'])
    expect(foldAll([begun, problem, planned]).refusedAnswers).toEqual({})
  })
})

test('the tokens of a review are those of its provider', () => {
  const review: SessionEvent = { ...sampleEvents['review-started'], provider: 'local' }
  expect(tokensOfProviders(foldAll([created(), started(1), ended(1, worked), review, usage(1, 'r', 70)]))).toEqual({
    local: 70,
  })
})

test('the tokens of a provider stay its own when a review ends, and when a round was cut off', () => {
  const review: SessionEvent = { ...sampleEvents['review-started'], provider: 'local' }
  const reviewed = [review, usage(1, 'r', 70), { ...sampleEvents['review-ended'], answer: null }]
  expect(foldAll([created(), ...reviewed, started(1)]).providerTokens).toEqual({ local: 70 })
  const cutOff = [{ ...started(1), provider: 'local' }, turn(1, 'A'), usage(1, 'A', 100), resumed()]
  expect(foldAll([created(), ...cutOff]).providerTokens).toEqual({ local: 100 })
})

test('a claim that was refused before any round counts among the refusals that follow each other', () => {
  const state = foldAll([created(), refused(0, 'x'), started(1), ended(1, worked), refused(1, 'x')])
  expect(state.stall.sameRefusals).toBe(2)
})
