import { execFileSync } from 'node:child_process'
import { chmod, mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { findGit } from '../../../src/workspace/git/find-git.ts'
import { runGitOrThrow } from '../../../src/workspace/git/git.ts'
import { promise } from '../../support/promise.ts'
import { isWindows, unless } from '../../support/skipped.ts'

let base: string
let work: string

beforeEach(async () => {
  // Not below /tmp: agents can write there.
  base = await realpath(await mkdtemp('/var/tmp/codemachine-git-'))
  work = join(base, 'work')
  await mkdir(work)
})
afterEach(() => rm(base, { recursive: true }))

async function plant(folder: string): Promise<string> {
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, 'git'), '#!/bin/sh\n')
  await chmod(join(folder, 'git'), 0o755)
  return folder
}

const find = async (folders: readonly string[], env: NodeJS.ProcessEnv = {}) =>
  findGit({ ...env, PATH: [...folders, await plant(join(base, 'bin'))].join(delimiter) }, work)
const git = (...args: string[]) =>
  execFileSync('git', ['-c', 'user.name=p', '-c', 'user.email=p@example.org', ...args], { cwd: base, stdio: 'pipe' })

describe.skipIf(isWindows)(
  `codemachine runs no git that an agent can have written${unless(!isWindows, 'what stands in for git is a shell script')}`,
  () => {
    promise('B4', 'A git that lies where an agent can write is not run')
    test('in the work directory, or linked to from outside', async () => {
      const inside = await plant(join(work, 'node_modules/.bin'))
      await mkdir(join(base, 'links'))
      await symlink(join(inside, 'git'), join(base, 'links/git'))
      await symlink(inside, join(base, 'linked'))
      expect(await find([inside, 'relative', join(base, 'links'), join(base, 'linked')])).toBe(join(base, 'bin/git'))
    })

    test('in /tmp or $TMPDIR', async () => {
      const temporary = await mkdtemp('/tmp/codemachine-git-')
      try {
        await plant(temporary)
        const other = await plant(join(base, 'other-tmp/deep'))
        const env = { TMPDIR: join(base, 'other-tmp') }
        expect(await find([temporary, other], env)).toBe(join(base, 'bin/git'))
        expect(await find([other])).toBe(join(other, 'git'))
      } finally {
        await rm(temporary, { recursive: true })
      }
    })

    test('in a git directory that lies elsewhere, as that of a worktree does', async () => {
      await rm(work, { recursive: true })
      git('init', '-q', 'main')
      git('-C', 'main', 'commit', '-qm', 'x', '--allow-empty')
      git('-C', 'main', 'worktree', 'add', '-q', work)
      const planted = await plant(join(base, 'main/.git/worktrees/bin'))
      expect(await find([planted])).toBe(join(base, 'bin/git'))
    })

    test('in another work tree of the repository, where it may have been landed, wherever that is', async () => {
      await rm(work, { recursive: true })
      git('init', '-q', 'main')
      git('-C', 'main', 'commit', '-qm', 'x', '--allow-empty')
      for (const [name, options] of [
        [work, []],
        ['second', ['-c', 'worktree.useRelativePaths=true']],
      ] as const)
        git('-C', 'main', ...options, 'worktree', 'add', '-q', join(base, name.replace(base, '')))
      const planted = [await plant(join(base, 'main/bin')), await plant(join(base, 'second/bin'))]
      expect(await find(planted)).toBe(join(base, 'bin/git'))
    })

    test('and a work tree that an agent has only listed hides no git', async () => {
      git('init', '-q', work)
      const listed = join(work, '.git/worktrees/made-up')
      await mkdir(listed, { recursive: true })
      await writeFile(join(listed, 'gitdir'), `${join(base, 'usr/.git')}\n`)
      expect(await find([await plant(join(base, 'usr/bin'))])).toBe(join(base, 'usr/bin/git'))
    })

    test('and if there is no other, a person is told which one does not count', async () => {
      const path = await plant(join(work, 'bin'))
      await expect(findGit({ PATH: path }, work)).rejects.toMatchObject({
        name: 'UserError',
        hint: expect.stringContaining(join(path, 'git')),
      })
    })
  },
)

describe('the reason of a git that failed', () => {
  const reasonOf = (...args: string[]) =>
    runGitOrThrow({ program: 'git', directory: base, env: { PATH: process.env.PATH, LC_ALL: 'C' } }, args).then(
      () => null,
      (error: unknown) => error,
    )

  test('is the last line that it wrote', async () => {
    expect(await reasonOf('cat-file', '-p', 'HEAD')).toMatchObject({
      reason: expect.stringMatching(/^fatal: not a git repository [^\n]*$/),
    })
  })

  test('is that it failed, where it wrote nothing', async () => {
    git('init', '-q', '-b', 'main')
    expect(await reasonOf('rev-parse', '--verify', '--quiet', 'gone')).toMatchObject({
      reason: 'git rev-parse --verify --quiet gone failed: ',
    })
  })
})
