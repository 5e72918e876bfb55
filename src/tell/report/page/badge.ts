import { cutLine } from '../../words/cells.ts'
import type { Tone } from '../../words/names.ts'
import { oneLine } from '../../words/safe-text.ts'
import type { ReportData } from '../report-data.ts'
import { headlineOf } from '../words.ts'
import { type Html, html } from './html.ts'

/** White words can be read on each of these. */
const COLOURS: Readonly<Record<Tone, string>> = {
  good: '#2f7d4f',
  warning: '#8a5d00',
  bad: '#b3372f',
  strong: '#3a6ea5',
  plain: '#3a6ea5',
  quiet: '#5b616b',
}
const NAME = '#3b4048'
const COUNT = '#50565f'

const HEIGHT = 20
const PADDING = 7
const MOST_CELLS = 40

/**
 * How a session came out as a small picture (SVG, one line, 20 pixels high): `codemachine | done, gates pass | 12/12 tasks`.
 * It stands alone: no font, no address, no script.
 */
export function badgeOf(data: ReportData): string {
  const { short, tone } = headlineOf(data)
  const { tasks } = data
  const count = tasks === null || tasks.total === 0 ? null : `${tasks.done}/${tasks.total} tasks`
  const parts = [
    { text: 'codemachine', colour: NAME },
    { text: cutLine(oneLine(short, MOST_CELLS), MOST_CELLS), colour: COLOURS[tone] },
    ...(count === null ? [] : [{ text: count, colour: COUNT }]),
  ]
  let left = 0
  const drawn = parts.map(({ text, colour }) => {
    const width = widthOf(text)
    const part = partHtml(text, colour, left, width)
    left += width + 2 * PADDING
    return part
  })
  const told = parts.map(({ text }) => text).join(' | ')
  return `${
    html`<svg xmlns="http://www.w3.org/2000/svg" width="${left}" height="${HEIGHT}" viewBox="0 0 ${left} ${HEIGHT}" role="img" aria-label="${told}"><title>${told}</title><clipPath id="r"><rect width="${left}" height="${HEIGHT}" rx="4"/></clipPath><g clip-path="url(#r)" font-family="Verdana,DejaVu Sans,Geneva,sans-serif" font-size="11" fill="#fff">${drawn}</g></svg>`
      .text
  }\n`
}

/** Its width is given, for the font of whoever looks at it may be another one. */
function partHtml(text: string, colour: string, left: number, width: number): Html {
  return html`<rect x="${left}" width="${width + 2 * PADDING}" height="${HEIGHT}" fill="${colour}"/><text x="${left + PADDING}" y="14" textLength="${width}" lengthAdjust="spacingAndGlyphs">${text}</text>`
}

/** About what Verdana takes at 11 pixels. */
function widthOf(text: string): number {
  return Math.round([...text].reduce((sum, character) => sum + cellOf(character), 0))
}

function cellOf(character: string): number {
  if (/[ijl.,:;|!' ]/.test(character)) return 3.8
  if (/[ftr()/-]/.test(character)) return 4.8
  return /[mwMW]/.test(character) ? 10 : 7
}
