import { nearestName } from '../../../base/text.ts'
import type { JsonSchema } from '../../../core/rules/answer.ts'
import type { At, FileAgentWork, FileOutput, FileStep, FileVariable, FileWorkflow, FlowFile, Placed } from './file.ts'
import { problemOfOutput } from './output-path.ts'
import {
  type AgentWork,
  type FlowPlan,
  type FlowStep,
  type FrozenPrompt,
  type FrozenValue,
  inOrder,
  type Mistake,
  type OutputFile,
} from './plan.ts'
import { type KindOfText, type ReadText, readNear, type SearchPath, searchPathOf, shownPath } from './prompts.ts'
import { type ReadSchema, readSchema } from './schema.ts'
import { type GivenValues, MOST_VALUE, type SecretIn, valueProblem } from './variables.ts'

/** Runs a line in the sandbox, without network, and returns its output. `problem`: a sentence without its end. */
export type RunValue = (line: string, signal: AbortSignal) => Promise<{ text: string } | { problem: string }>

export interface FreezeOptions {
  /** Real path of the project, which is the work directory. */
  root: string
  /** The workflow file, and those that it includes. `path`: absolute. `sha256`: of its bytes, hex. */
  source: { path: string; sha256: string; included?: readonly { file: string; path: string; sha256: string }[] }
  given: GivenValues
  /** Null: runs nothing. Values of commands are then unknown, and missing from the plan. */
  runValue: RunValue | null
  secretIn: SecretIn
  signal: AbortSignal
}

/** A workflow ready to run. */
interface Frozen {
  plan: FlowPlan
  /** Variables without a value, each at its first use. No run begins with one. */
  missing: readonly Mistake[]
  /** Sentences for a person before it runs. */
  notes: readonly string[]
}

/** Variable with a default value. */
const DIFF = 'diff'
/** Outside of a repository, `git diff` would only print its usage. */
const GIT_DIFF = 'git rev-parse --git-dir >/dev/null && git --no-pager diff --no-color --no-ext-diff'
/** Sources: the first one with output counts. */
const DIFFS = [
  { line: `${GIT_DIFF} --cached`, what: 'the staged diff' },
  { line: GIT_DIFF, what: 'the diff of the work tree' },
]

const PROMPT: KindOfText = { what: 'prompt', limit: 1024 * 1024 }
const SCHEMA: KindOfText = { what: 'JSON Schema', limit: 256 * 1024 }
const VALUE: KindOfText = { what: 'file for a value', limit: MOST_VALUE, mayBeEmpty: true }
/** Most bytes of a plan as JSON: a session stores no more. */
const MOST_PLAN = 16 * 1024 * 1024
/** Most characters to read for one workflow: unused values from files are not in its plan. */
const MOST_READ = 64 * 1024 * 1024

/** Reads everything that a workflow needs, once: prompts, schemas and values. Returns all mistakes in file order. */
export async function freeze(
  file: FlowFile,
  workflow: FileWorkflow,
  options: FreezeOptions,
): Promise<Frozen | { mistakes: readonly Mistake[] }> {
  const where = new Map<string | undefined, SearchPath>()
  for (const { path, file: name } of [{ ...options.source, file: undefined }, ...(options.source.included ?? [])])
    where.set(name, await searchPathOf(path, options.root))
  return await new Freezing(file, workflow, options, where).all()
}

class Freezing {
  readonly #file: FlowFile
  readonly #workflow: FileWorkflow
  readonly #options: FreezeOptions
  /** By the name of an included file; undefined: the file itself. */
  readonly #where: ReadonlyMap<string | undefined, SearchPath>
  readonly #mistakes = new Map<string, Mistake>()
  readonly #notes: string[] = []
  /** Paths of all outputs. */
  readonly #outputs: readonly string[]
  /** Why there is no diff, as a clause; empty: it was not needed. */
  #noDiff = ''
  /** Files read, by kind and path as written. */
  readonly #read = new Map<string, ReadText | { problem: string }>()
  #readCharacters = 0
  /** By the hash of their text. */
  readonly #schemas = new Map<string, ReadSchema>()

  constructor(
    file: FlowFile,
    workflow: FileWorkflow,
    options: FreezeOptions,
    where: ReadonlyMap<string | undefined, SearchPath>,
  ) {
    this.#file = file
    this.#workflow = workflow
    this.#options = options
    this.#where = where
    const outputs = workflow.steps.flatMap(({ output }) => output)
    this.#outputs = outputs.flatMap(each => (each.kind === 'file' ? [each.path.value] : []))
  }

  async all(): Promise<Frozen | { mistakes: readonly Mistake[] }> {
    const { root, source } = this.#options
    const { name, description, steps: written } = this.#workflow
    const steps: FlowStep[] = []
    for (const step of written) {
      const frozen = await this.#step(step)
      if (frozen !== null) steps.push(frozen)
    }
    const values = await this.#values()
    const read = [...this.#read.values()].flatMap(each => ('text' in each ? [each] : []))
    const included = (source.included ?? []).map(each => [shownPath(root, each.path), each.sha256] as const)
    const sources = new Map([...included, ...read.map(({ found, sha256 }) => [found, sha256] as const)])
    const path = shownPath(root, source.path)
    const plan: FlowPlan = {
      v: 1,
      file: path,
      name,
      description,
      steps,
      values: Object.fromEntries(values),
      ...(this.#file.parallel === null ? {} : { maxParallel: this.#file.parallel }),
      sources: [...new Map([[path, source.sha256], ...sources])].map(([each, sha256]) => ({ path: each, sha256 })),
    }
    if (this.#mistakes.size === 0 && isTooLarge(plan)) {
      this.#wrong(
        this.#workflow,
        'the workflow with its prompts and values is larger than 16 MiB; make them shorter, or split it into two',
      )
    }
    if (this.#mistakes.size > 0) return { mistakes: inOrder([...this.#mistakes.values()]) }
    return { plan, missing: this.#missing(values), notes: this.#notes }
  }

  #wrong(at: At, problem: string): void {
    const mistake = this.#mistake(at, problem)
    // All steps of an agent name its prompt.
    this.#mistakes.set(JSON.stringify(mistake), mistake)
  }

  #mistake({ place, line, column, file = this.#file.file }: At, problem: string): Mistake {
    return { file, line, column, place, problem }
  }

  async #step({
    variables: _,
    place: _place,
    line: _line,
    column: _column,
    file: _file,
    work,
    output,
    ...step
  }: FileStep): Promise<FlowStep | null> {
    const outputs = await Promise.all([output].flat().map(each => this.#output(each)))
    const frozen = work.kind === 'agent' ? await this.#agentWork(work) : work
    const known = outputs.filter(each => each !== null)
    const [only] = known
    if (frozen === null || only === undefined || known.length < outputs.length) return null
    return { ...step, work: frozen, output: Array.isArray(output) ? known : only }
  }

  async #agentWork({ prompt, input, schema, ...work }: FileAgentWork): Promise<AgentWork | null> {
    const frozenPrompt = await this.#prompt(prompt)
    const frozenSchema = schema === null ? null : await this.#schema(schema)
    if (frozenPrompt === null || (schema !== null && frozenSchema === null)) return null
    return { ...work, prompt: frozenPrompt, input: input.value, schema: frozenSchema }
  }

  async #prompt(at: Placed<string>): Promise<FrozenPrompt | null> {
    const read = await this.#readNear(at, PROMPT)
    if (read === null) return null
    const secret = this.#options.secretIn(read.text)
    if (secret === null) return { path: at.value, found: read.found, text: read.text }
    this.#wrong(
      at,
      `${JSON.stringify(read.found)} holds the secret ${secret}; agents must not get secrets, so leave it out`,
    )
    return null
  }

  async #schema(at: Placed<string>): Promise<JsonSchema | null> {
    const read = await this.#readNear(at, SCHEMA)
    if (read === null) return null
    const parsed = this.#schemas.get(read.sha256) ?? (await readSchema(read.text))
    this.#schemas.set(read.sha256, parsed)
    if ('schema' in parsed) return parsed.schema
    this.#wrong(at, `${JSON.stringify(read.found)} ${parsed.problem}`)
    return null
  }

  async #output(output: FileOutput): Promise<OutputFile | { kind: 'stdout' } | null> {
    if (output.kind === 'stdout') return output
    const path = output.path.value
    const problem = await problemOfOutput(this.#options.root, { path, append: output.append }, this.#outputs)
    if (problem === null) return { ...output, path }
    this.#wrong(output.path, `${JSON.stringify(path)} ${problem}`)
    return null
  }

  async #readNear(at: Placed<string>, kind: KindOfText): Promise<ReadText | null> {
    const key = JSON.stringify([kind.what, at.value, at.file])
    const known = this.#read.get(key)
    if (known === undefined && this.#readCharacters > MOST_READ) {
      this.#wrong(
        this.#workflow,
        'the files that the workflow names are larger than 64 MiB together; make them shorter',
      )
      return null
    }
    const where = this.#where.get(at.file)
    if (where === undefined) throw new Error(`${at.file} is not included.`)
    const read = known ?? (await readNear(at.value, where, kind))
    if (known === undefined && 'text' in read) this.#readCharacters += read.text.length
    this.#read.set(key, read)
    if ('text' in read) return read
    this.#wrong(at, read.problem)
    return null
  }

  /** Returns the used values, ordered by name. */
  async #values(): Promise<[string, FrozenValue][]> {
    const { given } = this.#options
    const used = this.#used()
    const values = new Map<string, FrozenValue>()
    for (const [name, text] of given) {
      if (used.has(name)) values.set(name, { text, from: 'given' })
      else this.#notes.push(`A value was given for ${name}, which the workflow does not use.`)
    }
    for (const [name, at] of this.#file.vars) {
      if (given.has(name)) continue
      const value = await this.#variable(name, at, used.has(name))
      if (value !== null && used.has(name)) values.set(name, value)
    }
    if (used.has(DIFF) && !given.has(DIFF) && !this.#file.vars.has(DIFF)) {
      const value = await this.#diff()
      if (value !== null) values.set(DIFF, value)
    }
    return [...values].sort(([a], [b]) => (a < b ? -1 : 1))
  }

  #used(): Set<string> {
    return new Set(this.#workflow.steps.flatMap(({ variables }) => variables.map(({ value }) => value)))
  }

  /** Returns a value of `[vars]`; null: wrong, or unknown. */
  async #variable(name: string, at: Placed<FileVariable>, isUsed: boolean): Promise<FrozenValue | null> {
    const { value } = at
    switch (value.kind) {
      case 'text':
        return this.#checked(name, at, { text: value.text, from: 'text' })
      case 'file': {
        const read = await this.#readNear({ ...at, value: value.path }, VALUE)
        return read === null ? null : this.#checked(name, at, { text: read.text, from: 'file' })
      }
      case 'run': {
        if (!isUsed || this.#options.runValue === null) return null
        const ran = await this.#options.runValue(value.run, this.#options.signal)
        if ('text' in ran) return this.#checked(name, at, { text: withoutLastLineEnds(ran.text), from: 'run' })
        this.#wrong(
          at,
          `the value of ${name} could not be found: ${withoutEnd(ran.problem)}; fix the command, or give --var ${name}=…`,
        )
        return null
      }
    }
  }

  #checked(name: string, at: At, value: FrozenValue): FrozenValue | null {
    const problem = valueProblem(value.text, this.#options.secretIn)
    if (problem === null) return value
    this.#wrong(at, `the value of ${name} ${problem}`)
    return null
  }

  /** Returns the default diff, the usual material of a commit message. */
  async #diff(): Promise<FrozenValue | null> {
    const { runValue, signal } = this.#options
    const at = this.#places(DIFF)[0]
    if (runValue === null || at === undefined) return null
    for (const { line, what } of DIFFS) {
      const ran = await runValue(line, signal)
      if ('problem' in ran) {
        this.#noDiff = `, and ${what} could not be found (${ran.problem})`
        return null
      }
      if (ran.text.trim() === '') continue
      this.#notes.push(`You gave no value for diff, so it is ${what}.`)
      return this.#checked(DIFF, at, { text: withoutLastLineEnds(ran.text), from: 'run' })
    }
    this.#notes.push('You gave no value for diff, and nothing has changed, so it is empty.')
    return { text: '', from: 'run' }
  }

  #places(name: string): Placed<string>[] {
    return this.#workflow.steps.flatMap(({ variables }) => variables.filter(({ value }) => value === name))
  }

  #missing(values: readonly (readonly [string, unknown])[]): Mistake[] {
    const { given, runValue } = this.#options
    const known = new Set(values.map(([name]) => name))
    const isUnknown = (name: string) =>
      !known.has(name) && (runValue !== null || (name !== DIFF && this.#file.vars.get(name)?.value.kind !== 'run'))
    const names = [...given.keys(), ...this.#file.vars.keys()]
    const places = this.#workflow.steps.flatMap(({ variables }) => variables).filter(({ value }) => isUnknown(value))
    return Array.from(Map.groupBy(inOrder(places), ({ value }) => value)).flatMap(([name, [at, ...others]]) => {
      if (at === undefined) return []
      const near = nearestName(name, names)
      const meant = near === null ? '' : `; the nearest is "${near}"`
      const why = name === DIFF ? this.#noDiff : ''
      const more = others.length === 0 ? '' : ` (and in ${others.length} more place${others.length === 1 ? '' : 's'})`
      return [
        this.#mistake(at, `{{${name}}} has no value${more}${why}; give --var ${name}=…, or one in [vars]${meant}`),
      ]
    })
  }
}

/** Measure it in parts: one text of everything could be endless. */
function isTooLarge(plan: FlowPlan): boolean {
  let bytes = 0
  for (const part of [...plan.steps, plan.values, plan.sources]) {
    bytes += Buffer.byteLength(JSON.stringify(part))
    if (bytes > MOST_PLAN) return true
  }
  return Buffer.byteLength(JSON.stringify(plan)) > MOST_PLAN
}

/** Drops final line ends, like a shell with a command's output. */
function withoutLastLineEnds(text: string): string {
  return text.replace(/[\r\n]+$/, '')
}

function withoutEnd(sentence: string): string {
  return sentence.replace(/\.$/, '')
}
