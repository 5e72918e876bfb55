import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openChangeScene, plans } from '../../support/change-scene.ts'
import { eventsOf } from '../../support/scene.ts'

const script = {
  planner: (_: unknown, nth: number) => [
    plans({
      description: `The plan of try ${nth}.`,
      files: [{ path: 'limit.txt', change: 'It says how much.' }],
      verification: [],
    }),
  ],
}

test('the plan of a change is seen, rejected, edited and accepted with a remark from another terminal', async () => {
  await using scene = await openChangeScene(script)
  await using running = scene.start('change', 'Limit the rate.', '--plan-only', '--json')
  const first = await running.event('decision-asked')
  const id = first.session
  const shown = await scene.run('plan')
  expect(shown).toMatchObject({ exitCode: 0, stderr: '' })
  expect(shown.stdout).toContain(
    `${id}: plan version 1 of 1, by the planner; it waits for you\n\n# Plan\n\nThe plan of try 0.`,
  )
  expect(shown.stdout).toContain('codemachine plan accept --version 1 ["remark"]')
  expect((await scene.run('plan', 'show', '--version', '2')).stderr).toContain(
    `${id} has no version 2 of its plan; there is version 1 alone.`,
  )

  const unseen = await scene.run('plan', 'accept', '--version', '2')
  expect(unseen).toMatchObject({ exitCode: 2, stdout: '' })
  expect(unseen.stderr).toContain(`Version 1 of the plan of ${id} waits, and not version 2.`)
  const rejected = await scene.run('plan', 'reject', '--version', '1', 'Say how much.')
  expect(rejected).toMatchObject({
    exitCode: 0,
    stderr: '',
    stdout: `The plan of ${id} is changed now, and shown again.\n`,
  })
  await running.event('decision-asked', ({ title }) => title.includes('2'))
  expect(scene.begun('planner').at(-1)?.userTexts.join('\n')).toContain('Say how much.')
  const diff = await scene.run('plan', 'show', '--diff')
  expect(diff.stdout).toContain('asked for: Say how much.')
  expect(diff.stdout).toMatch(/^-The plan of try 0\.\n\+The plan of try 1\.$/m)

  const file = join(scene.place.directory, '.codemachine/projects', id, 'plan/v2.md')
  const text = await readFile(file, 'utf8')
  await writeFile(file, text.replace('The plan of try 1.', 'The plan of a person.'))
  // What lies there is not what was kept, until a person says so.
  expect((await scene.run('plan', 'show')).stdout).toContain('The plan of try 1.')
  expect(await scene.run('plan', 'edit')).toMatchObject({ exitCode: 0, stderr: '' })
  await running.event('decision-asked', ({ title }) => title.includes('3'))
  const json = JSON.parse((await scene.run('plan', '--json')).stdout)
  expect(json).toMatchObject({
    session: id,
    waits: true,
    versions: [{ author: 'planner' }, { author: 'planner', feedback: 'Say how much.' }, { author: 'person' }],
    plan: { version: 3, text: expect.stringContaining('The plan of a person.') },
  })
  const status = JSON.parse((await scene.run('status', '--json')).stdout)
  expect(status.session.work).toMatchObject({
    template: 'change',
    state: 'REVIEWING_PLAN',
    within: 'manual-review',
    userInput: 'Limit the rate.',
    projectContext: { file: expect.stringMatching(/^outputs\//) },
    currentPlan: { description: 'The plan of a person.', version: 3, tasks: [] },
    tasks: [],
    changedFiles: [],
    retryCount: 0,
  })

  const seenBefore = await scene.run('plan', id, 'accept', '--version', '1', 'Mind the old API.')
  expect(seenBefore.stderr).toContain(`Version 3 of the plan of ${id} waits, and not version 1.`)
  expect(await scene.run('plan', id, 'accept', '--version', '3', 'Mind the old API.')).toMatchObject({
    exitCode: 0,
    stderr: '',
  })
  const { exitCode, events } = await running.ended
  expect(exitCode).toBe(0)
  expect(eventsOf(events, 'decision-made').map(({ choice, text: said }) => [choice, said])).toEqual([
    ['change', 'Say how much.'],
    ['edit', null],
    ['accept', 'Mind the old API.'],
  ])
  const again = await scene.run('plan', 'accept')
  expect(again.exitCode).toBe(2)
  expect(again.stderr).toContain(`Version 3 of the plan of ${id} has been accepted already, and nobody runs it.`)
  expect(again.stderr).toContain(`codemachine resume ${id}`)
  expect((await scene.run('plan')).stdout).toContain(
    'version 3 of 3, by a person; accepted by a person: Mind the old API.',
  )
  const report = await scene.run('report', '--md')
  expect(report.stdout).toContain('## The change')
  expect(report.stdout).toContain('Plan: version 3 of 3; a person accepted it, with the remark: Mind the old API.')
})
