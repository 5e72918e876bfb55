import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { EventOf, SessionEvent } from '../../../src/core/events/events.ts'
import { fold } from '../../../src/core/state/fold.ts'
import type { TemplateView } from '../../../src/core/state/state.ts'
import { emptyState, type SessionState } from '../../../src/core/state/state.ts'
import type { TemplateKind } from '../../../src/core/template.ts'
import type { BoardRow } from '../../../src/core/view.ts'
import { eventLines } from '../../../src/doors/screen/blocks/event-lines.ts'
import { statusLineOf, windowTitle } from '../../../src/doors/screen/header/header.ts'
import { taskLines } from '../../../src/doors/screen/header/tasks.ts'
import { plainView } from '../../../src/doors/screen/plain-view.ts'
import { OWN_TEMPLATES } from '../../../src/modes/registry.ts'
import { notificationOf } from '../../../src/tell/notify/notification.ts'
import { cardOf } from '../../../src/tell/report/card.ts'
import { ReportFold } from '../../../src/tell/report/fold-report.ts'
import { markdownOf } from '../../../src/tell/report/markdown.ts'
import { htmlOf } from '../../../src/tell/report/page/page.ts'
import { widthOf } from '../../../src/tell/words/cells.ts'
import { statusLine } from '../../../src/tell/words/doing.ts'
import { describeEvent } from '../../../src/tell/words/event.ts'
import { wordsForVersion } from '../../../src/tell/words/plan.ts'
import {
  cardOfWork,
  followUpOfWork,
  ownBoard,
  plansOf,
  sectionOfWork,
  statusOfWork,
  titleOfRound,
  wordsForStep,
  workReport,
} from '../../../src/tell/words/work.ts'
import { forReader, NOW, plain } from '../../doors/screen/header/session.ts'
import { hostileText } from '../../doors/screen/hostile-text.ts'
import { sampleEvents } from '../../doors/screen/samples.ts'
import { type RelayWork, relayTemplate } from '../../support/relay-template.ts'
import { created, foldAll, recorded, SESSION, worked } from '../../support/session-events.ts'
import { HERE } from '../report/made-up-night.ts'

const GOAL = 'Carry it.\nto the bridge\nacross the water\nhome'

/** The kind of a relay that is told so. */
function kindOf(view?: TemplateView<RelayWork>): TemplateKind {
  return view === undefined ? relayTemplate() : relayTemplate(view)
}

const begins: SessionEvent = { ...sampleEvents['round-started'], round: 1, part: 'leg' }
const ends: SessionEvent = { ...sampleEvents['round-ended'], round: 1, outcome: worked, counts: true }
const again: SessionEvent = { ...sampleEvents['round-started'], round: 2, part: 'leg' }

/** The events of a relay whose second leg is being run. */
const events = [{ ...created(), template: 'relay', goal: GOAL }, begins, ends, again]

function stateOf(kind: TemplateKind, told: readonly SessionEvent[] = events): SessionState {
  const templates = new Map([...OWN_TEMPLATES, [kind.name, kind]])
  return recorded(told).reduce((state, event) => fold(state, event, templates), emptyState(SESSION))
}

function reportOf(kind: TemplateKind) {
  const report = new ReportFold(SESSION, new Map([...OWN_TEMPLATES, [kind.name, kind]]))
  for (const event of recorded(events)) report.add(event)
  const data = report.data(() => 'running')
  if (data === null) throw new Error('There is no report.')
  return data
}

describe('a template of a program', () => {
  const state = stateOf(kindOf())
  const place = { columns: 100, theme: plain, now: (state.running?.startedAt ?? 0) + 12_000 }

  test('is on the screen with its own words, board and progress', () => {
    const own = ownBoard(state)
    expect(taskLines({ board: null, plan: [], own: own && { ...own, now: place.now } }, { ...place, rows: 9 })).toEqual(
      ['  ✔ L1  to the bridge', '  ▸ L2  across the water  (runner 0:12)', '  ○ L3  home'],
    )
    expect(statusLineOf({ state, board: null, queued: 0 }, place)).toBe(
      'starting codex · leg 2 of 3 · a leg · round 2 of 3 · 0:15 · 0 tokens',
    )
    expect(windowTitle({ state, board: null, live: [] }, { symbols: true, now: NOW })).toBe(
      '▸ starting codex · leg 2 of 3 · round 2 of 3 — Carry it.',
    )
  })

  test('is for a screen reader in words', () => {
    const own = ownBoard(state)
    const shown = { board: null, plan: [], own: own && { ...own, now: place.now } }
    expect(taskLines(shown, { ...place, rows: 9, theme: forReader })).toEqual([
      'done: L1  to the bridge',
      'now: L2  across the water  (runner 0:12)',
      'to do: L3  home',
    ])
  })

  test('is on plain lines, and in the status bar', () => {
    const [round, end] = recorded(events).slice(1)
    expect(round && describeEvent(round, stateOf(kindOf(), events.slice(0, 2)))?.text).toMatch(/^round 1 {2}a leg: /)
    expect(end && describeEvent(end, stateOf(kindOf(), events.slice(0, 3)))?.text).toMatch(/, leg 2 of 3$/)
    expect(statusLine(state, null, NOW)).toBe('Carry it. · starting codex · leg 2 of 3 · round 2 of 3')
    expect(wordsForStep(state, { kind: 'look', name: 'the runner' }).words).toBe('timing the runner')
    expect(wordsForStep(state, { kind: 'write', name: '' }).words).toBe('writing files')
    const looking: SessionEvent = { type: 'step-started', step: 1, kind: 'look', name: 'the watch' }
    const between = stateOf(kindOf(), [...events.slice(0, 3), looking])
    expect(statusLine(between, null, between.updatedAt)).toBe(
      'Carry it. · timing the watch 0:00 · leg 2 of 3 · round 1 of 3',
    )
    const looked = recorded([{ ...sampleEvents.looked, what: 'the watch' }])[0]
    expect(looked && describeEvent(looked, between)?.text).toBe('timing the watch')
  })

  test('is in the report and on its card', () => {
    const data = reportOf(kindOf())
    expect(data.work).toEqual({
      follow: null,
      status: 'leg 2 of 3',
      card: [{ label: 'baton', text: 'carried 1 times' }],
      section: { title: 'The relay', note: 'By the clock.', text: 'to the bridge' },
      board: {
        count: 3,
        rows: [
          { mark: 'done', id: 'L1', text: 'to the bridge', who: null },
          { mark: 'now', id: 'L2', text: 'across the water', who: 'runner' },
          { mark: 'to-do', id: 'L3', text: 'home', who: null },
        ],
      },
    })
    const markdown = markdownOf(data, HERE)
    expect(markdown).toContain('## The relay\n\nBy the clock.\n\n> to the bridge')
    expect(markdown).toContain('| L2 | across the water | runner | at work |')
    const page = htmlOf(data, HERE)
    expect(page).toContain('<h2>The relay</h2>')
    expect(page).toContain('<td>across the water<small>runner</small></td>')
    const card = cardOf(data, { commands: [], columns: 80, full: null }).map(({ text }) => text)
    expect(card).toContain('baton    carried 1 times')
    expect(card).toContain('work     leg 2 of 3')
  })

  test('is in the notification of a round that ended', () => {
    const end = recorded(events)[2]
    const told = end && notificationOf(end, stateOf(kindOf(), events.slice(0, 3)))
    expect(told).toMatchObject({ event: 'round-ended', work: 'leg 2 of 3' })
    expect(told?.message).toContain(' It is at: leg 2 of 3. Goal: ')
  })

  test('is for programs a board with times', () => {
    expect(workReport(state, null, true)).toEqual({
      template: 'relay',
      isKnown: true,
      status: 'leg 2 of 3',
      round: null,
      board: {
        from: 'template',
        count: 3,
        rows: [
          { mark: 'done', id: 'L1', text: 'to the bridge', who: null, since: null },
          { mark: 'now', id: 'L2', text: 'across the water', who: 'runner', since: expect.stringMatching(/Z$/) },
          { mark: 'to-do', id: 'L3', text: 'home', who: null, since: null },
        ],
      },
    })
  })

  test('that is not known any more is shown as any other session', () => {
    const unknown = recorded(events).reduce((state, event) => fold(state, event, OWN_TEMPLATES), emptyState(SESSION))
    expect(workReport(unknown, null, true)).toEqual({
      template: 'relay',
      isKnown: false,
      status: null,
      round: null,
      board: null,
    })
    expect(statusLine(unknown, null, NOW)).toBe('Carry it. · starting codex · round 2 of 3')
  })
})

describe('a round that has a name of its own', () => {
  const DETAILS = ['cat legs/2.md | run --fast', '  over the \u001b[31mbridge\u202e']
  const kind = kindOf({
    round: ({ legs, run }) => ({ title: `Leg ${run + 1}/${legs.length}: ${legs[run]}`, lines: DETAILS }),
  })
  const state = stateOf(kind)
  const now = (state.running?.startedAt ?? 0) + 12_000
  const place = { columns: 120, theme: plain, now }
  const NAME = 'Leg 2/3: across the water'
  const event = recorded(events)[3]
  const data = { state, board: null, live: [], queued: 0 }

  test('has it in the header in the place of its number, shortened where there is little room', () => {
    expect(statusLineOf(data, place)).toBe(`starting codex · Carry it. · ${NAME} · 0:15 · 0 tokens`)
    for (let columns = 20; columns < 100; columns++)
      expect(widthOf(statusLineOf(data, { ...place, columns }))).toBeLessThanOrEqual(columns)
    expect(statusLineOf(data, { ...place, columns: 44 })).toContain('Leg 2/3: ')
    expect(windowTitle(data, { symbols: true, now })).toBe('▸ starting codex · Leg 2/3: across the… — Carry it.')
    expect(statusLine(state, null, now)).toMatch(/^Carry it\. · starting codex · Leg 2\/3: across the…/)
  })

  test('begins with it, and what belongs to it stands below', () => {
    const told = event && describeEvent(event, state)
    const more = ['cat legs/2.md | run --fast', '  over the ␛[31mbridge<U+202E>']
    expect(told).toEqual({ text: NAME, more, tone: 'strong', moreTone: 'quiet' })
    const written: string[] = []
    if (event) plainView(text => void written.push(text), { colour: true }).event(event, state)
    expect(written.join('')).toContain(`\u001b[2m${more[1]}\u001b[22m`)
    const lines = event === undefined ? [] : eventLines(event, state, { columns: 100, theme: plain, full: false })
    expect(lines).toEqual(['', expect.stringMatching(new RegExp(`^── ${NAME} ─+$`)), ...more.map(line => `  ${line}`)])
    const read = event === undefined ? [] : eventLines(event, state, { columns: 100, theme: forReader, full: false })
    expect(read).toEqual(['', NAME, ...more.map(line => `  ${line}`)])
  })

  test('is not called by its number at its end either', () => {
    const end = recorded(events)[2]
    expect(end && describeEvent(end, stateOf(kind, events.slice(0, 3)))?.text).toMatch(/^round ended: worked, /)
  })

  test('is called so while it runs, and not once the session has ended or the plan is changed', () => {
    expect(workReport(state, null, true).round).toMatchObject({ title: NAME })
    expect(workReport(state, null, false).round).toBeNull()
    expect(titleOfRound(stateOf(kind, [...events, sampleEvents['session-ended']]))).toBeNull()
    const asked = stateOf(kind, [...events.slice(0, 3), { type: 'replan-asked', text: 'home first' }, again])
    expect(event && describeEvent(event, asked)?.text).toMatch(/^round 2 {2}a leg: /)
    expect(titleOfRound(stateOf(kindOf({ round: () => null })))).toBeNull()
  })

  test('may say much, of which 100 lines are shown', () => {
    const long = Array.from({ length: 70 }, () => `${'x'.repeat(5000)}\ny`)
    const much = titleOfRound(stateOf(kindOf({ round: () => ({ title: long.join(), lines: long }) })))
    expect(much?.title.length).toBe(120)
    expect([much?.lines.length, Math.max(...(much?.lines ?? []).map(line => line.length))]).toEqual([70, 2000])
    const short = titleOfRound(stateOf(kindOf({ round: () => ({ title: 'a', lines: Array(90).fill('x\ny') }) })))
    expect(short?.lines).toHaveLength(100)
  })
})

test('a version of a plan is told with who made it and what became of it', () => {
  const by = (who: string, remark: string | null = null) => ({ author: 'planner', accepted: { by: who, remark } })
  expect(wordsForVersion({ author: 'person', accepted: null }, true)).toBe('by a person; it waits for you')
  expect(wordsForVersion({ author: 'planner', accepted: null }, false)).toBe('by the planner')
  expect(wordsForVersion(by('person', 'be quick'), true)).toBe('by the planner; accepted by a person: be quick')
  expect(wordsForVersion(by('go'), false)).toBe('by the planner; changed as a person said, and accepted automatically')
  expect(wordsForVersion(by('auto'), false)).toBe('by the planner; accepted automatically, without showing it')
})

test('without a board of its own the tasks are the board, and who works on them is said', () => {
  const state: SessionState = {
    ...stateOf(kindOf({})),
    agents: [
      { instance: 'qa-20261120T224500000', agent: 'qa', tasks: ['T2.1'], request: 'x', since: 1000, threads: [] },
    ],
  }
  const board = {
    title: null,
    tasks: [
      { id: 'T1', name: 'One', phase: null, done: true },
      { id: 'T2', name: 'Two', phase: null, done: false },
      { id: 'T3', name: 'Three', phase: null, done: false, parked: 'It failed.' },
    ],
    current: 'T2',
  }
  const rows = (isRunning: boolean) => workReport(state, board, isRunning).board?.rows.map(row => Object.values(row))
  expect(rows(true)).toEqual([
    ['done', 'T1', 'One', null, null],
    ['now', 'T2', 'Two', 'qa', '1970-01-01T00:00:01.000Z'],
    ['parked', 'T3', 'Three', null, null],
  ])
  expect(rows(false)?.[1]).toEqual(['to-do', 'T2', 'Two', null, null])
})

test('a task that was claimed is shown as that, and of several who work on one the first one says since when', () => {
  const agent = { agent: 'qa', tasks: ['T1'], request: 'x', threads: [] }
  const state: SessionState = {
    ...stateOf(kindOf({})),
    agents: [
      { ...agent, instance: 'qa-20261120T224500000', since: 2000 },
      { ...agent, instance: 'qa-20261120T224400000', since: 1000 },
    ],
  }
  const tasks = [
    { id: 'T1', name: 'One', phase: null, done: false, claimed: true as const },
    { id: 'T2', name: 'Two', phase: null, done: false },
  ]
  const { rows } = workReport(state, { title: null, tasks, current: 'T1' }, true).board ?? {}
  expect(rows).toMatchObject([
    { mark: 'claimed', who: 'qa, qa', since: '1970-01-01T00:00:01.000Z' },
    { mark: 'to-do', since: null },
  ])
})

test('a board without rows is none, and says nothing of how far the work is', () => {
  const state = stateOf(kindOf({ board: () => [] }))
  expect([workReport(state, null, true).board, statusOfWork(state)]).toEqual([null, null])
})

test('a step for which the view has no words is named as any other, and a short word is there for it', () => {
  const state = stateOf(kindOf({ step: () => ' ' }))
  expect(wordsForStep(state, { kind: 'look', name: 'size' })).toEqual({ words: 'looking: size', short: 'size' })
})

test('a view may say much, of which a card and a report show what has room there', () => {
  const long = 'x'.repeat(50_000)
  const state = stateOf(
    kindOf({
      card: () =>
        Array.from({ length: 9 }, () => ({ label: 'a long label', text: long, rows: Array(300).fill({ text: long }) })),
      report: () => ({ title: long, note: long, text: long }),
    }),
  )
  const card = cardOfWork(state)
  expect([card.length, card[0]?.label]).toEqual([6, 'a long …'])
  expect([card[0]?.rows?.length, card[0]?.rows?.[0]?.text.length]).toEqual([200, 400])
  const section = sectionOfWork(state)
  expect([section?.title.length, section?.note?.length]).toEqual([120, 400])
  for (const text of [card[0]?.text, section?.text]) expect(text).toMatch(/^x+\n\[… \d+ more characters\]$/)
})

describe('of what a step has come to a person is told', () => {
  const state = stateOf(kindOf({}))
  const ran = (more: Partial<EventOf<'command-ran'>>) => {
    const [event] = recorded([{ ...sampleEvents['command-ran'], changed: [], changedCount: 0, ...more }])
    return event && describeEvent(event, state)
  }
  const many = Array.from({ length: 10 }, (_, n) => `f${n}`)

  test('how a command came out, with what it printed last if that is not good', () => {
    expect(ran({})).toMatchObject({ tone: 'warning', more: [expect.stringContaining('an unused import')] })
    expect(ran({ status: 'passed', exitCode: 0 })).toMatchObject({ tone: 'good', more: [] })
    expect(ran({ status: 'broken-off', exitCode: null })).toMatchObject({ tone: 'quiet', more: [] })
    expect(ran({ problem: 'It wants\nthe network.' })?.more[0]).toBe('It wants ⏎ the network.')
    expect(ran({ changed: many, changedCount: 12 })?.more[0]).toBe(
      `it changed 12 files: ${many.join(', ')}, … and 2 more`,
    )
  })

  test('which files it wrote, or why it has written none', () => {
    const wrote = (files: EventOf<'wrote'>['files'], problem: string | null = null) => {
      const [event] = recorded([{ ...sampleEvents.wrote, files, problem }])
      return event && describeEvent(event, state)
    }
    const files = [...many, 'g', 'h'].map(path => ({ path, bytes: 10, sha256: 'ab' }))
    expect(wrote(files)?.text).toBe(`wrote 12 files (120 bytes): ${many.join(', ')}, … and 2 more`)
    expect(wrote([], 'docs is a link.')).toMatchObject({
      text: 'nothing was written: docs is a link.',
      tone: 'warning',
    })
  })
})

test('a board without a status says how many rows are done', () => {
  const row: BoardRow = { mark: 'done', id: 'a', text: 'b', who: null, since: null }
  const rows: BoardRow[] = [row, { ...row, mark: 'failed' }, { ...row, mark: 'to-do' }]
  expect(statusOfWork(stateOf(kindOf({ board: () => rows })))).toBe('1 of 3 done')
})

test('100,000 rows are 500, of which the screen shows those around what is at work', () => {
  const row: BoardRow = { mark: 'done', id: 'a', text: 'b'.repeat(100_000), who: null, since: null }
  const rows: BoardRow[] = Array.from({ length: 100_000 }, (_, at) => ({ ...row, mark: at < 40 ? 'done' : 'to-do' }))
  const state = stateOf(kindOf({ board: () => rows }))
  const own = ownBoard(state)
  expect(own).toMatchObject({ count: 100_000, rows: { length: 500 } })
  expect(JSON.stringify(workReport(state, null, true)).length).toBeLessThan(500_000)
  const lines = taskLines(
    { board: null, plan: [], own: own && { ...own, now: NOW } },
    { columns: 40, rows: 8, theme: plain },
  )
  expect(lines).toHaveLength(8)
  for (const line of lines) expect(widthOf(line)).toBeLessThanOrEqual(40)
  const { rows: kept, count } = reportOf(kindOf({ board: () => rows })).work.board ?? { rows: [], count: 0 }
  expect([kept.length, count]).toEqual([200, 100_000])
})

test('nothing that a view says steers the terminal, breaks a line or is read as HTML, and all of it is bounded', () => {
  fc.assert(
    fc.property(hostileText, fc.integer({ min: 1, max: 3 }), (text, times) => {
      const long = text.repeat(times * 50)
      const row: BoardRow = { mark: 'now', id: long, text: long, who: long, since: -1 }
      const kind = kindOf({
        step: () => long,
        round: () => ({ title: long, lines: [long, long] }),
        status: () => long,
        board: () => [row, row],
        card: () => [{ label: long, text: long, rows: [{ mark: 'done', text: long }] }],
        report: () => ({ title: long, note: long, text: long }),
      })
      const state = stateOf(kind)
      const own = ownBoard(state)
      const place = { columns: 60, theme: plain, now: NOW }
      const data = reportOf(kind)
      const [, , end, begun] = recorded(events)
      if (begun === undefined) throw new Error('No round has begun.')
      const notification = end && notificationOf(end, state)
      const lines = [
        ...taskLines({ board: null, plan: [], own: own && { ...own, now: NOW } }, { ...place, rows: 9 }),
        statusLineOf({ state, board: null, queued: 0 }, place),
        ...eventLines(begun, state, { columns: 60, theme: plain, full: false }),
        ...cardOf(data, { commands: [], columns: 60, full: null }).map(line => line.text),
      ]
      for (const line of lines) expect(widthOf(line)).toBeLessThanOrEqual(60)
      const loose = [statusLine(state, null, NOW), notification?.message ?? '', ...lines]
      for (const line of loose) expect(line).not.toMatch(/[\p{Cc}\u2028\u2029\p{Bidi_Control}]/u)
      const markdown = markdownOf(data, HERE)
      expect(markdown).not.toMatch(/[^\n\P{Cc}]|[\p{Bidi_Control}\u2028]/u)
      expect(JSON.stringify(data.work).length).toBeLessThan(200_000)
    }),
  )
})

test('a title with HTML in it is text on the page', () => {
  const evil = '<script>alert(1)</script>'
  const page = htmlOf(reportOf(kindOf({ report: () => ({ title: evil, note: evil, text: evil }) })), HERE)
  expect(page).not.toContain('<script')
})

describe('what programs, and a session that follows, are given by a template', () => {
  const plan = { author: 'planner', feedback: null, sha256: 'a', diff: null, accepted: null }

  test('stands in `work` beside the fields of every session, which it cannot replace', () => {
    const state = stateOf(kindOf({ data: () => ({ laps: 2, at: new Date(0), template: 'another' }) }))
    const work = workReport(state, null, true)
    expect(work).toMatchObject({ laps: 2, at: '1970-01-01T00:00:00.000Z', template: 'relay', isKnown: true })
  })

  test('is refused in a sentence where it is no JSON, or too much', () => {
    const round: Record<string, unknown> = {}
    round.round = round
    const problemOf = (data: Record<string, unknown>) => {
      return (workReport(stateOf(kindOf({ data: () => data })), null, true) as { problem?: string }).problem
    }
    expect(problemOf(round)).toContain('the view of the template cannot be shown')
    expect(problemOf({ text: 'x'.repeat(600_000) })).toBe('The data has more than 512 KiB.')
  })

  test('is bounded for the session that follows', () => {
    const told = followUpOfWork(stateOf(kindOf({ followUp: () => 'x'.repeat(90_000) }))) ?? ''
    expect(told.length).toBeLessThanOrEqual(64 * 1024)
    expect(followUpOfWork(stateOf(kindOf()))).toBeNull()
    expect(followUpOfWork(stateOf(kindOf({ followUp: () => null })))).toBeNull()
  })

  test('are the versions of a plan, of which the last 50 are shown', () => {
    const versions = Array.from({ length: 60 }, (_, at) => ({ ...plan, version: at + 1, text: 'p'.repeat(200_000) }))
    const shown = plansOf(stateOf(kindOf({ plans: () => versions })))
    expect(shown.map(({ version }) => version)).toEqual(versions.slice(10).map(({ version }) => version))
    expect(shown[0]?.text.length).toBeLessThanOrEqual(128 * 1024 + 100)
    expect(plansOf(stateOf(kindOf()))).toEqual([])
    expect(plansOf(stateOf(kindOf({ plans: () => [{ ...plan, version: 1, text: 7 as never }] })))).toEqual([])
  })
})

describe('a view that cannot be used', () => {
  const broken = () => {
    throw new Error('no such leg')
  }
  const WHAT = 'the view of the template cannot be shown: no such leg'

  test('ends no session: that it threw is said in its place', () => {
    const kind = kindOf({
      step: broken,
      round: broken,
      status: broken,
      board: broken,
      card: broken,
      report: broken,
    })
    const state = stateOf(kind)
    expect(statusOfWork(state)).toBe(WHAT)
    expect(wordsForStep(state, { kind: 'look', name: 'x' }).words).toBe(WHAT)
    expect(ownBoard(state)?.rows).toEqual([{ mark: 'failed', id: '!', text: WHAT, who: null, since: null }])
    expect(reportOf(kind).work).toMatchObject({ card: [{ text: WHAT }], section: { text: WHAT } })
    expect(titleOfRound(state)).toEqual({ title: WHAT, lines: [] })
  })

  test.each([
    ['a board that is no list', { board: () => ({}) as never }, 'board is no list'],
    ['a row without a mark', { board: () => [{ id: 'a' }] as never }, 'board[0].mark is none of to-do, now, '],
    [
      'a row with a number',
      { board: () => [{ mark: 'now', id: 7, text: '', who: null, since: null }] as never },
      'board[0].id is no text',
    ],
    [
      'a time that is none',
      { board: () => [{ mark: 'now', id: '', text: '', who: null, since: Number.NaN }] },
      'board[0].since is no time',
    ],
    [
      'a moment that no calendar has',
      { board: () => [{ mark: 'now', id: '', text: '', who: null, since: 1e300 }] },
      'board[0].since is no time',
    ],
  ] satisfies [string, TemplateView<RelayWork>, string][])('%s', (_, view, problem) => {
    const [row] = ownBoard(stateOf(kindOf(view)))?.rows ?? []
    expect(row?.text).toContain(problem)
  })

  test.each([
    ['lines that are no list', () => ({ title: 'Leg', lines: 'x' }), 'round.lines is no list'],
    ['a line that is no text', () => ({ title: 'Leg', lines: ['x', 7] }), 'round.lines[1] is no text'],
    ['no title', () => ({ lines: [] }), 'round.title is no text'],
  ])('of a round: %s', (_, round, problem) => {
    const title = titleOfRound(stateOf(kindOf({ round: round as never })))
    expect(title?.title).toContain(problem)
  })
})

test('of rounds that share a number the one that changes the plan says so, from its beginning to its end', () => {
  const started = (round: number): SessionEvent => ({ ...sampleEvents['round-started'], round })
  const ended: SessionEvent = { ...sampleEvents['round-ended'], round: 2, counts: false }
  const night: SessionEvent[] = [
    created(),
    sampleEvents['replan-asked'],
    started(2),
    ended,
    { ...sampleEvents.replanned, round: 2 },
    started(2),
    { ...ended, counts: true },
  ]
  const told = recorded(night).map((event, at) => describeEvent(event, foldAll(night.slice(0, at + 1)))?.text)
  expect(told[2]).toMatch(/^round 2, changing the plan: goal-worker, /)
  expect(told[3]).toMatch(/^round 2, changing the plan, ended: worked, /)
  expect(told[5]).toMatch(/^round 2 {2}goal-worker, /)
  expect(told[6]).toMatch(/^round 2 ended: worked, /)
})
