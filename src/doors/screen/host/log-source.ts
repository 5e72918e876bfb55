import type { Clock } from '../../../base/clock.ts'
import type { Recorded } from '../../../core/events/events.ts'
import { fold } from '../../../core/state/fold.ts'
import { emptyState } from '../../../core/state/state.ts'
import { followJournal } from '../../../session/records/journal.ts'
import type { Records } from '../../../session/records/records.ts'
import { eventLines } from '../blocks/event-lines.ts'
import { LineBuffer, type PagerSource } from '../pager/source.ts'
import type { Theme } from '../terminal/theme.ts'

interface LogSourceOptions {
  records: Records
  id: string
  clock: Clock
  /** Ends the reading. */
  signal: AbortSignal
  columns: number
  theme: Theme
  /** What the reading has failed with. */
  onFailure(error: unknown): void
}

/** The lines of a log, and the rounds that they belong to. */
interface LogSource extends PagerSource {
  /** The round that a line belongs to, by its index; null before the first one, and after the last. */
  roundOf(index: number): number | null
}

/** The whole log of a session for the pager; it grows as long as it is read. */
export function openLogSource(options: LogSourceOptions): LogSource {
  const { signal, onFailure } = options
  const listeners = new Set<(gone: number) => void>()
  let reading = new AbortController()
  let log = read(options.columns)

  function read(columns: number): ReturnType<typeof linesFor> {
    const kept = linesFor(options, columns)
    kept.lines.onGrow(gone => {
      for (const listener of listeners) listener(gone)
    })
    const over = AbortSignal.any([signal, reading.signal])
    const { records, id, clock } = options
    const events = followJournal(records.journal(id), { clock, signal: over, isOver: async () => false })
    kept.lines.read(events, over).catch(onFailure)
    return kept
  }

  return {
    get count() {
      return log.lines.count
    },
    line: index => log.lines.line(index),
    get isWhole() {
      return log.hasEnded()
    },
    roundOf: index => log.roundOf(log.lines.numberOf(index)),
    onGrow: listener => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    resize: columns => {
      reading.abort()
      reading = new AbortController()
      log = read(columns)
    },
  }
}

function linesFor({ records, id, theme }: LogSourceOptions, columns: number) {
  let state = emptyState(id)
  /** The number of the first line of each round, and of what is in none. */
  const begins: { line: number; round: number | null }[] = []
  const lines: LineBuffer<Recorded> = new LineBuffer<Recorded>({
    render: event => {
      // The last line of a round is the one that says how it ended.
      const before = state.running?.round
      state = fold(state, event, records.templates)
      const round = before ?? state.running?.round ?? null
      if (begins.at(-1)?.round !== round) begins.push({ line: lines.nextNumber, round })
      return eventLines(event, state, { columns, theme, full: true })
    },
  })
  const roundOf = (number: number) => begins.findLast(({ line }) => line <= number)?.round ?? null
  return { lines, roundOf, hasEnded: () => state.ended !== null }
}
