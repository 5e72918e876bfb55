import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import { codemachineHere } from '../../support/in-process.ts'
import { git } from '../../support/place.ts'
import { processesOf } from '../../support/processes.ts'
import { promise } from '../../support/promise.ts'
import { claimDone, round, says } from '../../support/rounds.ts'
import { openScene } from '../../support/scene.ts'
import { test } from '../../support/side-by-side.ts'
import { commit, head, held, land, makeProject, makeWork, scratch, startLanding } from './landing.ts'

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
    'fails these gates: no c, cat node_modules/old/x node_modules/new/x. codemachine changed nothing.',
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
  expect([refused.exitCode, refused.stderr]).toEqual([
    4,
    expect.stringContaining('fails these gates: x: S1, check 1. '),
  ])
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
  expect((await land(place, 'y')).stderr).toContain('fails these gates: main: x: S1, check 1. ')
})

const KEEPS_HELLO = 'grep -qx hello readme.txt || { echo no hello here; exit 1; }\n'

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
    `codemachine: No branch is checked out in ${place.directory}. Name the branch to merge into with --onto. (CM0514)\n  Such as: codemachine land --onto main\n`,
  ])
  expect((await land(place, '--onto', 'nowhere')).stderr).toContain('There is no branch "nowhere" to merge into. ')
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
  expect((await land(place, '--onto', 'main')).stderr).toContain(`main is checked out in ${place.root}/other. `)
})

promise('D104')
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
