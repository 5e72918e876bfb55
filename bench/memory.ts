import { readFileSync } from 'node:fs'
import { makePlace } from '../tests/support/place.ts'
import { writePeer } from '../tests/support/scripted-peer.ts'
import { atMost, type Figure } from './figure.ts'
import { median } from './median.ts'
import { ANSWER_VERSION, FLOOD } from './peers.ts'
import { runCodemachine } from './run-command.ts'

const FEW = 1_000
const MANY = 100_000
const RUNS = 3
const SAMPLE_MS = 10

/** The memory of codemachine itself, without a terminal, while codex says little and much. */
export async function memory(): Promise<Figure[]> {
  const few: number[] = []
  const many: number[] = []
  for (let run = 0; run < RUNS; run++) {
    few.push(await peakOf(FEW))
    many.push(await peakOf(MANY))
  }
  return [
    { what: `highest resident set, ${FEW} events`, value: median(few), unit: 'MB', target: atMost(90) },
    { what: `highest resident set, ${MANY} events`, value: median(many), unit: 'MB', target: atMost(90) },
    { what: 'the second against the first', value: median(many) / median(few), unit: 'x', target: atMost(1.1) },
  ]
}

/** The highest resident set of a run whose one turn has so many events, and as many deltas, in MB (10^6 bytes). */
async function peakOf(events: number): Promise<number> {
  await using place = await makePlace('')
  const peer = await writePeer(
    place.root,
    `${ANSWER_VERSION}${FLOOD}
    on['turn/start'] = id => { send({ id, result: { turn: { id: TURN } } }); started(); flood(${2 * events}); completed() }`,
  )
  let peakKib = 0
  let sampler: NodeJS.Timeout | undefined
  await runCodemachine(['--json', '--rounds', '1', '--codex-bin', peer, 'Say much.'], 3, {
    cwd: place.directory,
    env: place.env,
    onStart: pid => {
      sampler = setInterval(() => {
        peakKib = Math.max(peakKib, highWaterMark(pid))
      }, SAMPLE_MS)
    },
  })
  clearInterval(sampler)
  return (peakKib * 1024) / 1e6
}

/** VmHWM of a process in KiB; 0 if it has ended. */
function highWaterMark(pid: number): number {
  try {
    return Number(/^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0)
  } catch {
    return 0
  }
}
