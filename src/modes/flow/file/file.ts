import { UserError } from '../../../base/errors.ts'
import { nearestName } from '../../../base/text.ts'
import { MODEL, readSteps, type StepContext } from './file/steps.ts'
import { command, filePath, line, Mistakes, named, oneOf, TableReader, text, trueOrFalse } from './file/table-reader.ts'
import { tomlTree } from './file/toml-tree.ts'
import { type Condition, FLOW_ENGINES, type FlowEngine, type Mistake, slugOf, type TemplatePart } from './plan.ts'
import { isVariableName, VARIABLE_NAME } from './references.ts'

/** A place in a workflow file; `line` and `column` from 1. */
export interface At {
  /** Such as `workflow.steps[2].output.path`, counted from 0. */
  place: string
  line: number
  column: number
}

/** A value of a workflow file that can turn out to be wrong only later, with its place. */
export interface Placed<T> extends At {
  value: T
}

/** A workflow file without mistakes of its own; no other file was looked at. */
export interface FlowFile {
  /** As the person named the file. */
  file: string
  /** `newer`: one workflow, `[workflow]`; `older`: any number of them, `[workflows.<name>]`. */
  form: 'newer' | 'older'
  /** What runs where no flag says so; null: the file does not say. */
  mock: boolean | null
  engines: Readonly<Record<'codex' | 'codemachine', FileEngine>>
  /** At least one, in the order of the file. */
  workflows: readonly FileWorkflow[]
  /** By name, in the order of the file. */
  vars: ReadonlyMap<string, Placed<FileVariable>>
}

/** What `[engines.<name>]` says. */
interface FileEngine {
  /** The program; null: the file names none. It counts only if the person's own settings or flags name the same. */
  bin: Placed<string> | null
  args: readonly string[]
}

/** A value of `[vars]`, as it is written. */
export type FileVariable =
  | { kind: 'text'; text: string }
  | { kind: 'run'; run: string }
  | { kind: 'file'; path: string }

/** One workflow of a file. */
export interface FileWorkflow extends At {
  /** Of the newer form: `name` of the file, else the name of the file itself without its ending. */
  name: string
  description: string | null
  /** From 1 to 1,000. */
  steps: readonly FileStep[]
}

/** A step as the file has it; what it left out is filled in from its agent and the defaults. */
export interface FileStep extends At {
  /** From 1. */
  index: number
  id: string
  /** Begins the names of its files: `{index}-{stem}.log`. */
  stem: string
  description: string | null
  work: FileAgentWork | FileCommandWork
  verify: readonly string[]
  retries: number
  approve: boolean
  timeoutMs: number | null
  /** It refers to earlier steps only, as `input` does. */
  when: Condition | null
  readOnly: boolean
  output: FileOutput
  /** The variables that its input and its condition name, each at its place, as often as they are named. */
  variables: readonly Placed<string>[]
}

/** A step that an agent does. */
export interface FileAgentWork {
  kind: 'agent'
  agent: string
  engine: FlowEngine
  model: string | null
  /** Of `[engines.<engine>]`. */
  args: readonly string[]
  /** The path as written, at the step or at its agent. */
  prompt: Placed<string>
  /** Empty parts where the step has no input. */
  input: Placed<readonly TemplatePart[]>
  /** The path of a JSON Schema as written. */
  schema: Placed<string> | null
  rounds: number
}

/** A step that is a command for a shell. */
export interface FileCommandWork {
  kind: 'command'
  run: string
}

/** `path`: as written, unchecked but for being a text on one line. */
export type FileOutput = { kind: 'stdout' } | { kind: 'file'; path: Placed<string>; append: boolean }

/** What is checked of a workflow file by other layers. */
export interface FileChecks {
  /** The first argument for codex that a workflow may not give; null if all are allowed. */
  refusedArgument: (args: readonly string[]) => string | null
}

/** A file with mistakes. */
export interface WrongFile {
  mistakes: readonly Mistake[]
  /** What of it could be read, for a look at the files that it names; it cannot be run. Null: nothing. */
  sound: FlowFile | null
}

/**
 * Reads the text of a workflow file. `file`: its name in mistakes, which are all there are, in the order of the file. Of an
 * older file each workflow is looked at. Pure.
 */
export function readFlowFile(content: string, file: string, checks: FileChecks): { file: FlowFile } | WrongFile {
  const tree = tomlTree(content)
  if ('problem' in tree) return { mistakes: [{ file, place: '', ...tree }], sound: null }
  const mistakes = new Mistakes(file)
  const flow = new FileReader(file, new TableReader(tree, mistakes), mistakes, checks).read()
  const found = mistakes.sorted()
  return found.length > 0 ? { mistakes: found, sound: soundOf(flow) } : { file: flow }
}

/** Without the steps of which no prompt is known. */
function soundOf(flow: FlowFile): FlowFile {
  const hasPrompt = ({ work }: FileStep) => work.kind === 'command' || work.prompt.value !== ''
  const workflows = flow.workflows.map(each => ({ ...each, steps: each.steps.filter(hasPrompt) }))
  return { ...flow, workflows }
}

/** The workflow of that name, the first where no name is given (null). Throws a `UserError` with the nearest name. */
export function workflowNamed({ file, workflows }: FlowFile, name: string | null): FileWorkflow {
  const found = name === null ? workflows[0] : workflows.find(each => each.name === name)
  if (found !== undefined) return found
  const names = workflows.map(each => each.name)
  const near = nearestName(name ?? '', names)
  const mend =
    near === null ? `the file has ${names.slice(0, 20).map(named).join(', ')}.` : `did you mean ${named(near)}?`
  throw new UserError(`${file} has no workflow ${named(name ?? '')}; ${mend}`)
}

/** A name that is shown, and begins names of files. */
const AGENT_NAME = /^[\p{L}\p{N}_](?:[\p{L}\p{M}\p{N} _.-]{0,58}[\p{L}\p{M}\p{N}_-])?$/u
const PROMPT_EXAMPLE = 'prompts/review.md'
const MOST_ARGS = 100

class FileReader {
  readonly #file: string
  readonly #root: TableReader
  readonly #mistakes: Mistakes
  readonly #checks: FileChecks

  constructor(file: string, root: TableReader, mistakes: Mistakes, checks: FileChecks) {
    this.#file = file
    this.#root = root
    this.#mistakes = mistakes
    this.#checks = checks
  }

  read(): FlowFile {
    const root = this.#root
    const name =
      root.value('name', line('a name on one line, such as "commit_flow"', 100))?.value ?? nameOfFile(this.#file)
    const defaults = root.table('defaults', '[defaults]')
    const engine = defaults?.value('engine', oneOf(FLOW_ENGINES))?.value ?? 'codex'
    const mock = defaults?.value('mock', trueOrFalse)?.value ?? null
    defaults?.refuseOthers()
    const engines = this.#engines()
    const context = { engine, engines, agents: this.#agents(), mistakes: this.#mistakes }
    const workflows = this.#workflows(name, context)
    const vars = this.#vars()
    root.hint(['steps', 'step'], 'begin each step with a line [[workflow.steps]]')
    root.hint(['engine', 'mock'], 'it belongs below a line [defaults]')
    root.refuseOthers()
    return { file: this.#file, form: root.has('workflow') ? 'newer' : 'older', mock, engines, workflows, vars }
  }

  #engines(): FlowFile['engines'] {
    const table = this.#root.table('engines', '[engines.codex]')
    const codex = this.#engine(table?.table('codex', '[engines.codex]') ?? null)
    const refused = this.#checks.refusedArgument(codex.args.map(({ value }) => value))
    if (refused !== null) {
      const [first = ''] = refused.split(' ')
      const at = codex.args.find(({ value }) => value.startsWith(first)) ?? codex.args[0]
      if (at !== undefined) {
        this.#mistakes.add(
          at,
          `a workflow may not give codex the argument ${named(refused)}; leave it out, and set it yourself`,
        )
      }
    }
    const codemachine = this.#engine(table?.table('codemachine', '[engines.codemachine]') ?? null)
    const [first] = codemachine.args
    if (first !== undefined) {
      this.#mistakes.add(
        first,
        'the engine codemachine works within the session and takes no arguments; leave them out',
      )
    }
    table?.hint(['mock'], 'the engine mock has nothing to be set; leave the table out')
    table?.refuseOthers()
    return {
      codex: { bin: codex.bin, args: codex.args.map(({ value }) => value) },
      codemachine: { bin: codemachine.bin, args: [] },
    }
  }

  #engine(table: TableReader | null): { bin: Placed<string> | null; args: readonly Placed<string>[] } {
    if (table === null) return { bin: null, args: [] }
    const bin = table.verbatim('bin', line('the name or path of a program, such as "codex"', 1000))
    const args = table.verbatimList('args', line('a text on one line, such as "--color=never"', 1000), MOST_ARGS)
    table.hint(['env'], 'a file sets no variables of the environment; set them in your own shell')
    table.refuseOthers()
    return { bin, args }
  }

  #agents(): StepContext['agents'] {
    const header = '[agents.NAME]'
    const tables = this.#root.table('agents', header)?.tables(header) ?? []
    return new Map(
      tables.map(({ name, reader }) => {
        if (!AGENT_NAME.test(name) || slugOf(name) === '') {
          const use = 'use letters, digits, "_", "-", "." and single blanks within it, at most 60'
          this.#mistakes.add(reader.at, `an agent cannot have the name ${named(name)}; ${use}`)
        }
        const engine = reader.value('engine', oneOf(FLOW_ENGINES))?.value ?? null
        const model = reader.value('model', MODEL)?.value ?? null
        const prompt = reader.verbatim('prompt', filePath(PROMPT_EXAMPLE))
        if (!reader.has('prompt')) {
          const mend = `write prompt = ${JSON.stringify(PROMPT_EXAMPLE)}, the path of its instructions`
          this.#mistakes.add(reader.atKey('prompt'), `is missing; ${mend}`)
        }
        reader.hint(['bin', 'args', 'env'], 'it belongs to an engine; write it below a line [engines.codex]')
        reader.refuseOthers()
        return [name, { engine, model, prompt }]
      }),
    )
  }

  #workflows(name: string, context: Omit<StepContext, 'agentKey'>): FileWorkflow[] {
    const root = this.#root
    const [newer, older] = [root.has('workflow'), root.has('workflows')]
    if (newer && older) {
      const [one, other] = [root.atKey('workflow'), root.atKey('workflows')]
      const isLater = one.line > other.line || (one.line === other.line && one.column > other.column)
      this.#mistakes.add(
        isLater ? one : other,
        'a file has one of the two forms, [workflow] or [workflows.NAME]; write all of its workflows as [workflows.NAME]',
      )
    }
    if (!newer && !older) {
      const mend = 'begin the workflow with a line [workflow], and each of its steps with a line [[workflow.steps]]'
      this.#mistakes.add(root.atKey('workflow'), `is missing; ${mend}`)
    }
    const one = root.table('workflow', '[workflow]')
    const workflows = one === null ? [] : [this.#workflow(name, one, { ...context, agentKey: 'agent' })]
    const header = '[workflows.NAME]'
    const several = root.table('workflows', header)
    if (several?.keys.length === 0) {
      this.#mistakes.add(
        several.at,
        `has no workflow; begin one with a line ${header}, and its steps with [[workflows.NAME.steps]]`,
      )
    }
    const all = several?.tables(header) ?? []
    return [...workflows, ...all.map(each => this.#workflow(each.name, each.reader, { ...context, agentKey: 'use' }))]
  }

  #workflow(name: string, table: TableReader, context: StepContext): FileWorkflow {
    if (!/^\P{Cc}{1,100}$/u.test(name)) {
      this.#mistakes.add(
        table.at,
        `a workflow cannot have the name ${named(name)}; use a name on one line of at most 100 characters`,
      )
    }
    const description = blankIsNull(
      table.value('description', text('a text of at most 10,000 characters without control characters', 10_000))?.value,
    )
    const header = `[[${table.at.place}.steps]]`
    const steps = table.listOfTables('steps', header)
    const written = table.node('steps')
    if (written === null || (written.kind === 'list' && written.items.length === 0)) {
      this.#mistakes.add(table.atKey('steps'), `there are no steps; begin each with a line ${header}`)
    }
    table.hint(['name'], 'the name of the workflow stands at the top of the file, before the first table')
    table.refuseOthers()
    return { ...table.at, name, description, steps: readSteps(steps, context) }
  }

  #vars(): FlowFile['vars'] {
    const table = this.#root.table('vars', '[vars]')
    const vars = new Map<string, Placed<FileVariable>>()
    for (const name of table?.keys ?? []) {
      if (table === null) break
      if (!isVariableName(name)) {
        this.#mistakes.add(table.atKey(name), `a variable cannot have the name ${named(name)}; use ${VARIABLE_NAME}`)
      }
      const value = this.#variable(table, name)
      if (value !== null) vars.set(name, value)
    }
    return vars
  }

  #variable(vars: TableReader, name: string): Placed<FileVariable> | null {
    const node = vars.node(name)
    if (node === null) return null
    const { place, line: lineNumber, column } = node
    const placed = (value: FileVariable) => ({ value, place, line: lineNumber, column })
    if (node.kind === 'scalar' && (typeof node.value === 'string' || typeof node.value === 'boolean')) {
      return placed({ kind: 'text', text: String(node.value) })
    }
    // 1.10 is no 1.1 to the person who wrote it.
    if (node.kind === 'scalar' && typeof node.value === 'number') return placed({ kind: 'text', text: node.written })
    const table = node.kind === 'table' ? new TableReader(node, this.#mistakes) : null
    const run = table?.verbatim('run', command)
    const path = table?.verbatim('file', filePath('x.diff'))
    table?.refuseOthers()
    if (table === null || table.has('run') === table.has('file')) {
      const what = node.kind === 'table' ? 'is a table' : `is ${node.written}`
      this.#mistakes.add(node, `${what}; use a text, { run = "a command" } or { file = "a path" }`)
    }
    if (run) return placed({ kind: 'run', run: run.value })
    return path ? placed({ kind: 'file', path: path.value }) : null
  }
}

/** The name of a file without its folder and ending. */
function nameOfFile(file: string): string {
  const name = file.split(/[\\/]/).at(-1) ?? ''
  return name.replace(/\.toml$/i, '').replace(/\.workflow$/i, '') || 'workflow'
}

function blankIsNull(text: string | undefined): string | null {
  return text === undefined || text.trim() === '' ? null : text
}
