import { describe, expect, test } from 'vitest'
import { atLeastAsHigh, type FrameParts, isSame, layOut } from '../../../../src/doors/screen/screen/frame.ts'
import { type HintSituation, hintLine } from '../../../../src/doors/screen/screen/hints.ts'
import { indented } from '../../../../src/doors/screen/screen/screen.tsx'
import { Keymap } from '../../../../src/project/settings/keys.ts'
import { promise } from '../../../support/promise.ts'

const rows = (name: string, count: number) => Array.from({ length: count }, (_, at) => `${name} ${at + 1}`)

/** Parts that all want more than there is. */
function greedy(over: Partial<FrameParts> = {}): FrameParts {
  return {
    main: most => rows('main', most),
    panel: most => rows('panel', most),
    queue: [],
    status: 'status',
    rule: 'rule',
    input: { isDialog: false, draw: most => ({ lines: rows('input', most), caret: { x: 3, y: most - 1 } }) },
    hint: isRoomy => (isRoomy ? 'hint' : null),
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
    expect(lines).toEqual(['main 1', 'main 2', '', 'panel 1', 'status', 'rule', 'input 1', 'rule', 'hint'])
    expect(caret).toEqual({ x: 2, y: 6 })
  })

  promise('O157', 'The field has a frame; where rows are few the hint goes first, then the frame')
  test('leaves out the hint first where rows are few, then the frame', () => {
    const { lines } = layOut(greedy({ panel: null }), 11)
    expect(lines).toEqual([...rows('main', 4), 'status', 'rule', ...rows('input', 3), 'rule'])
    expect(layOut(greedy({ panel: null }), 12).lines.at(-1)).toBe('hint')
    expect(layOut(greedy({ panel: null }), 7).lines).toEqual([...rows('main', 3), 'status', ...rows('input', 2)])
  })

  test('gives a question the rows of what happens', () => {
    const parts = greedy({ hint: () => 'hint' })
    const { lines } = layOut({ ...parts, panel: null, input: { ...parts.input, isDialog: true } }, 10)
    expect(lines).toEqual(['status', ...rows('input', 7), 'hint'])
  })

  test('keeps how to leave a question in four rows, in the place of the header', () => {
    const parts = greedy({ hint: () => 'hint' })
    const { lines } = layOut({ ...parts, panel: null, input: { ...parts.input, isDialog: true } }, 5)
    expect(lines).toEqual([...rows('input', 3), 'hint'])
  })

  test('is as small as what there is', () => {
    const parts = greedy({ main: () => [], panel: null, status: null, hint: () => null })
    const { lines } = layOut(
      { ...parts, input: { isDialog: false, draw: () => ({ lines: ['› '], caret: { x: 2, y: 0 } }) } },
      24,
    )
    expect(lines).toEqual(['rule', '› ', 'rule'])
  })
})

describe('the hint', () => {
  const place: HintSituation = {
    keymap: new Keymap(),
    isSession: true,
    isRunning: true,
    isWatching: false,
    isHeld: false,
    isDeciding: false,
    canFollow: false,
    showsTasks: false,
    text: '',
    command: null,
    tells: false,
    isOfQueue: false,
    isSearching: false,
    popup: null,
    question: null,
    writes: null,
    confirms: false,
    removes: false,
    isCountdownStopped: false,
  }
  const one = { name: 'change', description: '', note: null }

  test.each<[Partial<HintSituation>, number, string]>([
    [
      {},
      120,
      'Esc interrupts · Ctrl+C plan · ? keys · Ctrl+E log · Ctrl+X all commands · Ctrl+T tasks · Ctrl+C twice leaves',
    ],
    [{}, 80, 'Esc interrupts · Ctrl+C plan · ? keys · Ctrl+E log · Ctrl+X all commands'],
    [{}, 40, 'Esc interrupts · Ctrl+X all commands'],
    [{ isWatching: true }, 80, 'Esc interrupts · Ctrl+C twice detaches · ? keys · Ctrl+X all commands'],
    [{ text: 'next' }, 80, 'Enter queues it as the next session · Tab tells the agent now · Ctrl+C clears it'],
    [
      { text: 'next', tells: true, keymap: new Keymap(undefined, 'tell') },
      80,
      'Enter tells the agent now · Tab queues it as the next session · Ctrl+C clears it',
    ],
    [{ text: 'next', tells: true }, 40, 'Enter asks · Tab queues it · @ files'],
    [
      { text: 'next', isOfQueue: true },
      80,
      'Enter queues it as the next session · Ctrl+C clears it · Alt+Enter new line',
    ],
    [{ text: 'next' }, 40, 'Enter queues it · Tab tells the agent'],
    [{ text: '/theme', command: 'command' }, 80, 'Enter runs it · Ctrl+C clears it'],
    [{ text: '/thme', command: 'unknown-command' }, 80, 'No command has that name · Ctrl+C clears it'],
    [
      { text: '/etc/hosts is wrong' },
      80,
      'Enter queues it as the next session · Tab tells the agent now · Ctrl+C clears it',
    ],
    [{ question: { options: [{}] } }, 20, 'Esc closes'],
    [{ isSearching: true }, 20, 'Esc goes back'],
    [
      { text: '/ch', popup: { kind: 'commands', typed: 'ch', options: [one], selected: 0 } },
      80,
      'Enter runs /change · Tab completes it · Esc closes · ↑ ↓ choose',
    ],
    [
      { question: { options: [{}] }, removes: true },
      80,
      'A digit or Enter chooses · Esc closes · d removes · ↑ ↓ select',
    ],
    [{ question: { options: [{}] }, confirms: true }, 80, 'Enter confirms · Esc closes · ↑ ↓ select'],
    [{ question: { options: [{}] } }, 80, 'A digit or Enter chooses · Esc closes · ↑ ↓ select'],
    [
      { question: { options: [{}], esc: 'continues', interruptHolds: true } },
      80,
      'A digit or Enter chooses · Esc continues · Ctrl+C leaves it paused · ↑ ↓ select',
    ],
    [
      { question: { options: [{}], esc: 'continues', interruptHolds: true }, writes: 'text' },
      60,
      'Enter sends it · Esc goes back to the choices',
    ],
    [{ isHeld: true, isDeciding: true }, 60, 'Esc shows the question · Ctrl+C plan · Ctrl+X all commands'],
    [{ isHeld: true }, 60, 'Esc shows the choices · Ctrl+C plan · Ctrl+X all commands'],
    [{ showsTasks: true }, 60, 'Esc closes the tasks · Ctrl+C plan · Ctrl+X all commands'],
    [{ isRunning: false }, 60, 'Type the goal of the next session · Ctrl+X all commands'],
    [
      { isSession: false, isRunning: false },
      80,
      'Type a goal · / commands · ? keys · @ files · Ctrl+X all commands · ↑ history',
    ],
    [{ isSession: false, isRunning: false, text: 'a goal' }, 20, 'Enter starts it'],
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
