import { makePlace } from '../tests/support/place.ts'
import { writePeer } from '../tests/support/scripted-peer.ts'
import { atMost, type Figure, shown } from './figure.ts'
import { median } from './median.ts'
import { peakOf } from './peak.ts'
import { ANSWER_VERSION, FLOOD } from './peers.ts'
import { BIN } from './run-command.ts'

const FEW = 1_000
const MANY = 100_000
const RUNS = 5
const WAITS = 'setTimeout(() => {}, 300)'

/** The memory of codemachine itself, without a terminal, while codex says little and much, against a Node that waits. */
export async function memory(): Promise<Figure[]> {
  const peaks = { bare: [] as number[], few: [] as number[], many: [] as number[] }
  for (let run = 0; run < RUNS; run++) {
    peaks.bare.push((await peakOf(process.execPath, ['-e', WAITS], 0)).peakMb)
    peaks.few.push(await peakOfEvents(FEW))
    peaks.many.push(await peakOfEvents(MANY))
  }
  const [bare, few, many] = [median(peaks.bare), median(peaks.few), median(peaks.many)]
  return [
    shown('highest resident set of a Node that waits', bare, 'MB'),
    shown(`the same of codemachine, ${FEW} events`, few, 'MB'),
    { what: 'against Node', value: few / bare, unit: 'x', target: atMost(1.6) },
    shown(`the same of codemachine, ${MANY} events`, many, 'MB'),
    { what: 'against Node', value: many / bare, unit: 'x', target: atMost(1.7) },
  ]
}

/** The highest resident set of a run whose one turn has so many events, and as many deltas, in MB (10^6 bytes). */
async function peakOfEvents(events: number): Promise<number> {
  await using place = await makePlace('')
  const peer = await writePeer(
    place.root,
    `${ANSWER_VERSION}${FLOOD}
    on['turn/start'] = id => { send({ id, result: { turn: { id: TURN } } }); started(); flood(${2 * events}); completed() }`,
  )
  const args = [BIN, '--json', '--rounds', '1', '--codex-bin', peer, 'Say much.']
  return (await peakOf(process.execPath, args, 3, { cwd: place.directory, env: place.env })).peakMb
}
