import { expect, test } from 'vitest'
import type { SessionOutcome } from '../../../src/core/events/outcome.ts'
import { howToGoOn } from '../../../src/tell/words/commands.ts'

const HOUR = 3_600_000

test.each<[SessionOutcome, string | null]>([
  [{ kind: 'done', verified: true }, null],
  [{ kind: 'limit', limit: 'rounds' }, 'codemachine resume 20261120_1 --rounds 20'],
  [{ kind: 'limit', limit: 'time' }, 'codemachine resume 20261120_1 --max-time 16h'],
  [{ kind: 'limit', limit: 'tokens' }, 'codemachine resume 20261120_1 --max-tokens 11M'],
  [{ kind: 'needs-person', reason: 'x', hint: null }, 'codemachine resume 20261120_1'],
  [{ kind: 'needs-person', reason: 'x', hint: { do: 'say', text: 'x' } }, 'codemachine resume 20261120_1'],
  [
    { kind: 'needs-person', reason: 'x', hint: { do: 'say', text: 'x', network: true } },
    'codemachine resume 20261120_1 --network',
  ],
  [{ kind: 'stalled', rounds: 9, why: 'nothing-changed' }, 'codemachine resume 20261120_1'],
  [{ kind: 'interrupted', by: 'stop' }, 'codemachine resume 20261120_1'],
  [{ kind: 'interrupted', by: 'skip' }, 'codemachine resume 20261120_1'],
])('after %j: %s', (outcome, command) => {
  const limits = { rounds: 10, timeMs: 8 * HOUR, tokens: 5_000_000 }
  const used = {
    rounds: outcome.kind === 'limit' && outcome.limit === 'rounds' ? 10 : 3,
    timeMs: outcome.kind === 'limit' && outcome.limit === 'time' ? 8 * HOUR : HOUR,
    tokens: outcome.kind === 'limit' && outcome.limit === 'tokens' ? 5_012_345 : 100,
  }
  const stop = { id: '20261120_1', outcome, limits, used, waiting: 0, directory: null }
  expect(howToGoOn(stop)).toBe(command && `To continue: ${command}`)
  expect(howToGoOn(stop, true)).toBe(
    command && `To continue: ${command.replace(/codemachine resume (\S+).*/, '/resume $1')}`,
  )
  expect(howToGoOn({ ...stop, waiting: 2, directory: "it's" })).toBe(
    `${command ? `To continue: ${command}` : 'Stopped. To resume: codemachine'} -C 'it'\\''s'\nThe queue (2) is kept.`,
  )
})

test('what is suggested is more than what was used, whatever ended the session', () => {
  const limits = { rounds: 1, timeMs: HOUR, tokens: 100 }
  const used = { rounds: 1, timeMs: HOUR + 1000, tokens: 11_200 }
  const stop = { id: '20261120_1', outcome: { kind: 'interrupted', by: 'stop' }, limits, used, waiting: 0 } as const
  expect(howToGoOn({ ...stop, directory: null })).toBe(
    'To continue: codemachine resume 20261120_1 --rounds 2 --max-time 2h2s --max-tokens 23k',
  )
})

test('what is planned is carried out by resume', () => {
  const stop = { id: '20261120_1', limits: { rounds: 10, timeMs: null, tokens: null }, waiting: 0, directory: null }
  const used = { rounds: 1, timeMs: HOUR, tokens: 100 }
  expect(howToGoOn({ ...stop, used, outcome: { kind: 'planned' } })).toBe(
    'To carry it out: codemachine resume 20261120_1',
  )
})
