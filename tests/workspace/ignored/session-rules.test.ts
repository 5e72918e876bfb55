import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { emptyState, type SessionState } from '../../../src/core/state/state.ts'
import {
  type Fingerprints,
  openFingerprints,
  openFingerprintsReadOnly,
} from '../../../src/workspace/fingerprint/fingerprint.ts'
import { lookBySessionRules } from '../../../src/workspace/fingerprint/session-rules.ts'
import { findRepository, GitStopped } from '../../../src/workspace/git/git.ts'
import { promise } from '../../support/promise.ts'

let base: string
let work: string
let env: NodeJS.ProcessEnv
let state: SessionState

beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), 'session-rules-')))
  work = join(base, 'work')
  for (const folder of [work, join(base, 'records'), join(base, 'home')]) mkdirSync(folder)
  env = { PATH: process.env.PATH, HOME: join(base, 'home') }
  state = { ...emptyState('20261122_1'), goal: 'Build it.' }
})

afterEach(() => rmSync(base, { recursive: true, force: true }))

promise(
  'D40',
  "What is ignored is decided by the rules at the session's start: those of every folder, the repository's own and the person's",
)
describe('what is ignored in a session', () => {
  it('is what the rules of its start ignore: what a round has ignored since is seen, with the rules themselves', async () => {
    write('.gitignore', '*.before\n')
    const { prints } = await begin()
    const before = await prints.take()
    write('.gitignore', '*\n')
    write('work/app.ts', 'work')
    write('x.before', 'ignored all the time')
    expect(await changes(prints, before)).toEqual(['.gitignore', 'work/app.ts'])
    const hidden = await prints.take()
    write('work/app.ts', 'other work')
    expect(await changes(prints, hidden)).toEqual(['work/app.ts'])
    rmSync(join(work, 'work/app.ts'))
    rmSync(join(work, '.gitignore'))
    expect(await changes(prints, hidden)).toEqual(['.gitignore', 'work/app.ts', 'x.before'])
  })

  it.each([
    ['.gitignore', '/', (rules: string) => write('part/.gitignore', rules)],
    ['info/exclude', '/part/', (rules: string) => writeFileSync(join(work, '.git/info/exclude'), rules)],
    ['the file of global excludes', '/part/', (rules: string) => write('../home/.config/git/ignore', rules)],
  ])('is what %s says then, in every folder and whatever becomes of it', async (_where, top, writeRules) => {
    git('init', '-q')
    writeRules(`${top}tied\nfree\nfolder/\n# no rule\n*.x\n!seen.x\n`)
    const ignored = ['tied', 'free', 'sub/free', 'folder/a', 'a.x'].map(path => `part/${path}`)
    const seen = ['part/seen.x', 'part/sub/folder', 'part/sub/tied']
    for (const path of [...ignored, ...seen]) write(path, '1')
    const { prints } = await begin()
    const before = await prints.take()
    writeRules('*\n')
    for (const path of ignored) write(path, 'changed')
    write('part/.gitignore', '*\n')
    expect((await changes(prints, before)).filter(path => path !== 'part/.gitignore')).toEqual([])
    for (const path of seen) write(path, 'changed')
    expect((await changes(prints, before)).filter(path => path !== 'part/.gitignore')).toEqual(seen)
  })

  it('is what a file nearer to it says where two files disagree, in a folder of any name', async () => {
    write('.gitignore', '*.log\n')
    // In the order of their names the outer file comes last.
    write('!part/.gitignore', '!kept.log\n')
    const { prints } = await begin()
    const before = await prints.take()
    write('.gitignore', '*\n')
    for (const path of ['kept.log', '!part/kept.log', '!part/other.log']) write(path, '1')
    expect(await changes(prints, before)).toEqual(['!part/kept.log', '.gitignore'])
  })

  it.each(['sub/.gitignore', 'sub/deep/.gitignore'])(
    'is not what a file hides that came later, and hides itself, too (%s)',
    async path => {
      const { prints } = await begin()
      const before = await prints.take()
      write(path, '*\n')
      const hidden = await prints.take()
      expect(await prints.changed(before, hidden)).toEqual({ paths: [path], count: 1 })
      write('sub/deep/work.ts', '1')
      expect(await changes(prints, hidden)).toEqual(['sub/deep/work.ts'])
    },
  )

  it('is what a cache ignores with a file of its own, which ignores itself', async () => {
    write('part/cache/.gitignore', '*\n')
    write('part/cache/v/data', '1')
    const { prints } = await begin()
    const before = await prints.take()
    write('part/cache/v/data', '2')
    write('part/cache/other', '3')
    expect(await prints.take()).toBe(before)
  })

  it('is not what is well known as a dependency, a cache or build output and was ignored since', async () => {
    const { prints } = await begin()
    const before = await prints.take()
    write('.gitignore', 'node_modules/\ncoverage\n*.log\ndist\nlib\n')
    for (const path of ['node_modules/a/index.js', 'deep/coverage/x', 'npm.log', 'dist/app.js', 'lib/app.js']) {
      write(path, '1')
    }
    expect(await changes(prints, before)).toEqual(['.gitignore', 'lib/app.js'])
    expect(prints.leftOut()).toEqual({ paths: ['deep/', 'dist/', 'node_modules/', 'npm.log'], count: 4 })
  })

  promise('D43', 'Among these a file counts that a gate, the goal or a person names')
  it('is seen all the same where a gate, the goal or a person names a file in it', async () => {
    state = { ...state, goal: 'Write the page dist/index.html. Aim for a coverage of 90 %.' }
    const gate = { name: 'g', run: 'node_modules/.bin/check && grep OK result.log', protect: ['build/fixtures/**'] }
    state = { ...state, gates: [{ ...gate, timeoutMs: 1, required: true, network: false, everyRound: false }] }
    const { prints, refresh } = await begin()
    const before = await prints.take()
    const folders = ['node_modules', 'coverage', 'dist', 'build', 'target']
    write('.gitignore', [...folders, '*.log', ''].join('\n'))
    const paths = ['.bin/check', '.bin/other', 'a/index.js'].map(path => `node_modules/${path}`)
    const more = ['dist/index.html', 'dist/a/b.js', 'build/fixtures/a', 'coverage/x', 'result.log', 'other.log']
    for (const path of [...paths, ...more, 'target/app', 'target/deps/x']) write(path, '1')
    const seen = ['.gitignore', 'build/fixtures/a', 'dist/a/b.js', 'dist/index.html', 'node_modules/.bin/check']
    expect(await changes(prints, before)).toEqual([...seen, 'result.log'])
    state = { ...state, personSaid: [`Look at ${work}/target/app, too.`] }
    await refresh()
    expect(await changes(prints, before)).toEqual([...seen, 'result.log', 'target/app'])
  })

  promise('D43')
  it('is seen where it is named when the session goes on: by a gate that came then, or by what was said before a cut', async () => {
    const { prints } = await begin()
    const before = await prints.take()
    write('.gitignore', 'dist\n')
    write('dist/app.js', '1')
    expect(await changes(prints, before)).toEqual(['.gitignore'])
    const savepoint = { round: 1, commit: before, tree: before, start: before }
    state = { ...state, savepoint, personSaid: ['Write dist/app.js, too.'] }
    expect(await changes((await begin()).prints, before)).toEqual(['.gitignore', 'dist/app.js'])
  })

  it('stays that when the session goes on in another process, and is looked at by those who only look', async () => {
    const { prints } = await begin()
    write('.gitignore', '*\n')
    write('app.ts', 'work')
    const tree = await prints.take()
    state = { ...state, savepoint: { round: 1, commit: tree, tree, start: tree } }
    rmSync(join(base, 'records/git/index'))
    const resumed = await begin()
    expect(await resumed.prints.take()).toBe(tree)
    await using look = await openFingerprintsReadOnly(await options())
    look?.fingerprints.ignoreBy({ path: rulesFile() })
    expect(await look?.fingerprints.take()).toBe(tree)
  })

  it('is what is ignored now in a session of an earlier version, which kept no rules', async () => {
    const tree = 'a'.repeat(40)
    state = { ...state, savepoint: { round: 1, commit: tree, tree, start: tree } }
    const { prints } = await begin()
    const before = await prints.take()
    write('.gitignore', '*\n')
    write('app.ts', 'work')
    expect(await prints.take()).toBe(before)
  })

  it('is decided anew for the next session: what was ignored in the one before it is ignored in that', async () => {
    const { prints } = await begin()
    write('.gitignore', 'notes/\n')
    write('notes/a', '1')
    const first = await prints.take()
    state = emptyState('20261122_2')
    const second = await begin()
    const before = await second.prints.take()
    expect(await second.prints.changed(first, before)).toEqual({ paths: ['notes/a'], count: 1 })
    write('notes/a', '2')
    expect(await second.prints.take()).toBe(before)
  })

  it('keeps what the person has committed in sight, though it is ignored', async () => {
    git('init', '-q')
    write('.gitignore', 'kept\n')
    write('kept', '1')
    git('add', '-f', '.')
    git('-c', 'user.name=p', '-c', 'user.email=p', 'commit', '-qm', 'x')
    const { prints } = await begin()
    const before = await prints.take()
    write('kept', '2')
    expect(await changes(prints, before)).toEqual(['kept'])
  })
})

promise('D44', 'A rule that ignores everything when a session begins does not count, and its place is said')
describe('a rule that ignores everything when a session begins', () => {
  it('does not count, which is said with its place and what to do', async () => {
    write('.gitignore', '# nothing\n*\n!.gitignore\n')
    write('app.ts', '1')
    write('node_modules/a/index.js', '1')
    const { prints, remarks } = await begin()
    expect(remarks).toEqual([expect.stringMatching(/^\.gitignore:2 \(\*\) ignores everything .*Remove that rule/)])
    const before = await prints.take()
    write('app.ts', '2')
    write('node_modules/a/index.js', '2')
    expect(await changes(prints, before)).toEqual(['app.ts'])
  })

  it('hides nothing of a nested repository either', async () => {
    write('.gitignore', '*\n')
    write('nested/a', '1')
    write('empty', '')
    git('-C', 'nested', 'init', '-q')
    const { prints, first } = await begin()
    write('nested/a', '2')
    expect(await changes(prints, first)).toEqual(['nested/a'])
  })

  it('counts where it has exceptions, or something is seen in spite of it', async () => {
    write('.gitignore', '*\n!src/\n!src/**\n')
    expect((await begin()).remarks).toEqual([])
    expect((await begin()).remarks).toEqual([])
    git('init', '-q')
    write('.gitignore', '*\n')
    write('.profile', '1')
    git('add', '-f', '.profile')
    git('-c', 'user.name=p', '-c', 'user.email=p', 'commit', '-qm', 'x')
    state = emptyState('20261122_2')
    rmSync(join(base, 'records/git'), { recursive: true })
    const { prints, remarks } = await begin()
    expect(remarks).toEqual([])
    const before = await prints.take()
    write('other', '1')
    expect(await prints.take()).toBe(before)
  })

  it('is said of an ignore file that is too large to be kept', async () => {
    write('.gitignore', `*.before\n${'# padding\n'.repeat(500_000)}`)
    const { remarks } = await begin()
    expect(remarks).toEqual([
      expect.stringMatching(/^The ignore rules of \.gitignore are not used, .* Make it shorter\.$/),
    ])
  })
})

it('a session that is ended while its first look at the files runs keeps no rules, and those of when it goes on', async () => {
  write('.gitignore', '*.before\n')
  await expect(begin(AbortSignal.abort())).rejects.toThrow(GitStopped)
  expect(existsSync(rulesFile())).toBe(false)
  // Nor does one whose time is used up by it.
  await expect(begin(undefined, AbortSignal.abort())).rejects.toThrow(GitStopped)
  expect(existsSync(rulesFile())).toBe(false)
  await begin()
  expect(readFileSync(rulesFile(), 'utf8')).toContain('*.before')
})

async function begin(ending = new AbortController().signal, timeIsUp?: AbortSignal) {
  const prints = await openFingerprints(await options())
  const remarks: string[] = []
  const onRemark = (remark: string) => void remarks.push(remark)
  const looks = lookBySessionRules(prints, { path: rulesFile(), ending, state: () => state, onRemark })
  const first = await looks.take(timeIsUp)
  return { prints, first, remarks, refresh: () => looks.take() }
}

async function options() {
  return { gitDir: join(base, 'records/git'), directory: work, repository: await findRepository(work), env }
}

function rulesFile(): string {
  return join(base, 'records', `rules-${state.id}`)
}

async function changes(prints: Fingerprints, before: string): Promise<readonly string[]> {
  return (await prints.changed(before, await prints.take())).paths
}

function write(path: string, text: string): void {
  mkdirSync(dirname(join(work, path)), { recursive: true })
  writeFileSync(join(work, path), text)
}

function git(...args: string[]): string {
  return execFileSync('git', args, { cwd: work, env, encoding: 'utf8' })
}
