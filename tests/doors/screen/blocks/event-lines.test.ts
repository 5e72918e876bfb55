import fc from 'fast-check'
import { beforeAll, describe, expect, test } from 'vitest'
import type { Recorded, SessionEvent } from '../../../../src/core/events/events.ts'
import type { Item } from '../../../../src/core/events/items.ts'
import { emptyState, type PlanStep } from '../../../../src/core/state/state.ts'
import { eventLines } from '../../../../src/doors/screen/blocks/event-lines.ts'
import { outputLines } from '../../../../src/doors/screen/blocks/item-lines.ts'
import type { BlockOptions } from '../../../../src/doors/screen/blocks/layout.ts'
import { loadGrammars } from '../../../../src/doors/screen/blocks/markdown.ts'
import { openTheme } from '../../../../src/doors/screen/terminal/theme.ts'
import { translateItem } from '../../../../src/engines/codex/translate-item.ts'
import { describeItem } from '../../../../src/tell/words/item.ts'
import { cpuMs, timesSlower } from '../../../support/cpu-time.ts'
import { promise } from '../../../support/promise.ts'
import { fold } from '../../../support/session-events.ts'
import { hostileText } from '../hostile-text.ts'
import { moreSamples, recorded, sampleEvents, sampleItems, sampleOutcomes } from '../samples.ts'
import { dark, expectFitting, plain, reader, seen, widths } from './terminal-lines.ts'

beforeAll(loadGrammars)

const options: BlockOptions = { columns: 60, theme: dark, full: false }

function draw(event: SessionEvent, how: Partial<BlockOptions> = {}): string[] {
  const [created, then] = recorded([sampleEvents['session-created'], event]) as [Recorded, Recorded]
  return eventLines(then, fold(fold(emptyState('20261120_1'), created), then), { ...options, ...how })
}

const item = (of: Item): SessionEvent => ({ type: 'item-completed', round: 1, item: of })
const shown = (event: SessionEvent, how: Partial<BlockOptions> = {}) => seen(draw(event, how)).trim()
const command = (of: Partial<typeof sampleItems.command>, how: Partial<BlockOptions> = {}) =>
  shown(item({ ...sampleItems.command, ...of }), how)

const all: readonly SessionEvent[] = [
  ...Object.values(sampleEvents),
  ...Object.values(moreSamples),
  ...Object.values(sampleItems).map(item),
  ...sampleOutcomes.map(outcome => ({ ...sampleEvents['session-ended'], outcome })),
]

test('each event fits, and holds nothing that a terminal obeys but colours and links', () => {
  for (const event of all) {
    for (const theme of [dark, plain, reader]) {
      for (const columns of [...widths, 120]) {
        for (const full of [false, true]) expectFitting(draw(event, { theme, columns, full }), columns)
      }
    }
  }
})

test('each event fits with any text in it', () => {
  // As JSON, so that every text of every event is replaced, but for the words that are our own.
  const own =
    /^(?:type|status|kind|do|change|class|why|remedy|by|limit|reason|outcome|source|phase|at|until|retryAt|id|file|when|how|severity|verdict|part|door|result|role)$/
  fc.assert(
    fc.property(
      fc.constantFrom(...all),
      hostileText,
      fc.constantFrom(...widths),
      fc.boolean(),
      (event, text, columns, full) => {
        const wild = JSON.parse(JSON.stringify(event), (key, value) =>
          typeof value === 'string' && !own.test(key) ? text : value,
        )
        expectFitting(draw(wild, { columns, full }), columns)
      },
    ),
  )
})

test('in the scrollback a blank line parts an event from the one before; in full its time stands in front', () => {
  expect(seen(draw(item(sampleItems.image)))).toBe('\nimage  /work/shot.png')
  expect(seen(draw(item(sampleItems.image), { full: true }))).toBe('22:41:08  image  /work/shot.png')
  expect(seen(draw(item(sampleItems.image), { full: true, columns: 40 }))).toBe('22:41:08\nimage  /work/shot.png')
  expect(draw(sampleEvents.usage)).toEqual([])
})

describe('a command', () => {
  test('is shown with its end, its time and its last lines', () => {
    expect(command({})).toBe('$ npm test  ✘ exit 1, 4.2 s\n  one\n  two\n\n  three\n  four')
    expect(command({ status: 'completed', exitCode: 0, output: '' })).toBe('$ npm test  ✔ exit 0, 4.2 s')
    const script = {
      command: 'cat > a.txt <<EOF\none\ntwo\nEOF',
      status: 'completed',
      exitCode: 0,
      output: '',
    } as const
    expect(command(script)).toBe('$ cat > a.txt <<EOF\n  … 3 more lines  ✔ exit 0, 4.2 s')
    expect(command(script, { full: true })).toMatch(/one\n +two\n +EOF {2}✔ exit 0/)
    expect(command({ ...script, command: 'cd a\nmake' })).toBe('$ cd a\n  make  ✔ exit 0, 4.2 s')
    expect(command({ status: 'declined', exitCode: null, durationMs: null, output: '' })).toBe('$ npm test  ✘ declined')
    expect(command({ status: 'running', exitCode: null, durationMs: null, output: '' })).toBe('$ npm test  running')
    expect(command({}, { theme: reader })).toContain('$ npm test  exit 1, 4.2 s')
  })

  test('that failed shows twelve lines, one that worked five, and in full all', () => {
    const output = Array.from({ length: 30 }, (_, i) => `line ${i + 1}`).join('\n')
    const failed = command({ output })
    expect(failed).toContain('  … 18 lines before\n  line 19\n')
    expect(command({ output, exitCode: 0 })).toContain('  … 25 lines before\n  line 26\n')
    expect(command({ output, exitCode: 0 }, { full: true })).toContain('  line 1\n')
    expect(seen(outputLines({ ...sampleItems.command, output }, options))).toContain('  line 1\n')
  })

  test('has its colours and movements taken out of what it printed, and its progress bars', () => {
    const output =
      '\x1b[1;32mok\x1b[0m\x1b[K\n10 %\r50 %\r100 %\r\n\x1b]8;;http://x\x07link\x1b]8;;\x07 \x1b]0;t\x1b\\\x1b[?25l\x1b(Bend\x1b'
    expect(command({ output, exitCode: 0 })).toMatch(/\n {2}ok\n {2}100 %\n {2}link end␛$/)
  })

  test('of 5 MB, and one that prints 5 MB, are drawn soon', () => {
    const start = cpuMs()
    const long = 'x'.repeat(5_000_000)
    for (const full of [false, true])
      expectFitting(draw(item({ ...sampleItems.command, command: long, output: long }), { full }), 60)
    expect(cpuMs() - start).toBeLessThan(4000 * timesSlower())
  })
})

promise(
  'O58',
  'Words, commands and files of an agent have marks of their own; the outcome of a command is never cut; a long path breaks behind a slash',
)
test('words, commands and files of an agent have marks of their own in the margin, but for a screen reader', () => {
  const words = item({ ...sampleItems['agent-message'], text: 'One **two**\n\n- three' })
  expect(shown(words)).toBe('◆ One two\n\n  • three')
  expect(shown(words, { theme: reader })).toBe('One two\n\n- three')
  const marks = (['agent-message', 'command', 'file-change'] as const).map(kind =>
    shown(item(sampleItems[kind])).charAt(0),
  )
  expect(marks).toEqual(['◆', '$', '✎'])
})

promise('O58')
test('of what an agent at work has run, the outcome is not what is cut', () => {
  const command = {
    ...sampleItems.command,
    command: `make ${'x'.repeat(100)}`,
    exitCode: 0,
    status: 'completed',
  } as const
  const event = { type: 'item-completed', round: 1, item: command, instance: 'backend-dev' } as const
  expect(shown(event)).toBe('backend-dev  $ make xxxxxxxxxxxxxxxxxxxx…  → exit 0 in 4.2 s')
  expect(shown(event, { columns: 30 })).toBe('backend-dev  $ make xxxxxxxxx…\n→ exit 0 in 4.2 s')
})

describe('file changes', () => {
  test('have names, counts, line numbers and what was done', () => {
    const diff =
      '--- a\n+++ b\n@@ -9,2 +9,3 @@ fn\n same\n-old\n+new\n+newer\n@@ -40 +41 @@\n-x\n+y\n\\ No newline at end of file\n'
    const changes = [...sampleItems['file-change'].changes.slice(1), { ...sampleItems['file-change'].changes[0], diff }]
    expect(shown(item({ ...sampleItems['file-change'], changes } as Item))).toMatchInlineSnapshot(`
      "✎ new b.ts  +2
      1 + one
      2 + two

      ✎ deleted /else/c.ts
      ✎ moved d.ts to e.ts
      ✎ src/a.ts  +3 −2
       9   same
      10 - old
      10 + new
      11 + newer
         ⋮
      40 - x
      41 + y
      \\ No newline at end of file"
    `)
    expect(shown(item({ ...sampleItems['file-change'], status: 'declined' }))).toContain('src/a.ts  +2 −1  → declined')
  })

  test('have long lines wrapped behind their numbers, if not in full to three rows', () => {
    const words = Array.from({ length: 30 }, (_, i) => `word${i}`).join(' ')
    const changes = [{ path: '/work/a', change: 'add', movedTo: null, diff: `${words}\n  short` } as const]
    const change: Item = { ...sampleItems['file-change'], changes }
    expect(shown(item(change), { columns: 40 })).toMatchInlineSnapshot(`
      "✎ new a  +2
      1 + word0 word1 word2 word3 word4 word5
          word6 word7 word8 word9 word10
          word11 word12 word13 word14 word15…
      2 +   short"
    `)
    expect(shown(item(change), { columns: 40, full: true })).toContain('\n    word26 word27 word28 word29\n2 +   short')
    const unbroken = { ...change, changes: [{ ...changes[0], diff: 'x'.repeat(200) }] } as Item
    expect(shown(item(unbroken), { columns: 40 })).toMatch(/\n1 \+ x{36}\n {4}x{36}\n {4}x{35}…$/)
    const long = { ...change, changes: [{ ...changes[0], diff: 'e\u0301'.repeat(5000) }] } as Item
    expect(shown(item(long), { columns: 2000 })).toMatch(/…$/)
  })

  test('of many lines are clipped, by file and in all; in full they are not', () => {
    const diff = Array.from({ length: 100 }, (_, i) => `line ${i + 1}`).join('\n')
    const changes = Array.from(
      { length: 5 },
      (_, i) => ({ path: `/work/${i}`, change: 'add', movedTo: null, diff }) as const,
    )
    const change: Item = { ...sampleItems['file-change'], changes }
    expect(shown(item(change)).match(/… 60 more lines/g)).toHaveLength(3)
    expect(shown(item(change)).match(/… 100 more lines/g)).toHaveLength(2)
    // With a blank line between any two files.
    expect(draw(item(change), { full: true })).toHaveLength(509)
  })

  promise('O61')
  test('link to files that are there, and to no other', () => {
    const theme = openTheme({ theme: 'dark', env: { TERM: 'xterm-256color' }, reader: false, host: 'night-desk' })
    const lines = draw(item(sampleItems['file-change']), { theme }).join('\n')
    const links = lines
      .split('\x1b]8;;')
      .map(part => part.split('\x07')[0])
      .filter(url => url?.startsWith('file:'))
    expect(links).toEqual([
      'file://night-desk/work/src/a.ts',
      'file://night-desk/work/b.ts',
      'file://night-desk/work/e.ts',
    ])
  })

  promise('O59', 'A change of which only the beginning is kept is counted whole')
  test('of which only the beginning is kept are counted whole', () => {
    const content = Array.from({ length: 2000 }, (_, i) => `line ${i + 1} ${'x'.repeat(60)}\n`).join('')
    const update = `@@ -1,2 +1,1801 @@\n same\n-old\n${content.replace(/^/gm, '+').slice(0, -1)}`
    const translated = translateItem({
      type: 'fileChange',
      id: 'c1',
      status: 'completed',
      changes: [
        { path: '/work/a', kind: { type: 'add' }, diff: content },
        { path: '/work/b', kind: { type: 'update', move_path: null }, diff: update },
      ],
    })
    const lines = shown(item(translated))
    expect(lines).toContain('✎ new a  +2,000\n')
    expect(lines).toContain('… 1,960 more lines')
    expect(lines).toContain('✎ b  +2,000 −1\n')
    expect(lines).toContain('… 1,962 more changed lines')
    expect(describeItem(translated, { session: '20261120_1', directory: '/work' })).toMatchObject({
      text: '✎ new a (+2,000)',
      more: ['✎ b (+2,000 −1)'],
    })
  })
})

test('a changed plan of the session is shown as diffs', () => {
  const lines = draw(sampleEvents.replanned)
  expect(lines.join('\n')).toContain(dark.paint('removed', '- [ ] T1 the API'))
})

test('thoughts are dimmed, and three lines of them', () => {
  const text = '**Looking**\n\none\n\ntwo\nthree\nfour'
  expect(shown(item({ ...sampleItems.reasoning, text }))).toBe('Looking\none\ntwo\nthree…')
  expect(shown(item({ ...sampleItems.reasoning, text }), { full: true })).toContain('four')
})

test('a thought is drawn as the Markdown that it is, dimmed', () => {
  const text = '**Looking** at *this*\n\nand `npm test`, **all\nof it**'
  expect(shown(item({ ...sampleItems.reasoning, text }))).toBe('Looking at this\nand npm test, all\nof it')
  const lines = draw(item({ ...sampleItems.reasoning, text })).join('\n')
  expect(lines).toContain(dark.paint('strong', dark.paint('dim', 'of it')))
  expect(lines).toContain(dark.paint('code', dark.paint('dim', 'npm test')))
})

test('a thought that was made to keep a reader busy is drawn soon, and a long one is Markdown to its end', () => {
  const start = cpuMs()
  for (const sign of ['_a ', '*a', '[', '`', '**a_', '<', '\\', ' ']) {
    const text = sign.repeat(64 * 1024).slice(0, 64 * 1024)
    for (const full of [false, true]) expectFitting(draw(item({ ...sampleItems.reasoning, text }), { full }), 60)
  }
  expect(cpuMs() - start).toBeLessThan(4000 * timesSlower())
  const text = '**Heading**\n\nSome *words* here.\n\n'.repeat(500)
  expect(shown(item({ ...sampleItems.reasoning, text }), { full: true })).not.toContain('*')
})

/** The last of these events of a session with gates, drawn after the others. */
function drawnAfter(events: readonly SessionEvent[], how: Partial<BlockOptions> = {}): string {
  const all = recorded([moreSamples['with gates'], ...events])
  const last = all.at(-1) as Recorded
  return seen(eventLines(last, all.reduce(fold, emptyState('20261120_1')), { ...options, ...how }))
}

describe('a gate', () => {
  const { 'gate passed': passed, 'gate failed before': failedBefore } = moreSamples
  const failed = { ...sampleEvents['gate-ended'], changed: [], changedCount: 0 } as const

  test('that passed for a claim is one line of a list; one that did not stands by itself, with what it printed', () => {
    expect(drawnAfter([passed])).toBe('✔ gate tests  4.2 s')
    expect(drawnAfter([passed], { theme: reader })).toBe('gate tests  passed, 4.2 s')
    expect(drawnAfter([{ ...passed, when: 'after-round' }])).toBe('\n✔ gate tests, after round 1  4.2 s')
    expect(drawnAfter([failedBefore, failed], { columns: 40 })).toMatchInlineSnapshot(`
      "
      ✘ gate tests  exit 1, 4.2 s; it failed
      before round 1, too
        2 tests
        1 failed: adds numbers"
    `)
    expect(drawnAfter([moreSamples['gate flaky']], { columns: 80 })).toMatchInlineSnapshot(`
      "
      ! gate tests  flaky, 4.2 s; it failed (exit code 1), and passed when it was run
      again on the same files
        2 tests
        1 failed: adds numbers"
    `)
    expect(drawnAfter([moreSamples['gate not started']])).toBe(
      '\n✘ gate tests  could not be run, 12 ms\n  There is no command vitests.',
    )
    expect(drawnAfter([moreSamples['gate broken off']])).toBe('\n– gate tests  broken off, 4.2 s')
  })

  test('that failed shows twelve lines of what it printed; in full all that is kept is there, of one that passed too', () => {
    const output = Array.from({ length: 30 }, (_, i) => `line ${i + 1}`).join('\n')
    expect(drawnAfter([{ ...failed, output }])).toContain('exit 1, 4.2 s\n  … 18 lines before\n  line 19\n')
    expect(drawnAfter([{ ...passed, output }])).toBe('✔ gate tests  4.2 s')
    expect(drawnAfter([{ ...passed, output }], { full: true })).toContain('  line 1\n')
  })
})

describe('a review', () => {
  test('is its verdict and its findings, each with its place and its mend', () => {
    expect(drawnAfter([sampleEvents['review-ended']], { columns: 40 })).toMatchInlineSnapshot(`
      "
      ✘ review 1: 1 finding, 1m02s, 9.1k
      tokens
        The sum of nothing is missing.
        ▸ major  src/a.ts:3
          It fails on an empty list.
          fix: Answer 0."
    `)
    expect(drawnAfter([moreSamples['review found again']], { columns: 80 })).toMatchInlineSnapshot(`
      "
      ✘ review 2: 2 findings, 1 of them found before (you decide), 1m02s, 9.1k tokens
        ▸ critical
          Half is missing.
        ▸ minor  src/b.ts  found again: you decide
          A name misleads.
          fix: Say what it does."
    `)
    expect(drawnAfter([moreSamples['review agreed']])).toBe('\n✔ review 1: agreed, 1m02s\n  All of it is there.')
    expect(drawnAfter([moreSamples['review without answer']], { theme: reader })).toBe(
      '\nreview 1 gave no answer that can be read, 1m02s, 9.1k tokens',
    )
  })

  test('of many words is clipped, in full it is not, and no word of it steers the terminal', () => {
    const long = Array.from({ length: 300 }, (_, i) => `word${i}`).join(' ')
    const finding = { severity: 'major', file: '\u001b[2Ja', line: 1, problem: long, mend: long } as const
    const ended: SessionEvent = {
      ...sampleEvents['review-ended'],
      answer: { verdict: 'findings', summary: `${long}\n\u001b[2J`, findings: Array(30).fill(finding) },
    }
    for (const columns of widths) {
      const clipped = draw(ended, { columns })
      expectFitting(clipped, columns)
      expect(seen(clipped)).toContain('… and')
    }
    expect(shown(ended, { columns: 80 })).toContain('… and 20 more findings')
    expect(shown(ended, { columns: 80, full: true }).match(/word299/g)).toHaveLength(61)
  })

  test('has what its reviewer does behind a line, but for the answer, which is told in words; in full that is there too', () => {
    const { 'review-started': reviewStarted, 'review-ended': reviewEnded } = sampleEvents
    const answer = item({ ...sampleItems['agent-message'], text: '{"verdict":"agreed"}' })
    expect(drawnAfter([reviewStarted, item({ ...sampleItems.command, output: 'one' })])).toBe(
      '\n┃ $ npm test  ✘ exit 1, 4.2 s\n┃   one',
    )
    expect(drawnAfter([reviewStarted, item(sampleItems['web-search'])], { theme: reader })).toBe(
      '\nreviewer:\nweb search  vitest 5 pools',
    )
    expect(drawnAfter([reviewStarted, answer])).toBe('')
    expect(drawnAfter([reviewStarted, answer], { full: true })).toContain('verdict')
    expect(drawnAfter([reviewStarted, reviewEnded, answer])).toContain('verdict')
  })
})

test('a question stands out, with what is assumed and how it is answered', () => {
  expect(drawnAfter([sampleEvents['question-asked']], { columns: 40 })).toMatchInlineSnapshot(`
    "
    ? question Q1: Which database?
      1. SQLite
      2. PostgreSQL
      until you answer, the agent assumes:
      SQLite, as nothing runs beside it.
      /answer Q1 … answers it, or give the
      number of an option"
  `)
})

test('what can be done about it is said with keys, in the pager too', () => {
  const shell: SessionEvent[] = [sampleEvents.held, sampleEvents.waiting, sampleEvents.replanned]
  for (const full of [false, true]) {
    const said = shell.map(event => shown(event, { columns: 200, full }))
    expect(said.join('\n')).not.toContain('codemachine')
    expect(said[0]).toContain('paused; Esc shows the choices')
    expect(said[1]).toMatch(/; Esc offers to end the wait$/)
    expect(said[2]).toContain('; Ctrl+C changes it again')
  }
})

test('in full nothing is clipped that a person, codemachine or another agent said', () => {
  const long = Array.from({ length: 300 }, (_, i) => `word${i}`)
  const texts: SessionEvent[] = [
    { ...sampleEvents.steered, text: long.join('\n') },
    { ...sampleEvents['replan-asked'], text: long.join('\n') },
    { ...sampleEvents['round-started'], input: long.join('\n') },
    { ...sampleEvents['round-ended'], changed: long },
    item({ ...sampleItems['sub-agent'], prompt: long.join(' ') }),
    item({ ...sampleItems['mcp-tool-call'], error: long.join(' ') }),
    item({ ...sampleItems.plan, text: long.join('\n') }),
  ]
  for (const event of texts) expect(shown(event, { full: true })).toContain('word299')
  expect(shown({ ...sampleEvents.steered, text: 'Hi.' }, { full: true })).toMatch(
    /a person says, to the next round: Hi\.$/,
  )
})

test('an answer is printed as one line, and what the agent is told about it is in the log', () => {
  const first = '"Which database?" – SQLite (20261120_1/Q1)'
  const answer: SessionEvent = {
    ...sampleEvents.steered,
    delivered: true,
    answers: 'Q1',
    text: `${first}\n\nIn round 2 of this session this question came up:\n\n> Which database?`,
  }
  expect(shown(answer, { columns: 200 })).toBe(`a person answers Q1: ${first}`)
  expect(shown(answer, { columns: 200, full: true })).toContain('In round 2 of this session this question came up:')
})

test('the agent’s plan is a list to tick off', () => {
  expect(shown(sampleEvents['plan-updated'])).toBe('plan\n✔ a\n▸ b\n○ c')
  expect(shown(sampleEvents['plan-updated'], { theme: reader })).toBe('plan\ndone: a\nnow: b\nto do: c')
})

describe('a plan that changes is told by what has changed', () => {
  const steps = (text: string): PlanStep[] =>
    [...text].map(mark => ({
      step: `step ${mark.toLowerCase()}`,
      status: mark === mark.toUpperCase() ? 'completed' : mark === 'n' ? 'in-progress' : 'pending',
    }))
  const changed = (before: string, after: string, how: Partial<BlockOptions> = {}) =>
    shown({ ...sampleEvents['plan-updated'], steps: steps(after) }, { ...how, planBefore: steps(before) })

  test.each([
    ['', 'abc', 'plan\n○ step a\n○ step b\n○ step c'],
    ['abc', 'Abc', '✔ step a · 1 of 3 steps'],
    ['abc', 'ABc', '✔ step a\n✔ step b · 2 of 3 steps'],
    ['abc', 'abc', ''],
    ['ab', 'anb', '▸ new: step n · 0 of 3 steps'],
    ['Ab', 'ab', '○ step a · 0 of 2 steps'],
    ['abc', 'Ab', '✔ step a · 1 of 2 steps\n– step c'],
    ['ab', 'cd', 'plan\n○ step c\n○ step d'],
  ])('%j, then %j', (before, after, lines) => {
    expect(changed(before, after)).toBe(lines)
  })

  promise(
    'O91',
    'A plan that an agent changes is told by the steps that have changed, whole only where it is new and in full',
  )
  test('with what is next where there is room for it, and in full as it is', () => {
    const next: PlanStep[] = [
      { step: 'Test for empty names', status: 'completed' },
      { step: 'Write the docs', status: 'in-progress' },
    ]
    const planBefore: PlanStep[] = next.map(({ step }) => ({ step, status: 'pending' }))
    const event = { ...sampleEvents['plan-updated'], steps: next }
    expect(shown(event, { planBefore })).toBe('✔ Test for empty names · 1 of 2 steps · now: Write the docs')
    expect(shown(event, { planBefore, columns: 40 })).toBe('✔ Test for empty names · 1 of 2 steps')
    expect(shown(event, { planBefore, theme: reader, columns: 70 })).toBe(
      'done: Test for empty names, 1 of 2 steps, now: Write the docs',
    )
    expect(shown(event, { planBefore, full: true })).toContain('plan\n          ✔ Test for empty names\n')
  })
})

describe('a session', () => {
  test('begins and ends with a card', () => {
    expect(shown(sampleEvents['session-created'], { columns: 56 })).toMatchInlineSnapshot(`
      "╭─ session 20261120_1 ─────────────────────────────────╮
      │ build X                                              │
      │                                                      │
      │ goal, workspace-write, network off, at most 20       │
      │ rounds                                               │
      │ no gates                                             │
      │ Nothing checks this goal. --prove checks each        │
      │ sentence.                                            │
      ╰──────────────────────────────────────────────────────╯"
    `)
    const stalled = {
      ...sampleEvents['session-ended'],
      outcome: { kind: 'stalled', rounds: 5, why: 'nothing-changed' },
    } as const
    expect(shown(stalled, { columns: 56 })).toMatchInlineSnapshot(`
      "╭─ session 20261120_1 ended ───────────────────────────╮
      │ stalled: no progress in 5 rounds, and nothing that   │
      │ codemachine tried helped                             │
      │ Find the cause with codemachine logs. Remove it, or  │
      │ write in MAIN.md what the agent should try; then     │
      │ codemachine resume.                                  │
      │ build X                                              │
      │ 3 rounds, 2h05m, 1.2M tokens                         │
      ╰──────────────────────────────────────────────────────╯"
    `)
    expect(shown(sampleEvents['session-ended'], { theme: reader })).toMatchInlineSnapshot(`
      "session 20261120_1 ended
      done, not verified: no gates are configured
      Next time: --prove checks each sentence.
      build X
      3 rounds, 2h05m, 1.2M tokens"
    `)
  })

  promise('O60')
  test('has a goal without the signs of its Markdown, and ends with its title', () => {
    const goal = '# Build *linkcheck*\n\n\n\n- finds `broken` links\n- **prints** them'
    const created = { ...sampleEvents['session-created'], goal }
    expect(shown(created, { columns: 56 })).toContain(
      [
        '│ Build linkcheck                                      │',
        '│                                                      │',
        '│ - finds broken links                                 │',
        '│ - prints them                                        │',
      ].join('\n'),
    )
    expect(shown(created, { columns: 56, full: true })).toContain('# Build *linkcheck*')
    const [first, last] = recorded([created, sampleEvents['session-ended']]) as [Recorded, Recorded]
    const state = fold(fold(emptyState('20261120_1'), first), last)
    const ended = seen(eventLines(last, state, options))
    expect(ended).toContain('│ Build linkcheck  ')
    expect(ended).not.toContain('⏎')
  })

  test('says what it has to pass, how far what is done is proved, and what is asked', () => {
    expect(shown(moreSamples['with gates'], { columns: 40 })).toMatchInlineSnapshot(`
      "╭─ session 20261120_1 ─────────────────╮
      │ build X                              │
      │                                      │
      │ goal, workspace-write, network off,  │
      │ at most 20 rounds                    │
      │ gates tests, lint (not required),    │
      │ types (after every round)            │
      │ a review before done (gpt-6 high)    │
      ╰──────────────────────────────────────╯"
    `)
    const { 'done-nominated': nominated, 'done-accepted': accepted, 'question-asked': asked } = sampleEvents
    const { 'gate passed': passed, 'gate flaky': flaky, 'review agreed': agreed } = moreSamples
    const proof = [asked, nominated, passed, { ...flaky, gate: 'lint' }, agreed, accepted]
    const end = { ...sampleEvents['session-ended'], outcome: { kind: 'done', verified: true } } as const
    expect(drawnAfter([...proof, end], { columns: 56 })).toMatchInlineSnapshot(`
      "
      ╭─ session 20261120_1 ended ───────────────────────────╮
      │ done, gates pass: verified by 2 gates, reviewed;     │
      │ flaky: lint; your request itself was not checked     │
      │ build X                                              │
      │ 3 rounds, 2h05m, 1.2M tokens                         │
      │ 1 question was asked; codemachine questions shows it │
      ╰──────────────────────────────────────────────────────╯"
    `)
  })

  test('says which session it goes on from', () => {
    expect(shown({ ...sampleEvents['session-created'], follows: '20261119_2' })).toContain('continues from 20261119_2')
    expect(shown(sampleEvents['session-created'])).not.toContain('goes on from')
  })

  test('has a long goal clipped with an ellipsis at the end of its last line', () => {
    const goal = Array.from({ length: 400 }, (_, i) => `word${i}`).join(' ')
    const card = shown({ ...sampleEvents['session-created'], goal })
    expect(card).toMatch(/\n│ word\d+ .*word\d+… +│\n│ +│\n│ goal,/)
    expect(card.match(/…/g)).toHaveLength(1)
    expect(shown({ ...sampleEvents['session-created'], goal }, { columns: 300, theme: reader })).toMatch(
      /word\d+ wo?r?d?\d*…\n/,
    )
  })

  test('has cards of at most twenty lines, however long its goal is', () => {
    const goal = 'A very long goal.\n'.repeat(5000)
    expect(draw({ ...sampleEvents['session-created'], goal }, { columns: 40 }).length).toBeLessThanOrEqual(21)
    expect(draw({ ...sampleEvents['session-created'], goal }, { full: true }).length).toBeGreaterThan(3000)
  })

  test('has its rounds parted by a line across', () => {
    expect(shown(sampleEvents['round-started'])).toBe('── round 1  goal-worker, codex 0.169.0, model gpt-6 ────────')
  })
})

test('a command that was run for an agent is drawn as one of codex, with the names of its secrets and what became of them', () => {
  const ran = sampleEvents['shell-ran']
  expect(shown(ran)).toBe(
    [
      '$ curl -s -H "Authorization: Bearer $STRIPE_API_KEY"',
      '  https://api.example.com/v1/charges  ✘ exit 22, 310 ms',
      '  with STRIPE_API_KEY',
      '  it printed STRIPE_API_KEY, which was removed',
      '  a secret was found in debug.log; agents cannot read it any',
      '  more, and no savepoint has it',
      '  curl: (22) The requested URL returned error: 401 for…',
    ].join('\n'),
  )
  const fine = { ...ran, status: 'passed', exitCode: 0, secrets: [], stdout: 'one\n', stderr: 'two\n' } as const
  const { printed: _, leaked: __, ...quiet } = fine
  expect(shown({ ...quiet, command: 'npm test' })).toBe('$ npm test  ✔ exit 0, 310 ms\n  one\n  two')
})

test('a command that ended with its round has that in the place of its exit code', () => {
  const item = { ...sampleItems.command, status: 'running' as const, exitCode: null, durationMs: null, cutOffMs: 4000 }
  const lines = draw({ ...sampleEvents['item-completed'], item })
  expect(seen(lines)).toMatch(/^\$ npm test {2}still running after 4\.0 s, ended with the round/m)
})
