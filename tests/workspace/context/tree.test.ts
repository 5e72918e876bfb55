import fc from 'fast-check'
import { expect, test } from 'vitest'
import { codeBlock } from '../../../src/base/markdown.ts'
import { bareRepositories, drawTree, pathsOutside } from '../../../src/modes/change/context/tree.ts'
import { clipBytes, quoted } from '../../../src/workspace/context/sections.ts'
import { cpuMs } from '../../support/cpu-time.ts'
import { promise } from '../../support/promise.ts'

const ALL = { entries: 2_000, bytes: 100_000 }

test('folders come first, and a chain of folders stands on one line', () => {
  const { text, isShortened } = drawTree(
    ['z.txt', 'src/b.ts', 'src/a/c.ts', 'one/two/three/d.ts', 'one/two/three/e.ts'],
    ALL,
  )
  expect(text.split('\n')).toEqual([
    'one/two/three/',
    '  d.ts',
    '  e.ts',
    'src/',
    '  a/',
    '    c.ts',
    '  b.ts',
    'z.txt',
  ])
  expect(isShortened).toBe(false)
})

test('of too many files those nearest the top are told, and of the others how many', () => {
  const paths = ['top.txt', ...Array.from({ length: 500 }, (_, index) => `a/b/${index}.txt`), 'a/b/c/d.txt', 'a/x']
  const { text, isShortened } = drawTree(paths, { entries: 8, bytes: 10_000 })
  expect(isShortened).toBe(true)
  expect(text.split('\n')).toEqual([
    'a/',
    '  b/',
    '    c/ (1 file)',
    '    0.txt',
    '    1.txt',
    '    10.txt',
    '    … and 497 more here',
    '  x',
    'top.txt',
  ])
})

promise('C2')
test('a tree of any shape has at most so many lines and bytes', () => {
  const path = fc.array(
    fc.string({ minLength: 1, maxLength: 12 }).filter(each => !each.includes('/')),
    { minLength: 1, maxLength: 8 },
  )
  fc.assert(
    fc.property(
      fc.array(
        path.map(parts => parts.join('/')),
        { maxLength: 200 },
      ),
      paths => {
        const { text } = drawTree([...new Set(paths)], { entries: 50, bytes: 1_000 })
        expect(Buffer.byteLength(text)).toBeLessThanOrEqual(1_000)
        // A line for each entry, and one that says how many are left for each folder.
        expect(text.split('\n').length).toBeLessThanOrEqual(100)
      },
    ),
  )
})

test('very deep folders and names with line ends take one line each', () => {
  const { text } = drawTree([`${'d/'.repeat(1_500)}f`, 'a\nb\u001b[2J\u202e'], ALL)
  expect(text.split('\n')).toHaveLength(3)
  expect(text).toContain('a\\nb\\u001b[2J\\u202e')
  const stairs = Array.from({ length: 1_000 }, (_, depth) => `${'d/'.repeat(depth)}f`)
  expect(drawTree(stairs, ALL).text.split('\n')).toHaveLength(1_999)
})

test('a bare repository is known by what lies in it', () => {
  expect(
    bareRepositories([
      'x.git/HEAD',
      'x.git/config',
      'src/HEAD',
      'y/HEAD',
      'y/config',
      'y/description',
      'z/HEAD',
      'z/config',
    ]),
  ).toEqual(['x.git', 'y'])
})

test('a project with tens of thousands of bare repositories takes no longer than another', () => {
  const all = Array.from({ length: 20_000 }, (_, at) => [`a/r${at}.git/HEAD`, `a/r${at}.git/config`]).flat()
  const before = cpuMs()
  expect(pathsOutside([...all, 'a/r1.gitx/y', 'top'], bareRepositories(all))).toEqual(['a/r1.gitx/y', 'top'])
  expect(cpuMs() - before).toBeLessThan(1_000)
})

test('no name ends the backticks that it stands in', () => {
  expect(quoted('a``b`c')).toBe('``` a``b`c ```')
  expect(quoted('a`b')).toBe('`` a`b ``')
})

test('no text closes the fence that it stands in, and a shortened one is closed', () => {
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom('`', '```', '\n', 'a', '`````js'), { maxLength: 60 }),
      fc.nat(400),
      (parts, most) => {
        const whole = codeBlock(parts.join(''))
        const [fence = ''] = whole.split('\n')
        const inside = whole.split('\n').slice(1, -1)
        expect(inside.filter(line => line.startsWith(fence))).toEqual([])
        const clipped = clipBytes(`${whole}\n${'after\n'.repeat(100)}`, most + 200)
        expect(Buffer.byteLength(clipped)).toBeLessThanOrEqual(most + 200)
        const ends = clipped.split('\n').filter(line => line === fence)
        expect(ends.length % 2).toBe(0)
      },
    ),
  )
})
