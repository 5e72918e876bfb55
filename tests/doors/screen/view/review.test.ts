import { expect, test } from 'vitest'
import { UserError } from '../../../../src/base/errors.ts'
import { loadGrammars } from '../../../../src/doors/screen/blocks/markdown.ts'
import { openTheme } from '../../../../src/doors/screen/terminal/theme.ts'
import type { FullView, Stage } from '../../../../src/doors/screen/view/full-view.ts'
import { reviewOf } from '../../../../src/doors/screen/view/review.ts'
import type { ReviewedFile, ReviewOptions } from '../../../../src/doors/screen/view/reviewed-files.ts'
import { type Comparison, type DiffLine, linesOfDiff } from '../../../../src/project/diff/comparison.ts'
import { Keymap } from '../../../../src/project/settings/keys.ts'
import { widthOf } from '../../../../src/tell/words/cells.ts'
import { cpuMs, timesSlower } from '../../../support/cpu-time.ts'
import { promise } from '../../../support/promise.ts'
import { typed } from '../pager/keys.ts'

const PLAIN = openTheme({ theme: 'plain', env: {}, reader: false })
const SIZE = { columns: 80, rows: 14 }

test('what changed is listed with its counts; from there it is gone through change by change and file by file', async () => {
  const seen = await review([
    file('src/a.ts', A),
    file('src/b.ts', B),
    { ...file('bin', ''), added: null, removed: null },
  ])
  expect(seen.screen()).toEqual([
    'Changes +3 −3 · 20261121_1/start → now · 3 files',
    '  File',
    expect.stringMatching(/^› src\/a\.ts +protected +\+2 +−2$/),
    expect.stringMatching(/^ {2}src\/b\.ts +\+1 +−1$/),
    expect.stringMatching(/^ {2}bin +not text$/),
    ...Array(8).fill(''),
    'Enter its diff · x put back · e edit · / find · q back',
  ])
  await seen.press('return')
  expect(seen.screen().slice(0, 5)).toEqual([
    'src/a.ts  +2 −2  protected',
    '@@ -1,3 +1,3 @@ heading',
    ' 1  1   first',
    ' 2    - const two = 2',
    '    2 + const two = 22',
  ])
  expect(seen.screen().at(-1)).toMatch(
    /^file 1 of 3 · 2 changes · 1–10 of 10 · end +n\/p change {2}→\/← file {2}q back$/,
  )
  await seen.press('?')
  expect(seen.screen()[0]).toBe('In changes')
  const pages: string[] = []
  for (let page = 0; page < 8; page += 1) {
    pages.push(...seen.screen())
    await seen.press(' ')
  }
  expect(pages.join('\n')).toMatch(/^In a question\n {2}d .*Remove .*n .*No/m)
  await seen.press('q', 'n')
  expect(seen.screen().at(-1)).toContain('change 2 of 2')
  await seen.press('n')
  expect(seen.screen()[0]).toBe('src/b.ts  +1 −1')
  await seen.press('p')
  expect([seen.screen()[0], seen.screen().at(-1)]).toEqual([
    'src/a.ts  +2 −2  protected',
    expect.stringContaining('change 2 of 2'),
  ])
  await seen.press('right', 'right')
  expect(seen.screen().slice(0, 2)).toEqual(['bin', 'It is not text.'])
  await seen.press('right')
  expect(seen.screen().at(-1)).toContain('This is the last file.')
  await seen.press('q')
  expect(seen.screen()[4]).toMatch(/^› bin/)
  await seen.press('q')
  expect(seen.isClosed()).toBe(true)
})

test('with colours the words that changed within a line are marked, and code is coloured', async () => {
  await loadGrammars()
  const theme = openTheme({ theme: 'auto', env: { TERM: 'xterm-256color' }, reader: false })
  const seen = await review([file('src/a.ts', A)], { theme })
  await seen.press('return')
  const [removed, added] = seen.screen().slice(3, 5)
  expect([removed, added]).toEqual([
    '\x1b[31m 2    - \x1b[39m\x1b[35mconst\x1b[39m two = \x1b[33m\x1b[7m2\x1b[27m\x1b[39m',
    '\x1b[32m    2 + \x1b[39m\x1b[35mconst\x1b[39m two = \x1b[33m\x1b[7m22\x1b[27m\x1b[39m',
  ])
})

test('from 140 columns on before and after stand side by side, and one below the other if asked', async () => {
  const seen = await review([file('src/a.ts', A)])
  const wide = { columns: 140, rows: 14 }
  seen.resize(wide)
  await seen.press('return')
  const sides = seen.screen()[3] ?? ''
  expect(sides).toMatch(/^ 2 - const two = 2 +│ {2}2 \+ const two = 22$/)
  expect(sides.indexOf('│')).toBe(69)
  await seen.press('v')
  expect(seen.screen()[3]).toBe(' 2    - const two = 2')
  await seen.press('v')
  expect(seen.screen()[3]).toBe(sides)
  seen.resize({ columns: 139, rows: 14 })
  expect(seen.screen()[3]).toBe(' 2    - const two = 2')
  await seen.press('v')
  expect(seen.screen().at(-1)).toContain('Side by side needs 140 columns.')
})

test('a file is put back once the person has said so, and that is undone', async () => {
  const seen = await review([file('src/a.ts', A), file('src/b.ts', B)])
  await seen.press('down', 'x')
  expect(seen.screen().slice(0, 4)).toEqual([
    'Restore src/b.ts as it was at 20261121_1/start?',
    '  The current version is kept, so you can undo this.',
    '› Yes, restore it',
    '  No, leave it',
  ])
  await seen.press('down', 'return')
  await seen.press('x', 'q')
  await seen.press('x', 'n')
  expect([seen.done, seen.screen()[0]]).toEqual([[], 'Changes +3 −3 · 20261121_1/start → now · 2 files'])
  await seen.press('x', 'return')
  expect(seen.done).toEqual(['src/b.ts'])
  expect(seen.screen().slice(2, 4)).toEqual([expect.stringContaining('› src/a.ts'), ''])
  expect(seen.screen().at(-1)).toBe('Restored as at 20261121_1/start; u undoes it. Saved as before-rewind-1: src/b.ts')
  await seen.press('u')
  expect(seen.done).toEqual(['src/b.ts', 'src/b.ts from before-rewind-1'])
  expect(seen.screen().at(-1)).toBe('src/b.ts is as it was before.')
  expect(seen.screen()[3]).toContain('› src/b.ts')
  await seen.press('u')
  expect(seen.screen().at(-1)).toBe('Nothing else was restored here.')
  await seen.press('return', 'x', 'y')
  expect(seen.screen().slice(0, 2)).toEqual(['src/b.ts  +1 −1', 'No change since 20261121_1/start.'])
  await seen.press('u')
  expect(seen.screen()[1]).toBe('@@ -1 +1 @@')
})

test('an undo waits for what is still being put back, and says that it undoes', async () => {
  const written: ((undo: string) => void)[] = []
  const seen = await review([file('src/a.ts', A)], {
    putBack: () => new Promise(resolve => written.push(resolve)),
  })
  seen.hurry('x', 'return')
  await seen.turns()
  expect(seen.screen().at(-1)).toBe('Putting src/a.ts back …')
  seen.hurry('u')
  written[0]?.('before-rewind-1')
  await seen.turns()
  expect(seen.screen().at(-1)).toBe('Undoing the restore: src/a.ts …')
  written[1]?.('before-rewind-2')
  await seen.settled()
  expect(seen.screen().at(-1)).toBe('src/a.ts is as it was before.')
})

test('what was put back before the view was opened is undone by a command, which is named', async () => {
  const seen = await review([file('src/a.ts', A)], { keptLast: async () => 'before-rewind-2' })
  await seen.press('u')
  expect(seen.screen().at(-1)).toBe('Nothing restored here; codemachine rewind before-rewind-2 undoes the last')
  expect((await review([])).screen().at(-1)).not.toContain('rewind')
})

test('while a session is at work nobody is asked whether a file is to be put back', async () => {
  const words = 'A session is running here. Restore files after it has ended.'
  const seen = await review([file('src/a.ts', A)], {
    beforePutBack: () => Promise.reject(new UserError('CM0516', words)),
  })
  await seen.press('x')
  expect(seen.screen().slice(0, 4)).toEqual([`${words} (CM0516)`, '', '› Go back', ''])
  await seen.press('y')
  expect([seen.done, seen.screen()[2]]).toEqual([[], expect.stringMatching(/^› src\/a\.ts/)])
  seen.hurry('x', 'return')
  await seen.settled()
  expect([seen.done, seen.screen().at(-1)]).toEqual([[], `${words} (CM0516)`])
})

test('a file that was changed again later is put back only if that is wanted: Enter leaves it', async () => {
  const seen = await review([file('src/a.ts', A)], { beforePutBack: async () => '20261121_1/3' })
  await seen.press('x')
  expect(seen.screen().slice(1, 4)).toEqual([
    '  Changed since 20261121_1/3: this is undone, too. u restores it.',
    '› No, leave it',
    '  Yes, restore it',
  ])
  await seen.press('return')
  // Enter that came before this was known is no answer to it.
  seen.hurry('x', 'return')
  await seen.settled()
  expect([seen.done, seen.screen().at(-1)]).toEqual([[], 'Changed since 20261121_1/3; x asks again: src/a.ts'])
  await seen.press('x', 'y')
  expect(seen.done).toEqual(['src/a.ts'])
})

test('from file to file goes through what a search has left, and the end of a diff follows nothing', async () => {
  const seen = await review([file('src/a.ts', A), file('src/b.ts', B), file('lib/a.ts', A)])
  await seen.press('/', 'a.ts', 'return', 'return')
  expect(seen.screen().at(-1)).toContain('file 1 of 2')
  await seen.press('n', 'n', 'n')
  expect(seen.screen()[0]).toMatch(/a\.ts {2}\+2 −2/)
  expect(seen.screen().at(-1)).toContain('file 2 of 2')
  await seen.press('G')
  expect(seen.screen().at(-1)).not.toContain('following')
  await seen.press('right')
  expect(seen.screen().at(-1)).toContain('This is the last file.')
})

test('why a file cannot be put back is said, and nothing else is shown for it', async () => {
  const refused = new UserError('CM0601', 'A session runs here.', { hint: 'Wait for its end.', exitCode: 6 })
  const seen = await review([file('src/a.ts', A)], { putBack: () => Promise.reject(refused) })
  await seen.press('x', 'return')
  expect(seen.screen().at(-1)).toBe('A session runs here. (CM0601) Wait for its end.')
  await seen.press('return', 'x', 'return')
  expect(seen.screen().at(-1)).toContain('A session runs here. (CM0601) Wait for its end.')
})

test('where nothing differs, or nothing can be compared, a sentence says so', async () => {
  expect((await review([])).screen()[2]).toBe('  Nothing differs between 20261121_1/start and now.')
  const missing = new UserError('CM0515', 'There is no savepoint "9".', { hint: 'There are: start.' })
  const seen = await review([], { read: () => Promise.reject(missing) })
  expect(seen.screen().slice(2, 4)).toEqual(['  There is no savepoint "9". (CM0515) There are: start.', ''])
})

test('while changes load, no files are counted', async () => {
  const loading = (await review([], { read: () => new Promise(() => {}) })).screen()
  expect([loading[0], loading[2]]).toEqual(['Changes', '  Loading changes …'])
})

promise(
  'O90',
  'What changed can be looked through in the terminal, whatever its size and whatever the files hold; where that is no terminal, `diff` prints as ever',
)
test('names and lines that would steer the terminal are shown as text, and at any size the screen keeps its rows', async () => {
  const hostile = `diff --git a/x b/x\n@@ -1 +1 @@ \x1b[2J\n-${'界'.repeat(300)}\x1b]0;title\x07\n+\x1b[31m${'x'.repeat(5_000)}\u202e\n`
  const seen = await review([
    { ...file('\x1b[2Jevil\nname', hostile), from: '\u202eold', how: 'renamed', modeBefore: '100755' },
    ...Array.from({ length: 4_000 }, (_, at) => file(`src/${at}.ts`, A)),
  ])
  const sizes = [20, 40, 80, 200].flatMap(columns => [3, 5, 10, 24].map(rows => ({ columns, rows })))
  for (const keys of [[], ['return'], ['G'], ['x'], ['q', 'q']]) {
    await seen.press(...keys)
    for (const size of sizes) {
      const rows = seen.screen(size)
      await seen.settled()
      expect(rows).toHaveLength(size.rows)
      expect(Math.max(...rows.map(widthOf))).toBeLessThanOrEqual(size.columns)
      // biome-ignore lint/suspicious/noControlCharactersInRegex: none may be there.
      expect(rows.join('')).not.toMatch(/[\x00-\x1f\x7f\u202e]/)
    }
  }
  await seen.press('return')
  expect(seen.screen({ columns: 80, rows: 200 }).join('')).toMatch(/… *3,006 *more *characters/)
})

promise('O90')
test('a diff of 100,000 lines is there in under a second, and what is left out of a longer one is said', async () => {
  const big = bigDiff(50_000)
  const seen = await review([file('big.ts', big)])
  const before = cpuMs()
  await seen.press('return')
  expect(seen.screen()[2]).toContain('const before0 = 0')
  await seen.press('G')
  expect(seen.screen().at(-2)).toContain('const after49999 = 49999')
  expect(cpuMs() - before).toBeLessThan(1_000 * timesSlower())
  const cut = linesOfDiff(bigDiff(5), { ...MODES, added: 5, removed: 5 }, 4)
  expect(cut.at(-1)).toMatchObject({
    kind: 'note',
    text: '… 7 of its 10 changed lines are not shown here; codemachine diff --no-pager prints them.',
  })
})

const A = [
  'diff --git a/src/a.ts b/src/a.ts',
  '--- a/src/a.ts',
  '+++ b/src/a.ts',
  '@@ -1,3 +1,3 @@ heading',
  ' first',
  '-const two = 2',
  '+const two = 22',
  ' third',
  '@@ -11,3 +11,3 @@ other',
  ' const x = 1',
  '-old words',
  '+quite new',
  ' last',
  'diff --git a/another b/another',
  '@@ -1 +1 @@',
  '-not of this file',
  '',
].join('\n')
const B = 'diff --git a/b b/b\n@@ -1 +1 @@\n-b\n+c\n'

function bigDiff(lines: number): string {
  const all = (sign: string, name: string) =>
    Array.from({ length: lines }, (_, at) => `${sign}const ${name}${at} = ${at}\n`).join('')
  return `diff --git a/big b/big\n@@ -1,${lines} +1,${lines} @@\n${all('-', 'before')}${all('+', 'after')}`
}

const MODES = { modeBefore: '100644', modeAfter: '100644' }

function file(path: string, diff: string): ReviewedFile {
  const count = (sign: string) =>
    diff.split('diff --git')[1]?.match(new RegExp(`^\\${sign}(?!\\${sign})`, 'gm'))?.length ?? 0
  const made: ReviewedFile = {
    ...{ path, from: null, bytes: [path], how: 'changed', ...MODES },
    ...{ added: count('+'), removed: count('-') },
  }
  diffs.set(path, diff)
  return made
}

const diffs = new Map<string, string>()

/** A review on a stage that is looked at; `done`: what was put back, and from where. */
async function review(
  files: readonly ReviewedFile[],
  more: { theme?: ReviewOptions['theme'] } & Partial<
    Pick<ReviewOptions['source'], 'read' | 'putBack' | 'beforePutBack' | 'keptLast'>
  > = {},
) {
  const done: string[] = []
  let there = [...files]
  const source: ReviewOptions['source'] = {
    read: async (): Promise<Comparison> => ({
      from: '20261121_1/start',
      to: 'now',
      files: there,
      count: there.length,
      added: there.reduce((sum, { added }) => sum + (added ?? 0), 0),
      removed: there.reduce((sum, { removed }) => sum + (removed ?? 0), 0),
    }),
    lines: async (of): Promise<DiffLine[]> =>
      of.added === null
        ? [{ kind: 'note', before: null, after: null, text: 'It is not text.' }]
        : linesOfDiff(diffs.get(of.path) ?? '', of, 200_000),
    protectedPaths: async () => new Set(['src/a.ts']),
    beforePutBack: async () => null,
    keptLast: async () => null,
    putBack: async (of, to) => {
      done.push(to === undefined ? of.path : `${of.path} from ${to}`)
      there = to === undefined ? there.filter(({ path }) => path !== of.path) : [...files]
      return `before-rewind-${done.length}`
    },
    [Symbol.asyncDispose]: async () => {},
    ...more,
  }
  const { theme = PLAIN } = more
  const view = reviewOf({ source, theme, keymap: new Keymap(), edit: async () => null })
  const stage = new TestStage(view)
  let size = SIZE
  const settled = async () => {
    await Promise.all(stage.started.splice(0))
    // What is drawn may have to be read first.
    for (let round = 0; round < 3; round++) {
      stage.top?.frame(size)
      for (let turn = 0; turn < 10; turn++) await Promise.resolve()
    }
  }
  await settled()
  return {
    done,
    settled,
    resize: (to: typeof SIZE) => {
      size = to
    },
    screen: (at = size) => stage.top?.frame(at).lines.map(line => line.trimEnd()) ?? [],
    isClosed: () => stage.top === undefined,
    /** Presses keys that come together, before anything is done. */
    hurry: (...names: string[]) => {
      for (const each of names.flatMap(typed)) stage.top?.press(each, stage)
    },
    turns: async () => {
      for (let turn = 0; turn < 20; turn++) await Promise.resolve()
    },
    press: async (...names: string[]) => {
      for (const each of names.flatMap(typed)) {
        stage.top?.press(each, stage)
        await settled()
      }
    },
  }
}

class TestStage implements Stage {
  readonly started: Promise<void>[] = []
  readonly #views: { view: FullView; detach: () => void }[] = []

  constructor(view: FullView) {
    this.open(view)
  }

  get top(): FullView | undefined {
    return this.#views.at(-1)?.view
  }

  open(view: FullView): void {
    this.#views.push({ view, detach: view.attach?.(this) ?? (() => {}) })
  }

  close(): void {
    this.#views.pop()?.detach()
  }

  start(action: Promise<void>): void {
    this.started.push(action)
  }

  leaveFor(): void {}
  changed(): void {}
  lend = (action: () => Promise<void>) => action()
  copy = () => true
}
