import { statSync } from 'node:fs'
import { statfs } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { OWN_TEMPLATES } from '../src/modes/registry.ts'
import { openRecords } from '../src/session/records/records.ts'
import { makePlace, type TestPlace } from '../tests/support/place.ts'
import { atMost, type Figure, shown } from './figure.ts'
import { makeLongSession, writeLongPeer } from './long-session.ts'
import { median } from './median.ts'
import { peakOf } from './peak.ts'
import { BIN, runCodemachine, runCommand } from './run-command.ts'

const ROUNDS = 10_000
const EVENTS_OF_A_ROUND = 100
const RUNS = 3
const STATUS_RUNS = 5
/** The journal, and as much again. */
const ROOM_BYTES = 2e9

/** What takes a session of 10,000 rounds and 1,000,000 events for what it is: to go on, to say where it is, to report. */
export async function journal(): Promise<Figure[]> {
  const { bavail, bsize } = await statfs(tmpdir())
  if (bavail * bsize < ROOM_BYTES) {
    return [{ what: `no room in ${tmpdir()} for the journal`, value: null, unit: '', target: null }]
  }
  await using place = await makePlace('')
  const id = await makeLongSession(place, ROUNDS, EVENTS_OF_A_ROUND)
  const peer = await writeLongPeer(place, EVENTS_OF_A_ROUND)
  const size = await sizeOf(place, id)
  const first = await resume(place, peer, ROUNDS + 1)
  const resumes: number[] = []
  for (let run = 1; run <= RUNS; run++) resumes.push(await resume(place, peer, ROUNDS + 1 + run))
  const statuses: number[] = []
  for (let run = 0; run < STATUS_RUNS; run++) {
    statuses.push((await runCommand(process.execPath, [BIN, 'status'], 0, inPlace(place))).wallMs)
  }
  const page = join(place.root, 'report.html')
  const reports = []
  for (let run = 0; run < RUNS; run++) {
    const args = [BIN, 'report', id, '--html', '--output', page]
    reports.push(await peakOf(process.execPath, args, 0, inPlace(place)))
  }
  const peak = median(reports.map(({ peakMb }) => peakMb))
  return [
    shown(`size of a journal of ${ROUNDS} rounds and ${ROUNDS * EVENTS_OF_A_ROUND} events`, size, 'MB'),
    shown('the first resume, to the start of its round', first, 'ms'),
    { what: 'resume after that, to the start of its round', value: median(resumes), unit: 'ms', target: atMost(1000) },
    { what: 'status', value: median(statuses), unit: 'ms', target: atMost(200) },
    { what: 'report --html', value: median(reports.map(({ wallMs }) => wallMs)), unit: 'ms', target: atMost(3000) },
    { what: 'its highest resident set', value: peak, unit: 'MB', target: atMost(200) },
    { what: 'size of its page', value: statSync(page).size / 1e6, unit: 'MB', target: atMost(0.5) },
  ]
}

/** From the start of the command to its `round-started`, ms; it plays one round, and ends at the limit. */
async function resume(place: TestPlace, peer: string, rounds: number): Promise<number> {
  const startedAt = performance.now()
  let begunAt: number | null = null
  await runCodemachine(['resume', '--json', '--rounds', String(rounds), '--codex-bin', peer], 3, {
    ...inPlace(place),
    onStdout: text => {
      if (text.includes('"type":"round-started"')) begunAt ??= performance.now()
    },
  })
  if (begunAt === null) throw new Error('No round has begun.')
  return begunAt - startedAt
}

async function sizeOf({ home, directory, env }: TestPlace, id: string): Promise<number> {
  const records = await openRecords({ directory, env, home, platform: process.platform, templates: OWN_TEMPLATES })
  return statSync(records.journal(id)).size / 1e6
}

function inPlace({ directory, env }: TestPlace) {
  return { cwd: directory, env }
}
