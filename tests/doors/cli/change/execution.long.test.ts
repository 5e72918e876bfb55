import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { reply, shell } from '../../../../src/demo/model/reply.ts'
import {
  act,
  type ChangeScript,
  cuts,
  openChangeScene,
  openRealChangeScene,
  outputs,
  PROJECT,
  THREE_TASKS,
  verify,
  writes,
} from '../../../support/change-scene.ts'
import { promise } from '../../../support/promise.ts'
import { says } from '../../../support/rounds.ts'
import { eventsOf } from '../../../support/scene.ts'
import { test } from '../../../support/side-by-side.ts'

/** Mends by writing that, and says so. */
const mends = (limit: string) => [reply(shell(`echo ${limit} > limit.txt`)), says(`I wrote ${limit}.`)]

/** What the executor does: it finds the limit, and writes the wrong one. */
const WRONG: ChangeScript = { ...THREE_TASKS, executor: [[outputs({ limit: '10 a minute' })], writes('7')] }
promise('C30')
test('what one task finds the next is given; what fails is mended by the local model, then by the one that planned, and a gate proves it', async () => {
  const local = { ...WRONG, fixer: [mends('8'), mends('9')] }
  const remote = { ...WRONG, fixer: [mends('10')] }
  await using scene = await openChangeScene(remote, { localScript: local, files: PROJECT })
  const { exitCode, stdout, events } = await scene.run(
    ...['change', '--auto', '--verify', 'sh check.sh', '--json', 'Write down the limit'],
  )
  expect(exitCode, stdout).toBe(0)
  expect(eventsOf(events, 'session-ended')[0]?.outcome).toEqual({ kind: 'done', verified: true })
  expect(scene.begun('executor').map(({ at }) => at)).toEqual(['local', 'local'])
  const second = scene.begun('executor')[1]?.userTexts.join('\n')
  expect(second).toContain('what T1 gives: limit')
  expect(second).toContain('10 a minute')
  // The same failure twice: the third attempt is that of the model that planned.
  expect(scene.begun('fixer').map(({ at }) => at)).toEqual(['remote', 'local', 'local'])
  const told = scene.begun('fixer').map(({ userTexts }) => userTexts.join('\n'))
  expect(told[0]).toContain('attempt 3 of 5')
  expect(told[0]).toContain('Attempt 1 changed limit.txt. It said: I wrote 8.')
  expect(eventsOf(events, 'noted').map(({ text }) => text)).toContainEqual(
    expect.stringContaining("2 attempts changed nothing, or left the same failure. From now on the planner's model"),
  )
  const tasks = JSON.parse(scene.memory('tasks.json')).tasks as { done: boolean }[]
  expect(tasks.map(({ done }) => done)).toEqual([true, true, true])
  const summary = scene.memory('summary.md')
  expect(summary).toContain('Done, and verified')
  expect(summary).toContain('- `sh check.sh` passed on the final files; it failed before anything was changed')
  expect(summary).toMatch(/\| T3 \| VERIFICATION \| .* \| done \| fixed 3 times \| qwen from local, scripted \|/)
  expect(summary).toContain('| T2 | limit.txt | +1 −0 |')
  expect(summary).toContain('The limit is 10 now.')
})

promise('C31')
test('a check that never passes is mended as often as is said; the other tasks go on, and a person is needed', async () => {
  const more = [
    act('T2', { files: ['limit.txt'] }),
    verify('T3', 'sh check.sh'),
    act('T4', { description: 'Write the other file.', files: ['other.txt'] }),
    verify('T5', 'grep -q yes other.txt'),
  ]
  const other = [reply(shell('echo yes > other.txt')), outputs({})]
  const script: ChangeScript = {
    ...WRONG,
    decomposer: [[cuts(...more)]],
    executor: [[reply(shell('echo 7 > limit.txt')), outputs({})], other],
    fixer: [[says('I found nothing.')]],
  }
  await using scene = await openChangeScene(script, { files: PROJECT })
  const { exitCode, stdout, events } = await scene.run(
    ...['change', '--auto', '--fix-attempts', '2', '--json', 'Write down the limit'],
  )
  expect(exitCode, stdout).toBe(4)
  expect(eventsOf(events, 'warning').map(({ message }) => message)).toContain(
    'codemachine tries to fix a failed verification only 2 times; 5 to 10 is usual (change.fix_attempts).',
  )
  expect(scene.begun('fixer')).toHaveLength(2)
  const written = JSON.parse(scene.memory('tasks.json')).tasks as { id: string; status: string; why?: string }[]
  expect(written.map(({ id, status }) => `${id} ${status}`)).toEqual([
    'T2 COMPLETED',
    'T3 FAILED',
    'T4 COMPLETED',
    'T5 COMPLETED',
  ])
  expect(written[1]?.why).toBe('`sh check.sh` ended with exit code 1, after 2 attempts to fix it.')
  expect(eventsOf(events, 'done-nominated')).toEqual([])
  expect(scene.memory('summary.md')).toContain('- T3 failed: ')
  expect(readFileSync(join(scene.place.directory, 'other.txt'), 'utf8')).toBe('yes\n')
})

test('where a limit of tokens ends it, the summary has the lines of each task that has changed files', async () => {
  await using scene = await openRealChangeScene(WRONG, { files: PROJECT })
  const { exitCode, events } = await scene.run(
    ...['change', '--auto', '--json', '--max-tokens', '40000', 'Write down the limit'],
  )
  expect(exitCode).toBe(3)
  expect(eventsOf(events, 'session-ended')[0]?.outcome).toMatchObject({ kind: 'limit', limit: 'tokens' })
  expect(scene.memory('summary.md')).toContain('| T2 | limit.txt | +1 −0 |')
})
