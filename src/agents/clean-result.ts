import { stripVTControlCharacters } from 'node:util'

/**
 * What an agent said last, without what codex puts around it: colours, the header and what came before the last answer
 * where a whole transcript was caught, the count of tokens, marks for citations and for codex's own apps.
 */
export function cleanResult(text: string): string {
  const plain = stripVTControlCharacters(text).replaceAll('\r\n', '\n')
  return withoutMemoryNotes(lastAnswer(plain.split('\n')).join('\n'))
    .replace(/\n(\[[^\]\n]*\] )?tokens used:?\s+[\d,.]+\s*$/, '')
    .replace(/ ?【F:([^【†】\n]+)†L(\d+)[^【】\n]*】/g, ' ($1:$2)')
    .replace(/^::[a-z][a-z-]*\{[^\n]*\}$/gm, '')
    .trim()
}

/** Of a transcript what stands after the last line that says who speaks: codex. Older versions put the time before it. */
function lastAnswer(lines: readonly string[]): readonly string[] {
  const header = lines.findIndex(line => /^(\[[^\]]*\] )?OpenAI Codex v\d/.test(line))
  // Anybody may quote the header; before a transcript stand only lines that say how codex was started.
  if (header === -1 || header > 5 || !/^-{4,}$/.test(lines[header + 1] ?? '')) return lines
  const speaks = lines.findLastIndex(line => /^(\[[^\]]*\] )?codex$/.test(line))
  if (speaks > header) return lines.slice(speaks + 1)
  const ends = lines.findIndex((line, index) => index > header + 1 && /^-{4,}$/.test(line))
  return lines.slice(ends + 1)
}

/** What codex has an answer say about memories of its own. */
function withoutMemoryNotes(text: string): string {
  const [before = '', ...noted] = text.split(NOTES_START)
  return noted.reduce((all, part) => {
    const end = part.indexOf(NOTES_END)
    return end === -1 ? `${all}${NOTES_START}${part}` : all + part.slice(end + NOTES_END.length)
  }, before)
}

const NOTES_START = '<oai-mem-citation>'
const NOTES_END = '</oai-mem-citation>'
