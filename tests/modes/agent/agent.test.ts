import { describe, expect, test } from 'vitest'
import type { RoundClass, WindDownLimit } from '../../../src/core/events/outcome.ts'
import { emptyState, type SessionState } from '../../../src/core/state/state.ts'
import { agentKind } from '../../../src/modes/agent/agent.ts'
import { nextOfCall } from '../../../src/modes/agent/effects.ts'

const THREAD = { agent: 'backend-dev', developerInstructions: 'Work.', model: null, effort: null }
const call = nextOfCall(THREAD, 'User Request:\nDo it')

/** A call whose round has ended so; null: none has. */
function played(end: RoundClass | null, more: { counts?: boolean; stoppedFor?: WindDownLimit } = {}): SessionState {
  const { counts = true, stoppedFor = null } = more
  const last = {
    round: 1,
    outcome: { class: end ?? 'worked', message: 'in its own words' },
    counts,
    durationMs: 1,
    tokens: null,
    treeBefore: '',
    treeAfter: '',
    changed: [],
    changedCount: 0,
    part: 'task',
    isReplan: false,
  }
  return { ...emptyState('20261120_1'), kind: agentKind, work: { stoppedFor }, last: end === null ? null : last }
}

const next = (session: SessionState) =>
  call.next(session, { main: MAIN, tasks: [], problems: [], fingerprint: '', texts: { main: '', tasks: '' } })
const MAIN = { status: '', finiteIncantatem: false, shortTitle: null, open: [] }

const ROUND = { kind: 'round', round: { thread: THREAD, input: 'User Request:\nDo it', part: 'task', tellsGoal: true } }

describe('a call of an agent', () => {
  test('is one round, which makes no claim', () => {
    expect(next(played(null))).toEqual(ROUND)
    expect(agentKind.parts.task).toMatchObject({ claims: false, delegates: false })
  })

  test('is tried again as long as nothing was used up, or a limit broke it off, which the runner finds', () => {
    expect(next(played('crashed', { counts: false }))).toEqual(ROUND)
    expect(next(played('interrupted'))).toEqual(ROUND)
  })

  test('has its answer once the round has worked', () => {
    expect(next(played('worked'))).toEqual({ kind: 'end', outcome: { kind: 'answered' } })
  })

  test.each(['refused', 'context-full', 'silent'] as const)('needs a person where the round was %s', end => {
    const outcome = { kind: 'needs-person', reason: 'in its own words', hint: null }
    expect(next(played(end))).toEqual({ kind: 'end', outcome })
  })

  test('that came to a safe stop at a limit has no answer', () => {
    expect(next(played('worked', { stoppedFor: 'time' }))).toEqual({
      kind: 'end',
      outcome: { kind: 'limit', limit: 'time' },
    })
    expect(next(played('worked', { stoppedFor: 'usage' }))).toMatchObject({ outcome: { kind: 'needs-person' } })
  })

  test('knows why the round had to stop, until another one begins', () => {
    const session = played(null)
    const windingDown = { type: 'winding-down', round: 1, limit: 'tokens', graceMs: 1 } as const
    const stopped = agentKind.fold({ stoppedFor: null }, windingDown, session)
    expect(stopped).toEqual({ stoppedFor: 'tokens' })
    const started = { type: 'round-started', round: 1, agent: 'qa-engineer', engine: 'codex', codex: '1' } as const
    expect(agentKind.fold(stopped, { ...started, model: null, input: '' }, session)).toEqual({
      stoppedFor: null,
    })
  })
})
