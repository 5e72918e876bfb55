import { writeFileSync } from 'node:fs'
import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises'
import { systemClock } from '../src/base/clock.ts'
import { emptyState, type SessionState } from '../src/core/state/state.ts'
import { Screen } from '../src/doors/screen/screen/screen.tsx'
import { openTheme } from '../src/doors/screen/terminal/theme.ts'
import { keepScreenSmall } from '../src/platform/heap.ts'
import { Keymap } from '../src/project/settings/keys.ts'
import { NO_HOST } from '../tests/support/no-host.ts'
import { fold, SESSION } from '../tests/support/session-events.ts'
import { delta, message, openRound, sessionOf, type Told } from './screen-events.ts'

/** What the program below is asked for, as JSON in its first argument. */
export type Load = LoadKind & {
  report: string
  /** From the last event until the memory is looked at. */
  settleMs: number
}

export type LoadKind =
  /** Messages whose words are numbered stream in, so many deltas a second. */
  | { kind: 'stream'; deltasPerSecond: number; seconds: number }
  /** Rounds of recorded events and their deltas. */
  | { kind: 'session'; events: number; rounds: number; eventsPerSecond: number }

/** What it tells at its end, as JSON in `report`. */
export interface LoadReport {
  /** Deltas that streamed in. */
  deltas: number
  /** Of one core, while they did. */
  cpuShare: number
  /** Resident set, bytes. */
  rss: number
}

const WORDS_PER_MESSAGE = 400
const FEED_MS = 4

/** The screen as it ships, in this terminal, with a session that is made up; ends when all of it is shown. */
async function run(load: Load): Promise<void> {
  keepScreenSmall()
  const screen = openScreen()
  screen.model.showsSession = true
  let state = emptyState(SESSION)
  const tell = (told: Told) => {
    state = show(screen, state, told)
  }
  const before = { cpu: process.cpuUsage(), at: performance.now() }
  const deltas = load.kind === 'stream' ? await stream(load, tell) : await session(load, tell)
  const { user, system } = process.cpuUsage(before.cpu)
  const cpuShare = (user + system) / 1000 / (performance.now() - before.at)
  await delay(load.settleMs)
  const report: LoadReport = { deltas, cpuShare, rss: process.memoryUsage.rss() }
  await screen.close()
  writeFileSync(load.report, JSON.stringify(report))
  process.exit(0)
}

function openScreen(): Screen {
  const { stdin, stdout, env } = process
  return new Screen({
    stdin,
    stdout,
    env,
    clock: systemClock,
    host: NO_HOST,
    theme: openTheme({ theme: 'dark', env, reader: false }),
    motion: 'full',
    keymap: new Keymap(undefined, 'queue'),
    mouse: true,
    isWatching: false,
    redact: text => text,
    searchFiles: async () => [],
    writeNow: text => writeFileSync(1, text),
    rawModeOff: () => stdin.setRawMode(false),
    onGone: () => process.exit(1),
    onFailure: error => {
      throw error
    },
  })
}

function show(screen: Screen, state: SessionState, told: Told): SessionState {
  if (told.kind === 'live') {
    screen.view.live(told.event)
    return state
  }
  const after = fold(state, told.event)
  screen.view.event(told.event, after)
  return after
}

async function stream(
  { deltasPerSecond, seconds }: Extract<LoadKind, { kind: 'stream' }>,
  tell: (told: Told) => void,
): Promise<number> {
  for (const told of openRound()) tell(told)
  const startedAt = performance.now()
  let text = ''
  let sent = 0
  const send = () => {
    const id = `m${Math.floor(sent / WORDS_PER_MESSAGE)}`
    if (sent % WORDS_PER_MESSAGE === 0) tell(message(id, '', false))
    const word = `w${sent} `
    text += word
    tell(delta(id, word))
    sent++
    if (sent % WORDS_PER_MESSAGE !== 0) return
    tell(message(id, text, true))
    text = ''
  }
  const all = Math.ceil((deltasPerSecond * seconds) / WORDS_PER_MESSAGE) * WORDS_PER_MESSAGE
  while (sent < all) {
    const due = Math.min(all, ((performance.now() - startedAt) / 1000) * deltasPerSecond)
    while (sent < due) send()
    await delay(FEED_MS)
  }
  return sent
}

async function session(
  { events, rounds, eventsPerSecond }: Extract<LoadKind, { kind: 'session' }>,
  tell: (told: Told) => void,
): Promise<number> {
  const startedAt = performance.now()
  let [sent, deltas] = [0, 0]
  for (const told of sessionOf(events, rounds)) {
    tell(told)
    if (told.kind === 'live') deltas++
    else sent++
    await nextTurn()
    const early = (sent / eventsPerSecond) * 1000 - (performance.now() - startedAt)
    if (early > FEED_MS) await delay(early)
  }
  return deltas
}

if (process.argv[2] !== undefined) await run(JSON.parse(process.argv[2]) as Load)
