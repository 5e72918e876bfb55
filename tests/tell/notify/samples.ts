import type { Recorded, SessionEvent } from '../../../src/core/events/events.ts'
import { emptyState, type SessionState } from '../../../src/core/state/state.ts'

export const AT = '2026-11-21T01:00:00.000Z'

export const state: SessionState = {
  ...emptyState('20261120_1'),
  goal: 'Port the parser.\nKeep the tests green.',
  directory: '/home/ann/parser',
  host: 'tower',
}

export function recorded<E extends SessionEvent>(event: E): Recorded {
  return { v: 1, at: AT, session: '20261120_1', ...event } as Recorded
}

export const ended = recorded({
  type: 'session-ended',
  outcome: { kind: 'done', verified: true },
  exitCode: 0,
  rounds: 3,
  tokens: 45_210,
  durationMs: 2 * 3600_000 + 5 * 60_000,
})

export const needsPerson = recorded({
  type: 'session-ended',
  outcome: { kind: 'needs-person', reason: 'codex is not logged in.', hint: { do: 'say', text: 'Run codex login.' } },
  exitCode: 4,
  rounds: 0,
  tokens: 0,
  durationMs: 1000,
})

/** A wait of this many minutes. */
export function waiting(minutes: number): Recorded {
  return recorded({
    type: 'waiting',
    round: 2,
    reason: 'round-failed',
    cause: { class: 'window', message: 'usage limit reached' },
    until: new Date(Date.parse(AT) + minutes * 60_000).toISOString(),
  })
}

export const stuck = recorded({
  type: 'stuck',
  round: 5,
  rounds: 3,
  why: 'nothing-changed',
  remedy: 'another-way',
})

export const roundEnded = recorded({
  type: 'round-ended',
  round: 2,
  outcome: { class: 'worked', message: null },
  counts: true,
  durationMs: 192_000,
  tokens: { input: 900, cachedInput: 0, output: 50, reasoning: 0, total: 950 },
  treeBefore: 'a',
  treeAfter: 'b',
  changed: ['x.ts'],
  changedCount: 1,
  memory: 'm',
})
