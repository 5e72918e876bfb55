import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { SessionEvent } from '../../../src/core/events/events.ts'
import { SHELL_HINTS } from '../../../src/tell/words/names.ts'
import { type Activity, activityOf } from '../../../src/tell/words/outcome.ts'
import type { SessionReport } from '../../../src/tell/words/status.ts'
import { cardInWords, proofReport, statusLines } from '../../../src/tell/words/status.ts'
import { stateAfter } from '../../doors/screen/header/session.ts'
import { hostileText } from '../../doors/screen/hostile-text.ts'
import { local, moreSamples, sampleEvents, sampleOutcomes } from '../../doors/screen/samples.ts'

/** What a status without worktrees says of them. */
const nowhereElse = { worktree: null, elsewhere: [] } as const
const now = local(20, 22, 50)
const iso = (minutes: number) => new Date(now + minutes * 60_000).toISOString()
const ACTIVITIES: Record<Activity, true> = {
  running: true,
  waiting: true,
  deciding: true,
  paused: true,
  'waiting-for-network': true,
  'winding-down': true,
  stopping: true,
}

/** A session of which everything is known, with the text in the place of every text from outside. */
function full(text: string): SessionReport {
  return {
    id: '20261120_1',
    goal: text,
    adopted: { maker: text, id: text, at: '2026-11-20T17:40:00.000Z' },
    isCall: false,
    standing: 'running',
    activity: 'waiting',
    outcome: null,
    round: { round: 3, elapsedMs: 1 },
    roundsUsed: 2,
    limits: { rounds: 20, timeMs: null, tokens: null },
    elapsedMs: 1,
    tokens: 1,
    cost: { amount: 3.2, unpriced: 900 },
    providerTokens: { [text]: 1_200 },
    forecast: { rounds: 3, until: iso(190) },
    provider: text,
    engine: text,
    model: text,
    effort: text,
    last: { at: iso(-1), text },
    waiting: { until: iso(190), since: iso(-1), reason: 'usage-limit', cause: { class: 'window', message: text } },
    pausedAt: iso(-1),
    hold: { until: iso(1), how: 'goes-on' },
    decision: {
      id: 'database',
      title: text,
      body: text,
      choices: [{ id: 'sqlite', label: text }],
      default: 'sqlite',
      since: iso(-1),
      until: iso(9),
    },
    replanAsked: true,
    stopAsked: true,
    offlineSince: iso(-1),
    windingDown: 'time',
    stall: { idleRounds: 3, sameRefusals: 0, remedy: 'another-way' },
    keptAwake: text,
    plan: [{ step: text, status: 'pending' }],
    claim: { state: 'refused', reason: 'tasks-left', detail: text },
    build: {
      plan: 'ready',
      waitsForPerson: true,
      tasks: [{ id: text, name: text, phase: text, done: false, failures: 5, parked: text }],
      agents: [{ instance: text, agent: text, tasks: [text], request: text, since: iso(-1) }],
    },
    work: {
      template: text,
      isKnown: true,
      status: text,
      round: { title: text, lines: [text] },
      board: {
        from: 'template',
        count: 3,
        rows: Array.from({ length: 3 }, () => ({ mark: 'now', id: text, text, who: text, since: iso(-1) })),
      },
    },
    tasks: null,
    checking: { kind: 'gate', gate: text, since: iso(-1) },
    gates: [
      { name: text, run: text, required: false, last: null },
      {
        name: text,
        run: text,
        required: true,
        last: { when: 'claim', round: 2, status: 'failed', exitCode: 1, durationMs: 1 },
      },
    ],
    scope: { name: text, rounds: 2, gates: [{ name: text, run: text, required: true, last: null }] },
    reviews: { answered: 2, agreedTo: null, findings: 3, repeated: 1 },
    contract: { words: text, holding: 1, proved: 0, checkable: 2, sentences: [] },
    savepoint: { round: 2, commit: text },
    questions: 2,
    primaryWindow: null,
    secondaryWindow: null,
    warnings: [text],
  }
}

test('nothing from outside steers the terminal or breaks a line, whatever the session does', () => {
  const activities = [...(Object.keys(ACTIVITIES) as Activity[]), null]
  const outcome = fc.constantFrom(...sampleOutcomes, null)
  fc.assert(
    fc.property(hostileText, fc.constantFrom(...activities), outcome, (text, activity, ended) => {
      const reason =
        ended?.kind === 'needs-person' ? { ...ended, reason: text, hint: { do: 'say' as const, text } } : ended
      const session = { ...full(text), activity, outcome: reason }
      const runner = { pid: 1, host: text, since: iso(-5) }
      for (const line of statusLines(
        { directory: text, runner, session, sessions: 1, queued: 0, ...nowhereElse },
        now,
      )) {
        expect(line).not.toMatch(/[\p{Cc}\u2028\u2029\p{Bidi_Control}]/u)
        expect(line.isWellFormed()).toBe(true)
      }
    }),
  )
})

test('of a call that waits, no command is named that does not reach it', () => {
  const session = { ...full('x'), isCall: true }
  const lines = statusLines({ directory: '/work', runner: null, session, sessions: 1, queued: 0, ...nowhereElse }, now)
  expect(lines.find(line => line.startsWith('  state'))).toContain(
    '; Ctrl+C in the terminal where it was started ends it;',
  )
  expect(lines.join('\n')).not.toContain('codemachine retry')
})

test('where the models of a provider work, it is named, with its share of the tokens', () => {
  const session = { ...full('x'), tokens: 3_400, model: 'qwen3', effort: null, provider: 'local', engine: 'codex' }
  const linesOf = (more: Partial<SessionReport>) =>
    statusLines(
      { directory: '/work', runner: null, session: { ...session, ...more }, sessions: 1, queued: 0, ...nowhereElse },
      now,
    )
  const lines = linesOf({ cost: null, providerTokens: { local: 1_200 } })
  expect(lines).toContain('  model    qwen3 from local')
  expect(lines.find(line => line.startsWith('  so far'))).toMatch(/, 3\.4k tokens, 1\.2k tokens of local$/)
  expect(linesOf({ providerTokens: {}, provider: null })).toContain('  model    qwen3')
  expect(linesOf({ provider: null, engine: 'claude' })).toContain('  model    qwen3 from claude')
})

test('a round that has a name of its own is called so, and not by its number', () => {
  const { work } = full('x')
  const session = { ...full('x'), work: { ...work, round: { title: 'Step 2/4: lint', lines: ['cat a | b'] } } }
  const soFar = (shown: SessionReport) =>
    statusLines({ directory: '/work', runner: null, session: shown, sessions: 1, queued: 0, ...nowhereElse }, now)[3]
  const round = { round: 3, elapsedMs: 9_000 }
  expect(soFar({ ...session, waiting: null, round })).toMatch(/^ {2}so far {3}Step 2\/4: lint for 9 s, /)
  expect(soFar({ ...session, waiting: null, round, work: { ...work, round: null } })).toMatch(/^ {2}so far {3}round 3/)
})

test('what a person is to decide is said, until when, and what is taken then', () => {
  const { decision, ...rest } = full('x')
  if (decision === null) throw new Error('nothing is asked')
  const asks = { ...decision, title: 'Which database?', choices: [{ id: 'sqlite', label: 'Keep SQLite' }] }
  const session = { ...rest, decision: asks, activity: 'deciding', build: null, pausedAt: null } as const
  const status = { directory: '/work', runner: null, sessions: 1, queued: 0, ...nowhereElse }
  const stateOf = (more: Partial<SessionReport>) =>
    statusLines({ ...status, session: { ...session, replanAsked: false, stopAsked: false, ...more } }, now)[2]
  expect(stateOf({})).toBe(
    '  state    you decide: Which database? (since 22:49, until 22:59: Keep SQLite); answer with codemachine decide',
  )
  expect(stateOf({ decision: { ...asks, default: null } })).toContain('(since 22:49, until 22:59); ')
})

test('a wait comes before what else is the case, a pause too', () => {
  const signs = {
    running: null,
    checking: null,
    step: null,
    waiting: { until: 2, since: 1, reason: 'round-failed', cause: { class: 'window', message: null } },
    hold: null,
    decision: null,
    pausedAt: null,
    offlineSince: 1,
    windingDown: 'time',
    stopAsked: true,
  } as const
  expect(activityOf(signs)).toBe('waiting')
  expect(activityOf({ ...signs, pausedAt: 1 })).toBe('waiting')
  expect(activityOf({ ...signs, waiting: null, pausedAt: 1 })).toBe('paused')
  const check = { kind: 'review', review: 1, since: 1, heard: [], configuration: null } as const
  const asked = { ...signs, waiting: null, pausedAt: 1, offlineSince: null, windingDown: null, stopAsked: false }
  expect(activityOf({ ...asked, checking: check }), 'a check is not broken off for a pause').toBe('running')
  expect(activityOf({ ...signs, waiting: null })).toBe('winding-down')
  expect(activityOf({ ...signs, waiting: null, windingDown: null })).toBe('waiting-for-network')
})

/** What is said of a session in which this has happened, at 22:50, line by line by their labels. */
function said(events: readonly SessionEvent[], isRunning = true): Record<string, string> {
  const state = stateAfter(events, moreSamples['with gates'])
  const session: SessionReport = {
    ...full('x'),
    ...proofReport(state, isRunning),
    activity: isRunning ? 'running' : null,
    outcome: state.ended?.outcome ?? null,
    claim: state.claim,
    replanAsked: false,
    pausedAt: null,
    stopAsked: false,
    round: null,
  }
  const lines = statusLines({ directory: '/work', runner: null, session, sessions: 1, queued: 0, ...nowhereElse }, now)
  return Object.fromEntries(lines.slice(1).map(line => [line.slice(2, 9).trim(), line.slice(11)]))
}

describe('the proof of a session', () => {
  const { 'round-ended': ended, 'done-nominated': nominated, 'gate-ended': failed, 'gate-started': gate } = sampleEvents
  const { 'gate passed': passed, 'gate failed before': failedBefore } = moreSamples

  test('is its gates and how they came out last, its reviews, what is kept, and what is asked', () => {
    const first = said([{ ...sampleEvents.savepoint, round: 0 }, failedBefore])
    expect(first).toMatchObject({
      gates: 'tests failed (exit code 1) before round 1, lint not run yet (not required), types not run yet',
      kept: 'the work as it was before round 1 (savepoint fedcba987654); codemachine savepoints',
    })
    expect([first.review, first.asked]).toEqual([undefined, undefined])
    const asked = sampleEvents['question-asked']
    const claimed = [failedBefore, ended, sampleEvents.savepoint, asked, nominated, passed]
    expect(said([...claimed, moreSamples['review found again']])).toMatchObject({
      gates: 'tests passed, lint not run yet (not required), types not run yet',
      review: 'review 1: 2 findings, 1 of them found before (you decide)',
      kept: 'the work as it was after round 1 (savepoint fedcba987654); codemachine savepoints',
      asked: '1 question was asked; codemachine questions shows it',
    })
    expect(said([...claimed, moreSamples['review agreed']]).review).toBe('review 1: agreed')
    // That a claim is refused does not make it forget how the gates came out.
    const refused = { ...sampleEvents['done-refused'], reason: 'gate-failed' as const }
    expect(said([failedBefore, ended, nominated, passed, refused]).gates).toMatch(/^tests passed, /)
    expect(said([failedBefore, ended, { ...failed, when: 'after-round', round: 3 }]).gates).toMatch(
      /^tests failed \(exit code 1\) after round 3, /,
    )
  })

  test('is being made: which gate or review, and for how long', () => {
    expect(said([ended, gate]).state).toBe('running gate tests, for 8 min 51 s now')
    expect(said([ended, sampleEvents['review-started']]).state).toBe('running review 1, for 8 min 51 s now')
    expect(said([ended, gate, failed]).state).toBe('running')
  })

  test('of one that is over is said with its outcome; one that was cut off checks nothing any more', () => {
    const done = { ...sampleEvents['session-ended'], outcome: { kind: 'done', verified: true } } as const
    const proof = [ended, nominated, passed, moreSamples['review agreed'], sampleEvents['done-accepted'], done]
    expect(said(proof, false).state).toBe(
      'done, gates pass: verified by 1 gate, reviewed; your request itself was not checked',
    )
    expect(proofReport(stateAfter([ended, gate]), false).checking).toBeNull()
  })
})

test('a card names the engine at work where it is not codex', () => {
  const factsOn = (engine: string) => cardInWords({ ...full('x'), engine }, now, SHELL_HINTS).facts
  expect(factsOn('claude').at(-1)).toBe('on claude')
  expect(factsOn('codex').join()).not.toContain('on codex')
})
