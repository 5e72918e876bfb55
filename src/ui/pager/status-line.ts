import { cutLine, padLine, widthOf } from '../cells.ts'
import { oneLine } from '../safe-text.ts'
import type { Theme } from '../theme.ts'
import type { Hits } from './hits.ts'

export interface PagerStatus {
  title: string
  /** Indices of the first and the last line on the screen. */
  first: number
  last: number
  count: number
  isFollowing: boolean
  hits: Hits | null
  /** Line of the hit that was gone to. */
  hit: number | null
  /** The search that is being typed, with its `/` or `?`. */
  typed: string | null
  message: string | null
}

/** The last line of the pager's screen, and in which column the cursor stands if a search is being typed. */
export function pagerStatus(
  status: PagerStatus,
  columns: number,
  theme: Theme,
): { line: string; caret: number | null } {
  const { typed } = status
  if (typed !== null) {
    // The end is what one types at.
    let shown = typed
    while (widthOf(shown) > columns - 1) shown = shown.slice(Math.max(1, shown.length - columns))
    return { line: shown, caret: widthOf(shown) }
  }
  const parts = status.message === null ? [place(status), found(status)] : [status.message, found(status)]
  const said = [...parts, status.isFollowing ? 'following' : null].filter(part => part !== null).join(' · ')
  const room = columns - widthOf(said) - KEYS.length - 4
  const title = oneLine(status.title, 80)
  const left = room > widthOf(title) ? `${title} · ${said}` : said
  const line = columns - widthOf(left) > KEYS.length + 1 ? `${padLine(left, columns - KEYS.length)}${KEYS}` : left
  return { line: theme.paint('selected', padLine(cutLine(line, columns), columns)), caret: null }
}

const KEYS = '/ search  q back'

function place({ first, last, count }: PagerStatus): string {
  if (count === 0) return 'nothing yet'
  const percent = last >= count - 1 ? 'end' : `${Math.floor((100 * (last + 1)) / count)} %`
  return `${grouped(first + 1)}–${grouped(last + 1)} of ${grouped(count)} · ${percent}`
}

function found({ hits, hit }: PagerStatus): string | null {
  if (!hits) return null
  const text = oneLine(hits.search.text, 20)
  const ordinal = hit === null ? 0 : hits.ordinal(hit)
  return `${text}: ${ordinal > 0 ? `${grouped(ordinal)} of ` : ''}${grouped(hits.count)}${hits.isComplete ? '' : '+'}`
}

/** `12,345` */
function grouped(count: number): string {
  return count.toLocaleString('en-US')
}
