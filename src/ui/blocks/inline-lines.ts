import type { MarkedToken, Token, Tokens } from 'marked'
import { unreachable } from '../../base/errors.ts'
import { safeText } from '../safe-text.ts'
import type { Role, Theme } from '../theme.ts'
import { closed } from './lex-markdown.ts'

/**
 * Text of a paragraph, heading or cell, painted; a line for each of its lines. A link that the terminal does not show
 * as one has its address behind it.
 */
export function inlineLines(tokens: readonly Token[], theme: Theme, roles: readonly Role[] = []): string[] {
  const lines = ['']
  const write = (text: string, styles: readonly Role[], url: string | null) => {
    // The lexer has made characters of references such as `&#27;`, which the text was safe with.
    for (const [i, part] of safeText(text).split('\n').entries()) {
      if (i > 0) lines.push('')
      const painted = styles.reduce((inner, role) => theme.paint(role, inner), part)
      lines[lines.length - 1] += url === null ? painted : theme.link(painted, url)
    }
  }
  writeTokens(tokens, { theme, roles, url: null, write })
  return lines
}

interface Inline {
  theme: Theme
  roles: readonly Role[]
  /** What the text leads to. */
  url: string | null
  write: (text: string, roles: readonly Role[], url: string | null) => void
}

function writeTokens(tokens: readonly Token[], inline: Inline): void {
  for (const token of closed(tokens)) writeToken(token, inline)
}

function writeToken(token: MarkedToken, inline: Inline): void {
  const { roles, url, write } = inline
  switch (token.type) {
    case 'text':
      if (token.tokens) writeTokens(token.tokens, inline)
      else write(token.escaped ? token.text : readable(token.text), roles, url)
      break
    case 'strong':
      writeTokens(token.tokens, { ...inline, roles: [...roles, 'strong'] })
      break
    case 'em':
      writeTokens(token.tokens, { ...inline, roles: [...roles, 'emphasis'] })
      break
    case 'codespan':
      write(hasColours(inline.theme) ? token.text : `\`${token.text}\``, [...roles, 'code'], url)
      break
    case 'link':
      writeLink(token, inline)
      break
    case 'image':
      write(`image: ${token.text}${token.text === '' ? '' : ' '}(${token.href})`, roles, url)
      break
    case 'br':
      write('\n', [], null)
      break
    case 'checkbox':
      break
    case 'paragraph':
    case 'heading':
      writeTokens(token.tokens, inline)
      break
    case 'escape':
      write(token.text, roles, url)
      break
    // Shown as it is written.
    case 'del':
    case 'html':
    case 'def':
    case 'blockquote':
    case 'code':
    case 'hr':
    case 'list':
    case 'list_item':
    case 'space':
    case 'table':
      write(token.raw, roles, url)
      break
    default:
      unreachable(token)
  }
}

function writeLink({ tokens, text, href }: Tokens.Link, inline: Inline): void {
  const { theme, roles, write } = inline
  writeTokens(tokens, { ...inline, roles: [...roles, 'link'], url: href })
  const isShown =
    theme.link('x', href) !== 'x' || href === text || href === `mailto:${text}` || href === `http://${text}`
  // The text of a link to a file is often the end of its path, which then says nothing new.
  const isPath = !/^[a-z][a-z+.-]+:/i.test(href) && href.endsWith(text)
  if (!isShown && !isPath) write(` (${href})`, [...roles, 'dim'], null)
}

/** Whether roles show as anything, or the signs that they were written with have to stay. */
export function hasColours(theme: Theme): boolean {
  return theme.paint('strong', 'x') !== 'x'
}

const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'", nbsp: ' ' }

function readable(text: string): string {
  return text.includes('&') ? text.replace(/&(amp|lt|gt|quot|#39|nbsp);/g, (all, name) => ENTITIES[name] ?? all) : text
}
