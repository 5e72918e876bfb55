import { Lexer, type MarkedToken, type Token } from 'marked'

// Nesting deeper than in any real text; the lexer is recursive.
const TOO_DEEP = /^ *(?:(?:>|(?:[-*+]|\d{1,9}[.)])[ ]) *){20}|^ {60,}(?:[-*+>]|\d{1,9}[.)] )/m
// The lexer's time for a paragraph grows with the square of these counts, most of all for the underscore.
const MOST_DELIMITERS = 400
const MOST_UNDERSCORES = 100

/** Returns the blocks of a Markdown text. A text that is too costly or fails in the lexer is one plain block. */
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
    // The lexer throws on texts that it cannot parse; they are shown unchanged.
    return [plainText(text)]
  }
}

/** Returns the inline tokens of a text without blocks; a text too costly for the lexer is one plain token. */
export function lexInline(text: string): MarkedToken[] {
  if (isTooCostly(text)) return [plainText(text)]
  try {
    return closedTokens(new Lexer({ gfm: true }).inlineTokens(text, []))
  } catch {
    return [plainText(text)]
  }
}

/** Returns the lexer's tokens as a closed union, which is correct without lexer extensions. */
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

/** Decodes the most common entities. */
export function decodeEntities(text: string): string {
  return text.includes('&') ? text.replace(/&(amp|lt|gt|quot|#39|nbsp);/g, (all, name) => ENTITIES[name] ?? all) : text
}

/** Returns a code block's language: the first word after its fence; '': none. */
export function languageOf(info: string | undefined): string {
  return (info ?? '').trim().split(/[\s,{:]/, 1)[0] ?? ''
}
