import { join } from 'node:path'
import { expect, test } from 'vitest'
import { codemachineHere } from '../../support/in-process.ts'
import { git, makePlace } from '../../support/place.ts'
import { promise } from '../../support/promise.ts'
import { claimDone, round } from '../../support/rounds.ts'
import { openScene } from '../../support/scene.ts'

promise('B122', 'Variables by which a calling git leads to its repository reach neither agents nor gates nor set-up')
test('called by a hook, a session in a worktree commits to its own branch, and gates and set-up see no variable of the hook', async () => {
  const commit = 'echo hi > a.txt; git add a.txt; git commit -qm "Add a"'
  const clean = '! env | grep -E "^GIT_(DIR|INDEX_FILE|WORK_TREE|PREFIX)="'
  await using scene = await openScene([round(commit, claimDone)], { person: `[worktree]\nsetup = '${clean}'\n` })
  const { place } = scene
  const main = git(place, 'rev-parse', 'main')
  const env = {
    GIT_DIR: join(place.directory, '.git'),
    GIT_INDEX_FILE: join(place.directory, '.git/index'),
    GIT_WORK_TREE: place.directory,
    GIT_PREFIX: '',
  }
  const run = scene.command(['--worktree', 'x', '--json', '--verify', clean, 'build X'], { env })
  const { exitCode, stderr } = await run.ended
  expect(exitCode).toBe(0)
  expect(stderr).toMatch(
    /^codemachine: Ignored GIT_DIR, GIT_INDEX_FILE, GIT_PREFIX, GIT_WORK_TREE, which the calling git command set: git finds the repository by the directory\.\n/,
  )
  expect(git(place, 'rev-parse', 'main')).toBe(main)
  expect(git(place, 'log', '-1', '--format=%s', 'codemachine/x')).toBe('Add a')
})

test('that variables of a hook are ignored is said once, whatever is typed', async () => {
  await using place = await makePlace('')
  const { stdout, stderr } = await codemachineHere(place, ['list', '--json'], { env: { GIT_DIR: '/nowhere' } })
  expect(stdout).toBe('[]\n')
  expect(stderr.match(/Ignored GIT_DIR,/g)).toHaveLength(1)
})
