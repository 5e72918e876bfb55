import { UserError } from '../../../base/errors.ts'
import { nearestName, quotedName } from '../../../base/text.ts'
import {
  memberPath,
  type TomlNode,
  type TomlSpot,
  textSpots,
  tomlNodeAt,
  tomlProgram,
  tomlTree,
} from '../../../platform/toml.ts'
import { checkToml } from '../../../platform/toml-check.ts'
import { flowFileSchema, type Written, type WrittenOutput, type WrittenStep } from './flow-schema.ts'
import { type FlowText, type Mistaken, type ReadPart, withIncluded } from './included.ts'
import {
  type AgentWork,
  type CommandWork,
  DEFAULT_ROUNDS,
  distinctSlugs,
  FLOW_ENGINES,
  type FlowStep,
  inOrder,
  LOOP_NAMES,
  type Mistake,
  type OutputFile,
  type Reference,
  stemOf,
  type TemplatePart,
} from './plan.ts'
import { parseCondition, parseTemplate, type References } from './references.ts'

/**
 * A place in a workflow file. `place`: such as `workflow.steps[2].output.path`, counted from 0. `file`: the name of an
 * included file.
 */
export interface At extends TomlSpot {
  place: string
  file?: string
}

/** A value of a workflow file with its place, for mistakes found later. */
export interface Placed<T> extends At {
  value: T
}

/** A workflow file without own mistakes; other files are unchecked. */
export interface FlowFile {
  /** Path as the person typed it. */
  file: string
  /** `newer`: one workflow, `[workflow]`; `older`: any number of them, `[workflows.<name>]`. */
  form: 'newer' | 'older'
  /** Whether to replay if no flag decides; null: the file does not say. */
  mock: boolean | null
  /** Most steps at work at the same time; null: the file does not say. */
  parallel: number | null
  engines: Readonly<Record<'codex' | 'codemachine', FileEngine>>
  /** At least one, in the order of the file. */
  workflows: readonly FileWorkflow[]
  /** By name, in the order of the file. */
  vars: ReadonlyMap<string, Placed<FileVariable>>
}

/** Values of `[engines.<name>]`. */
interface FileEngine {
  /** The program; null: the file names none. It counts only if the person's settings or flags name the same. */
  bin: Placed<string> | null
  args: readonly string[]
}

/** A value of `[vars]` as written. */
export type FileVariable =
  | { kind: 'text'; text: string }
  | { kind: 'run'; run: string }
  | { kind: 'file'; path: string }

/** One workflow of a file. */
export interface FileWorkflow extends At {
  /** In the newer form: `name` of the file, else the file's own name without extension. */
  name: string
  description: string | null
  /** From 1 to 1,000. */
  steps: readonly FileStep[]
}

/** A step of the file, completed from its agent and the defaults. Its `when` and `input` refer to earlier steps only. */
export interface FileStep extends At, Omit<FlowStep, 'work' | 'output'> {
  work: FileAgentWork | CommandWork
  output: FileOutput | readonly FileOutput[]
  /** Variables in its input and condition, with each place. */
  variables: readonly Placed<string>[]
}

/** A step for an agent. `args`: of `[engines.<engine>]`. */
export interface FileAgentWork extends Omit<AgentWork, 'prompt' | 'input' | 'schema'> {
  /** Path as written, at the step or at its agent. */
  prompt: Placed<string>
  /** Empty parts if the step has no input. */
  input: Placed<readonly TemplatePart[]>
  /** The path of a JSON Schema as written. */
  schema: Placed<string> | null
}

/** `path`: as written; only checked to be a text on one line. */
export type FileOutput = { kind: 'stdout' } | (Omit<OutputFile, 'path'> & { path: Placed<string> })

/** Checks of a workflow file by other layers. */
interface FileChecks {
  /** Returns the first argument for codex that a workflow may not give; null: all are allowed. */
  refusedArgument: (args: readonly string[]) => string | null
  /** Other makers' engines in the person's settings; left out: none. */
  engines?: readonly string[]
  /** Files that it includes, each before the one that names it; left out: none. */
  included?: readonly FlowText[]
}

/** A file with mistakes. */
interface WrongFile {
  mistakes: readonly Mistake[]
  /** The readable part, to check the files that it names; it cannot run. Null: nothing. */
  sound: FlowFile | null
}

type Path = readonly (string | number)[]

/** Most reported mistakes of one file; a last one counts the rest. */
const MOST_MISTAKES = 200
/** Most names to compare for the nearest one. */
const MOST_COMPARED = 200

/**
 * Reads the text of a workflow file. `file`: its name in mistakes, which are complete and in file order. In an older file it
 * checks each workflow. Pure.
 */
export function readFlowFile(content: string, file: string, checks: FileChecks): { file: FlowFile } | WrongFile {
  const program = tomlProgram(content)
  if ('problem' in program) return { mistakes: [{ file, place: '', ...program }], sound: null }
  const tree = tomlTree({ text: content, program })
  const { value, mistakes } = checkToml(flowFileSchema, tree)
  const main: ReadPart = { text: content, tree, value, mistakes }
  const reader = new FileReader(withIncluded(main, checks.included ?? [], file), [
    ...FLOW_ENGINES,
    ...(checks.engines ?? []),
  ])
  const flow = reader.read(file, checks)
  const found = inOrder(reader.mistakes)
  if (found.length === 0) return { file: flow }
  const told = found.slice(0, MOST_MISTAKES)
  const last = told.at(-1)
  if (last !== undefined && found.length > told.length) {
    told.push({
      ...last,
      place: '',
      problem: `there are ${found.length - told.length} more mistakes; fix these first`,
    })
  }
  return { mistakes: told.map(mistake => ({ file, ...mistake })), sound: soundOf(flow) }
}

/** Removes steps without a known prompt. */
function soundOf(flow: FlowFile): FlowFile {
  const hasPrompt = ({ work }: FileStep) => work.kind === 'command' || work.prompt.value !== ''
  const workflows = flow.workflows.map(each => ({ ...each, steps: each.steps.filter(hasPrompt) }))
  return { ...flow, workflows }
}

/** Returns the workflow of that name, or the first one (null). Throws a `UserError` with the nearest name. */
export function workflowNamed({ file, workflows }: FlowFile, name: string | null): FileWorkflow {
  const found = name === null ? workflows[0] : workflows.find(each => each.name === name)
  if (found !== undefined) return found
  const names = workflows.map(each => each.name)
  const near = nearestName(name ?? '', names)
  const mend =
    near === null
      ? `the file has ${names.slice(0, 20).map(quotedName).join(', ')}.`
      : `did you mean ${quotedName(near)}?`
  throw new UserError('CM1002', `${file} has no workflow ${quotedName(name ?? '')}; ${mend}`)
}

/** A step before ids are assigned. `id`: as in the file. */
type ReadStep = Omit<FileStep, 'index' | 'id' | 'stem' | 'variables'> & {
  id: Placed<string> | null
  references: readonly Placed<Reference>[]
}
type NamedStep = Omit<FileStep, 'variables'> & Pick<ReadStep, 'references'>

/** Converts a file, and notes mistakes that only several values together show. */
class FileReader {
  readonly mistakes: Mistaken[]
  readonly #part: ReadPart
  readonly #tree: TomlNode
  readonly #written: Written
  readonly #engines: readonly string[]

  constructor(part: ReadPart, engines: readonly string[]) {
    this.#engines = engines
    this.mistakes = [...part.mistakes]
    this.#part = part
    this.#tree = part.tree
    this.#written = part.value
  }

  read(file: string, { refusedArgument }: FileChecks): FlowFile {
    const { name = nameOfFile(file), defaults, engines, workflow: newer, workflows: older } = this.#written
    const args = (engines?.codex?.args ?? []).filter(each => each !== undefined)
    const refused = refusedArgument(args)
    if (refused !== null) {
      const [first = ''] = refused.split(' ')
      const index = args.findIndex(each => each.startsWith(first))
      const problem = `a workflow may not give codex the argument ${quotedName(refused)}; leave it out, and set it yourself`
      this.#add(this.#at('engines', 'codex', 'args', Math.max(0, index)), problem)
    }
    this.#checkForms()
    return {
      file,
      form: this.#has('workflow') ? 'newer' : 'older',
      mock: defaults?.mock ?? null,
      parallel: defaults?.max_parallel ?? null,
      engines: {
        codex: { bin: this.#placed(engines?.codex?.bin, 'engines', 'codex', 'bin'), args },
        codemachine: { bin: this.#placed(engines?.codemachine?.bin, 'engines', 'codemachine', 'bin'), args: [] },
      },
      workflows: [
        ...(newer === undefined ? [] : [this.#workflow(name, newer, ['workflow'])]),
        ...Object.entries(older ?? {}).map(([each, said]) => this.#workflow(each, said, ['workflows', each])),
      ],
      vars: new Map(Object.entries(this.#written.vars ?? {}).flatMap(([each, value]) => this.#variable(each, value))),
    }
  }

  #add({ place, line: of, column, file }: At, problem: string): void {
    this.mistakes.push({ place, line: of, column, problem, ...(file === undefined ? {} : { file }) })
  }

  #has(...path: Path): boolean {
    return tomlNodeAt(this.#tree, path) !== null
  }

  /** Returns the place of a value; if missing, that of its table. */
  #at(...path: Path): At {
    const node = tomlNodeAt(this.#tree, path)
    const found = node ?? tomlNodeAt(this.#tree, path.slice(0, -1)) ?? this.#tree
    const { path: above, line: of, column, file } = found
    const place = node === null ? memberPath(above, String(path.at(-1))) : above
    return { place, line: of, column, ...(file === undefined ? {} : { file }) }
  }

  /** Returns the place of a key; if missing, that of its table. */
  #keyAt(...path: Path): At {
    return { ...this.#at(...path), ...tomlNodeAt(this.#tree, path)?.key }
  }

  #placed<T>(value: T | undefined, ...path: Path): Placed<T> | null {
    return value === undefined ? null : { value, ...this.#at(...path) }
  }

  /** Returns text and default engine of the file of a place. */
  #fileOf({ file }: Pick<At, 'file'>): { text: string; engine: string | undefined } {
    const included = this.#part.included?.get(file ?? '')
    return included ?? { text: this.#part.text, engine: this.#written.defaults?.engine }
  }

  #checkForms(): void {
    const [one, other] = [this.#keyAt('workflow'), this.#keyAt('workflows')]
    const [newer, older] = [this.#has('workflow'), this.#has('workflows')]
    if (newer && older) {
      const isLater = one.line > other.line || (one.line === other.line && one.column > other.column)
      const problem =
        'a file has one of the two forms, [workflow] or [workflows.NAME]; write all of its workflows as [workflows.NAME]'
      this.#add(isLater ? one : other, problem)
    }
    if (!newer && !older) {
      const mend = 'begin the workflow with a line [workflow], and each of its steps with a line [[workflow.steps]]'
      this.#add(one, `is missing; ${mend}`)
    }
    if (Object.keys(this.#written.workflows ?? { some: true }).length === 0 && !newer) {
      const begin = 'begin one with a line [workflows.NAME], and its steps with [[workflows.NAME.steps]]'
      this.#add(this.#at('workflows'), `has no workflow; ${begin}`)
    }
  }

  #variable(name: string, value: NonNullable<Written['vars']>[string]): [string, Placed<FileVariable>][] {
    // Leave out wrong values.
    if (value === undefined) return []
    const source = tomlNodeAt(this.#tree, ['vars', name])?.source
    const at = this.#at('vars', name)
    const { text: content } = this.#fileOf(at)
    if (typeof value === 'object') {
      return [[name, { value: 'run' in value ? { kind: 'run', ...value } : { kind: 'file', path: value.file }, ...at }]]
    }
    // Keep 1.10 as written: it is not 1.1.
    const written = typeof value === 'number' && source !== undefined ? content.slice(...source.range) : String(value)
    return [[name, { value: { kind: 'text', text: written }, ...at }]]
  }

  #workflow(name: string, { description, steps = [] }: NonNullable<Written['workflow']>, path: Path): FileWorkflow {
    const read = steps.flatMap((step, index) => (step === undefined ? [] : this.#step(step, [...path, 'steps', index])))
    const inOrder = this.#withNames(read)
    this.#checkReferences(inOrder)
    return {
      ...this.#at(...path),
      name,
      description: blankIsNull(description),
      steps: inOrder.map(({ references, ...step }) => ({
        ...step,
        variables: references.flatMap(({ value, ...at }) => {
          const isKnown = 'step' in value || (step.forEach !== undefined && LOOP_NAMES.includes(value.variable))
          return isKnown ? [] : [{ ...at, value: value.variable }]
        }),
      })),
    }
  }

  #withNames(steps: readonly ReadStep[]): NamedStep[] {
    const ids = new Map<string, number>()
    for (const [index, { id }] of steps.entries()) {
      if (id === null) continue
      const first = ids.get(id.value)
      const { file, line: of } = steps[first ?? index] ?? id
      const where = file === id.file ? '' : ` (${file ?? 'the file that includes it'}, line ${of})`
      if (first === undefined) ids.set(id.value, index)
      else this.#add(id, `step ${first + 1}${where} has the id ${quotedName(id.value)} already; give each step its own`)
    }
    const stems = steps.map(({ description, work }) =>
      stemOf({ description, agent: work.kind === 'agent' ? work.agent : null }),
    )
    const distinct = distinctSlugs(stems)
    const without = steps.flatMap(({ id }, index) => (id === null ? [index] : []))
    // A generated id never replaces one from the file.
    const made = distinctSlugs([...ids.keys(), ...without.map(index => stems[index] ?? '')]).slice(ids.size)
    const idOf = new Map(without.map((index, at) => [index, made[at]]))
    return steps.map(({ id, ...step }, index) => {
      const stem = distinct[index] ?? ''
      return { ...step, index: index + 1, id: id?.value ?? idOf.get(index) ?? stem, stem }
    })
  }

  /** A step uses results of earlier ones only. */
  #checkReferences(steps: readonly NamedStep[]): void {
    const byId = new Map(steps.map(step => [step.id, step]))
    for (const { index, references } of steps) {
      for (const { value, ...at } of references) {
        const problem = 'step' in value ? problemOfReference(value, index, byId) : null
        if (problem !== null) this.#add(at, problem)
      }
    }
  }

  #step(step: WrittenStep, path: Path): ReadStep {
    const references: Placed<Reference>[] = []
    /** Adds the references of a text, each at its own place. */
    const note = (key: Path, { references: found, problems }: References) => {
      const node = tomlNodeAt(this.#tree, [...path, ...key])
      const spots = node === null ? [] : textSpots(this.#fileOf(node).text, node)
      const at = (offset: number): At => ({ ...this.#at(...path, ...key), ...spots[offset] })
      for (const { problem, offset } of problems) this.#add(at(offset), problem)
      references.push(...found.map(({ reference, offset }) => ({ value: reference, ...at(offset) })))
    }
    const work = this.#work(step, path, note)
    const condition = step.when === undefined ? null : parseCondition(step.when)
    if (condition !== null) note(['when'], condition)
    const forEach = this.#forEach(step, work, path, note)
    const needs = (step.needs ?? []).filter(each => each !== undefined)
    for (const [index, each] of needs.entries())
      references.push({ value: { step: each, part: 'output', field: [] }, ...this.#at(...path, 'needs', index) })
    if (step.sandbox !== undefined && work.kind === 'agent' && work.engine === 'codemachine') {
      const why = 'a step of the engine codemachine must be able to write its tasks.json'
      this.#add(this.#at(...path, 'sandbox'), `${why}; leave sandbox out, or write engine = "codex"`)
    }
    return {
      ...this.#at(...path),
      id: this.#placed(step.id, ...path, 'id'),
      description: blankIsNull(step.description),
      work,
      verify: (step.verify ?? []).filter(each => each !== undefined),
      retries: step.retries ?? 0,
      approve: step.approve ?? false,
      timeoutMs: step.timeout ?? null,
      when: condition?.condition ?? null,
      ...(step.continue_on_error === true ? { continueOnError: true as const } : {}),
      readOnly: step.sandbox !== undefined,
      ...(forEach === null ? {} : { forEach }),
      ...(step.needs === undefined ? {} : { needs }),
      output: this.#outputs(step, work, path),
      references,
    }
  }

  #work(step: WrittenStep, path: Path, note: (key: Path, found: References) => void): FileAgentWork | CommandWork {
    if (this.#has(...path, 'run')) return this.#command(step, path)
    const name = this.#agent(step.agent ?? step.use, path)
    const agent = this.#written.agents?.[name]
    const usual = this.#fileOf(this.#at(...path)).engine ?? 'codex'
    const { engine: kind = agent?.engine ?? usual, model: wanted = agent?.model ?? null } = step
    this.#checkEngine(kind, [...path], name)
    if (this.#has(...path, 'rounds') && kind !== 'codemachine' && kind !== 'mock') {
      const problem = 'a step of this engine is one round; leave rounds out, or write engine = "codemachine"'
      this.#add(this.#keyAt(...path, 'rounds'), problem)
    }
    const template = step.input?.template
    const parsed = template === undefined ? null : parseTemplate(template)
    if (parsed !== null) note(['input', 'template'], parsed)
    return {
      kind: 'agent',
      agent: name,
      engine: kind,
      model: wanted,
      args: kind === 'codex' ? (this.#written.engines?.codex?.args ?? []).filter(each => each !== undefined) : [],
      prompt: this.#placed(step.prompt, ...path, 'prompt') ??
        this.#placed(agent?.prompt, 'agents', name, 'prompt') ?? { value: '', ...this.#at(...path) },
      input:
        parsed === null
          ? { value: [], ...this.#at(...path, ...(this.#has(...path, 'input') ? ['input'] : [])) }
          : { value: parsed.parts, ...this.#at(...path, 'input', 'template') },
      schema: this.#placed(step.schema, ...path, 'schema'),
      rounds: step.rounds ?? DEFAULT_ROUNDS,
    }
  }

  /** Notes an unknown engine at its place: the step, its agent, or the default. */
  #checkEngine(engine: string, step: Path, agent: string): void {
    if (this.#engines.includes(engine)) return
    const places: Path[] = [
      [...step, 'engine'],
      ['agents', agent, 'engine'],
    ]
    const isIncluded = this.#at(...step).file !== undefined
    const usual = isIncluded ? [...step, 'engine'] : ['defaults', 'engine']
    const at = places.find(place => this.#has(...place)) ?? usual
    const near = nearestOf(engine, this.#engines)
    const mend =
      near === null ? 'name it in a table [engines.NAME] of your own config.toml' : `the nearest is ${quotedName(near)}`
    this.#add(this.#at(...at), `there is no engine ${quotedName(engine)}; ${mend}`)
  }

  #command(step: WrittenStep, path: Path): CommandWork {
    for (const key of ['agent', 'use', 'engine', 'model', 'prompt', 'input', 'schema', 'rounds']) {
      if (this.#has(...path, key) && key !== this.#otherKey(path))
        this.#add(this.#keyAt(...path, key), `a step that is a command (run) has no ${key}; leave one of the two out`)
    }
    return { kind: 'command', run: step.run ?? '' }
  }

  /** Returns the agent key of the other file form. */
  #otherKey([form]: Path): 'agent' | 'use' {
    return form === 'workflow' ? 'use' : 'agent'
  }

  #agent(written: string | undefined, path: Path): string {
    const names = Object.keys(this.#written.agents ?? {})
    const key = this.#otherKey(path) === 'use' ? 'agent' : 'use'
    if (!this.#has(...path, key)) {
      // It is already reported as an unknown key.
      if (this.#has(...path, this.#otherKey(path))) return ''
      const example = names.length > 0 && names.length <= 5 ? names.map(quotedName).join(' or ') : '"…"'
      this.#add(this.#at(...path, key), `is missing; write ${key} = ${example}, or run = "a command"`)
    }
    if (written === undefined || names.includes(written)) return written ?? ''
    const near = nearestOf(written, names)
    const begin = 'begin one with a line [agents.NAME]'
    const listed = names.slice(0, 10).map(quotedName).join(', ')
    const mend =
      near !== null ? `the nearest is ${quotedName(near)}` : names.length === 0 ? begin : `the file has ${listed}`
    this.#add(this.#at(...path, key), `there is no agent ${quotedName(written)}; ${mend}`)
    return written
  }

  #forEach(
    { for_each: said }: WrittenStep,
    work: FileStep['work'],
    path: Path,
    note: (key: Path, found: References) => void,
  ): NonNullable<FileStep['forEach']> | null {
    if (said === undefined) return null
    const at = this.#keyAt(...path, 'for_each')
    if (work.kind === 'command' || work.engine === 'mock')
      this.#add(at, 'works only with an agent that is no mock; leave it out')
    if (typeof said !== 'string') return said
    const parsed = parseTemplate(said)
    note(['for_each'], parsed)
    const [part, ...others] = parsed.parts
    const isList = (one: Reference) => ('part' in one ? one.part !== 'exit' : !LOOP_NAMES.includes(one.variable))
    if (typeof part === 'object' && others.length === 0 && isList(part)) return part
    if (parsed.problems.length === 0)
      this.#add(at, 'is no list; write {{NAME}}, {{steps.ID.output}}, {{steps.ID.answer.FIELD}} or a list of texts')
    return []
  }

  #outputs({ output = {} }: WrittenStep, work: FileAgentWork | CommandWork, step: Path): FileStep['output'] {
    if (!('length' in output)) return this.#output(output, work, [...step, 'output'])
    const read = output.map((each, index) => this.#output(each, work, [...step, 'output', index]))
    const paths = new Set<string>()
    for (const { path } of read.filter(each => each.kind === 'file')) {
      if (paths.has(path.value)) this.#add(path, 'is an output of this step already; leave one of the two out')
      paths.add(path.value)
    }
    return read
  }

  #output(
    { kind, path: to, append = false, field }: WrittenOutput = {},
    work: FileStep['work'],
    path: Path,
  ): FileOutput {
    const keys = ['path', 'append', 'field'].filter(key => this.#has(...path, key))
    if (!this.#has(...path, 'kind') && keys.length > 0)
      this.#add(this.#at(...path, 'kind'), 'is missing; write kind = "file"')
    for (const key of kind === 'stdout' ? keys : []) {
      const problem = `works only for a file; write kind = "file", or leave ${key} out`
      this.#add(this.#keyAt(...path, key), problem)
    }
    if (kind === 'file' && !keys.includes('path'))
      this.#add(this.#at(...path, 'path'), 'is missing; write path = "…", relative to the work directory')
    if (field !== undefined && this.#has(...path.slice(0, path.lastIndexOf('output')), 'for_each')) {
      const problem = 'the output of a step with for_each is a list, and has no fields; leave field out'
      this.#add(this.#keyAt(...path, 'field'), problem)
    }
    if (field !== undefined && (work.kind === 'command' || work.schema === null)) {
      const problem = 'the step has no schema, so its answer has no fields; give it schema = "…", or leave field out'
      this.#add(this.#keyAt(...path, 'field'), problem)
    }
    const placed = this.#placed(to, ...path, 'path')
    if (kind !== 'file' || placed === null) return { kind: 'stdout' }
    return { kind, path: placed, append, ...(field === undefined ? {} : { field: field.split('.') }) }
  }
}

function problemOfReference(
  { step: id, part }: Extract<Reference, { step: string }>,
  index: number,
  byId: ReadonlyMap<string, NamedStep>,
): string | null {
  const step = byId.get(id)
  if (step === undefined) {
    const near = nearestOf(id, [...byId.keys()])
    const mend = near === null ? 'use the id of an earlier step' : `the nearest is ${quotedName(near)}`
    return `there is no step ${quotedName(id)}; ${mend}`
  }
  if (step.index === index) return `step ${quotedName(id)} cannot use its own result; use an earlier step`
  if (step.index > index)
    return `step ${quotedName(id)} comes later (it is step ${step.index}); move it before this one`
  if (part !== 'answer') return null
  if (step.work.kind === 'command') {
    return `step ${quotedName(id)} is a command, and a command has no answer; use steps.${id}.output or steps.${id}.exit`
  }
  return step.work.schema === null
    ? `step ${quotedName(id)} has no schema, so it has no answer; give it schema = "…", or use steps.${id}.output`
    : null
}

function nearestOf(written: string, known: readonly string[]): string | null {
  return nearestName(written, known.slice(0, MOST_COMPARED))
}

/** Returns the name of a file without folder and extension. */
function nameOfFile(file: string): string {
  const name = file.split(/[\\/]/).at(-1) ?? ''
  return name.replace(/\.toml$/i, '').replace(/\.workflow$/i, '') || 'workflow'
}

function blankIsNull(said: string | undefined): string | null {
  return said === undefined || said.trim() === '' ? null : said
}
