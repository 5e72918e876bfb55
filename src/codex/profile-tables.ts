import { getStaticTOMLValue } from 'toml-eslint-parser'
import { type CodexToml, keyPath, parseCodexToml, tomlText, topLevel } from './codex-toml.ts'
import { type AgentProfile, profileValues } from './profile-file.ts'

const BEGIN = '# codemachine: profiles of the agents begin (written anew at every start)'
/** The same, where codemachine has also ended the line before. */
const BEGIN_LINE_ENDED =
  '# codemachine: profiles of the agents begin (written anew at every start, as is the line end before)'
const END = '# codemachine: profiles of the agents end'

/** A `config.toml`, taken apart. */
export interface ProfileTables {
  /** What is not codemachine's, byte by byte. */
  rest: string
  /** The profiles that the person wrote, by name. */
  byHand: ReadonlyMap<string, AgentProfile>
  /** Those that codemachine wrote. */
  own: ReadonlyMap<string, AgentProfile>
}

/** Takes one apart; `path` is its name in the `UserError` that it throws if the rest alone is not valid. */
export function takeTablesOut(config: CodexToml, path: string): ProfileTables {
  const { text } = config
  const block = blockIn(text)
  if (block === null) return { rest: text, byHand: profilesIn(config), own: new Map() }
  const cut: [number, number][] = []
  for (const node of topLevel(config)) {
    if (node.type !== 'TOMLTable' || node.range[0] < block.start || node.range[0] >= block.end) continue
    // Codex writes tables of its own into the block too, for its end is only a comment.
    const [first, , ...deeper] = keyPath(node)
    if (first === 'profiles' && deeper.length === 0) cut.push([node.range[0], endOfLine(text, node.range[1])])
  }
  const inside = without(text.slice(0, block.end), cut).slice(block.start)
  const left = inside
    .split('\n')
    .filter(line => !isBegin(line) && line.trimEnd() !== END)
    .join('\n')
  const after = (left.trim() === '' ? '' : left) + text.slice(block.end)
  const before = text.slice(0, block.start)
  const isEnded = after === '' && text.startsWith(BEGIN_LINE_ENDED, block.start)
  const rest = (isEnded ? before.replace(/\n$/, '') : before) + after
  const ours = profilesIn(config)
  const theirs = profilesIn({ text: rest, program: parseCodexToml(rest, path) })
  return { rest, byHand: theirs, own: new Map([...ours].filter(([name]) => !theirs.has(name))) }
}

/** The text of `config.toml` with the tables of these agents in one block at its end. */
export function withTables(rest: string, agents: readonly AgentProfile[]): string {
  if (agents.length === 0) return rest
  const tables = agents.flatMap(agent => [
    `[profiles.${agent.name}]`,
    ...profileValues(agent).flatMap(([key, value]) => (value === null ? [] : [`${key} = ${tomlText(value)}`])),
  ])
  const isEnded = rest === '' || rest.endsWith('\n')
  const block = [isEnded ? BEGIN : BEGIN_LINE_ENDED, ...tables, END].join('\n')
  return `${rest}${isEnded ? '' : '\n'}${block}\n`
}

function isBegin(line: string): boolean {
  return [BEGIN, BEGIN_LINE_ENDED].includes(line.trimEnd())
}

/** Where the block is, whole lines; null if there is none that begins and ends. */
function blockIn(text: string): { start: number; end: number } | null {
  const lines = [...text.matchAll(/^.*(?:\n|$)/gm)].map(match => ({ at: match.index, text: match[0] }))
  const end = lines.findLastIndex(line => line.text.trimEnd() === END)
  const start = lines.slice(0, Math.max(0, end)).findLastIndex(line => isBegin(line.text))
  const [first, last] = [lines[start], lines[end]]
  return first === undefined || last === undefined ? null : { start: first.at, end: last.at + last.text.length }
}

function endOfLine(text: string, at: number): number {
  const newline = text.indexOf('\n', at)
  return newline === -1 ? text.length : newline + 1
}

function without(text: string, ranges: readonly [number, number][]): string {
  return [...ranges].reverse().reduce((left, [start, end]) => left.slice(0, start) + left.slice(end), text)
}

function profilesIn(config: CodexToml): Map<string, AgentProfile> {
  const profiles: unknown = getStaticTOMLValue(config.program).profiles
  if (typeof profiles !== 'object' || profiles === null) return new Map()
  return new Map(
    Object.entries(profiles).map(([name, profile]) => [
      name,
      { name, model: textIn(profile, 'model'), modelReasoningEffort: textIn(profile, 'model_reasoning_effort') },
    ]),
  )
}

function textIn(table: unknown, key: string): string | null {
  const value: unknown = typeof table === 'object' && table !== null ? Reflect.get(table, key) : null
  return typeof value === 'string' ? value : null
}
