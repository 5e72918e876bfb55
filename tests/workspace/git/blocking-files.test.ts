import { execFileSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, symlinkSync, truncateSync, unlinkSync } from 'node:fs'
import { createServer } from 'node:net'
import { dirname, join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import { endMarked, findMarked, MARK_VARIABLE } from '../../../src/platform/end-processes.ts'
import { checkGit } from '../../../src/project/doctor/checks.ts'
import {
  type Fingerprints,
  openFingerprints,
  openFingerprintsReadOnly,
} from '../../../src/workspace/fingerprint/fingerprint.ts'
import { findBlockingFiles, GitBlocked, putAside } from '../../../src/workspace/git/blocking-files.ts'
import { findRepository, GitStopped, runGit } from '../../../src/workspace/git/git.ts'
import { unmatchedGlobs } from '../../../src/workspace/protected-files.ts'
import { openSavepoints } from '../../../src/workspace/savepoints/savepoint-writer.ts'
import { promise } from '../../support/promise.ts'
import { isLinux, unless } from '../../support/skipped.ts'
import { workDirectoryForEach } from '../../support/work-directory.ts'

const place = workDirectoryForEach('blocking-files')
const { write, git, environment, commit } = place
let warnings: string[]

beforeEach(() => {
  warnings = []
})

/** Before these tests git waited at each of these for ever. */
const SECONDS = 20_000

promise(
  'B20',
  'A pipe, or what else git would wait at, in the place of a file that git opens hangs nothing: it is renamed or done without, and said',
)
describe('a file at which git would wait for ever', () => {
  it.each(['.gitignore', 'deep/in/.gitignore', '.gitattributes'])(
    'a pipe as %s is renamed and said once, and all other files are seen',
    async path => {
      write('deep/in/a', 'a')
      const prints = await open()
      const before = await prints.take()
      pipe(path)
      write('deep/in/b', 'b')
      const after = await prints.take()
      expect((await prints.changed(before, after)).paths).toEqual(['deep/in/b'])
      expect(warnings).toEqual([
        `${path} is a pipe, at which git would wait for ever; it was renamed to ${path}.broken-1.`,
      ])
      expect(await prints.take()).toBe(after)
      expect(existsSync(join(place.work, `${path}.broken-1`))).toBe(true)
    },
    SECONDS,
  )

  it('a pipe as .gitignore that is there when codemachine starts is renamed, too', async () => {
    repository()
    pipe('.gitignore')
    write('a', 'a')
    const prints = await open()
    expect(await names(prints)).toEqual(['a'])
    expect(warnings.join()).toContain('.gitignore is a pipe')
  })

  it('a .gitignore of more than 32 MiB is renamed, and its rules do not count', async () => {
    write('a', 'a')
    const prints = await open()
    await prints.take()
    write('.gitignore', '')
    truncateSync(join(place.work, '.gitignore'), 40_000_000)
    await prints.take()
    expect(warnings).toEqual(['.gitignore is larger than 32 MiB; it was renamed to .gitignore.broken-1.'])
  })

  it(
    'a pipe in the `.git` of a nested repository is renamed',
    async () => {
      write('sub/a', 'a')
      mkdirSync(join(place.work, 'sub/.git/objects'), { recursive: true })
      mkdirSync(join(place.work, 'sub/.git/refs'))
      pipe('sub/.git/HEAD')
      const prints = await open()
      expect(await names(prints)).toEqual(['sub/a'])
      expect(warnings.join()).toContain('sub/.git/HEAD is a pipe')
    },
    SECONDS,
  )

  it('a pipe as .git/objects/info/alternates: the objects of the repository are done without', async () => {
    repository()
    write('a', 'a')
    commit()
    pipe('.git/objects/info/alternates')
    const prints = await open()
    expect(await names(prints)).toEqual(['a'])
    expect(warnings).toEqual([
      '.git/objects/info/alternates is a pipe, at which git would wait for ever: codemachine reads no objects of the repository any more.',
    ])
  })

  /** The first savepoint is not made, and says why; after a look at the files it is. */
  const keepsLater = async (prints: Fingerprints, tree: string, object: string, plant: () => void) => {
    await using savepoints = openSavepoints(prints, { onWarning: text => warnings.push(text) })
    plant()
    const what = { session: '20261122_1', round: 1, tree, at: 1_000 }
    expect(await savepoints.keep(what)).toBeNull()
    expect(warnings.join('\n')).toContain(`${object} is a pipe`)
    expect(await prints.take()).toBe(tree)
    expect(await savepoints.keep(what)).toMatchObject({ tree })
  }

  it(
    'a pipe in the place of an object of the repository keeps no savepoint from being made',
    async () => {
      repository()
      write('a', 'a')
      commit()
      const prints = await open()
      const tree = await prints.take()
      const object = `.git/objects/${git('rev-parse', 'HEAD:a').replace(/^../, '$&/')}`
      await keepsLater(prints, tree, object, () => {
        unlinkSync(join(place.work, object))
        pipe(object)
      })
    },
    SECONDS,
  )

  it(
    'a pipe in the place of an object that the repository borrows from another keeps none from being made either',
    async () => {
      repository()
      write('a', 'a')
      commit()
      const object = git('rev-parse', 'HEAD:a').replace(/^../, '$&/')
      const lent = join(place.base, 'lent')
      renameSync(join(place.work, '.git/objects'), lent)
      write('.git/objects/info/alternates', `${lent}\n`)
      const prints = await open()
      const tree = await prints.take()
      await keepsLater(prints, tree, object, () => {
        unlinkSync(join(lent, object))
        execFileSync('mkfifo', [join(lent, object)])
      })
    },
    SECONDS,
  )

  promise(
    'B51',
    'What git compares or packs for a savepoint reads no attributes of the work tree, at which it could wait',
  )
  it(
    'a pipe as .gitattributes, beside a file that is gone, does not hold up what a savepoint says of the changes',
    async () => {
      write('deep/a', 'a')
      const prints = await open()
      await using savepoints = openSavepoints(prints)
      const keep = async (round: number) =>
        await savepoints.keep({ session: '20261122_1', round, tree: await prints.take(), at: 1_000 })
      await keep(0)
      unlinkSync(join(place.work, 'deep/a'))
      pipe('deep/.gitattributes')
      expect((await keep(1))?.changes.paths.map(({ path }) => path)).toEqual(['deep/a'])
    },
    SECONDS,
  )

  promise(
    'B44',
    'Each call of git in a session does without a file at which it would wait, not only the looks at all files',
  )
  it(
    'is no end of what else asks git: which files a gate protects, and what has changed',
    async () => {
      repository()
      write('tests/a', 'a')
      commit()
      const prints = await open()
      const before = await prints.take()
      pipe('.gitignore')
      expect(await prints.mending(each => unmatchedGlobs(each, ['tests/**', 'none/**']))).toEqual(new Set(['none/**']))
      expect(warnings.join('\n')).toContain('.gitignore is a pipe')
      const tree = `.git/objects/${before.replace(/^../, '$&/')}`
      unlinkSync(join(place.work, tree))
      pipe(tree)
      expect(await prints.changed(before, '1'.repeat(40))).toEqual({ paths: [], count: 0 })
      expect(warnings.join('\n')).toContain(`${tree} is a pipe`)
      expect(warnings.join('\n')).toContain('An earlier fingerprint of the work directory is gone')
    },
    SECONDS,
  )

  it('a pipe as info/exclude, or a link to one, excludes nothing', async () => {
    repository()
    const exclude = join(place.work, '.git/info/exclude')
    rmSync(exclude)
    pipe('.git/info/exclude')
    write('a', 'a')
    expect(await names(await open())).toEqual(['a'])
  })

  it(
    'a pipe as .git/config is named, for it is the person’s',
    async () => {
      repository()
      rmSync(join(place.work, '.git/config'))
      pipe('.git/config')
      await expect(open()).rejects.toThrow(
        `git cannot look at ${place.work}: .git/config is a pipe, at which git would wait for ever; put a plain file in its place.`,
      )
    },
    SECONDS,
  )

  promise(
    'B52',
    "A file of the person's at which git would wait is named also from a folder of the repository, and in a linked worktree",
  )
  it(
    'is named where it lies above the work directory, or in the repository of a linked worktree',
    async () => {
      repository()
      write('part/a', 'a')
      commit()
      const worktree = join(place.base, 'worktree')
      git('worktree', 'add', '--quiet', worktree)
      rmSync(join(place.work, '.git/config'))
      pipe('.git/config')
      const repositoryOfIt = await findRepository(worktree)
      const options = { gitDir: join(place.base, 'records'), env: environment() }
      await Promise.all([
        expect(checkGit({ env: environment() }, join(place.work, 'part'))).rejects.toThrow('.git/config is a pipe'),
        expect(openFingerprints({ ...options, directory: worktree, repository: repositoryOfIt })).rejects.toThrow(
          `${join(place.work, '.git/config')} is a pipe`,
        ),
      ])
    },
    SECONDS,
  )

  it('is named where nothing may be changed: in a look without the run lock, and outside of the work directory', async () => {
    write('a', 'a')
    await (await open()).take()
    pipe('.gitignore')
    const options = { gitDir: join(place.base, 'records'), directory: place.work, repository: null, env: environment() }
    await using look = await openFingerprintsReadOnly(options)
    const words = '.gitignore is a pipe, at which git would wait for ever; put a plain file in its place.'
    await expect(look?.fingerprints.take()).rejects.toThrow(words)
    expect(readdirSync(place.work)).toContain('.gitignore')

    repository()
    mkdirSync(join(place.work, 'project'))
    const gitDir = join(place.base, 'other')
    const inside = {
      ...options,
      gitDir,
      directory: join(place.work, 'project'),
      repository: await findRepository(place.work),
    }
    await expect(openFingerprints(inside)).rejects.toMatchObject({
      exitCode: 4,
      message: expect.stringContaining(words),
    })
  })
})

it('a committed file that git ignores still counts once the objects of the repository are done without', async () => {
  repository()
  write('dist/a', 'a')
  write('empty', '')
  commit()
  write('.gitignore', 'dist\n')
  const prints = await open()
  const before = await prints.take()
  prints.readAgain()
  expect(await prints.take()).toBe(before)
  write('dist/a', 'b')
  expect((await prints.changed(before, await prints.take())).paths).toEqual(['dist/a'])
})

it('a pipe behind a link, or outside of the work directory, is renamed by nobody', async () => {
  mkdirSync(join(place.base, 'outside'))
  execFileSync('mkfifo', [join(place.base, 'outside/.gitignore')])
  symlinkSync(join(place.base, 'outside'), join(place.work, 'link'))
  for (const path of [join(place.work, 'link/.gitignore'), join(place.base, 'outside/.gitignore')]) {
    const blocked = new GitBlocked(place.work, [{ path, why: 'is a pipe', kind: 'rules' }])
    expect(await putAside(blocked, place.work, text => warnings.push(text))).toBe(false)
  }
  expect([readdirSync(join(place.base, 'outside')), warnings]).toEqual([['.gitignore'], []])
})

promise('B21', 'A look at the files that nobody waits for any more is ended at once')
it('a look that nobody waits for any more is ended at once, and the next one is whole', async () => {
  write('sub/a', 'a')
  const prints = await open()
  const over = new AbortController()
  pipe('sub/.gitignore')
  const looking = prints.take(over.signal)
  over.abort()
  await expect(looking).rejects.toThrow(GitStopped)
  unlinkSync(join(place.work, 'sub/.gitignore'))
  expect(await names(prints)).toEqual(['sub/a'])
})

it('what nobody waits for any more is ended in the middle of what else looks at the files, and of a savepoint', async () => {
  repository()
  write('a', 'a')
  commit()
  const prints = await open()
  const tree = await prints.take()
  const signal = AbortSignal.abort()
  await expect(prints.mending(each => runGit(each.setting, ['version']), signal)).rejects.toThrow(GitStopped)
  await using savepoints = openSavepoints(prints)
  const what = { session: '20261122_1', round: 0, tree, at: 1_000 }
  await expect(savepoints.keep({ ...what, signal })).rejects.toThrow(GitStopped)
  expect(await savepoints.keep(what)).toMatchObject({ tree })
})

promise('B21')
it('a git that waits for something else than a file ends, too, once nobody waits for it', async () => {
  const over = new AbortController()
  const hangs = { program: '/bin/sleep', directory: place.work, env: environment(), signal: over.signal }
  const running = runGit(hangs, ['300'])
  over.abort()
  await expect(running).rejects.toThrow(GitStopped)
})

promise('B46', 'A git that hangs when codemachine is killed is found by its mark, and ended by the next start')
it.runIf(isLinux)(
  `a git that hangs carries the mark by which the next start finds what is left${unless(isLinux, 'it is looked for in /proc')}`,
  async () => {
    const mark = `blocking-files-${randomUUID()}`
    const marked = () => findMarked(MARK_VARIABLE, value => value === mark, process.platform)
    write('sub/a', 'a')
    const prints = await open({ [MARK_VARIABLE]: mark })
    pipe('sub/.gitignore')
    const over = new AbortController()
    const looking = prints.take(over.signal).catch(() => null)
    await expect
      .poll(async () => (await marked()).map(each => each.command).join(), { interval: 5, timeout: 30_000 })
      .toMatch(/git.* status/)
    // As the next start does with the marks of a codemachine that was killed.
    const options = { clock: systemClock, platform: process.platform, self: process.pid, graceMs: 2000 }
    const { ended } = await endMarked(MARK_VARIABLE, value => value === mark, options)
    expect(ended.map(each => each.command).join()).toContain('git')
    over.abort()
    await looking
  },
)

it('a link in the place of a .gitignore is no pipe', async () => {
  write('rules', '*.log\n')
  symlinkSync('rules', join(place.work, '.gitignore'))
  const prints = await open()
  await prints.take()
  expect(warnings.join()).not.toContain('renamed')
})

promise(
  'B60',
  "A socket or the null device in the place of a file that git opens is in nobody's way: git does not wait there",
)
it('git waits neither at a socket nor at the null device, so neither is in its way', async () => {
  repository()
  await using server = createServer()
  // As git's own file system monitor has it.
  await new Promise<void>(resolve => server.listen(join(place.work, '.git/fsmonitor--daemon.ipc'), resolve))
  symlinkSync('/dev/null', join(place.work, '.git/hooks/pre-commit'))
  symlinkSync('/dev/null', join(place.work, '.gitignore'))
  const where = {
    directory: place.work,
    env: environment(),
    opensTree: true,
    repository: async () => [join(place.work, '.git')],
  }
  expect(await findBlockingFiles(where)).toEqual([])
  pipe('.git/logs')
  expect((await findBlockingFiles(where)).map(({ path }) => path)).toEqual([join(place.work, '.git/logs')])
})

async function open(variables: NodeJS.ProcessEnv = {}): Promise<Fingerprints> {
  return await openFingerprints({
    gitDir: join(place.base, 'records'),
    directory: place.work,
    repository: await findRepository(place.work),
    env: { ...environment(), ...variables },
    onWarning: message => warnings.push(message),
  })
}

async function names(prints: Fingerprints): Promise<string[]> {
  const empty = '4b825dc642cb6eb9a060e54bf8d69288fbee4904'
  return [...(await prints.changed(empty, await prints.take())).paths]
}

function pipe(path: string): void {
  mkdirSync(dirname(join(place.work, path)), { recursive: true })
  execFileSync('mkfifo', [join(place.work, path)])
}

function repository(): void {
  git('init', '--quiet')
}
