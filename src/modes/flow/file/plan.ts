import { memberOf, parsedOrNull } from '../../../base/json.ts'
import { truncate } from '../../../base/text.ts'
import type { JsonSchema } from '../../../core/rules/answer.ts'

/** Built-in engines for workflow files; `exec` is `codex` with its own arguments. */
export const FLOW_ENGINES: readonly string[] = ['codex', 'codemachine', 'mock']

/** A mistake in a workflow file; `line` and `column` from 1, as in the file. */
export interface Mistake {
  /** Path as the person typed it. */
  file: string
  line: number
  column: number
  /** Such as `workflow.steps[2].output.path`, counted from 0; empty: the whole file. */
  place: string
  /** The mistake and its fix: a sentence without its end. */
  problem: string
}

/** Sorts what has a place: by file, then by line. */
export function inOrder<T extends { file?: string; line: number; column: number }>(placed: readonly T[]): T[] {
  const order = (a: T, b: T) => (a.file ?? '').localeCompare(b.file ?? '') || a.line - b.line || a.column - b.column
  return placed.toSorted(order)
}

/** The most steps of one workflow. */
export const MOST_STEPS = 1_000
/** Most retries of one step. */
export const MOST_RETRIES = 5
/** Default rounds of a step that is worked on until it is done. */
export const DEFAULT_ROUNDS = 10

/** Source of an earlier step's part. `output`: its last message, or its command's output. */
export type StepPart = 'output' | 'answer' | 'exit'

/** A value known before the run, or from an earlier step. */
export type Reference =
  | { variable: string }
  /** `field`: path within the answer; empty: all of it. */
  | { step: string; part: StepPart; field: readonly string[] }

/** Parts of a template: text and references. */
export type TemplatePart = string | Reference

/** A comparison of two values. Numbers are compared as such, everything else as text. */
export interface Comparison {
  left: TemplatePart
  operator: (typeof OPERATORS)[number]
  right: TemplatePart
}

/** Parsed `when`: its first comparison, and the others with the word before each; `and` binds closer than `or`. */
export interface Condition extends Comparison {
  /** As written. */
  text: string
  more?: readonly (Comparison & { by: Connector })[]
}

export type Connector = 'and' | 'or'

export const OPERATORS = ['==', '!=', '<=', '>=', '<', '>', 'contains'] as const

/** Returns the groups of comparisons of a condition: it is true if all of one group are. */
function groupsOf({ left, operator, right, more = [] }: Condition): Comparison[][] {
  const groups: Comparison[][] = [[{ left, operator, right }]]
  for (const { by, ...comparison } of more) {
    if (by === 'or') groups.push([comparison])
    else groups.at(-1)?.push(comparison)
  }
  return groups
}

/** Returns whether a condition is true. Null: the unknown value of one comparison decides. */
export function conditionHolds(when: Condition, comparisonHolds: (each: Comparison) => boolean | null): boolean | null {
  const groups = groupsOf(when).map(group => {
    const all = group.map(comparisonHolds)
    return all.includes(false) ? false : all.includes(null) ? null : true
  })
  return groups.includes(true) ? true : groups.includes(null) ? null : false
}

/** Returns the values that a step uses: those of its input, then those that its condition compares. */
export function usedParts({ work, when, forEach }: Pick<FlowStep, 'work' | 'when' | 'forEach'>): TemplatePart[] {
  return [...[forEach ?? []].flat(), ...(work.kind === 'agent' ? work.input : []), ...comparedParts(when)]
}

function comparedParts(when: Condition | null): TemplatePart[] {
  return when === null ? [] : groupsOf(when).flatMap(group => group.flatMap(({ left, right }) => [left, right]))
}

/** A prompt as read at the start. */
export interface FrozenPrompt {
  /** Path as written in the file. */
  path: string
  /** Its place: relative to the work directory, with `/`. */
  found: string
  text: string
}

/** Where a step's output goes, apart from the records. */
type StepOutput = { kind: 'stdout' } | OutputFile

/** `path`: relative to the work directory, with `/`. `field`: path within the answer; left out: all of it. */
export interface OutputFile {
  kind: 'file'
  path: string
  append: boolean
  field?: readonly string[]
}

/** Returns the files that a step writes, in order. */
export function filesOf({ output }: Pick<FlowStep, 'output'>): OutputFile[] {
  return [output].flat().filter(each => each.kind === 'file')
}

/** A step for an agent. */
export interface AgentWork {
  kind: 'agent'
  /** As in `[agents.*]`. */
  agent: string
  /** One of `FLOW_ENGINES`, or the name of another maker's. */
  engine: string
  model: string | null
  /** Further arguments for codex; if any, it runs as `codex exec --json`. */
  args: readonly string[]
  prompt: FrozenPrompt
  input: readonly TemplatePart[]
  /** Schema of its last message; null: free text. */
  schema: JsonSchema | null
  /** Most rounds, for engine `codemachine`. */
  rounds: number
}

/** A step that is a command for a shell. */
export interface CommandWork {
  kind: 'command'
  run: string
}

/** A step, with everything that was read for it. */
export interface FlowStep {
  /** From 1. */
  index: number
  /** Name for other steps: a slug, unique in the workflow. */
  id: string
  /** Prefix of its file names: `{index}-{stem}.log`. */
  stem: string
  description: string | null
  work: AgentWork | CommandWork
  /** Commands that must pass. */
  verify: readonly string[]
  /** Retries, 0 to 5. */
  retries: number
  /** Whether a person looks at the output first. */
  approve: boolean
  timeoutMs: number | null
  when: Condition | null
  /** Left out: its failure is one of the workflow. */
  continueOnError?: true
  /** Whether it may write nothing at all. */
  readOnly: boolean
  /** Ids of the steps before it, if the file says them; steps whose needs have ended run side by side. Left out: all before it. */
  needs?: readonly string[]
  /** What it is repeated for: texts, or the source of a list; left out: it runs once. */
  forEach?: readonly string[] | Reference
  /** Its item and the number of it, from 1, of a step that a loop made. */
  item?: { n: number; text: string }
  output: StepOutput | readonly StepOutput[]
}

/** The most items of a loop. */
export const MOST_ITEMS = 100

/** Items of a loop; `count`: of the whole list. */
export interface Items {
  texts: readonly string[]
  count: number
}

/** Returns the elements of a JSON list, or the lines of another text. */
export function listIn(text: string): string[] {
  const list = parsedOrNull(text)
  if (Array.isArray(list)) return list.map((_, at) => textAt(list, [String(at)]))
  return text.split(/\r?\n/).filter(line => line.trim() !== '')
}

/** Returns the steps of a loop: one for each item, and then the loop itself, which collects their outputs. */
export function stepsOfLoop(step: FlowStep, { texts, count }: Items): FlowStep[] {
  const { forEach: _, ...rest } = step
  const made = texts.map((text, at): FlowStep => {
    const fill = (part: TemplatePart) => filled(part, text, at + 1)
    const { work, when } = step
    return {
      ...rest,
      ...namesOfItem(step, at + 1),
      description: titleOfItem(step.description ?? step.id, at + 1, { texts, count }),
      work: work.kind === 'agent' ? { ...work, input: work.input.map(fill) } : work,
      when: when && {
        ...when,
        left: fill(when.left),
        right: fill(when.right),
        ...(when.more && {
          more: when.more.map(each => ({ ...each, left: fill(each.left), right: fill(each.right) })),
        }),
      },
      output: { kind: 'stdout' },
      item: { n: at + 1, text },
    }
  })
  return [...made, step]
}

/** Names that stand for the item and its number in a loop. */
export const LOOP_NAMES: readonly string[] = ['item', 'index']

function filled(part: TemplatePart, item: string, index: number): TemplatePart {
  if (typeof part === 'string' || !('variable' in part)) return part
  if (part.variable === 'item') return item
  return part.variable === 'index' ? String(index) : part
}

/** Returns id and stem of the step of an item; no other id has two dashes. */
function namesOfItem({ index, id, stem }: Pick<FlowStep, 'index' | 'id' | 'stem'>, n: number) {
  return { id: `${cutSlug(`${index}-${id}`, MOST_SLUG - 5)}--${n}`, stem: `${stem}-${n}` }
}

function titleOfItem(title: string, n: number, { texts, count }: Items): string {
  return truncate(`${title} (${n} of ${count}: ${texts[n - 1]?.replace(/\s+/g, ' ')})`, MOST_TITLE)
}

/** Returns the facts of the steps of a loop, as `stepsOfLoop`. */
export function factsOfLoop({ loop: _, ...facts }: StepFacts, items: Items): StepFacts[] {
  return items.texts.map((_, at) => ({
    ...facts,
    ...namesOfItem(facts, at + 1),
    title: titleOfItem(facts.title, at + 1, items),
    path: null,
    item: at + 1,
  }))
}

/** Returns the index of the first step from `from` on; a loop begins with its items. Null: the first. */
export function beginOf(steps: readonly Pick<FlowStep, 'id' | 'index'>[], from: string | null): number {
  const index = steps.find(({ id }) => id === from)?.index ?? 1
  return Math.max(
    0,
    steps.findIndex(each => each.index === index),
  )
}

/** A value as read at the start. */
export interface FrozenValue {
  text: string
  /** `given`: by a flag or a file of values; else its source in `[vars]`. */
  from: 'given' | 'text' | 'file' | 'run'
}

/** A workflow with all its sources: stored with the session, and never read again. JSON. */
export interface FlowPlan {
  v: 1
  /** The file: relative to the work directory with `/`, absolute if outside. */
  file: string
  name: string
  description: string | null
  steps: readonly FlowStep[]
  values: Readonly<Record<string, FrozenValue>>
  /** Most steps at work at the same time; left out: 2. */
  maxParallel?: number
  /** Files that were read, relative to the work directory or absolute, with the hash of their bytes (hex). */
  sources: readonly { path: string; sha256: string }[]
}

/** Facts of a step without its texts: in `options` of `session-created`. */
export interface StepFacts extends Pick<FlowStep, 'index' | 'id' | 'stem' | 'retries' | 'continueOnError'> {
  /** Title for a person: the description, else the id. */
  title: string
  /** `command`: not an agent's. */
  engine: string
  agent: string | null
  model: string | null
  /** Ids of the steps whose results it uses. */
  needs: readonly string[]
  rounds: number
  /** Its files, for people; null: it writes none. */
  path: string | null
  /** Command line that would do it, cut if long. */
  commandLine: string
  /** Left out: the session's rights. */
  readOnly?: true
  /** Whether it is repeated for items. */
  loop?: true
  /** Number of its item, of a step that a loop made. */
  item?: number
}

/** Result of a step in the last run, apart from its output. */
export interface CarriedStep {
  id: string
  mark: 'done' | 'skipped'
  exit: number | null
  /** Compared fields of its answer, as in `StepRecord`. */
  fields: Readonly<Record<string, string>>
}

/** How to run a workflow: the template's options. */
export interface FlowOptions {
  /** `mock`: replay everything. */
  mode: 'real' | 'mock'
  file: string
  name: string
  steps: readonly StepFacts[]
  /** Parts that later steps use, apart from output: exit code, or a field of the answer (`field` empty: all). */
  asked: readonly { step: string; part: 'exit' | 'answer'; field: readonly string[] }[]
  /** Id of the first step to run; null: the first. Outputs of earlier steps exist. */
  from: string | null
  /** Known results of the steps before `from`. */
  carried: readonly CarriedStep[]
  continueOnError: boolean
  /** Whether a replay writes its output files too. */
  writes: boolean
  /** Seconds between two events of a replay. */
  pace: number
  verbose: boolean
  /** For a replay: number of shown notes, rounds and writes of each step; left out: no replay. */
  shown?: readonly number[]
  /** Further lines below the title of each step; left out: none. */
  told?: readonly (readonly string[])[]
}

/** Name of the kept text that holds the `FlowPlan` as JSON. */
export const PLAN_NAME = 'plan.json'

const MOST_SLUG = 60
/** File systems allow names of 255 bytes. */
const MOST_SLUG_BYTES = 220

/** Returns a slug: lower case, letters and digits of any script, single dashes; at most 60 characters; may be empty. */
export function slugOf(text: string): string {
  const words = text
    .normalize('NFC')
    .toLowerCase()
    .replace(/[^\p{L}\p{M}\p{N}]+/gu, '-')
  return cutSlug(words.replace(/^-/, ''), MOST_SLUG)
}

/** Cuts a slug; its bytes must leave space for the rest of a file name. */
function cutSlug(slug: string, most: number): string {
  const letters = Array.from(slug).slice(0, most)
  while (Buffer.byteLength(letters.join('')) > MOST_SLUG_BYTES) letters.pop()
  return letters.join('').replace(/-$/, '')
}

/** Makes slugs unique with `-2`, `-3`; still at most 60 characters. */
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

/** Returns the stem of a step's files: the slug of its description, or `<agent>-agent`, or `command`. */
export function stemOf({ description, agent }: { description: string | null; agent: string | null }): string {
  return slugOf(description ?? '') || (agent === null ? 'command' : `${slugOf(agent)}-agent`)
}

/** Returns the file name of a step's last message, in `memory/`. */
export function memoryFileOf({
  index,
  stem,
  description,
  work,
}: Pick<FlowStep, 'index' | 'stem' | 'description' | 'work'>): string {
  const agent = work.kind === 'agent' ? slugOf(work.agent) : 'command'
  return `${index}-${slugOf(description ?? '') === '' ? agent : stem}-agent-result.md`
}

/** Returns the possible names of a step's recording in `debug/`, the main one first. */
export function recordingFilesOf({
  index,
  stem,
  work,
  item,
}: Pick<FlowStep, 'index' | 'stem' | 'work' | 'item'>): string[] {
  const usual = `${index}-${stem}.json`
  return work.kind === 'agent' && item === undefined
    ? [...new Set([usual, `${index}-${work.agent}-agent.json`])]
    : [usual]
}

/** Returns the command line that a person would type for the step. */
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

/** Returns whether a step's round runs as `codex exec`. */
export function runsAsExec({ engine, args }: Pick<AgentWork, 'engine' | 'args'>): boolean {
  return engine === 'codex' && args.length > 0
}

/** Returns whether a step's round runs on another maker's engine. */
export function runsElsewhere({ engine }: Pick<AgentWork, 'engine'>): boolean {
  return !FLOW_ENGINES.includes(engine)
}

/** Returns the facts of a step without its texts. */
export function factsOf(step: FlowStep): StepFacts {
  const { index, id, stem, description, work, retries } = step
  const isAgent = work.kind === 'agent'
  return {
    index,
    id,
    stem,
    title: truncate(description ?? id, MOST_TITLE),
    engine: isAgent ? work.engine : 'command',
    agent: isAgent ? work.agent : null,
    model: isAgent ? work.model : null,
    needs: [...new Set([...(step.needs ?? []), ...neededSteps(step)])],
    retries,
    rounds: isAgent && work.engine === 'codemachine' ? work.rounds : 1,
    path: pathsOf(step),
    commandLine: truncate(commandLineOf(step), MOST_LINE),
    ...(step.readOnly ? { readOnly: true } : {}),
    ...(step.continueOnError ? { continueOnError: true } : {}),
    ...(step.forEach === undefined ? {} : { loop: true }),
    ...(step.item && { item: step.item.n }),
  }
}

const MOST_TITLE = 200
const MOST_LINE = 300

/** Returns the paths of a step's files in one text; null: none. */
export function pathsOf(step: Pick<FlowStep, 'output'>): string | null {
  return (
    filesOf(step)
      .map(({ path }) => path)
      .join(', ') || null
  )
}

/** Returns the options of a plan, with the facts of its steps without their texts. */
export function flowOptionsOf(
  { file, name, steps }: Pick<FlowPlan, 'file' | 'name' | 'steps'>,
  how: Omit<FlowOptions, 'file' | 'name' | 'steps' | 'asked'>,
): FlowOptions {
  return { ...how, file, name, steps: steps.map(factsOf), asked: askedOf(steps) }
}

/** Returns the answer fields in conditions, and the exit codes in any step. */
function askedOf(steps: readonly FlowStep[]): FlowOptions['asked'] {
  const asked = new Map<string, FlowOptions['asked'][number]>()
  for (const { work, when } of steps) {
    const compared = comparedParts(when)
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

/** Returns the key of an answer's field. */
export function fieldKey(field: readonly string[]): string {
  return JSON.stringify(field)
}

const FIELD_CHARACTERS = 4_000

/** Returns the compared fields of a step's answer, by `fieldKey`; none for an unknown answer (undefined). */
export function comparedFields(
  answer: unknown,
  id: string,
  { asked }: Pick<FlowOptions, 'asked'>,
): Readonly<Record<string, string>> {
  if (answer === undefined) return {}
  const fields = asked.filter(({ step, part }) => step === id && part === 'answer').map(({ field }) => field)
  return Object.fromEntries(fields.map(field => [fieldKey(field), textAt(answer, field).slice(0, FIELD_CHARACTERS)]))
}

/** Returns the value at that path: a text unchanged, else as JSON; empty if there is none. */
export function textAt(value: unknown, path: readonly string[]): string {
  const found = path.reduce<unknown>(memberOf, value)
  return typeof found === 'string' ? found : (JSON.stringify(found) ?? '')
}

/** Returns the ids of the steps whose results a step uses in its input or condition; `only`: just for this part. */
export function neededSteps(step: Pick<FlowStep, 'work' | 'when' | 'forEach'>, only: StepPart | null = null): string[] {
  const needed = usedParts(step).flatMap(part => {
    if (typeof part === 'string' || !('step' in part)) return []
    return only === null || part.part === only ? [part.step] : []
  })
  return [...new Set(needed)]
}

/**
 * Returns whether a comparison is true for two texts. Numbers are compared as such; other texts are only equal or not, never
 * less or greater.
 */
export function holds({ operator }: Pick<Comparison, 'operator'>, left: string, right: string): boolean {
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
    case 'contains':
      return left.includes(right)
  }
}

function numberOf(text: string): number | null {
  return /^\s*[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\s*$/i.test(text) ? Number(text) : null
}

/** Quotes a word of a command line if a shell would interpret it. */
function word(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : quoted(text)
}

function quoted(text: string): string {
  return `"${text.replace(/["\\$`]/g, '\\$&')}"`
}
