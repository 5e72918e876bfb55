import { describe, expect, test } from 'vitest'
import type { LiveEvent, SessionEvent } from '../../../../src/core/events/events.ts'
import { drawScreen } from '../../../../src/doors/screen/screen/frame.ts'
import { ScreenModel } from '../../../../src/doors/screen/screen/model.ts'
import { openTheme } from '../../../../src/doors/screen/terminal/theme.ts'
import { Keymap } from '../../../../src/project/settings/keys.ts'
import { promise } from '../../../support/promise.ts'
import {
  created,
  ended,
  FIRST_AT,
  foldAll,
  recorded,
  says,
  started,
  turn,
  worked,
} from '../../../support/session-events.ts'
import { TestClock } from '../../../support/test-clock.ts'

function open({ columns = 60, rows = 12, reader = false, motion = 'full' as 'full' | 'reduced' } = {}) {
  const clock = new TestClock()
  const model = new ScreenModel({
    theme: openTheme({ theme: 'plain', env: {}, reader }),
    clock,
    motion,
    keymap: new Keymap(undefined, 'queue'),
    isWatching: false,
    size: () => ({ columns, rows }),
    redact: text => text.replaceAll('hunter2', '[secret]'),
    searchFiles: async () => [],
    onChange: () => {},
  })
  const events: SessionEvent[] = []
  return {
    model,
    clock,
    happens(event: SessionEvent) {
      events.push(event)
      const last = recorded(events).at(-1)
      if (last) model.pane.event(last, foldAll(events))
    },
    printed: () =>
      model.scrollback
        .take()
        .split('\n')
        .filter(line => line !== ''),
  }
}

const words = (text: string, item = 'm'): LiveEvent => ({
  type: 'text-delta',
  round: 1,
  item,
  source: 'agent-message',
  text,
})

function atWork(options: Parameters<typeof open>[0] = {}) {
  const opened = open(options)
  opened.model.showsSession = true
  for (const event of [created(), started(1), turn(1, 't')]) opened.happens(event)
  opened.printed()
  return opened
}

describe('a message', () => {
  test('is printed once, part by part, and what is not whole yet is live', () => {
    const { model, happens, printed } = atWork()
    model.pane.live(words('One paragraph.\n\nTwo is not'), FIRST_AT)
    for (let step = 0; step < 40; step++) model.pane.step(FIRST_AT + step * 50)
    expect(printed()).toEqual(['◆ One paragraph.'])
    expect(model.pane.items.map(({ text }) => text)).toEqual(['Two is not'])
    happens(says(1, 'One paragraph.\n\nTwo is not whole until now.'))
    expect(printed()).toEqual(['  Two is not whole until now.'])
    expect(model.pane.items).toEqual([])
  })

  test('that ends before anything of it was typed is printed whole', () => {
    const { model, happens, printed } = atWork()
    model.pane.live(words('All'), FIRST_AT)
    happens(says(1, 'All of it.'))
    expect(printed()).toEqual(['◆ All of it.'])
  })

  test('holds no secret, in parts or whole', () => {
    const { model, happens, printed } = atWork({ motion: 'reduced' })
    model.pane.live(words('It is hunter2.\n\nAnd'), FIRST_AT)
    model.pane.step(FIRST_AT + 50)
    happens(says(1, 'It is hunter2.\n\nAnd hunter2.'))
    expect(printed().join('\n')).toBe('◆ It is [secret].\n  And [secret].')
  })

  test('that codex drops for a person who broke in is closed where it was, and comes no more', () => {
    const { model, happens, printed } = atWork({ motion: 'reduced' })
    model.pane.live(words('It goes on and'), FIRST_AT)
    happens({ type: 'steered', round: 1, text: 'Stop.', delivered: true })
    expect(printed()).toEqual(['◆ It goes on and', '[broken off]', 'a person says: Stop.'])
    model.pane.live(words('It goes', 'again'), FIRST_AT)
    model.pane.step(FIRST_AT + 50)
    expect(model.pane.items.map(({ text }) => text)).toEqual(['It goes'])
    happens(ended(1, worked))
    expect(printed().slice(0, 2)).toEqual(['◆ It goes', '[broken off]'])
  })

  test('of the leader goes on when a person tells one of its agents something', () => {
    const { model, happens, printed } = atWork({ motion: 'reduced' })
    model.pane.live(words('It goes on and'), FIRST_AT)
    happens({ type: 'steered', round: 1, text: 'Stop.', delivered: true, agent: 'backend-dev-1' })
    expect(printed()).toEqual(['a person says to backend-dev-1: Stop.'])
    expect(model.pane.items.map(({ text }) => text)).toEqual(['It goes on and'])
  })

  test('that comes to its end though it seemed to be dropped continues from there', () => {
    const { model, happens, printed } = atWork({ motion: 'reduced' })
    model.pane.live(words('Half of'), FIRST_AT)
    happens({ type: 'steered', round: 1, text: 'Stop.', delivered: true })
    printed()
    happens(says(1, 'Half of it, and the rest.'))
    expect(printed()).toEqual(['  it, and the rest.'])
  })

  test('in which a secret comes in pieces does not show it while it is live', () => {
    const { model } = atWork({ motion: 'reduced' })
    model.pane.live(words('It is hun'), FIRST_AT)
    model.pane.live(words('ter2.'), FIRST_AT)
    model.pane.step(FIRST_AT + 50)
    expect(model.pane.items.map(({ text }) => text)).toEqual(['It is [secret].'])
  })
})

describe('a reviewer', () => {
  const review: SessionEvent = {
    type: 'review-started',
    round: 1,
    review: 1,
    causes: ['asked'],
    model: null,
    effort: null,
  }

  function reviewing() {
    const opened = atWork({ motion: 'reduced' })
    for (const event of [ended(1, worked), review]) opened.happens(event)
    opened.printed()
    return opened
  }

  test('has its words typed behind a line, and what it does named as the review', () => {
    const { model, happens, printed } = reviewing()
    model.pane.live(words('One paragraph.\n\nTwo is not'), FIRST_AT)
    model.pane.step(FIRST_AT + 50)
    expect(printed()).toEqual(['┃ ◆ One paragraph.'])
    expect(drawScreen(model, FIRST_AT + 30_000).lines.join('\n')).toMatch(/Two is not\nreview 1 0:2\d/)
    happens(says(1, 'One paragraph.\n\nTwo is not the end.'))
    expect(printed().map(line => line.trimEnd())).toEqual(['┃   Two is not the end.'])
  })

  test('has its answer told once, in words, however it ends', () => {
    const { model, happens, printed } = reviewing()
    const answer = '{"verdict":"agreed","findings":[]}'
    model.pane.live(words(answer.slice(0, 9)), FIRST_AT)
    model.pane.step(FIRST_AT + 50)
    expect(drawScreen(model, FIRST_AT).lines.join('\n')).not.toContain('verdict')
    happens(says(1, answer))
    expect(printed()).toEqual([])
    model.pane.live(words('{"verdict"', 'again'), FIRST_AT)
    model.pane.step(FIRST_AT + 50)
    happens({
      type: 'review-ended',
      round: 1,
      review: 1,
      outcome: worked,
      answer: { verdict: 'agreed', summary: '', findings: [] },
      repeated: [],
      tree: 'a',
      durationMs: 1000,
      tokens: null,
    })
    expect(printed()).toEqual(['✔ review 1: agreed, 1.0 s'])
    for (const event of [started(2), turn(2, 't2'), says(2, '{"a":1}')]) happens(event)
    expect(printed().at(-1)).toBe('◆ {"a":1}')
  })
})

describe('a frame', () => {
  test('of a session at work', () => {
    const { model } = atWork({ motion: 'reduced' })
    model.pane.live(words('I look.'), FIRST_AT + 2000)
    model.pane.step(FIRST_AT + 3000)
    model.composer.setText('next 漢')
    expect(drawScreen(model, FIRST_AT + 3000)).toMatchInlineSnapshot(`
      {
        "caret": {
          "x": 9,
          "y": 4,
        },
        "lines": [
          "",
          "◆ I look.",
          "running · build X · round 1 of 3 · 0:03 · 0 tokens",
          "────────────────────────────────────────────────────────────",
          "› next 漢",
          "────────────────────────────────────────────────────────────",
          "Enter queues it · Tab tells the agent · Ctrl+C clears it",
        ],
      }
    `)
  })

  promise('O62', 'A sign of life moves only as long as something comes, and never with reduced motion')
  test('has a sign of life that moves as long as something comes, stands still after that, and is none with reduced motion', () => {
    const { model } = atWork()
    const sign = (at: number) => /^(\S) running · /m.exec(drawScreen(model, FIRST_AT + at).lines.join('\n'))?.[1]
    model.pane.live(words('I look.'), FIRST_AT + 60_000)
    const seen = [60_000, 61_000, 62_000].map(sign)
    expect(new Set(seen).size).toBe(3)
    expect(seen).not.toContain(undefined)
    expect(sign(64_000)).toBe(sign(63_000))
    expect(sign(200_000)).toBe(sign(63_000))
    model.pane.live(words(' More.'), FIRST_AT + 200_000)
    expect(sign(200_000)).not.toBe(sign(201_000))
    const still = drawScreen(atWork({ motion: 'reduced' }).model, FIRST_AT).lines.join('\n')
    expect(still).toMatch(/^running · /m)
  })

  promise(
    'O158',
    'Queued prompts are shown by their text above the status line, three of them; a low terminal has their number',
  )
  test('shows three queued prompts, and how many more there are; a low one their number', () => {
    const { model } = atWork({ motion: 'reduced' })
    model.queue = ['write the docs\nof it', 'two', 'three', 'four', 'five']
    const lines = () => drawScreen(model, FIRST_AT).lines
    Object.assign(model.options, { size: () => ({ columns: 80, rows: 12 }) })
    expect(lines().at(-5)).toContain('5 queued')
    Object.assign(model.options, { size: () => ({ columns: 60, rows: 24 }) })
    const at = lines().indexOf('queued 1  write the docs')
    expect(lines().slice(at + 1, at + 4)).toEqual(['queued 2  two', 'queued 3  three', 'and 2 more: /queue'])
    expect(lines()[at + 4]).toMatch(/^running · /)
    expect(lines()[at + 4]).not.toContain('queued')
  })

  test('of a question', () => {
    const { model } = atWork({ motion: 'reduced' })
    void model.choose({
      title: 'Which?',
      options: [
        { id: 'a', label: 'This' },
        { id: 'b', label: 'That', hint: 'or so' },
      ],
    })
    expect(drawScreen(model, FIRST_AT + 3000)).toMatchInlineSnapshot(`
      {
        "caret": null,
        "lines": [
          "running · build X · round 1 of 3 · 0:03 · 0 tokens",
          "Which?",
          "❯ 1. This",
          "  2. That  or so",
          "A digit or Enter chooses · Esc closes · ↑ ↓ select",
        ],
      }
    `)
  })

  test('for a screen reader is where one types, and what else is said comes as lines', () => {
    const { model, printed } = atWork({ reader: true })
    model.notice('Ctrl+C again leaves', 'warning')
    expect(printed()).toEqual(['Ctrl+C again leaves'])
    expect(drawScreen(model, FIRST_AT)).toEqual({ lines: ['> '], caret: { x: 2, y: 0 } })
    expect(drawScreen(model, FIRST_AT + 60_000)).toEqual(drawScreen(model, FIRST_AT))
  })

  test('a remark stays its time, and no longer, whatever becomes of the machine’s clock', async () => {
    const { model, clock } = atWork()
    model.notice('Taken', 'good')
    const hint = () => drawScreen(model, clock.now()).lines.at(-1)
    clock.sleepMachine(3_600_000)
    expect(hint()).toBe('Taken')
    await clock.advance(7_000)
    expect(hint()).toBe('Taken')
    await clock.advance(1_001)
    expect(hint()).toContain('Esc interrupt')
  })
})
