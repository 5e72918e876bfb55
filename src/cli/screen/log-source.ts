import type { Clock } from '../../base/clock.ts'
import type { Recorded } from '../../session/events.ts'
import { fold } from '../../session/fold.ts'
import type { Records } from '../../session/records.ts'
import { emptyState } from '../../session/state.ts'
import { eventLines } from '../../ui/blocks/event-lines.ts'
import { KeptLines } from '../../ui/pager/kept-lines.ts'
import type { PagerSource } from '../../ui/pager/pager-source.ts'
import type { Theme } from '../../ui/theme.ts'
import { followJournal } from '../follow-journal.ts'

export interface LogSourceOptions {
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

  function read(columns: number): KeptLines<Recorded> {
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

function linesFor({ id, theme }: LogSourceOptions, columns: number): KeptLines<Recorded> {
  let state = emptyState(id)
  return new KeptLines<Recorded>({
    render: event => {
      state = fold(state, event)
      return eventLines(event, state, { columns, theme, full: true })
    },
  })
}
