import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { startInEmulator } from '../tests/support/emulator.ts'
import { makePlace, type TestPlace } from '../tests/support/place.ts'
import { atMost, type Figure, shown } from './figure.ts'
import { firstPaint } from './first-paint.ts'
import { median, percentile } from './median.ts'
import { kibOf } from './peak.ts'
import { BIN } from './run-command.ts'
import type { LoadKind } from './screen-load.ts'
import { buildScreenProgram, type RunningLoad, type ScreenProgram, SETTLE_MS } from './screen-program.ts'

const HELLO = fileURLToPath(new URL('ink-hello.mjs', import.meta.url))
const PAINTS = 15
const SIZES = 3
const KEYS = 100
/** As a person types quickly; uneven, so that keys do not fall in step with frames. */
const KEY_GAPS_MS = [61, 97, 83, 149, 71]
/** Slowly, so that as many frames are drawn as V8 wants to see before it has compiled what it compiles. */
const FEW = { kind: 'session', events: 1_000, rounds: 2, eventsPerSecond: 100 } as const
const SOME = { kind: 'session', events: 10_000, rounds: 20, eventsPerSecond: 4_000 } as const
const MANY = { kind: 'session', events: 100_000, rounds: 200, eventsPerSecond: 4_000 } as const

/** The screen in a terminal: its first paint, a key while much streams in, what it takes while little does, its memory. */
export async function screen(): Promise<Figure[]> {
  await using place = await makePlace('')
  await using program = await buildScreenProgram()
  return [
    ...(await paints(place)),
    ...(await keys(program, place)),
    ...(await calm(program, place)),
    ...(await sizes(program, place)),
  ]
}

async function paints(place: TestPlace): Promise<Figure[]> {
  const times = { hello: [] as number[], start: [] as number[] }
  for (let run = 0; run <= PAINTS; run++) {
    const hello = await firstPaint(place, [HELLO])
    const start = await firstPaint(place, [BIN])
    // The first run fills the caches, of the files and of compiled code.
    if (run === 0) continue
    times.hello.push(hello)
    times.start.push(start)
  }
  const [hello, start] = [median(times.hello), median(times.start)]
  return [
    { what: 'first paint of Ink\'s "hello"', value: hello, unit: 'ms', target: null },
    { what: 'first paint of codemachine, against it', value: start / hello, unit: 'x', target: atMost(1.5) },
  ]
}

/** A key while 5,000 deltas a second stream in. */
async function keys(program: ScreenProgram, place: TestPlace): Promise<Figure[]> {
  const seconds = (KEYS * (median(KEY_GAPS_MS) + 50)) / 1000
  await using load = program.start(place, { kind: 'stream', deltasPerSecond: 5_000, seconds })
  await load.terminal.until(/w\d+/)
  const times: number[] = []
  for (let key = 0; key < KEYS; key++) {
    times.push(await keyTime(load, key))
    await delay(KEY_GAPS_MS[key % KEY_GAPS_MS.length])
  }
  const { deltas } = await load.report()
  const missing = missingWords(load.terminal.all(), deltas)
  return [
    { what: 'a key at 5000 deltas/s, median', value: median(times), unit: 'ms', target: null },
    { what: 'the same, 95th percentile', value: percentile(times, 95), unit: 'ms', target: atMost(50) },
    { what: `words of ${deltas} that were not shown`, value: missing, unit: '', target: atMost(0) },
  ]
}

const LETTERS = 'qwertyuiopasdfghjklzxcvbnm'

/** From a letter that is typed until the draft ends with it on the screen, ms. */
async function keyTime({ terminal }: RunningLoad, key: number): Promise<number> {
  const letters = Array.from({ length: (key % LETTERS.length) + 1 }, (_, i) => LETTERS[i]).join('')
  if (key > 0 && letters.length === 1) {
    terminal.press('ctrl+u')
    await terminal.until(rows => !rows.some(row => row.includes(LETTERS)))
  }
  const startedAt = performance.now()
  terminal.type(letters.at(-1) ?? '')
  await terminal.until(rows => rows.some(row => endsWithDraft(row, letters)))
  return performance.now() - startedAt
}

function endsWithDraft(row: string, draft: string): boolean {
  return row.endsWith(draft) && !row.endsWith(`w${draft}`)
}

/** How many of the numbered words are not to be found, each once and in its order. */
function missingWords(rows: readonly string[], count: number): number {
  const shown = rows.join(' ').match(/\bw\d+\b/g) ?? []
  let found = 0
  for (const word of shown) if (word === `w${found}`) found++
  return count - found
}

async function calm(program: ScreenProgram, place: TestPlace): Promise<Figure[]> {
  await using load = program.start(place, { kind: 'stream', deltasPerSecond: 200, seconds: 15 })
  const { cpuShare } = await load.report()
  return [{ what: 'of one core, at 200 deltas/s', value: cpuShare * 100, unit: '%', target: atMost(25) }]
}

async function sizes(program: ScreenProgram, place: TestPlace): Promise<Figure[]> {
  const taken = { hello: [] as number[], few: [] as number[], many: [] as number[] }
  const bytes = { few: Number.NaN, many: Number.NaN }
  for (let run = 0; run < SIZES; run++) {
    taken.hello.push(await sizeOfHello(place))
    const few = await sizeOf(program, place, FEW)
    const many = await sizeOf(program, place, MANY)
    taken.few.push(few.rss)
    taken.many.push(many.rss)
    bytes.few = few.bytes
    bytes.many = many.bytes
  }
  const some = await sizeOf(program, place, SOME)
  const [hello, few, many] = [median(taken.hello), median(taken.few), median(taken.many)]
  return [
    shown('resident set of Ink\'s "hello"', hello, 'MB'),
    shown('resident set after 1000 events, 2 rounds', few, 'MB'),
    { what: 'against "hello"', value: few / hello, unit: 'x', target: atMost(1.2) },
    shown('resident set after 100000 events, 200 rounds', many, 'MB'),
    { what: 'against "hello"', value: many / hello, unit: 'x', target: atMost(1.2) },
    { what: 'against that after 1000 events', value: many / few, unit: 'x', target: atMost(1.1) },
    {
      what: 'bytes written an event, 10000 against 1000',
      value: some.bytes / bytes.few,
      unit: 'x',
      target: atMost(1.2),
    },
    {
      what: 'bytes written an event, 100000 against 1000',
      value: bytes.many / bytes.few,
      unit: 'x',
      target: atMost(1.2),
    },
  ]
}

/** MB (10^6 bytes), as long after it is shown as of the screen. */
async function sizeOfHello(place: TestPlace): Promise<number> {
  await using terminal = startInEmulator(place, [String(10 * SETTLE_MS)], {
    command: [process.execPath, HELLO],
    env: { NODE_ENV: 'production', NO_COLOR: undefined },
  })
  await terminal.until(/hello/)
  await delay(SETTLE_MS)
  return (kibOf(await terminal.pid(), 'VmRSS') * 1024) / 1e6
}

/** MB (10^6 bytes), and bytes written to the terminal for each event. */
async function sizeOf(
  program: ScreenProgram,
  place: TestPlace,
  wanted: Extract<LoadKind, { kind: 'session' }>,
): Promise<{ rss: number; bytes: number }> {
  await using load = program.start(place, wanted)
  const { rss } = await load.report()
  return { rss: rss / 1e6, bytes: load.terminal.bytes().length / wanted.events }
}
