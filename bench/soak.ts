import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Recorded } from '../src/core/events/events.ts'
import type { Script } from '../src/demo/model/reply.ts'
import { message, type Reply, reply, shell } from '../src/demo/model/reply.ts'
import { makePlace, type TestPlace } from '../tests/support/place.ts'
import { startScriptedModel } from '../tests/support/scripted-model.ts'
import { atMost, type Figure } from './figure.ts'
import { median } from './median.ts'
import { kibOf } from './peak.ts'
import { findNativeCodex } from './rounds.ts'
import { BIN } from './run-command.ts'

const ROUNDS = 1_000
const PART = 100
/** One round in so many fails, each time in another way. */
const FAULT_EVERY = 12
const BOUND_MS = 20 * 60_000
const PROBE = fileURLToPath(new URL('heap-probe.ts', import.meta.url))

type Fault = 'cut' | 'throttled' | 'server-error' | 'killed'
const FAULTS: readonly Fault[] = ['cut', 'throttled', 'killed', 'server-error']

/** What a round was like. */
interface Sample {
  /** From its start to the start of the next, ms; null if something failed meanwhile. */
  ms: number | null
  /** Open file descriptors and children of codemachine at its end. */
  descriptors: number
  children: number
  heapMb: number
  residentMb: number
}

/** 1,000 rounds of the real codex with faults sprinkled in: nothing may grow. */
export async function soak(): Promise<Figure[]> {
  const faults = new Faults()
  await using model = await startScriptedModel({ script: faults.script, keptRequests: 1 })
  await using place = await makePlace(model.codexConfig('scripted', { request_max_retries: 0, stream_max_retries: 0 }))
  const samples = await run(place, faults)
  return figuresOf(samples, faults.given)
}

/** Gives a fault in the first request of some conversations, and plays every other as a round that changes a file. */
class Faults {
  /** Called when the codex at work is to be killed. */
  kill: () => void = () => {}
  given = 0
  readonly #faulty = new Set<number>()

  readonly script: Script = async request => {
    const { conversation, lastOutputs } = request
    if (conversation % FAULT_EVERY === FAULT_EVERY - 1 && !this.#faulty.has(conversation)) {
      this.#faulty.add(conversation)
      return this.#fault(FAULTS[this.given++ % FAULTS.length] ?? 'cut')
    }
    return lastOutputs.length === 0 ? reply(shell('echo more >> notes.txt')) : reply(message('As far as it goes.'))
  }

  #fault(fault: Fault): Reply {
    switch (fault) {
      case 'cut':
        return { ...reply(message('On it.')), end: { kind: 'cut', afterEvents: 1, how: 'reset' } }
      case 'throttled':
        return { kind: 'status', status: 429, body: { error: { message: 'slow down' } } }
      case 'server-error':
        return { ...reply(), end: { kind: 'failed', code: 'server_is_overloaded', message: 'busy' } }
      case 'killed':
        this.kill()
        return { kind: 'hang-before-headers' }
    }
  }
}

async function run(place: TestPlace, faults: Faults): Promise<Sample[]> {
  const heap = join(place.root, 'heap')
  const args = ['--json', '--rounds', String(ROUNDS), '--codex-bin', await findNativeCodex(), 'Go on.']
  const child = spawn(process.execPath, ['--import', PROBE, BIN, ...args], {
    cwd: place.directory,
    env: { ...place.env, HEAP_PROBE: heap, CODEMACHINE_KEEP_AWAKE: 'false' },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: BOUND_MS,
    killSignal: 'SIGKILL',
  })
  const { pid = 0 } = child
  const samples: Sample[] = []
  let startedAt: number | null = null
  let failed = false
  // The oldest of the children is the codex at work; a younger one waits for its turn.
  faults.kill = () => {
    const [oldest] = childrenOf(pid)
    if (oldest !== undefined) process.kill(oldest, 'SIGKILL')
  }
  let rest = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    const lines = (rest + text).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      const event: Recorded = JSON.parse(line)
      if (event.type === 'round-started') {
        const last = samples.at(-1)
        if (last && startedAt !== null && !failed) last.ms = performance.now() - startedAt
        startedAt = performance.now()
        failed = false
      } else if (event.type === 'turn-continued' || event.type === 'waiting') failed = true
      else if (event.type === 'round-ended' && event.counts) samples.push(sampleOf(pid, heap))
    }
  })
  let stderr = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
  })
  await once(child, 'close')
  if (child.exitCode !== 3 || samples.length !== ROUNDS) {
    throw new Error(`It ended with ${child.exitCode} after ${samples.length} rounds.\n${stderr.slice(-1000)}`)
  }
  return samples
}

function sampleOf(pid: number, heap: string): Sample {
  return {
    ms: null,
    descriptors: readdirSync(`/proc/${pid}/fd`).length,
    children: childrenOf(pid).length,
    heapMb: Number(read(heap)) / 1e6,
    residentMb: (kibOf(pid, 'VmRSS') * 1024) / 1e6,
  }
}

/** The children of a process, the oldest first. */
function childrenOf(pid: number): number[] {
  return read(`/proc/${pid}/task/${pid}/children`).trim().split(' ').filter(Boolean).map(Number)
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

function figuresOf(samples: readonly Sample[], faults: number): Figure[] {
  const first = samples.slice(0, PART)
  const last = samples.slice(-PART)
  const row = (
    what: string,
    of: (part: readonly Sample[]) => number,
    unit: Figure['unit'],
    target: number,
  ): Figure[] => [
    { what: `${what}, first ${PART}`, value: of(first), unit, target: null },
    { what: `${what}, last ${PART}`, value: of(last), unit, target: null },
    { what: `${what}, last against first`, value: of(last) / of(first), unit: 'x', target: atMost(target) },
  ]
  const mid = (pick: (sample: Sample) => number | null) => (part: readonly Sample[]) =>
    median(part.flatMap(sample => pick(sample) ?? []))
  return [
    { what: `faults in ${ROUNDS} rounds`, value: faults, unit: '', target: null },
    ...row(
      'time of a round without a fault',
      mid(sample => sample.ms),
      'ms',
      1.2,
    ),
    ...row(
      'file descriptors',
      mid(sample => sample.descriptors),
      '',
      1,
    ),
    ...row(
      'children',
      mid(sample => sample.children),
      '',
      1,
    ),
    // The first readings are taken before everything is loaded.
    ...row('heap after garbage collection', part => Math.max(...part.map(({ heapMb }) => heapMb)), 'MB', 1.2),
    ...row(
      'resident set',
      mid(sample => sample.residentMb),
      'MB',
      1.3,
    ),
  ]
}
