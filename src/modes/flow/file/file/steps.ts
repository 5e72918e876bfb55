import * as v from 'valibot'
import type { At, FileAgentWork, FileCommandWork, FileOutput, FileStep, FlowFile, Placed } from '../file.ts'
import {
  type Condition,
  DEFAULT_ROUNDS,
  distinctSlugs,
  FLOW_ENGINES,
  type FlowEngine,
  MOST_RETRIES,
  MOST_STEPS,
  type Reference,
  slugOf,
  stemOf,
  type TemplatePart,
} from '../plan.ts'
import { parseCondition, parseTemplate, type References } from '../references.ts'
import {
  command,
  duration,
  filePath,
  line,
  type Mistakes,
  named,
  oneOf,
  type TableReader,
  text,
  trueOrFalse,
  wholeNumber,
} from './table-reader.ts'
import type { TomlScalar } from './toml-tree.ts'

/** What the steps of a workflow are read with. */
export interface StepContext {
  /** Of `[defaults]`. */
  engine: FlowEngine
  engines: FlowFile['engines']
  agents: ReadonlyMap<string, { engine: FlowEngine | null; model: string | null; prompt: Placed<string> | null }>
  /** How a step names its agent: `agent` in the newer form, `use` in the older. */
  agentKey: 'agent' | 'use'
  mistakes: Mistakes
}

/** The name of a model. */
export const MODEL = line('the name of a model, such as "gpt-5"', 200)

/** Of a step; a blank one counts as none. */
const DESCRIPTION = v.pipe(
  v.string(),
  v.regex(/^\P{Cc}{0,500}$/u),
  v.description('a text on one line of at most 500 characters, such as "commit-message"'),
)

const MOST_ROUNDS = 1_000
const MOST_COMMANDS = 100
const MOST_TEMPLATE = 1024 * 1024

/** Reads the steps of one workflow. What is wrong with them goes to the mistakes, and the steps are of no use then. */
export function readSteps(tables: readonly TableReader[], context: StepContext): FileStep[] {
  const beyond = tables[MOST_STEPS]
  if (beyond !== undefined) {
    const problem = `a workflow has at most ${MOST_STEPS} steps, and this has ${tables.length}; leave some out`
    context.mistakes.add(beyond.at, problem)
  }
  const read = tables.slice(0, MOST_STEPS).map(table => new StepReader(table, context).read())
  const named = withNames(read, context.mistakes)
  checkReferences(named, context.mistakes)
  return named.map(({ references, ...step }) => ({
    ...step,
    variables: references.flatMap(({ value, ...at }) =>
      'variable' in value ? [{ ...at, value: value.variable }] : [],
    ),
  }))
}

/** A step before its names are known. `id`: as the file gives it. */
type ReadStep = Omit<FileStep, 'index' | 'id' | 'stem' | 'variables'> & {
  id: Placed<string> | null
  references: readonly Placed<Reference>[]
}
type NamedStep = Omit<FileStep, 'variables'> & Pick<ReadStep, 'references'>

function withNames(steps: readonly ReadStep[], mistakes: Mistakes): NamedStep[] {
  const ids = new Map<string, number>()
  for (const [index, { id }] of steps.entries()) {
    if (id === null) continue
    const first = ids.get(id.value)
    if (first === undefined) ids.set(id.value, index)
    else mistakes.add(id, `step ${first + 1} has the id ${named(id.value)} already; give each step its own`)
  }
  const stems = steps.map(({ description, work }) =>
    stemOf({ description, agent: work.kind === 'agent' ? work.agent : null }),
  )
  const distinct = distinctSlugs(stems)
  const without = steps.flatMap(({ id }, index) => (id === null ? [index] : []))
  // An id that the file gives is never changed for one that is made.
  const made = distinctSlugs([...ids.keys(), ...without.map(index => stems[index] ?? '')]).slice(ids.size)
  const idOf = new Map(without.map((index, at) => [index, made[at]]))
  return steps.map(({ id, ...step }, index) => {
    const stem = distinct[index] ?? ''
    return { ...step, index: index + 1, id: id?.value ?? idOf.get(index) ?? stem, stem }
  })
}

/** A step uses what earlier ones came to. */
function checkReferences(steps: readonly NamedStep[], mistakes: Mistakes): void {
  const byId = new Map(steps.map(step => [step.id, step]))
  for (const { index, references } of steps) {
    for (const { value, ...at } of references) {
      if (!('step' in value)) continue
      const problem = problemOfReference(value, index, byId, mistakes)
      if (problem !== null) mistakes.add(at, problem)
    }
  }
}

function problemOfReference(
  { step: id, part }: Extract<Reference, { step: string }>,
  index: number,
  byId: ReadonlyMap<string, NamedStep>,
  mistakes: Mistakes,
): string | null {
  const step = byId.get(id)
  if (step === undefined) {
    const near = mistakes.nearest(id, [...byId.keys()])
    const mend = near === null ? 'use the id of an earlier step' : `the nearest is ${named(near)}`
    return `there is no step ${named(id)}; ${mend}`
  }
  if (step.index === index) return `step ${named(id)} cannot use what it comes to itself; use an earlier step`
  if (step.index > index) return `step ${named(id)} comes later (it is step ${step.index}); move it before this one`
  if (part !== 'answer') return null
  if (step.work.kind === 'command') {
    return `step ${named(id)} is a command, which has no answer; use steps.${id}.output or steps.${id}.exit`
  }
  return step.work.schema === null
    ? `step ${named(id)} has no schema, and so no answer; give it schema = "…", or use steps.${id}.output`
    : null
}

class StepReader {
  readonly #table: TableReader
  readonly #context: StepContext
  readonly #references: Placed<Reference>[] = []

  constructor(table: TableReader, context: StepContext) {
    this.#table = table
    this.#context = context
  }

  read(): ReadStep {
    const table = this.#table
    const id = this.#id()
    const written = table.value('description', DESCRIPTION)?.value ?? ''
    const description = written.trim() === '' ? null : written
    const work = this.#work()
    const verify = table.verbatimList('verify', command, MOST_COMMANDS).map(({ value }) => value)
    const retries = table.value('retries', wholeNumber(0, MOST_RETRIES))?.value ?? 0
    const approve = table.value('approve', trueOrFalse)?.value ?? false
    const timeoutMs = table.value('timeout', duration)?.value ?? null
    const when = this.#when()
    const readOnly = this.#readOnly(work)
    const output = this.#output()
    table.hint(['template'], `it belongs below a line ${this.#header('input')}`)
    table.hint(['kind', 'path', 'append'], `it belongs below a line ${this.#header('output')}`)
    table.hint(['bin', 'args', 'env'], 'it belongs to an engine; write it below a line [engines.codex]')
    table.refuseOthers()
    const references = this.#references
    return {
      ...table.at,
      id,
      description,
      work,
      verify,
      retries,
      approve,
      timeoutMs,
      when,
      readOnly,
      output,
      references,
    }
  }

  /** How the other form of the file names an agent. */
  get #otherKey(): string {
    return this.#context.agentKey === 'agent' ? 'use' : 'agent'
  }

  /** How a table of the step is begun. */
  #header(name: string): string {
    return `[${this.#table.at.place.replace(/\[\d+\]$/, '')}.${name}]`
  }

  #id(): Placed<string> | null {
    const id = this.#table.value(
      'id',
      line('a name of lower-case letters, digits and dashes, such as "run-tests"', 200),
    )
    if (id === null || slugOf(id.value) === id.value) return id
    const slug = slugOf(id.value)
    const mend = slug === '' ? 'use letters or digits, such as "run-tests"' : `write id = ${named(slug)}`
    this.#context.mistakes.add(
      id,
      `${named(id.value)} is no id, which is of lower-case letters, digits and single dashes, at most 60; ${mend}`,
    )
    return null
  }

  #work(): FileAgentWork | FileCommandWork {
    const { agentKey, mistakes } = this.#context
    const table = this.#table
    if (!table.has('run')) return this.#agentWork()
    const run = table.verbatim('run', command)
    for (const key of [agentKey, 'engine', 'model', 'prompt', 'input', 'schema', 'rounds']) {
      if (table.has(key))
        mistakes.add(table.atKey(key), `a step that is a command (run) has no ${key}; leave one of the two out`)
    }
    table.hint([this.#otherKey], 'a step that is a command (run) has no agent; leave one of the two out')
    return { kind: 'command', run: run?.value ?? '' }
  }

  #agentWork(): FileAgentWork {
    const { agentKey, engine: usual, engines, agents } = this.#context
    const table = this.#table
    const name = this.#agent()
    const agent = agents.get(name)
    const engine = table.value('engine', oneOf(FLOW_ENGINES))?.value ?? agent?.engine ?? usual
    const model = table.value('model', MODEL)?.value ?? agent?.model ?? null
    const prompt = table.verbatim('prompt', filePath('prompts/review.md')) ??
      agent?.prompt ?? { value: '', ...table.at }
    const input = this.#input()
    const schema = table.verbatim('schema', filePath('answer.schema.json'))
    const rounds = table.value('rounds', wholeNumber(1, MOST_ROUNDS))?.value ?? DEFAULT_ROUNDS
    if (table.has('rounds') && engine === 'codex') {
      const problem = 'a step of the engine codex is one round; leave rounds out, or write engine = "codemachine"'
      this.#context.mistakes.add(table.atKey('rounds'), problem)
    }
    table.hint([this.#otherKey], `in this form of the file a step names its agent with ${agentKey} = "…"`)
    const args = engine === 'mock' ? [] : engines[engine].args
    return { kind: 'agent', agent: name, engine, model, args, prompt, input, schema, rounds }
  }

  #agent(): string {
    const { agentKey, agents, mistakes } = this.#context
    const table = this.#table
    const names = [...agents.keys()]
    if (!table.has(agentKey)) {
      // It is told as an unknown key.
      if (table.keys.includes(this.#otherKey)) return ''
      const example = names.length > 0 && names.length <= 5 ? names.map(named).join(' or ') : '"…"'
      mistakes.add(table.atKey(agentKey), `is missing; write ${agentKey} = ${example}, or run = "a command"`)
      return ''
    }
    const written = table.value(agentKey, line('the name of one of the tables [agents.NAME]', 200))
    if (written === null || agents.has(written.value)) return written?.value ?? ''
    const near = mistakes.nearest(written.value, names)
    const begin = 'begin one with a line [agents.NAME]'
    const listed = names.slice(0, 10).map(named).join(', ')
    const mend = near !== null ? `the nearest is ${named(near)}` : names.length === 0 ? begin : `the file has ${listed}`
    mistakes.add(written, `there is no agent ${named(written.value)}; ${mend}`)
    return written.value
  }

  #input(): FileAgentWork['input'] {
    const input = this.#table.table('input', this.#header('input'))
    if (input === null) return { value: [], ...this.#table.at }
    const template = input.scalarText('template', text(`a text of at most ${MOST_TEMPLATE} characters`, MOST_TEMPLATE))
    if (!input.has('template')) {
      this.#context.mistakes.add(
        input.atKey('template'),
        'is missing; write template = "…", which is handed to the agent',
      )
    }
    input.refuseOthers()
    if (template === null) return { value: [], ...input.at }
    const parsed = parseTemplate(String(template.value))
    this.#note(template, parsed)
    return placed(template, parsed.parts)
  }

  #when(): Condition | null {
    const written = this.#table.scalarText(
      'when',
      line('a comparison on one line, such as "{{steps.test.exit}} != 0"', 1000),
    )
    if (written === null) return null
    const parsed = parseCondition(String(written.value))
    this.#note(written, parsed)
    return parsed.condition
  }

  /** Takes what a text names, each at its own place. */
  #note(written: TomlScalar, { references, problems }: References): void {
    const at = (offset: number): At => ({ place: written.place, ...written.placeOf(offset) })
    for (const { problem, offset } of problems) this.#context.mistakes.add(at(offset), problem)
    this.#references.push(...references.map(({ reference, offset }) => ({ value: reference, ...at(offset) })))
  }

  #readOnly(work: FileAgentWork | FileCommandWork): boolean {
    const only = oneOf(['read-only'])
    const readOnly = this.#table.value('sandbox', only)
    if (readOnly !== null && work.kind === 'agent' && work.engine === 'codemachine') {
      const why = 'a step of the engine codemachine is done once its tasks.json says so, which it could not write'
      this.#context.mistakes.add(readOnly, `${why}; leave sandbox out, or write engine = "codex"`)
    }
    return readOnly !== null
  }

  #output(): FileOutput {
    const { mistakes } = this.#context
    const output = this.#table.table('output', this.#header('output'))
    if (output === null) return { kind: 'stdout' }
    const kind = output.value('kind', oneOf(['stdout', 'file']))?.value ?? null
    const path = output.verbatim('path', filePath('COMMIT_MESSAGE.md'))
    const append = output.value('append', trueOrFalse)?.value ?? false
    if (!output.has('kind') && (output.has('path') || output.has('append'))) {
      mistakes.add(output.atKey('kind'), 'is missing; write kind = "file"')
    }
    for (const key of ['path', 'append']) {
      if (kind === 'stdout' && output.has(key)) {
        mistakes.add(output.atKey(key), `counts only for a file; write kind = "file", or leave ${key} out`)
      }
    }
    if (kind === 'file' && !output.has('path')) {
      mistakes.add(output.atKey('path'), 'is missing; write path = "…", relative to the work directory')
    }
    output.refuseOthers()
    return kind === 'file' && path !== null ? { kind, path, append } : { kind: 'stdout' }
  }
}

function placed(
  { place, line: lineNumber, column }: At,
  value: readonly TemplatePart[],
): Placed<readonly TemplatePart[]> {
  return { value, place, line: lineNumber, column }
}
