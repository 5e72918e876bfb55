import { expect, test } from 'vitest'
import type { SessionEvent } from '../../../../src/core/events/events.ts'
import { slashCommands } from '../../../../src/doors/screen/host/slash.ts'
import { ScreenModel } from '../../../../src/doors/screen/screen/model.ts'
import { openTheme } from '../../../../src/doors/screen/terminal/theme.ts'
import type { Stage } from '../../../../src/doors/screen/view/full-view.ts'
import { paletteOf } from '../../../../src/doors/screen/view/palette.ts'
import { Keymap } from '../../../../src/project/settings/keys.ts'
import type { AskedQuestion } from '../../../../src/session/records/questions.ts'
import { created, foldAll, recorded, started } from '../../../support/session-events.ts'
import { TestClock } from '../../../support/test-clock.ts'
import { typed } from '../pager/keys.ts'

/** The palette of the start screen, or of a session after these events. */
function paletteAt(events: readonly SessionEvent[] = [], asked: readonly AskedQuestion[] = []) {
  const model = new ScreenModel({
    theme: openTheme({ theme: 'plain', env: {}, reader: false }),
    clock: new TestClock(),
    motion: 'reduced',
    keymap: new Keymap(undefined, 'queue'),
    isWatching: false,
    size: () => ({ columns: 80, rows: 40 }),
    redact: each => each,
    searchFiles: async () => [],
    onChange: () => {},
  })
  const last = recorded([...events]).at(-1)
  if (last !== undefined) {
    model.showsSession = true
    model.pane.event(last, foldAll([...events]))
  }
  model.showAsked(asked)
  const sent: string[] = []
  const commands = [
    { name: 'stop', description: 'End after this round', note: null },
    { name: 'answer', description: 'Answer a question', note: null },
    { name: 'steer', description: 'Tell an agent at work something', note: null },
    ...slashCommands({ login: null }),
  ]
  const view = paletteOf(model, commands, {
    act: action => void sent.push(action),
    command: name => void sent.push(`/${name}`),
  })
  const stage = { leaveFor: (action: () => void) => action(), close: () => {} } as Stage
  const rows = () =>
    view
      .frame({ columns: 80, rows: 60 })
      .lines.slice(2, -1)
      .map(line => line.slice(2).trimEnd())
      .filter(line => line !== '')
  return {
    sent,
    notice: () => model.currentNotice?.text,
    view,
    rows,
    lastLine: () => view.frame({ columns: 80, rows: 60 }).lines.at(-1)?.trimEnd(),
    press: (...names: string[]) => {
      for (const name of names) for (const key of typed(name)) view.press(key, stage)
    },
    found: (query: string) => {
      for (const key of typed('ctrl+u')) view.press(key, stage)
      for (const key of typed(query)) view.press(key, stage)
      return rows()
    },
  }
}

const running: SessionEvent[] = [created(), started(1)]

test('what the palette offers first ends nothing: to leave, stop and interrupt stand last', () => {
  const atStart = paletteAt()
  atStart.press('return')
  expect(atStart.sent).toEqual(['help'])
  expect(atStart.rows().slice(-3).join()).toMatch(/Leave +Ctrl\+D.*\/exit/)
  const ends = paletteAt(running).rows().slice(-5)
  expect(ends.map(row => row.split(/ {2,}/)[0])).toEqual(['Interrupt the round', 'Leave', 'Suspend', '/stop', '/exit'])
})

test('the palette has names with their keys, and beside them what they do; where rows are cut it says how many follow', () => {
  const { view } = paletteAt(running)
  const { lines } = view.frame({ columns: 100, rows: 12 })
  expect(lines[1]).toMatch(/^ {2}Action +Key +What it does *$/)
  expect(lines[2]).toMatch(/^› Change the plan +Ctrl\+C +asks what should change/)
  expect(lines.at(-1)).toMatch(/^› {4}\d+ more below · type to search · Enter confirms · Esc closes$/)
  expect(view.frame({ columns: 100, rows: 100 }).lines.join('\n')).toMatch(
    /^ {2}\/doctor {10,}Check the setup and show fixes/m,
  )
})

test.each([
  ['/intrupt', /^Interrupt the round/],
  ['/doctor', /^\/doctor /],
  ['chagnes', /^Changes/],
  ['undo', /^Changes; restore a file/],
  ['cancel', /^Interrupt the round|^\/stop /],
  ['quit', /^Leave/],
  ['transcript', /^Log/],
  ['history', /^Log|^Search the prompts/],
  ['search', /^Search the prompts/],
])('%s finds what is meant', (query, first) => {
  expect(paletteAt(running).found(query)[0]).toMatch(first)
})

test('to answer is offered once a question is open', () => {
  const question: AskedQuestion = {
    session: '20261121_1',
    at: '2026-11-21T23:40:00.000Z',
    round: 1,
    question: 'Q1',
    text: 'Which database?',
    options: [],
    assumption: 'SQLite',
    answer: null,
  }
  expect(paletteAt(running).rows().join('\n')).not.toContain('/answer')
  expect(paletteAt(running, [question]).rows().join('\n')).toContain('/answer')
})

test('what is not possible now is found by typing alone, in grey, with the reason; Enter says that, and does nothing', () => {
  const { found, rows, view, press, sent, notice } = paletteAt(running)
  expect(rows().join('\n')).not.toMatch(/^\/queue/m)
  expect(found('queue')).toEqual([
    expect.stringMatching(/^\/queue +not now: the queue is empty$/),
    expect.stringMatching(/^Take the last prompt back +Alt\+↑ +not now: the queue is empty$/),
  ])
  expect(found('stop')[0]).toMatch(/^Interrupt|^\/stop /)
  press('ctrl+u', '/queue', 'return')
  expect([sent, notice()]).toEqual([[], 'Not now: the queue is empty'])
  expect(view.shown.every(({ problem }) => problem === 'the queue is empty')).toBe(true)
})

test('on the start screen "undo" finds the changes of the newest session', () => {
  expect(paletteAt().found('undo')[0]).toMatch(/^\/diff /)
})

test('the last line of the palette is where its search is typed, and no key to press', () => {
  const { lastLine, press } = paletteAt(running)
  expect(lastLine()).toBe('›    type to search · Enter confirms · Esc closes')
  press('stop')
  expect(lastLine()).toBe('› stop   Enter confirms · Esc closes')
})
