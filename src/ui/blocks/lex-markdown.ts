import { Lexer, type MarkedToken, type Token } from 'marked'

// Deeper than any text that a person would read; the lexer calls itself for each level.
const TOO_DEEP = /^ *(?:(?:>|(?:[-*+]|\d{1,9}[.)])[ ]) *){20}|^ {60,}(?:[-*+>]|\d{1,9}[.)] )/m
// The time for a paragraph grows with the square of these, quickest for the underscore.
const MOST_DELIMITERS = 400
const MOST_UNDERSCORES = 100

/** The blocks of a Markdown text. One that was made to keep a reader busy, or to break it, is a plain text. */
export function lexMarkdown(text: string): MarkedToken[] {
  if (TOO_DEEP.test(text)) return [plainText(text)]
  try {
    const lexer = new Lexer({ gfm: true })
    const blocks = lexer.blockTokens(text, [])
    for (const { src, tokens } of lexer.inlineQueue) {
      if (isTooCostly(src)) tokens.push(plainText(src))
      else lexer.inlineTokens(src, tokens)
    }
    return closed(blocks)
  } catch {
    // The lexer refuses what it does not get through; the text is still there to be read.
    return [plainText(text)]
  }
}

/** The inline Markdown of a text whose blocks mean nothing. One that was made to keep a reader busy is a plain text. */
export function lexInline(text: string): MarkedToken[] {
  if (isTooCostly(text)) return [plainText(text)]
  try {
    return closed(new Lexer({ gfm: true }).inlineTokens(text, []))
  } catch {
    return [plainText(text)]
  }
}

/** The lexer's tokens as the closed union that they are as long as it has no extensions. */
export function closed(tokens: readonly Token[]): MarkedToken[] {
  return tokens as MarkedToken[]
}

function isTooCostly(text: string): boolean {
  const count = (what: RegExp) => text.match(what)?.length ?? 0
  return text.length > MOST_UNDERSCORES && (count(/[*_~[\]`<!]/g) > MOST_DELIMITERS || count(/_/g) > MOST_UNDERSCORES)
}

function plainText(text: string): MarkedToken {
  return { type: 'text', raw: text, text, escaped: true }
}
