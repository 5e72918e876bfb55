import { expect, test } from 'vitest'
import { message, reply, shell } from '../../../../src/demo/model/reply.ts'
import { act, cuts, openChangeScene, outputs, plans, verify } from '../../../support/change-scene.ts'
import { codemachineHere } from '../../../support/in-process.ts'
import { promise } from '../../../support/promise.ts'
import { eventsOf } from '../../../support/scene.ts'

/** A change of a file of its own, each time: the nth writes `nth.txt`. */
const script = {
  planner: (_: unknown, nth: number) => [
    plans({
      description: `Write ${nth}.txt, for the plan of change ${nth}.`,
      files: [{ path: `${nth}.txt`, change: 'It is written.' }],
      verification: [{ run: `grep -q done ${nth}.txt`, why: 'It looks whether it is there.' }],
    }),
  ],
  decomposer: (_: unknown, nth: number) => [
    cuts(
      act('T1', {
        description: `Write ${nth}.txt.`,
        outputs: { written: 'what was written' },
        files: [`${nth}.txt`],
      }),
      verify('T2', `grep -q done ${nth}.txt`),
    ),
  ],
  executor: (_: unknown, nth: number) => [reply(shell(`echo done > ${nth}.txt`)), outputs({ written: 'all of it' })],
  summary: (_: unknown, nth: number) => [reply(message(`Change ${nth} is there.`))],
}

promise(
  'C72',
  'A session that continues from another is told that one in full, in at most 64 KiB, and a line of each before it',
)
test('a change that follows one, and one that follows that, are told what went before', async () => {
  await using scene = await openChangeScene(script)
  const first = await scene.run('change', 'Write the first file.', '--auto', '--json')
  expect({ code: first.exitCode, stderr: first.stderr }).toEqual({ code: 0, stderr: '' })
  // What stands behind it may be the request.
  const plan = ['change', '--auto', '--plan-only', '--json']
  const second = await scene.run(...plan, '--follow-up', 'Write the second file.')
  const third = await scene.run(...plan, 'Write the third file.', '--follow-up')
  expect([second.exitCode, third.exitCode]).toEqual([0, 0])
  const ids = [first, second, third].map(({ events }) => eventsOf(events, 'session-created')[0]?.session ?? '')
  expect([second, third].map(({ events }) => eventsOf(events, 'session-created')[0]?.follows)).toEqual(ids.slice(0, 2))

  expect(eventsOf(second.events, 'session-created')).toMatchObject([{ goal: 'Write the second file.' }])

  const [alone, told, chain] = scene.begun('planner').map(({ userTexts }) => userTexts.join('\n'))
  expect(alone).not.toContain('What session')
  expect(told).toContain(`# What session ${ids[0]} came to\n\n## What was asked for\n\nWrite the first file.`)
  expect(told).toContain('## Its plan, version 1, which was accepted automatically')
  expect(told).toContain('Write 0.txt, for the plan of change 0.')
  expect(told).toContain('- T1 ACTION: Write 0.txt: done; changed 1 file\n- T2 VERIFICATION: ')
  expect(told).toContain('Change 0 is there.')
  expect(told).toContain('- 0.txt\n')
  expect(told).not.toContain('went on from')
  expect(chain).toContain(`# What session ${ids[1]} came to`)
  expect(chain).toMatch(
    new RegExp(
      `## What it went on from, the newest first\n\n- ${ids[0]}: "Write the first file\\.": done[^\n]*; 1 file changed\n`,
    ),
  )
  expect(chain).toContain('Write 1.txt, for the plan of change 1.')
  expect(chain).not.toContain('for the plan of change 0')

  const dry = await codemachineHere(scene.place, ['change', '--dry-run', '--follow-up', ids[0] ?? '', 'And more.'])
  expect(dry.stdout).toContain(`It would continue from ${ids[0]}.`)
  expect(dry.stdout).toContain('Change 0 is there.')
})
