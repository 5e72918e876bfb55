import { describe, expect, test } from 'vitest'
import type { Recorded } from '../../src/core/events/events.ts'
import { fold } from '../../src/core/state/fold.ts'
import { emptyState, type SessionState } from '../../src/core/state/state.ts'
import { OWN_TEMPLATES } from '../../src/modes/registry.ts'
import { nothingSecret } from '../../src/secrets/redactor.ts'
import type { Session } from '../../src/session/session.ts'
import { askedIn } from '../support/asked.ts'
import { type Cue, forEver, runSession, untilBrokenOff } from '../support/breaking-in.ts'
import { ofType, type Play, type PlayOptions } from '../support/played-session.ts'
import { promise } from '../support/promise.ts'
import { SESSION, worked } from '../support/session-events.ts'
import { openWeave, type WeaveOptions, type WeaveWork, weaveTemplate } from '../support/weave-template.ts'

const templates = new Map([...OWN_TEMPLATES, ['weave', weaveTemplate() as never]])

/** A round that says this. */
const says =
  (text: string): Play =>
  ({ run }) => {
    const item = { kind: 'agent-message', id: 'm', text, phase: 'final-answer' } as const
    run.onEvent({ type: 'item-completed', round: run.round, item })
    return worked
  }
const plans = (plan: string): Play => says(JSON.stringify({ plan }))
const accepts: Cue = { on: 'decision-asked', nth: 'each', say: ['decide accept'] }

const play = async (
  rounds: readonly Play[],
  cues: readonly Cue[],
  { look, planOnly = false, ...options }: Omit<PlayOptions, 'folder'> & Pick<WeaveOptions, 'look' | 'planOnly'> = {},
) =>
  await runSession(rounds, cues, {
    template: openWeave({ planOnly, ...(look && { look }) }),
    templates,
    limits: { rounds: 20 },
    begun: { template: 'weave' },
    ...options,
  })

const stateOf = (events: readonly Recorded[]) =>
  events.reduce((state, event) => fold(state, event, templates), emptyState(SESSION))
const workOf = (events: readonly Recorded[]) => stateOf(events).work as WeaveWork
const inputs = (events: readonly Recorded[]) =>
  ofType(events, 'round-started').map(({ input }) => askedIn(input).split('\n')[0])
const DONE = { kind: 'done', verified: false }

/** That nothing of what was at work when the plan was to be another came to anything but its end. */
function expectNothingHeld(events: readonly Recorded[]): void {
  const types = events.map(({ type }) => type)
  for (const none of ['held', 'paused', 'replanned', 'interrupt-asked']) expect(types).not.toContain(none)
  for (let n = 1; n <= events.length; n++) stateOf(events.slice(0, n))
}

describe('a template that changes its plan itself is told what a person wants, and says what comes', () => {
  promise(
    'C90',
    'A person who wants another plan breaks off whatever goes on, nothing of that counts, and nothing is carried out before the new plan is accepted',
  )
  test('while a round works: that is broken off, and the new plan is shown again', async () => {
    const { outcome, events, replies } = await play(
      [plans('plain'), forEver, plans('striped'), says('woven'), says('Striped.')],
      [accepts, { on: 'round-started', nth: 2, say: ['replan stripes'] }],
    )
    expect(outcome).toEqual(DONE)
    expect(replies[1]).toBe(
      'Round 2 is interrupted. The plan of s is changed now; unless plans are accepted automatically, you see it before anything is carried out.',
    )
    expect(ofType(events, 'round-ended').map(({ outcome }) => outcome.class)).toEqual([
      'worked',
      'interrupted',
      'worked',
      'worked',
      'worked',
    ])
    expect(inputs(events)).toEqual(['Plan it.', 'Weave: plain', 'Plan it so: stripes', 'Weave: striped', 'Sum it up.'])
    expect(ofType(events, 'decision-asked').map(({ body }) => body)).toEqual(['plain', 'striped'])
    expectNothingHeld(events)
  })

  promise('C90')
  test('while a round has just worked: what it has answered is not taken, and it ends as interrupted', async () => {
    const { outcome, events } = await play(
      [plans('plain'), plans('striped'), says('woven'), says('Striped.')],
      [accepts, { on: 'item-completed', nth: 1, afterMs: 0, say: ['replan --go stripes'] }],
    )
    expect(outcome).toEqual(DONE)
    const first = events.findIndex(({ type }) => type === 'replan-asked')
    const next = events.findIndex(({ type }, n) => n > first && type === 'round-started')
    expect(events.slice(first, next).map(({ type }) => type)).not.toContain('answer-given')
    expect(workOf(events).plans).toEqual(['striped'])
    expect(ofType(events, 'round-ended')[0]).toMatchObject({ outcome: { class: 'interrupted' }, counts: true })
    // Nobody was asked about it.
    expect(ofType(events, 'decision-asked')).toEqual([])
  })

  test('while a command runs: it is broken off, and its result is none', async () => {
    const { outcome, events } = await play(
      [plans('plain'), says('woven'), plans('striped'), says('woven'), says('Striped.')],
      [accepts, { on: 'step-started', nth: 7, say: ['replan stripes'] }],
      { command: async (_, signal) => (runs++ === 0 ? await untilBrokenOff(signal) : {}) },
    )
    expect(ofType(events, 'step-started')[6]).toMatchObject({ kind: 'command' })
    expect(ofType(events, 'command-ran').map(({ status }) => status)).toEqual(['broken-off', 'passed'])
    expect(outcome).toEqual(DONE)
    expectNothingHeld(events)
  })
  let runs = 0

  promise('C90')
  test('while a command has just passed: that is told as broken off', async () => {
    let tell: (() => void) | null = null
    const { outcome, events } = await play(
      [plans('plain'), says('woven'), plans('striped'), says('woven'), says('Striped.')],
      [accepts],
      {
        onBegin: ({ runner }) => {
          tell = () => void runner.tell({ type: 'replan-asked', text: 'stripes' })
        },
        command: async () => {
          tell?.()
          tell = null
          return {}
        },
      },
    )
    expect(outcome).toEqual(DONE)
    expect(ofType(events, 'command-ran').map(({ status }) => status)).toEqual(['broken-off', 'passed'])
  })

  test('while it looks at something: the look is left, and done anew', async () => {
    let looks = 0
    const { outcome, events } = await play(
      [plans('striped'), says('woven'), says('Striped.')],
      [accepts, { on: 'step-started', nth: 2, say: ['replan stripes'] }],
      { look: async () => (looks++ === 0 ? await new Promise<never>(() => {}) : { text: 'A loom.' }) },
    )
    expect(outcome).toEqual(DONE)
    expect(ofType(events, 'looked')).toHaveLength(1)
    expect(inputs(events)[0]).toBe('Plan it so: stripes')
    expectNothingHeld(events)
  })

  promise('C90')
  test('while a person is asked to decide: the question is closed, and asked of the new plan', async () => {
    const { outcome, events, codes } = await play(
      [plans('plain'), plans('striped'), says('woven'), says('Striped.')],
      [
        { on: 'decision-asked', nth: 1, say: ['replan stripes', 'decide accept'] },
        { on: 'decision-asked', nth: 2, say: ['decide accept'] },
      ],
    )
    expect(outcome).toEqual(DONE)
    expect(codes).toEqual(['done', 'not-asked', 'done'])
    expect(ofType(events, 'decision-made').map(({ choice }) => choice)).toEqual(['accept'])
    expectNothingHeld(events)
  })

  test('that the plan is to be changed is also an answer to the question, as the template has it', async () => {
    const { events } = await play(
      [plans('plain')],
      [
        { on: 'decision-asked', nth: 1, say: ['decide change stripes'] },
        { on: 'decision-asked', nth: 2, say: ['stop'] },
      ],
    )
    expect(ofType(events, 'decision-made')).toMatchObject([{ choice: 'change', text: 'stripes' }])
    expect(ofType(events, 'replan-asked')).toEqual([])
    expect(stateOf(events).replan).toBeNull()
  })

  test('while it holds: it goes on, for nothing is carried out before the plan is accepted', async () => {
    const { outcome, events } = await play(
      [plans('plain'), forEver, plans('striped'), says('woven'), says('Striped.')],
      [accepts, { on: 'round-started', nth: 2, say: ['interrupt'] }, { on: 'held', say: ['replan stripes'] }],
    )
    expect(outcome).toEqual(DONE)
    expect(ofType(events, 'unpaused')).toHaveLength(1)
    expect(workOf(events).plans).toEqual(['plain', 'striped'])
  })

  promise('C90')
  test('while what it claims is proved: the claim is none any more', async () => {
    const gate = { name: 'g', run: 'g', timeoutMs: 1, required: true, network: false, protect: [], everyRound: false }
    const { outcome, events } = await play(
      [plans('plain'), says('woven'), plans('striped'), says('woven'), says('Striped.')],
      [accepts, { on: 'gate-started', nth: 2, say: ['replan stripes'] }],
      {
        begun: { template: 'weave', gates: [gate] },
        gate: async (_, runs, signal) => (runs === 2 ? await untilBrokenOff(signal) : {}),
      },
    )
    expect(outcome).toEqual({ kind: 'done', verified: true })
    expect(ofType(events, 'done-nominated')).toHaveLength(2)
    expect(ofType(events, 'done-accepted')).toHaveLength(1)
    expect(ofType(events, 'done-refused')).toEqual([])
    expectNothingHeld(events)
  })

  test('while it sums up what was accepted: that is accepted no more', async () => {
    const { outcome, events } = await play(
      [plans('plain'), says('woven'), forEver, plans('striped'), says('woven'), says('Striped.')],
      [accepts, { on: 'round-started', nth: 3, say: ['replan stripes'] }],
    )
    expect(outcome).toEqual(DONE)
    expect(ofType(events, 'done-accepted')).toHaveLength(2)
    expect(inputs(events).slice(2)).toEqual(['Sum it up.', 'Plan it so: stripes', 'Weave: striped', 'Sum it up.'])
  })

  test.each(['round-started', 'replan-asked', 'round-ended'] as const)(
    'killed after %s of it, it goes on with the new plan',
    async type => {
      const rounds = [plans('plain'), forEver, plans('striped'), says('woven'), says('Striped.')]
      const whole = await play(rounds, [accepts, { on: 'round-started', nth: 2, say: ['replan stripes'] }])
      const asked = whole.events.findIndex(event => event.type === 'replan-asked')
      const cut = whole.events.findIndex((event, n) => n >= asked && event.type === type) + 1
      const journal = whole.events.slice(0, cut)
      const resumed = await play([plans('striped'), says('woven'), says('Striped.')], [accepts], { journal })
      expect(resumed.outcome).toEqual(DONE)
      expect(workOf([...journal, ...resumed.events]).told).toEqual(['stripes'])
      expect(inputs([...journal, ...resumed.events])).toContain('Weave: striped')
    },
  )
})

describe('what was accepted, and a free round after it that can write nothing', () => {
  const rounds = [plans('plain'), says('woven'), says('It is woven.')]

  promise('C92', 'What was accepted stays so while it is summed up only if the files are the same afterwards')
  test('stays accepted where the files are the same', async () => {
    const { outcome, events } = await play(rounds, [accepts])
    expect(outcome).toEqual(DONE)
    expect(ofType(events, 'round-started').map(({ keepsClaim }) => keepsClaim)).toEqual([undefined, undefined, true])
    expect(ofType(events, 'done-nominated')).toHaveLength(1)
    expect(stateOf(events).roundsUsed).toBe(2)
  })

  promise('C92')
  test('is claimed anew where they are not', async () => {
    let summaries = 0
    const { outcome, events } = await play([plans('plain'), says('woven'), says('It is woven.')], [accepts], {
      tree: playing => {
        const state = playing?.runner.state
        if (state?.running?.part === 'summary') summaries = Math.max(summaries, 1)
        return summaries === 0 ? 'a' : 'b'
      },
    })
    expect(outcome).toEqual(DONE)
    const [first, second] = ofType(events, 'done-accepted')
    expect([first?.tree, second?.tree]).toEqual(['a', 'b'])
    expect(ofType(events, 'state-entered').map(({ state }) => state)).toContain('claiming')
  })

  test('is claimed anew where the session had ended in it, and proved again where it was killed in it', async () => {
    const whole = await play(rounds, [accepts])
    const begun = whole.events.findIndex(event => event.type === 'round-started' && event.part === 'summary') + 1
    const killed = whole.events.slice(0, begun)
    const again = await play([says('It is woven.')], [accepts], { journal: killed })
    expect(again.outcome).toEqual(DONE)
    expect([ofType(again.events, 'done-nominated').length, ofType(again.events, 'done-accepted').length]).toEqual([
      0, 1,
    ])

    const stopped = await play(
      [plans('plain'), says('woven'), forEver],
      [accepts, { on: 'round-started', nth: 3, say: ['stop --now'] }],
    )
    expect(stopped.outcome).toEqual({ kind: 'interrupted', by: 'stop' })
    const resumed = await play([says('It is woven.')], [accepts], { journal: stopped.events })
    expect(resumed.outcome).toEqual(DONE)
    expect(ofType(resumed.events, 'done-nominated')).toHaveLength(1)
  })

  test('takes what a person says while it works, and is over only after it', async () => {
    const { codes } = await play(
      [plans('plain'), says('woven'), async ({ steered }) => await steered.then(() => worked)],
      [accepts, { on: 'turn-started', nth: 3, say: ['steer Be short.'] }],
    )
    expect(codes).toEqual(['done', 'done'])
  })
})

test('a session may end as planned, and is carried out when it goes on', async () => {
  const planned = await play([plans('plain')], [accepts], { planOnly: true })
  expect(planned.outcome).toEqual({ kind: 'planned' })
  expect(planned.events.at(-1)).toMatchObject({ type: 'session-ended', exitCode: 0 })
  const journal = planned.events
  const resumed = await play([says('woven'), says('It is woven.')], [], { planOnly: true, journal })
  expect(resumed.outcome).toEqual(DONE)
  expect(inputs(resumed.events)).toEqual(['Weave: plain', 'Sum it up.'])
})

describe('in the moment in which', () => {
  const ROUNDS = [plans('plain'), says('woven'), plans('striped'), says('woven'), says('Striped.')]
  /** Plays it with a person who wants another plan as soon as something calls what this is given. */
  async function playAsked(
    rounds: readonly Play[],
    optionsOf: (ask: () => void, state: () => SessionState | null) => Omit<PlayOptions, 'folder'>,
  ) {
    let runner: Session | null = null
    let isAsked = false
    const ask = () => {
      if (isAsked || runner === null) return
      isAsked = true
      runner.tell({ type: 'replan-asked', text: 'stripes' })
      runner.interrupt()
    }
    const ran = await play(rounds, [accepts], {
      onBegin: playing => {
        runner = playing.runner
      },
      ...optionsOf(ask, () => runner?.state ?? null),
    })
    expect(ran.outcome).toMatchObject({ kind: 'done' })
    expect(ofType(ran.events, 'replan-asked')).toHaveLength(1)
    const told = ran.events.findIndex(({ type }) => type === 'replan-asked')
    return { ...ran, after: ran.events.slice(told).map(({ type }) => type) }
  }
  /** What comes before the next plan is made. */
  const untilPlanned = (types: readonly string[]) => types.slice(0, types.indexOf('round-started'))

  test('it is about to claim: nothing is claimed', async () => {
    const { after } = await playAsked(ROUNDS, (ask, state) => ({
      tree: () => {
        if (state()?.step?.kind === 'claim') ask()
        return 'same'
      },
    }))
    expect(untilPlanned(after)).not.toContain('done-nominated')
  })

  test.each(['configuration', 'protectedChanged'] as const)(
    'its claim is looked at (%s): that is not accepted',
    async look => {
      const gate = {
        name: 'g',
        run: 'g',
        timeoutMs: 1,
        required: true,
        network: false,
        protect: ['t'],
        everyRound: false,
      }
      const { after } = await playAsked(ROUNDS, (ask, state) => ({
        begun: { template: 'weave', gates: [gate] },
        [look]: () => {
          const claim = state()?.claim
          if (claim?.state === 'nominated' && claim.results.length > 0) ask()
          return []
        },
      }))
      expect(untilPlanned(after)).not.toContain('done-accepted')
      expect(untilPlanned(after)).not.toContain('done-refused')
    },
  )

  test('what is accepted is kept: it is not accepted', async () => {
    let tree = 0
    const { after } = await playAsked(ROUNDS, (ask, state) => ({
      // Each look finds other files, until it is claimed.
      tree: () => (state()?.claim.state === 'nominated' ? `t${tree}` : `t${++tree}`),
      savepoint: () => {
        if (state()?.claim.state === 'nominated') ask()
        return true
      },
    }))
    expect(untilPlanned(after)).not.toContain('done-accepted')
  })

  test('a person is about to be asked: the question is that of the new plan', async () => {
    const { events } = await playAsked([plans('plain'), ...ROUNDS.slice(2)], (ask, state) => ({
      audience: {
        isForGood: true,
        changed: new AbortController().signal,
        isAttached: async () => {
          if (state()?.workState === 'asking') ask()
          return true
        },
      },
    }))
    expect(ofType(events, 'decision-asked').map(({ body }) => body)).toEqual(['striped'])
  })

  test('an answer is read: it is none', async () => {
    const { after } = await playAsked([plans('plain'), ...ROUNDS.slice(2)], (ask, state) => ({
      redactor: {
        ...nothingSecret,
        line: line => {
          if (line === '{"plan":"plain"}' && state()?.running !== null) ask()
          return line
        },
      },
    }))
    expect(untilPlanned(after)).not.toContain('answer-given')
    expect(untilPlanned(after)).toContain('round-ended')
  })
})
