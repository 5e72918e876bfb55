// biome-ignore-all lint/suspicious/noArrayIndexKey: parts of a text have no names, and never change their order
import type { Token, Tokens } from 'marked'
import type { ComponentChildren } from 'preact'
import { useMemo } from 'preact/hooks'
import { decodeEntities, lexMarkdown } from '../../../../base/markdown-lexer.ts'

/** Longer texts are shown as they are. */
const MOST_CHARS = 64 * 1024
const MOST_DEPTH = 12

/** A text of an agent: Markdown without HTML. A link is shown with where it leads, and no image is loaded. */
export function Markdown({ text }: { text: string }) {
  const drawn = useMemo(() => (text.length > MOST_CHARS ? <pre>{text}</pre> : blocks(lexMarkdown(text), 0)), [text])
  return <div class="markdown">{drawn}</div>
}

function blocks(tokens: readonly Token[], depth: number): ComponentChildren {
  return tokens.map((token, index) => <Block key={index} token={token} depth={depth} />)
}

function Block({ token, depth }: { token: Token; depth: number }): ComponentChildren {
  if (depth > MOST_DEPTH) return <p>{token.raw}</p>
  switch (token.type) {
    // Link definitions, and the space between blocks; a list draws its checkboxes itself.
    case 'space':
    case 'def':
    case 'checkbox':
      return null
    case 'heading':
      return (
        <p class="heading">
          <b>{spans(token.tokens ?? [], depth)}</b>
        </p>
      )
    case 'paragraph':
      return <p>{spans(token.tokens ?? [], depth)}</p>
    case 'text':
      return <>{token.tokens === undefined ? token.text : spans(token.tokens, depth)}</>
    case 'code':
      return <pre>{token.text}</pre>
    case 'blockquote':
      return <blockquote>{blocks(token.tokens ?? [], depth + 1)}</blockquote>
    case 'hr':
      return <hr />
    case 'list':
      return <List list={token as Tokens.List} depth={depth} />
    case 'table':
      return <Table table={token as Tokens.Table} depth={depth} />
    default:
      return <p>{token.raw}</p>
  }
}

function List({ list, depth }: { list: Tokens.List; depth: number }) {
  const items = list.items.map((item, index) => (
    <li key={index}>
      {item.task && (
        <input type="checkbox" checked={item.checked === true} disabled aria-label={item.checked ? 'done' : 'open'} />
      )}
      {blocks(item.tokens, depth + 1)}
    </li>
  ))
  return list.ordered ? <ol start={Number(list.start) || 1}>{items}</ol> : <ul>{items}</ul>
}

function Table({ table, depth }: { table: Tokens.Table; depth: number }) {
  return (
    <table>
      <thead>
        <tr>
          {table.header.map((cell, index) => (
            <th key={index}>{spans(cell.tokens, depth)}</th>
          ))}
        </tr>
      </thead>
      <tbody>
        {table.rows.map((row, index) => (
          <tr key={index}>
            {row.map((cell, column) => (
              <td key={column}>{spans(cell.tokens, depth)}</td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  )
}

function spans(tokens: readonly Token[], depth: number): ComponentChildren {
  return tokens.map((token, index) => <Span key={index} token={token} depth={depth + 1} />)
}

function Span({ token, depth }: { token: Token; depth: number }): ComponentChildren {
  if (depth > MOST_DEPTH) return <>{token.raw}</>
  switch (token.type) {
    case 'strong':
      return <b>{spans(token.tokens ?? [], depth)}</b>
    case 'em':
      return <i>{spans(token.tokens ?? [], depth)}</i>
    case 'del':
      return <s>{spans(token.tokens ?? [], depth)}</s>
    case 'codespan':
      return <code>{decodeEntities(token.text)}</code>
    case 'br':
      return <br />
    case 'escape':
      return <>{token.text}</>
    case 'text':
      return <>{token.tokens === undefined ? decodeEntities(token.text) : spans(token.tokens, depth)}</>
    case 'link':
      return <Link link={token as Tokens.Link} depth={depth} />
    default:
      // HTML and images, too: as they are written.
      return <>{token.raw}</>
  }
}

/** Only to the web, and with its target in sight. */
function Link({ link: { href, text, tokens }, depth }: { link: Tokens.Link; depth: number }) {
  const label = spans(tokens, depth)
  if (!/^https?:\/\//i.test(href))
    return (
      <>
        {label} ({href})
      </>
    )
  const isItsTarget = text === href
  return (
    <>
      <a href={href} target="_blank" rel="noopener noreferrer nofollow">
        {label}
      </a>
      {!isItsTarget && <span class="quiet"> ({href})</span>}
    </>
  )
}
