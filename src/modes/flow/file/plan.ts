import { memberOf } from '../../../base/json.ts'
import { truncate } from '../../../base/text.ts'
import type { JsonSchema } from '../../../core/rules/answer.ts'

/** The engines that each workflow file can name, beside those of other makers; `exec` is `codex` with arguments of its own. */
export const FLOW_ENGINES: readonly string[] = ['codex', 'codemachine', 'mock']

/** A mistake in a workflow file; `line` and `column` from 1, of the file as it lies there. */
export interface Mistake {
  /** As the person named the file. */
  file: string
  line: number
  column: number
  /** Such as `workflow.steps[2].output.path`, counted from 0; empty: the file as a whole. */
  place: string
  /** What is wrong, and the mend: a sentence without its end. */
  problem: string
}

/** The most steps of one workflow. */
export const MOST_STEPS = 1_000
/** The most tries of one step beside its first. */
export const MOST_RETRIES = 5
/** Rounds of a step that is worked on until it is done, if it names no number. */
export const DEFAULT_ROUNDS = 10

/** What a part of an earlier step is taken from. `output`: its last message, or what its command printed. */
export type StepPart = 'output' | 'answer' | 'exit'

/** A value that is known before the run, or comes from an earlier step. */
export type Reference =
  | { variable: string }
  /** `field`: the path within the answer; empty: all of it. */
  | { step: string; part: StepPart; field: readonly string[] }

/** A template, cut into text and the references in it. */
export type TemplatePart = string | Reference

/** What `when` says: one comparison. Numbers are compared as such, all else as text. */
export interface Condition {
  /** As it was written. */
  text: string
  left: TemplatePart
  operator: (typeof OPERATORS)[number]
  right: TemplatePart
}

export const OPERATORS = ['==', '!=', '<=', '>=', '<', '>'] as const

/** A prompt as it was read at the start. */
export interface FrozenPrompt {
  /** As it is written in the file. */
  path: string
  /** Where it was found: relative to the work directory, with `/`. */
  found: string
  text: string
}

/** Where the output of a step goes beside the records. `path`: relative to the work directory, with `/`. */
type StepOutput = { kind: 'stdout' } | { kind: 'file'; path: string; append: boolean }

/** A step that an agent does. */
export interface AgentWork {
  kind: 'agent'
  /** As in `[agents.*]`. */
  agent: string
  /** One of `FLOW_ENGINES`, or the name of another maker's. */
  engine: string
  model: string | null
  /** Handed to codex in addition; any: it runs as `codex exec --json`. */
  args: readonly string[]
  prompt: FrozenPrompt
  input: readonly TemplatePart[]
  /** What its last message has to fit; null: any text. */
  schema: JsonSchema | null
  /** The most rounds, of engine `codemachine`. */
  rounds: number
}

/** A step that is a command for a shell. */
export interface CommandWork {
  kind: 'command'
  run: string
}

/** A step, with all that was read for it. */
export interface FlowStep {
  /** From 1. */
  index: number
  /** By which other steps name it: a slug, one of its kind in the workflow. */
  id: string
  /** Begins the names of its files: `{index}-{stem}.log`. */
  stem: string
  description: string | null
  work: AgentWork | CommandWork
  /** Commands that have to pass. */
  verify: readonly string[]
  /** Tries beside the first, 0 to 5. */
  retries: number
  /** Whether a person looks at the output first. */
  approve: boolean
  timeoutMs: number | null
  when: Condition | null
  /** Whether it may write nothing at all. */
  readOnly: boolean
  output: StepOutput
}

/** A value as it was read at the start. */
export interface FrozenValue {
  text: string
  /** `given`: by a flag or a file of values; else as `[vars]` has it. */
  from: 'given' | 'text' | 'file' | 'run'
}

/** A workflow with everything that it was read from: kept with the session, and never read again. JSON. */
export interface FlowPlan {
  v: 1
  /** The file: relative to the work directory with `/`, absolute where it lies outside. */
  file: string
  name: string
  description: string | null
  steps: readonly FlowStep[]
  values: Readonly<Record<string, FrozenValue>>
  /** The files that were read, relative to the work directory or absolute, with the hash of their bytes (hex). */
  sources: readonly { path: string; sha256: string }[]
}

/** What is known of a step without its texts: in `options` of `session-created`. */
export interface StepFacts extends Pick<FlowStep, 'index' | 'id' | 'stem' | 'retries'> {
  /** What a person sees: the description, else the id. */
  title: string
  /** `command`: it is no agent's. */
  engine: string
  agent: string | null
  model: string | null
  /** Ids of the steps of which it uses something. */
  needs: readonly string[]
  rounds: number
  /** Null: none is written. */
  path: string | null
  /** The command line that would do it, cut where it is long. */
  commandLine: string
  /** Left out: what the session may write. */
  readOnly?: true
}

/** What a step came to in the last run: all that is known of it beside its output. */
export interface CarriedStep {
  id: string
  mark: 'done' | 'skipped'
  exit: number | null
  /** The fields of its answer that conditions look at, as in `StepRecord`. */
  fields: Readonly<Record<string, string>>
}

/** How a workflow is run: what the template is told beside the goal. */
export interface FlowOptions {
  /** `mock`: everything is replayed. */
  mode: 'real' | 'mock'
  file: string
  name: string
  steps: readonly StepFacts[]
  /** What later steps ask of a step beside its output: its exit code, or a field of its answer (`field` empty: all of it). */
  asked: readonly { step: string; part: 'exit' | 'answer'; field: readonly string[] }[]
  /** Id of the step to begin with; null: the first. The outputs of those before are there. */
  from: string | null
  /** What is known of the steps before `from`. */
  carried: readonly CarriedStep[]
  continueOnError: boolean
  /** Whether a replay writes its output files, too. */
  writes: boolean
  /** Seconds between two events of a replay. */
  pace: number
  verbose: boolean
  /** Of a replay: how many notes, rounds and writes are shown of each step; left out: it is none. */
  shown?: readonly number[]
  /** Lines that stand below the title of each step in addition; left out: none. */
  told?: readonly (readonly string[])[]
}

/** Name of the kept text that holds the `FlowPlan` as JSON. */
export const PLAN_NAME = 'plan.json'

const MOST_SLUG = 60
/** A file system takes names of 255 bytes. */
const MOST_SLUG_BYTES = 220

/** Lower case, letters and digits of any script, and single dashes; at most 60 characters; empty if nothing is left. */
export function slugOf(text: string): string {
  const words = text
    .normalize('NFC')
    .toLowerCase()
    .replace(/[^\p{L}\p{M}\p{N}]+/gu, '-')
  return cutSlug(words.replace(/^-/, ''), MOST_SLUG)
}

/** The beginning of a slug; no longer in bytes than leaves room for the rest of a file's name. */
function cutSlug(slug: string, most: number): string {
  const letters = Array.from(slug).slice(0, most)
  while (Buffer.byteLength(letters.join('')) > MOST_SLUG_BYTES) letters.pop()
  return letters.join('').replace(/-$/, '')
}

/** Those slugs with `-2`, `-3` where one was there before; still at most 60 characters. */
export function distinctSlugs(slugs: readonly string[]): string[] {
  const taken = new Set<string>()
  const wanted = new Map<string, number>()
  return slugs.map(slug => {
    let distinct = slug
    for (let n = wanted.get(slug) ?? 1; taken.has(distinct); ) {
      n += 1
      wanted.set(slug, n)
      const end = `-${n}`
      distinct = `${cutSlug(slug, MOST_SLUG - end.length)}${end}`
    }
    taken.add(distinct)
    return distinct
  })
}

/** The stem of a step's files: the slug of its description, or `<agent>-agent`, or `command`. */
export function stemOf({ description, agent }: { description: string | null; agent: string | null }): string {
  return slugOf(description ?? '') || (agent === null ? 'command' : `${slugOf(agent)}-agent`)
}

/** Name of the file with a step's last message, in `memory/`. */
export function memoryFileOf({
  index,
  stem,
  description,
  work,
}: Pick<FlowStep, 'index' | 'stem' | 'description' | 'work'>): string {
  const agent = work.kind === 'agent' ? slugOf(work.agent) : 'command'
  return `${index}-${slugOf(description ?? '') === '' ? agent : stem}-agent-result.md`
}

/** The names that a step's recording may have, in `debug/`, the usual one first. */
export function recordingFilesOf({ index, stem, work }: Pick<FlowStep, 'index' | 'stem' | 'work'>): string[] {
  const usual = `${index}-${stem}.json`
  return work.kind === 'agent' ? [...new Set([usual, `${index}-${work.agent}-agent.json`])] : [usual]
}

/** The command line that would do the step: what a person would type. */
export function commandLineOf({ work, verify }: Pick<FlowStep, 'work' | 'verify'>): string {
  if (work.kind === 'command') return work.run
  const model = work.model === null ? [] : ['--model', work.model]
  if (work.engine === 'codemachine') {
    const gates = verify.flatMap(line => ['--verify', line])
    return `cat ${quoted(work.prompt.path)} | codemachine - ${[...model, ...gates].map(word).join(' ')}`.trimEnd()
  }
  if (runsElsewhere(work)) {
    const alone = ['codemachine', '-', '--rounds', '1', '--engine', work.engine, ...model]
    return `cat ${quoted(work.prompt.path)} | ${alone.map(word).join(' ')}`
  }
  return `cat ${quoted(work.prompt.path)} | ${['codex', 'exec', ...model, ...work.args].map(word).join(' ')}`
}

/** Whether the round of a step runs as `codex exec`. */
export function runsAsExec({ engine, args }: Pick<AgentWork, 'engine' | 'args'>): boolean {
  return engine === 'codex' && args.length > 0
}

/** Whether the round of a step runs on the engine of another maker. */
export function runsElsewhere({ engine }: Pick<AgentWork, 'engine'>): boolean {
  return !FLOW_ENGINES.includes(engine)
}

/** What is known of a step without its texts. */
export function factsOf(step: FlowStep): StepFacts {
  const { index, id, stem, description, work, retries, output } = step
  const isAgent = work.kind === 'agent'
  return {
    index,
    id,
    stem,
    title: truncate(description ?? id, MOST_TITLE),
    engine: isAgent ? work.engine : 'command',
    agent: isAgent ? work.agent : null,
    model: isAgent ? work.model : null,
    needs: neededSteps(step),
    retries,
    rounds: isAgent && work.engine === 'codemachine' ? work.rounds : 1,
    path: output.kind === 'file' ? output.path : null,
    commandLine: truncate(commandLineOf(step), MOST_LINE),
    ...(step.readOnly ? { readOnly: true } : {}),
  }
}

const MOST_TITLE = 200
const MOST_LINE = 300

/** How a plan is run, with what is known of its steps without their texts. */
export function flowOptionsOf(
  { file, name, steps }: Pick<FlowPlan, 'file' | 'name' | 'steps'>,
  how: Omit<FlowOptions, 'file' | 'name' | 'steps' | 'asked'>,
): FlowOptions {
  return { ...how, file, name, steps: steps.map(factsOf), asked: askedOf(steps) }
}

/** What conditions ask of answers, and any step of an exit code. */
function askedOf(steps: readonly FlowStep[]): FlowOptions['asked'] {
  const asked = new Map<string, FlowOptions['asked'][number]>()
  for (const { work, when } of steps) {
    const compared = when === null ? [] : [when.left, when.right]
    const exits = work.kind === 'agent' ? work.input : []
    for (const each of [
      ...compared,
      ...exits.filter(part => typeof part !== 'string' && 'step' in part && part.part === 'exit'),
    ]) {
      if (typeof each === 'string' || !('step' in each) || each.part === 'output') continue
      const { step, part, field } = each
      asked.set(JSON.stringify([step, part, field]), { step, part, field })
    }
  }
  return [...asked.values()]
}

/** The word by which a field of an answer is known. */
export function fieldKey(field: readonly string[]): string {
  return JSON.stringify(field)
}

const FIELD_CHARACTERS = 4_000

/** The fields of a step's answer that conditions look at, by `fieldKey`; none where the answer is not known (undefined). */
export function comparedFields(
  answer: unknown,
  id: string,
  { asked }: Pick<FlowOptions, 'asked'>,
): Readonly<Record<string, string>> {
  if (answer === undefined) return {}
  const fields = asked.filter(({ step, part }) => step === id && part === 'answer').map(({ field }) => field)
  return Object.fromEntries(fields.map(field => [fieldKey(field), textAt(answer, field).slice(0, FIELD_CHARACTERS)]))
}

/** The value at that path: a text as it is, else as JSON; empty if there is none. */
export function textAt(value: unknown, path: readonly string[]): string {
  const found = path.reduce<unknown>(memberOf, value)
  return typeof found === 'string' ? found : (JSON.stringify(found) ?? '')
}

/** Ids of the steps of which a step uses something, in its input or its condition; with `only` those of which it uses this. */
export function neededSteps({ work, when }: Pick<FlowStep, 'work' | 'when'>, only: StepPart | null = null): string[] {
  const parts = [...(work.kind === 'agent' ? work.input : []), ...(when === null ? [] : [when.left, when.right])]
  const needed = parts.flatMap(part => {
    if (typeof part === 'string' || !('step' in part)) return []
    return only === null || part.part === only ? [part.step] : []
  })
  return [...new Set(needed)]
}

/**
 * Whether a condition holds; what is compared is given as text. Numbers are compared as such; texts that are no numbers
 * are equal or not, and neither less nor greater.
 */
export function holds({ operator }: Pick<Condition, 'operator'>, left: string, right: string): boolean {
  const [a, b] = [numberOf(left), numberOf(right)]
  const areNumbers = a !== null && b !== null
  switch (operator) {
    case '==':
      return areNumbers ? a === b : left === right
    case '!=':
      return areNumbers ? a !== b : left !== right
    case '<':
      return areNumbers && a < b
    case '<=':
      return areNumbers && a <= b
    case '>':
      return areNumbers && a > b
    case '>=':
      return areNumbers && a >= b
  }
}

function numberOf(text: string): number | null {
  return /^\s*[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\s*$/i.test(text) ? Number(text) : null
}

/** A word of a command line, in quotes where a shell would read more into it. */
function word(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : quoted(text)
}

function quoted(text: string): string {
  return `"${text.replace(/["\\$`]/g, '\\$&')}"`
}
