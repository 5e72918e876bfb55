import { describe, expect, test } from 'vitest'
import { atLeastAsHigh, type FrameParts, hintLine, isSame, layOut } from '../../../src/tui/screen/frame.ts'
import { indented } from '../../../src/tui/screen/screen.tsx'

const rows = (name: string, count: number) => Array.from({ length: count }, (_, at) => `${name} ${at + 1}`)

/** Parts that all want more than there is. */
function greedy(over: Partial<FrameParts> = {}): FrameParts {
  return {
    main: most => rows('main', most),
    panel: most => rows('panel', most),
    progress: () => 'progress',
    header: most => rows('header', most),
    input: { isDialog: false, draw: most => ({ lines: rows('input', most), caret: { x: 3, y: most - 1 } }) },
    hint: () => 'hint',
    ...over,
  }
}

describe('a frame', () => {
  test('is lower than the terminal at any height, and the caret is in it', () => {
    for (let height = 1; height <= 60; height++) {
      for (const isDialog of [false, true]) {
        const parts = greedy()
        const { lines, caret } = layOut({ ...parts, input: { ...parts.input, isDialog } }, height)
        expect(lines.length, `${height} rows`).toBeLessThanOrEqual(Math.max(1, height - 1))
        expect(lines[caret?.y ?? -1], `${height} rows`).toMatch(/^input/)
      }
    }
  })

  test('has everything in a usual terminal, from top to bottom', () => {
    const parts = greedy({
      main: () => rows('main', 2),
      panel: () => rows('panel', 1),
      input: { isDialog: false, draw: () => ({ lines: ['input 1'], caret: { x: 2, y: 0 } }) },
    })
    const { lines, caret } = layOut(parts, 24)
    expect(lines).toEqual(['main 1', 'main 2', '', 'panel 1', 'progress', 'header 1', 'header 2', 'input 1', 'hint'])
    expect(caret).toEqual({ x: 2, y: 7 })
  })

  test('keeps a header, a place to type and the hint in ten rows', () => {
    const { lines } = layOut(greedy({ panel: null }), 10)
    expect(lines).toEqual([...rows('main', 4), 'header 1', ...rows('input', 3), 'hint'])
  })

  test('gives a question the rows of what happens', () => {
    const parts = greedy()
    const { lines } = layOut({ ...parts, panel: null, input: { ...parts.input, isDialog: true } }, 10)
    expect(lines).toEqual(['header 1', ...rows('input', 7), 'hint'])
  })

  test('is as small as what there is', () => {
    const parts = greedy({ main: () => [], panel: null, progress: () => null, header: () => [], hint: () => null })
    const { lines } = layOut(
      { ...parts, input: { isDialog: false, draw: () => ({ lines: ['› '], caret: { x: 2, y: 0 } }) } },
      24,
    )
    expect(lines).toEqual(['› '])
  })
})

describe('the hint', () => {
  const place = { isSession: true, isWatching: false, text: '', isSearching: false, question: null }

  test.each([
    [{}, 120, 'Esc interrupts · Ctrl+C plan, twice leaves · Ctrl+E logs · Ctrl+T tasks · Ctrl+O output · ? keys'],
    [{}, 40, 'Esc interrupt · ^E logs · ? keys'],
    [
      { isWatching: true },
      120,
      'Esc interrupts · Ctrl+C twice detaches · Ctrl+E logs · Ctrl+T tasks · Ctrl+O output · ? keys',
    ],
    [{ text: 'next' }, 80, 'Enter queues it · Tab tells the agent'],
    [{ text: '/theme' }, 80, 'Enter runs it · Tab completes · Esc closes'],
    [{ question: { options: [{}] } }, 80, '↑ ↓ and Enter choose · Esc closes'],
    [
      { question: { options: [{}], escGoesOn: true as const } },
      80,
      '↑ ↓ and Enter choose · Esc goes on · Ctrl+C leaves it held',
    ],
    [
      { question: { options: [{}], escGoesOn: true as const }, writes: 'text' as const },
      60,
      'Enter sends it · Esc goes back',
    ],
    [{ isHeld: true, isDeciding: true }, 60, 'Esc asks it again · Ctrl+C plan · ? keys'],
    [{ isHeld: true }, 60, 'Esc offers how it goes on · Ctrl+C plan · ? keys'],
    [
      { hasPlan: true, isHeld: true },
      80,
      'Ctrl+C: Change the plan | Esc: How it goes on | Ctrl+E: Expand logs | ?: Keys',
    ],
    [
      { hasPlan: true, isWatching: true },
      80,
      'Ctrl+C: Interrupt | Ctrl+C twice: Detach | Ctrl+E: Expand logs | Esc: Pause',
    ],
    [{ hasPlan: true, isWatching: true }, 40, 'Ctrl+C: Interrupt | Ctrl+C twice: Detach'],
    [{ hasPlan: true, isWatching: true, isHeld: true }, 40, 'Ctrl+C twice: Detach | Ctrl+E: Logs'],
    [{ isSession: false }, 80, 'Type what to work on · / commands · @ files · ? keys'],
    [{ isSession: false, text: 'a goal' }, 20, 'Enter starts it'],
    [{}, 12, 'Esc interru…'],
  ])('for %o in %i columns: %s', (over, columns, hint) => {
    expect(hintLine({ ...place, ...over }, columns)).toBe(hint)
  })
})

const frame = { lines: ['build X', '› '], caret: { x: 2, y: 1 } }

test('where there is less to show, what is typed in stays in its row', () => {
  expect(atLeastAsHigh(frame, 4)).toEqual({ lines: ['', '', 'build X', '› '], caret: { x: 2, y: 3 } })
  expect(atLeastAsHigh(frame, 2)).toBe(frame)
  expect(atLeastAsHigh({ lines: [], caret: null }, -3)).toEqual({ lines: [], caret: null })
})

test('a frame is the same only with its caret in the same cell', () => {
  expect(isSame(frame, { ...frame, lines: [...frame.lines] })).toBe(true)
  expect(isSame(frame, { ...frame, caret: { x: 3, y: 1 } })).toBe(false)
  expect(isSame(frame, { ...frame, lines: ['build Y', '› '] })).toBe(false)
})

test('what is broken into rows stays under where its words began', () => {
  expect(indented('ok     git     it is there, and new enough', 32)).toEqual([
    'ok     git     it is there, and',
    '               new enough',
  ])
  expect(indented('  - one two three', 10)).toEqual(['  - one', '    two', '    three'])
  expect(indented('no indent at all', 9)).toEqual(['no indent', 'at all'])
})
