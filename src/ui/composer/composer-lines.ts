import { cutLine, widthOf } from '../cells.ts'
import { oneLine, safeText } from '../safe-text.ts'
import type { ComposerSnapshot } from './composer.ts'
import type { HistorySearch } from './history-browser.ts'
import { keepEnd } from './keep-end.ts'
import { type Drawn, type Frame, PROMPT, textLines } from './text-lines.ts'

/** The field as it is drawn, in at least one row: the text behind its prompt, or the search of the history. */
export function composerLines(snapshot: ComposerSnapshot, frame: Frame & { prompt?: string }): Drawn {
  if (snapshot.search !== null) return searchLine(snapshot.search, frame)
  return textLines(snapshot.buffer, { ...frame, prompt: frame.prompt ?? (frame.theme.symbols ? PROMPT : '> ') })
}

function searchLine({ query, texts, index }: HistorySearch, { columns, theme }: Frame): Drawn {
  const label = query !== '' && index === null ? '(nothing found) ' : '(search) '
  // The end of a long query is what is being typed.
  const asked = keepEnd(`${label}${safeText(query)}`, Math.max(1, columns - 1))
  const match = index === null ? '' : oneLine(texts[index] ?? '', columns)
  const line = cutLine(`${asked}: ${match}`, columns)
  const painted = line.startsWith(asked) ? theme.paint('accent', asked) + line.slice(asked.length) : line
  return { lines: [painted], caret: { x: widthOf(asked), y: 0 } }
}
