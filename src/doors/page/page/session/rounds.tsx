import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import type { ReportRound } from '../../../../tell/report/report-data.ts'
import { formatDuration, formatTokens } from '../../../../tell/words/numbers.ts'
import { connection, get, Refused } from '../client.ts'
import type { Card } from '../model.ts'
import { Reading, useAgainOn, useOver, useRead, VirtualList } from '../parts.tsx'
import { TEXTS } from '../texts.ts'

const PAGE = 200
/** So many pages of rounds are kept. */
const MOST_PAGES = 10

/** The rounds of a session, which may be ten thousand: read as they come in sight. */
class RoundPages {
  readonly pages = new Map<number, readonly ReportRound[]>()
  /** Null: it has not been read yet. */
  total: number | null = null
  readonly #place: string
  readonly #reading = new Set<number>()

  constructor(place: string) {
    this.#place = place
  }

  at(index: number): ReportRound | null {
    return this.pages.get(Math.floor(index / PAGE))?.[index % PAGE] ?? null
  }

  /** Reads those that are missing; true if some have come. */
  async read(from: number, to: number, signal: AbortSignal): Promise<boolean> {
    let hasCome = false
    for (let page = Math.floor(from / PAGE); page <= Math.floor(to / PAGE); page += 1) {
      if (this.pages.has(page) || this.#reading.has(page)) continue
      hasCome = (await this.#readPage(page, signal)) || hasCome
    }
    return hasCome
  }

  /** Reads the last page again, to which more come. */
  async renew(signal: AbortSignal): Promise<void> {
    await this.#readPage(Math.max(0, Math.floor(((this.total ?? 0) - 1) / PAGE)), signal)
  }

  async #readPage(page: number, signal: AbortSignal): Promise<boolean> {
    this.#reading.add(page)
    try {
      const path = `sessions/${this.#place}/rounds?from=${page * PAGE}&count=${PAGE}`
      const { total, rounds } = await get<{ total: number; rounds: readonly ReportRound[] }>(path, signal)
      this.total = total
      this.pages.delete(page)
      this.pages.set(page, rounds)
      const [oldest] = this.pages.keys()
      if (this.pages.size > MOST_PAGES && oldest !== undefined) this.pages.delete(oldest)
      return true
    } catch (error) {
      if (error instanceof Refused || signal.aborted) return false
      throw error
    } finally {
      this.#reading.delete(page)
    }
  }
}

/** The rounds on a timeline: one line each, as long as it took. */
export function Rounds({ card: { key, report } }: { card: Card }) {
  const pages = useRef<RoundPages | null>(null)
  pages.current ??= new RoundPages(key)
  const { current } = pages
  const [, setRevision] = useState(0)
  const redraw = useCallback(() => setRevision(each => each + 1), [])
  const over = useOver()
  // A round that has begun or ended is news.
  const news = `${report?.roundsUsed ?? 0} ${report?.round?.round ?? ''}`
  // biome-ignore lint/correctness/useExhaustiveDependencies: it is read again when there is news
  useEffect(() => {
    void current.renew(over.signal).then(redraw)
  }, [news, current, redraw])
  useEffect(
    () =>
      connection.subscribe(is => {
        if (is === 'open' && current.total === null) void current.renew(over.signal).then(redraw)
      }),
    [current, over, redraw],
  )
  const onRange = (from: number, to: number) => {
    void current.read(from, to, over.signal).then(hasCome => hasCome && redraw())
  }
  if (current.total === null) return <Reading problem="" />
  if (current.total === 0) return <p class="quiet">No rounds yet.</p>
  const longest = Math.max(1, ...[...current.pages.values()].flat().map(({ durationMs }) => durationMs))
  const indexes = Array.from({ length: current.total }, (_, index) => index)
  return (
    <div>
      <p class="quiet">{TEXTS.roundsCount(current.total)}</p>
      <VirtualList
        class="timeline"
        label="Timeline of the rounds: duration of each, colored by its end"
        items={indexes}
        keyOf={index => index}
        height={44}
        sticksToEnd
        onRange={onRange}
      >
        {index => <Round place={key} round={current.at(index)} longest={longest} />}
      </VirtualList>
    </div>
  )
}

function Round({ place, round, longest }: { place: string; round: ReportRound | null; longest: number }) {
  if (round === null) return <div class="round">{TEXTS.reading}</div>
  const { outcome, durationMs, purpose, files, message, claim, tokens } = round
  const tone = outcome === null ? 'running' : outcome === 'worked' ? 'good' : 'bad'
  const facts = [
    purpose,
    outcome === null ? 'goes on' : outcome,
    formatDuration(durationMs),
    TEXTS.files(files),
    tokens === null ? null : formatTokens(tokens),
    claim === null ? null : `claim ${claim}`,
  ]
  return (
    <div class={`round ${tone}`}>
      <b>{`Round ${round.round}`}</b>
      <meter min={0} max={longest} value={durationMs} aria-label={formatDuration(durationMs)} />
      <span class="facts">{facts.filter(each => each !== null).join(' · ')}</span>
      {message !== null && <span class="quiet">{message}</span>}
      {files > 0 && (
        <a class="of-round" href={`#/s/${place}/changes?round=${round.round}`}>
          Show changes
        </a>
      )}
    </div>
  )
}

interface Task {
  id: string
  title: string
  status: keyof typeof TEXTS.marks
  phase: string | null
  who: string | null
}

/** The tasks of a session, by phase. */
export function Tasks({ card: { key, report } }: { card: Card }) {
  const { value, problem, again } = useRead<{ tasks: readonly Task[] | null }>(`sessions/${key}/board`)
  const news = `${report?.tasks?.done} ${report?.tasks?.total} ${report?.tasks?.current?.id} ${report?.roundsUsed}`
  useAgainOn(news, again)
  if (value === null) return <Reading problem={problem} />
  if (value.tasks === null || value.tasks.length === 0) return <p class="quiet">No tasks yet.</p>
  const phases = [...Map.groupBy(value.tasks, ({ phase }) => phase ?? '')]
  return (
    <div class="board">
      {phases.map(([phase, tasks]) => (
        <section key={phase} aria-label={phase === '' ? TEXTS.tasks : phase}>
          {phase !== '' && <h2>{phase}</h2>}
          <ul>
            {tasks.map(({ id, title, status, who }) => (
              <li key={id} class={`task ${status}`}>
                <span class="mark">{TEXTS.marks[status]}</span>
                <span>
                  <b>{id}</b> {title}
                  {who !== null && <span class="quiet"> · {who}</span>}
                </span>
              </li>
            ))}
          </ul>
        </section>
      ))}
    </div>
  )
}
