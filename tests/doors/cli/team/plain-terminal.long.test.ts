import { expect, test } from 'vitest'
import { startInEmulator } from '../../../support/emulator.ts'
import { promise } from '../../../support/promise.ts'
import {
  askHuman,
  openRealTeamScene,
  openTeamScene,
  plans,
  runShell,
  runs,
  works,
} from '../../../support/team-scene.ts'

const KEY = 'SERVICE_API_KEY'
const VALUE = 'sk-live-0123456789abcdef'
const TEAM = ['team', '--plain', '--no-keep-awake']

promise(
  'T44',
  'On a plain terminal a team asks for the plan, the network and the secrets, and goes on at once with a network that is allowed',
)
test('a person at a plain terminal takes the plan, and types the secret that a step needs where nothing shows it', async () => {
  await using scene = await openRealTeamScene({
    planner: [[plans('Ask the service.')]],
    worker: {
      1: [
        [askHuman(KEY), works({ done: false })],
        [runShell(`test -n "$${KEY}" && echo it is there`, KEY), works()],
      ],
    },
  })
  await using terminal = startInEmulator(scene.place, [...TEAM, 'ask the service'], { columns: 120, rows: 60 })
  await terminal.untilInAll(/Your choice \(1 accept/)
  terminal.type('1\r')
  await terminal.untilInAll(/Your choice \(1 give/)
  terminal.type('1\r')
  await terminal.untilInAll(`Value of ${KEY} (your typing is hidden`)
  terminal.type(VALUE)
  terminal.press('ctrl+c')
  await terminal.untilInAll('Nothing is stored. Ctrl+C once more ends the run.')
  terminal.type('give\r')
  await terminal.untilInAll(rows => rows.filter(row => row.includes(`Value of ${KEY}`)).length === 2)
  terminal.type(VALUE)
  terminal.press('enter')
  const { exitCode } = await terminal.ended
  expect({ exitCode, all: terminal.all().join('\n') }).toMatchObject({ exitCode: 0 })
  expect(terminal.bytes()).not.toContain(VALUE.slice(0, 12))
  expect(await terminal.stty()).toBe(terminal.sttyAtStart())
  expect(terminal.all().join('\n')).toContain(`the secret ${KEY} is stored`)
  expect(scene.findLeaks(VALUE)).toEqual([])
})

test('where nobody can be asked the steps that want of the network will fail are named first, with the command that has it', async () => {
  await using scene = await openTeamScene({
    planner: [[plans('Write it.', { description: 'Fetch it.', network: true })]],
    worker: { 1: [runs('true')], 2: [[works({ done: false, thoughts: 'No network.' })]] },
  })
  const { exitCode, stdout } = await scene.command(['team', '--no-keep-awake', 'fetch it']).ended
  expect(exitCode).toBe(4)
  const lines = stdout.split('\n').filter(line => line.includes('--network'))
  expect(lines[0]).toMatch(/2.*codemachine resume.*--network/)
})

promise('T44')
test('a person who allows the network because the plan needs it has the session go on with it at once', async () => {
  await using scene = await openRealTeamScene({
    planner: [[plans({ description: 'Fetch it.', network: true })]],
    worker: { 1: [runs('true')] },
  })
  await using terminal = startInEmulator(scene.place, [...TEAM, 'fetch it'], { columns: 120, rows: 60 })
  await terminal.untilInAll(/Your choice \(1 accept/)
  terminal.type('1\r')
  await terminal.untilInAll(/Your choice \(.*allow/)
  terminal.type('allow\r')
  const { exitCode } = await terminal.ended
  expect({ exitCode, all: terminal.all().join('\n') }).toMatchObject({ exitCode: 0 })
  expect(terminal.all().join('\n')).toMatch(/continues|resumed/)
  expect(terminal.all().filter(row => row.includes('To continue:'))).toEqual([])
})
