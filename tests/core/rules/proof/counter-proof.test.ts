import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  type CounterProof,
  type CounterRun,
  type CounterSearch,
  counterProve,
  doubtsOfTests,
  notTried,
  type WorkChange,
  wordsForDoubts,
} from '../../../../src/core/rules/proof/counter-proof.ts'
import { incident, promise } from '../../../support/promise.ts'

/** A gate that reads what it reads, and passes as it does, on the files of the start with some changes. */
interface Played {
  passes(paths: ReadonlySet<string>): boolean
  reads?(paths: ReadonlySet<string>): readonly string[]
  durationMs?: number
}

const work = (path: string): WorkChange => ({ path, isRunThrough: false, isNoAddition: true })
const through = (path: string): WorkChange => ({ path, isRunThrough: true, isNoAddition: true })

async function prove(
  changes: readonly WorkChange[],
  { passes, reads, durationMs = 1 }: Played,
  of: Partial<CounterSearch<WorkChange>> = {},
): Promise<Awaited<ReturnType<typeof counterProve>> & { ran: string[] }> {
  const ran: string[] = []
  const found = await counterProve({
    changes,
    failedBefore: true,
    ofGates: [],
    mostMs: 1000,
    async run(some): Promise<CounterRun> {
      const paths = new Set(some.map(({ path }) => path))
      ran.push([...paths].join(' '))
      const read = reads === undefined ? null : new Set(reads(paths))
      return { status: passes(paths) ? 'passed' : 'failed', problem: null, durationMs, read }
    },
    ...of,
  })
  return { ...found, ran }
}

describe('a gate that failed before the work', () => {
  test('stands if it fails without the work and passes with the work alone; what made it pass is named', async () => {
    const found = await prove([work('a'), work('b'), work('c'), through('tests/b.test.ts')], {
      passes: on => on.has('b'),
    })
    expect(found).toMatchObject({ result: 'stands', made: ['b'], isSmallest: true, through: [], doubts: [] })
    expect(found.ran.slice(0, 2)).toEqual(['tests/b.test.ts', 'a b c'])
  })

  promise('D71')
  test('is blind if it passes without the work: the smallest set of its own files that makes it pass is named', async () => {
    const changes = [work('a'), through('tests/x'), through('tests/y'), through('package.json')]
    const found = await prove(changes, { passes: on => on.has('tests/y') })
    expect(found).toMatchObject({ result: 'blind', made: ['tests/y'], through: ['tests/y'], doubts: ['blind'] })
  })

  test('is blind with no file named if it passes on the very files of the start', async () => {
    const found = await prove([work('a')], { passes: () => true })
    expect(found).toMatchObject({ result: 'blind', made: [], madeCount: 0, doubts: ['blind'], runs: 1 })
    expect(words(found)).toEqual([
      expect.stringContaining('an ignored file, or something on this machine, makes it pass'),
    ])
  })

  test('needs a review if it passes only with something that it runs through', async () => {
    const both = (on: ReadonlySet<string>) => on.has('a') && on.has('tests/x')
    const found = await prove([work('a'), work('b'), through('tests/x')], { passes: both })
    expect(found).toMatchObject({
      result: 'stands',
      made: ['a', 'tests/x'],
      through: ['tests/x'],
      doubts: ['runs-through'],
    })
  })

  test('needs a review if it does not read any more what it read when it failed', async () => {
    const found = await prove([work('shim.py')], {
      passes: on => on.has('shim.py'),
      reads: on => (on.has('shim.py') ? ['shim.py'] : ['calc.py', 'tests/test_calc.py']),
    })
    expect(found).toMatchObject({ made: ['shim.py'], unread: ['calc.py', 'tests/test_calc.py'], doubts: ['unread'] })
  })

  test('what the work has changed may be read no more', async () => {
    const found = await prove([work('new.py'), work('old.py')], {
      passes: on => on.has('new.py'),
      reads: on => (on.has('new.py') ? ['new.py', 'run'] : ['old.py', 'run']),
    })
    expect(found).toMatchObject({ unread: [], doubts: [] })
  })

  test('proves nothing where it fails in a checkout of its own even on all that was claimed', async () => {
    const found = await prove([work('a'), through('tests/x')], { passes: () => false })
    expect(found).toMatchObject({ result: 'not-tried', problem: expect.stringContaining('checkout') })
  })

  test('where nothing is proved, each change of what it runs through needs a review, and other work does not', async () => {
    const never = { passes: () => false }
    const found = await prove([work('a'), through('scripts/test.sh')], never)
    expect(found).toMatchObject({ result: 'not-tried', through: ['scripts/test.sh'], doubts: ['runs-through'] })
    expect(words(found)).toEqual([
      expect.stringContaining('was not run without the work (it fails in a fresh checkout'),
    ])
    const newTest = { path: 'tests/new', isRunThrough: true, isNoAddition: false }
    expect(await prove([work('a'), newTest], never)).toMatchObject({ result: 'not-tried', doubts: [] })
  })

  test('proves nothing where it cannot be run', async () => {
    const cannot = async () => ({ status: 'unknown', problem: 'codex is gone', durationMs: 0, read: null }) as const
    expect(await prove([work('a')], { passes: () => true }, { run: cannot })).toMatchObject({
      result: 'not-tried',
      problem: 'codex is gone',
    })
  })

  test('a search without end stops after eight runs, or when its time is over, and says that there may be less', async () => {
    const many = Array.from({ length: 64 }, (_, i) => work(`f${i}`))
    const all = (on: ReadonlySet<string>) => on.size === many.length
    const found = await prove(many, { passes: all })
    expect(found).toMatchObject({ result: 'stands', madeCount: 64, isSmallest: false, doubts: [], runs: 8 })
    expect(found.made).toHaveLength(50)
    expect(await prove(many, { passes: all, durationMs: 400 })).toMatchObject({ isSmallest: false, runs: 3 })
  })

  test('no run is made twice, never more than eight are, and what is named makes it pass', async () => {
    const paths = fc.uniqueArray(fc.constantFrom(...'abcdefghij'), { minLength: 1, maxLength: 10 })
    const kinds = fc.array(fc.boolean(), { minLength: 10, maxLength: 10 })
    await fc.assert(
      fc.asyncProperty(paths, paths, kinds, async (changed, needed, kind) => {
        const changes = changed.map((path, at) => ({ path, isRunThrough: kind[at] ?? false, isNoAddition: true }))
        const passes = (on: ReadonlySet<string>) => needed.every(path => on.has(path))
        const found = await prove(changes, { passes })
        expect(new Set(found.ran).size).toBe(found.ran.length)
        expect(found.runs).toBeLessThanOrEqual(8)
        if (found.result === 'not-tried') expect(passes(new Set(changed))).toBe(false)
        else expect(passes(new Set(found.made))).toBe(true)
        if (found.isSmallest && found.result !== 'not-tried') expect([...found.made].sort()).toEqual([...needed].sort())
        const isDoubted = needed.some(path => changes.some(each => each.path === path && each.isRunThrough))
        if (found.isSmallest) expect(found.doubts.length > 0).toBe(isDoubted)
      }),
    )
  })
})

test('of a gate that passed before the work, changed files that it reads need a review', async () => {
  const played = { passes: () => true, reads: () => ['src/a.ts', 'lib/check.sh'] }
  const changes = [work('lib/check.sh'), work('docs/x.md')]
  const before = { failedBefore: false }
  expect(await prove(changes, played, before)).toMatchObject({
    result: 'passed-before',
    through: ['lib/check.sh'],
    doubts: ['reads-changed'],
    runs: 1,
  })
  expect(await prove(changes, played, { ...before, ofGates: ['lib/check.sh'] })).toMatchObject({ doubts: [] })
  expect(await prove([work('docs/x.md')], played, before)).toMatchObject({ result: 'passed-before', doubts: [] })
  expect(await prove(changes, { passes: () => true }, before)).toMatchObject({ result: 'passed-before', doubts: [] })
})

test('of a gate that passed before the work, new work and new tests are no change, but what it read it has to read still', async () => {
  const added = [{ path: 'tests/test_0.py', isRunThrough: true, isNoAddition: false }]
  const before = { failedBefore: false }
  const reads = (on: ReadonlySet<string>) => [
    'tests/test_0.py',
    ...(on.size > 0 ? [] : ['calc.py', 'tests/test_calc.py']),
  ]
  expect(await prove(added, { passes: () => true, reads }, before)).toMatchObject({
    result: 'passed-before',
    unread: ['calc.py', 'tests/test_calc.py'],
    doubts: ['unread'],
    runs: 2,
  })
  const all = () => ['calc.py', 'tests/test_0.py', 'tests/test_calc.py']
  expect(await prove(added, { passes: () => true, reads: all }, before)).toMatchObject({ doubts: [] })
})

test('a gate that nobody has run before runs on the files of the start first', async () => {
  const untold = { failedBefore: null }
  const found = await prove([work('a')], { passes: on => on.has('a') }, untold)
  expect(found).toMatchObject({ result: 'stands', made: ['a'], runs: 2 })
  expect(await prove([work('a')], { passes: () => true }, untold)).toMatchObject({ result: 'passed-before', runs: 2 })
})

test('where no file differs, a gate that failed before is blind, and nothing is said of another', async () => {
  const found = await prove([], { passes: () => true })
  expect(found).toMatchObject({ result: 'blind', made: [], doubts: ['blind'], runs: 0 })
  for (const failedBefore of [false, null]) {
    const other = await prove([], { passes: () => true }, { failedBefore })
    expect(other).toMatchObject({ result: 'not-tried', doubts: [], runs: 0 })
  }
})

test('of a gate that passed before the work, changes that it may run need a review where nobody knows what it reads', async () => {
  const of = { failedBefore: false }
  const found = await prove([work('a'), through('b.test.ts')], { passes: () => true }, of)
  expect(found).toMatchObject({ result: 'passed-before', through: ['b.test.ts'], doubts: ['runs-through'] })
  expect(words(found)).toEqual([expect.stringContaining('cannot find out which files it reads')])
  expect(await prove([work('a')], { passes: () => true }, of)).toMatchObject({ through: [], doubts: [] })
})

test('a gate leaves a doubt if nobody knows what the work changed', () => {
  expect(notTried('the files were not saved', [])).toMatchObject({ doubts: [] })
  const unknown = notTried('the files were not saved', null)
  expect(unknown).toMatchObject({ result: 'not-tried', doubts: ['not-tried'] })
  expect(words(unknown)).toEqual([expect.stringContaining('(the files were not saved), so it may prove nothing')])
})

incident('false done', 'A gate that passed was believed although its output said that tests failed', {
  since: '2026-11-22',
  fixed: '2026-11-29',
  foundBy: 'scripted attacks',
})
test('fewer tests than earlier, no count any more, no test at all, and failed tests leave doubts', () => {
  expect(doubtsOfTests({ now: 12, most: 12 })).toEqual([])
  expect(doubtsOfTests({ now: 13, most: 12 })).toEqual([])
  expect(doubtsOfTests({ now: 5, most: null })).toEqual([])
  expect(doubtsOfTests({ now: null, most: null })).toEqual([])
  expect(doubtsOfTests({ now: 11, most: 12 })).toEqual(['fewer-tests'])
  expect(doubtsOfTests({ now: null, most: 12 })).toEqual(['fewer-tests'])
  expect(doubtsOfTests({ now: 12, most: 12, failed: 1 })).toEqual(['failed-tests'])
  expect(doubtsOfTests({ now: 11, most: 12, failed: 1 })).toEqual(['fewer-tests', 'failed-tests'])
  expect(doubtsOfTests({ now: 0, most: 0 })).toEqual(['no-tests'])
})

function words(found: Partial<CounterProof>): string[] {
  const whole = { gate: 'tests', tree: 'aaa', durationMs: 1, ...found } as CounterProof
  return wordsForDoubts(whole, 2)
}

test('each doubt is a sentence that names the files, of many some', () => {
  expect(
    words({
      doubts: ['blind', 'runs-through', 'unread', 'reads-changed', 'fewer-tests', 'no-tests', 'failed-tests'],
      made: ['a', 'b', 'c'],
      madeCount: 70,
      through: ['t'],
      unread: ['u', 'v'],
      tests: { now: 1, most: 12, failed: 2 },
    }),
  ).toEqual([
    'The check `tests` failed earlier, but now passes without the work. These files make it pass: a, b and 68 more.',
    'The check `tests` runs these changed files, and passes only with them: t.',
    'The check `tests` no longer reads these files, which it read before the work: u, v.',
    'The check `tests` already passed before the work, so it proves nothing. The work changed files that it reads: t.',
    'The check `tests` ran 1 test; earlier in the session it ran 12 tests.',
    'The check `tests` passes, but ran no test.',
    'The check `tests` passes, but reports that 2 tests failed.',
  ])
})
