import type { MarkedToken, Token, Tokens } from 'marked'
import { closedTokens, decodeEntities, languageOf, lexMarkdown } from '../../../base/markdown-lexer.ts'
import { oneLine } from '../../words/safe-text.ts'
import { type Html, html } from './html.ts'

/**
 * The Markdown of an agent as HTML: headings, lists, tables, code, emphasis. Nothing in it is a link or an image: the address
 * stands behind the words. HTML in it is shown as it is written.
 */
export function markdownHtml(text: string): Html {
  return html`<div class="prose">${lexMarkdown(text).map(blockHtml)}</div>`
}

function blocksHtml(tokens: readonly Token[]): Html[] {
  return closedTokens(tokens).map(blockHtml)
}

function blockHtml(block: MarkedToken): Html {
  switch (block.type) {
    case 'paragraph':
      return html`<p>${inlineHtml(block.tokens)}</p>`
    case 'text':
      return html`<p>${inlineHtml(block.tokens ?? [block])}</p>`
    case 'heading':
      return html`<h4>${inlineHtml(block.tokens)}</h4>`
    case 'code':
      return codeHtml(block)
    case 'list':
      return listHtml(block)
    case 'blockquote':
      return html`<blockquote>${blocksHtml(block.tokens)}</blockquote>`
    case 'table':
      return tableHtml(block)
    case 'hr':
      return html`<hr>`
    case 'html':
      return html`<p>${block.text.trimEnd()}</p>`
    // Link definitions, and the space between blocks; a list draws its checkboxes itself.
    case 'def':
    case 'space':
    case 'checkbox':
      return html``
    // Inline tokens, which never stand on their own.
    default:
      return html`<p>${inlineHtml([block])}</p>`
  }
}

function codeHtml({ text, lang }: Tokens.Code): Html {
  const language = languageOf(lang)
  return html`${language === '' ? null : html`<small>${oneLine(language, LANGUAGE)}</small>`}<pre>${text}</pre>`
}

const LANGUAGE = 30

function listHtml({ items, ordered, start }: Tokens.List): Html {
  const rows = items.map(item => {
    const box = item.task ? html`${item.checked ? '☑' : '☐'} ` : null
    const [first, ...rest] = closedTokens(item.tokens).filter(({ type }) => type !== 'checkbox')
    // What a tight list has is text, which is no paragraph of its own.
    const begin = first?.type === 'text' ? inlineHtml(first.tokens ?? [first]) : first && blockHtml(first)
    return html`<li>${box}${begin ?? null}${rest.map(blockHtml)}</li>`
  })
  if (!ordered) return html`<ul>${rows}</ul>`
  return html`<ol start="${start === '' ? 1 : start}">${rows}</ol>`
}

function tableHtml({ header, rows }: Tokens.Table): Html {
  const head = header.map(({ tokens }) => html`<th scope="col">${inlineHtml(tokens)}</th>`)
  const body = rows.map(row => html`<tr>${row.map(({ tokens }) => html`<td>${inlineHtml(tokens)}</td>`)}</tr>`)
  return html`<div class="wide"><table><thead><tr>${head}</tr></thead><tbody>${body}</tbody></table></div>`
}

function inlineHtml(tokens: readonly Token[]): Html[] {
  return closedTokens(tokens).map(partHtml)
}

function partHtml(token: MarkedToken): Html {
  switch (token.type) {
    case 'text':
      return html`${token.tokens ? inlineHtml(token.tokens) : token.escaped ? token.text : decodeEntities(token.text)}`
    case 'strong':
      return html`<strong>${inlineHtml(token.tokens)}</strong>`
    case 'em':
      return html`<em>${inlineHtml(token.tokens)}</em>`
    case 'del':
      return html`<del>${inlineHtml(token.tokens)}</del>`
    case 'codespan':
      return html`<code>${token.text}</code>`
    case 'link':
      return linkHtml(token)
    case 'image':
      return html`${token.text} <small>(image: ${token.href})</small>`
    case 'br':
      return html`<br>`
    case 'escape':
      return html`${token.text}`
    case 'checkbox':
      return html``
    // Shown as it is written.
    default:
      return html`${token.raw}`
  }
}

function linkHtml({ tokens, text, href }: Tokens.Link): Html {
  const isShown = href === text || href === `mailto:${text}` || href === `http://${text}`
  return html`${inlineHtml(tokens)}${isShown ? null : html` <small>(${href})</small>`}`
}
