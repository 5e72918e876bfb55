import { Lexer, type MarkedToken, type Token } from 'marked'

// Nesting deeper than in any real text; the lexer is recursive.
const TOO_DEEP = /^ *(?:(?:>|(?:[-*+]|\d{1,9}[.)])[ ]) *){20}|^ {60,}(?:[-*+>]|\d{1,9}[.)] )/m
// The lexer's time for a paragraph grows with the square of these counts, most of all for the underscore.
const MOST_DELIMITERS = 400
const MOST_UNDERSCORES = 100

/** The blocks of a Markdown text. One that would take the lexer too long, or make it fail, is one block of plain text. */
export function lexMarkdown(text: string): MarkedToken[] {
  if (TOO_DEEP.test(text)) return [plainText(text)]
  try {
    const lexer = new Lexer({ gfm: true })
    const blocks = lexer.blockTokens(text, [])
    for (const { src, tokens } of lexer.inlineQueue) {
      if (isTooCostly(src)) tokens.push(plainText(src))
      else lexer.inlineTokens(src, tokens)
    }
    return closedTokens(blocks)
  } catch {
    // The lexer throws on what it cannot parse; the text is shown as it is.
    return [plainText(text)]
  }
}

/** The inline tokens of a text that has no blocks. One that would take the lexer too long is one token of plain text. */
export function lexInline(text: string): MarkedToken[] {
  if (isTooCostly(text)) return [plainText(text)]
  try {
    return closedTokens(new Lexer({ gfm: true }).inlineTokens(text, []))
  } catch {
    return [plainText(text)]
  }
}

/** The lexer's tokens as a closed union, which they are while it has no extensions. */
export function closedTokens(tokens: readonly Token[]): MarkedToken[] {
  return tokens as MarkedToken[]
}

function isTooCostly(text: string): boolean {
  const count = (what: RegExp) => text.match(what)?.length ?? 0
  return text.length > MOST_UNDERSCORES && (count(/[*_~[\]`<!]/g) > MOST_DELIMITERS || count(/_/g) > MOST_UNDERSCORES)
}

function plainText(text: string): MarkedToken {
  return { type: 'text', raw: text, text, escaped: true }
}

const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'", nbsp: ' ' }

/** The text with its commonest entities as characters. */
export function decodeEntities(text: string): string {
  return text.includes('&') ? text.replace(/&(amp|lt|gt|quot|#39|nbsp);/g, (all, name) => ENTITIES[name] ?? all) : text
}

/** The language of a code block: the first word behind its fence; '' if there is none. */
export function languageOf(info: string | undefined): string {
  return (info ?? '').trim().split(/[\s,{:]/, 1)[0] ?? ''
}
