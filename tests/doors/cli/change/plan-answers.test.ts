import { existsSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type ChangeScript, openChangeScene, PROJECT, plans, THREE_TASKS } from '../../../support/change-scene.ts'
import { codemachineHere } from '../../../support/in-process.ts'
import { promise } from '../../../support/promise.ts'
import { eventsOf } from '../../../support/scene.ts'

const script: ChangeScript = {
  ...THREE_TASKS,
  planner: (_: unknown, nth: number) => [plans({ description: `The plan of try ${nth}.` })],
}

promise(
  'C62',
  'Nothing is carried out before a version of the plan is accepted, and who carries it out is told the remark; `--plan-only` ends then, and `resume` carries it out',
)
promise(
  'C70',
  '`codemachine plan` shows a version of a plan as it is in the records, whatever agents made of its file, and answers the session that waits with it',
)
promise('C75')
test('the plan of a change is seen, rejected, edited and accepted with a remark from another terminal, and carried out by resume', async () => {
  await using scene = await openChangeScene(script, { files: PROJECT })
  const elsewhere = (...args: string[]) => codemachineHere(scene.place, args)
  const told = (role: 'planner' | 'executor') => scene.begun(role).at(-1)?.userTexts.join('\n')
  await using running = scene.start('change', 'Limit the rate.', '--plan-only', '--json')
  const first = await running.event('decision-asked')
  const id = first.session
  const shown = await elsewhere('plan')
  expect(shown).toMatchObject({ exitCode: 0, stderr: '' })
  expect(shown.stdout).toContain(
    `${id}: plan version 1 of 1, by the planner; it waits for you\n\n# Plan\n\nThe plan of try 0.`,
  )
  expect(shown.stdout).toMatch(/## What will count as proof\n.*- `sh check.sh`\n.*To answer:/s)
  expect(shown.stdout).toContain('codemachine plan accept --version 1 ["remark"]')
  expect((await elsewhere('plan', 'show', '--version', '2')).stderr).toContain(
    `${id} has no version 2 of its plan; there is only version 1.`,
  )

  const unseen = await elsewhere('plan', 'accept', '--version', '2')
  expect(unseen).toMatchObject({ exitCode: 2, stdout: '' })
  expect(unseen.stderr).toContain(`Version 1 of the plan of ${id} waits, and not version 2.`)
  const rejected = await elsewhere('plan', 'reject', '--version', '1', 'Say how much.')
  expect(rejected).toMatchObject({
    exitCode: 0,
    stderr: '',
    stdout: `The plan of ${id} is changed now, and shown again.\n`,
  })
  await running.event('decision-asked', ({ title }) => title.includes('2'))
  expect(told('planner')).toContain('Say how much.')
  expect(told('planner')).toContain('The plan of try 0.')
  const diff = await elsewhere('plan', 'show', '--diff')
  expect(diff.stdout).toContain('asked for: Say how much.')
  expect(diff.stdout).toMatch(/^-The plan of try 0\.\n\+The plan of try 1\.$/m)

  expect(await elsewhere('decide', 'change', 'It has to be 10.')).toMatchObject({ exitCode: 0, stderr: '' })
  await running.event('decision-asked', ({ title }) => title.includes('3'))
  expect(told('planner')).toContain('It has to be 10.')

  const file = join(scene.place.directory, '.codemachine/projects', id, 'plan/v3.md')
  const text = await readFile(file, 'utf8')
  await writeFile(file, text.replace('The plan of try 2.', 'The plan of a person.'))
  // What lies there is not what was kept, until a person says so.
  expect((await elsewhere('plan', 'show')).stdout).toContain('The plan of try 2.')
  expect(await elsewhere('plan', 'edit')).toMatchObject({ exitCode: 0, stderr: '' })
  await running.event('decision-asked', ({ title }) => title.includes('4'))
  const json = JSON.parse((await elsewhere('plan', '--json')).stdout)
  expect(json).toMatchObject({
    session: id,
    waits: true,
    versions: [
      { author: 'planner' },
      { feedback: 'Say how much.' },
      { feedback: 'It has to be 10.' },
      { author: 'person' },
    ],
    plan: { version: 4, text: expect.stringContaining('The plan of a person.') },
  })
  const status = JSON.parse((await elsewhere('status', '--json')).stdout)
  expect(status.session.work).toMatchObject({
    template: 'change',
    state: 'REVIEWING_PLAN',
    within: 'manual-review',
    userInput: 'Limit the rate.',
    projectContext: { file: expect.stringMatching(/^outputs\//) },
    currentPlan: { description: 'The plan of a person.', version: 4, tasks: [] },
    tasks: [],
    changedFiles: [],
    retryCount: 0,
  })

  const seenBefore = await elsewhere('plan', id, 'accept', '--version', '1', 'Mind the old API.')
  expect(seenBefore.stderr).toContain(`Version 4 of the plan of ${id} waits, and not version 1.`)
  expect(await elsewhere('plan', id, 'accept', '--version', '4', 'Mind the old API.')).toMatchObject({
    exitCode: 0,
    stderr: '',
  })
  const { exitCode, stderr, events } = await running.ended
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: `To carry it out: codemachine resume ${id}\n` })
  expect(eventsOf(events, 'session-ended')).toMatchObject([{ outcome: { kind: 'planned' } }])
  expect(scene.begun('decomposer')).toEqual([])
  expect(existsSync(join(scene.place.directory, 'limit.txt'))).toBe(false)
  expect(eventsOf(events, 'decision-made').map(({ choice, text: said }) => [choice, said])).toEqual([
    ['change', 'Say how much.'],
    ['change', 'It has to be 10.'],
    ['edit', null],
    ['accept', 'Mind the old API.'],
  ])
  const again = await elsewhere('plan', 'accept')
  expect(again.exitCode).toBe(2)
  expect(again.stderr).toContain(`Version 4 of the plan of ${id} is already accepted, and ${id} is not running.`)
  expect(again.stderr).toContain(`codemachine resume ${id}`)
  expect((await elsewhere('plan')).stdout).toContain(
    'version 4 of 4, by a person; accepted by a person: Mind the old API.',
  )

  const resumed = await scene.run('resume', '--json')
  expect(resumed).toMatchObject({ exitCode: 0, stderr: '' })
  expect(scene.begun('planner')).toHaveLength(3)
  expect(eventsOf(resumed.events, 'decision-asked')).toEqual([])
  expect(told('executor')).toContain('Mind the old API.')
  // By the command of the plan, which the person has seen.
  expect(eventsOf(resumed.events, 'done-accepted')).toMatchObject([{ verified: true }])
  for (const version of [1, 2, 3, 4]) expect(scene.memory(`plan/v${version}.md`)).toContain('The plan of')
  expect(scene.memory('summary.md')).toContain('sh check.sh')
  const report = await elsewhere('report', '--md')
  expect(report.stdout).toContain('## The change')
  expect(report.stdout).toContain('Plan: version 4 of 4; a person accepted it, with the remark: Mind the old API.')
})
