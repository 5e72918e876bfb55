import type { LiveEvent, Recorded, SessionEvent, TokenCounts } from '../src/core/events/events.ts'
import type { Item } from '../src/core/events/items.ts'
import { created, ended, recorded, started, turn, worked } from '../tests/support/session-events.ts'

/** What a view is told of a session, in its order. */
export type Told = { kind: 'event'; event: Recorded } | { kind: 'live'; event: LiveEvent }

const WORDS = 'A few words, as models write them, of what was found and of what is done next. '
const DELTA = 20
const TOKENS: TokenCounts = { input: 51_234, cachedInput: 40_960, output: 812, reasoning: 256, total: 52_046 }

/** A session of so many recorded events in so many rounds, with the deltas of its texts. */
export function* sessionOf(events: number, rounds: number): Generator<Told> {
  const each = Math.floor(events / rounds) - 3
  yield* told(created({ rounds }))
  for (let round = 1; round <= rounds; round++) {
    yield* told(started(round))
    yield* told(turn(round, `thread-${round}`))
    for (let n = 0; n < each; n++) yield* step(round, n)
    yield* told(ended(round, worked))
  }
}

/** The start of a session in whose only round a text can be streamed. */
export function* openRound(): Generator<Told> {
  for (const event of [created({ rounds: 1 }), started(1), turn(1, 'thread-1')]) yield* told(event)
}

/** One delta of a message. */
export function delta(item: string, text: string): Told {
  return { kind: 'live', event: { type: 'text-delta', round: 1, item, source: 'agent-message', text } }
}

/** A message begins, or is whole. */
export function message(id: string, text: string, isWhole: boolean): Told {
  const item: Item = { kind: 'agent-message', id, text, phase: null }
  if (!isWhole) return { kind: 'live', event: { type: 'item-started', round: 1, item } }
  const [event] = recorded([{ type: 'item-completed', round: 1, item }])
  if (event === undefined) throw new Error('One event in, one event out.')
  return { kind: 'event', event }
}

function* told(event: SessionEvent): Generator<Told> {
  for (const each of recorded([event])) yield { kind: 'event', event: each }
}

/** One recorded event, and what was shown of it before: of ten, four commands, three messages, one of each other. */
function* step(round: number, n: number): Generator<Told> {
  const id = `${round}-${n}`
  switch (n % 10) {
    case 0:
      return yield* told(usage(round))
    case 1:
    case 4:
    case 7:
      return yield* streamed(round, { kind: 'agent-message', id, text: text(id), phase: 'commentary' })
    case 2:
      return yield* streamed(round, { kind: 'reasoning', id, text: `**Looking at ${id}**\n\n${WORDS}` })
    case 9:
      return yield* told({ type: 'item-completed', round, item: fileChange(id) })
    default:
      return yield* streamed(round, command(id))
  }
}

function* streamed(
  round: number,
  item: Extract<Item, { kind: 'agent-message' | 'reasoning' | 'command' }>,
): Generator<Told> {
  const whole = item.kind === 'command' ? item.output : item.text
  const empty = item.kind === 'command' ? { ...item, output: '', status: 'running' as const } : { ...item, text: '' }
  yield { kind: 'live', event: { type: 'item-started', round, item: empty } }
  for (let at = 0; at < whole.length; at += Math.max(DELTA, whole.length / 10)) {
    const part = whole.slice(at, at + Math.max(DELTA, whole.length / 10))
    yield { kind: 'live', event: deltaOf(round, item, part) }
  }
  yield* told({ type: 'item-completed', round, item })
}

function deltaOf(round: number, item: Item, part: string): LiveEvent {
  if (item.kind === 'command') return { type: 'output-delta', round, item: item.id, text: part }
  const source = item.kind === 'reasoning' ? 'reasoning' : 'agent-message'
  return { type: 'text-delta', round, item: item.id, source, text: part }
}

function text(id: string): string {
  return `${WORDS}\n\n- \`src/part-${id}.ts\` is **done**\n- the rest is not\n\n\`\`\`ts\nexport const part = '${id}'\n\`\`\`\n`
}

function command(id: string): Extract<Item, { kind: 'command' }> {
  const output = Array.from({ length: 20 }, (_, i) => `ok ${i} of ${id}\n`).join('')
  const ran = { status: 'completed', exitCode: 0, durationMs: 759, output } as const
  return { kind: 'command', id, command: `npm test -- part-${id}`, directory: '/work', ...ran }
}

function fileChange(id: string): Item {
  const diff = `@@ -1,3 +1,4 @@\n import { a } from './a.ts'\n-const part = 1\n+const part = '${id}'\n+export { part }\n`
  const changes = [{ path: `/work/src/part-${id}.ts`, change: 'update', movedTo: null, diff }] as const
  return { kind: 'file-change', id, status: 'completed', changes }
}

function usage(round: number): SessionEvent {
  return { type: 'usage', round, thread: `thread-${round}`, total: TOKENS, last: TOKENS, contextWindow: 258_400 }
}
