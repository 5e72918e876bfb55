const WAIT_MS = 60_000

/** What is waited for: a text in one row, a pattern over the rows joined by newlines, or anything about the rows. */
export type Awaited = string | RegExp | ((rows: readonly string[]) => boolean)

export interface WaitOptions {
  /** 60,000 if not said. */
  withinMs?: number
}

/** Where it is looked for. */
interface Watched {
  read(): string[]
  /** What an error shows. */
  screen(): string[]
  /** Called whenever something may have changed. */
  watchers: Set<() => void>
  isOver(): boolean
}

/** Resolves when the rows show it; rejects, with the screen, after a bounded time or when the program is over. */
export function waitFor(what: Awaited, watched: Watched, { withinMs = WAIT_MS }: WaitOptions = {}): Promise<void> {
  const { read, screen, watchers, isOver } = watched
  return new Promise((resolve, reject) => {
    const finish = (problem: string | null) => {
      clearTimeout(bound)
      watchers.delete(look)
      if (problem === null) resolve()
      else reject(new Error(`${problem} Waited for ${what}. The screen:\n${framed(screen())}`))
    }
    const look = () => {
      if (shows(what, read())) finish(null)
      else if (isOver()) finish('The program has ended.')
    }
    const bound = setTimeout(() => finish(`Not within ${withinMs} ms.`), withinMs)
    watchers.add(look)
    look()
  })
}

function shows(what: Awaited, rows: readonly string[]): boolean {
  if (typeof what === 'function') return what(rows)
  if (typeof what === 'string') return rows.some(row => row.includes(what))
  return what.test(rows.join('\n'))
}

function framed(rows: readonly string[]): string {
  const last = rows.findLastIndex(row => row !== '')
  return rows
    .map(row => `| ${row}`)
    .slice(0, last + 1)
    .join('\n')
}
