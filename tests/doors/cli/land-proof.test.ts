import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import { type RunningCodemachine, startCodemachine } from '../../support/codemachine.ts'
import { codemachineHere, startInProcess } from '../../support/in-process.ts'
import { git, makePlace, type TestPlace } from '../../support/place.ts'
import { processesOf } from '../../support/processes.ts'
import { promise } from '../../support/promise.ts'
import { claimDone, round, says } from '../../support/rounds.ts'
import { openScene } from '../../support/scene.ts'
import { test } from '../../support/side-by-side.ts'
import { endSession, gate } from './verify/done-session.ts'

/** Fails where both files are there: each worktree passes alone, and the two together do not. */
const NOT_BOTH = 'if [ -e a.txt ] && [ -e b.txt ]; then echo a and b do not go together; exit 3; fi\n'
const CHECK = gate('sh check.sh')

async function commit(place: TestPlace, top: string, files: Record<string, string>): Promise<void> {
  for (const [file, text] of Object.entries(files)) await writeFile(join(top, file), text)
  git(place, '-C', top, 'add', '-A')
  git(place, '-C', top, 'commit', '-qm', 'Work', '--allow-empty')
}

/** A checkout with `check.sh`. */
async function makeProject(check = NOT_BOTH): Promise<TestPlace> {
  const place = await makePlace('')
  await commit(place, place.directory, { 'check.sh': check })
  return place
}

/** A worktree with a session that is done, proved by these gates; null: without a session. */
async function makeWork(
  place: TestPlace,
  name: string,
  files: Record<string, string>,
  gates: readonly ReturnType<typeof gate>[] | null = [CHECK],
): Promise<string> {
  const top = join(place.root, 'work.worktrees', name)
  git(place, 'worktree', 'add', '-q', '-b', `codemachine/${name}`, top)
  await commit(place, top, files)
  if (gates !== null) await endSession(place, gates, { directory: top })
  return top
}

const land = (place: TestPlace, ...args: string[]) => codemachineHere(place, ['land', ...args])
const head = (place: TestPlace, ref = 'main') => git(place, 'rev-parse', ref)
const scratch = (place: TestPlace) =>
  readdirSync(tmpdir()).filter(name => name.startsWith('codemachine-verify-work-') && isOf(place, name))

/** The key of the records ends the name of a scratch folder, before its random part. */
function isOf(place: TestPlace, name: string): boolean {
  return readdirSync(join(place.root, 'home/.codemachine/state')).some(key => name.includes(key))
}

/** A gate that waits for a file: what happens meanwhile happens while a merge is proved. */
const held = (place: TestPlace) => gate(`until [ -e ${join(place.root, 'go')} ]; do sleep 0.05; done`, 'held')
const letGo = (place: TestPlace) => writeFile(join(place.root, 'go'), '')

/** Starts `land` in this process; resolves once a gate runs on a merge. */
async function startLanding(place: TestPlace, ...args: string[]) {
  const run = startInProcess(place, ['land', ...args], { clock: systemClock })
  while (!run.stderr().includes('runs on the merge: held')) await run.alive()
  return run
}

promise('D101', '`land` moves a branch only to a merge that passes the gates of both sides')
test('a merge of what passes alone does not land where it fails a gate, and its output is shown', async () => {
  await using place = await makeProject()
  await makeWork(place, 'one', { 'a.txt': 'a\n' })
  const two = await makeWork(place, 'two', { 'b.txt': 'b\n' })
  const first = await land(place, 'one')
  expect([first.exitCode, first.stderr]).toEqual([0, 'codemachine: runs on the merge: sh check.sh\n'])
  expect(first.stdout).toMatch(
    /Proved on the merge: sh check\.sh \(\S+.*\)\. To run them again: codemachine verify land-\d{8}_1\n/,
  )
  const before = head(place)
  const second = await land(place, 'two')
  expect([second.exitCode, second.stdout]).toEqual([4, ''])
  expect(second.stderr).toContain(
    'codemachine: codemachine/two merged into main does not pass: sh check.sh; nothing has been touched. (CM0519)\n  sh check.sh: failed\n    a and b do not go together\n',
  )
  expect(head(place)).toBe(before)
  expect(git(place, 'status', '--porcelain')).toBe('')
  expect(existsSync(join(two, 'b.txt'))).toBe(true)
  expect(scratch(place)).toEqual([])

  const json = await land(place, 'two', '--json')
  expect(JSON.parse(json.stdout)).toMatchObject({
    v: 1,
    certificate: null,
    worktrees: [{ worktree: 'two', state: 'failed', code: 'CM0519', gates: [{ status: 'failed', exitCode: 3 }] }],
  })
  const unproved = await land(place, 'two', '--no-verify')
  expect([unproved.exitCode, unproved.stdout]).toEqual([0, expect.stringContaining('Not proved: --no-verify.\n')])
  const [newest = ''] = readdirSync(recordsFolder(place)).toSorted().reverse()
  expect(JSON.parse(readFileSync(join(recordsFolder(place), newest), 'utf8'))).toMatchObject({
    certificate: { verified: false, gates: [{ run: 'sh check.sh', status: null }] },
  })
  expect((await codemachineHere(place, ['verify'])).stdout).toContain('cannot tell: no file has changed since, ')
})

function recordsFolder(place: TestPlace): string {
  const state = join(place.root, 'home/.codemachine/state')
  const [key = ''] = readdirSync(state).filter(name => existsSync(join(state, name, 'landings')))
  return join(state, key, 'landings')
}

promise('D101')
test('gates that only the target has, and those that only git in a repository passes, run on the merge', async () => {
  await using place = await makeProject(
    '[ "$(git log -1 --format=%s)" = "Take it" ] && [ "$(git branch --show-current)" = main ] && [ -z "$(git status --porcelain)" ]\n',
  )
  await writeFile(join(place.directory, '.git/info/exclude'), 'node_modules\ncodemachine.toml\n')
  await writeFile(
    join(place.directory, 'codemachine.toml'),
    '[[gates]]\nname = "no c"\nrun = "test ! -e c.txt"\n[[gates]]\nrun = "cat node_modules/old/x node_modules/new/x"\n',
  )
  const install = async (top: string, name: string) => {
    await mkdir(join(top, 'node_modules', name), { recursive: true })
    await writeFile(join(top, 'node_modules', name, 'x'), '')
  }
  await install(place.directory, 'old')
  await makeWork(place, 'one', { 'c.txt': 'c\n' }, [])
  await install(await makeWork(place, 'two', { 'd.txt': 'd\n' }), 'new')
  expect((await land(place, 'one')).stderr).toContain(
    'does not pass: no c, cat node_modules/old/x node_modules/new/x; nothing has been touched.',
  )
  const { exitCode, stdout, stderr } = await land(place, 'two', '--message', 'Take it')
  expect([exitCode, stderr]).toEqual([0, expect.stringContaining('runs on the merge: no c\n')])
  expect(stdout).toContain('Proved on the merge: sh check.sh (')
  expect(git(place, 'ls-files')).toContain('d.txt')
})

promise('D101')
test('the checks of a contract run on the merge, and belong to the certificate of what has landed', async () => {
  const check = { run: 'sh {files}/keep.sh', seconds: 5, needs: null, files: [{ path: 'keep.sh', text: KEEPS_HELLO }] }
  const sentence = { quote: 'Keep readme.txt as it is.', kind: 'keep', reason: null, checks: [check] }
  const wrong = { summary: 'Wrong.', edits: [{ path: 'readme.txt', find: null, text: 'gone\n' }] }
  await using scene = await openScene([
    [says(JSON.stringify({ sentences: [sentence] }))],
    round('echo a > a.txt'),
    round(claimDone),
    [says(JSON.stringify({ versions: [wrong] }))],
  ])
  const { place } = scene
  await commit(place, place.directory, { 'readme.txt': 'hello\n' })
  const ran = await scene.run('--worktree', 'x', '--plain', '--prove', 'Keep readme.txt as it is.')
  expect([ran.exitCode, ran.stdout]).toEqual([0, expect.stringContaining('done')])
  await commit(place, place.directory, { 'readme.txt': 'bye\n' })
  const refused = await land(place, 'x', '--commit', 'Work of the night')
  expect([refused.exitCode, refused.stderr]).toEqual([4, expect.stringContaining('does not pass: x: S1, check 1; ')])
  expect(refused.stderr).toContain('    no hello here\n')
  git(place, 'revert', '--no-edit', 'HEAD')
  expect(await land(place, 'x', '--commit', 'Work of the night')).toMatchObject({ exitCode: 0 })
  expect(await codemachineHere(place, ['verify'])).toMatchObject({
    exitCode: 0,
    stdout: expect.stringContaining('  x: S1, check 1: passes'),
  })
  const bundle = await codemachineHere(place, ['certificate'])
  expect(bundle.stdout).toContain('no hello here')
  await commit(place, place.directory, { 'readme.txt': 'bye\n' })
  expect((await codemachineHere(place, ['verify'])).stdout).toMatch(/^broken since [0-9a-f]{12} Work /)
  // What was asked for once binds what is landed next, and no later one.
  await makeWork(place, 'y', { 'y.txt': 'y\n' }, null)
  expect((await land(place, 'y')).stderr).toContain('does not pass: main: x: S1, check 1; ')
})

const KEEPS_HELLO = 'grep -qx hello readme.txt || { echo no hello here; exit 1; }\n'

promise('D102', '`land --queue` lands one worktree after the other, and one that fails stops no other')
test('of a night of three worktrees one lands, one breaks the merge, one conflicts, and what landed is one certificate', async () => {
  await using place = await makeProject()
  await makeWork(place, 'one', { 'a.txt': 'a\n', 'README.md': '# One\n' })
  await makeWork(place, 'three', { 'README.md': '# Three\n' })
  // Its own gate passes: what fails is that of the part that landed before.
  await makeWork(place, 'two', { 'b.txt': 'b\n' }, [gate('true')])
  await makeWork(place, 'four', { 'd.txt': 'd\n' }, null)
  await makeWork(place, 'five', { 'e.txt': 'e\n' }, [gate('test -e e.txt')])
  expect(await land(place, '--queue')).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('CM0105') })

  const { exitCode, stdout, stderr } = await land(place, '--queue', '--yes', 'one', 'three', 'two', 'four', 'five')
  expect(exitCode).toBe(4)
  const lines = stdout.split('\n').map(line => line.replace(/ {2,}/g, ' '))
  expect(lines.slice(0, 5)).toEqual([
    expect.stringMatching(/^landed one [0-9a-f]{10}$/),
    'failed three codemachine/three and main have both changed README.md, so it is not merged; nothing has been touched. (CM0513)',
    'failed two codemachine/two merged into main does not pass: sh check.sh; nothing has been touched. (CM0519)',
    expect.stringMatching(/^landed four [0-9a-f]{10}$/),
    expect.stringMatching(/^landed five [0-9a-f]{10}$/),
  ])
  expect(stdout).toContain('    a and b do not go together\n')
  expect(stderr).toContain('codemachine: lands five (5 of 5)\n')
  expect(git(place, 'ls-files')).toBe('README.md\na.txt\ncheck.sh\nd.txt\ne.txt')
  expect(git(place, 'status', '--porcelain')).toBe('')

  const id = /codemachine verify (land-\d{8}_1)$/m.exec(stdout)?.[1] ?? ''
  const kept = JSON.parse(readFileSync(join(recordsFolder(place), `${id}.json`), 'utf8'))
  expect(kept.certificate).toMatchObject({
    verified: true,
    goal: 'Land one, four, five on main',
    git: { commit: head(place), branch: 'main', holdsAll: true },
    parts: [
      { worktree: 'one', session: '20261121_1' },
      { worktree: 'four', session: null },
      { worktree: 'five', session: '20261121_1', commit: head(place) },
    ],
    gates: [
      { run: 'test -e e.txt', status: 'passed' },
      { run: 'sh check.sh', status: 'passed' },
    ],
  })
  for (const args of [['verify'], ['verify', id]]) {
    expect(await codemachineHere(place, args)).toMatchObject({
      exitCode: 0,
      stdout: expect.stringContaining(`still true\n  ${id}, done `),
    })
  }
  const bundle = join(place.root, 'bundle')
  expect(await codemachineHere(place, ['certificate', id, '--out', bundle])).toMatchObject({ exitCode: 0 })
  const checked = await codemachineHere(place, ['verify', '--certificate', bundle, '--yes'])
  expect(checked).toMatchObject({ exitCode: 0, stdout: expect.stringContaining('failures: none: ') })

  await rm(join(place.directory, 'e.txt'))
  expect(await codemachineHere(place, ['verify'])).toMatchObject({
    exitCode: 4,
    stdout: expect.stringMatching(/^broken by uncommitted changes: e\.txt\n/),
  })
})

promise('D102')
test('without names those are landed whose session is done, once a person confirms, and the rest is untouched', async () => {
  await using place = await makeProject('true\n')
  await makeWork(place, 'one', { 'a.txt': 'a\n' })
  await makeWork(place, 'two', { 'b.txt': 'b\n' }, null)
  const asked = { tty: true, input: 'n\n' }
  const refused = await codemachineHere(place, ['land', '--queue'], asked)
  expect([refused.exitCode, refused.stdout]).toEqual([
    0,
    'one  20261121_1  1 commit\nLand them on main, in this order? [Y/n] ',
  ])
  const { exitCode, stdout } = await codemachineHere(place, ['land', '--queue', '--json', '--yes'])
  expect(exitCode).toBe(0)
  expect(JSON.parse(stdout)).toMatchObject({
    verified: true,
    certificate: expect.stringMatching(/^land-/),
    worktrees: [
      { worktree: 'one', state: 'landed', into: 'main', commit: head(place), gates: [{ status: 'passed' }] },
      { worktree: 'two', state: 'untouched' },
    ],
  })
  expect((await land(place, 'one', 'two')).stderr).toContain('use --queue for several. (CM0102)')
})

promise('D103', 'While a merge is proved, neither side may change: then nothing is merged')
test('a target or a worktree that changes while the merge is proved is not moved, and a second queue waits outside', async () => {
  await using place = await makeProject()
  const top = await makeWork(place, 'one', { 'a.txt': 'a\n' }, [held(place)])
  await using first = await startLanding(place, '--queue', '--yes')
  const second = await land(place, '--queue', '--yes')
  expect([second.exitCode, second.stdout]).toEqual([6, ''])
  expect(second.stderr).toMatch(/^codemachine: Another codemachine \(pid \d+\) is running here since .*\(CM0601\)\n/)
  git(place, 'commit', '-q', '--allow-empty', '-m', 'Mine')
  const mine = head(place)
  await letGo(place)
  const ended = await first.ended
  expect([ended.exitCode, ended.stdout]).toEqual([
    4,
    'failed  one  main has changed while the merge was proved, so nothing was merged; land again. (CM0518)\n',
  ])
  expect(head(place)).toBe(mine)

  await rm(join(place.root, 'go'))
  await using third = await startLanding(place, 'one')
  await writeFile(join(top, 'later.txt'), '')
  await letGo(place)
  expect((await third.ended).stderr).toContain('codemachine/one has changed while the merge was proved')
  expect(head(place)).toBe(mine)
})

test('with no branch checked out, work lands on the branch that is named, and no file changes', async () => {
  await using place = await makeProject()
  await makeWork(place, 'one', { 'a.txt': 'a\n' })
  const before = head(place)
  git(place, 'checkout', '-q', '--detach')
  // As jj leaves it: what is not committed is no one's commit yet.
  await writeFile(join(place.directory, 'mine.txt'), 'mine\n')
  const refused = await land(place)
  expect([refused.exitCode, refused.stderr]).toEqual([
    2,
    `codemachine: No branch is checked out in ${place.directory}, so name the one to merge into with --onto. (CM0514)\n  Such as: codemachine land --onto main\n`,
  ])
  expect((await land(place, '--onto', 'nowhere')).stderr).toContain('"nowhere" is no branch to merge into; ')
  const { exitCode, stdout } = await land(place, '--onto', 'main')
  expect([exitCode, stdout]).toEqual([
    0,
    expect.stringContaining(`main is not checked out in ${place.directory}, so no file there has changed.\n`),
  ])
  expect(git(place, 'log', '-1', '--format=%P|%s', 'main')).toMatch(
    new RegExp(`^${before} [0-9a-f]+\\|Merge branch 'codemachine/one'$`),
  )
  expect([head(place, 'HEAD'), git(place, 'status', '--porcelain')]).toEqual([before, '?? mine.txt'])
  git(place, 'worktree', 'add', '-q', join(place.root, 'other'), 'main')
  expect((await land(place, '--onto', 'main')).stderr).toContain(`main is checked out in ${place.root}/other; `)
})

promise('D104', 'A landing that is broken off leaves no checkout and no process, and what has landed stays')
test('Ctrl+C in the middle of a queue keeps what has landed, and touches no other', async () => {
  await using place = await makeProject()
  await makeWork(place, 'one', { 'a.txt': 'a\n' })
  await makeWork(place, 'two', { 'c.txt': 'c\n' }, [held(place)])
  await makeWork(place, 'zoo', { 'd.txt': 'd\n' })
  await using run = await startLanding(place, '--queue', '--yes', 'one', 'two', 'zoo')
  const landed = head(place)
  run.signal('SIGINT')
  const { exitCode, stdout } = await run.ended
  expect(exitCode).toBe(130)
  expect(stdout.replace(/ {2,}/g, ' ')).toMatch(
    /^landed one [0-9a-f]{10}\nuntouched two interrupted before it landed\nuntouched zoo interrupted before it landed\nProved on the merge: /,
  )
  expect([head(place), git(place, 'ls-files')]).toEqual([landed, 'README.md\na.txt\ncheck.sh'])
  expect([scratch(place), processesOf(place)]).toEqual([[], []])
})

promise('D104')
test('a landing that is killed has moved nothing, and the next one clears up after it', async () => {
  await using place = await makeProject()
  await makeWork(place, 'one', { 'a.txt': 'a\n' }, [held(place)])
  const before = head(place)
  const run: RunningCodemachine = startCodemachine(place, ['land', 'one'])
  await using _run = run
  while (scratch(place).length === 0 || !processesOf(place).some(line => line.includes('until ['))) await run.alive()
  run.process.kill('SIGKILL')
  await run.ended
  expect([head(place), scratch(place).length]).toEqual([before, 1])
  await letGo(place)
  expect(await land(place, 'one')).toMatchObject({ exitCode: 0 })
  expect([git(place, 'status', '--porcelain'), scratch(place), processesOf(place)]).toEqual(['', [], []])
})
