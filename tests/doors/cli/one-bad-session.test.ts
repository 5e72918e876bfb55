import { execFileSync } from 'node:child_process'
import { mkdir, rm } from 'node:fs/promises'
import { expect } from 'vitest'
import { codemachineHere } from '../../support/in-process.ts'
import { makePlace, type TestPlace } from '../../support/place.ts'
import { incident, promise } from '../../support/promise.ts'
import { claimDone, round } from '../../support/rounds.ts'
import { eventsOf, openScene } from '../../support/scene.ts'
import { describe, test } from '../../support/side-by-side.ts'
import { sampleEvents } from '../screen/samples.ts'
import { journalSession, replaceFirstLine } from './journaled.ts'

const { 'session-created': created, 'session-ended': ended } = sampleEvents

async function newer(place: TestPlace): Promise<string> {
  const path = await journalSession(place, '20261121_1', [created, ended])
  await replaceFirstLine(path, '{"format":"codemachine-journal","v":2}')
  return `codemachine: ${path} was written by a newer codemachine (journal format 2); use that version.\n`
}

async function directory(place: TestPlace): Promise<string> {
  const path = await journalSession(place, '20261121_1', [])
  await rm(path)
  await mkdir(path)
  return `codemachine: ${path} cannot be read: it is a directory; restore the journal.\n`
}

async function pipe(place: TestPlace): Promise<string> {
  const path = await journalSession(place, '20261121_1', [])
  await rm(path)
  execFileSync('mkfifo', [path])
  return `codemachine: ${path} cannot be read: it is a pipe; restore the journal.\n`
}

async function foreign(place: TestPlace): Promise<string> {
  const path = await journalSession(place, '20261121_1', [created, ended])
  await replaceFirstLine(path, '{"format":"other-journal","v":1}')
  return `codemachine: ${path} is not a journal of codemachine (its format is "other-journal"); restore the file.\n`
}

promise('J43')
describe.each([
  ['a journal of a newer format', newer],
  ['a journal of a foreign format', foreign],
  ['a pipe in the place of a journal', pipe],
  ['a directory in the place of a journal', directory],
])('%s among good ones is named, and the rest is shown', (_what, spoil) => {
  test.each([
    [['list'], '20261120_1'],
    [['list', '--json'], '"id":"20261120_1"'],
    [['status'], 'session  20261120_1'],
    [['status', '--json'], '"id":"20261120_1"'],
    [['logs'], 'session 20261120_1  build X'],
    [['logs', '--json'], '"session":"20261120_1"'],
    [['logs', '-f'], 'session 20261120_1  build X'],
  ])('%j', async (args, shown) => {
    await using place = await makePlace('')
    await journalSession(place, '20261120_1', [created, ended])
    const said = await spoil(place)
    const { exitCode, stdout, stderr } = await codemachineHere(place, args)
    expect([exitCode, stderr]).toEqual([0, said])
    expect(stdout).toContain(shown)
    expect(stdout).not.toContain('20261121_1')
  })

  incident('lost night', 'A journal that is a pipe made `list` and `report` wait for ever', {
    since: '2026-11-21',
    fixed: '2026-11-29',
    foundBy: 'a trial',
  })
  test.each([[['logs']], [['logs', '-f']], [['report']], [['resume']]])(
    '%j of the bad one says why not',
    async args => {
      await using place = await makePlace('')
      await journalSession(place, '20261120_1', [created, ended])
      const said = await spoil(place)
      const { exitCode, stdout, stderr } = await codemachineHere(place, [...args, '20261121_1'])
      expect([exitCode, stdout, stderr.replace(/ \(CM060[67]\)$/m, '')]).toEqual([2, '', said])
    },
  )

  test('what waits is worked on, and the session is told of', async () => {
    await using scene = await openScene([round(claimDone)])
    const said = await spoil(scene.place)
    await scene.run('queue', 'add', 'goal two')
    const { exitCode, events } = await scene.run('--json')
    expect(exitCode).toBe(0)
    expect(eventsOf(events, 'session-created')).toMatchObject([{ goal: 'goal two' }])
    expect(eventsOf(events, 'warning').map(({ message }) => `codemachine: ${message}\n`)).toContain(said)
  })
})
