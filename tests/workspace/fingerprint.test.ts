import { type ChildProcess, execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import {
  chmodSync,
  chownSync,
  constants,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { build } from 'esbuild'
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { UserError } from '../../src/base/errors.ts'
import { type Fingerprints, openFingerprints } from '../../src/workspace/fingerprint/fingerprint.ts'
import { isFullyCommitted, treeOfCommit } from '../../src/workspace/git/commits.ts'
import { findRepository } from '../../src/workspace/git/git.ts'
import { openSavepoints } from '../../src/workspace/savepoints/savepoint-writer.ts'
import { promise } from '../support/promise.ts'
import { compareWithNew } from './random/random-work.ts'

let base: string
let work: string
let records: string
let env: NodeJS.ProcessEnv
let warnings: string[]

beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), 'fingerprint-')))
  work = join(base, 'work')
  records = join(base, 'records')
  for (const folder of [work, records, join(base, 'home')]) mkdirSync(folder)
  env = { PATH: process.env.PATH, HOME: join(base, 'home'), GIT_DIR: '/nowhere', GIT_INDEX_FILE: '/nowhere/index' }
  warnings = []
})

afterEach(() => rmSync(base, { recursive: true, force: true }))

describe('the fingerprint of a work directory', () => {
  it('is the same while nothing changes, and another when a file is written, changed, made executable or deleted', async () => {
    const prints = await open()
    write('a.txt', 'one')
    const seen = [await prints.take()]
    expect(await prints.take()).toBe(seen[0])
    write('new.txt', 'two')
    seen.push(await prints.take())
    write('a.txt', 'three')
    seen.push(await prints.take())
    chmodSync(join(work, 'a.txt'), 0o755)
    seen.push(await prints.take())
    unlinkSync(join(work, 'new.txt'))
    seen.push(await prints.take())
    expect(new Set(seen).size).toBe(5)
    expect(await prints.changed(at(seen, 0), at(seen, 2))).toEqual({ paths: ['a.txt', 'new.txt'], count: 2 })
    expect(await prints.changed(at(seen, 2), at(seen, 2))).toEqual({ paths: [], count: 0 })
  })

  it('is a git tree hash: the one that the person’s own commit of the same files has', async () => {
    repository(work)
    write('src/a.ts', 'a')
    write('b', 'b')
    commit(work)
    const prints = await open()
    expect(await prints.take()).toBe(git(work, 'rev-parse', 'HEAD^{tree}'))
  })

  it('comes back when the change is undone, and lives on in another process', async () => {
    write('a', '1')
    const first = await (await open()).take()
    const second = await open()
    expect(await second.take()).toBe(first)
    write('a', '2')
    expect(await second.take()).not.toBe(first)
    write('a', '1')
    expect(await second.take()).toBe(first)
  })

  it('does not change when a file is only touched', async () => {
    write('a', '1')
    const prints = await open()
    const before = await prints.take()
    utimesSync(join(work, 'a'), 1, 1)
    expect(await prints.take()).toBe(before)
  })

  promise('J10')
  it.each([1, 408])('is the one that is taken anew, whatever is done there (%i)', async seed => {
    await compareWithNew(seed, 15)
  })

  promise('J10')
  it('is another when a file is written again with the same length and the same time', async () => {
    write('a', '1')
    const prints = await open()
    const before = await prints.take()
    const { atime, mtime } = statSync(join(work, 'a'))
    write('a', '2')
    utimesSync(join(work, 'a'), atime, mtime)
    expect(await changes(prints, before)).toEqual(['a'])
  })

  it('starts one git while nothing changes, three where something has, and one more for its savepoint', async () => {
    const calls = countGits()
    const prints = await open()
    await using savepoints = openSavepoints(prints)
    const keep = (round: number, tree: string) =>
      savepoints.keep({ session: '20261121_1', round, tree, at: round * 1000 })
    write('a', '1')
    write('folder/b', '1')
    const first = await prints.take()
    await keep(0, first)
    calls()
    expect(await prints.take()).toBe(first)
    expect(calls()).toEqual(['status'])
    write('a', '2')
    write('c', '1')
    rmSync(join(work, 'folder/b'))
    const second = await prints.take()
    expect(await prints.changed(first, second)).toEqual({ paths: ['a', 'c', 'folder/b'], count: 3 })
    expect(calls()).toEqual(['status', 'update-index', 'write-tree'])
    expect((await keep(1, second))?.changes.files).toBe(3)
    expect(calls()).toEqual(['diff-tree'])
  })

  it('is of an empty directory too', async () => {
    expect(await (await open()).take()).toBe('4b825dc642cb6eb9a060e54bf8d69288fbee4904')
  })

  it('lists 50 paths and counts all', async () => {
    const prints = await open()
    const before = await prints.take()
    for (let i = 0; i < 60; i += 1) write(`f${i}`, `${i}`)
    const { paths, count } = await prints.changed(before, await prints.take())
    expect([paths.length, count]).toEqual([50, 60])
  })

  it('can be committed in the private git directory', async () => {
    write('a', '1')
    const tree = await (await open()).take()
    const author = ['-c', 'user.name=p', '-c', 'user.email=p@example.org']
    expect(git(work, ...author, `--git-dir=${join(records, 'git')}`, 'commit-tree', '-m', 'x', tree)).toMatch(
      /^[0-9a-f]{40}$/,
    )
  })
})

promise('J10', 'The fingerprint of a work tree sees every file that counts, and is the same for the same files')
describe('what counts', () => {
  it('leaves out what .gitignore, info/exclude and the global excludes file name, and .codemachine at the top only', async () => {
    repository(work)
    writeFileSync(join(base, 'home/my-ignores'), 'global.out\n')
    git(work, 'config', '--global', 'core.excludesFile', '~/my-ignores')
    writeFileSync(join(work, '.git/info/exclude'), 'mine.out\n')
    write('.gitignore', 'tree.out\n!.codemachine\n')
    const prints = await open()
    const before = await prints.take()
    for (const path of ['global.out', 'mine.out', 'tree.out', 'sub/tree.out', '.codemachine/MAIN.md']) write(path, 'x')
    expect(await prints.take()).toBe(before)
    write('sub/.codemachine/x', 'x')
    expect(await changes(prints, before)).toEqual(['sub/.codemachine/x'])
  })

  promise(
    'D60',
    "What runs of workflows write into `.codex-flow/runtime/` is no work of an agent's, whether git ignores it, has it committed, or neither",
  )
  it('leaves out what runs of workflows write, at the top only, whether it is ignored, committed or neither', async () => {
    repository(work)
    write('.codex-flow/runtime/debug/1-committed.json', 'then')
    write('.codex-flow/flow.toml', 'then')
    git(work, 'add', '.')
    commit(work)
    const prints = await open()
    const before = await prints.take()
    expect(git(work, `--git-dir=${join(records, 'git')}`, 'ls-tree', '-r', '--name-only', before)).toBe(
      '.codex-flow/flow.toml',
    )
    write('.codex-flow/runtime/debug/1-committed.json', 'now')
    write('.codex-flow/runtime/logs/1-new.log', 'now')
    expect(await prints.take()).toBe(before)
    write('.gitignore', '!.codex-flow/runtime\n')
    prints.protect(['.codex-flow/**'])
    write('.codex-flow/runtime/vitest.config.ts', 'now')
    write('sub/.codex-flow/runtime/x', 'now')
    write('.codex-flow/runtime.md', 'now')
    expect(await changes(prints, before)).toEqual(['.codex-flow/runtime.md', '.gitignore', 'sub/.codex-flow/runtime/x'])
    expect(prints.leftOut().paths).toEqual([])
  })

  it('neither includes what it passes over, nor names it as left out', async () => {
    repository(work)
    const prints = await open()
    const before = await prints.take()
    write('.env', '')
    write('.env.local', 'KEY=1')
    prints.passOver(path => path === join(work, '.env'))
    expect(await changes(prints, before)).toEqual(['.env.local'])
    expect(prints.leftOut()).toEqual({ paths: [], count: 0 })
  })

  promise('D60')
  it('is that of a commit of the same files, where that has what runs of workflows wrote', async () => {
    repository(work)
    write('.codex-flow/runtime/debug/1-committed.json', 'then')
    write('a', '1')
    git(work, 'add', '.')
    commit(work)
    const head = () => git(work, 'rev-parse', 'HEAD')
    const prints = await open()
    const tree = await prints.take()
    expect(await treeOfCommit(prints.git, head())).toBe(tree)
    expect(await isFullyCommitted(prints.git, head(), tree)).toBe(true)
    write('.codex-flow/flow.toml', 'now')
    expect(await isFullyCommitted(prints.git, head(), await prints.take())).toBe(false)
    git(work, 'add', '.')
    commit(work)
    expect(await treeOfCommit(prints.git, head())).toBe(await prints.take())
    expect(await treeOfCommit(prints.git, '0'.repeat(40))).toBeNull()
  })

  it('sees a change of .gitignore itself, and what comes into sight by it', async () => {
    write('.gitignore', '*.log\n')
    write('a.log', 'x')
    const prints = await open()
    const before = await prints.take()
    write('.gitignore', '')
    expect(await changes(prints, before)).toEqual(['.gitignore', 'a.log'])
  })

  it('counts a committed file that an ignore rule matches', async () => {
    repository(work)
    write('.gitignore', 'dist\n')
    write('dist/app.js', '1')
    git(work, 'add', '-f', '.')
    commit(work)
    const prints = await open()
    const before = await prints.take()
    write('dist/app.js', '2')
    expect(await changes(prints, before)).toEqual(['dist/app.js'])
  })

  it('leaves out what it is told to, such as records inside of the work directory', async () => {
    records = join(work, 'records [1]')
    mkdirSync(records)
    const prints = await open()
    expect(await prints.take()).toBe('4b825dc642cb6eb9a060e54bf8d69288fbee4904')
    expect(await prints.take()).toBe('4b825dc642cb6eb9a060e54bf8d69288fbee4904')
  })

  it('sees a change of line endings alone, whatever .gitattributes says', async () => {
    write('.gitattributes', '* text=auto eol=lf\nu working-tree-encoding=UTF-16\n')
    write('u', 'not UTF-16')
    write('a', '1\n')
    const prints = await open()
    const before = await prints.take()
    write('a', '1\r\n')
    expect(await changes(prints, before)).toEqual(['a'])
  })
})

describe('where the work directory lies', () => {
  it('in a subdirectory of a repository: the rules above count, the files beside do not', async () => {
    repository(base)
    writeFileSync(join(base, '.gitignore'), 'node_modules\n/work/top.out\n/records\n/home\n')
    write('a', '1')
    const prints = await open()
    const before = await prints.take()
    write('node_modules/x', 'x')
    write('top.out', 'x')
    write('.codemachine/MAIN.md', 'x')
    writeFileSync(join(base, 'beside'), 'x')
    expect(await prints.take()).toBe(before)
    write('b', '1')
    expect(await changes(prints, before)).toEqual(['b'])
  })

  it('in an empty subdirectory', async () => {
    repository(base)
    const prints = await open()
    const before = await prints.take()
    write('a', '1')
    expect(await changes(prints, before)).toEqual(['a'])
  })

  it('in a directory that the repository around it ignores: it is not empty for that', async () => {
    repository(base)
    writeFileSync(join(base, '.gitignore'), '/work\n')
    const prints = await open()
    const before = await prints.take()
    write('a', '1')
    expect(await changes(prints, before)).toEqual(['a'])
  })

  it('in a worktree, whose objects are borrowed and not copied', async () => {
    const main = join(base, 'main')
    mkdirSync(main)
    repository(main)
    writeFileSync(join(main, 'big'), randomBytes(300_000).toString('hex'))
    commit(main)
    rmSync(work, { recursive: true })
    git(main, 'worktree', 'add', '-q', work)
    const prints = await open()
    expect(await prints.take()).toBe(git(main, 'rev-parse', 'HEAD^{tree}'))
    expect(sizeOf(join(records, 'git/objects'))).toBeLessThan(20_000)
  })

  it('in a clone that borrows its own objects', async () => {
    const main = join(base, 'main')
    mkdirSync(main)
    repository(main)
    writeFileSync(join(main, 'big'), randomBytes(300_000).toString('hex'))
    commit(main)
    git(base, 'clone', '-q', '--shared', main, work)
    await (await open()).take()
    expect(sizeOf(join(records, 'git/objects'))).toBeLessThan(20_000)
  })

  it('in a repository that uses SHA-256', async () => {
    git(work, 'init', '-q', '--object-format=sha256')
    write('a', '1')
    commit(work)
    expect(await (await open()).take()).toBe(git(work, 'rev-parse', 'HEAD^{tree}'))
  })
})

promise('B2', "What a round plants for git does not run in codemachine's hands")
describe('what an agent may have planted', () => {
  it('runs no fsmonitor, hook or filter of the repository or of a nested one, though a plain git would', async () => {
    repository(work)
    write('sub/keep', '1')
    commit(work)
    plant(work)
    for (const nested of ['nested', 'nested/deeper', 'sub']) {
      mkdirSync(join(work, nested), { recursive: true })
      repository(join(work, nested))
      write(`${nested}/f`, '1')
      commit(join(work, nested))
      plant(join(work, nested))
    }
    write('.gitattributes', '* filter=evil diff=evil merge=evil\n')
    const prints = await open()
    const before = await prints.take()
    for (const path of ['f', 'nested/f', 'nested/deeper/f', 'nested/new', 'sub/f']) write(path, 'changed')
    const after = await prints.take()
    await prints.changed(before, after)
    await (await open()).take()
    expect(existsSync(join(base, 'ran'))).toBe(false)
    git(work, 'status')
    expect(existsSync(join(base, 'ran'))).toBe(true)
  })

  it('sees what changes inside of nested repositories and submodules, at any depth', async () => {
    repository(work)
    const library = join(base, 'library')
    mkdirSync(library)
    repository(library)
    writeFileSync(join(library, 'l'), '1')
    commit(library)
    git(work, '-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'add', library, 'vendor/lib')
    commit(work)
    for (const nested of ['nested', 'nested/deeper', 'empty']) {
      mkdirSync(join(work, nested), { recursive: true })
      repository(join(work, nested))
    }
    write('nested/deeper/a', '1')
    const prints = await open()
    const before = await prints.take()
    expect(await prints.take()).toBe(before)
    for (const path of ['nested/deeper/a', 'nested/b', 'vendor/lib/l', 'empty/x']) write(path, '2')
    expect(await changes(prints, before)).toEqual(['empty/x', 'nested/b', 'nested/deeper/a', 'vendor/lib/l'])
  })

  it('honours the ignore files of a nested repository and of the one around it', async () => {
    write('.gitignore', 'outer\n')
    mkdirSync(join(work, 'nested'))
    repository(join(work, 'nested'))
    write('nested/.gitignore', 'inner\n')
    for (const path of ['nested/outer/x', 'nested/inner', 'nested/seen']) write(path, '1')
    const prints = await open()
    await prints.take()
    expect(git(work, `--git-dir=${join(records, 'git')}`, 'ls-files').split('\n')).toEqual([
      '.gitignore',
      'nested/.gitignore',
      'nested/seen',
    ])
  })

  it('stands a directory that becomes a repository, and one that ceases to be one', async () => {
    write('d/a', '1')
    const prints = await open()
    const before = await prints.take()
    repository(join(work, 'd'))
    expect(await prints.take()).toBe(before)
    write('d/b', '1')
    expect(await changes(prints, before)).toEqual(['d/b'])
    rmSync(join(work, 'd/.git'), { recursive: true })
    rmSync(join(work, 'd/b'))
    expect(await prints.take()).toBe(before)
  })

  it('stands sockets, pipes, broken links and very odd names', async () => {
    const prints = await open()
    const before = await prints.take()
    const names = ['new\nline', '-rf', ' ', 'tab\t"quote', ':(glob)*', 'e\u0301', '\u00e9', '!not', '#hash', '*']
    for (const name of names) write(name, 'x')
    writeFileSync(Buffer.concat([Buffer.from(`${work}/`), Buffer.from([0xff, 0xfe, 0x41])]), 'x')
    symlinkSync('nowhere', join(work, 'broken-link'))
    execFileSync('mkfifo', [join(work, 'fifo')])
    const server = createServer().listen(join(work, 'socket'))
    const after = await prints.take()
    server.close()
    expect((await prints.changed(before, after)).count).toBe(names.length + 2)
    expect(await prints.take()).toBe(after)
    write('-rf', 'y')
    expect(await changes(prints, after)).toEqual(['-rf'])
    expect(warnings).toEqual([])
  })

  it('stands a file that becomes a pipe, a directory or a link, and back', async () => {
    for (const path of ['file', 'dir/a', 'linked/a', 'other/a', 'kept']) write(path, '1')
    const prints = await open()
    const before = await prints.take()
    unlinkSync(join(work, 'file'))
    execFileSync('mkfifo', [join(work, 'file')])
    rmSync(join(work, 'dir'), { recursive: true })
    write('dir', 'a file')
    renameSync(join(work, 'linked'), join(work, 'moved'))
    symlinkSync('moved', join(work, 'linked'))
    unlinkSync(join(work, 'other/a'))
    write('other/a/b', '1')
    expect(await changes(prints, before)).toEqual([
      'dir',
      'dir/a',
      'file',
      'linked',
      'linked/a',
      'moved/a',
      'other/a',
      'other/a/b',
    ])
    for (const path of ['file', 'dir', 'linked', 'other/a', 'moved']) rmSync(join(work, path), { recursive: true })
    for (const path of ['file', 'dir/a', 'linked/a', 'other/a']) write(path, '1')
    expect(await prints.take()).toBe(before)
    expect(warnings).toEqual(['file is a pipe: only size and time are compared, and savepoints do not contain it.'])
  })

  it('tells of a file and a folder that it may not read, and goes on', async () => {
    for (const path of ['secret', 'closed/a', 'open']) write(path, '1')
    chmodSync(join(work, 'secret'), 0)
    chmodSync(join(work, 'closed'), 0)
    const { tree, warnings } = await takeAsNobody()
    // Else only root could remove it.
    chmodSync(join(work, 'closed'), 0o700)
    expect(tree).toMatch(/^[0-9a-f]{40}$/)
    expect(warnings).toContain('secret cannot be read.')
    expect(warnings.join()).toContain('closed')
    expect(git(work, `--git-dir=${join(records, 'git')}`, 'ls-tree', '--name-only', tree)).toBe('open')
  })

  it('runs no program called git that lies in the work directory', async () => {
    write('node_modules/.bin/git', `#!/bin/sh\necho ran > ${join(base, 'ran')}\n`)
    chmodSync(join(work, 'node_modules/.bin/git'), 0o755)
    env.PATH = `${join(work, 'node_modules/.bin')}:.:${env.PATH}`
    await (await open()).take()
    expect(existsSync(join(base, 'ran'))).toBe(false)
  })
})

describe('after a crash', () => {
  it('a lock that was left in the private directory is removed', async () => {
    write('a', '1')
    const before = await (await open()).take()
    writeFileSync(join(records, 'git/index.lock'), '')
    write('a', '2')
    const prints = await open()
    expect(await changes(prints, before)).toEqual(['a'])
    writeFileSync(join(records, 'git/index.lock'), '')
    write('a', '1')
    expect(await prints.take()).toBe(before)
  })

  it('a broken index, a broken directory or a lost one is made anew', async () => {
    write('a', '1')
    const before = await (await open()).take()
    const spoilers = [
      () => writeFileSync(join(records, 'git/index'), 'rubbish'),
      () => truncateSync(join(records, 'git/index'), 40),
      () => writeFileSync(join(records, 'git/HEAD'), ''),
      () => writeFileSync(join(records, 'git/config'), '[['),
      () => rmSync(join(records, 'git/objects'), { recursive: true }),
      () => rmSync(join(records, 'git'), { recursive: true }),
    ]
    for (const spoil of spoilers) {
      const running = await open()
      await running.take()
      spoil()
      write('b', '2')
      await running.take()
      unlinkSync(join(work, 'b'))
      expect(await running.take()).toBe(before)
      spoil()
      expect(await (await open()).take()).toBe(before)
    }
  })

  it('objects that the person’s git has thrown away are written again', async () => {
    repository(work)
    write('d/a', '1')
    write('d/b', '1')
    commit(work)
    const prints = await open()
    const before = await prints.take()
    rmSync(join(work, '.git'), { recursive: true })
    write('d/c', '1')
    const after = await prints.take()
    expect(after).not.toBe(before)
    expect(git(work, `--git-dir=${join(records, 'git')}`, 'show', `${after}:d/a`)).toBe('1')
  })

  it('what changed since a fingerprint that is gone is told as unknown', async () => {
    const prints = await open()
    expect(await prints.changed('1'.repeat(40), await prints.take())).toEqual({ paths: [], count: 0 })
    expect(warnings).toHaveLength(1)
  })
})

describe('the person’s own git', () => {
  it('has its index, references and config neither read nor written', async () => {
    repository(work)
    write('a', '1')
    commit(work)
    for (const path of ['index', 'config', 'packed-refs']) writeFileSync(join(work, '.git', path), 'unreadable rubbish')
    const before = snapshot(join(work, '.git'))
    await (await open()).take()
    expect(snapshot(join(work, '.git'))).toEqual(before)
  })

  it('has to be installed', async () => {
    env.PATH = join(base, 'home')
    await expect(open()).rejects.toThrow(UserError)
  })
})

/** Counts the git commands of this test: answers those since it was asked last. */
function countGits(): () => string[] {
  const started: ChildProcess[] = []
  const note = (message: unknown) => started.push((message as { process: ChildProcess }).process)
  subscribe('child_process', note)
  onTestFinished(() => void unsubscribe('child_process', note))
  return () => started.splice(0).map(({ spawnargs }) => spawnargs.find(word => GIT_COMMANDS.has(word)) ?? '')
}

const GIT_COMMANDS = new Set([
  'status',
  'ls-files',
  'update-index',
  'write-tree',
  'diff-tree',
  'cat-file',
  'pack-objects',
])

async function open(): Promise<Fingerprints> {
  return openFingerprints({
    gitDir: join(records, 'git'),
    directory: work,
    repository: await findRepository(work),
    env,
    onWarning: message => warnings.push(message),
  })
}

async function changes(prints: Fingerprints, before: string): Promise<readonly string[]> {
  return (await prints.changed(before, await prints.take())).paths
}

function write(path: string, text: string): void {
  mkdirSync(dirname(join(work, path)), { recursive: true })
  writeFileSync(join(work, path), text)
}

function git(directory: string, ...args: string[]): string {
  const personal = { PATH: process.env.PATH, HOME: join(base, 'home') }
  return execFileSync('git', args, { cwd: directory, env: personal, encoding: 'utf8', stdio: 'pipe' }).trim()
}

function repository(directory: string): void {
  git(directory, 'init', '-q')
}

function commit(directory: string): void {
  git(directory, 'add', '.')
  git(directory, '-c', 'user.name=p', '-c', 'user.email=p@example.org', 'commit', '-qm', 'x')
}

/** Whatever of this runs leaves the file `ran`. */
function plant(directory: string): void {
  const evil = join(base, 'evil.sh')
  writeFileSync(evil, `#!/bin/sh\necho "$0 $@" >> ${join(base, 'ran')}\ncat\n`, { mode: 0o755 })
  const keys = ['core.fsmonitor', 'filter.evil.clean', 'filter.evil.process', 'diff.evil.textconv', 'diff.external']
  for (const key of keys) git(directory, 'config', key, evil)
  git(directory, 'config', 'status.submoduleSummary', 'true')
  const hooks = join(directory, '.git/hooks')
  for (const hook of ['post-index-change', 'fsmonitor-watchman', 'pre-commit']) {
    writeFileSync(join(hooks, hook), `#!/bin/sh\necho hook >> ${join(base, 'ran')}\n`, { mode: 0o755 })
  }
}

/** Takes one as a user who has to mind permissions: this one, or if that is root, nobody. */
async function takeAsNobody(): Promise<{ tree: string; warnings: string[] }> {
  if (process.getuid?.() !== 0) return { tree: await (await open()).take(), warnings }
  const nobody = 65534
  for (const path of ['', 'work', 'work/secret', 'work/closed', 'work/open', 'records', 'home']) {
    chownSync(join(base, path), nobody, nobody)
  }
  // Node and the source may lie where only root may enter.
  const node = join(base, 'node')
  copyFileSync(process.execPath, node, constants.COPYFILE_FICLONE)
  const source = join(import.meta.dirname, '../../src/workspace/fingerprint/fingerprint.ts')
  const fingerprint = join(base, 'fingerprint.mjs')
  await build({ entryPoints: [source], outfile: fingerprint, bundle: true, platform: 'node', format: 'esm' })
  const script = `
    import { openFingerprints } from ${JSON.stringify(fingerprint)}
    const warnings = []
    const prints = await openFingerprints({
      gitDir: ${JSON.stringify(join(records, 'git'))}, directory: ${JSON.stringify(work)}, repository: null,
      env: process.env, onWarning: message => warnings.push(message),
    })
    console.log(JSON.stringify({ tree: await prints.take(), warnings }))
  `
  const args = ['--no-warnings', '--input-type=module', '-e', script]
  const options = { cwd: work, uid: nobody, gid: nobody, env: { ...env }, encoding: 'utf8' as const }
  return JSON.parse(execFileSync(node, args, options))
}

function sizeOf(directory: string): number {
  const files = readdirSync(directory, { recursive: true, withFileTypes: true }).filter(entry => entry.isFile())
  return files.reduce((sum, file) => sum + statSync(join(file.parentPath, file.name)).size, 0)
}

function snapshot(directory: string): Record<string, string> {
  const files = readdirSync(directory, { recursive: true, withFileTypes: true }).filter(entry => entry.isFile())
  return Object.fromEntries(
    files.map(({ parentPath, name }) => [join(parentPath, name), readFileSync(join(parentPath, name), 'base64')]),
  )
}

function at(list: readonly string[], index: number): string {
  const value = list[index]
  if (value === undefined) throw new Error(`No entry ${index}`)
  return value
}
