import { existsSync, readdirSync, watch } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, it } from 'vitest'
import type { Records } from '../../../../src/session/records/records.ts'
import { takeRunLock } from '../../../../src/session/records/run-lock.ts'
import { codemachineHere } from '../../../support/in-process.ts'
import { git, makePlace, pipeAsObject, type TestPlace } from '../../../support/place.ts'
import { processesOf } from '../../../support/processes.ts'
import { promise } from '../../../support/promise.ts'
import { test } from '../../../support/side-by-side.ts'
import { isLinux, unless } from '../../../support/skipped.ts'
import { endUndying, leavesUndying } from '../../../support/undying.ts'
import { endSession, gate, runVerify } from './done-session.ts'

const CHECK = gate('sh check.sh')
const NEEDS_GOOD = 'grep -q good app.txt || { echo app.txt is not good; exit 3; }\n'

function write(place: TestPlace, file: string, text: string): Promise<void> {
  return writeFile(join(place.directory, file), text)
}

async function commit(place: TestPlace, subject: string, files: Record<string, string>): Promise<string> {
  for (const [file, text] of Object.entries(files)) await write(place, file, text)
  git(place, 'add', '-A')
  git(place, 'commit', '-qm', subject)
  return git(place, 'rev-parse', 'HEAD')
}

/** A session whose work is committed. */
async function doneAndCommitted(): Promise<TestPlace> {
  const place = await makePlace('')
  await commit(place, 'Work', { 'check.sh': NEEDS_GOOD, 'app.txt': 'good\n' })
  await endSession(place, [CHECK])
  return place
}

async function scratchFolders({ key }: Records): Promise<string[]> {
  return (await readdir(tmpdir())).filter(name => name.startsWith(`codemachine-verify-${key}`))
}

promise('D17', '`verify` tells whether it is still true, or which commit broke it')
test('what was proved is still true, of the same files and of others that pass', async () => {
  await using place = await doneAndCommitted()
  const same = await runVerify(place, { json: false })
  expect(same.stdout).toContain('still true\n')
  expect(same.stdout).toContain('sh check.sh: passes')
  expect(same.stdout).toContain('The files are the same')
  expect(same.exitCode).toBe(0)

  await commit(place, 'More', { 'more.txt': 'more\n' })
  const { exitCode, answer } = await runVerify(place)
  expect(exitCode).toBe(0)
  expect(answer()).toMatchObject({ verdict: { kind: 'still-true' }, changed: { count: 1, paths: ['more.txt'] } })
})

promise('B30')
it.runIf(isLinux)(
  `what a gate left running and cannot be ended is told${unless(isLinux, 'marks are found by /proc here')}`,
  async () => {
    const pidFile = join(await mkdtemp(join(tmpdir(), 'codemachine-undying-')), 'pid')
    await using place = await makePlace('')
    await commit(place, 'Work', { 'check.sh': leavesUndying(pidFile) })
    await endSession(place, [CHECK], { sandbox: 'danger-full-access' })
    try {
      const { exitCode, stderr } = await runVerify(place)
      expect([exitCode, stderr]).toEqual([
        0,
        expect.stringMatching(
          /^codemachine: A command left processes running that codemachine cannot end: .*sleep 1000 \(\d+\)/m,
        ),
      ])
    } finally {
      await endUndying(pidFile)
      await rm(dirname(pidFile), { recursive: true })
    }
  },
)

test('what was looked at although git ignores it is looked at again, and has not changed if a session since let go of it', async () => {
  await using place = await makePlace('')
  await commit(place, 'Work', { 'check.sh': NEEDS_GOOD, 'app.txt': 'good\n', '.gitignore': '.npmrc\n' })
  await write(place, '.npmrc', 'loglevel=warn\n')
  const records = await endSession(place, [{ ...CHECK, protect: ['check.sh'] }])
  await rm(join(records.git, 'index'))
  expect((await runVerify(place)).answer()).toMatchObject({ changed: { count: 0 } })
  await write(place, '.npmrc', 'script-shell=/bin/true\n')
  expect((await runVerify(place)).answer()).toMatchObject({ changed: { count: 1, paths: ['.npmrc'] } })
})

promise('D17')
test('the commit that broke it is named, of work that nobody had committed when it was done', async () => {
  await using place = await makePlace('')
  await write(place, 'check.sh', NEEDS_GOOD)
  await write(place, 'app.txt', 'good\n')
  const records = await endSession(place, [CHECK])
  git(place, 'commit', '-q', '--allow-empty', '-m', 'First')
  await commit(place, 'Second, with the work of the night', { 'a.txt': 'a' })
  const third = await commit(place, 'Third \u001b[31m', { 'app.txt': 'bad\n' })
  await commit(place, 'Fourth', { 'b.txt': 'b' })
  const before = [git(place, 'status', '--porcelain'), git(place, 'reflog'), git(place, 'worktree', 'list')]

  const { exitCode, stdout, stderr } = await runVerify(place, { json: false })

  expect(stdout).toMatch(new RegExp(`^broken since ${third.slice(0, 12)} Third ␛\\[31m \\(20`))
  expect(stdout).toContain('fails, exit code 3')
  expect(stdout).toContain('app.txt is not good')
  expect(stderr).toContain('what was certified: `sh check.sh` passes')
  expect(exitCode).toBe(4)
  expect([git(place, 'status', '--porcelain'), git(place, 'reflog'), git(place, 'worktree', 'list')]).toEqual(before)
  expect(await scratchFolders(records)).toEqual([])
})

promise('D45', '`verify` blames no commit at which a gate fails once by chance')
test('a commit at which a gate fails once, by chance, is not named as the one that broke it', async () => {
  await using place = await makePlace('')
  const failed = join(place.root, 'failed')
  const byChance = `test ! -e innocent.txt || test -e ${failed} || { touch ${failed}; exit 1; }\n`
  await commit(place, 'Work', { 'check.sh': `${NEEDS_GOOD}${byChance}`, 'app.txt': 'good\n' })
  await endSession(place, [CHECK])
  const innocent = await commit(place, 'Innocent', { 'innocent.txt': '' })
  await commit(place, 'Break', { 'app.txt': 'bad\n' })
  const { stdout, stderr, exitCode } = await runVerify(place, { json: false })
  expect(existsSync(failed)).toBe(true)
  expect(stderr).toContain(`${innocent.slice(0, 12)} Innocent: \`sh check.sh\` fails`)
  expect(stdout).toContain(`cannot tell: at ${innocent.slice(0, 12)} Innocent it fails only sometimes`)
  expect(exitCode).toBe(4)
})

test('a break that is not committed is laid to the files that are not', async () => {
  await using place = await doneAndCommitted()
  await commit(place, 'More', { 'more.txt': 'more\n' })
  await write(place, 'app.txt', 'bad\n')
  const { exitCode, answer } = await runVerify(place)
  expect(answer().verdict).toMatchObject({ kind: 'broken-uncommitted', differs: { count: 1, paths: ['app.txt'] } })
  expect(exitCode).toBe(4)
})

test('what is installed and ignored is there for the gate, and what it leaves there is thrown away', async () => {
  await using place = await makePlace('')
  await commit(place, 'Work', {
    'check.sh': `set -e\ngrep -q there node_modules/part/index.js\necho x > node_modules/written\n${NEEDS_GOOD}`,
    'app.txt': 'good\n',
    '.gitignore': 'node_modules\n',
  })
  await mkdir(join(place.directory, 'node_modules', 'part'), { recursive: true })
  await write(place, 'node_modules/part/index.js', 'there\n')
  await endSession(place, [CHECK])
  const broken = await commit(place, 'Break', { 'app.txt': 'bad\n' })
  const { answer } = await runVerify(place)
  expect(answer().verdict).toMatchObject({ kind: 'broken', since: { commit: broken, subject: 'Break' } })
})

test('without a sandbox no gate is let loose on links to the files of the person', async () => {
  await using place = await makePlace('')
  await commit(place, 'Work', {
    'check.sh': `echo x >> node_modules/part/index.js\n${NEEDS_GOOD}`,
    'app.txt': 'good\n',
    '.gitignore': 'node_modules\n',
  })
  await mkdir(join(place.directory, 'node_modules', 'part'), { recursive: true })
  const installed = join(place.directory, 'node_modules', 'part', 'index.js')
  await writeFile(installed, '')
  await endSession(place, [CHECK], { sandbox: 'danger-full-access' })
  await commit(place, 'Break', { 'app.txt': 'bad\n' })
  const { answer } = await runVerify(place)
  expect(answer().verdict).toMatchObject({
    kind: 'cannot-tell',
    reason: expect.stringContaining('danger-full-access'),
  })
  // Of the gate in the work directory, and once more as it failed.
  expect(await readFile(installed, 'utf8')).toBe('x\nx\n')
})

test('nothing follows from a fresh checkout in which the gate fails anyway', async () => {
  await using place = await makePlace('')
  await commit(place, 'Work', {
    'check.sh': `test -e built || { echo it is not built; exit 1; }\n${NEEDS_GOOD}`,
    '.gitignore': 'built\n',
  })
  await commit(place, 'App', { 'app.txt': 'good\n', built: '' })
  await endSession(place, [CHECK])
  await commit(place, 'Break', { 'app.txt': 'bad\n' })
  const { exitCode, stdout } = await runVerify(place, { json: false })
  expect(stdout).toContain(
    'cannot tell: `sh check.sh` also fails in a fresh checkout of the certified files: it is not built',
  )
  expect(exitCode).toBe(4)
})

test('a gate that fails on the same files hangs on something else', async () => {
  await using place = await makePlace('')
  const there = join(place.root, 'there')
  await writeFile(there, '')
  await endSession(place, [gate(`test -e ${there}`)])
  await rm(there)
  const { answer } = await runVerify(place)
  expect(answer().verdict).toMatchObject({
    kind: 'cannot-tell',
    reason: expect.stringContaining('no file has changed'),
  })
})

test('a history that was rewritten cannot say which commit it was', async () => {
  await using place = await doneAndCommitted()
  await write(place, 'app.txt', 'bad\n')
  git(place, 'commit', '-q', '-a', '--amend', '-m', 'Amended')
  const { answer } = await runVerify(place)
  expect(answer().verdict).toMatchObject({ kind: 'cannot-tell', reason: expect.stringContaining('rewritten') })
})

promise('B50')
test('a history at which git would wait cannot say it either', async () => {
  await using place = await doneAndCommitted()
  await commit(place, 'Bad', { 'app.txt': 'bad\n' })
  const object = pipeAsObject(place, 'HEAD')
  const { exitCode, answer } = await runVerify(place)
  expect(answer().verdict).toMatchObject({
    kind: 'cannot-tell',
    reason: expect.stringContaining(`${object} is a pipe`),
  })
  expect(exitCode).toBe(4)
})

test('a shallow clone can say as far as it reaches', async () => {
  await using place = await doneAndCommitted()
  for (const n of [1, 2]) await commit(place, `Later ${n}`, { 'app.txt': `bad ${n}\n` })
  const whole = join(place.root, 'whole')
  git(place, 'clone', '-q', '--bare', '.', whole)
  const cutOff = async (depth: number) => {
    await rm(join(place.directory, '.git'), { recursive: true })
    git(place, 'clone', '-q', '--bare', '--depth', `${depth}`, `file://${whole}`, '.git')
  }
  await cutOff(3)
  const reaches = await runVerify(place)
  expect(reaches.answer().verdict).toMatchObject({ kind: 'broken', since: { subject: 'Later 1' } })
  await cutOff(2)
  const { answer } = await runVerify(place)
  expect(answer().verdict).toMatchObject({ kind: 'cannot-tell', reason: expect.stringContaining('shallow') })
})

test('without git it is still true or broken, and nobody says since when', async () => {
  await using place = await makePlace('', { git: false })
  await write(place, 'check.sh', NEEDS_GOOD)
  await write(place, 'app.txt', 'good\n')
  await endSession(place, [CHECK])
  expect((await runVerify(place)).answer().verdict).toEqual({ kind: 'still-true' })
  await write(place, 'app.txt', 'bad\n')
  const { exitCode, answer } = await runVerify(place)
  expect(answer()).toMatchObject({
    verdict: { kind: 'broken', since: null, gate: null },
    changed: { paths: ['app.txt'] },
  })
  expect(exitCode).toBe(4)
})

test('a session in a folder of a repository is verified with what lies around that folder', async () => {
  await using place = await makePlace('')
  const directory = join(place.directory, 'packages', 'part')
  await mkdir(directory, { recursive: true })
  await commit(place, 'Work', { 'shared.txt': 'good\n', 'packages/part/own.txt': 'own\n' })
  await endSession(place, [gate('grep -q good ../../shared.txt && grep -q own own.txt')], { directory })
  await commit(place, 'Near', { 'packages/part/own.txt': 'own, too\n' })
  const broken = await commit(place, 'Far away', { 'shared.txt': 'bad\n' })
  const { answer } = await runVerify(place, { directory })
  expect(answer().verdict).toMatchObject({ kind: 'broken', since: { commit: broken } })
})

test('a commit that puts a link where the work directory was leads no gate out of the checkout', async () => {
  await using place = await makePlace('')
  const directory = join(place.directory, 'part')
  const outside = join(place.root, 'outside')
  for (const folder of [directory, outside]) await mkdir(folder)
  await commit(place, 'Work', { 'part/app.txt': 'good\n' })
  await endSession(place, [gate('grep -q good app.txt || { touch was-here; exit 1; }')], { directory })
  await rm(directory, { recursive: true })
  await symlink(outside, directory)
  await commit(place, 'Lead out', {})
  git(place, 'rm', '-q', '--cached', 'part')
  await rm(directory)
  await mkdir(directory)
  const { answer } = await runVerify(place, { directory })
  expect(answer().verdict).toMatchObject({ kind: 'cannot-tell' })
  expect(await readdir(outside)).toEqual([])
})

test('a session without gates has nothing that could be run again', async () => {
  await using place = await makePlace('')
  await endSession(place, [])
  const { exitCode, answer } = await runVerify(place)
  expect(answer().verdict).toMatchObject({ kind: 'cannot-tell', reason: expect.stringContaining('had no gates') })
  expect(exitCode).toBe(4)
})

promise('D16')
test('the copy in the work directory, which an agent can write, is not believed', async () => {
  await using place = await makePlace('')
  await write(place, 'check.sh', NEEDS_GOOD)
  const records = await endSession(place, [CHECK])
  const copy = join(place.directory, '.codemachine', 'projects', '20261121_1', 'done.json')
  await writeFile(copy, (await readFile(copy, 'utf8')).replace('sh check.sh', 'true'))
  const { stderr, answer } = await runVerify(place)
  expect(stderr).toContain('done.json was changed')
  expect(answer()).toMatchObject({ gates: [{ run: 'sh check.sh', status: 'failed' }] })

  await writeFile(join(records.sessionFolder('20261121_1'), 'done.json'), '{ "format": "codemachine-done", "v": 1 }')
  await expect(runVerify(place)).rejects.toThrow(/done\.json: session is missing; it was damaged or changed by hand\.$/)
})

test('nothing is verified while a session runs, or without one that is done', async () => {
  await using place = await makePlace('')
  await expect(runVerify(place)).rejects.toThrow(
    'has a certificate, because none is done. So there is nothing to verify',
  )
  const records = await endSession(place, [CHECK])
  await using _ = await takeRunLock(records.lock, { platform: process.platform, pid: process.pid, now: new Date() })
  await expect(runVerify(place)).rejects.toMatchObject({ exitCode: 6 })
})

test('without a codex it cannot be told', async () => {
  await using place = await doneAndCommitted()
  await expect(runVerify(place, { codexBin: join(place.root, 'none') })).resolves.toMatchObject({ exitCode: 4 })
})

test('a branch that was merged says nothing of what the other side was like before', async () => {
  await using place = await makePlace('')
  git(place, 'checkout', '-q', '-b', 'night')
  await commit(place, 'Work', { 'check.sh': NEEDS_GOOD, 'app.txt': 'good\n' })
  await endSession(place, [CHECK])
  git(place, 'checkout', '-q', 'main')
  for (const n of [1, 2]) await commit(place, `Aside ${n}`, { 'aside.txt': `${n}` })
  git(place, 'merge', '-q', '--no-ff', '-m', 'Merge the night', 'night')
  const broken = await commit(place, 'Break', { 'app.txt': 'bad\n' })
  const { answer } = await runVerify(place)
  expect(answer().verdict).toMatchObject({ kind: 'broken', since: { commit: broken } })
})

test('a submodule that has stayed where it was is there for the gate', async () => {
  await using place = await makePlace('')
  const library = join(place.root, 'library')
  git(place, 'clone', '-q', '.', library)
  git(place, '-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'add', library, 'library')
  await commit(place, 'Work', { 'check.sh': `grep -q project library/README.md\n${NEEDS_GOOD}`, 'app.txt': 'good\n' })
  await endSession(place, [gate('sh -e check.sh')])
  const broken = await commit(place, 'Break', { 'app.txt': 'bad\n' })
  const { answer } = await runVerify(place)
  expect(answer().verdict).toMatchObject({ kind: 'broken', since: { commit: broken } })
})

test('Ctrl+C ends it in the middle, and leaves nothing', async () => {
  await using place = await makePlace('')
  const started = join(place.root, 'started')
  const check = `grep -q bad app.txt && exit 1; test -d .git/objects || { touch ${started}; sleep 4321; }\n`
  await commit(place, 'Work', { 'check.sh': check, 'app.txt': 'good\n' })
  const records = await endSession(place, [CHECK])
  await commit(place, 'Break', { 'app.txt': 'bad\n' })
  const ending = new AbortController()
  using watcher = watchFor(place.root, 'started', () => ending.abort('SIGINT'))
  await expect(runVerify(place, { signal: ending.signal })).rejects.toMatchObject({ exitCode: 130 })
  expect(watcher.seen()).toBe(true)
  expect(await scratchFolders(records)).toEqual([])
  expect(readdirSync(records.folder)).not.toContain('lock')
  expect(processesOf(place).filter(line => line.includes('sleep'))).toEqual([])
})

test('the command line knows it, and refuses a session that is not done in one sentence', async () => {
  await using place = await makePlace('')
  await endSession(place, [])
  const told = await codemachineHere(place, ['verify'])
  expect(told.stderr).toBe('')
  expect(told.stdout).toMatch(/^cannot tell: this session had no gates/)
  expect(told.exitCode).toBe(4)
  const refused = await codemachineHere(place, ['verify', '20200101_1'])
  expect(refused.stderr).toContain('There is no session "20200101_1"')
  expect(refused.exitCode).toBe(2)
})

/** Calls back once a file of that name is in a folder. */
function watchFor(folder: string, name: string, found: () => void): Disposable & { seen(): boolean } {
  let isSeen = false
  const watcher = watch(folder, () => {
    if (isSeen || !existsSync(join(folder, name))) return
    isSeen = true
    found()
  })
  return { seen: () => isSeen, [Symbol.dispose]: () => watcher.close() }
}
