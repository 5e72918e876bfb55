import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { Clock } from '../../../src/base/clock.ts'
import type { Recorded } from '../../../src/core/events/events.ts'
import type { RoundOutcome } from '../../../src/core/events/outcome.ts'
import { planOf, playFlow, type SaidStep, workAfter } from '../../support/flow-session.ts'
import { ofType, type Play } from '../../support/played-session.ts'
import { worked } from '../../support/session-events.ts'

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'codemachine-beside-'))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

const outputOf = (step: string) => ({ step, part: 'output', field: [] }) as const
const DONE = { kind: 'done', verified: false }
const marks = (events: readonly Recorded[]) => workAfter(events).steps.map(({ mark }) => mark)
const step = (id: string, more: Partial<SaidStep> = {}): SaidStep => ({ id, work: { input: [`Do ${id}.`] }, ...more })

/** Plays turns by the step that they are asked for; each turn says its name, unless `ends` says how it ends. */
function turns(
  ends: Readonly<Record<string, (nth: number, clock: Clock) => RoundOutcome | string | Promise<string>>> = {},
) {
  const began: string[] = []
  const play: Play = async ({ run, clock }) => {
    const id = /Do (\w+)\./.exec(run.input)?.[1] ?? '?'
    began.push(id)
    run.onEvent({ type: 'usage', round: run.round, thread: id, ...USED })
    const end = (await ends[id]?.(began.filter(each => each === id).length, clock)) ?? `${id} is done.`
    if (typeof end !== 'string') return end
    const item = { kind: 'agent-message', id: 'm', text: end, phase: null } as const
    run.onEvent({ type: 'item-completed', round: run.round, item })
    return worked
  }
  return { began, plays: [play] }
}

const COUNTS = { input: 90, cachedInput: 0, output: 10, reasoning: 0, total: 100 }
const USED = { total: COUNTS, last: COUNTS, contextWindow: null }

const FAN = planOf([
  step('a', { needs: [] }),
  step('b', { needs: [] }),
  step('c', { needs: ['a'], work: { input: ['Do c. ', outputOf('b')] } }),
])

test('two steps that need nothing of each other work at the same time, and their results are used after both', async () => {
  const both = Promise.withResolvers<string>()
  let waiting = 0
  const meet = async (name: string) => {
    if (++waiting === 2) both.resolve('')
    await both.promise
    return `${name} met.`
  }
  const { plays, began } = turns({ a: () => meet('a'), b: () => meet('b') })
  const { outcome, events, inputs } = await playFlow(FAN, plays, { folder })
  expect(outcome).toEqual(DONE)
  expect(began).toHaveLength(3)
  expect(inputs.at(-1)).toContain('Do c. b met.')
  expect(ofType(events, 'round-started').map(({ round }) => round)).toEqual([1, 2])
  expect(ofType(events, 'agent-started')).toMatchObject([
    { instance: 'b', agent: 'writer', door: 'template', round: 1 },
  ])
  expect(workAfter(events).steps).toMatchObject([
    { mark: 'done', tokens: 100 },
    { mark: 'done', tokens: 100, output: { head: 'b met.' } },
    { mark: 'done', tokens: 100 },
  ])
})

test('killed after any event, no step that has ended is run again', async () => {
  const whole = await playFlow(FAN, turns().plays, { folder })
  for (let kept = 1; kept < whole.events.length; kept++) {
    await rm(folder, { recursive: true, force: true })
    folder = await mkdtemp(join(tmpdir(), 'codemachine-beside-'))
    const journal: Recorded[] = []
    const append = (event: Recorded) => {
      if (journal.length === kept) throw new Error('killed')
      journal.push(event)
    }
    await expect(playFlow(FAN, turns().plays, { folder, append })).rejects.toThrow('killed')
    const after = `killed after ${journal.at(-1)?.type} (${kept})`
    const again = turns()
    const { outcome, events } = await playFlow(FAN, again.plays, { folder, journal })
    expect(outcome, after).toEqual(DONE)
    expect(marks([...journal, ...events]), after).toEqual(['done', 'done', 'done'])
    const ended = ofType(journal, 'agent-ended').map(({ instance }) => instance)
    const isOwnEnded = ofType(journal, 'round-ended').length > 0
    expect(again.began, after).not.toContain(isOwnEnded ? 'a' : 'none')
    for (const id of ended) expect(again.began, after).not.toContain(id)
  }
})

test('at most as many work as the file says; steps without needs, commands, questions and time limits come alone', async () => {
  const many = ['a', 'b', 'c', 'd', 'e'].map(id => step(id, { needs: [] }))
  const rounds = async (steps: readonly SaidStep[], maxParallel?: number) => {
    const plan = { ...planOf(steps), ...(maxParallel === undefined ? {} : { maxParallel }) }
    const { events, outcome } = await playFlow(plan, turns().plays, { folder })
    expect(outcome).toEqual(DONE)
    const started = ofType(events, 'agent-started')
    return ofType(events, 'round-started').map(({ round }) => 1 + started.filter(each => each.round === round).length)
  }
  expect(await rounds(many)).toEqual([2, 2, 1])
  expect(await rounds(many, 3)).toEqual([3, 2])
  expect(await rounds(many, 1)).toEqual([1, 1, 1, 1, 1])
  expect(await rounds([step('a'), step('b'), step('c')])).toEqual([1, 1, 1])
  const slow = { needs: [], timeoutMs: 60_000 }
  expect(await rounds([step('a', { needs: [] }), { id: 'b', run: 'true', needs: [] }, step('c', slow)])).toEqual([1, 1])
})

test('a step that fails beside another is tried again as often as it says, and steps that need it are left out', async () => {
  const full: RoundOutcome = { class: 'context-full', message: 'The context is full.' }
  const plan = planOf([
    step('a', { needs: [] }),
    step('b', { needs: [], retries: 1 }),
    step('c', { needs: ['b'] }),
    step('d', { needs: ['a'] }),
  ])
  const once = turns({ b: nth => (nth === 1 ? full : 'b is done.') })
  const mended = await playFlow(plan, once.plays, { folder })
  expect(mended.outcome).toEqual(DONE)
  expect(workAfter(mended.events).steps[1]).toMatchObject({ mark: 'done', triedAgain: 1 })
  const always = turns({ b: () => full })
  const { outcome, events } = await playFlow(plan, always.plays, { folder, flow: { continueOnError: true } })
  expect(outcome).toMatchObject({
    kind: 'needs-person',
    reason: 'Step 2/4: b failed (2 times): The context is full.',
  })
  expect(marks(events)).toEqual(['done', 'failed', 'left-out', 'done'])
  const again = turns()
  const resumed = await playFlow(plan, again.plays, { folder, journal: events })
  expect(resumed.outcome).toEqual(DONE)
  expect(again.began).toEqual(['b', 'c'])
})

test('if the step of the round fails first, the one beside it works to its end and stays done', async () => {
  const plan = planOf([step('a', { needs: [] }), step('b', { needs: [] })])
  const later = async (clock: Clock) => {
    await clock.wait(1_000)
    return 'b is done.'
  }
  const failing = turns({ a: () => ({ class: 'refused', message: 'No.' }), b: (_, clock) => later(clock) })
  const first = await playFlow(plan, failing.plays, { folder })
  expect(first.outcome).toMatchObject({ kind: 'needs-person', reason: 'Step 1/2: a failed: No.' })
  const again = turns()
  const second = await playFlow(plan, again.plays, { folder, journal: first.events })
  expect(second.outcome).toEqual(DONE)
  expect(again.began).toEqual(['a'])
})

test('an end that says nothing of the step, as a full usage window, has it asked for again', async () => {
  const plan = planOf([step('a', { needs: [] }), step('b', { needs: [] })])
  const { plays, began } = turns({ b: nth => (nth === 1 ? { class: 'crashed', message: null } : 'b is done.') })
  const { outcome, events } = await playFlow(plan, plays, { folder })
  expect(outcome).toEqual(DONE)
  expect(began.filter(id => id === 'b')).toHaveLength(2)
  expect(workAfter(events).steps[1]).toMatchObject({ mark: 'done', triedAgain: 0 })
})

test('an answer that does not fit is asked for again, and the fitting one counts', async () => {
  const schema = { type: 'object', properties: { ok: { type: 'boolean' } }, required: ['ok'] }
  const work = { input: ['Do b.'], schema }
  const plan = planOf([step('a', { needs: [] }), { id: 'b', needs: [], work }, step('c', { needs: ['a'] })])
  const { plays } = turns({ b: nth => (nth === 1 ? 'no JSON' : '{"ok":true}') })
  const { outcome, events } = await playFlow(plan, plays, { folder })
  expect(outcome).toEqual(DONE)
  expect(ofType(events, 'answer-refused')).toMatchObject([{ name: 'b' }])
  expect(workAfter(events).steps[1]).toMatchObject({ mark: 'done', triedAgain: 0, answer: { name: 'b' } })
})

test('a person who interrupts the round interrupts all of its steps, and no try is lost', async () => {
  const plan = planOf([step('a', { needs: [] }), step('b', { needs: [] })])
  const never = () => new Promise<string>(() => {})
  const held = turns({ a: nth => (nth === 1 ? never() : 'a is done.'), b: nth => (nth === 1 ? never() : 'b is done.') })
  let interrupted = false
  const { outcome, events } = await playFlow(plan, held.plays, {
    folder,
    onEvent: (event, { runner }) => {
      if (event.type !== 'usage' || interrupted || held.began.length < 2) return
      interrupted = true
      runner.interrupt()
    },
  })
  expect(outcome).toEqual(DONE)
  expect(ofType(events, 'agent-ended').map(({ status }) => status)).toEqual(['terminated', 'completed'])
  expect(workAfter(events).steps).toMatchObject([{ triedAgain: 0 }, { triedAgain: 0 }])
})
