import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { findRepository, type Head, readHead } from '../../../src/workspace/git/git.ts'

let base: string
let work: string

beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), 'repository-')))
  work = join(base, 'work')
  mkdirSync(work)
})

afterEach(() => rmSync(base, { recursive: true, force: true }))

describe('finding the repository', () => {
  it('there may be none', async () => {
    expect(await findRepository(work)).toBeNull()
  })

  it('looks upwards, and through a link to the directory', async () => {
    git('init', '-q')
    mkdirSync(join(work, 'a/b'), { recursive: true })
    symlinkSync(join(work, 'a/b'), join(base, 'link'))
    const expected = { root: work, gitDir: join(work, '.git'), commonDir: join(work, '.git') }
    for (const directory of [work, join(work, 'a/b'), join(base, 'link')]) {
      expect(await findRepository(directory)).toEqual(expected)
    }
  })

  it('knows worktrees and submodules', async () => {
    commit()
    git('worktree', 'add', '-q', join(base, 'tree'))
    git('-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'add', work, 'lib')
    expect(await findRepository(join(base, 'tree'))).toEqual({
      root: join(base, 'tree'),
      gitDir: join(work, '.git/worktrees/tree'),
      commonDir: join(work, '.git'),
    })
    const library = join(work, '.git/modules/lib')
    expect(await findRepository(join(work, 'lib'))).toEqual({
      root: join(work, 'lib'),
      gitDir: library,
      commonDir: library,
    })
  })

  it.each([
    ['an empty file', (path: string) => writeFileSync(path, '')],
    ['a file that points nowhere', (path: string) => writeFileSync(path, 'gitdir: nowhere\n')],
    ['a file of rubbish', (path: string) => writeFileSync(path, 'x'.repeat(1_000_000))],
    ['a pipe', (path: string) => execFileSync('mkfifo', [path])],
    ['a link to itself', (path: string) => symlinkSync('.git', path)],
    ['an empty folder', (path: string) => mkdirSync(path)],
  ])('goes on upwards past %s called .git', async (_, make) => {
    git('init', '-q')
    mkdirSync(join(work, 'sub'))
    make(join(work, 'sub/.git'))
    expect((await findRepository(join(work, 'sub')))?.root).toBe(work)
  })
})

describe('reading what is checked out', () => {
  it('a branch, loose or packed, with slashes in its name', async () => {
    commit()
    git('checkout', '-q', '-b', 'feature/one')
    const expected = { commit: git('rev-parse', 'HEAD'), branch: 'feature/one' }
    expect(await head()).toEqual(expected)
    git('pack-refs', '--all')
    expect(readdirSync(join(work, '.git/refs/heads'))).toEqual([])
    expect(await head()).toEqual(expected)
  })

  it('a branch without a commit', async () => {
    git('init', '-q', '-b', 'main')
    expect(await head()).toEqual({ commit: null, branch: 'main' })
  })

  it('a commit without a branch', async () => {
    commit()
    git('checkout', '-q', '--detach')
    expect(await head()).toEqual({ commit: git('rev-parse', 'HEAD'), branch: null })
  })

  it('of a worktree', async () => {
    commit()
    git('worktree', 'add', '-q', '-b', 'side', join(base, 'tree'))
    expect(await head(join(base, 'tree'))).toEqual({ commit: git('rev-parse', 'HEAD'), branch: 'side' })
  })

  it.each([
    'ref: refs/heads/../../../secret',
    'ref: /etc/passwd',
    'rubbish',
    '',
    'ref: refs/heads/.invalid',
    'ref: refs/heads/loop',
  ])('whatever HEAD says: %j', async text => {
    commit()
    writeFileSync(join(work, '.git/HEAD'), `${text}\n`)
    writeFileSync(join(work, '.git/refs/heads/loop'), 'ref: refs/heads/loop\n')
    writeFileSync(join(base, 'secret'), `${'a'.repeat(40)}\n`)
    const repository = { root: work, gitDir: join(work, '.git'), commonDir: join(work, '.git') }
    expect((await readHead(repository)).commit).toBeNull()
  })
})

async function head(directory = work): Promise<Head> {
  const repository = await findRepository(directory)
  if (repository === null) throw new Error('No repository')
  return readHead(repository)
}

function commit(): void {
  git('init', '-q')
  git('-c', 'user.name=p', '-c', 'user.email=p@example.org', 'commit', '-q', '--allow-empty', '-m', 'x')
}

function git(...args: string[]): string {
  const env = { PATH: process.env.PATH, HOME: base }
  return execFileSync('git', args, { cwd: work, env, encoding: 'utf8', stdio: 'pipe' }).trim()
}
