import { execFileSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  symlinkSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import { endMarked, findMarked, MARK_VARIABLE } from '../../../src/platform/end-processes.ts'
import { type Fingerprints, openFingerprints, openFingerprintsReadOnly } from '../../../src/workspace/fingerprint.ts'
import { findRepository, GitStopped, runGit } from '../../../src/workspace/git/git.ts'
import { unmatchedGlobs } from '../../../src/workspace/protected-files.ts'
import { openSavepoints } from '../../../src/workspace/savepoints/savepoint-writer.ts'
import { isLinux, unless } from '../../support/skipped.ts'

let base: string
let work: string
let warnings: string[]

beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), 'blocking-files-')))
  work = join(base, 'work')
  for (const folder of [work, join(base, 'home')]) mkdirSync(folder)
  warnings = []
})

afterEach(() => rmSync(base, { recursive: true, force: true }))

/** Before these tests git waited at each of these for ever. */
const SECONDS = 20_000

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
      expect(existsSync(join(work, `${path}.broken-1`))).toBe(true)
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
    truncateSync(join(work, '.gitignore'), 40_000_000)
    await prints.take()
    expect(warnings).toEqual(['.gitignore is larger than 32 MiB; it was renamed to .gitignore.broken-1.'])
  })

  it(
    'a pipe in the `.git` of a nested repository is renamed',
    async () => {
      write('sub/a', 'a')
      mkdirSync(join(work, 'sub/.git/objects'), { recursive: true })
      mkdirSync(join(work, 'sub/.git/refs'))
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

  it(
    'a pipe in the place of an object of the repository keeps no savepoint from being made',
    async () => {
      repository()
      write('a', 'a')
      commit()
      const prints = await open()
      const tree = await prints.take()
      await using savepoints = openSavepoints(prints, { onWarning: text => warnings.push(text) })
      const object = `.git/objects/${git('rev-parse', 'HEAD:a').replace(/^../, '$&/')}`
      unlinkSync(join(work, object))
      pipe(object)
      const what = { session: '20261122_1', round: 1, tree, at: 1_000 }
      expect(await savepoints.keep(what)).toBeNull()
      expect(warnings.join('\n')).toContain(`${object} is a pipe`)
      expect(await prints.take()).toBe(tree)
      expect(await savepoints.keep(what)).toMatchObject({ tree })
    },
    SECONDS,
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
      unlinkSync(join(work, tree))
      pipe(tree)
      expect(await prints.changed(before, '1'.repeat(40))).toEqual({ paths: [], count: 0 })
      expect(warnings.join('\n')).toContain(`${tree} is a pipe`)
      expect(warnings.join('\n')).toContain('An earlier fingerprint of the work directory is gone')
    },
    SECONDS,
  )

  it('a pipe as info/exclude, or a link to one, excludes nothing', async () => {
    repository()
    const exclude = join(work, '.git/info/exclude')
    rmSync(exclude)
    pipe('.git/info/exclude')
    write('a', 'a')
    expect(await names(await open())).toEqual(['a'])
  })

  it(
    'a pipe as .git/config is named, for it is the person’s',
    async () => {
      repository()
      rmSync(join(work, '.git/config'))
      pipe('.git/config')
      await expect(open()).rejects.toThrow(
        `git cannot look at ${work}: .git/config is a pipe, at which git would wait for ever; put a plain file in its place.`,
      )
    },
    SECONDS,
  )

  it('is named where nothing may be changed: in a look without the run lock, and outside of the work directory', async () => {
    write('a', 'a')
    await (await open()).take()
    pipe('.gitignore')
    const options = { gitDir: join(base, 'records'), directory: work, repository: null, env: environment() }
    await using look = await openFingerprintsReadOnly(options)
    const words = '.gitignore is a pipe, at which git would wait for ever; put a plain file in its place.'
    await expect(look?.fingerprints.take()).rejects.toThrow(words)
    expect(readdirSync(work)).toContain('.gitignore')

    repository()
    mkdirSync(join(work, 'project'))
    const gitDir = join(base, 'other')
    const inside = { ...options, gitDir, directory: join(work, 'project'), repository: await findRepository(work) }
    await expect(openFingerprints(inside)).rejects.toMatchObject({
      exitCode: 4,
      message: expect.stringContaining(words),
    })
  })
})

it('a look that nobody waits for any more is ended at once, and the next one is whole', async () => {
  write('sub/a', 'a')
  const prints = await open()
  const over = new AbortController()
  pipe('sub/.gitignore')
  const looking = prints.take(over.signal)
  over.abort()
  await expect(looking).rejects.toThrow(GitStopped)
  unlinkSync(join(work, 'sub/.gitignore'))
  expect(await names(prints)).toEqual(['sub/a'])
})

it('a git that waits for something else than a file ends, too, once nobody waits for it', async () => {
  const over = new AbortController()
  const hangs = { program: '/bin/sleep', directory: work, env: environment(), signal: over.signal }
  const running = runGit(hangs, ['300'])
  over.abort()
  await expect(running).rejects.toThrow(GitStopped)
})

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
      .poll(async () => (await marked()).map(each => each.command).join(), { interval: 5 })
      .toMatch(/git.* ls-files/)
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
  symlinkSync('rules', join(work, '.gitignore'))
  const prints = await open()
  await prints.take()
  expect(warnings.join()).not.toContain('renamed')
})

function environment(): NodeJS.ProcessEnv {
  return { PATH: process.env.PATH, HOME: join(base, 'home') }
}

async function open(variables: NodeJS.ProcessEnv = {}): Promise<Fingerprints> {
  return await openFingerprints({
    gitDir: join(base, 'records'),
    directory: work,
    repository: await findRepository(work),
    env: { ...environment(), ...variables },
    onWarning: message => warnings.push(message),
  })
}

async function names(prints: Fingerprints): Promise<string[]> {
  const empty = '4b825dc642cb6eb9a060e54bf8d69288fbee4904'
  return [...(await prints.changed(empty, await prints.take())).paths]
}

function write(path: string, content: string): void {
  mkdirSync(dirname(join(work, path)), { recursive: true })
  writeFileSync(join(work, path), content)
}

function pipe(path: string): void {
  mkdirSync(dirname(join(work, path)), { recursive: true })
  execFileSync('mkfifo', [join(work, path)])
}

function repository(): void {
  git('init', '--quiet')
}

function commit(): void {
  git('add', '--all')
  git('-c', 'user.name=p', '-c', 'user.email=p@example.org', 'commit', '--quiet', '-m', 'x')
}

function git(...args: string[]): string {
  return execFileSync('git', args, { cwd: work, env: environment(), encoding: 'utf8' }).trim()
}
