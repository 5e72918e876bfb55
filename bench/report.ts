import { readFileSync, statSync } from 'node:fs'
import { appendFile, mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { SessionEvent } from '../src/core/events/events.ts'
import { openRecords, type Records } from '../src/records/records.ts'
import { OWN_TEMPLATES } from '../src/templates/registry.ts'
import { makePlace, type TestPlace } from '../tests/support/place.ts'
import { atMost, type Figure } from './figure.ts'
import { median } from './median.ts'
import { BIN, runCommand } from './run-command.ts'

const EVENTS = 100_000
const EVENTS_OF_A_ROUND = 200
const MANY_ROUNDS = 10_000
const RUNS = 3
const SAMPLE_MS = 5
const ID = '20261120_1'
const MANY_ID = '20261120_2'

/** The report of a long session as a page, from the start of the command to its end. */
export async function report(): Promise<Figure[]> {
  await using place = await makePlace('', { git: false })
  const { home, directory, env } = place
  const records = await openRecords({ directory, env, home, platform: process.platform, templates: OWN_TEMPLATES })
  await writeJournal(records, ID, eventsOf(EVENTS / EVENTS_OF_A_ROUND, EVENTS_OF_A_ROUND))
  await writeJournal(records, MANY_ID, eventsOf(MANY_ROUNDS, 3))
  const times: number[] = []
  const peaks: number[] = []
  for (let run = 0; run < RUNS; run++) {
    const { wallMs, peakMb } = await reportOf(place, ID)
    times.push(wallMs)
    peaks.push(peakMb)
  }
  const many = await reportOf(place, MANY_ID)
  return [
    { what: `a page of ${EVENTS} events`, value: median(times), unit: 'ms', target: atMost(2000) },
    { what: 'highest resident set', value: median(peaks), unit: 'MB', target: atMost(200) },
    { what: `size of the page of ${MANY_ROUNDS} rounds`, value: many.pageMb, unit: 'MB', target: atMost(0.5) },
  ]
}

async function reportOf({ root, directory, env }: TestPlace, id: string) {
  const page = join(root, 'report.html')
  let peakKib = 0
  let sampler: NodeJS.Timeout | undefined
  const { wallMs } = await runCommand(process.execPath, [BIN, 'report', id, '--html', '--output', page], 0, {
    cwd: directory,
    env,
    onStart: pid => {
      sampler = setInterval(() => {
        peakKib = Math.max(peakKib, highWaterMark(pid))
      }, SAMPLE_MS)
    },
  })
  clearInterval(sampler)
  return { wallMs, peakMb: (peakKib * 1024) / 1e6, pageMb: statSync(page).size / 1e6 }
}

/** VmHWM of a process in KiB; 0 if it has ended. */
function highWaterMark(pid: number): number {
  try {
    return Number(/^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0)
  } catch {
    return 0
  }
}

async function writeJournal(records: Records, id: string, events: Iterable<SessionEvent>): Promise<void> {
  const path = records.journal(id)
  await mkdir(dirname(path), { recursive: true })
  await writeFile(path, '{"format":"codemachine-journal","v":1}\n')
  let at = Date.UTC(2026, 10, 20, 22)
  let lines = ''
  for (const event of events) {
    at += 300
    lines += `${JSON.stringify({ v: 1, at: new Date(at).toISOString(), session: id, ...event })}\n`
    if (lines.length < 1e6) continue
    await appendFile(path, lines)
    lines = ''
  }
  await appendFile(path, lines)
}

/** Rounds of so many events each, most of them messages and commands with some output. */
function* eventsOf(rounds: number, eventsOfARound: number): Generator<SessionEvent> {
  yield {
    type: 'session-created',
    goal: 'Port it.',
    template: 'goal',
    directory: '/work',
    limits: { rounds: null, timeMs: null, tokens: null },
    sandbox: 'workspace-write',
    network: false,
    model: null,
    effort: null,
    overrides: [],
    said: {},
    queued: null,
    host: 'bench',
    codemachine: '0.1.0',
  }
  for (let round = 1; round <= rounds; round++) yield* roundOf(round, eventsOfARound)
}

const OUTPUT = 'compiled src/some/module.ts in 12 ms\n'.repeat(25)
const counts = { input: 40_000, cachedInput: 30_000, output: 900, reasoning: 100, total: 40_900 }

function* roundOf(round: number, events: number): Generator<SessionEvent> {
  yield {
    type: 'round-started',
    round,
    agent: 'goal-worker',
    engine: 'codex',
    codex: '0.169.0',
    model: null,
    input: 'Go on.',
  }
  const command = {
    kind: 'command',
    command: 'npm test',
    directory: '/work',
    status: 'completed',
    exitCode: 0,
  } as const
  for (let n = 3; n < events; n++) {
    if (n % 4 === 0) yield { type: 'usage', round, thread: 't', total: counts, last: counts, contextWindow: null }
    else if (n % 4 === 1) {
      const item = { kind: 'agent-message', id: `m${n}`, text: 'Now the next part.', phase: null } as const
      yield { type: 'item-completed', round, item }
    } else yield { type: 'item-completed', round, item: { ...command, id: `c${n}`, durationMs: 900, output: OUTPUT } }
  }
  yield {
    type: 'round-ended',
    round,
    outcome: { class: 'worked', message: null },
    counts: true,
    durationMs: 60_000 + (round % 9) * 5000,
    tokens: counts,
    treeBefore: 'a',
    treeAfter: 'b',
    changed: [`src/${round}.ts`],
    changedCount: 1,
    memory: 'm',
  }
  yield { type: 'done-refused', round, reason: 'tasks-left', detail: `There are ${round} tasks left.` }
}
