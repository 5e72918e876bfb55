import { expect, test } from 'vitest'
import type { SessionEvent } from '../../../../src/core/events/events.ts'
import type { Key } from '../../../../src/doors/screen/composer/keys.ts'
import { Controls } from '../../../../src/doors/screen/screen/controls.ts'
import type { ScreenHost } from '../../../../src/doors/screen/screen/dialogs.ts'
import { answerDecision, askDecision } from '../../../../src/doors/screen/screen/dialogs.ts'
import { drawScreen } from '../../../../src/doors/screen/screen/frame.ts'
import { SessionView } from '../../../../src/doors/screen/screen/how-it-goes-on.ts'
import { ScreenModel } from '../../../../src/doors/screen/screen/model.ts'
import type { Ask } from '../../../../src/project/library.ts'
import { Keymap } from '../../../../src/project/settings/keys.ts'
import { widthOf } from '../../../../src/tell/words/cells.ts'
import { promise } from '../../../support/promise.ts'
import { created, foldAll, recorded } from '../../../support/session-events.ts'
import { TestClock } from '../../../support/test-clock.ts'
import { keyNamed, PLAIN_THEME } from '../composer/press.ts'
import { sampleEvents } from '../samples.ts'

const VALUE = '/sk_live_51Hx9.verySecret'

const asked: SessionEvent = {
  type: 'decision-asked',
  id: 'secret',
  title: 'Step 2 needs STRIPE_KEY',
  body: 'Which key of Stripe is to be used?',
  choices: [
    { id: 'give', label: 'Type it' },
    { id: 'later', label: 'Later' },
  ],
  default: 'later',
  until: '2090-01-01T00:00:00.000Z',
  secret: { key: 'STRIPE_KEY' },
}

/** A person who is asked for a secret, on a screen of this size. */
async function sit({ isWatching = false, columns = 80, rows = 24, fails = false } = {}) {
  const clock = new TestClock()
  const asks: Ask[] = []
  const stored: { key: string; value: string }[] = []
  const shown: string[] = []
  const remembered: string[] = []
  const failures: unknown[] = []
  const nothing = async () => {}
  const host: ScreenHost = {
    ask: async ask => {
      asks.push(ask)
      return { code: 'done', message: 'done' }
    },
    enqueue: async () => '',
    takeBack: async () => false,
    attend: () => false,
    begin: text => void remembered.push(text),
    command: async (name, rest) => void remembered.push(name, rest),
    editFile: async () => false,
    edit: async () => null,
    showPlanChange: async () => {},
    happened: () => {},
    answer: async () => '',
    openLogs: async () => void shown.push('logs'),
    openPalette: async () => {},
    openDiff: async () => {},
    suspend: nothing,
    leave: () => void shown.push('leave'),
    leaveNow: () => {},
    keepEnter: async () => {},
    remember: text => void remembered.push(text),
    warningsOfSecret: value => (value.length < 8 ? ['It has fewer than 8 characters.'] : []),
    storeSecret: async (key, value) => {
      if (fails) throw new Error('There is no room on the disk.')
      stored.push({ key, value })
      return null
    },
  }
  const model = new ScreenModel({
    theme: PLAIN_THEME,
    clock,
    motion: 'reduced',
    keymap: new Keymap(undefined, 'queue'),
    isWatching,
    size: () => ({ columns, rows }),
    redact: each => each,
    searchFiles: async () => [],
    onChange: () => {},
  })
  model.composer.setCommands([{ name: 'stop', description: '', note: null }])
  const fail = (error: unknown) => void failures.push(error)
  const controls = new Controls({ model, host, clock, redraw: () => {}, openOutput: () => {}, onFailure: fail })
  const view = new SessionView({ model, host, clock, onFailure: fail })
  const events: SessionEvent[] = []
  const happens = (...more: SessionEvent[]) => {
    model.showsSession = true
    for (const event of more) {
      events.push(event)
      const last = recorded(events).at(-1)
      if (last) model.pane.event(last, foldAll(events))
    }
  }
  /** As it comes to a whole screen. */
  const comes = (event: SessionEvent) => {
    events.push(event)
    const last = recorded(events).at(-1)
    if (last) view.event(last, foldAll(events))
  }
  const settle = async () => {
    for (let turn = 0; turn < 20; turn += 1) await Promise.resolve()
  }
  // Two looks of the same moment show the same times.
  const now = clock.now()
  const look = () => {
    const { lines, caret } = drawScreen(model, now)
    for (const line of lines) expect(widthOf(line)).toBeLessThanOrEqual(columns)
    expect(lines.length).toBeLessThan(rows)
    shown.push(lines.join('\n'), model.composer.text, JSON.stringify(model.dialog?.written ?? null))
    return { text: lines.join('\n'), caret }
  }
  const press = async (...chords: string[]) => {
    for (const chord of chords) {
      controls.key(keyNamed(chord))
      look()
      await settle()
    }
    look()
  }
  happens(created(), asked)
  askDecision({ model, host, clock }).catch(fail)
  await settle()
  return {
    model,
    asks,
    stored,
    failures,
    remembered,
    press,
    happens,
    comes,
    /** Whether the screen waits for the person before it closes. */
    waits: () => view.wasWriting,
    settle,
    look,
    type: async (text: string) => {
      const key: Key = { input: text, ctrl: false, meta: false, shift: false, name: null }
      controls.key(key)
      look()
      await settle()
    },
    paste: (text: string) => controls.paste(text),
    decide: (typed: string) => answerDecision({ model, host, clock }, typed),
    title: () => model.dialog?.question.title ?? null,
    /** All that stood on the screen, in the composer and in the history. */
    seen: () => [...shown, ...remembered, model.composer.text, JSON.stringify(model.composer.snapshot())].join('\n'),
  }
}

promise('T40')
test.each([
  { columns: 80, rows: 24 },
  { columns: 40, rows: 10 },
  { columns: 200, rows: 50 },
])('a secret is typed where nothing shows how long it is, on $columns×$rows', async size => {
  const { press, type, look, stored, asks, seen, title } = await sit(size)
  expect(title()).toBe('Step 2 needs STRIPE_KEY')
  await press('return')
  const before = look()
  expect(before.text).toContain('The value of STRIPE_KEY')
  expect(before.text).toContain('Nothing')
  for (const letter of VALUE) await type(letter)
  expect(look()).toEqual(before)
  await press('return')
  expect(stored).toEqual([{ key: 'STRIPE_KEY', value: VALUE }])
  expect(asks).toEqual([{ type: 'decide', session: '20261120_1', decision: 'secret', choice: 'give' }])
  expect(seen()).not.toContain(VALUE.slice(0, 6))
  expect(seen()).not.toContain(VALUE.slice(-6))
})

test('several lines are pasted with their line ends, and a key that is marked as no paste is taken as well', async () => {
  const { press, paste, type, stored } = await sit()
  await press('return')
  paste('-----BEGIN KEY-----\r\nMIIE\r\n')
  await type('abc\ndef\n')
  await press('shift+return', 'return')
  expect(stored.map(({ value }) => value)).toEqual(['-----BEGIN KEY-----\nMIIE\nabc\ndef\n\n'])
})

test('Backspace, Ctrl+U and Ctrl+W take back what is typed', async () => {
  const { press, type, stored } = await sit()
  await press('return')
  await type('wrong')
  await press('ctrl+u')
  await type('two wordsx')
  await press('backspace', 'ctrl+w')
  await type('values')
  await press('return')
  expect(stored.map(({ value }) => value)).toEqual(['two values'])
})

test('Esc and Ctrl+D go back to the choices, and keep nothing', async () => {
  for (const key of ['escape', 'ctrl+d']) {
    const { press, type, stored, seen, title } = await sit()
    await press('return')
    await type(VALUE)
    await press(key)
    expect(title()).toBe('Step 2 needs STRIPE_KEY')
    await press('return', 'return')
    expect([stored, title()]).toEqual([[], 'The value of STRIPE_KEY'])
    expect(seen()).not.toContain('sk_live')
  }
})

promise('T40')
test('Ctrl+C closes the field and keeps nothing; Esc asks again', async () => {
  const { press, type, stored, asks, seen, model, title } = await sit()
  await press('return')
  await type(VALUE)
  await press('ctrl+c')
  expect([title(), model.currentNotice?.text]).toEqual([
    null,
    'Your decision is waiting; Esc shows the question, Ctrl+C again leaves',
  ])
  await press('escape')
  expect([title(), stored, asks]).toEqual(['Step 2 needs STRIPE_KEY', [], []])
  expect(seen()).not.toContain('sk_live')
})

test('an empty one, one that is too long, and one with a zero byte are asked for again', async () => {
  const { press, paste, look, stored } = await sit()
  await press('return', 'return')
  expect(look().text).toContain('The value is empty; a secret has at least one byte.')
  paste('x'.repeat(64 * 1024 + 1))
  await press('return')
  expect(look().text).toContain('It is longer than 64 KiB; it was discarded.')
  expect(look().text).not.toContain('The value is empty')
  paste('zero\0byte')
  await press('return')
  expect(look().text).toContain('zero byte')
  paste('y'.repeat(64 * 1024))
  await press('return')
  expect(stored.map(({ value }) => value.length)).toEqual([64 * 1024])
})

test('a short one is warned of before it is taken, and can be typed again', async () => {
  const { press, type, stored, title, look } = await sit()
  await press('return')
  await type('hunter2')
  await press('return')
  expect([title(), stored]).toEqual(['Use STRIPE_KEY?', []])
  expect(look().text).toContain('It has fewer than 8 characters.')
  await press('return')
  expect(title()).toBe('The value of STRIPE_KEY')
  await type('hunter2')
  await press('return', '2', 'return')
  expect(stored).toEqual([{ key: 'STRIPE_KEY', value: 'hunter2' }])
})

promise(
  'T41',
  'What is still typed of a secret once it is not asked for any more goes into no prompt, draft or history',
)
test('what is still typed once it was given elsewhere goes nowhere', async () => {
  const { press, type, happens, model, paste, stored, remembered, asks, title, look, seen } = await sit()
  await press('return')
  await type(VALUE.slice(0, 9))
  happens({ type: 'decision-made', id: 'secret', choice: 'give', text: null, by: 'person' })
  model.dismiss('withdrawn')
  expect(title()).toBe('This question is closed.')
  expect(look().text).toContain('Your text was discarded.')
  await type(VALUE.slice(9))
  paste(VALUE)
  expect(title()).toBe('This question is closed.')
  await press('return')
  expect([title(), model.composer.text, stored, remembered, asks]).toEqual([null, '', [], [], []])
  expect(seen()).not.toContain('sk_live')
})

test('the note that takes the rest of a secret stays when the session ends, and the screen does not close under it', async () => {
  const { press, type, comes, model, title, seen, waits } = await sit()
  await press('return')
  await type(VALUE.slice(0, 9))
  comes({ type: 'decision-made', id: 'secret', choice: 'later', text: null, by: 'person' })
  comes(sampleEvents['session-ended'])
  expect([title(), waits()]).toEqual(['This question is closed.', true])
  await type(VALUE.slice(9))
  await press('return')
  expect([title(), waits(), model.composer.text]).toEqual([null, false, ''])
  expect(seen()).not.toContain('sk_live')
})

test('a secret behind /decide is not taken: it is asked for in the field', async () => {
  const { decide, press, type, look, stored, asks, model } = await sit()
  model.dismiss('left')
  const over = decide(`give ${VALUE}`)
  expect(look().text).toContain('The text after the command was ignored')
  await type(VALUE)
  await press('return')
  await over
  expect([stored.length, asks.length]).toEqual([1, 1])
  expect(JSON.stringify(asks)).not.toContain('sk_live')
})

test('pasted before the field is open, a secret is taken for no command and no prompt', async () => {
  const { paste, title, model, remembered } = await sit()
  paste(VALUE)
  expect([title(), model.composer.text, remembered]).toEqual(['Step 2 needs STRIPE_KEY', '', []])
})

test('on a screen that watches another process it is stored, which decides there', async () => {
  const { press, type, stored, asks, model } = await sit({ isWatching: true })
  await press('return')
  await type(VALUE)
  await press('return')
  expect([stored.length, asks, model.currentNotice?.text]).toEqual([
    1,
    [],
    'STRIPE_KEY is stored, and no model sees it',
  ])
})

test('one that cannot be stored is said, without it, and can be given again', async () => {
  const { press, type, failures, title, asks } = await sit({ fails: true })
  await press('return')
  await type(VALUE)
  await press('return')
  expect([String(failures[0]), asks]).toEqual(['Error: There is no room on the disk.', []])
  await press('escape')
  expect(title()).toBe('Step 2 needs STRIPE_KEY')
})
