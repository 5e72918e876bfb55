import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../src/base/clock.ts'
import { emptyState } from '../src/core/state/state.ts'
import { startAppServer } from '../src/engines/codex/app-server.ts'
import { CodexRound } from '../src/engines/codex/round.ts'
import { sandboxTerms } from '../src/engines/codex/sandbox.ts'
import { connect } from '../src/engines/codex/thread-start.ts'
import { OWN_TEMPLATES } from '../src/modes/registry.ts'
import { keepHeapSmall } from '../src/platform/heap.ts'
import { nothingSecret } from '../src/secrets/redactor.ts'
import type { Journal } from '../src/session/records/journal.ts'
import { SessionLog } from '../src/session/session-log.ts'
import { writePeer } from '../tests/support/scripted-peer.ts'
import { atLeast, type Figure } from './figure.ts'
import { median } from './median.ts'
import { FLOOD } from './peers.ts'

const COUNT = 200_000
const RUNS = 5

/** From the bytes on a child's pipe to the folded state: everything of a round but the journal and the views. */
export async function notifications(): Promise<Figure[]> {
  keepHeapSmall()
  const folder = await mkdtemp(join(tmpdir(), 'codemachine-bench-'))
  try {
    const peer = await writePeer(
      folder,
      `${FLOOD}
      on['turn/start'] = id => { send({ id, result: { turn: { id: TURN } } }); started(); flood(${COUNT}); completed() }`,
    )
    const rates: number[] = []
    for (let run = 0; run <= RUNS; run++) {
      const rate = await rateOf(peer, folder)
      if (run > 0) rates.push(rate)
    }
    return [{ what: 'read, translated and folded', value: median(rates), unit: '/s', target: atLeast(100_000) }]
  } finally {
    await rm(folder, { recursive: true })
  }
}

const nowhere: Journal = { append() {}, sync: async () => {}, [Symbol.asyncDispose]: async () => {} }

/** Notifications of one turn per second of processor time, garbage collection included. */
async function rateOf(peer: string, directory: string): Promise<number> {
  const thread = { agent: 'a', developerInstructions: 'Say much.', model: null, effort: null }
  const server = startAppServer({
    path: peer,
    args: [],
    env: process.env,
    directory,
    clock: systemClock,
    endMs: 2_000,
    signalTree: (pid, signal) => void process.kill(pid, signal),
  })
  const round = new CodexRound({
    trySandbox: async () => null,
    connection: connect(server, { clock: systemClock, codemachineVersion: '0', requestMs: 60_000 }),
    thread,
    provider: null,
    forCommands: {},
    env: {},
    directory,
    sandbox: sandboxTerms(directory, { mode: 'workspace-write', network: false, writable: [] }),
    clock: systemClock,
    silenceMs: 60_000,
    commandMs: 60_000,
    requestMs: 60_000,
    endMs: 2_000,
    checkLogin: false,
    onRun: () => {},
    onIdle() {},
    log() {},
  })
  const log = new SessionLog(emptyState('1'), {
    journal: nowhere,
    views: [],
    templates: OWN_TEMPLATES,
    clock: systemClock,
    redactor: nothingSecret,
  })
  let started = process.cpuUsage()
  const outcome = await round.run({
    round: 1,
    input: 'Go on.',
    onEvent: event => {
      if (event.type === 'turn-started') started = process.cpuUsage()
      log.emit(event)
    },
    onLive: event => log.live(event),
    onRecord() {},
  })
  const { user, system } = process.cpuUsage(started)
  await server.close()
  // Half of them are deltas, which are no events; the turn's start is one more.
  if (outcome.class !== 'worked' || log.state.events !== COUNT / 2 + 1)
    throw new Error(`Not all arrived: ${log.state.events}`)
  return COUNT / ((user + system) / 1e6)
}
