import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { promise } from '../../support/promise.ts'
import { openRealScene } from '../../support/real-scene.ts'
import { claimDone, round } from '../../support/rounds.ts'
import { openScene } from '../../support/scene.ts'

promise(
  'R47',
  'A private git that is deleted while a session runs, or half of it, is made anew and said once; the next savepoints are whole',
)
test('a private git that is deleted while a session runs is made anew, and savepoints go on in it, which is said once', async () => {
  await using scene = await openRealScene([
    round('echo b > b; rm -rf "$HOME"/.codemachine/state/*/git'),
    round('echo c > c'),
    round(claimDone),
  ])
  const { exitCode, stdout, stderr } = await scene.run('--plain', '--yolo', '--rounds', '3', 'build X')
  expect(stdout.match(/warning: .* are gone from .*\n/g)).toEqual([
    expect.stringMatching(
      /Savepoints before that of round 1 are gone from \/.*\/git: somebody deleted them\. New ones/,
    ),
  ])
  expect(stdout).not.toContain('There is no savepoint')
  expect([exitCode, stderr]).toEqual([0, ''])
  expect((await scene.run('savepoints')).stdout).toMatch(/_1\/1 .*\n.*_1\/2 .*\n.*_1\/3 /)
  expect(await scene.run('rewind', '1')).toMatchObject({ exitCode: 0, stderr: '' })
  expect(['b', 'c'].map(file => existsSync(join(scene.place.directory, file)))).toEqual([true, false])
})

promise('R48', 'Records that are deleted while a session runs end it for a person (4), in one sentence')
test('records that are deleted while a session runs end it for a person, in one sentence', async () => {
  await using scene = await openScene([round('echo b > b; rm -rf "$HOME"/.codemachine/state/*')])
  const { exitCode, stderr } = await scene.run('--plain', '--yolo', '--rounds', '3', 'build X')
  expect(stderr).toMatch(
    /^codemachine: The records of the session are gone: \/.* was deleted while it ran\. Its work stays in the work directory\. \(CM0610\)\n {2}Start a new session there; .*\n$/,
  )
  expect(exitCode).toBe(4)
  expect(existsSync(join(scene.place.directory, 'b'))).toBe(true)
})
