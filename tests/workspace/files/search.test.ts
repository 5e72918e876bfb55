import { execFileSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openFileIndex, prepareFilesForSearch, searchFiles } from '../../../src/workspace/files/search.ts'
import { cpuMs } from '../../support/cpu-time.ts'
import { promise } from '../../support/promise.ts'
import { TestClock } from '../../support/test-clock.ts'

let base: string
let work: string
let gitDir: string
let clock: TestClock

beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), 'file-index-')))
  work = join(base, 'work')
  gitDir = join(base, 'files.git')
  mkdirSync(work)
  clock = new TestClock()
})

afterEach(() => rmSync(base, { recursive: true, force: true }))

function env(): NodeJS.ProcessEnv {
  return { PATH: process.env.PATH, HOME: base }
}

function git(...args: string[]): string {
  return execFileSync('git', args, { cwd: work, env: env(), encoding: 'utf8', stdio: 'pipe' })
}

function write(path: string | Buffer, text = ''): void {
  const full = Buffer.concat([Buffer.from(`${work}/`), Buffer.from(path)])
  mkdirSync(dirname(full.toString('latin1')), { recursive: true })
  writeFileSync(full, text)
}

function open(directory = work, problems: unknown[] = []) {
  const onProblem = (error: unknown) => void problems.push(error)
  return openFileIndex({ directory, gitDir, env: env(), clock, onProblem })
}

test('nothing is made or started before the first search', () => {
  open()
  expect(existsSync(gitDir)).toBe(false)
})

promise('D60')
test('tracked files and new ones are found, ignored and deleted ones are not, and tracked ones that are ignored are', async () => {
  git('init', '-q')
  for (const path of ['src/kept.ts', 'src/gone.ts', 'build/kept.log', 'build/gone.log']) write(path)
  git('add', '-A')
  write('.gitignore', '*.log\n/node_modules\n')
  for (const path of ['src/new.ts', 'build/new.log', 'node_modules/a/index.js', '.codemachine/x/MAIN.md']) write(path)
  write('.codex-flow/runtime/debug/1-x.json')
  write('.codex-flow/runtime.md')
  for (const path of ['src/gone.ts', 'build/gone.log']) rmSync(join(work, path))
  const before = readFileSync(join(work, '.git/index'))
  expect((await open().search('')).sort()).toEqual([
    '.codex-flow/runtime.md',
    '.gitignore',
    'build/kept.log',
    'src/kept.ts',
    'src/new.ts',
  ])
  expect(readFileSync(join(work, '.git/index'))).toEqual(before)
  expect(existsSync(join(gitDir, 'index'))).toBe(false)
})

test('ignore files count where there is no repository, and in the person’s own excludes', async () => {
  mkdirSync(join(base, '.config/git'), { recursive: true })
  writeFileSync(join(base, '.config/git/ignore'), '*.swp\n')
  write('.gitignore', 'dist\n')
  for (const path of ['a.ts', 'a.swp', 'dist/a.js', 'sub/b.ts']) write(path)
  expect(await open().search('')).toEqual(expect.arrayContaining(['.gitignore', 'a.ts', 'sub/b.ts']))
  expect(await open().search('dist')).toEqual([])
})

test('in a folder of a repository only its own files are found, under the rules from above', async () => {
  git('init', '-q')
  write('.gitignore', '*.log\n')
  for (const path of ['outside.ts', 'sub/inside.ts', 'sub/x.log']) write(path)
  expect(await open(join(work, 'sub')).search('')).toEqual(['inside.ts'])
})

test('files of a repository inside the repository are found', async () => {
  git('init', '-q')
  write('lib/deep/inner.ts')
  execFileSync('git', ['init', '-q'], { cwd: join(work, 'lib'), env: env() })
  expect(await open().search('inner')).toEqual(['lib/deep/inner.ts'])
})

test('a config of the repository that names a program runs nothing', async () => {
  git('init', '-q')
  write('a.ts')
  git('config', 'core.fsmonitor', `touch ${join(base, 'ran')}; false`)
  expect(await open().search('')).toEqual(['a.ts'])
  expect(existsSync(join(base, 'ran'))).toBe(false)
})

test('an index that git cannot read costs only what it alone knew', async () => {
  git('init', '-q')
  write('a.ts')
  writeFileSync(join(work, '.git/index'), 'rubbish')
  expect(await open().search('a')).toEqual(['a.ts'])
})

test('names with newlines and escape sequences come as they are, and those that are no UTF-8 are left out', async () => {
  const strange = ['new\nline.ts', 'esc\x1b[2J.ts', '"quoted" – ü.ts', ' space.ts']
  for (const path of strange) write(path)
  write(Buffer.from([0x66, 0xff, 0x2e, 0x74, 0x73]))
  expect((await open().search('')).sort()).toEqual(strange.sort())
  expect(await open().search('new\nline')).toEqual(['new\nline.ts'])
})

test('what comes later is found when the listing is older than 5 s, or when it is said to be old', async () => {
  write('first.ts')
  const index = open()
  expect(await index.search('ts')).toEqual(['first.ts'])
  write('second.ts')
  expect(await index.search('ts')).toEqual(['first.ts'])
  await clock.advance(5_000)
  await expect.poll(() => index.search('second'), { timeout: 30_000 }).toEqual(['second.ts'])
  write('third.ts')
  index.refresh()
  await expect.poll(() => index.search('third'), { timeout: 30_000 }).toEqual(['third.ts'])
})

test('without a query the files that were changed last come first', async () => {
  for (const [n, path] of ['old.ts', 'new.ts', 'deep/newest.ts'].entries()) {
    write(path)
    utimesSync(join(work, path), 1000 + n, 1000 + n)
  }
  expect(await open().search('')).toEqual(['deep/newest.ts', 'new.ts', 'old.ts'])
  expect(await open().search('', 1)).toEqual(['deep/newest.ts'])
})

test('a directory that is gone has no files, and that is said once', async () => {
  const problems: unknown[] = []
  const index = open(join(base, 'none'), problems)
  expect(await index.search('a')).toEqual([])
  index.refresh()
  expect(await index.search('a')).toEqual([])
  expect(problems).toHaveLength(1)
})

test('a name with the query in it comes before a path with it, and that before mere letters', () => {
  const files = prepareFilesForSearch(
    ['t/h/eme.ts', 'theme/dark.ts', 'src/ui/theme.ts', 'src/Theme-two.ts', 'x.md'].map(each => `${each}\0`).join(''),
  )
  expect(searchFiles(files, 'theme', 10)).toEqual([
    'src/ui/theme.ts',
    'src/Theme-two.ts',
    'theme/dark.ts',
    't/h/eme.ts',
  ])
  expect(searchFiles(files, 'theme ui', 10)).toEqual(['src/ui/theme.ts'])
  expect(searchFiles(files, 'THEME', 1)).toEqual(['src/ui/theme.ts'])
  expect(searchFiles(files, 'nothing', 10)).toEqual([])
})

test('no more than 300,000 paths are kept, and any search of them stays short', () => {
  const listing = Array.from({ length: 350_000 }, (_, n) => `folder${n % 500}/part${n % 7}/file-${n}.ts\0`).join('')
  const files = prepareFilesForSearch(listing)
  expect(files.paths).toHaveLength(300_000)
  expect(searchFiles(files, 'file-299999', 5)).toEqual(['folder499/part0/file-299999.ts'])
  expect(searchFiles(files, 'f', 50)).toHaveLength(50)
  const start = cpuMs()
  for (const query of ['f9', 'part3 file', 'zzz', 'x'.repeat(5_000_000)]) searchFiles(files, query, 50)
  // Some 100 ms each at the most; a search that goes back and forth in a path would take minutes.
  expect(cpuMs() - start).toBeLessThan(4_000)
})
