import { type TomlNode, type TomlSpot, tomlNodeAt, tomlProgram, tomlTree } from '../../../platform/toml.ts'
import { checkToml } from '../../../platform/toml-check.ts'
import { flowFileSchema, type Written } from './flow-schema.ts'
import { type Mistake, MOST_STEPS } from './plan.ts'

/** A file as text; `file`: its name in mistakes. */
export interface FlowText {
  file: string
  text: string
}

/** A file of a workflow, checked by itself; or all of them as one. */
export interface ReadPart {
  text: string
  tree: TomlNode
  value: Written
  mistakes: readonly Mistaken[]
  /** Text and default engine of each included file. */
  included?: ReadonlyMap<string, { text: string; engine: string | undefined }>
}

/** A mistake; without a file, it is in the file of the workflow itself. */
export type Mistaken = Omit<Mistake, 'file'> & { file?: string }

/** Puts agents, variables and steps of the included files before those of the file. */
export function withIncluded(main: ReadPart, files: readonly FlowText[], name: string): ReadPart {
  const { parts, known, mistakes } = readIncluded(files)
  if (files.length === 0) return main
  mistakes.push(...main.mistakes)
  const all = [...parts, main]
  const [content, value] = [new Map(membersAt(main.tree)), { ...main.value }]
  for (const key of ['agents', 'vars'] as const) {
    const members = new Map<string, TomlNode>()
    for (const [member, node] of all.flatMap(({ tree }) => [...membersAt(tree, key)])) {
      const first = members.get(member)
      if (first === undefined) members.set(member, node)
      else
        mistakes.push({ ...placeOf(node), problem: `${spotIn(first, name)} has this name already; change one of them` })
    }
    if (members.size > 0) content.set(key, { ...main.tree, content: members })
    Object.assign(value, { [key]: Object.assign({}, ...all.map(part => part.value[key] ?? {})) })
  }
  const steps = all.flatMap(({ tree }) => {
    const node = tomlNodeAt(tree, ['workflow', 'steps'])?.content
    return Array.isArray(node) ? node : []
  })
  const own = tomlNodeAt(main.tree, ['workflow'])
  if (own !== null) {
    content.set('workflow', { ...own, content: new Map([...membersAt(own), ['steps', { ...own, content: steps }]]) })
    value.workflow = { ...value.workflow, steps: all.flatMap(part => part.value.workflow?.steps ?? []) }
    const beyond = steps[MOST_STEPS]
    if (beyond !== undefined)
      mistakes.push({ ...placeOf(beyond), problem: `is beyond the ${MOST_STEPS} steps that all files may have` })
  } else if (tomlNodeAt(main.tree, ['workflows']) !== null)
    mistakes.push({
      ...placeOf(tomlNodeAt(main.tree, ['include']) ?? main.tree),
      problem: 'works only with [workflow]',
    })
  return { ...main, tree: { ...main.tree, content }, value, mistakes, included: known }
}

/** Reads each included file by itself. */
function readIncluded(files: readonly FlowText[]) {
  const mistakes: Mistaken[] = []
  const known = new Map<string, { text: string; engine: string | undefined }>()
  const parts: ReadPart[] = []
  for (const { file, text } of files) {
    const program = tomlProgram(text)
    if ('problem' in program) {
      mistakes.push({ file, place: '', ...program })
      continue
    }
    const tree = ofFile(tomlTree({ text, program }), file)
    const { value, mistakes: own } = checkToml(flowFileSchema, tree)
    mistakes.push(...own.map(each => ({ file, ...each })))
    for (const key of ['engines', 'workflows']) {
      const node = tomlNodeAt(tree, [key])
      if (node !== null)
        mistakes.push({ file, place: key, ...node.key, problem: 'does not work in an included file; leave it out' })
    }
    known.set(file, { text, engine: value.defaults?.engine })
    parts.push({ text, tree, value, mistakes: [] })
  }
  return { parts, known, mistakes }
}

/** Marks a node, and all in it, as of an included file. */
function ofFile(node: TomlNode, file: string): TomlNode {
  node.file = file
  if (typeof node.content === 'object' && 'values' in node.content)
    for (const each of node.content.values()) ofFile(each, file)
  return node
}

function membersAt(tree: TomlNode, ...path: string[]): ReadonlyMap<string, TomlNode> {
  const content = tomlNodeAt(tree, path)?.content
  return content instanceof Map ? content : new Map()
}

function placeOf({ path, key, file }: TomlNode): TomlSpot & { place: string; file?: string } {
  return { place: path, line: key.line, column: key.column, ...(file === undefined ? {} : { file }) }
}

function spotIn({ file, key }: TomlNode, main: string): string {
  return `${file ?? main}:${key.line}:${key.column}`
}
