import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { SessionEvent } from '../../../../src/core/events/events.ts'
import type { Reply } from '../../../../src/core/shapes/reply.ts'
import type { Key } from '../../../../src/doors/screen/composer/keys.ts'
import { Controls } from '../../../../src/doors/screen/screen/controls.ts'
import type { ScreenHost } from '../../../../src/doors/screen/screen/dialogs.ts'
import { askDecision } from '../../../../src/doors/screen/screen/dialogs.ts'
import { drawScreen } from '../../../../src/doors/screen/screen/frame.ts'
import { askToStart } from '../../../../src/doors/screen/screen/how-it-goes-on.ts'
import { ScreenModel } from '../../../../src/doors/screen/screen/model.ts'
import { openTheme } from '../../../../src/doors/screen/terminal/theme.ts'
import type { Ask } from '../../../../src/project/library.ts'
import { Keymap } from '../../../../src/project/settings/keys.ts'
import { promise } from '../../../support/promise.ts'
import { created, ended, foldAll, recorded, started, worked } from '../../../support/session-events.ts'
import { TestClock } from '../../../support/test-clock.ts'
import { sampleEvents } from '../samples.ts'

const plain = { ctrl: false, meta: false, shift: false, name: null }
const text = (input: string): Key => ({ ...plain, input })
const ctrl = (input: string): Key => ({ ...plain, ctrl: true, input })
const named = (name: Key['name']): Key => ({ ...plain, input: '', name })

/** A person at the keys of a screen whose host writes down what it is asked, and answers as it is told. */
function sit(
  options: {
    answers?: (ask: Ask) => Reply
    attend?: () => boolean
    queue?: string[]
    enqueue?: () => Promise<string>
    enter?: Keymap['enter']
    keymap?: Keymap
    isDemo?: boolean
  } = {},
) {
  const clock = new TestClock()
  const asked: Ask[] = []
  const calls: string[] = []
  const queue = options.queue ?? []
  const host: ScreenHost = {
    ask: async ask => {
      asked.push(ask)
      return options.answers?.(ask) ?? { code: 'done', message: 'done' }
    },
    enqueue: options.enqueue ?? (async prompt => `queued ${prompt}`),
    takeBack: async () => {
      const last = queue.pop()
      if (last !== undefined) model.addQueued(last)
      return last !== undefined
    },
    attend: () => options.attend?.() ?? false,
    begin: goal => void calls.push(`begin ${goal}`),
    command: async (name, rest) => void calls.push(`/${name} ${rest}`.trim()),
    editFile: async () => false,
    edit: async () => null,
    showPlanChange: async files => void calls.push(`see ${files.map(({ file }) => file).join()}`),
    happened: () => {},
    answer: async () => '',
    openLogs: async () => void calls.push('logs'),
    openPalette: async () => void calls.push('palette'),
    openDiff: async () => {},
    suspend: async () => void calls.push('suspend'),
    leave: () => void calls.push('leave'),
    leaveNow: () => void calls.push('leave now'),
    keepEnter: async enter => void calls.push(`keep ${enter}`),
    remember: () => {},
    warningsOfSecret: () => [],
    storeSecret: async () => null,
  }
  const model = new ScreenModel({
    theme: openTheme({ theme: 'plain', env: {}, reader: false }),
    clock,
    motion: 'reduced',
    keymap: options.keymap ?? new Keymap(undefined, options.enter === undefined ? 'queue' : options.enter),
    isWatching: false,
    isDemo: options.isDemo ?? false,
    size: () => ({ columns: 80, rows: 24 }),
    redact: each => each,
    searchFiles: async () => [],
    onChange: () => {},
  })
  model.composer.setCommands(['stop', 'exit'].map(name => ({ name, description: '', note: null })))
  const failures: unknown[] = []
  const controls = new Controls({
    model,
    host,
    clock,
    redraw: () => {},
    openOutput: () => {},
    onFailure: error => void failures.push(error),
  })
  const events: SessionEvent[] = []
  return {
    model,
    host,
    clock,
    asked,
    calls,
    failures,
    types: () => asked.map(ask => ask.type),
    press: async (...keys: Key[]) => {
      for (const key of keys) controls.key(key)
      for (let turn = 0; turn < 20; turn += 1) await Promise.resolve()
    },
    paste: (pasted: string) => controls.paste(pasted),
    controls,
    happens: (...more: SessionEvent[]) => {
      model.showsSession = true
      for (const event of more) {
        events.push(event)
        const last = recorded(events).at(-1)
        if (last) model.pane.event(last, foldAll(events))
      }
    },
    title: () => model.dialog?.question.title ?? null,
  }
}

const interrupted: SessionEvent[] = [{ type: 'interrupt-asked' }]

test('Ctrl+C in a question closes it, and keeps what was being written; only the one about the plan leaves', async () => {
  const { press, happens, model, calls, title } = sit()
  happens(created(), started(1))
  await press(ctrl('c'))
  expect(title()).toBe('Do you want to modify the plan?')
  await press(text('do the docs'), ctrl('c'))
  expect([calls, title(), model.composer.text]).toEqual([[], null, 'do the docs'])
  await press(ctrl('c'), ctrl('c'), ctrl('c'))
  expect([calls, model.composer.text]).toEqual([['leave'], ''])
  const asked = model.choose({ title: 'Which colours?', options: [{ id: 'dark', label: 'dark' }] })
  await press(ctrl('c'))
  expect(await asked).toEqual({ kind: 'left' })
  expect(calls).toEqual(['leave'])
})

test('Esc in the question about the plan goes back, with what was written in the composer', async () => {
  const { press, happens, model, asked } = sit()
  happens(created(), started(1))
  await press(ctrl('c'), text('do the docs'), named('escape'))
  expect([asked, model.composer.text]).toEqual([[], 'do the docs'])
})

test('Esc is answered, too, where the event that tells of the hold comes after the answer', async () => {
  const { press, happens, asked, title } = sit()
  happens(created(), started(1))
  await press(named('escape'))
  expect(title()).toBe('Interrupted. What next?')
  await press(text('4'), named('return'))
  expect([title(), asked.length]).toEqual(['Stop the session now?', 1])
  await press(named('return'))
  expect(asked).toEqual([{ type: 'interrupt' }, { type: 'stop', now: true }])
})

test('the first key in a question stops its countdown, and the question says so', async () => {
  let attended = 0
  const { press, happens, model, title } = sit({ attend: () => ++attended === 1 })
  happens(created(), started(1))
  const hint = () => drawScreen(model, 0).lines.at(-1)
  await press(text('x'), named('backspace'))
  expect(attended).toBe(0)
  await press(named('escape'))
  expect(hint()).toMatch(/^A digit/)
  const stopped = 'Countdown stopped · A digit or Enter chooses · Esc continues · ↑ ↓ select'
  await press(named('down'))
  expect([title(), hint()]).toEqual(['Interrupted. What next?', stopped])
  await press(named('down'))
  expect(hint()).toBe(stopped)
})

test('a digit chooses at once, and Enter behind it chooses nothing else; what ends the session takes Enter alone', async () => {
  const { press, happens, asked, title, model } = sit()
  happens(created(), started(1))
  await press(named('escape'))
  const hint = () => drawScreen(model, 0).lines.at(-1)
  await press(text('4'))
  await press(named('return'))
  expect([title(), hint()]).toEqual(['Stop the session now?', 'Enter confirms · Esc goes back · ↑ ↓ select'])
  await press(text('1'))
  expect([title(), asked.length]).toEqual(['Stop the session now?', 1])
  await press(named('return'))
  expect([title(), asked.at(-1)]).toEqual([null, { type: 'stop', now: true }])
})

test('while it ends, Ctrl+C ends it at once', async () => {
  const { press, happens, model, calls } = sit()
  happens(created(), started(1))
  model.isLeaving = true
  await press(ctrl('c'))
  expect(calls).toEqual(['leave now'])
})

test('where nothing runs, Ctrl+C leaves only when it is repeated soon, and nothing else was done meanwhile', async () => {
  const { press, paste, clock, calls } = sit()
  await press(ctrl('c'))
  await clock.advance(9_000)
  await press(ctrl('c'), text('x'), ctrl('c'))
  paste('y')
  await press(ctrl('c'))
  expect(calls).toEqual([])
  await press(ctrl('c'), ctrl('c'))
  expect(calls).toEqual(['leave'])
})

promise('O70', 'Ctrl+C clears a draft, which ↑ brings back; then it asks about the plan, and the third leaves')
test('Ctrl+C clears a draft, which Up brings back; then it asks about the plan, and the third leaves', async () => {
  const { press, happens, model, calls, title } = sit()
  happens(created(), started(1))
  await press(text('a draft'), ctrl('c'))
  expect([model.composer.text, model.currentNotice?.text, title()]).toEqual(['', 'Cleared; ↑ brings it back', null])
  await press(named('up'))
  expect(model.composer.text).toBe('a draft')
  await press(ctrl('c'), ctrl('c'))
  expect([calls, title()]).toEqual([[], 'Do you want to modify the plan?'])
  await press(ctrl('c'))
  expect(calls).toEqual(['leave'])
})

test('an answer that is wider than the last row is printed, and not said there again', async () => {
  const message = `The next round reads it first: 20261120_1 waits for a decision of a person (codemachine decide).`
  const { press, happens, model, clock } = sit({ enter: 'tell', answers: () => ({ code: 'kept', message }) })
  happens(created(), started(1))
  await press(text('use tabs'), named('return'))
  const screen = drawScreen(model, clock.now()).lines.join('\n')
  const printed = model.scrollback.take().replaceAll('\n', ' ')
  expect([screen, printed]).toEqual([
    expect.not.stringContaining('The next round'),
    expect.stringContaining('a decision of a person (/decide)'),
  ])
})

test('a notice makes room for the keys of the field as soon as its text is changed, and does not come back', async () => {
  const { press, paste, happens, model, clock } = sit()
  const hint = () => drawScreen(model, clock.now()).lines.at(-1)
  happens(created(), started(1))
  await press(text('abc'), ctrl('c'))
  expect(hint()).toBe('Cleared; ↑ brings it back')
  await press(text('d'))
  expect(hint()).toMatch(/^Enter queues it as the next session · Tab tells the agent now/)
  await press(ctrl('c'))
  paste('pasted')
  expect(hint()).toMatch(/^Enter queues it/)
  await press(ctrl('c'), named('up'))
  expect([model.composer.text, hint()]).toEqual(['pasted', expect.stringMatching(/^Enter queues it/)])
  await press(ctrl('c'))
  void model.choose({ title: 'Which colours?', options: [{ id: 'dark', label: 'dark' }] })
  await press(named('escape'))
  expect(hint()).toMatch(/^Esc interrupts/)
})

test('with a draft below a question, Ctrl+C in it does not promise that another one leaves', async () => {
  const { press, happens, model, calls } = sit()
  happens(created(), started(1))
  await press(text('a draft'))
  void model.choose({ title: 'Which colours?', options: [{ id: 'dark', label: 'dark' }] })
  await press(ctrl('c'))
  expect(model.currentNotice).toBeNull()
  await press(named('escape'))
  happens(...interrupted)
  await press(ctrl('c'))
  expect(model.currentNotice?.text).toBe('Paused; Esc shows the choices, Ctrl+C clears the text')
  await press(ctrl('c'))
  expect([model.composer.text, calls]).toEqual(['', []])
})

test('Esc closes the list of tasks before it interrupts, and leaves a draft alone', async () => {
  const { press, happens, model, types, clock } = sit()
  happens(created(), started(1))
  await press(text('a draft'), ctrl('t'), named('escape'))
  expect([model.showsTasks, types(), model.composer.text]).toEqual([false, [], 'a draft'])
  await clock.advance(1_000)
  await press(named('escape'))
  expect([types(), model.composer.text]).toEqual([['interrupt'], 'a draft'])
})

test.each<[string, (model: ScreenModel, controls: Controls) => void, Key[]]>([
  [
    'a question',
    model => void model.choose({ title: 'Which?', options: [{ id: 'a', label: 'a' }] }),
    [named('escape')],
  ],
  ['the list of tasks', () => {}, [ctrl('t'), named('escape')]],
  ['the commands', () => {}, [text('/'), named('escape')]],
  ['the search', model => model.composer.search(), [named('escape')]],
  ['what filled the terminal', (_, controls) => controls.expectHabit('escape'), []],
])('Esc pressed twice to close %s interrupts nothing: it says that the next one does', async (_, open, keys) => {
  const { press, happens, model, controls, types, clock } = sit()
  happens(created(), started(1))
  open(model, controls)
  await press(...keys)
  await clock.advance(300)
  await press(named('escape'))
  expect([types(), drawScreen(model, 0).lines.at(-1)]).toEqual([[], 'Esc again interrupts the agent'])
  await press(named('escape'))
  expect(types()).toEqual(['interrupt'])
})

test('Ctrl+E with a draft goes to the end of its line, and opens the log without one', async () => {
  const { press, happens, model, calls } = sit()
  happens(created(), started(1))
  await press(text('ab'), ctrl('a'), ctrl('e'), ctrl('e'), text('c'))
  expect([model.composer.text, calls]).toEqual(['abc', []])
  await press(ctrl('u'), ctrl('e'))
  expect(calls).toEqual(['logs'])
})

promise(
  'O71',
  'The first Enter on a text while a session runs asks: tell the agent, or queue it; `screen.enter` keeps the answer',
)
test('screen.enter = "tell": Enter tells the agent and Tab queues, and where no agent is at work Enter starts', async () => {
  const { press, happens, asked, calls, model } = sit({ enter: 'tell' })
  await press(text('a goal'), named('return'))
  expect(calls).toEqual(['begin a goal'])
  happens(created(), started(1))
  await press(text('use tabs'), named('return'))
  expect(asked).toEqual([{ type: 'steer', text: 'use tabs' }])
  await press(text('and then this'), named('tab'))
  expect(model.currentNotice?.text).toBe('queued and then this')
})

test.for(['tell', null] as const)(
  'a prompt that was taken out of the queue goes back with Enter or Tab, screen.enter = %s; a text typed anew does not',
  async enter => {
    const { press, happens, asked, model, title } = sit({ enter, queue: ['one', 'two', 'three'] })
    happens(created(), started(1))
    await press({ ...named('up'), meta: true }, text(', longer'), named('return'))
    expect([title(), asked, model.currentNotice?.text]).toEqual([null, [], 'queued three, longer'])
    await press({ ...named('up'), meta: true }, text(', with Tab'), named('tab'))
    expect([asked, model.currentNotice?.text]).toEqual([[], 'queued two, with Tab'])
    await press({ ...named('up'), meta: true }, ctrl('c'), text('use tabs'), named('return'))
    expect([title() !== null, asked.length]).toEqual(enter === null ? [true, 0] : [false, 1])
  },
)

promise('O71')
test('the first Enter on a text asks what Enter does, which is kept; Esc leaves the text in the field', async () => {
  const { press, happens, asked, calls, model, title } = sit({ enter: null })
  happens(created(), started(1))
  await press(text('use tabs'), named('return'))
  expect([title(), asked]).toEqual(['Tell the agent, or queue it?', []])
  await press(named('escape'))
  expect([title(), asked, calls, model.composer.text]).toEqual([null, [], [], 'use tabs'])
  await press(named('return'), named('return'))
  expect([asked, calls, model.composer.text]).toEqual([[{ type: 'steer', text: 'use tabs' }], ['keep tell'], ''])
  await press(text('and spaces'), named('return'))
  expect([title(), asked.length]).toEqual([null, 2])
})

test('the first Enter on a text can queue from then on; Tab asks nothing, and the end of the session keeps the text', async () => {
  const { press, happens, asked, calls, model, title } = sit({ enter: null })
  happens(created(), started(1))
  await press(text('first'), named('tab'))
  expect([title(), model.currentNotice?.text]).toEqual([null, 'queued first'])
  await press(text('second'), named('return'))
  model.dismiss('withdrawn')
  expect(model.composer.text).toBe('second')
  await press(named('return'), named('down'), named('return'))
  expect([calls, model.currentNotice?.text]).toEqual([['keep queue'], 'queued second'])
  await press(text('third'), named('return'), text('now'), named('tab'))
  expect([title(), asked]).toEqual([null, [{ type: 'steer', text: 'now' }]])
})

promise('O72', 'A key that is remapped does what its action says, and its old key nothing')
test('a key that is remapped does what its action says, and its old key nothing', async () => {
  const remapped = { preset: null, remapped: new Map([['log', ['alt+l']] as const]) }
  const { press, happens, calls } = sit({ keymap: new Keymap(remapped) })
  happens(created(), started(1))
  await press(ctrl('e'))
  expect(calls).toEqual([])
  await press({ ...plain, meta: true, input: 'l' })
  expect(calls).toEqual(['logs'])
})

test('the search of the prompts is begun from the palette, too', async () => {
  const { press, host, model } = sit()
  host.openPalette = async act => act('search')
  await press(ctrl('x'), text('g'))
  expect(model.composer.snapshot().search?.query).toBe('g')
})

test('Ctrl+D that is held down to delete does not leave', async () => {
  const { press, calls } = sit()
  await press(text('abc'), ctrl('a'), ctrl('d'), ctrl('d'), ctrl('d'), ctrl('d'), ctrl('d'))
  expect(calls).toEqual([])
  await press(ctrl('a'), ctrl('d'))
  expect(calls).toEqual(['leave'])
})

test('Esc interrupts and asks; Esc again goes on after a second, but leaves held what was held before', async () => {
  const { press, happens, types, title, model, clock } = sit()
  happens(created(), started(1))
  await press(named('escape'))
  happens(...interrupted)
  expect([types(), title()]).toEqual([['interrupt'], 'Interrupted. What next?'])
  await press(named('escape'))
  expect([types(), title()]).toEqual([['interrupt'], 'Interrupted. What next?'])
  await clock.advance(1_000)
  await press(named('escape'))
  await press(named('escape'))
  expect([types(), title(), model.currentNotice?.text]).toEqual([
    ['interrupt', 'unpause'],
    null,
    'Esc again shows the choices',
  ])
  happens({ type: 'unpaused' }, ended(1, worked), { type: 'paused' }, { type: 'held' })
  await press(named('escape'))
  expect(title()).toBe('Paused. What next?')
  expect(drawScreen(model, 0).lines.at(-1)).toBe('A digit or Enter chooses · Esc leaves it paused · ↑ ↓ select')
  await press(named('escape'))
  expect(types()).toEqual(['interrupt', 'unpause'])
})

promise('O20', 'Esc pressed twice interrupts once')
test('Esc twice in a row interrupts once, and asks once', async () => {
  const { press, happens, types, title } = sit()
  happens(created(), started(1))
  await press(named('escape'), named('escape'))
  expect([types(), title()]).toEqual([['interrupt'], 'Interrupted. What next?'])
})

test('Ctrl+C, where it is asked how it goes on, does not go on', async () => {
  const { press, happens, types, title, model, clock, calls } = sit()
  happens(created(), started(1))
  await press(named('escape'))
  happens(...interrupted)
  await press(ctrl('c'))
  expect([types(), title()]).toEqual([['interrupt'], null])
  expect(model.currentNotice?.text).toBe('Paused; Esc shows the choices, Ctrl+C again leaves')
  happens({ type: 'unpaused' })
  expect(model.currentNotice, 'what goes on is not said to be held').toBeNull()
  happens({ type: 'held' })
  await clock.advance(9_000)
  await press(ctrl('c'))
  expect([title(), calls]).toEqual(['Do you want to modify the plan?', []])
})

test('Ctrl+C again, soon after one that closed a question, leaves, and does not ask something else', async () => {
  const { press, happens, model, calls, title } = sit()
  happens(created(), started(1))
  await press(named('escape'))
  happens(...interrupted)
  await press(ctrl('c'), ctrl('c'))
  expect([title(), calls]).toEqual([null, ['leave']])
  const goesBack = model.choose({ title: 'Which model?', options: [], freeText: 'Its name' })
  await press(ctrl('c'))
  expect(await goesBack).toEqual({ kind: 'left' })
  expect(model.currentNotice?.text).toBe('Ctrl+C again leaves')
  void model.choose({ title: 'Which session?', options: [{ id: 'one', label: 'One' }] })
  await press(ctrl('c'))
  expect(calls).toEqual(['leave', 'leave'])
})

test('a question in the place of an open one answers that as withdrawn, and what was written there is kept', async () => {
  const { press, model, title } = sit()
  const first = model.choose({ title: 'Which model?', options: [], freeText: 'Its name' })
  await press(text('gpt'))
  const second = model.choose({ title: 'Which session?', options: [{ id: 'one', label: 'One' }] })
  expect(await Promise.race([first, second, nextTurn('no answer')])).toEqual({ kind: 'withdrawn' })
  expect([title(), model.composer.text]).toEqual(['Which session?', 'gpt'])
})

const changed = { files: [{ file: 'tasks.json', diff: '' }] } as const
const typed = (words: string) => [...words].map(text)

test.each([['/stop'], ['/exit']])(
  '%s in a question of the session is run, and is no words for the agent',
  async said => {
    const { press, happens, calls, types, title, model } = sit()
    happens(created(), started(1))
    await press(named('escape'))
    happens(...interrupted)
    await press(...typed(said), named('return'))
    expect([calls, types(), title(), model.composer.text]).toEqual([[said], ['interrupt'], null, ''])
    await press(ctrl('c'), ...typed(said), named('return'))
    expect([calls, types(), title(), model.composer.text]).toEqual([[said, said], ['interrupt'], null, ''])
    void askToStart({ model, host: sit().host, clock: new TestClock() }, changed)
    await press(...typed(said), named('return'))
    expect([calls, types(), title()]).toEqual([[said, said, said], ['interrupt'], null])
  },
)

test('a command that is mistyped in a question is not sent, and can be mended in the composer', async () => {
  const { press, happens, model, calls, types, title } = sit()
  happens(created(), started(1))
  await press(named('escape'))
  happens(...interrupted)
  await press(...typed('/stpo'), named('return'))
  expect([types(), title(), model.composer.text]).toEqual([['interrupt'], null, '/stpo'])
  expect(model.currentNotice?.text).toBe('There is no /stpo; did you mean /stop?')
  await press(ctrl('u'), ...typed('/stop'), named('return'))
  expect(calls).toEqual(['/stop'])
})

promise(
  'O135',
  'What is refused does not mix with what is typed next, and what is typed blindly (before the screen is drawn, while a list closes) begins nothing',
)
test.each([['/help'], ['fix the tests']])('%s, typed upon a refused command, stands alone', async next => {
  const { press, model, calls } = sit()
  model.composer.setCommands(['help'].map(name => ({ name, description: '', note: null })))
  await press(...typed('/logout'), named('return'))
  expect([model.composer.text, calls]).toEqual(['/logout', []])
  await press(...typed(next))
  expect(model.composer.text).toBe(next)
  await press(named('return'))
  expect(calls).toEqual([next.startsWith('/') ? next : `begin ${next}`])
  await press(named('up'))
  expect(model.composer.text).toBe('/logout')
})

test('a refused command that is edited stays, and so does a text that was typed before what was refused came back', async () => {
  const { press, model, calls } = sit()
  await press(
    ...typed('/stpo'),
    named('return'),
    named('backspace'),
    named('backspace'),
    ...typed('op'),
    named('return'),
  )
  expect(calls).toEqual(['/stop'])
  await press(...typed('one goal'))
  model.giveBack('another goal')
  await press(...typed(' more'))
  expect(model.composer.text).toBe('one goal\n\nanother goal more')
})

test.each([
  ['a goal that is pasted', 'mend the build'],
  ['a command that is pasted', '/stop'],
])('%s takes the place of what was refused', async (_, pasted) => {
  const { paste, model } = sit()
  model.giveBack('build Y')
  paste(pasted)
  expect(model.composer.text).toBe(pasted)
})

test.each([['1'], ['y'], [' 2 '], ['42']])('%j was meant for a question, and is no goal', async said => {
  const { press, model, calls, happens } = sit()
  await press(...typed(said), named('return'))
  expect([calls, model.composer.text, model.currentNotice?.text]).toEqual([
    [],
    said,
    expect.stringContaining('is not a goal'),
  ])
  happens(created(), started(1))
  await press(named('return'))
  expect(model.currentNotice?.text).toContain('is not a goal')
})

promise('O135')
test.each([
  ['a digit for a question', [text('1'), named('return')], ''],
  ['a letter', [text('y')], ''],
  ['a goal', [...typed('build X'), named('return')], 'build X'],
  ['a text that was corrected', [...typed('buidl'), named('backspace'), named('backspace'), ...typed('ld')], 'build'],
  ['two lines', [...typed('build X'), named('return'), ...typed('then Y'), named('return')], 'build X\nthen Y'],
] as const)('%s that was typed before the field was shown begins nothing', async (_, keys, stands) => {
  const { controls, press, model, calls } = sit()
  for (const key of keys) controls.unseenKey(key)
  controls.fieldSeen()
  expect([calls, model.composer.text]).toEqual([[], stands])
  await press(...typed('!'))
  expect(model.composer.text).toBe(`${stands}!`)
})

test('what is typed into a hidden field before it is shown reaches no other field', async () => {
  const { controls, model } = sit()
  const hidden = { mostBytes: 1024, problemOf: () => null }
  void model.choose({ title: 'The value', options: [], freeText: 'KEY', hidden })
  for (const key of typed('secret')) controls.unseenKey(key)
  controls.unseenPaste('more')
  model.answer({ kind: 'closed' })
  controls.fieldSeen()
  expect(model.composer.text).toBe('')
})

test.each([['/etc/x is wrong'], ['/tmp is full']])(
  '%s is an answer, though it begins as a command does',
  async said => {
    const { press, happens, asked, calls } = sit()
    happens(created(), started(1))
    await press(ctrl('c'), ...typed(said), named('return'))
    expect([asked, calls]).toEqual([[{ type: 'replan', text: said }], []])
  },
)

test('a slash where nothing can be written goes into the composer, and Enter behind it chooses nothing', async () => {
  for (const asPasted of [false, true]) {
    const { press, paste, happens, model, host, clock, asked, calls } = sit()
    happens(created(), started(1), sampleEvents['decision-asked'])
    void askDecision({ model, host, clock })
    if (asPasted) paste('/stop')
    await press(...(asPasted ? [] : typed('/stop')), named('return'))
    expect([asked, calls]).toEqual([[], ['/stop']])
  }
})

test('Ctrl+E opens the log from a question, and goes to the end of the line where something is written', async () => {
  const { press, happens, calls, title, model } = sit()
  happens(created(), started(1))
  await press(named('escape'))
  happens(...interrupted)
  await press(ctrl('e'))
  expect([calls, title()]).toEqual([['logs'], 'Interrupted. What next?'])
  await press(...typed('ac'), ctrl('a'), ctrl('e'), text('k'))
  expect([calls, model.dialog?.written.text.lines]).toEqual([['logs'], ['ack']])
  await press(ctrl('e'))
  expect([calls, title()]).toEqual([['logs'], 'Interrupted. What next?'])
})

test('what is said of the keys is true while an answer is written', async () => {
  const { press, happens, model, clock } = sit()
  const hint = () => drawScreen(model, clock.now()).lines.at(-1)
  happens(created(), started(1))
  await press(named('escape'))
  happens(...interrupted)
  expect(hint()).toBe('A digit or Enter chooses · Esc continues · Ctrl+C leaves it paused · ↑ ↓ select')
  await press(...typed('/sto'))
  expect(hint()).toBe('Enter sends it · Esc goes back to the choices · Ctrl+C leaves it paused')
  await press(text('p'))
  expect(hint()).toBe('Enter runs it · Esc goes back to the choices · Ctrl+C leaves it paused')
  await press(named('escape'))
  expect(hint()).toBe('A digit or Enter chooses · Esc continues · Ctrl+C leaves it paused · ↑ ↓ select')
  await press(ctrl('c'), ctrl('u'), ctrl('c'))
  expect(hint()).toBe('Enter sends it · Esc goes back · Ctrl+C leaves')
})

test('a text that begins with a path is no command, and the last line says so', async () => {
  const { press, happens, model, calls, clock } = sit()
  const hint = () => drawScreen(model, clock.now()).lines.at(-1)
  await press(...typed('/etc/hosts is wrong'))
  expect(hint()).toMatch(/^Enter starts it/)
  await press(named('return'))
  expect(calls).toEqual(['begin /etc/hosts is wrong'])
  happens(created(), started(1))
  await press(...typed('/etc/hosts is wrong'))
  expect(hint()).toMatch(/^Enter queues it/)
})

test('a change of plan interrupts nothing where nothing runs', async () => {
  const { press, happens, model } = sit()
  happens(created(), started(1))
  await press(ctrl('c'))
  expect(model.dialog?.question.body?.[0]).toContain('; this interrupts the round.')
  await press(named('escape'))
  happens(ended(1, worked), { type: 'paused' }, { type: 'held' })
  await press(ctrl('c'))
  expect(model.dialog?.question.body?.[0]).toMatch(/^Say what should change\. /)
})

test('what could not be told is not gone on without, and stands in the composer', async () => {
  const { press, happens, types, model } = sit({
    answers: ask => ({ code: ask.type === 'steer' ? 'no-session' : 'done', message: 'no' }),
  })
  happens(created(), started(1))
  await press(named('escape'))
  happens(...interrupted)
  await press(text('mind the gap'), named('return'))
  expect([types(), model.composer.text]).toEqual([['interrupt', 'steer'], 'mind the gap'])
})

test('what a person wrote stands in the composer again when it cannot even be asked, and why is said', async () => {
  const full = new Error('the disk is full')
  const { press, happens, model, failures } = sit({
    answers: ({ type }) => {
      if (type === 'interrupt') return { code: 'done', message: 'done' }
      throw full
    },
  })
  happens(created(), started(1))
  await press(text('mind the gap'), named('tab'))
  expect(model.composer.text).toBe('mind the gap')
  model.composer.clear()
  await press(ctrl('c'), text('do the docs'), named('return'))
  expect(model.composer.text).toBe('do the docs')
  model.composer.clear()
  await press(named('escape'))
  happens(...interrupted)
  await press(text('the other way'), named('return'))
  expect([model.composer.text, failures]).toEqual(['the other way', [full, full, full]])
})

promise('O103', 'Nothing that ends a session is one key away without a question')
test('a number only goes to its choice, and what ends the session is asked about once more', async () => {
  const { press, happens, types, title } = sit()
  happens(created(), started(1))
  await press(named('escape'))
  happens(...interrupted)
  await press(text('4'))
  expect(types()).toEqual(['interrupt'])
  await press(named('return'))
  expect([types(), title()]).toEqual([['interrupt'], 'Stop the session now?'])
  await press(named('escape'))
  expect(title()).toBe('Interrupted. What next?')
  await press(text('4'), named('return'))
  await press(text('2'), named('return'))
  expect([types(), title()]).toEqual([['interrupt'], 'Interrupted. What next?'])
  await press(text('4'), named('return'))
  await press(named('return'))
  expect(types()).toEqual(['interrupt', 'stop'])
})

promise('O103')
test('after Esc: go on, tell it something, change the plan, stop; skip only where something waits, and last', async () => {
  const { press, happens, model, asked, title } = sit()
  happens(created(), started(1))
  const labels = () => drawn(model).filter(row => /^(?:❯ | {2})\d\./.test(row))
  const drawn = (each: typeof model) => drawScreen(each, 0).lines
  await press(named('escape'))
  happens(...interrupted)
  expect(labels().map(row => row.slice(2).replace(/ {2}.*/, ''))).toEqual([
    '1. Continue',
    '2. Tell it something …',
    '3. Change the plan …',
    '4. Stop …',
  ])
  await press(text('3'), named('return'))
  expect(title()).toBe('Do you want to modify the plan?')
  await press(named('escape'))
  expect(title()).toBe('Interrupted. What next?')
  await press(text('3'), named('return'))
  await press(...typed('docs first'), named('return'))
  expect(asked).toEqual([{ type: 'interrupt' }, { type: 'replan', text: 'docs first' }])
  model.queue = ['one', 'two']
  await press(named('escape'))
  expect(labels().at(-1)).toMatch(/^ {2}5\. Skip to the next in the queue … {2}2 prompts waiting/)
  await press(text('2'), named('return'))
  await press(...typed('be quick'), named('return'))
  expect(asked.at(-2)).toEqual({ type: 'steer', text: 'be quick' })
  await press(named('escape'))
  await press(text('5'), named('return'))
  expect(title()).toBe('End this session and start the next in the queue?')
  await press(named('return'))
  expect(asked.at(-1)).toEqual({ type: 'skip' })
})

test('a demo offers no way that leads nowhere, as no later command finds its session', async () => {
  const { press, happens, model } = sit({ isDemo: true })
  happens(created(), started(1))
  model.queue = ['one']
  const shown: string[] = []
  const show = () => void shown.push(...drawScreen(model, 0).lines)
  await press(ctrl('d'))
  show()
  await press(text('3'), named('return'), named('escape'))
  happens(...interrupted)
  show()
  await press(text('4'), named('return'))
  show()
  await press(named('escape'), text('5'), named('return'))
  show()
  expect(shown.join('\n')).not.toMatch(/codemachine resume|Leave it running/)
  expect(shown.filter(row => row.includes('a demo cannot be resumed'))).toHaveLength(4)
})

promise('O103')
test('Ctrl+D on an empty field asks before it ends the session that runs, and leaves at once where none does', async () => {
  const { press, happens, calls, types, title } = sit()
  happens(created(), started(1))
  await press(ctrl('d'))
  expect([calls, title()]).toEqual([[], 'Leave? The session ends with this screen.'])
  await press(text('2'), named('return'))
  expect([calls, types()]).toEqual([[], ['stop']])
  await press(ctrl('d'), text('3'), named('return'))
  expect(calls).toEqual(['/detach'])
  await press(ctrl('l'), ctrl('d'), named('return'))
  expect(calls).toEqual(['/detach', 'leave'])
  const nothing = sit()
  await nothing.press(ctrl('d'))
  expect(nothing.calls).toEqual(['leave'])
})

test('after a change of the plan: start, modify again, put the old plan back, see the files', async () => {
  const { press, happens, model, host, clock, asked, calls, title } = sit()
  happens(created(), started(1), ...interrupted)
  const ask = (kept: { kept?: true }) => void askToStart({ model, host, clock }, { ...changed, ...kept })
  ask({})
  expect(model.question?.options.map(({ id }) => id)).toEqual(['start', 'see'])
  await press(named('escape'))
  ask({ kept: true })
  await press(text('4'), named('return'))
  expect([calls, title()]).toEqual([['see tasks.json'], 'The plan was changed as shown above. Start?'])
  await press(text('3'), named('return'))
  expect(asked).toEqual([{ type: 'put-plan-back' }])
})

test('nobody who is typing is asked whether the new plan starts', async () => {
  const { press, happens, model, host, clock, asked, title } = sit()
  happens(created(), started(1), { type: 'replan-asked', text: 'x' })
  await press(text('please mind'))
  await askToStart({ model, host, clock }, changed)
  await press(text(' the gap'))
  expect([title(), model.composer.text, asked]).toEqual([null, 'please mind the gap', []])
})

test('what cannot be queued stands in the composer again', async () => {
  const { press, happens, model, failures } = sit({
    enqueue: async () => {
      throw new Error('the disk is full')
    },
  })
  happens(created(), started(1))
  await press(text('next'), named('return'))
  expect([model.composer.text, failures]).toEqual(['next', [new Error('the disk is full')]])
})

test('Alt+Up puts the last prompt that waits below what stands in the composer', async () => {
  const { press, model } = sit({ queue: ['first', 'second'] })
  await press(text('mine'), { ...named('up'), meta: true })
  expect(model.composer.text).toBe('mine\n\nsecond')
})
