import { setImmediate as nextTick } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { type Hold, PathHolds, type Paths, readPaths } from '../../../src/session/delegation/path-holds.ts'
import { promise } from '../../support/promise.ts'

const never = new AbortController().signal

/** Who has its turn, by name; they take turns in the order in which they come. */
function open(options: Partial<ConstructorParameters<typeof PathHolds>[0]> = {}) {
  const holds = new PathHolds({ atOnce: 3, platform: 'linux', ...options })
  const held = new Map<string, Hold>()
  const behind: string[][] = []
  const come = (name: string, paths: Paths, under: Hold | null = null, over = never) => {
    void holds
      .take(paths, under, over, { agent: name, onBehind: agents => behind.push([name, ...agents]) })
      .then(hold => {
        if (hold !== null) held.set(name, hold)
      })
  }
  const leave = (name: string) => {
    const hold = held.get(name)
    held.delete(name)
    if (hold !== undefined) holds.release(hold)
  }
  const working = async () => {
    await nextTick()
    return [...held.keys()]
  }
  return { behind, come, leave, working, hold: (name: string) => held.get(name) ?? null, holds }
}

promise('L11', 'Agents that may write the same files wait for each other')
test('agents that name other folders work side by side, and those whose folders overlap wait for each other', async () => {
  const { come, leave, working } = open()
  come('web', ['src/web'])
  come('api', ['src/api'])
  come('forms', ['src/web/forms', 'docs'])
  expect(await working()).toEqual(['web', 'api'])
  leave('api')
  expect(await working()).toEqual(['web'])
  leave('web')
  expect(await working()).toEqual(['forms'])
})

test('a folder whose name begins like another’s is another folder', async () => {
  const { come, working } = open()
  come('web', ['src/web'])
  come('website', ['src/website'])
  expect(await working()).toEqual(['web', 'website'])
})

test('who wants the whole work directory gets it in its turn, whoever comes after it', async () => {
  const { come, leave, working } = open()
  come('web', ['src/web'])
  come('all', null)
  come('docs', ['docs'])
  expect(await working()).toEqual(['web'])
  leave('web')
  expect(await working()).toEqual(['all'])
  leave('all')
  expect(await working()).toEqual(['docs'])
})

test('who waits for a folder does not hold up those who come later and want another one', async () => {
  const { come, working } = open()
  come('web', ['src/web'])
  come('web again', ['src/web'])
  come('docs', ['docs'])
  expect(await working()).toEqual(['web', 'docs'])
})

test('no more agents work than are allowed at once', async () => {
  const { come, leave, working, holds } = open({ atOnce: 2 })
  for (const name of ['a', 'b', 'c', 'd']) come(name, [name])
  expect(await working()).toEqual(['a', 'b'])
  expect(holds.waiting).toBe(2)
  leave('a')
  expect(await working()).toEqual(['b', 'c'])
})

test('who only reads waits for nobody', async () => {
  const { come, working } = open()
  come('all', null)
  come('reader', [])
  expect(await working()).toEqual(['all', 'reader'])
})

describe('two spellings of a name', () => {
  test.each([
    ['are one folder on macOS', 'darwin', ['a']],
    ['are one folder on Windows', 'win32', ['a']],
    ['are two folders on Linux', 'linux', ['a', 'b']],
  ] as const)('%s', async (_what, platform, expected) => {
    const { come, working } = open({ platform })
    come('a', ['src/Caf\u00e9'])
    come('b', ['SRC/cafe\u0301/menu'])
    expect(await working()).toEqual(expected)
  })
})

test('who is asked for by an agent works under its turn, one at a time, and in nobody else’s way', async () => {
  const { come, leave, working, hold } = open()
  come('parent', null)
  await working()
  come('child', ['src'], hold('parent'))
  come('second child', ['docs'], hold('parent'))
  come('stranger', ['src'])
  expect(await working()).toEqual(['parent', 'child'])
  leave('child')
  expect(await working()).toEqual(['parent', 'second child'])
  leave('second child')
  leave('parent')
  expect(await working()).toEqual(['stranger'])
})

test('who does not wait any more makes way', async () => {
  const { come, working } = open()
  const gone = new AbortController()
  come('web', ['src/web'])
  come('all', null, null, gone.signal)
  come('docs', ['docs'])
  expect(await working()).toEqual(['web'])
  gone.abort()
  expect(await working()).toEqual(['web', 'docs'])
})

test('who waits is told for whom, once for each change', async () => {
  const { behind, come, leave, working } = open()
  for (const name of ['web', 'api', 'forms']) come(name, [`src/${name}`])
  come('docs', ['docs'])
  come('all', null)
  come('web-too', ['src/web'])
  await working()
  expect(behind).toEqual([
    ['docs', 'web', 'api', 'forms'],
    ['all', 'web', 'api', 'forms', 'docs'],
    ['web-too', 'web', 'all'],
  ])
  leave('api')
  expect(await working()).toEqual(['web', 'forms', 'docs'])
  expect(behind.slice(3)).toEqual([['all', 'web', 'forms', 'docs']])
})

test.each([
  '.git/hooks',
  'src/.GIT./hooks',
  'git~1',
  '.g\u200cit',
  '.codemachine/plan',
  '.codex-flow/runtime/debug',
  '.Codex-Flow/Runtime',
])('nobody is given %s to write in', async path => {
  const options = { directory: '/work', platform: 'linux' } as const
  expect(await readPaths([path], options)).toEqual({
    problem: expect.stringContaining('lies in a folder of git or codemachine'),
  })
})
