import { expect, test } from 'vitest'
import { startInEmulator } from '../../support/emulator.ts'
import { openRealTeamScene, plans, runs } from '../../support/team-scene.ts'

const TEAM = ['team', '--plain', '--no-keep-awake']

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
  expect(terminal.all().join('\n')).toMatch(/goes on|resumed/)
  expect(terminal.all().filter(row => row.includes('To go on:'))).toEqual([])
})
