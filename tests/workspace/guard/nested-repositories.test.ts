import { execFileSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { mkdtempDisposable } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import type { SandboxMode } from '../../../src/core/shapes/sandbox.ts'
import { findRepository } from '../../../src/workspace/git/git.ts'
import { findNestedRepositories, isPureGitDirectory } from '../../../src/workspace/guard/nested-repositories.ts'
import {
  openRepositoryGuard,
  type RepositoryGuard,
  restoreAfterCrash,
} from '../../../src/workspace/guard/repository-guard.ts'
import { cpuMs, timesSlower } from '../../support/cpu-time.ts'
import { promise } from '../../support/promise.ts'
import { workDirectoryForEach } from '../../support/work-directory.ts'

const place = workDirectoryForEach('nested')
const { write, gitIn: git } = place

beforeEach(() => {
  git(place.work, 'init', '-q')
  write('a', '1')
  place.commit()
})

promise(
  'B15',
  'Repositories anywhere in the work tree have config, hooks and info guarded as that of the top: nested, bare, kept apart, submodules, the work directory itself',
)
describe('what a round has made in the work tree', () => {
  let guard: RepositoryGuard

  beforeEach(async () => {
    guard = await open()
  })

  it('a repository that the top one has as a gitlink: a plain git status at the top runs nothing of it', async () => {
    init('sub')
    plant('sub')
    write('sub/.git/hooks/post-checkout', 'evil', 0o755)
    git(place.work, 'add', 'sub')
    rmSync(join(place.base, 'ran'), { force: true })
    const found = await guard.check()
    expect(found?.restored).toEqual(['sub/.git/config', 'sub/.git/hooks/post-checkout'])
    expect(readFileSync(join(place.base, 'records/001/sub/.git/config'), 'utf8')).toContain('fsmonitor')
    git(place.work, 'status')
    git(join(place.work, 'sub'), 'status')
    expect(hasRun()).toBe(false)
    expect(await guard.check()).toBeNull()
  })

  it('one that it changes again later, deep in an ignored folder', async () => {
    write('.gitignore', 'build\n')
    init('build/a/b')
    expect(await guard.check()).toBeNull()
    plant('build/a/b')
    expect((await guard.check())?.restored).toEqual(['build/a/b/.git/config'])
    expect(readFileSync(join(place.work, 'build/a/b/.git/config'), 'utf8')).toContain('[core]')
    rmSync(join(place.work, 'build'), { recursive: true })
    expect(await guard.check()).toBeNull()
  })

  it('a bare one, with its hooks', async () => {
    git(place.work, 'init', '-q', '--bare', 'remote.git')
    git(join(place.work, 'remote.git'), 'config', 'alias.st', '!evil')
    write('remote.git/hooks/post-receive', 'evil', 0o755)
    expect((await guard.check())?.restored).toEqual(['remote.git/config', 'remote.git/hooks/post-receive'])
    expect(git(join(place.work, 'remote.git'), 'rev-parse', '--is-bare-repository')).toBe('true')
  })

  it('a folder of the project that is made to look like a bare one is none any more, and keeps its files', async () => {
    git(place.work, 'init', '-q', '--bare', 'src')
    plant('src')
    write('src/index.ts', 'work')
    write('src/hooks/use-it.ts', 'work')
    expect((await guard.check())?.restored).toEqual(['src/HEAD'])
    expect(git(join(place.work, 'src'), 'status', '--porcelain')).toBe('?? src/')
    expect(existsSync(join(place.work, 'src/hooks/use-it.ts'))).toBe(true)
    expect(hasRun()).toBe(false)
  })

  it('a git directory apart from its work tree, and a submodule', async () => {
    git(place.work, 'init', '-q', '--separate-git-dir', 'apart', 'sub')
    plant('sub')
    expect((await guard.check())?.restored).toEqual(['apart/config'])
    expect(git(join(place.work, 'sub'), 'rev-parse', '--git-dir')).toBe(join(place.work, 'apart'))
    const other = join(place.base, 'other')
    execFileSync('git', ['clone', '-q', place.work, other], { stdio: 'pipe' })
    git(place.work, '-c', 'protocol.file.allow=always', 'submodule', 'add', '-q', other, 'module')
    plant('module')
    expect((await guard.check())?.restored).toContain('.git/modules/module/config')
    git(place.work, 'status')
    git(join(place.work, 'module'), 'status')
    expect(hasRun()).toBe(false)
  })

  it('a git directory apart from its work tree, in the middle of all that git can be in the middle of', async () => {
    git(place.work, 'init', '-q', '--separate-git-dir', 'apart', 'sub')
    const sub = join(place.work, 'sub')
    for (const line of ['rerere.enabled true', 'core.splitIndex true', 'gc.auto 0'])
      git(sub, 'config', ...line.split(' '))
    const onBranch = (name: string, from: string) => {
      git(sub, 'checkout', '-q', '-b', name, from)
      write('sub/a', name)
      git(sub, 'add', '.')
      commit(sub)
    }
    write('sub/a', '1')
    git(sub, 'add', '.')
    commit(sub)
    const first = git(sub, 'rev-parse', 'HEAD')
    onBranch('one', first)
    onBranch('two', first)
    const stops = (...args: string[]) =>
      expect(() => git(sub, '-c', 'user.name=p', '-c', 'user.email=p', ...args)).toThrow()
    const seen = new Set<string>()
    const look = () => {
      for (const name of readdirSync(join(place.work, 'apart'))) seen.add(name.replace(/^(sharedindex)\..*/, '$1'))
      expect(isPureGitDirectory(join(place.work, 'apart'))).toBe(true)
    }
    for (const args of [
      ['merge', 'one'],
      ['cherry-pick', 'one', first],
      ['rebase', 'one'],
      ['merge', '--squash', 'one'],
    ]) {
      stops(...args)
      look()
      git(sub, 'reset', '-q', '--hard')
      if (args[0] === 'rebase') git(sub, 'rebase', '--abort')
    }
    git(sub, 'bisect', 'start', 'two', first)
    look()
    expect([...seen]).toEqual(
      expect.arrayContaining([
        'MERGE_MSG',
        'MERGE_MODE',
        'sequencer',
        'rebase-merge',
        'SQUASH_MSG',
        'BISECT_LOG',
        'rr-cache',
        'sharedindex',
      ]),
    )
    expect((await guard.check())?.restored).toEqual(['apart/config'])
  })

  it('a pointer to a git directory that is not looked after: elsewhere, within the git directory of the top, by a link', async () => {
    init('../elsewhere')
    init('.git/hidden')
    write('one/.git', `gitdir: ${join(place.base, 'elsewhere/.git')}\n`)
    write('two/.git', 'gitdir: ../.git/hidden/.git\n')
    write('three/.git', 'gitdir: /nowhere/yet\n')
    mkdirSync(join(place.work, 'four'))
    symlinkSync(join(place.base, 'elsewhere/.git'), join(place.work, 'four/.git'))
    expect((await guard.check())?.restored).toEqual(['four/.git', 'one/.git', 'three/.git', 'two/.git'])
    expect(existsSync(join(place.base, 'elsewhere/.git/HEAD'))).toBe(true)
  })

  it('a worktree of the repository is left alone', async () => {
    git(place.work, 'worktree', 'add', '-q', 'tree')
    expect(await guard.check()).toBeNull()
    expect(git(join(place.work, 'tree'), 'status', '--porcelain')).toBe('')
  })
})

promise('B15')
describe('what was there before', () => {
  it('a nested repository gets its own config back, with what is not plain in it', async () => {
    init('sub')
    git(join(place.work, 'sub'), 'config', 'alias.mine', '!mine')
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
    const { restored } = (await restoreAfterCrash(join(place.base, 'guard.json'))) ?? {}
    expect(restored).toEqual(['new/.git/config', 'sub/.git/config'])
  })

  it('the work directory is a bare repository itself', async () => {
    rmSync(place.work, { recursive: true })
    git(place.base, 'init', '-q', '--bare', 'work')
    const guard = await open()
    expect(await guard.check()).toBeNull()
    plant('.')
    write('hooks/update', 'evil', 0o755)
    expect((await guard.check())?.restored).toEqual(['config', 'hooks/update'])
    expect(existsSync(join(place.work, 'HEAD'))).toBe(true)
  })

  promise(
    'B53',
    'A repository in the tree whose git directory lies outside of it, where agents can write, has its config, hooks and info guarded too',
  )
  it('a repository whose git directory lies outside of the work tree, where agents can write', async () => {
    mkdirSync(join(place.base, 'temporary'))
    const apart = join(place.base, 'temporary/apart')
    git(place.work, 'init', '-q', '--separate-git-dir', apart, 'sub')
    commit(join(place.work, 'sub'))
    git(place.work, 'add', 'sub')
    const other = join(place.base, 'temporary/other')
    git(place.base, 'clone', '-q', place.work, other)
    git(other, 'worktree', 'add', '-q', join(place.work, 'tree'))
    const guard = await open()
    expect(await guard.check()).toBeNull()
    plant('sub')
    plant('tree')
    rmSync(join(place.base, 'ran'), { force: true })
    expect((await guard.check())?.restored).toEqual([join(apart, 'config'), join(other, '.git/config')])
    for (const folder of ['', 'sub', 'tree']) git(join(place.work, folder), 'status')
    expect(hasRun()).toBe(false)
  })

  it('one outside of where agents can write is the person’s own to change, but where the sandbox is off', async () => {
    // Agents are let into the temporary directory, in which all of the place lies.
    await using outside = await mkdtempDisposable('/var/tmp/nested-')
    const apart = join(realpathSync(outside.path), 'apart')
    git(place.work, 'init', '-q', '--separate-git-dir', apart, 'sub')
    commit(join(place.work, 'sub'))
    const guard = await open()
    git(apart, 'config', 'alias.mine', '!mine')
    expect(await guard.check()).toBeNull()
    const unbounded = await open([], 'danger-full-access')
    plant('sub')
    expect((await unbounded.check())?.restored).toEqual([join(apart, 'config')])
    expect(git(apart, 'config', 'alias.mine')).toBe('!mine')
  })

  it('a pointer that a round has led elsewhere leads where it led; one whose folder is gone stays away', async () => {
    git(place.work, 'worktree', 'add', '-q', 'tree')
    git(place.work, 'worktree', 'add', '-q', 'gone')
    const guard = await open()
    const before = read('tree/.git')
    init('../elsewhere')
    write('tree/.git', `gitdir: ${join(place.base, 'elsewhere/.git')}\n`)
    rmSync(join(place.work, 'gone'), { recursive: true })
    expect((await guard.check())?.restored).toEqual(['tree/.git'])
    expect(read('tree/.git')).toBe(before)
    expect(existsSync(join(place.work, 'gone'))).toBe(false)
  })

  it('repositories of codemachine itself, in records below the work directory, are its own', async () => {
    git(place.work, 'init', '-q', '--bare', 'records/git')
    const guard = await open([join(place.work, 'records')])
    git(join(place.work, 'records/git'), 'config', 'alias.mine', '!mine')
    expect(await guard.check()).toBeNull()
  })
})

it('a tree of 1,000 folders costs less than 0.2 s to look through, and of more repositories it is told', async () => {
  for (let n = 0; n < 1000; n++) mkdirSync(join(place.work, `r${n}`))
  const before = cpuMs()
  expect(await findNestedRepositories(place.work, [])).toMatchObject({
    directories: [join(place.work, '.git')],
    isCut: false,
  })
  expect(cpuMs() - before).toBeLessThan(200 * timesSlower())
  for (let n = 0; n < 1000; n++) mkdirSync(join(place.work, `r${n}/.git`))
  expect(await findNestedRepositories(place.work, [])).toMatchObject({ isCut: true })
})

async function open(
  leaveOut: readonly string[] = [],
  sandbox: SandboxMode = 'workspace-write',
): Promise<RepositoryGuard> {
  return openRepositoryGuard({
    repository: await findRepository(place.work),
    workTree: place.work,
    setAsideDir: join(place.base, 'records'),
    baselineFile: join(place.base, 'guard.json'),
    leaveOut,
    reach: { env: { TMPDIR: join(place.base, 'temporary') }, sandbox },
  })
}

function commit(directory: string): void {
  git(directory, '-c', 'user.name=p', '-c', 'user.email=p@example.org', 'commit', '-q', '--allow-empty', '-m', 'x')
}

function init(path: string): void {
  const directory = join(place.work, path)
  git(place.base, 'init', '-q', directory)
  commit(directory)
}

/** Has git run a program in a repository. */
function plant(path: string): void {
  const evil = join(place.base, 'evil.sh')
  writeFileSync(evil, `#!/bin/sh\necho ran >> ${join(place.base, 'ran')}\n`, { mode: 0o755 })
  git(join(place.work, path), 'config', 'core.fsmonitor', evil)
}

function hasRun(): boolean {
  return existsSync(join(place.base, 'ran'))
}

function read(path: string): string {
  return readFileSync(join(place.work, path), 'utf8')
}
