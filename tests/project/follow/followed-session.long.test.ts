import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openProject, processWorld, type Recorded } from '../../../src/index.ts'
import { ofType } from '../../support/played-session.ts'
import { promise } from '../../support/promise.ts'
import { claimDone, round } from '../../support/rounds.ts'
import { openScene } from '../../support/scene.ts'

promise('C72')
promise(
  'C73',
  'Where the changes that a session continues from are not in the files any more, its agents and the person are told',
)
test('a session that continues from another is told the chain before it, and what became of the changes', async () => {
  await using scene = await openScene([
    round('echo one > one.txt; echo more > more.txt'),
    round(claimDone),
    round('echo two > two.txt; echo first > kept.txt'),
    round(claimDone),
    ...Array.from({ length: 4 }, () => round(claimDone)),
  ])
  const { directory, env, home } = scene.place
  await using project = await openProject(processWorld({ engines: scene.engines, env, home, cwd: directory }), {
    keepAwake: false,
  })
  const run = async (goal: string, follows?: string) => {
    const events: Recorded[] = []
    const { id } = await project.run(goal, {
      ...(follows === undefined ? {} : { follows }),
      onEvent: event => void events.push(event),
    })
    const [started] = ofType(events, 'round-started')
    const said = ofType(events, 'warning').map(({ message }) => message)
    return {
      id,
      input: started?.input ?? '',
      said: said.filter(message => message.includes('which this session continues')),
    }
  }

  const first = await run('Write one.txt.')
  const second = await run('Write two.txt.', first.id)
  expect(second.input).toContain(`# What session ${first.id} came to`)
  expect(second.input).not.toContain('What it went on from')
  expect(second.input).not.toContain('they were before')
  expect(second.said).toEqual([])

  await rm(join(directory, 'two.txt'))
  await writeFile(join(directory, 'kept.txt'), 'second\n')
  const third = await run('Write three.txt.', second.id)
  expect(third.input).toContain(`# What session ${second.id} came to\n\n## What was asked for\n\nWrite two.txt.`)
  expect(third.input).toMatch(
    new RegExp(
      `## What it went on from, the newest first\n\n- ${first.id}: "Write one.txt.": done[^\n]*; 2 files changed\n\n`,
    ),
  )
  expect(third.input).toContain(
    '- two.txt\n\nAs they were before that session again: two.txt. Changed since that session ended: kept.txt.',
  )
  expect(third.said).toEqual([])

  await rm(join(directory, 'kept.txt'))
  const fourth = await run('Write four.txt.', second.id)
  expect(fourth.input).toContain('None of these changes is in the files any more: all files are as before')
  expect(fourth.said).toEqual([
    `The changes of ${second.id}, which this session continues, are no longer in the files.`,
  ])
})
