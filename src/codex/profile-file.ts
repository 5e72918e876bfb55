import { type AST, getStaticTOMLValue } from 'toml-eslint-parser'
import { type CodexToml, keyPath, tomlText, topLevel } from './codex-toml.ts'

/** The profile of an agent: what codex is to run it with. Null leaves it to the rest of codex's configuration. */
export interface AgentProfile {
  /** Lower-case letters, digits and dashes: it names a file and a table. */
  name: string
  model: string | null
  modelReasoningEffort: string | null
}

/** The keys of a profile, as codex calls them, with the values that an agent has for them. */
export function profileValues({ model, modelReasoningEffort }: AgentProfile): [key: string, value: string | null][] {
  return [
    ['model', model],
    ['model_reasoning_effort', modelReasoningEffort],
  ]
}

/**
 * What a `NAME.config.toml` says of the two keys if these lines are the person's: codemachine has not begun the file, and
 * at least one of them is there. Null if they are codemachine's to write.
 */
export function profileByHand(file: CodexToml, name: string): AgentProfile | null {
  if (headerIn(file.text, name) !== '' || ownLines(file).length === 0) return null
  return { name, model: modelIn(file), modelReasoningEffort: textIn(file, 'model_reasoning_effort') }
}

/**
 * The text of `NAME.config.toml`, brought up to date: the lines of a profile's two keys at its top level are codemachine's,
 * all others stay as they are, byte by byte. `before`: null if there is no such file; none of which `profileByHand`
 * says something.
 */
export function renderProfileFile(before: CodexToml | null, agent: AgentProfile): string {
  const ours = before ?? { text: '', program: null }
  let text = ours.text
  const lineEnd = text.includes('\r\n') ? '\r\n' : '\n'
  const missing: string[] = []
  // The last one first, so that what is found before it stays where it is.
  const found = before === null ? [] : ownLines(before).reverse()
  for (const { key, node } of found) {
    const value = profileValues(agent).find(([name]) => name === key)?.[1] ?? null
    text = value === null ? withoutLine(text, node) : splice(text, node.value.range, tomlText(value))
  }
  for (const [key, value] of profileValues(agent)) {
    if (value !== null && !found.some(each => each.key === key)) missing.push(`${key} = ${tomlText(value)}${lineEnd}`)
  }
  const header = headerIn(text, agent.name)
  return (header || headerOf(agent.name) + lineEnd) + missing.join('') + text.slice(header.length)
}

/**
 * The same file without what codemachine wrote into it; null if nothing else is in it. A file that codemachine did not
 * begin stays as it is.
 */
export function withoutProfile(before: CodexToml, name: string): string | null {
  if (headerIn(before.text, name) === '') return before.text
  let text = before.text
  for (const { node } of ownLines(before).reverse()) text = withoutLine(text, node)
  const rest = text.slice(headerIn(text, name).length)
  return rest.trim() === '' ? null : rest
}

/** The model that a profile file names; null if it names none. */
export function modelIn(file: CodexToml): string | null {
  return textIn(file, 'model')
}

function textIn(file: CodexToml, name: string): string | null {
  const line = ownLines(file).find(({ key }) => key === name)
  const value = line === undefined ? null : getStaticTOMLValue(line.node.value)
  return typeof value === 'string' ? value : null
}

function headerOf(name: string): string {
  return `# codemachine writes model and model_reasoning_effort of the agent ${name} here; all other lines are yours.`
}

/** Codemachine's first line, with its end, which an editor may have made one of Windows; empty if it is not there. */
function headerIn(text: string, name: string): string {
  const header = headerOf(name)
  const rest = text.startsWith(header) ? text.slice(header.length) : null
  const [lineEnd] = /^\r?\n/.exec(rest ?? '') ?? []
  return lineEnd === undefined ? '' : header + lineEnd
}

function ownLines(file: CodexToml): { key: string; node: AST.TOMLKeyValue }[] {
  return topLevel(file).flatMap(node => {
    if (node.type !== 'TOMLKeyValue') return []
    const path = keyPath(node)
    const key = path.length === 1 ? path[0] : undefined
    return key === 'model' || key === 'model_reasoning_effort' ? [{ key, node }] : []
  })
}

function withoutLine(text: string, { range }: AST.TOMLKeyValue): string {
  const start = text.lastIndexOf('\n', range[0] - 1) + 1
  const end = text.indexOf('\n', range[1])
  return splice(text, [start, end === -1 ? text.length : end + 1], '')
}

function splice(text: string, [start, end]: AST.Range, value: string): string {
  return text.slice(0, start) + value + text.slice(end)
}
