import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import { type RunningCodemachine, startCodemachine } from '../../support/codemachine.ts'
import { codemachineHere } from '../../support/in-process.ts'
import { git, type TestPlace } from '../../support/place.ts'
import { processesOf } from '../../support/processes.ts'
import { promise } from '../../support/promise.ts'
import { test } from '../../support/side-by-side.ts'
import { head, held, land, letGo, makeProject, makeWork, scratch, startLanding } from './landing.ts'
import { gate } from './verify/done-session.ts'

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
    'codemachine: The merge of codemachine/two into main fails these gates: sh check.sh. codemachine changed nothing. (CM0519)\n  sh check.sh: failed\n    a and b do not go together\n',
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
  expect((await codemachineHere(place, ['verify'])).stdout).toContain('cannot tell: no file has changed, ')
})

function recordsFolder(place: TestPlace): string {
  const state = join(place.root, 'home/.codemachine/state')
  const [key = ''] = readdirSync(state).filter(name => existsSync(join(state, name, 'landings')))
  return join(state, key, 'landings')
}

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
    'failed three codemachine/three and main both changed README.md. codemachine merged nothing. (CM0513)',
    'failed two The merge of codemachine/two into main fails these gates: sh check.sh. codemachine changed nothing. (CM0519)',
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
    'failed  one  main changed while the gates ran on the merge, so codemachine merged nothing. Land again. (CM0518)\n',
  ])
  expect(head(place)).toBe(mine)

  await rm(join(place.root, 'go'))
  await using third = await startLanding(place, 'one')
  await writeFile(join(top, 'later.txt'), '')
  await letGo(place)
  expect((await third.ended).stderr).toContain('codemachine/one changed while the gates ran on the merge')
  expect(head(place)).toBe(mine)
})

promise('D104', 'A landing that is broken off leaves no checkout and no process, and what has landed stays')
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
