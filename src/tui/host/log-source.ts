import type { Clock } from '../../base/clock.ts'
import type { Recorded } from '../../core/events/events.ts'
import { fold } from '../../core/state/fold.ts'
import { emptyState } from '../../core/state/state.ts'
import { followJournal } from '../../records/journal.ts'
import type { Records } from '../../records/records.ts'
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

/** The whole log of a session for the pager; it grows as long as it is read. */
export function openLogSource(options: LogSourceOptions): PagerSource {
  const { signal, onFailure } = options
  const listeners = new Set<(gone: number) => void>()
  let reading = new AbortController()
  let lines = read(options.columns)

  function read(columns: number): LineBuffer<Recorded> {
    const kept = linesFor(options, columns)
    kept.onGrow(gone => {
      for (const listener of listeners) listener(gone)
    })
    const over = AbortSignal.any([signal, reading.signal])
    const { records, id, clock } = options
    const events = followJournal(records.journal(id), { clock, signal: over, isOver: async () => false })
    kept.read(events, over).catch(onFailure)
    return kept
  }

  return {
    get count() {
      return lines.count
    },
    line: index => lines.line(index),
    onGrow: listener => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    resize: columns => {
      reading.abort()
      reading = new AbortController()
      lines = read(columns)
    },
  }
}

function linesFor({ records, id, theme }: LogSourceOptions, columns: number): LineBuffer<Recorded> {
  let state = emptyState(id)
  return new LineBuffer<Recorded>({
    render: event => {
      state = fold(state, event, records.templates)
      return eventLines(event, state, { columns, theme, full: true })
    },
  })
}
