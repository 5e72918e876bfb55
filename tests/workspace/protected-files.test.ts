import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { TOP_CONFIGURATION } from '../../src/core/rules/proof/gate-files.ts'
import { openFingerprints } from '../../src/workspace/fingerprint/fingerprint.ts'
import { findRepository } from '../../src/workspace/git/git.ts'
import { changedPrograms, programReader } from '../../src/workspace/programs.ts'
import {
  gateConfiguration,
  marksTestsSkipped,
  type ProtectingGate,
  protectedChanges,
  unmatchedGlobs,
} from '../../src/workspace/protected-files.ts'
import { incident, promise } from '../support/promise.ts'

let base: string
let work: string
let env: NodeJS.ProcessEnv

beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), 'protected-')))
  work = join(base, 'work')
  for (const folder of ['work', 'home', 'records']) mkdirSync(join(base, folder))
  env = { PATH: process.env.PATH, HOME: join(base, 'home') }
})

afterEach(() => rmSync(base, { recursive: true, force: true }))

function write(path: string, text: string): void {
  mkdirSync(dirname(join(work, path)), { recursive: true })
  writeFileSync(join(work, path), text)
}

const remove = (path: string) => rmSync(join(work, path), { recursive: true })

async function open() {
  const repository = await findRepository(work)
  return openFingerprints({ gitDir: join(base, 'records/git'), directory: work, repository, env })
}

const protecting = (...protect: string[]): ProtectingGate[] => [{ name: 'tests', protect }]

/** What the changes are for the gates. */
async function changed(gates: readonly ProtectingGate[], change: () => void) {
  const prints = await open()
  const before = await prints.take()
  change()
  return protectedChanges({ gates, before, after: await prints.take(), git: prints.git })
}

/** As `changed`, `how path` of each. */
async function lines(gates: readonly ProtectingGate[], change: () => void): Promise<string[]> {
  const { files, count } = await changed(gates, change)
  expect(files).toHaveLength(count)
  return files.map(({ path, how }) => `${how} ${path}`)
}

test('tests that a round changed, deleted, moved away, replaced by links or made executable are named, others are not', async () => {
  for (const name of ['a', 'b', 'c', 'd', 'e']) write(`tests/${name}.test.ts`, `test('${name}', () => {})\n`)
  write('src/a.ts', '1')
  const found = await lines(protecting('tests/**'), () => {
    write('tests/a.test.ts', '')
    remove('tests/b.test.ts')
    renameSync(join(work, 'tests/c.test.ts'), join(work, 'tests/see.test.ts'))
    remove('tests/d.test.ts')
    symlinkSync('/dev/null', join(work, 'tests/d.test.ts'))
    chmodSync(join(work, 'tests/e.test.ts'), 0o755)
    write('src/a.ts', '2')
    write('src/b.ts', 'test.skip(')
  })
  expect(found).toEqual([
    'changed tests/a.test.ts',
    'deleted tests/b.test.ts',
    'deleted tests/c.test.ts',
    'changed tests/d.test.ts',
    'changed tests/e.test.ts',
  ])
})

test('new tests are what is wanted of an agent; new files that skip tests, configure the runner, or are named, are not', async () => {
  write('tests/old.test.ts', '')
  const found = await lines(protecting('tests/**', 'ci.sh'), () => {
    write('tests/new.test.ts', `test('it works', () => expect(1).toBe(1))\n`)
    write('tests/fixtures/skip.json', '{ "it.skip(": 1 }')
    write('tests/lazy.test.ts', `test('one', () => {})\ntest.skip('two', () => {})\n`)
    write('tests/conftest.py', 'x = 1\n')
    write('tests/e2e/playwright.config.ts', 'export default {}\n')
    write('ci.sh', 'exit 0\n')
  })
  expect(found).toEqual([
    'changed ci.sh',
    'changed tests/conftest.py',
    'changed tests/e2e/playwright.config.ts',
    'skipped tests/lazy.test.ts',
  ])
})

test('a mark that is new in a test is told from one that was there, or was only moved', async () => {
  const skip = `test.skip('slow', () => {})`
  write('tests/old.test.ts', `${skip}\ntest('a', () => {})\n`)
  write('tests/more.test.ts', `${skip}\n`)
  const found = await lines(protecting('tests'), () => {
    write('tests/old.test.ts', `test('a', () => {})\n${skip}\n`)
    write('tests/more.test.ts', `${skip}\n${skip}\n`)
  })
  expect(found).toEqual(['skipped tests/more.test.ts', 'changed tests/old.test.ts'])
})

test.each([
  ['a.test.ts', `describe.skip('x', () => {`],
  ['a.test.ts', `  it.only.each([1])('x', () => {`],
  ['a.test.js', `xit('x', () => {`],
  ['a.spec.ts', `test('x', { skip: true }, () => {`],
  ['test_a.py', `@pytest.mark.skipif(sys.platform == 'linux', reason='x')`],
  ['test_a.py', `    @unittest.skip("x")`],
  ['test_a.py', `        self.skipTest('x')`],
  ['a.rs', `    #[ignore = "slow"]`],
  ['a_test.go', `\tt.Skip("later")`],
  ['ATest.java', `  @Disabled("x")`],
  ['ATest.kt', `  @Ignore`],
  ['ATests.cs', `  [Fact(Skip = "x")]`],
  ['a_spec.rb', `  xit "works" do`],
  ['a_spec.rb', `    pending`],
  ['ATest.php', `$this->markTestSkipped('x');`],
  ['a_test.exs', `  @tag :skip`],
  ['a.cpp', `TEST(Suite, DISABLED_Works) {`],
])('in %s, a line that skips is known: %s', (path, line) => {
  expect(marksTestsSkipped(path, ['', line])).toBe(true)
})

test.each([
  ['a.test.ts', `test('skips nothing', () => expect(skipped).toBe(only))`],
  ['a.rs', `for line in lines.skip(1) {`],
  ['test_a.py', `def test_skips_blank_lines():`],
  ['a_test.go', `if skip { t.Fatal("skipped") }`],
  ['ATest.java', `assertEquals(1, disabled());`],
  ['notes.md', `use it.skip( to skip`],
])('in %s, a line that only speaks of skipping is no mark: %s', (path, line) => {
  expect(marksTestsSkipped(path, [line])).toBe(false)
})

test('every gate that protects a file is named, by globs, names of folders and files, hidden ones and any script', async () => {
  for (const path of ['tests/a', 'tests/.hidden/b', 'app/[id]/c', 'packages/x/spec/d', 'jest.json', 'Prüfung/ä 漢.txt'])
    write(path, '1')
  const gates = [
    { name: 'folder', protect: ['tests', 'app/[id]', 'packages/*/spec'] },
    { name: 'all', protect: ['**/*'] },
    { name: 'top', protect: ['*'] },
    { name: 'script', protect: ['Pru\u0308fung/*.txt', '{jest,vitest}.json'] },
    { name: 'case', protect: ['TESTS/**'] },
    { name: 'none', protect: [] },
  ]
  const { files } = await changed(gates, () => {
    for (const path of [
      'tests/a',
      'tests/.hidden/b',
      'app/[id]/c',
      'packages/x/spec/d',
      'jest.json',
      'Prüfung/ä 漢.txt',
    ])
      write(path, '2')
  })
  expect(Object.fromEntries(files.map(({ path, gates }) => [path, gates.join(' ')]))).toEqual({
    'Prüfung/ä 漢.txt': 'all script',
    'app/[id]/c': 'folder all',
    'jest.json': 'all top script',
    'packages/x/spec/d': 'folder all',
    'tests/.hidden/b': 'folder all',
    'tests/a': 'folder all',
  })
})

promise('D76')
describe('a file that only its case or normal form tells from a protected one', () => {
  test.each([
    ['darwin', ['changed Jest.JSON', 'changed TESTS/u\u0308.ts', 'changed TESTS/vitest.CONFIG.ts']],
    ['win32', ['changed Jest.JSON', 'changed TESTS/u\u0308.ts', 'changed TESTS/vitest.CONFIG.ts']],
    ['linux', []],
  ] as const)('on %s: %j', async (platform, expected) => {
    write('TESTS/u\u0308.ts', '1')
    const prints = await open()
    const before = await prints.take()
    // The runner finds the last two by the names that it asks for.
    for (const path of ['TESTS/u\u0308.ts', 'TESTS/vitest.CONFIG.ts', 'Jest.JSON']) write(path, '2')
    const gates = protecting('tests/**', 'T[A-Z]sts/\u00dc.ts', 'jest.json')
    const after = await prints.take()
    const { files } = await protectedChanges({ gates, before, after, git: prints.git, platform })
    expect(files.map(({ path, how }) => `${how} ${path}`)).toEqual(expected)
  })
})

promise('D76')
test('a glob of a project that other matchers would never come to the end of protects what it names', async () => {
  const name = 'a'.repeat(80)
  write(`${name}b`, '1')
  write(name, '1')
  const found = await lines(protecting('*a*a*a*a*a*a*a*a*b', `${'*a'.repeat(240)}c`), () => {
    write(`${name}b`, '2')
    write(name, '2')
  })
  expect(found).toEqual([`changed ${name}b`])
})

test('of many files 50 are named and all are counted; a tree in a repository is no other', async () => {
  execFileSync('git', ['init', '-q'], { cwd: work, env })
  for (let n = 0; n < 60; n++) write(`tests/${n}.ts`, `${n}`)
  execFileSync('git', ['add', '.'], { cwd: work, env })
  const { files, count } = await changed(protecting('tests'), () => {
    for (let n = 0; n < 60; n++) write(`tests/${n}.ts`, `${n}, changed`)
    execFileSync('git', ['add', '.'], { cwd: work, env })
  })
  expect([files.length, count]).toEqual([50, 60])
})

test('what an agent writes into attributes does not hide a mark, and large or strange files do no harm', async () => {
  write('tests/a.test.ts', 'test("a")\n')
  const found = await lines(protecting('tests'), () => {
    write('.gitattributes', '* binary -diff\n')
    write('tests/a.test.ts', 'test("a")\n\0\nit.skip("b")\n')
    write('tests/large.test.ts', `${'it("x")\n'.repeat(200_000)}it.skip("y")\n`)
    write('tests/\n:100644 M.test.ts', 'it.only("x")\n')
  })
  expect(found).toEqual(['skipped tests/\n:100644 M.test.ts', 'skipped tests/a.test.ts'])
})

test('where the older tree is gone, no protected file passes for unchanged', async () => {
  write('tests/a.test.ts', '1')
  write('src/a.ts', '1')
  const prints = await open()
  const after = await prints.take()
  const options = { gates: protecting('tests'), after, git: prints.git }
  expect(await protectedChanges({ ...options, before: 'a'.repeat(40) })).toEqual({
    files: [{ path: 'tests/a.test.ts', how: 'changed', gates: ['tests'] }],
    count: 1,
  })
  expect(await protectedChanges({ ...options, gates: protecting(), before: 'a'.repeat(40) })).toEqual({
    files: [],
    count: 0,
  })
})

test('settings of a test runner, and files that a gate names, are seen where an agent hides them from git', async () => {
  write('tests/a.test.ts', '1')
  write('.gitignore', 'local\nnode_modules\n')
  write('ci/local', '1')
  const gates = protecting('tests/**', 'ci/local', 'node_modules/.bin/vitest', '**/*.test.{ts,tsx}')
  const prints = await open()
  prints.protect(gates.flatMap(({ protect }) => protect))
  const before = await prints.take()
  write('tests/.gitignore', '*\n')
  write('tests/conftest.py', '')
  write('tests/__pycache__/a.pyc', '')
  write('tests/deep/er/vitest.config.ts', '')
  write('tests/node_modules/numpy/conftest.py', '')
  write('tests/git~1/conftest.py', '')
  write('tests/own/.gitignore', '*\n')
  write('tests/own/conftest.py', '')
  execFileSync('git', ['init', '-q', 'tests/own'], { cwd: work, env })
  write('ci/local', '2')
  write('node_modules/.bin/vitest', '#!/bin/true')
  write('node_modules/.bin/other', '')
  const after = await prints.take()
  const { files } = await protectedChanges({ gates, before, after, git: prints.git })
  expect(files.map(({ path }) => path)).toEqual([
    'ci/local',
    'node_modules/.bin/vitest',
    'tests/conftest.py',
    'tests/deep/er/vitest.config.ts',
    'tests/git~1/conftest.py',
    'tests/own/conftest.py',
  ])
  expect(await prints.take()).toBe(after)
  remove('tests/conftest.py')
  expect((await prints.changed(after, await prints.take())).paths).toEqual(['tests/conftest.py'])
})

test('globs that protect nothing are told from those that match a file, one that is ignored too', async () => {
  write('tests/a.test.ts', '1')
  write('.gitignore', 'local\n')
  write('ci/local', '1')
  write('ci/seen', '1')
  const prints = await open()
  const globs = ['tests/**', 'tset/**', 'tests/*.py', 'ci/local', 'ci/other', '**/*.test.ts']
  expect([...(await unmatchedGlobs(prints.git, globs))]).toEqual(['tset/**', 'tests/*.py', 'ci/other'])
  expect([...(await unmatchedGlobs(prints.git, []))]).toEqual([])
})

test('one program alone is looked for in an ignored folder', async () => {
  write('.gitignore', 'node_modules\n')
  write('node_modules/.bin/vitest', '')
  const prints = await open()
  expect([...(await unmatchedGlobs(prints.git, ['node_modules/.bin/vitest']))]).toEqual([])
})

/** What differs of the configuration that these gates run through, before a change and after each. */
async function configurations(gates: readonly ProtectingGate[], ...changes: (() => void)[]) {
  const searched = [join(work, 'bin'), '/usr/bin']
  const read = programReader(work, searched)
  const prints = await open()
  prints.protect([...gates.flatMap(({ protect }) => protect), ...TOP_CONFIGURATION])
  const [before, was] = [await prints.take(), await read()]
  const found = []
  for (const change of changes) {
    change()
    const [after, now] = [await prints.take(), await read()]
    found.push(
      await gateConfiguration({ gates, before, after, git: prints.git, programs: { before: was, after: now } }),
    )
  }
  return found.map(({ files, count, digest }) => ({
    files: files.map(({ path, how }) => `${how} ${path}`),
    count,
    digest,
  }))
}

promise(
  'D48',
  'Configuration that gates run through, and helpers planted in protected folders, need a review of this very content',
)
test('configuration that a gate runs through counts where it differs, be it ignored by git, and each content of it is another', async () => {
  write('.gitignore', '.npmrc\n')
  write('Makefile', 'test:\n')
  write('src/a.js', '1')
  const [none, one, other, both, back] = await configurations(
    protecting('tests/**'),
    () => write('src/a.js', '2'),
    () => write('.npmrc', 'script-shell=/bin/true'),
    () => write('.npmrc', 'script-shell=/bin/false'),
    () => write('Makefile', 'test:\n\ttrue\n'),
    () => {
      write('Makefile', 'test:\n')
      remove('.npmrc')
    },
  )
  expect(none).toEqual({ files: [], count: 0, digest: null })
  expect([one?.files, other?.files]).toEqual([['added .npmrc'], ['added .npmrc']])
  expect(both).toMatchObject({ files: ['added .npmrc', 'changed Makefile'], count: 2 })
  expect(new Set([one?.digest, other?.digest, both?.digest]).size).toBe(3)
  expect(back).toEqual(none)
})

test('a new file in what a gate protects counts unless it is a test by its name, or told as protected', async () => {
  write('tests/a.test.js', '1')
  const [found] = await configurations(protecting('tests/**'), () => {
    for (const path of ['tests/grep', 'tests/b.test.js', 'tests/vitest.config.js', 'lib/helper.sh']) write(path, 'x')
    write('tests/a.test.js', '2')
  })
  expect(found?.files).toEqual(['added tests/grep'])
})

test('where no gate protects anything, configuration is not looked at', async () => {
  const [found] = await configurations(protecting(), () => write('.npmrc', 'script-shell=/bin/true'))
  expect(found).toEqual({ files: [], count: 0, digest: null })
})

promise(
  'D49',
  'A program planted in `node_modules/.bin`, on PATH or in a virtual environment is seen, and a changed package, unless something was installed',
)
test('programs that scripts find first count, planted or rewritten, unless something was installed; a pipe holds nothing up', async () => {
  write('.gitignore', 'node_modules\n')
  write('package-lock.json', '{}')
  write('node_modules/vitest/run.js', '1')
  mkdirSync(join(work, 'node_modules/.bin'))
  symlinkSync('../vitest/run.js', join(work, 'node_modules/.bin/vitest'))
  const [planted, rewritten, back, installed] = await configurations(
    protecting('tests/**'),
    () => execFileSync('mkfifo', [join(work, 'node_modules/.bin/grep')]),
    () => {
      remove('node_modules/.bin/grep')
      write('node_modules/vitest/run.js', 'process.exit(0)')
    },
    () => write('node_modules/vitest/run.js', '1'),
    () => {
      write('node_modules/.bin/other', 'x')
      write('package-lock.json', '{ "packages": {} }')
    },
  )
  const bin = 'changed node_modules/.bin'
  expect([planted?.files, rewritten?.files]).toEqual([[bin], [bin, 'changed node_modules/vitest']])
  expect(planted?.digest).not.toBe(rewritten?.digest)
  expect([back?.files, installed?.files]).toEqual([[], []])
})

promise('D49')
test('programs that git does not ignore count likewise, by the lock file beside or above them', async () => {
  const program = 'packages/a/node_modules/.bin/vitest'
  const [planted, elsewhere, beside, above] = await configurations(
    protecting('tests/**'),
    () => {
      write('node_modules/.bin/vitest', '1')
      write(program, '1')
    },
    () => write('docs/yarn.lock', '1'),
    () => write('packages/a/yarn.lock', '1'),
    () => write('package-lock.json', '{}'),
  )
  const atTop = ['added node_modules/.bin/vitest', 'changed node_modules/.bin']
  const all = [atTop[0], `added ${program}`, atTop[1]]
  expect([planted?.files, elsewhere?.files]).toEqual([all, all])
  expect([beside?.files, above?.files]).toEqual([atTop, []])
})

promise('D49')
test('a package that a program requires counts where its content is another, also beside an install', async () => {
  write('.gitignore', 'node_modules\n')
  write('package-lock.json', '{\n}\n')
  for (const name of ['vitest', '@vitest/runner', 'chai']) {
    write(`node_modules/${name}/package.json`, '{ "version": "1.0.0" }')
    write(`node_modules/${name}/dist/index.js`, '1')
  }
  const lock = (text: string) => write('package-lock.json', text)
  const [deep, blank, wrote, disguised, other, added] = await configurations(
    protecting('tests/**'),
    () => write('node_modules/@vitest/runner/dist/index.js', '2'),
    () => lock('{\n\n }\n'),
    () => write('node_modules/.vite/results.json', '{}'),
    () => lock('{ "packages": {} }'),
    () => {
      write('node_modules/@vitest/runner/package.json', '{ "version": "1.0.1" }')
      write('node_modules/new/index.js', '')
    },
    () => lock('{\n}\n'),
  )
  const runner = ['changed node_modules/@vitest/runner']
  expect([deep?.files, blank?.files, wrote?.files, disguised?.files]).toEqual([runner, runner, runner, runner])
  expect(other?.files, 'an install of another version').toEqual([])
  expect(added?.files, 'without a lock file').toEqual([...runner, 'added node_modules/new'])
})

promise('D49')
test('a program of a folder on PATH, and a package of a virtual environment, count by their names', async () => {
  write('.gitignore', 'bin\nenv\n')
  write('bin/pytest', '#!/bin/sh\n')
  write('env/pyvenv.cfg', '')
  write('env/bin/pytest', '1')
  write('env/lib/python3.12/site-packages/_pytest/main.py', '1')
  write('requirements.txt', 'pytest\n')
  const [changed, ran, installed] = await configurations(
    protecting('tests/**'),
    () => {
      for (const path of ['bin/pytest', 'env/bin/pytest', 'env/lib/python3.12/site-packages/_pytest/main.py'])
        write(path, '2')
      write('bin/make', '')
      write('env/lib/python3.12/site-packages/sitecustomize.py', '')
    },
    () => write('env/lib/python3.12/site-packages/_pytest/__pycache__/main.pyc', '1'),
    () => write('requirements.txt', 'pytest\nnumpy\n'),
  )
  const packages = 'env/lib/python3.12/site-packages'
  const all = [
    'added bin/make',
    'changed bin/pytest',
    'changed env/bin/pytest',
    `changed ${packages}/_pytest`,
    `added ${packages}/sitecustomize.py`,
  ]
  expect([changed?.files, ran?.files, installed?.files]).toEqual([all, all, []])
})

test('what an earlier version has kept of programs is compared with those of now', async () => {
  write('node_modules/.bin/vitest', '1')
  write('node_modules/vitest/index.js', '1')
  const text = await programReader(work, [])()
  const earlier = (JSON.parse(text) as { entries: Record<string, string> }).entries['node_modules/.bin']?.slice(1) ?? ''
  expect(earlier).toMatch(/^[0-9a-f]{64}$/)
  expect(changedPrograms(earlier, text)).toEqual([])
  write('node_modules/.bin/vitest', '2')
  expect(changedPrograms(earlier, await programReader(work, [])())).toMatchObject([{ path: 'node_modules/.bin' }])
})

test('after 1,000 packages, one entry stands for all others, and says whether their versions changed', async () => {
  const put = (name: string, version: string, text: string) => {
    write(`node_modules/${name}/package.json`, JSON.stringify({ version }))
    write(`node_modules/${name}/index.js`, text)
  }
  for (let n = 0; n < 1_100; n += 1) put(`p${n + 1_000}`, '1', '1')
  const reader = programReader(work, [])
  const before = await reader()
  expect(before.length).toBeLessThan(64 * 1024)
  put('p2099', '1', '2')
  const sameVersion = await reader()
  expect(changedPrograms(before, sameVersion)).toMatchObject([{ path: 'node_modules/…', isOtherVersion: false }])
  put('p2099', '2', '3')
  expect(changedPrograms(sameVersion, await reader())).toMatchObject([{ isOtherVersion: true }])
})

incident('false done', 'A thousand new packages hid a changed one that a gate runs', {
  since: '2026-11-29',
  fixed: '2026-12-01',
  foundBy: 'a review of the code',
})
test('packages that push a changed one behind the limit do not hide it', async () => {
  write('node_modules/vitest/index.js', '1')
  const before = await programReader(work, [])()
  for (let n = 0; n < 1_000; n += 1) write(`node_modules/a${n}/index.js`, '1')
  write('node_modules/vitest/index.js', 'process.exit(0)')
  const paths = changedPrograms(before, await programReader(work, [])()).map(({ path }) => path)
  expect(paths).toContain('node_modules/vitest')
  expect(paths).toContain('node_modules/…')
})

test('what could be read before, and cannot be now, counts as changed', () => {
  const text = (isWhole: boolean) => JSON.stringify({ v: 2, isWhole, entries: {} })
  expect(changedPrograms(text(true), text(false))).toMatchObject([{ path: 'node_modules/…', how: 'changed' }])
  expect(changedPrograms(text(false), text(false))).toEqual([])
})
