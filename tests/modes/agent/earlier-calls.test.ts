import { mkdir, writeFile } from 'node:fs/promises'
import { beforeEach, expect, test } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import { tidyCalls } from '../../../src/modes/agent/start/earlier-calls.ts'
import { OWN_TEMPLATES } from '../../../src/modes/registry.ts'
import { openRecords, type Records } from '../../../src/session/records/records.ts'
import { takeRunLock } from '../../../src/session/records/run-lock.ts'
import { endAfterEach } from '../../engines/codex/end-after-each.ts'
import { makePlace, type TestPlace } from '../../support/place.ts'
import { created, recorded } from '../../support/session-events.ts'

const atEnd = endAfterEach()
let place: TestPlace
let records: Records
beforeEach(async () => {
  place = atEnd.use(await makePlace('', { git: false }))
  records = await openRecords({ ...place, platform: process.platform, templates: OWN_TEMPLATES })
})

/** Begins the journal of a session of that template. */
async function begin(n: number, template: string): Promise<string> {
  const id = `20261120_${n}`
  await mkdir(records.sessionFolder(id), { recursive: true })
  const [first] = recorded([{ ...created(), template }])
  await writeFile(records.journal(id), `{"format":"codemachine-journal","v":1}\n${JSON.stringify(first)}\n`)
  return id
}

test('the last 200 calls are kept, and with them one that works and every session that is no call', async () => {
  const goal = await begin(1, 'goal')
  const working = await begin(2, 'agent')
  const { platform, pid } = process
  atEnd.use(await takeRunLock(records.callLock(working), { platform, pid, now: new Date() }))
  for (let n = 3; n <= 203; n++) await begin(n, 'agent')
  await tidyCalls({ platform, clock: systemClock }, records)
  const left = await records.sessions()
  expect(left).toHaveLength(202)
  expect(left.slice(0, 3)).toEqual([goal, working, '20261120_4'])
})
