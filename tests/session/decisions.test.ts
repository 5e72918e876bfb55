import { describe, expect, test } from 'vitest'
import type { ThreadSpec } from '../../src/core/engine.ts'
import type { Recorded } from '../../src/core/events/events.ts'
import type { SessionOutcome } from '../../src/core/events/outcome.ts'
import type { Decision } from '../../src/core/rules/decision.ts'
import type { SessionState } from '../../src/core/state/state.ts'
import type { Template } from '../../src/core/template.ts'
import { redactorOf } from '../../src/secrets/redactor.ts'
import { type Cue, HOUR, never, runSession, works } from '../support/breaking-in.ts'
import { ofType, type Play, type PlayOptions } from '../support/played-session.ts'
import { promise } from '../support/promise.ts'
import { foldAll, worked } from '../support/session-events.ts'

const thread: ThreadSpec = { agent: 'a', developerInstructions: 'Do it.', model: null, effort: null }

/** Which way to go, without a default. */
const WAY: Decision = {
  id: 'way',
  title: 'Which way?',
  body: 'There are two.',
  choices: [
    { id: 'left', label: 'Go left' },
    { id: 'right', label: 'Go right', text: 'may' },
    { id: 'other', label: 'Another way', text: 'must' },
  ],
  default: null,
}

/** The same where left is taken if nobody answers. */
const USUAL: Decision = { ...WAY, default: 'left' }

/** A template that asks first, works a round, and ends. */
function asking(decision: Decision): Template {
  return {
    threads: [{ part: null, thread }],
    ahead: () => null,
    next: ({ decided, roundsUsed, replan }: SessionState) => {
      if (replan !== null) return { kind: 'replan', round: { thread, input: replan } }
      if (decided === null) return { kind: 'decide', decision }
      if (roundsUsed === 0) return { kind: 'round', round: { thread, input: `Go ${decided.choice}.` } }
      return { kind: 'end', outcome: { kind: 'stalled', rounds: 1, why: 'nothing-changed' } }
    },
  }
}

const MINUTE = 60_000

async function ask(
  decision: Decision,
  cues: readonly Cue[] = [],
  options: Omit<PlayOptions, 'folder'> = {},
  plays: readonly Play[] = [works],
) {
  return await runSession(plays, cues, { limits: {}, template: asking(decision), ...options })
}

const made = (events: readonly Recorded[]) =>
  ofType(events, 'decision-made').map(({ choice, text, by }) => [choice, text, by])
const asked = (events: readonly Recorded[]) => ofType(events, 'decision-asked')
const waited = ({ at, until }: { at: string; until: string }) => Date.parse(until) - Date.parse(at)

describe('a person decides', () => {
  test('and the session goes on by that; no round runs before, and no thread is kept for it', async () => {
    const { events, live, replies, inputs, prepared, tookMs } = await ask(WAY, [
      { on: 'decision-asked', afterMs: 3 * HOUR + 1000, say: ['decide left'] },
    ])
    expect(tookMs - 3 * HOUR).toBeLessThan(10_000)
    // Nothing happens when the time is over but that it ends, so that nothing is counted down.
    expect(live.filter(({ type }) => type === 'still-waiting')).toEqual([])
    expect(asked(events)).toMatchObject([{ id: 'way', title: 'Which way?', body: 'There are two.', default: null }])
    expect(made(events)).toEqual([['left', null, 'person']])
    expect(replies).toEqual(['s continues with: Go left'])
    expect([inputs, prepared]).toEqual([['Go left.'], 1])
  })

  test('with a text where one may or must be said, without the secrets in it', async () => {
    const redactor = redactorOf([{ name: 'API_KEY', value: 'sk-very-secret-key' }])
    const cue = { on: 'decision-asked', say: ['decide other by sk-very-secret-key'] } as const
    const { events } = await ask(WAY, [cue], { redactor })
    expect(made(events)).toEqual([['other', 'by [secret API_KEY]', 'person']])
    expect(foldAll(events).personSaid).toEqual(['by [secret API_KEY]'])
    const alone = await ask(WAY, [{ on: 'decision-asked', say: ['decide right'] }])
    expect(made(alone.events)).toEqual([['right', null, 'person']])
  })

  promise('W10')
  test('once: of two answers the first counts, and the second is refused in a sentence', async () => {
    const { events, codes, replies } = await ask(WAY, [{ on: 'decision-asked', say: ['decide left', 'decide right'] }])
    expect(made(events)).toEqual([['left', null, 'person']])
    expect(codes).toEqual(['done', 'not-asked'])
    expect(replies[1]).toBe('"way" of 20261120_1 was already decided: left.')
  })

  test.each([
    ['decide up', 'unknown-choice', '20261120_1 offers no choice "up"; use one of left, right, other.'],
    ['decide other', 'text-missing', '"other" needs a text: describe what you want.'],
    ['decide left now', 'text-not-wanted', '"left" takes no text; leave it out.'],
  ] as const)('and what cannot be an answer is refused: %s', async (said, code, message) => {
    const { events, codes, replies } = await ask(WAY, [{ on: 'decision-asked', say: [said, 'decide left'] }])
    expect([codes[0], replies[0]]).toEqual([code, message])
    expect(made(events)).toEqual([['left', null, 'person']])
  })

  test('and is not asked again when the session goes on', async () => {
    const { events } = await ask(WAY, [{ on: 'decision-asked', say: ['decide left'] }])
    const cut = events.findIndex(({ type }) => type === 'decision-made') + 1
    const answered = foldAll(events.slice(0, cut))
    expect(answered).toMatchObject({ decision: null, decided: { id: 'way', choice: 'left', label: 'Go left' } })
  })
})

describe('where nobody answers', () => {
  promise('W10', 'A decision is asked once, answered once, and its default is taken after its time')
  test('the default is taken after its time, counted down once a minute', async () => {
    const { events, live, inputs } = await ask(USUAL)
    expect(asked(events).map(waited)).toEqual([10 * MINUTE])
    expect(made(events)).toEqual([['left', null, 'default']])
    expect(live.filter(({ type }) => type === 'still-waiting')).toHaveLength(10)
    expect(inputs).toEqual(['Go left.'])
  })

  test('the default is taken after --max-wait where that is shorter', async () => {
    const { events } = await ask(USUAL, [], { policy: { maxWaitMs: 5 * MINUTE } })
    expect(asked(events).map(waited)).toEqual([5 * MINUTE])
  })

  test.each([
    ['set back', -HOUR, 10 * MINUTE],
    ['set forward, or the machine has slept', HOUR, MINUTE],
  ])('the default is taken after its time also where the clock was %s', async (_, byMs, afterMs) => {
    const { events, tookMs } = await ask(USUAL, [], {
      onEvent: ({ type }, { clock }) => {
        if (type === 'decision-asked') void clock.wait(1000).then(() => clock.set(byMs))
      },
    })
    expect(made(events)).toEqual([['left', null, 'default']])
    expect(Math.abs(tookMs - afterMs)).toBeLessThan(10_000)
  })

  test('nor can be asked, the default is taken at once', async () => {
    const { events, tookMs } = await ask(USUAL, [], { canAsk: false })
    expect(asked(events).map(waited)).toEqual([0])
    expect(made(events)).toEqual([['left', null, 'default']])
    expect(tookMs).toBeLessThan(MINUTE)
  })

  test('and there is no default, it needs a person after --max-wait; other sessions can go on', async () => {
    const { events, outcome } = await ask(WAY, [], { canAsk: false, policy: { maxWaitMs: 2 * HOUR } }, [never])
    expect(outcome).toEqual({
      kind: 'needs-person',
      reason: 'Nobody decided: Which way?',
      hint: { do: 'decide', session: '20261120_1', title: 'Which way?' },
      goalOnly: true,
    })
    expect(ofType(events, 'session-ended')).toMatchObject([{ exitCode: 4, durationMs: 2 * HOUR }])
    expect(made(events)).toEqual([])
  })

  promise('W33')
  test('its time counts: with --max-time used up it needs a person, and asks again when it is resumed', async () => {
    const timeMs = HOUR + 1000
    const { events, outcome } = await ask(WAY, [], { limits: { timeMs } }, [never])
    expect(outcome).toMatchObject({
      kind: 'needs-person',
      reason: 'Nobody decided: Which way?',
      hint: { do: 'decide', outOfTime: true },
      goalOnly: true,
    })
    // A person is told when it ends, and not of the whole day that --max-wait would allow.
    expect([asked(events).map(waited), ofType(events, 'hold-until')]).toEqual([[timeMs], []])
    expect(foldAll(events)).toMatchObject({ decision: { id: 'way' }, ended: { durationMs: timeMs } })
    const again = await ask(WAY, [{ on: 'decision-asked', say: ['decide left'] }], {
      journal: events,
      resumed: { limits: { rounds: null, timeMs: 2 * HOUR, tokens: null } },
    })
    expect([asked(again.events), made(again.events)]).toMatchObject([[{ id: 'way' }], [['left', null, 'person']]])
  })

  promise('W32')
  test('and --max-time is used up before the default is taken, or in the same moment, the session ends by that', async () => {
    for (const timeMs of [MINUTE, 10 * MINUTE]) {
      const { events, outcome } = await ask(USUAL, [], { limits: { timeMs } }, [never])
      expect(outcome).toEqual({ kind: 'limit', limit: 'time' })
      expect(made(events)).toEqual([])
      expect(foldAll(events)).toMatchObject({ ended: { durationMs: timeMs, exitCode: 3 } })
    }
  })

  test('and it was cut off between the question and the answer, it asks again with its whole time', async () => {
    const { events } = await ask(USUAL, [{ on: 'decision-asked', say: ['decide right'] }])
    const journal = events.slice(0, events.findIndex(({ type }) => type === 'decision-asked') + 1)
    expect(foldAll(journal).decision).toMatchObject({ id: 'way' })
    const { events: after } = await ask(USUAL, [], { journal })
    expect(asked(after).map(waited)).toEqual([10 * MINUTE])
    expect(made(after)).toEqual([['left', null, 'default']])
  })
})

describe('while it is asked', () => {
  test('a stop, a skip and a signal end the session', async () => {
    for (const [said, by] of [
      ['stop', 'stop'],
      ['stop --now', 'stop'],
      ['skip', 'skip'],
    ] as const) {
      const { outcome, events, tookMs } = await ask(WAY, [{ on: 'decision-asked', say: [said] }], {}, [never])
      expect([outcome, made(events)]).toEqual([{ kind: 'interrupted', by }, []])
      expect(tookMs).toBeLessThan(10_000)
    }
  })

  test('an answer that comes when the session is about to end is refused', async () => {
    const { codes } = await ask(WAY, [{ on: 'decision-asked', say: ['stop', 'decide left'] }], {}, [never])
    expect(codes).toEqual(['done', 'ending'])
  })

  test('interrupt and unpause say what it waits for, and change nothing', async () => {
    const cue: Cue = { on: 'decision-asked', say: ['interrupt', 'unpause', 'decide left'] }
    const { codes, replies, events } = await ask(WAY, [cue])
    expect(codes).toEqual(['already-paused', 'not-paused', 'done'])
    expect(replies[0]).toContain('codemachine decide')
    expect(replies[1]).toContain('codemachine decide')
    expect(ofType(events, 'held')).toEqual([])
  })

  test('a pause holds what comes after it, unless a person answers: they want it to go on', async () => {
    const answered = await ask(WAY, [{ on: 'decision-asked', say: ['pause', 'decide left'] }])
    expect(ofType(answered.events, 'unpaused')).toHaveLength(1)
    expect(answered.inputs).toEqual(['Go left.'])
    const { events } = await ask(USUAL, [
      { on: 'decision-asked', say: ['pause'] },
      { on: 'held', afterMs: HOUR, say: ['unpause'] },
    ])
    const types = events.map(({ type }) => type)
    expect(types.indexOf('held')).toBeGreaterThan(types.indexOf('decision-made'))
    const { durationMs = 0 } = ofType(events, 'session-ended')[0] ?? {}
    expect(Math.abs(durationMs - 10 * MINUTE - HOUR)).toBeLessThan(MINUTE)
  })

  test('a change of plan comes first; then it is asked again', async () => {
    const { events, inputs } = await ask(
      WAY,
      [
        { on: 'decision-asked', nth: 1, say: ['replan Less of it'] },
        { on: 'decision-asked', nth: 2, say: ['decide left'] },
      ],
      {},
      [works],
    )
    expect(ofType(events, 'replanned')).toHaveLength(1)
    expect(asked(events)).toHaveLength(2)
    expect(inputs).toEqual(['Less of it', 'Go left.'])
  })
})

test.each([
  ['its time is used up', [], { kind: 'limit', limit: 'time' }],
  ['it is to stop', [{ on: 'turn-started', say: ['stop'] }], { kind: 'interrupted', by: 'stop' }],
] satisfies [string, Cue[], SessionOutcome][])(
  'nobody is asked by a session that ends after its round, for %s',
  async (_, cues, ends) => {
    const template: Template = {
      ...asking(WAY),
      next: ({ roundsUsed }) =>
        roundsUsed === 0 ? { kind: 'round', round: { thread, input: 'Begin.' } } : { kind: 'decide', decision: WAY },
    }
    const anHour: Play = async ({ clock }) => {
      await clock.wait(HOUR)
      return worked
    }
    const limits = cues.length === 0 ? { timeMs: HOUR } : {}
    const { outcome, events } = await ask(WAY, cues, { limits, template }, [anHour])
    expect([outcome, asked(events)]).toEqual([ends, []])
  },
)

test.each([
  [{ id: 'Way' }, 'has an id that is not a lower-case word'],
  [{ choices: [] }, 'must have 1 to 20 choices'],
  [{ choices: [...WAY.choices, ...WAY.choices] }, 'has two choices with the same id'],
  [{ default: 'up' }, 'has a default that is not one of its choices'],
  [{ default: 'other' }, 'has a default that needs a text'],
  [
    { choices: [{ id: 'edit', label: 'Edit it', opensFile: true }] },
    'has a choice that opens a file, but names no file',
  ],
] satisfies [Partial<Decision>, string][])(
  'a decision that no template may ask for is a bug: %j',
  async (wrong, words) => {
    await expect(ask({ ...WAY, ...wrong })).rejects.toThrow(words)
  },
)

test('what a template shows is journaled in lines of bounded length', async () => {
  const long = 'x '.repeat(20_000)
  const decision = { ...USUAL, title: long, body: long, choices: [{ id: 'left', label: `a\n${long}` }] }
  const { events } = await ask(decision)
  const [{ title, body, choices } = { title: '', body: '', choices: [] }] = asked(events)
  expect([title.length, choices[0]?.label.length]).toEqual([500, 200])
  expect(body.length).toBeLessThan(16_100)
  expect(choices[0]?.label).toMatch(/^a x/)
})
