import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { findRepository } from '../../../src/workspace/git/git.ts'
import {
  openRepositoryGuard,
  type RepositoryGuard,
  restoreAfterCrash,
} from '../../../src/workspace/guard/repository-guard.ts'
import { cpuMs, timesSlower } from '../../support/cpu-time.ts'
import { promise } from '../../support/promise.ts'

let base: string
let work: string
let aside: string
let baselineFile: string

beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), 'guard-')))
  work = join(base, 'work')
  aside = join(base, 'records/set-aside')
  baselineFile = join(base, 'guard.json')
  for (const folder of [work, join(base, 'home')]) mkdirSync(folder)
})

afterEach(() => rmSync(base, { recursive: true, force: true }))

promise('B3', 'Changes of config, hooks and info of the repository are put back, and shown')
describe('a repository that was there before', () => {
  let guard: RepositoryGuard

  beforeEach(async () => {
    git(work, 'init', '-q')
    write('.git/hooks/pre-commit', '#!/bin/sh\nexit 0\n', 0o755)
    commit()
    guard = await open()
  })

  it('is left alone while a round only works and commits', async () => {
    write('a', '1')
    commit()
    git(work, 'branch', 'other')
    git(work, 'gc', '-q')
    expect(await guard.check()).toBeNull()
    expect(existsSync(aside)).toBe(false)
  })

  it('gets its config back, and the planted one is kept for the person', async () => {
    const before = read('.git/config')
    plant(work)
    expect(await guard.check()).toEqual({ restored: ['.git/config'], setAside: join(aside, '001'), problems: [] })
    expect(read('.git/config')).toBe(before)
    expect(readFileSync(join(aside, '001/.git/config'), 'utf8')).toContain('fsmonitor')
    git(work, 'status')
    expect(existsSync(join(base, 'ran'))).toBe(false)
    expect(await guard.check()).toBeNull()
  })

  it('gets its config back at the next check where the disk refused that, and loses the hook that came with it', async () => {
    const before = read('.git/config')
    plant(work)
    write('.git/hooks/post-commit', 'evil', 0o755)
    mkdirSync(dirname(aside), { recursive: true })
    writeFileSync(aside, 'in the way')
    expect((await guard.check())?.problems.join()).toMatch(
      /\.git\/config could not be removed.*post-commit could not be/,
    )
    rmSync(aside)
    expect((await guard.check())?.restored).toEqual(['.git/config', '.git/hooks/post-commit'])
    expect(read('.git/config')).toBe(before)
    expect(await guard.check()).toBeNull()
  })

  it('gets a changed, a deleted and a disabled hook back, and loses an added one', async () => {
    write('.git/hooks/pre-commit', 'evil')
    write('.git/hooks/post-commit', 'evil', 0o755)
    write('.git/hooks/deep/er', 'evil')
    unlinkSync(join(work, '.git/hooks/pre-push.sample'))
    const mode = statSync(join(work, '.git/hooks/commit-msg.sample')).mode & 0o777
    chmodSync(join(work, '.git/hooks/commit-msg.sample'), 0o600)
    expect((await guard.check())?.restored).toEqual([
      '.git/hooks/commit-msg.sample',
      '.git/hooks/deep/er',
      '.git/hooks/post-commit',
      '.git/hooks/pre-commit',
      '.git/hooks/pre-push.sample',
    ])
    expect(read('.git/hooks/pre-commit')).toBe('#!/bin/sh\nexit 0\n')
    expect(statSync(join(work, '.git/hooks/pre-commit')).mode & 0o777).toBe(0o755)
    expect(statSync(join(work, '.git/hooks/commit-msg.sample')).mode & 0o777).toBe(mode)
    expect(existsSync(join(work, '.git/hooks/post-commit'))).toBe(false)
    expect(existsSync(join(work, '.git/hooks/pre-push.sample'))).toBe(true)
    expect(readFileSync(join(aside, '001/.git/hooks/pre-commit'), 'utf8')).toBe('evil')
    expect(await guard.check()).toBeNull()
  })

  it('sees a change that keeps size and times', async () => {
    const path = join(work, '.git/hooks/pre-commit')
    utimesSync(path, 1, 1)
    const other = await open()
    writeFileSync(path, '#!/bin/sh\nexit 1\n')
    utimesSync(path, 1, 1)
    expect((await other.check())?.restored).toEqual(['.git/hooks/pre-commit'])
  })

  it('says nothing of a file that was only touched, or written with the same content', async () => {
    utimesSync(join(work, '.git/config'), 1, 1)
    const text = read('.git/hooks/pre-commit')
    unlinkSync(join(work, '.git/hooks/pre-commit'))
    write('.git/hooks/pre-commit', text, 0o755)
    expect(await guard.check()).toBeNull()
  })

  it('keeps a second planting apart from the first', async () => {
    for (const number of ['001', '002']) {
      write('.git/info/attributes', number)
      expect((await guard.check())?.setAside).toBe(join(aside, number))
    }
    expect(readFileSync(join(aside, '001/.git/info/attributes'), 'utf8')).toBe('001')
  })

  it('gets its hooks back where they were replaced by a link; nothing is touched where the link points', async () => {
    const elsewhere = join(base, 'elsewhere')
    mkdirSync(elsewhere)
    writeFileSync(join(elsewhere, 'pre-commit'), 'evil')
    renameSync(join(work, '.git/hooks'), join(work, '.git/old-hooks'))
    symlinkSync(elsewhere, join(work, '.git/hooks'))
    expect((await guard.check())?.restored).toContain('.git/hooks')
    expect(statSync(join(work, '.git/hooks')).isDirectory()).toBe(true)
    expect(read('.git/hooks/pre-commit')).toContain('exit 0')
    expect(readFileSync(join(elsewhere, 'pre-commit'), 'utf8')).toBe('evil')
    expect(readlinkSync(join(aside, '001/.git/hooks'))).toBe(elsewhere)
    expect(await guard.check()).toBeNull()
  })

  it('gets its config back where a folder, a pipe or a link was put in its place', async () => {
    const before = read('.git/config')
    const path = join(work, '.git/config')
    const spoilers = [
      () => write('.git/config/inside', 'x'),
      () => execFileSync('mkfifo', [path]),
      () => symlinkSync('/etc/passwd', path),
      () => writeFileSync(path, 'x'.repeat(5 * 1024 * 1024)),
    ]
    for (const spoil of spoilers) {
      rmSync(path, { recursive: true })
      spoil()
      expect((await guard.check())?.restored).toEqual(['.git/config'])
      expect(read('.git/config')).toBe(before)
    }
    expect(await guard.check()).toBeNull()
  })

  it('loses a pointer to another directory, and a config for the worktree alone', async () => {
    write('.git/commondir', '../evil')
    write('.git/config.worktree', '[core]\n\tfsmonitor = evil\n')
    expect((await guard.check())?.restored).toEqual(['.git/commondir', '.git/config.worktree'])
    expect(existsSync(join(work, '.git/commondir'))).toBe(false)
  })

  it('that is gone or replaced is reported once, and nothing is thrown or deleted', async () => {
    renameSync(join(work, '.git'), join(base, 'moved'))
    const gone = await guard.check()
    expect(gone?.restored).toEqual([])
    expect(gone?.problems.join()).toContain('.git is gone')
    expect(await guard.check()).toBeNull()
    symlinkSync(join(base, 'moved'), join(work, '.git'))
    expect((await guard.check())?.problems.join()).toContain('.git was put in the place of the repository')
    expect(existsSync(join(base, 'moved/HEAD'))).toBe(true)
    git(work, 'init', '-q')
    expect((await guard.check())?.restored).toContain('.git/hooks/pre-commit')
  })

  it('may get worktrees and submodules, in which only plain config is left', async () => {
    const library = join(base, 'library')
    mkdirSync(library)
    git(library, 'init', '-q')
    git(library, ...author, 'commit', '-q', '--allow-empty', '-m', 'x')
    git(work, 'worktree', 'add', '-q', join(base, 'tree'))
    git(work, '-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'add', library, 'vendor/lib')
    writeFileSync(join(work, '.git/modules/vendor/lib/hooks/post-checkout'), 'evil')
    git(join(work, 'vendor/lib'), 'config', 'core.fsmonitor', '/evil')
    writeFileSync(join(work, '.git/worktrees/tree/config.worktree'), '[core]\n\tfsmonitor = evil\n')
    expect((await guard.check())?.restored).toEqual([
      '.git/config',
      '.git/modules/vendor/lib/config',
      '.git/modules/vendor/lib/hooks/post-checkout',
      '.git/worktrees/tree/config.worktree',
    ])
    expect(read('.git/modules/vendor/lib/config')).not.toContain('fsmonitor')
    expect(git(join(work, 'vendor/lib'), 'remote', 'get-url', 'origin')).toBe(library)
    git(join(base, 'tree'), 'status')
    expect(await guard.check()).toBeNull()
    git(join(work, 'vendor/lib'), 'config', 'core.fsmonitor', '/evil')
    expect((await guard.check())?.restored).toEqual(['.git/modules/vendor/lib/config'])
    git(work, 'worktree', 'remove', '--force', join(base, 'tree'))
    expect(await guard.check()).toBeNull()
  })

  it('of which the work directory is a worktree, or a folder in it, is guarded all the same', async () => {
    git(work, 'worktree', 'add', '-q', join(base, 'tree'))
    mkdirSync(join(work, 'sub'))
    for (const directory of [join(base, 'tree'), join(work, 'sub')]) {
      const other = await open(directory)
      git(work, 'config', 'core.fsmonitor', '/evil')
      expect((await other.check())?.restored).toEqual([join(work, '.git/config')])
    }
    const inTree = await open(join(base, 'tree'))
    const pointer = join(base, 'tree/.git')
    const before = readFileSync(pointer, 'utf8')
    writeFileSync(pointer, 'gitdir: /evil\n')
    expect((await inTree.check())?.restored).toEqual(['.git'])
    expect(readFileSync(pointer, 'utf8')).toBe(before)
  })

  it('is checked in less than two milliseconds', async () => {
    const times: number[] = []
    for (let i = 0; i < 50; i += 1) {
      const start = cpuMs()
      await guard.check()
      times.push(cpuMs() - start)
    }
    expect(times.sort((a, b) => a - b)[25]).toBeLessThan(2 * timesSlower())
  })
})

describe('where there was no repository', () => {
  it('a round may make one with a user, a remote and branches', async () => {
    const guard = await open()
    expect(await guard.check()).toBeNull()
    git(work, 'init', '-q')
    git(work, 'config', 'user.name', 'Ada O’Neil')
    git(work, 'remote', 'add', 'origin', 'git@example.org:a/b.git')
    git(work, 'config', 'branch.main.remote', 'origin')
    expect(await guard.check()).toBeNull()
    git(work, 'config', 'core.pager', 'evil')
    expect((await guard.check())?.restored).toEqual(['.git/config'])
    expect(git(work, 'config', 'user.name')).toBe('Ada O’Neil')
  })

  it('what git would run is taken out of one that a round has made, and what git would not is left', async () => {
    const guard = await open()
    git(work, 'init', '-q')
    plant(work)
    git(work, 'config', 'user.email', 'p@example.org')
    git(work, 'remote', 'add', 'other', 'ext::sh -c evil')
    write('.git/hooks/pre-commit', 'evil', 0o755)
    symlinkSync('/bin/sh', join(work, '.git/hooks/post-commit'))
    const config = read('.git/config')
    expect((await guard.check())?.restored).toEqual(['.git/config', '.git/hooks/post-commit', '.git/hooks/pre-commit'])
    expect(readFileSync(join(aside, '001/.git/config'), 'utf8')).toBe(config)
    expect(read('.git/config')).not.toMatch(/evil|fsmonitor|ext::/)
    expect(git(work, 'config', 'user.email')).toBe('p@example.org')
    git(work, 'status')
    expect(existsSync(join(base, 'ran'))).toBe(false)
    expect(await guard.check()).toBeNull()
  })

  it.each([
    '[include]\n\tpath = ../evil\n',
    '[core] fsmonitor = evil\n',
    '[core]\n\tbare = false\\\n\tfsmonitor = evil\n',
    '[core]\n\tfilemode = true ; \\\n\tfsmonitor = evil\n',
    '[user]\n\tname = "a\n[core]\n\tfsmonitor = evil\n',
    '[core.x]\n\tbare = false\n[core]\r\n\tfsmonitor = evil\n',
    '[CORE]\n\tFsMonitor = evil\n',
    '[remote "a"]\n\turl = x\n\tuploadpack = evil\n\tvcs = evil\n',
  ])('no way of writing a config gets a program past it: %j', async text => {
    const guard = await open()
    git(work, 'init', '-q')
    write('.git/config', `[core]\n\trepositoryformatversion = 0\n${text}`)
    await guard.check()
    expect(read('.git/config')).not.toContain('evil')
  })

  it('a file or a link called .git is taken away', async () => {
    const guard = await open()
    write('.git', 'gitdir: /evil\n')
    expect((await guard.check())?.restored).toEqual(['.git'])
    symlinkSync('/evil', join(work, '.git'))
    expect((await guard.check())?.restored).toEqual(['.git'])
    expect(await guard.check()).toBeNull()
  })
})

describe('after a run that was cut off in a round', () => {
  beforeEach(() => {
    git(work, 'init', '-q')
    write('.git/hooks/pre-commit', '#!/bin/sh\nexit 0\n', 0o755)
    symlinkSync('pre-commit', join(work, '.git/hooks/pre-merge-commit'))
    commit()
  })

  it('what the round had planted is taken out before the next one, and kept for the person', async () => {
    const before = read('.git/config')
    await open()
    plant(work)
    write('.git/hooks/pre-commit', 'evil')
    unlinkSync(join(work, '.git/hooks/pre-merge-commit'))
    write('.git/hooks/post-commit', 'evil', 0o755)
    expect(await restoreAfterCrash(baselineFile)).toEqual({
      restored: ['.git/config', '.git/hooks/post-commit', '.git/hooks/pre-commit', '.git/hooks/pre-merge-commit'],
      setAside: join(aside, '001'),
      problems: [],
    })
    expect(read('.git/config')).toBe(before)
    expect(read('.git/hooks/pre-commit')).toContain('exit 0')
    expect(statSync(join(work, '.git/hooks/pre-commit')).mode & 0o777).toBe(0o755)
    expect(readlinkSync(join(work, '.git/hooks/pre-merge-commit'))).toBe('pre-commit')
    expect(readFileSync(join(aside, '001/.git/config'), 'utf8')).toContain('fsmonitor')
    expect(await restoreAfterCrash(baselineFile)).toBeNull()
  })

  it('what the disk refuses to take out then is taken out after the next round', async () => {
    const before = read('.git/config')
    await open()
    plant(work)
    mkdirSync(dirname(aside), { recursive: true })
    writeFileSync(aside, 'in the way')
    expect((await restoreAfterCrash(baselineFile))?.problems.join()).toContain('.git/config could not be removed')
    unlinkSync(aside)
    const guard = await open()
    expect((await guard.check())?.restored).toEqual(['.git/config'])
    expect(read('.git/config')).toBe(before)
    await guard.close()
    expect(await restoreAfterCrash(baselineFile)).toBeNull()
  })

  it('a repository that the round has pointed elsewhere is found where it was', async () => {
    const before = await findRepository(work)
    await open()
    write('.git/commondir', base)
    expect((await findRepository(work))?.commonDir).toBe(base)
    await restoreAfterCrash(baselineFile)
    expect(await findRepository(work)).toEqual(before)
  })

  it('nothing is said of a repository that rounds have only worked in, or that has new worktrees', async () => {
    await open()
    write('a', '1')
    commit()
    git(work, 'worktree', 'add', '-q', join(base, 'tree'))
    utimesSync(join(work, '.git/config'), 1, 1)
    expect(await restoreAfterCrash(baselineFile)).toBeNull()
  })

  it('what came after a session that had ended is the person’s own, and stays', async () => {
    const guard = await open()
    await guard.check()
    await guard.close()
    git(work, 'config', 'core.pager', 'less')
    expect(await restoreAfterCrash(baselineFile)).toBeNull()
    expect(git(work, 'config', 'core.pager')).toBe('less')
  })

  it('a baseline that cannot be read is told of, once', async () => {
    writeFileSync(baselineFile, '{"v":1,')
    expect((await restoreAfterCrash(baselineFile))?.problems.join()).toContain('check yourself')
    expect(await restoreAfterCrash(baselineFile)).toBeNull()
  })
})

const author = ['-c', 'user.name=p', '-c', 'user.email=p@example.org']

async function open(directory = work): Promise<RepositoryGuard> {
  return openRepositoryGuard({
    repository: await findRepository(directory),
    workTree: directory,
    setAsideDir: aside,
    baselineFile,
    leaveOut: [],
    reach: { env: {}, sandbox: 'workspace-write' },
  })
}

function git(directory: string, ...args: string[]): string {
  const env = { PATH: process.env.PATH, HOME: join(base, 'home') }
  return execFileSync('git', args, { cwd: directory, env, encoding: 'utf8', stdio: 'pipe' }).trim()
}

function commit(): void {
  git(work, 'add', '.')
  git(work, ...author, 'commit', '-q', '--allow-empty', '-m', 'x')
}

function plant(directory: string): void {
  const evil = join(base, 'evil.sh')
  writeFileSync(evil, `#!/bin/sh\necho ran >> ${join(base, 'ran')}\n`, { mode: 0o755 })
  git(directory, 'config', 'core.fsmonitor', evil)
}

function write(path: string, text: string, mode = 0o644): void {
  mkdirSync(dirname(join(work, path)), { recursive: true })
  writeFileSync(join(work, path), text, { mode })
}

function read(path: string): string {
  return readFileSync(join(work, path), 'utf8')
}
