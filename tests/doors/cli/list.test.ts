import { appendFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { list } from '../../../src/doors/cli/commands/look.ts'
import { takeRunLock } from '../../../src/session/records/run-lock.ts'
import { cpuMs, timesSlower } from '../../support/cpu-time.ts'
import { recorded, sampleEvents } from '../screen/samples.ts'
import { makePlace } from './place.ts'

const created = sampleEvents['session-created']
const started = sampleEvents['round-started']
const usage = sampleEvents.usage

test('where nothing has run yet, it says how to start', async () => {
  await using place = await makePlace()
  expect(await list(place.context, { cd: place.directory, json: false })).toBe(0)
  expect(place.written()).toMatch(/^No sessions in .+ yet\. Start one with: codemachine "…"\n$/)
})

test('sessions are listed in columns, the newest last', async () => {
  await using place = await makePlace()
  await place.journal('20261120_10', [created, started, usage])
  await place.journal('20261120_2', [
    { ...created, goal: 'one\ntwo' },
    sampleEvents['round-ended'],
    sampleEvents['session-ended'],
  ])
  expect(await list(place.context, { cd: place.directory, json: false })).toBe(0)
  expect(place.written()).toBe(
    [
      '20261120_2   2026-11-20 22:41  done, not verified  1 round   0 tokens      2h05m  one\n',
      '20261120_10  2026-11-20 22:41  cut off             0 rounds  45.2k tokens  2.0 s  build X\n',
    ].join(''),
  )
})

test('a session that did not end is running while its codemachine runs, and cut off afterwards', async () => {
  await using place = await makePlace()
  await place.journal('20261120_1', [created, started, usage])
  const standings = async () => {
    const before = place.written().length
    await list(place.context, { cd: place.directory, json: true })
    return JSON.parse(place.written().slice(before)).map((session: { standing: string }) => session.standing)
  }
  const at = Date.parse(recorded([created])[0]?.at ?? '')
  {
    await using _lock = await takeRunLock(place.records.lock, { ...place.context, now: new Date(at - 1000) })
    expect(await standings()).toEqual(['running'])
  }
  expect(await standings()).toEqual(['cut-off'])
  await using _lock = await takeRunLock(place.records.lock, { ...place.context, now: new Date(at + 60_000) })
  expect(await standings(), 'another run, which has not touched it').toEqual(['cut-off'])
})

test('a session that holds until a person goes on is listed as paused', async () => {
  await using place = await makePlace()
  const held = [created, started, sampleEvents['interrupt-asked'], sampleEvents['round-ended'], sampleEvents.held]
  await place.journal('20261120_1', held)
  const at = Date.parse(recorded([created])[0]?.at ?? '')
  await using _lock = await takeRunLock(place.records.lock, { ...place.context, now: new Date(at - 1000) })
  await list(place.context, { cd: place.directory, json: false })
  expect(place.written()).toMatch(/^20261120_1 {2}\S+ \S+ {2}paused {2}1 round /)
  await list(place.context, { cd: place.directory, json: true })
  expect(place.written()).toContain('"standing":"running","activity":"paused"')
})

test('a goal from outside cannot steer the terminal', async () => {
  await using place = await makePlace()
  await place.journal('20261120_1', [{ ...created, goal: '\x1b[2Jgone' }])
  await list(place.context, { cd: place.directory, json: false })
  expect(place.written()).toContain('␛[2Jgone')
})

test('100,000 events are listed while a person watches', async () => {
  await using place = await makePlace()
  const path = await place.journal('20261120_1', [created, started])
  const [line] = recorded([
    { ...sampleEvents['item-completed'], item: { kind: 'agent-message', id: 'm', text: 'x'.repeat(200), phase: null } },
  ])
  const thousand = `${JSON.stringify(line)}\n`.repeat(1000)
  for (let i = 0; i < 100; i++) appendFileSync(path, thousand)
  const startedAt = cpuMs()
  await list(place.context, { cd: place.directory, json: true })
  const took = cpuMs() - startedAt
  expect(JSON.parse(place.written())).toMatchObject([{ id: '20261120_1', standing: 'cut-off' }])
  // Measured at a third of it.
  expect(took).toBeLessThan(3000 * timesSlower())
})
