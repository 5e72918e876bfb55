import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Expression, parseSync, Visitor } from 'oxc-parser'

/** A text of the source that a person or an agent may read. */
export interface SourceText {
  /** File and line, as an editor opens it. */
  place: string
  /** What is put into it stands as `…`. */
  text: string
}

/** All strings, templates and texts of JSX below `src`, and the docstrings in the files that `src/index.ts` exports from. */
export function textsOfSource(root: string): SourceText[] {
  const door = readFileSync(join(root, 'src/index.ts'), 'utf8')
  const exported = new Set([...door.matchAll(/^export .* from '\.\/(.+)'$/gm)].map(([, path]) => `src/${path}`))
  return globSync('src/**/*.{ts,tsx}', { cwd: root })
    .sort()
    .flatMap(path => textsIn(path, readFileSync(join(root, path), 'utf8'), exported.has(path)))
}

function textsIn(path: string, source: string, withDocstrings: boolean): SourceText[] {
  const texts: SourceText[] = []
  const seen = new Set<number>()
  const add = (at: number, text: string) => {
    if (seen.has(at)) return
    seen.add(at)
    texts.push({ place: `${path}:${source.slice(0, at).split('\n').length}`, text })
  }
  const { program, comments } = parseSync(path, source)
  for (const { start, value } of withDocstrings ? comments : []) {
    if (value.startsWith('*')) add(start, docstringOf(value))
  }
  new Visitor({
    ImportDeclaration: ({ source }) => void seen.add(source.start),
    BinaryExpression(node) {
      if (node.operator !== '+' || seen.has(node.start)) return
      const text = textOf(node as Expression, seen)
      if (text !== null) add(node.start, text)
    },
    Literal: node => typeof node.value === 'string' && add(node.start, node.value),
    TemplateLiteral: node => add(node.start, textOf(node, seen) ?? ''),
    JSXElement({ start, children }) {
      const text = children
        .map(child => (child.type === 'JSXText' ? child.value : child.type === 'JSXExpressionContainer' ? '…' : ' '))
        .join('')
      if (/\p{L}{2}/u.test(text)) add(start, text.replace(/\s+/g, ' '))
    },
  }).visit(program)
  return texts
}

/** A text that is put together by `+`, or null where none of its parts is one; its parts count as seen. */
function textOf(node: Expression, seen: Set<number>): string | null {
  if (node.type === 'Literal') return typeof node.value === 'string' ? node.value : null
  if (node.type === 'TemplateLiteral') return node.quasis.map(({ value }) => value.cooked ?? value.raw).join('…')
  if (node.type !== 'BinaryExpression' || node.operator !== '+') return null
  const parts = [node.left as Expression, node.right].map(each => textOf(each, seen))
  if (parts.every(part => part === null)) return null
  for (const each of [node.left, node.right]) seen.add(each.start)
  return parts.map(part => part ?? '…').join('')
}

/** The words of a docstring: its paragraphs and tags, a line each, without its example. */
function docstringOf(comment: string): string {
  return comment
    .replace(/^\s*\* ?/gm, '')
    .replace(/@example[^@]*/g, '')
    .split(/\n\s*\n|\n(?=@|- )/)
    .map(block => block.replaceAll('\n', ' '))
    .join('\n')
}
