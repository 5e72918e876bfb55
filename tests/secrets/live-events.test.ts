import { expect, test } from 'vitest'
import { systemClock } from '../../src/base/clock.ts'
import { isEvent } from '../../src/core/events/checks.ts'
import type { LiveEvent, Recorded, SessionEvent } from '../../src/core/events/events.ts'
import { emptyState } from '../../src/core/state/state.ts'
import { OWN_TEMPLATES } from '../../src/modes/registry.ts'
import { redactorOf } from '../../src/secrets/redactor.ts'
import { SessionLog } from '../../src/session/session-log.ts'
import { sampleEvents } from '../doors/screen/samples.ts'
import { promise } from '../support/promise.ts'

const TOKEN = 'sk-proj-0123456789'
const live = { type: 'text-delta', round: 1, item: 'm', source: 'agent-message' } as const
const prints = { type: 'output-delta', round: 1, item: 'c' } as const
const said = (text: string): SessionEvent => ({
  type: 'item-completed',
  round: 1,
  item: { kind: 'agent-message', id: 'm', text, phase: null },
})

function openLog(values: readonly string[] = [TOKEN]) {
  const shown: LiveEvent[] = []
  const kept: Recorded[] = []
  const order: string[] = []
  const journal = {
    append: (event: Recorded) => void kept.push(event),
    sync: async () => {},
    [Symbol.asyncDispose]: async () => {},
  }
  const view = {
    event: (event: Recorded) => void order.push(event.type),
    live: (event: LiveEvent) => {
      shown.push(event)
      order.push(event.type)
    },
  }
  const log = new SessionLog(emptyState('20261120_1'), {
    journal,
    views: [view],
    templates: OWN_TEMPLATES,
    clock: systemClock,
    redactor: redactorOf(values.map(value => ({ name: 'MY_API_KEY', value }))),
  })
  /** What has been shown of an item. */
  const textOf = (item: string, instance?: string) =>
    shown.flatMap(event => ('text' in event && event.item === item && event.instance === instance ? event.text : []))
  return { log, shown, kept, order, textOf }
}

test('what only passes by on the screen holds no secret either, and is not journaled', () => {
  const { log, shown, kept } = openLog()
  log.live({ ...live, text: 'It is sk-proj-0123456789.' })
  expect(shown).toEqual([{ ...live, text: 'It is [secret MY_API_KEY].' }])
  expect(kept).toEqual([])
})

test('a secret that reads like a word of the journal leaves an event that can be read again, and is taken out everywhere else', () => {
  const { log, kept } = openLog(['nothing-changed', 'another-way'])
  log.emit(sampleEvents.stuck)
  log.emit(said('nothing-changed, so I go another-way'))
  expect(kept.every(event => isEvent({ ...event }))).toBe(true)
  expect(kept).toMatchObject([
    sampleEvents.stuck,
    { item: { text: '[secret MY_API_KEY], so I go [secret MY_API_KEY]' } },
  ])
})

promise('B92')
test('a secret that comes in pieces is shown as one, of each item by itself', () => {
  const { log, textOf } = openLog()
  log.live({ ...prints, text: `one ${TOKEN.slice(0, 9)}` })
  log.live({ ...live, text: TOKEN.slice(0, 3) })
  log.live({ ...prints, instance: 'Scout-1', text: `two ${TOKEN.slice(0, 5)}` })
  log.live({ ...prints, text: TOKEN.slice(9, 12) })
  log.live({ ...prints, text: `${TOKEN.slice(12)}\n` })
  log.live({ ...live, text: 'ip it' })
  log.live({ ...prints, instance: 'Scout-1', text: `${TOKEN.slice(5)}!` })
  expect(textOf('c')).toEqual(['one ', '[secret MY_API_KEY]\n'])
  expect(textOf('c', 'Scout-1')).toEqual(['two ', '[secret MY_API_KEY]!'])
  expect(textOf('m')).toEqual(['sk-ip it'])
})

test('what was held back is shown when its item is complete, before that is', () => {
  const { log, order, textOf } = openLog()
  log.live({ ...live, text: 'It asks' })
  expect(textOf('m')).toEqual(['It ask'])
  log.emit({ ...said('It asks'), instance: 'Scout-1' } as SessionEvent)
  expect(textOf('m')).toEqual(['It ask'])
  log.emit(said('It asks'))
  expect(textOf('m')).toEqual(['It ask', 's'])
  expect(order).toEqual(['text-delta', 'item-completed', 'text-delta', 'item-completed'])
})

test.each<[string, SessionEvent, readonly string[]]>([
  ['codex asks the model anew', { ...sampleEvents.error, willRetry: true }, ['c', 'Scout-1/m']],
  ['the agent ends', { ...sampleEvents['agent-ended'], instance: 'Scout-1' }, ['m', 'c']],
  ['the round ends', sampleEvents['round-ended'], []],
])(
  'what was held back when %s is not shown, and not taken for the beginning of what comes then',
  (_what, event, on) => {
    const { log, textOf } = openLog()
    const items = [live, prints, { ...live, instance: 'Scout-1' }]
    for (const item of items) log.live({ ...item, text: TOKEN.slice(0, -1) })
    log.emit(event)
    for (const item of items) log.live({ ...item, text: '9' })
    const whole = ['[secret MY_API_KEY]']
    expect(textOf('m')).toEqual(on.includes('m') ? whole : ['9'])
    expect(textOf('c')).toEqual(on.includes('c') ? whole : ['9'])
    expect(textOf('m', 'Scout-1')).toEqual(on.includes('Scout-1/m') ? whole : ['9'])
  },
)
