import { execFileSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { findRepository } from '../../../src/workspace/git/git.ts'
import { findNestedRepositories } from '../../../src/workspace/guard/nested-repositories.ts'
import {
  openRepositoryGuard,
  type RepositoryGuard,
  restoreAfterCrash,
} from '../../../src/workspace/guard/repository-guard.ts'
import { cpuMs } from '../../support/cpu-time.ts'

let base: string
let work: string

beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), 'nested-')))
  work = join(base, 'work')
  for (const folder of [work, join(base, 'home'), join(base, 'records')]) mkdirSync(folder)
  git(work, 'init', '-q')
  write('a', '1')
  git(work, 'add', '.')
  commit(work)
})

afterEach(() => rmSync(base, { recursive: true, force: true }))

describe('what a round has made in the work tree', () => {
  let guard: RepositoryGuard

  beforeEach(async () => {
    guard = await open()
  })

  it('a repository that the top one has as a gitlink: a plain git status at the top runs nothing of it', async () => {
    init('sub')
    plant('sub')
    write('sub/.git/hooks/post-checkout', 'evil', 0o755)
    git(work, 'add', 'sub')
    rmSync(join(base, 'ran'), { force: true })
    const found = await guard.check()
    expect(found?.restored).toEqual(['sub/.git/config', 'sub/.git/hooks/post-checkout'])
    expect(readFileSync(join(base, 'records/001/sub/.git/config'), 'utf8')).toContain('fsmonitor')
    git(work, 'status')
    git(join(work, 'sub'), 'status')
    expect(hasRun()).toBe(false)
    expect(await guard.check()).toBeNull()
  })

  it('one that it changes again later, deep in an ignored folder', async () => {
    write('.gitignore', 'build\n')
    init('build/a/b')
    expect(await guard.check()).toBeNull()
    plant('build/a/b')
    expect((await guard.check())?.restored).toEqual(['build/a/b/.git/config'])
    expect(readFileSync(join(work, 'build/a/b/.git/config'), 'utf8')).toContain('[core]')
    rmSync(join(work, 'build'), { recursive: true })
    expect(await guard.check()).toBeNull()
  })

  it('a bare one, with its hooks', async () => {
    git(work, 'init', '-q', '--bare', 'remote.git')
    git(join(work, 'remote.git'), 'config', 'alias.st', '!evil')
    write('remote.git/hooks/post-receive', 'evil', 0o755)
    expect((await guard.check())?.restored).toEqual(['remote.git/config', 'remote.git/hooks/post-receive'])
    expect(git(join(work, 'remote.git'), 'rev-parse', '--is-bare-repository')).toBe('true')
  })

  it('a folder of the project that is made to look like a bare one is none any more, and keeps its files', async () => {
    git(work, 'init', '-q', '--bare', 'src')
    plant('src')
    write('src/index.ts', 'work')
    write('src/hooks/use-it.ts', 'work')
    expect((await guard.check())?.restored).toEqual(['src/HEAD'])
    expect(git(join(work, 'src'), 'status', '--porcelain')).toBe('?? src/')
    expect(existsSync(join(work, 'src/hooks/use-it.ts'))).toBe(true)
    expect(hasRun()).toBe(false)
  })

  it('a git directory apart from its work tree, and a submodule', async () => {
    git(work, 'init', '-q', '--separate-git-dir', 'apart', 'sub')
    plant('sub')
    expect((await guard.check())?.restored).toEqual(['apart/config'])
    expect(git(join(work, 'sub'), 'rev-parse', '--git-dir')).toBe(join(work, 'apart'))
    const other = join(base, 'other')
    execFileSync('git', ['clone', '-q', work, other], { stdio: 'pipe' })
    git(work, '-c', 'protocol.file.allow=always', 'submodule', 'add', '-q', other, 'module')
    plant('module')
    expect((await guard.check())?.restored).toContain('.git/modules/module/config')
    git(work, 'status')
    git(join(work, 'module'), 'status')
    expect(hasRun()).toBe(false)
  })

  it('a pointer to a git directory that is not looked after: elsewhere, within the git directory of the top, by a link', async () => {
    init('../elsewhere')
    init('.git/hidden')
    write('one/.git', `gitdir: ${join(base, 'elsewhere/.git')}\n`)
    write('two/.git', 'gitdir: ../.git/hidden/.git\n')
    write('three/.git', 'gitdir: /nowhere/yet\n')
    mkdirSync(join(work, 'four'))
    symlinkSync(join(base, 'elsewhere/.git'), join(work, 'four/.git'))
    expect((await guard.check())?.restored).toEqual(['four/.git', 'one/.git', 'three/.git', 'two/.git'])
    expect(existsSync(join(base, 'elsewhere/.git/HEAD'))).toBe(true)
  })

  it('a worktree of the repository is left alone', async () => {
    git(work, 'worktree', 'add', '-q', 'tree')
    expect(await guard.check()).toBeNull()
    expect(git(join(work, 'tree'), 'status', '--porcelain')).toBe('')
  })
})

describe('what was there before', () => {
  it('a nested repository gets its own config back, with what is not plain in it', async () => {
    init('sub')
    git(join(work, 'sub'), 'config', 'alias.mine', '!mine')
    const before = read('sub/.git/config')
    const guard = await open()
    expect(await guard.check()).toBeNull()
    plant('sub')
    expect((await guard.check())?.restored).toEqual(['sub/.git/config'])
    expect(read('sub/.git/config')).toBe(before)
  })

  it('a repository is put back after a crash, too', async () => {
    init('sub')
    await open()
    plant('sub')
    init('new')
    plant('new')
    const { restored } = (await restoreAfterCrash(join(base, 'guard.json'))) ?? {}
    expect(restored).toEqual(['new/.git/config', 'sub/.git/config'])
  })

  it('the work directory is a bare repository itself', async () => {
    rmSync(work, { recursive: true })
    git(base, 'init', '-q', '--bare', 'work')
    const guard = await open()
    expect(await guard.check()).toBeNull()
    plant('.')
    write('hooks/update', 'evil', 0o755)
    expect((await guard.check())?.restored).toEqual(['config', 'hooks/update'])
    expect(existsSync(join(work, 'HEAD'))).toBe(true)
  })

  it('a pointer that a round has led elsewhere leads where it led; one whose folder is gone stays away', async () => {
    git(work, 'worktree', 'add', '-q', 'tree')
    git(work, 'worktree', 'add', '-q', 'gone')
    const guard = await open()
    const before = read('tree/.git')
    init('../elsewhere')
    write('tree/.git', `gitdir: ${join(base, 'elsewhere/.git')}\n`)
    rmSync(join(work, 'gone'), { recursive: true })
    expect((await guard.check())?.restored).toEqual(['tree/.git'])
    expect(read('tree/.git')).toBe(before)
    expect(existsSync(join(work, 'gone'))).toBe(false)
  })

  it('repositories of codemachine itself, in records below the work directory, are its own', async () => {
    git(work, 'init', '-q', '--bare', 'records/git')
    const guard = await open([join(work, 'records')])
    git(join(work, 'records/git'), 'config', 'alias.mine', '!mine')
    expect(await guard.check()).toBeNull()
  })
})

it('a tree of 1,000 folders costs less than 0.2 s to look through, and of more repositories it is told', async () => {
  for (let n = 0; n < 1000; n++) mkdirSync(join(work, `r${n}`))
  const before = cpuMs()
  expect(await findNestedRepositories(work, [])).toMatchObject({ directories: [join(work, '.git')], isCut: false })
  expect(cpuMs() - before).toBeLessThan(200)
  for (let n = 0; n < 1000; n++) mkdirSync(join(work, `r${n}/.git`))
  expect(await findNestedRepositories(work, [])).toMatchObject({ isCut: true })
})

async function open(leaveOut: readonly string[] = []): Promise<RepositoryGuard> {
  return openRepositoryGuard({
    repository: await findRepository(work),
    workTree: work,
    setAsideDir: join(base, 'records'),
    baselineFile: join(base, 'guard.json'),
    leaveOut,
  })
}

/** As a round would have git, but for what it plants itself. */
function git(directory: string, ...args: string[]): string {
  const env = { PATH: process.env.PATH, HOME: join(base, 'home') }
  return execFileSync('git', args, { cwd: directory, env, encoding: 'utf8', stdio: 'pipe' }).trim()
}

function commit(directory: string): void {
  git(directory, '-c', 'user.name=p', '-c', 'user.email=p@example.org', 'commit', '-q', '--allow-empty', '-m', 'x')
}

function init(path: string): void {
  const directory = join(work, path)
  git(base, 'init', '-q', directory)
  commit(directory)
}

/** Has git run a program in a repository. */
function plant(path: string): void {
  const evil = join(base, 'evil.sh')
  writeFileSync(evil, `#!/bin/sh\necho ran >> ${join(base, 'ran')}\n`, { mode: 0o755 })
  git(join(work, path), 'config', 'core.fsmonitor', evil)
}

function hasRun(): boolean {
  return existsSync(join(base, 'ran'))
}

function write(path: string, text: string, mode = 0o644): void {
  mkdirSync(dirname(join(work, path)), { recursive: true })
  writeFileSync(join(work, path), text, { mode })
}

function read(path: string): string {
  return readFileSync(join(work, path), 'utf8')
}
