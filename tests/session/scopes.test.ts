import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { TemplateError } from '../../src/base/errors.ts'
import type { Recorded } from '../../src/core/events/events.ts'
import type { Gate, GateResult } from '../../src/core/events/outcome.ts'
import type { AgentRoster } from '../../src/core/shapes/agent.ts'
import type { MemorySnapshot } from '../../src/core/shapes/memory.ts'
import { fold } from '../../src/core/state/fold.ts'
import { withoutScope } from '../../src/core/state/scope.ts'
import { emptyState, type SessionState } from '../../src/core/state/state.ts'
import { redactorOf } from '../../src/secrets/redactor.ts'
import {
  CLAIMED,
  ofType,
  type Play,
  type PlayOptions,
  playSession,
  type Ran,
  UNCLAIMED,
} from '../support/played-session.ts'
import { promise } from '../support/promise.ts'
import { openScoped, type ScopedOptions, type ScopedWork, scopedTemplate } from '../support/scoped-template.ts'
import { created, ended, recorded, SESSION, started, worked } from '../support/session-events.ts'

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'codemachine-scopes-'))
})
afterEach(() => rm(folder, { recursive: true, force: true, maxRetries: 10 }))

const goal = {
  name: 'a',
  displayName: 'A',
  description: 'works',
  promptPath: '',
  model: null,
  modelReasoningEffort: null,
}
const agents: AgentRoster = { main: [], sub: [], goal: { ...goal, enabled: true } }
const scopeFolder = (name: string) => ({ main: `steps/${name}/MAIN.md`, tasks: `steps/${name}/tasks.json`, kb: 'kb' })
const works: Play = () => worked

/** The gate of the session itself. */
const OWN: Gate = {
  name: 'own',
  run: 'npm run own',
  timeoutMs: 1_000,
  required: true,
  network: false,
  protect: ['tests/**'],
  everyRound: false,
}
const FAILED: Partial<GateResult> = { status: 'failed', exitCode: 1, output: 'no' }

interface ScopedPlay extends Partial<PlayOptions> {
  template?: never
}

async function play(options: ScopedOptions, more: ScopedPlay = {}, plays: readonly Play[] = [works]): Promise<Ran> {
  const kind = scopedTemplate(options)
  return await playSession(plays, {
    folder,
    limits: { rounds: 20, timeMs: null, tokens: null },
    ...more,
    template: openScoped({ agents, scopeFolder }, options),
    templates: new Map([[kind.name, kind]]),
    begun: { template: 'scoped', gates: [OWN], ...more.begun },
  })
}

function stateOf(events: readonly Recorded[], options: ScopedOptions = {}): SessionState {
  const kind = scopedTemplate(options)
  return events.reduce((state, event) => fold(state, event, new Map([[kind.name, kind]])), emptyState(SESSION))
}

/** What is claimed from this round on. */
const claimsFrom =
  (first: number) =>
  (rounds: number): MemorySnapshot =>
    rounds >= first ? CLAIMED : UNCLAIMED

const PROOF = new Set(['scope-entered', 'scope-left', 'done-nominated', 'done-refused', 'done-accepted', 'gate-ended'])
/** The events of the proofs, with what they are of. */
function proofIn(events: readonly Recorded[]): string[] {
  return events
    .filter(({ type, ...rest }) => PROOF.has(type) && !('when' in rest && rest.when === 'before'))
    .map(event => {
      const of = 'scope' in event ? ` of ${event.scope}` : 'name' in event ? ` ${event.name}` : ''
      const how = event.type === 'gate-ended' ? ` ${event.gate} ${event.status}` : ''
      return `${event.type}${how}${of}`
    })
}

describe('a claim in a scope', () => {
  promise(
    'D26',
    'A claim in a scope is proved as that of a session is, by the gates of the scope, and ends the scope and not the session; nothing of it counts as done of the session, after any event',
  )
  test('is proved by the gates of the scope, and ends it and not the session', async () => {
    const ran = await play({ scopes: ['plan', 'fix'] }, { memory: claimsFrom(1) })
    expect(ran.outcome).toEqual({ kind: 'done', verified: true })
    expect(proofIn(ran.events)).toEqual([
      'scope-entered plan',
      'done-nominated of plan',
      'gate-ended check passed of plan',
      'done-accepted of plan',
      'scope-left plan',
      'scope-entered fix',
      'done-nominated of fix',
      'gate-ended check passed of fix',
      'done-accepted of fix',
      'scope-left fix',
      'done-nominated',
      'gate-ended own passed',
      'done-accepted',
    ])
    expect(ran.inputs).toEqual(['Go on with plan.', 'Go on with fix.'])
    const { claim, scope } = stateOf(ran.events)
    expect([claim.state, scope]).toEqual(['accepted', null])
  })

  test('that is refused is told to its next round, and not to a round of the next scope', async () => {
    const gate = ({ name }: Gate) => (name === 'check' ? FAILED : {})
    const ran = await play({ scopes: ['fix', 'next'], mostRounds: 2 }, { memory: claimsFrom(1), gate })
    expect(ran.inputs[1]).toContain('codemachine did not accept the claim that the work is done')
    expect(ran.inputs[2]).toBe('Go on with next.')
    expect(ran.outcome).toMatchObject({ kind: 'needs-person', reason: 'It has had 2 rounds.' })
    expect(ofType(ran.events, 'scope-left').map(({ outcome, step }) => [outcome, step])).toEqual([
      ['given-up', 1],
      ['given-up', 2],
    ])
  })

  test('leaves what a person said to whatever round comes next', async () => {
    const ran = await play(
      { scopes: ['fix', 'next'] },
      {
        memory: claimsFrom(1),
        takesSteering: () => false,
        onEvent: ({ type }, { runner, events }) => {
          if (type === 'gate-ended' && ofType(events, 'steered').length === 0) void runner.steer('Mind the docs.')
        },
      },
    )
    expect(ran.outcome.kind).toBe('done')
    expect(ran.inputs.filter(input => input.includes('A person says: Mind the docs.'))).toHaveLength(1)
  })

  test('by a template that says so itself is a bug of it, and so are its other ways out of order', async () => {
    const inScope = (session: SessionState) => session.scope !== null
    const round = (name: string) => ({
      kind: 'round' as const,
      round: {
        thread: { agent: 'a', developerInstructions: '', model: null, effort: null },
        input: 'x',
        part: 'work',
        scope: { name, goal: 'g', gates: [] },
      },
    })
    const cases: [ScopedOptions['next'], RegExp][] = [
      [(session, usual) => (inScope(session) ? { kind: 'claim' } : usual()), /claims its goal in the scope "fix"/],
      [(session, usual) => (inScope(session) ? DONE : usual()), /ends the session as done, and no claim/],
      [() => ({ kind: 'leave-scope', why: 'x' }), /leaves a scope, and is in none/],
      [(session, usual) => (inScope(session) ? round('other') : usual()), /asks for a round in "other"/],
      [
        (session, usual) =>
          inScope(session) ? { ...round(''), round: { ...round('').round, scope: undefined as never } } : usual(),
        /a round outside of it/,
      ],
      [() => round('../up'), /"\.\.\/up" is no name/],
      [() => round('a.b'), /"a\.b" is no name/],
      [() => round(`${'a'.repeat(61)}`), /is no name/],
    ]
    for (const [next, problem] of cases) {
      const failed = await play({ ...(next === undefined ? {} : { next }) }).catch((error: unknown) => error)
      expect(failed).toBeInstanceOf(TemplateError)
      expect(failed).toMatchObject({ message: expect.stringMatching(problem) })
    }
  })
})

describe('what is of the session itself', () => {
  /** A session in two scopes, of which the first is refused once, and given up, and the second done. */
  const options: ScopedOptions = { scopes: ['fix', 'next'], again: true, mostRounds: 2 }
  const memory = claimsFrom(2)
  const gate = ({ name }: Gate, runs: number) => (name === 'check' && runs < 3 ? FAILED : {})

  promise('D26')
  test('comes back as it was when a scope is left, after every event, and never counts as done for what a scope did', async () => {
    const { events } = await play(options, { memory, gate })
    expect(proofIn(events).filter(each => each.startsWith('scope') || each.startsWith('done-accepted'))).toEqual([
      'scope-entered fix',
      'scope-left fix',
      'scope-entered fix',
      'done-accepted of fix',
      'scope-left fix',
      'scope-entered next',
      'done-accepted of next',
      'scope-left next',
      'done-accepted',
    ])
    const whole = events.findIndex(event => event.type === 'done-accepted' && event.scope === undefined)
    const first = events.findIndex(({ type }) => type === 'scope-entered')
    const then = proofOf(stateOf(events.slice(0, first), options))
    for (let end = 1; end <= events.length; end += 1) {
      const prefix = events.slice(0, end)
      const after = `after event ${end}, ${prefix.at(-1)?.type}`
      const state = stateOf(prefix, options)
      // It is in a scope from its beginning to its end, and nowhere else.
      const [entered, left] = [ofType(prefix, 'scope-entered'), ofType(prefix, 'scope-left')]
      const name = entered.length === left.length ? null : entered.at(-1)?.name
      expect([state.scope?.name ?? null, state.gates.map(gate => gate.name)], after).toEqual([
        name,
        [name === null ? 'own' : 'check'],
      ])
      expect(withoutScope(state).gates, after).toEqual([OWN])
      if (end <= whole) expect([state.claim.state, withoutScope(state).claim.state], after).not.toContain('accepted')
      // Until it claims its own goal, nothing has been proved of it.
      if (end > first && !prefix.some(isOfClaimOfSession)) expect(proofOf(state), after).toEqual(then)
    }
  })

  promise('D27', 'Killed at any event of a scope, a session goes on to the same end')
  test('is done after a kill at any event, with each scope done once', async () => {
    const { events } = await play(options, { memory, gate })
    for (let end = 1; end < events.length - 1; end += 1) {
      const journal = events.slice(0, end)
      const ran = await play(options, { journal, memory: () => CLAIMED })
      const last = (journal.at(-1) as Recorded).type
      expect(ran.outcome, `cut off after ${last} (${end})`).toEqual({ kind: 'done', verified: true })
      const all = [...journal, ...ran.events]
      const left = ofType(all, 'scope-left').filter(({ outcome }) => outcome === 'done')
      expect(
        left.map(({ name }) => name),
        `cut off after ${last} (${end})`,
      ).toEqual(['fix', 'next'])
      const state = stateOf(all, options)
      expect([state.gates, state.scope, (state.work as ScopedWork).left.length]).toEqual([
        [OWN],
        null,
        ofType(all, 'scope-left').length,
      ])
      // What was proved last is the session itself, by its own gate.
      expect(proofIn(ran.events).slice(-2)).toEqual(['gate-ended own passed', 'done-accepted'])
    }
  })

  test('can be given other gates when it goes on in a scope, which keeps its own', async () => {
    const { events } = await play(options, { memory, gate })
    const entered = events.findIndex(({ type }) => type === 'scope-entered')
    const other = { ...OWN, name: 'other' }
    const ran = await play(
      { scopes: ['fix'] },
      { journal: events.slice(0, entered + 1), resumed: { gates: [other] }, memory: () => CLAIMED },
    )
    expect(ran.outcome).toEqual({ kind: 'done', verified: true })
    const gates = ofType(ran.events, 'gate-ended').map(({ gate: name, scope = null }) => [name, scope])
    expect(gates).toEqual([
      // It is a new one, before the first round of the session.
      ['other', null],
      ['check', 'fix'],
      ['other', null],
    ])
  })

  test('is told of a scope by nothing but its end: a refused claim of the session is told to the session alone', async () => {
    const state = stateOf(
      (await play({ scopes: ['fix'] }, { memory, gate: ({ name }) => (name === 'own' ? FAILED : {}) })).events,
    )
    expect(state.notices.map(({ text }) => text)).toEqual([
      expect.stringMatching(/^The check `own` fails/),
      expect.stringMatching(/^codemachine did not accept the claim that the work is done: The check `own` fails/),
    ])
    expect(state.ended?.outcome.kind).toBe('needs-person')
  })

  promise('D29', "In a scope, too, files that the session's own gates protect are watched")
  test('is looked at in a scope, too: files that its gates protect, and configuration that these run through', async () => {
    let tree = 'a'
    const { events, outcome } = await play(
      { gate: 'make check' },
      {
        memory: claimsFrom(2),
        tree: () => tree,
        protectedChanged: (before, after) => (before === after ? [] : ['tests/a.test.ts']),
        limits: { rounds: 2, timeMs: null, tokens: null },
      },
      [
        () => {
          tree = 'b'
          return worked
        },
        works,
      ],
    )
    expect(ofType(events, 'gate-configuration').map(({ programs }) => programs)).toEqual(['programs'])
    expect(ofType(events, 'scope-entered').map(({ programs }) => programs)).toEqual(['programs'])
    const changed = ofType(events, 'protected-changed').map(({ round, scope = null }) => [round, scope])
    expect(changed).toEqual([
      [1, null],
      [1, 'fix'],
    ])
    const state = stateOf(events, { gate: 'make check' })
    expect(withoutScope(state).protectedChanged).toEqual(['tests/a.test.ts'])
    // The scope is not done before a review, and the reviewer says nothing.
    expect(ofType(events, 'review-started')[0]).toMatchObject({ scope: 'fix', causes: ['protected'] })
    expect(withoutScope(state).reviews.withoutAnswer).toBe(0)
    expect(ofType(events, 'done-accepted')).toEqual([])
    expect(outcome.kind).not.toBe('done')
  })
})

describe('files that the gates of a scope protect', () => {
  /** Weakens a test in the first round of a scope, which is given up after that, and claims done from the second one on. */
  const weakened = async (options: ScopedOptions) => {
    let tree = 'a'
    return await play(
      { gate: 'make check', mostRounds: 1, ...options },
      {
        memory: claimsFrom(2),
        tree: () => tree,
        protectedChanged: (before, after) => (before === after ? [] : ['tests/a.test.ts']),
        begun: { gates: [] },
        limits: { rounds: 4, timeMs: null, tokens: null },
      },
      [
        () => {
          tree = 'b'
          return worked
        },
        works,
      ],
    )
  }

  promise(
    'D31',
    'What a scope changed of the files that its gates protect, and was given up, counts as changed in its next try, in the scopes after it and in the next session',
  )
  test('and that it changed before it was given up are changed files in its next try, too', async () => {
    const { events } = await weakened({ again: true })
    expect(ofType(events, 'scope-entered').map(({ tree, protectFrom = null }) => [tree, protectFrom])).toEqual([
      ['a', null],
      ['b', 'a'],
    ])
    expect(ofType(events, 'review-started')[0]).toMatchObject({ scope: 'fix', causes: ['protected'] })
    expect(ofType(events, 'done-accepted')).toEqual([])
  })

  promise('D31')
  test('and in the scopes after it', async () => {
    const { events, inputs } = await weakened({ scopes: ['fix', 'next'] })
    expect(ofType(events, 'scope-entered').map(({ name, protectFrom = null }) => [name, protectFrom])).toEqual([
      ['fix', null],
      ['next', 'a'],
    ])
    expect(inputs[1]).toContain('tests/a.test.ts (changed)')
    expect(ofType(events, 'review-started')[0]).toMatchObject({ scope: 'next', causes: ['protected'] })
    expect(ofType(events, 'done-accepted')).toEqual([])
  })

  test('are compared with what they were when it was entered, after a kill right then, too', async () => {
    const { events } = await play({ gate: 'make check' }, { memory: claimsFrom(1) })
    const entered = events.findIndex(({ type }) => type === 'scope-entered')
    expect(stateOf(events.slice(0, entered + 1)).gateConfiguration).toMatchObject({ programs: 'programs', count: 0 })
  })
})

describe('a scope', () => {
  test('that gets nowhere is left, and the session goes on', async () => {
    const { events, outcome } = await play({ gate: null }, { policy: { stallRounds: 2 } })
    expect(ofType(events, 'scope-left')).toMatchObject([
      { outcome: 'given-up', why: 'The last 4 rounds of it left everything as it was.' },
    ])
    expect(outcome).toMatchObject({ kind: 'needs-person' })
  })

  test('is still open at a limit, and gone on with', async () => {
    const limits = { rounds: 2, timeMs: null, tokens: null }
    const { events, outcome } = await play({}, { limits })
    expect(outcome).toEqual({ kind: 'limit', limit: 'rounds' })
    expect(stateOf(events).scope).toMatchObject({ name: 'fix', rounds: 2 })
    // How the whole stands says its own gate.
    expect(ofType(events, 'gate-ended').map(({ gate, when, scope = null }) => [gate, when, scope])).toEqual([
      ['own', 'before', null],
      ['own', 'limit', null],
    ])
    const ran = await play(
      {},
      { journal: events, resumed: { limits: { ...limits, rounds: 9 } }, memory: () => CLAIMED },
    )
    expect(ran.outcome).toEqual({ kind: 'done', verified: true })
    expect(ofType(ran.events, 'scope-entered')).toEqual([])
  })

  test('without gates is done unverified, and says nothing of the session', async () => {
    const { events, outcome } = await play({ gate: null }, { memory: claimsFrom(1) })
    expect(ofType(events, 'done-accepted').map(({ verified, scope = null }) => [verified, scope])).toEqual([
      [false, 'fix'],
      [true, null],
    ])
    expect(outcome).toEqual({ kind: 'done', verified: true })
  })

  test('in which a round was replayed is never done', async () => {
    const { events, outcome } = await play({}, { memory: claimsFrom(1), replays: true })
    expect(ofType(events, 'scope-left')).toMatchObject([
      { outcome: 'given-up', why: expect.stringContaining('replayed') },
    ])
    expect(ofType(events, 'done-accepted')).toEqual([])
    expect(outcome.kind).toBe('needs-person')
  })

  test('is done by real rounds of a session in which another round was replayed, which itself is not', async () => {
    const kind = scopedTemplate()
    const before = recorded([
      { ...created({ rounds: 9 }), template: kind.name, gates: [OWN] },
      { ...started(1), part: 'work', replayed: true },
      ended(1, worked),
    ])
    const { events, outcome } = await play({}, { journal: before, memory: claimsFrom(1) })
    expect(ofType(events, 'scope-left')).toMatchObject([{ outcome: 'done' }])
    expect(outcome).toEqual({ kind: 'replayed' })
  })

  promise('D28', "What agents of a scope write into the session's own files claims nothing")
  test('has its files made before it begins, and what claims done in the files of the session put back before it ends', async () => {
    const seen: string[] = []
    await play(
      {},
      {
        memory: claimsFrom(1),
        onScope: name => void seen.push(name === null ? 'put back' : `made ${name}`),
        append: ({ type }) => void (type.startsWith('scope') || type === 'done-accepted' ? seen.push(type) : null),
      },
    )
    expect(seen).toEqual(['made fix', 'scope-entered', 'put back', 'done-accepted', 'scope-left', 'done-accepted'])
  })

  test('cannot have a gate with a secret in it', async () => {
    const redactor = redactorOf([{ name: 'TOKEN', value: 'hunter2-hunter2' }])
    const failed = await play({ gate: 'curl -H hunter2-hunter2' }, { redactor }).catch((error: unknown) => error)
    expect(failed).toMatchObject({ message: expect.stringContaining('[secret TOKEN]'), exitCode: 2 })
  })
})

/** What was proved of the session itself. */
function proofOf(state: SessionState) {
  const { gates, review, before, gateRuns, gateFailures, flakyGates, reviews, toldNothingDone } = withoutScope(state)
  return { gates, review, before, gateRuns, gateFailures, flakyGates, reviews, toldNothingDone }
}

function isOfClaimOfSession(event: Recorded): boolean {
  return event.type === 'done-nominated' && event.scope === undefined
}

const DONE = { kind: 'end', outcome: { kind: 'done', verified: true } } as const
