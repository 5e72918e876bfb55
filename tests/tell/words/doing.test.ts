import { expect, test } from 'vitest'
import type { SessionEvent } from '../../../src/core/events/events.ts'
import type { Item } from '../../../src/core/events/items.ts'
import type { LiveItem } from '../../../src/core/events/live-board.ts'
import { doing, wordsForRound } from '../../../src/tell/words/doing.ts'
import { liveItem, NOW, npmTest, stateAfter } from '../../doors/screen/header/session.ts'
import { local, moreSamples, sampleEvents, sampleItems, sampleOutcomes } from '../../doors/screen/samples.ts'

const {
  'round-started': started,
  'turn-started': turn,
  'round-ended': ended,
  'stop-asked': stopAsked,
  'winding-down': windingDown,
  'gate-started': gate,
  'decision-asked': asked,
  waiting,
  paused,
} = sampleEvents

/** What is said of a session in which this has happened, at 22:45. */
function said(events: readonly SessionEvent[], live: readonly LiveItem[] | null = [], now = NOW): string {
  const { words, time, next } = doing(stateAfter(events), live, now)
  return `${time === null ? words : `${words} ${time}`}${next === null ? '' : `; ${next}`}`
}

const running = (item: Partial<Item> & Pick<Item, 'kind'>, ms = 5000) =>
  liveItem({ ...sampleItems[item.kind], ...item } as Item, NOW - ms)

test('a command that runs for long says when it is ended, and a gate, too', () => {
  const command = { type: 'step-started', step: 3, kind: 'command', name: 'npm test', timeoutMs: 600_000 } as const
  const { timeoutMs: _, ...byAnOlderVersion } = command
  const at = (event: SessionEvent, ms = 0) => said([started, turn, ended, event], [], NOW - ms)
  expect(at(command)).toMatch(/ 3:49 of 10:00$/)
  expect(at(command, 170_000)).toMatch(/ 0:59$/)
  expect(at(byAnOlderVersion)).toMatch(/ 3:49$/)
  const known = {
    ...stateAfter([started, turn, ended, gate]),
    gates: [
      {
        name: gate.gate,
        run: 'npm test',
        timeoutMs: 300_000,
        required: true,
        network: false,
        protect: [],
        everyRound: false,
      },
    ],
  }
  expect(doing(known, [], NOW).time).toBe('3:49 of 5:00')
})

test.each<[string, SessionEvent[]]>([
  ['starting', []],
  ['starting codex', [started]],
  ['thinking', [started, turn]],
  ['between two rounds', [started, turn, ended]],
  ['checking the claim', [started, turn, ended, sampleEvents['done-nominated']]],
  ['running gate tests 3:49', [started, turn, ended, gate]],
  ['running gate tests 3:49; pausing after this gate', [started, turn, ended, gate, paused]],
  ['running gate tests 3:49; stopping after this gate', [started, turn, ended, gate, stopAsked]],
  ['running gate tests 3:50; changing the plan after this gate', [started, ended, gate, sampleEvents['replan-asked']]],
  ['running gate npm test 3:49', [started, turn, ended, { ...gate, gate: 'npm test' }]],
  ['running gate `npm ci; npm test` 3:49', [started, turn, ended, { ...gate, gate: 'npm ci; npm test' }]],
  ['review 1 3:49', [started, turn, ended, sampleEvents['review-started']]],
  ['review 1 3:50; pausing after this review', [started, ended, sampleEvents['review-started'], paused]],
  ['between two rounds', [started, turn, ended, gate, sampleEvents['gate-ended']]],
  ['winding down: review 1 3:50', [started, ended, sampleEvents['review-started'], windingDown]],
  ['waiting until 05:02 (6:17:00 left)', [started, turn, ended, waiting]],
  ['waiting for the provider (6:17:00 left)', [started, turn, ended, { ...waiting, reason: 'provider-away' }]],
  ['asks you (Keep SQLite in 6:08)', [started, turn, ended, asked]],
  ['asks you', [started, turn, ended, { ...asked, default: null }]],
  [
    'asks you',
    [started, turn, ended, { ...asked, until: new Date(Date.parse(asked.until) + 3_600_000).toISOString() }],
  ],
  ['waiting for the network 3:50', [started, turn, moreSamples['no network']]],
  ['thinking; stopping after this round', [started, turn, stopAsked]],
  ['thinking; pausing after this round', [started, turn, paused]],
  ['between two rounds; stopping', [started, turn, ended, stopAsked]],
  ['paused', [started, turn, ended, paused]],
  ['winding down: thinking', [started, turn, windingDown]],
  ['interrupting the round; pausing after this round', [started, turn, sampleEvents['interrupt-asked']]],
  ['interrupting the round; changing the plan after this round', [started, turn, sampleEvents['replan-asked']]],
  ['changing the plan', [started, turn, ended, sampleEvents['replan-asked']]],
])('%s', (words, events) => {
  expect(said(events)).toBe(words)
})

test.each<[string, LiveItem]>([
  ['running npm test 0:42', npmTest],
  ['running a command 0:05', running({ kind: 'command', command: '' })],
  ['running make ⏎ make test 0:05', running({ kind: 'command', command: 'make\nmake test' })],
  ['writing', running({ kind: 'agent-message' })],
  ['thinking', running({ kind: 'reasoning' })],
  ['planning', running({ kind: 'plan' })],
  ['editing 4 files', running({ kind: 'file-change' })],
  ['editing files', running({ kind: 'file-change', changes: [] })],
  ['editing a.ts', running({ kind: 'file-change', changes: sampleItems['file-change'].changes.slice(0, 1) })],
  ['searching the web 0:05', running({ kind: 'web-search' })],
  ['calling docs/find 1:02:05', running({ kind: 'mcp-tool-call' }, 3_725_000)],
  ['calling ask 0:05', running({ kind: 'tool-call' })],
  ['running curl -H … 0:05', running({ kind: 'tool-call', tool: 'run_shell', command: 'curl -H …' })],
  ['working with a sub-agent 0:05', running({ kind: 'sub-agent' })],
  ['waiting for a sub-agent 0:05', running({ kind: 'sub-agent', action: 'wait' })],
  ['looking at an image', running({ kind: 'image' })],
  ['compacting the context 0:05', running({ kind: 'compaction' })],
  ['working', running({ kind: 'unknown' })],
])('while that runs: %s', (words, live) => {
  expect(said([started, turn], [running({ kind: 'reasoning' }), live])).toBe(words)
})

test('what runs is said of a round that winds down, and of one that changes the plan', () => {
  expect(said([started, turn, windingDown], [npmTest])).toBe('winding down: running npm test 0:42')
  expect(said([sampleEvents['replan-asked'], started, turn], [npmTest])).toContain(
    'changing the plan: running npm test',
  )
})

test('where it cannot be seen what goes on in the turn, nothing is said of it', () => {
  expect(said([started, turn], null)).toBe('running')
})

test('a wait counts down each second to its end, and not below; it ends when the time is used up', () => {
  const events = [started, turn, ended, waiting]
  const end = local(21, 5, 2)
  expect(said(events, [], end - 61_000)).toBe('waiting until 05:02 (1:01 left)')
  expect(said(events, [], end - 59_001)).toBe('waiting until 05:02 (1:00 left)')
  expect(said(events, [], end - 59_000)).toBe('waiting until 05:02 (0:59 left)')
  expect(said(events, [], end + 5000)).toBe('waiting until 05:02 (0:00 left)')
  const inAWeek = { ...waiting, until: new Date(local(27, 9, 0)).toISOString() }
  expect(said([started, turn, ended, inAWeek])).toBe('waiting until 06:41 (7:56:07 left)')
})

test.each(sampleOutcomes)('of a session that is over, how it ended: %j', outcome => {
  const { kind, words, time, next } = doing(
    stateAfter([started, { ...sampleEvents['session-ended'], outcome }]),
    [npmTest],
    NOW,
  )
  expect([kind, time, next]).toEqual([outcome.kind === 'done' ? 'done' : 'ended', null, null])
  expect(words).toMatch(
    /^(?:done, (?:proved|gates pass|not verified)|limit reached|needs a person|stalled|interrupted|stopped|skipped)$/,
  )
})

test('the round that runs has its number and the limit; before the first there is none to name', () => {
  const limits = { rounds: 10 }
  expect(wordsForRound({ running: null, roundsUsed: 0, limits })).toBe(null)
  expect(wordsForRound({ running: null, roundsUsed: 2, limits })).toBe('round 2 of 10')
  expect(wordsForRound({ ...stateAfter([started]), limits: { rounds: null } })).toBe('round 1')
})
