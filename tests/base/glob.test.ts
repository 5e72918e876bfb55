import fc from 'fast-check'
import picomatch from 'picomatch'
import { describe, expect, test } from 'vitest'
import { baseOf, compileGlob, isBalanced } from '../../src/base/glob.ts'
import { cpuMs } from '../support/cpu-time.ts'
import { promise } from '../support/promise.ts'

const matches = (glob: string, path: string) => compileGlob(glob, { tooHard: true }).matches(path)

test.each<[string, readonly string[], readonly string[]]>([
  ['*.ts', ['a.ts', '.ts'], ['a/b.ts', 'a.tsx']],
  ['**', ['a', 'a/b/.c'], []],
  ['a/**', ['a', 'a/b', 'a/.b/c'], ['ab', 'b/a']],
  ['*/**', ['a/b', 'a/b/c'], ['a']],
  ['a/**/b', ['a/b', 'a/c/b', 'a/c/d/b'], ['a/c', 'ab', 'a/cb']],
  ['a/*/b', ['a/c/b'], ['a/b', 'a//b', 'a/c/d/b']],
  ['?', ['a', '漢', '😀'], ['', 'ab', '/']],
  ['[a-c].[!a-c]', ['b.d'], ['b.b', 'd.d', 'b./']],
  ['app/[id]/**', ['app/[id]/page', 'app/i/page'], ['app/id/page']],
  ['{a,b/{c,d}}/*.ts', ['a/x.ts', 'b/c/x.ts', 'b/d/x.ts'], ['b/x.ts', 'c/x.ts']],
  ['v{1..12}.{a..c}', ['v1.a', 'v12.c'], ['v13.a', 'v1.d']],
  ['{a}', ['{a}'], ['a']],
  ['*.@(test|spec).ts', ['a.test.ts', 'a.spec.ts'], ['a.ts', 'a.tests.ts']],
  ['+(a|b)?(c)', ['a', 'abab', 'bc'], ['', 'c', 'abcc']],
  ['tests/!(fixtures)/*', ['tests/unit/a', 'tests/fixture/a'], ['tests/fixtures/a', 'tests/a/b/c']],
  ['!(*.md)', ['a', 'a.mdx'], ['a.md', 'a/b']],
  ['a[', ['a['], ['a']],
  ['a{b', ['a{b'], ['ab']],
  ['(a', ['(a'], ['a']],
  ['**/*', ['a/b'], ['a/../b', './a', '..']],
])('%s matches %j, and not %j', (glob, these, others) => {
  expect(these.filter(path => !matches(glob, path))).toEqual([])
  expect(others.filter(path => matches(glob, path))).toEqual([])
})

test('in an address a star matches slashes, too', () => {
  const { matches } = compileGlob('https://git.example/*', { crossesParts: true, tooHard: false })
  expect(['https://git.example/team/a', 'https://git.example.evil/a'].map(matches)).toEqual([true, false])
})

test('globs match as the library that many tools match with has it', () => {
  const name = fc.stringMatching(/^[abc1]{1,4}$/)
  const path = fc.array(name, { minLength: 1, maxLength: 4 }).map(parts => parts.join('/'))
  const simple = fc.stringMatching(/^(?:[abc]|\*|\?|\[ab\]|\{a,bc\}){1,4}$/)
  const part = fc.oneof(
    fc.constant('**'),
    simple.filter(each => !/\*\*/.test(each)),
  )
  const glob = fc.array(part, { minLength: 1, maxLength: 4 }).map(parts => parts.join('/'))
  fc.assert(
    fc.property(glob, path, (pattern, file) => {
      expect(matches(pattern, file)).toBe(picomatch(pattern, { dot: true, nonegate: true })(file))
    }),
  )
})

promise(
  'D76',
  "No glob or text of a project's file keeps codemachine busy for long, and what cannot be told in time counts as protected",
)
describe('no glob takes long, whatever a file of a project says', () => {
  const name = 'ab'.repeat(125)
  const globs = [
    '*a*a*a*a*a*a*a*a*b/',
    '*a'.repeat(240),
    `*a${'?'.repeat(120)}`,
    '+(+(+(+(a|b))))c',
    '*(*a*(*b*(*a)))c',
    '!(*a*a*a*!(*b*b*b))c',
    '!('.repeat(160) + ')'.repeat(160),
    '{a,b}'.repeat(100),
    '{a,'.repeat(120) + '}'.repeat(120),
    '{1..100}'.repeat(60),
    '('.repeat(500),
    '**/'.repeat(160),
    '[a-b'.repeat(120),
  ]
  test.each(globs.map(glob => [glob.slice(0, 24), glob]))('%s', (_, glob) => {
    const before = cpuMs()
    for (let at = 0; at < 5; at++) compileGlob(glob, { tooHard: false }).matches(`${name}${at}/${'a'.repeat(250)}`)
    expect(cpuMs() - before).toBeLessThan(2_500)
  })
})

promise('D76')
test('what cannot be found out in time is answered as was asked for', () => {
  // After each character any of the last eighty may be the one that the star has stopped before.
  let random = 1
  const next = () => {
    random = (random * 48_271) % 2_147_483_647
    return random % 2 === 0 ? 'a' : 'b'
  }
  const paths = Array.from({ length: 60 }, () => Array.from({ length: 200 }, next).join(''))
  for (const tooHard of [true, false]) {
    const { matches } = compileGlob(`*a${'?'.repeat(80)}c`, { tooHard })
    expect(paths.map(matches).at(-1)).toBe(tooHard)
  }
})

test('a bracket that is never closed is found, and the folder below which a glob matches', () => {
  expect(['a[', 'a{b', '(a', 'a]', 'a}', '{a,(b}'].filter(isBalanced)).toEqual([])
  expect(['a', '[{]', '{a,(b|c)}', '[!a]'].filter(each => !isBalanced(each))).toEqual([])
  expect(['tests/**', 'a/b/*.ts', '**', 'a/b', '{a,b}/c'].map(baseOf)).toEqual(['tests', 'a/b', '', 'a/b', ''])
})
