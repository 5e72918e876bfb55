import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openSmallBuild, planOf, UNATTENDED } from '../../../support/build-scene.ts'
import { codemachineHere } from '../../../support/in-process.ts'
import { type KillPoint, startWithKills } from '../../../support/kill-points.ts'
import { openRealScene } from '../../../support/real-scene.ts'
import { eventsOf, type Scene } from '../../../support/scene.ts'

const PLANNED: KillPoint = { victim: 'codemachine', event: 'plan-ready', when: 'after', n: 1 }

/** Makes of a build that was killed when its plan was ready one that an earlier version had paused, to show its plan. */
function pauseAsBefore(scene: Scene): string {
  const [, journaled = '', first = ''] = scene.recorded('journal.ndjson').split('\n')
  const created = JSON.parse(journaled.includes('session-created') ? journaled : first)
  const path = join(scene.records(), 'sessions', created.session, 'journal.ndjson')
  const text = readFileSync(path, 'utf8')
  const whole = text.slice(0, text.lastIndexOf('\n') + 1).replace('"asksPlan":false', '"asksPlan":true')
  const head = { v: 1, at: new Date().toISOString(), session: created.session }
  const paused = [
    { ...head, type: 'paused' },
    { ...head, type: 'held' },
  ]
  writeFileSync(path, `${whole}${paused.map(event => JSON.stringify(event)).join('\n')}\n`)
  return created.session
}

test('the plan of a build waits for a person, through a kill, and is answered once, from any terminal', async () => {
  await using scene = await openSmallBuild(undefined, openRealScene)
  const { place } = scene
  const killed = await startWithKills(place, ['start', ...UNATTENDED], [PLANNED]).ended
  expect(killed.signal).toBe('SIGKILL')
  const id = pauseAsBefore(scene)

  // Killed once more, between the question and the answer.
  const again = await startWithKills(
    place,
    ['resume', '--json', '--no-keep-awake'],
    [PLANNED, { victim: 'codemachine', event: 'decision-asked', when: 'after', n: 1 }],
  ).ended
  expect(again.signal).toBe('SIGKILL')
  const left = await codemachineHere(place, ['decide'])
  expect([left.exitCode, left.stdout]).toEqual([
    0,
    `Nobody runs ${id}, which asked: The plan has 2 tasks. Start the build?\nIt asks again when you resume it: codemachine resume ${id}\n`,
  ])
  const nobody = await codemachineHere(place, ['decide', 'accept'])
  expect([nobody.exitCode, nobody.stderr]).toEqual([2, expect.stringContaining('there is nothing to decide')])

  await using running = scene.start('resume', '--json', '--no-keep-awake')
  await running.event('decision-asked')
  const shown = await codemachineHere(place, ['decide'])
  expect(shown.stdout).toContain(`${id} asks: The plan has 2 tasks. Start the build?\n`)
  expect(shown.stdout).toContain('To decide:\n  codemachine decide accept\n  codemachine decide change "…"\n')
  const asJson = JSON.parse((await codemachineHere(place, ['decide', '--json'])).stdout)
  expect(asJson).toMatchObject({ session: id, standing: 'running', decision: { id: 'plan', default: null } })
  const status = await codemachineHere(place, ['status'])
  expect(status.stdout).toContain('the plan waits for you since')

  for (const [args, sentence] of [
    [['up'], `${id} offers no choice "up"; use one of accept, change, stop.`],
    [['change'], '"change" needs a text: describe what you want.'],
    [['accept', 'gladly'], '"accept" takes no text; leave it out.'],
    [['change', ' '], 'The prompt is empty'],
  ] as const) {
    const refused = await codemachineHere(place, ['decide', ...args])
    expect([refused.exitCode, refused.stderr]).toEqual([2, expect.stringContaining(sentence)])
  }

  const unpaused = await codemachineHere(place, ['unpause'])
  expect([unpaused.exitCode, unpaused.stderr]).toEqual([
    2,
    expect.stringContaining(`${id} is not paused; it asks a person to decide (codemachine decide).`),
  ])

  const answers = await Promise.all([
    codemachineHere(place, ['decide', id, 'accept']),
    codemachineHere(place, ['decide', 'accept', '--json']),
  ])
  expect(answers.map(({ exitCode }) => exitCode).toSorted()).toEqual([0, 2])
  const { exitCode, events } = await running.ended
  expect(exitCode).toBe(0)
  expect(eventsOf(events, 'decision-made')).toMatchObject([{ id: 'plan', choice: 'accept', text: null, by: 'person' }])
  expect(eventsOf(events, 'paused')).toEqual([])
  expect(planOf(scene).map(({ done }) => done)).toEqual([true, true])

  const over = await codemachineHere(place, ['decide'])
  expect(over.stdout).toBe('No decision is waiting here.\n')
})

test('a build of which nobody looks at the plan ends after --max-wait, and says how to go on', async () => {
  await using scene = await openSmallBuild()
  const { place } = scene
  await startWithKills(place, ['start', ...UNATTENDED], [PLANNED]).ended
  const id = pauseAsBefore(scene)
  const { exitCode, events, stderr } = await scene.run('resume', '--json', '--no-keep-awake', '--max-wait', '1s')
  expect([exitCode, stderr]).toEqual([4, `To continue: codemachine resume ${id}\n`])
  expect(eventsOf(events, 'session-ended')).toMatchObject([
    { outcome: { kind: 'needs-person', hint: { do: 'decide', session: id } } },
  ])
  const status = await codemachineHere(place, ['status'])
  expect(status.stdout).toContain(`To be asked again: codemachine resume ${id}.`)
})
