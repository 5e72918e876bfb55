import { UserError } from '../base/errors.ts'
import {
  keyPath,
  parseToml,
  type TomlSource,
  tomlInline,
  tomlNodeAt,
  tomlString,
  tomlTree,
  tomlValue,
  topLevel,
} from './toml.ts'

/**
 * Returns the text of a TOML file with this text as the value at `path`; all else stays, comments too. Throws a `UserError`
 * if the file is invalid, or has no place for the value.
 */
export function withTomlValue(file: string, path: readonly string[], value: string, source: TomlSource): string {
  const [mark = ''] = /^\uFEFF?/.exec(file) ?? []
  const text = file.slice(mark.length)
  const written = edited(text, path, tomlString(value), source)
  const there = tomlNodeAt(tomlTree(parseToml(written, source)), path)
  if (there !== null && tomlValue(there) === value) return mark + written
  throw new UserError(
    'CM0201',
    `codemachine cannot add ${path.join('.')} to ${source.name}; write this line yourself: ${path.join('.')} = ${tomlInline(value)}`,
  )
}

function edited(text: string, path: readonly string[], value: string, source: TomlSource): string {
  const file = parseToml(text, source)
  const tree = tomlTree(file)
  const node = tomlNodeAt(tree, path)?.source
  if (node !== undefined) return text.slice(0, node.range[0]) + value + text.slice(node.range[1])
  const parents = path.slice(0, -1)
  const line = (names: readonly string[]) => `${names.join('.')} = ${value}`
  const inline = parents.length === 0 ? undefined : tomlNodeAt(tree, parents)?.source
  if (inline?.type === 'TOMLInlineTable') {
    const last = inline.body.at(-1)?.range[1]
    const at = last ?? inline.range[0] + 1
    return `${text.slice(0, at)}${last === undefined ? ' ' : ', '}${line(path.slice(-1))}${last === undefined ? ' ' : ''}${text.slice(at)}`
  }
  const lines = topLevel(file)
  const table = lines.find(each => each.type === 'TOMLTable' && keyPath(each).join('.') === parents.join('.'))
  if (table?.type === 'TOMLTable')
    return withLine(text, (table.body.at(-1) ?? table.key).range[1], line(path.slice(-1)))
  // Before the first table: after it, the key would belong to the table.
  const last = lines.findLast(each => each.type === 'TOMLKeyValue')
  if (last !== undefined) return withLine(text, last.range[1], line(path))
  const newline = newlineOf(text)
  return `${line(path)}${newline}${text === '' ? '' : newline}${text}`
}

/** Returns the text with another line behind the one in which `end` lies. */
function withLine(text: string, end: number, line: string): string {
  const newline = newlineOf(text)
  const lineEnd = text.indexOf('\n', end)
  if (lineEnd === -1) return `${text}${newline}${line}${newline}`
  return `${text.slice(0, lineEnd + 1)}${line}${newline}${text.slice(lineEnd + 1)}`
}

function newlineOf(text: string): string {
  return text.includes('\r\n') ? '\r\n' : '\n'
}
