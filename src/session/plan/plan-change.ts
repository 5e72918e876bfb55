import { createTwoFilesPatch, diffLines, FILE_HEADERS_ONLY } from 'diff'
import { clipEnd } from '../../base/text.ts'
import type { EventOf } from '../../core/events/events.ts'
import type { RoundClass } from '../../core/events/outcome.ts'
import { endsPlanChange } from '../../core/rules/notices-after-round.ts'
import type { Memory, MemorySnapshot, MemoryTexts } from '../../core/shapes/memory.ts'
import { compareTasks, isSamePlan, type RawTasks, type TaskChange } from '../../core/state/plan-difference.ts'
import type { SessionState } from '../../core/state/state.ts'
import type { Step } from '../../core/template.ts'
import type { Redactor } from '../../secrets/redactor.ts'
import { rawTasksById } from '../../workspace/memory/tasks-file.ts'
import type { RunnerOptions } from '../options.ts'
import type { PlanBefore } from '../records/plan-before.ts'
import type { SessionLog } from '../session-log.ts'

/** Steps that do not change the plan, although a person has asked for a change. */
const PASSES_OVER = new Set<Step['kind']>([
  'round',
  'look',
  'command',
  'write',
  'claim',
  'leave-scope',
  'enter',
  'keep',
  'gates',
  'decide',
])
/** After this many rounds in a row that worked and then fell silent or crashed, the change is given up. */
const MOST_BROKEN_OFF = 3

/** Tracks a requested change of plan from its first round to its result. */
export class PlanChange {
  readonly #log: SessionLog
  readonly #redact: Redactor['text']
  readonly #memory: Memory
  readonly #kept: PlanBefore
  /** The files before the first attempt. */
  #before: MemoryTexts | null = null
  #brokenOff = 0

  constructor({ log, redactor, memory, planBefore }: PlanChangeOptions) {
    this.#log = log
    this.#redact = text => redactor.text(text)
    this.#memory = memory
    this.#kept = planBefore
  }

  /**
   * Drops the request, journals that, and returns true if the template asks for another step first. Such a template cannot
   * change a plan, and the request must not stay open.
   */
  passOver(next: Step['kind']): boolean {
    const { template, last, replan } = this.#log.state
    if (replan === null || !PASSES_OVER.has(next)) return false
    const message = `A session of the template ${template} cannot change its plan, so codemachine ignores the request. To tell its agents something: codemachine steer`
    this.#log.emit({ type: 'warning', round: null, message })
    this.#log.emit({ type: 'replanned', round: last?.round ?? 0, files: [] })
    return true
  }

  /** Notes the start of a round that makes the change. */
  begin(memory: MemorySnapshot): void {
    this.#before ??= memory.texts
  }

  /**
   * Journals the changes after that round, unless it is tried again.
   * @param state the session just before the round ended
   */
  async end(end: RoundClass, memory: MemorySnapshot, state: SessionState): Promise<void> {
    if (this.#before === null) return
    const round = state.running?.round ?? 0
    this.#brokenOff = isBrokenOff(end, state) ? this.#brokenOff + 1 : 0
    const isGivenUp = this.#brokenOff >= MOST_BROKEN_OFF
    // A later request of the person joins this change, and the next round tries both.
    const asksMore = () => this.#log.state.replan !== state.replan
    if (!isGivenUp && (!endsPlanChange(state, end) || asksMore())) return
    if (isGivenUp) this.#log.emit({ type: 'warning', round, message: GIVEN_UP })
    const change = planChange(this.#before, memory.texts, this.#redact)
    const isKept = change.files.length > 0 && (await this.#kept.keep({ before: this.#before, after: memory.texts }))
    if (!isGivenUp && asksMore()) return
    this.#log.emit({ type: 'replanned', round, ...change, ...(isKept && { kept: true as const }) })
    this.#before = null
    this.#brokenOff = 0
  }

  /**
   * Restores the plan's files from before its last change, and journals that; only while the session is held. Resolves with
   * a sentence on why not, or null. Throws a `UserError` if a file cannot be written.
   */
  async putBack(): Promise<string | null> {
    const kept = await this.#kept.read()
    if (kept === null) return 'No earlier plan is stored that could be restored.'
    const { texts } = await this.#memory.read()
    const changed = changedSince(kept, texts)
    if (changed !== null) return `${changed} was changed after the plan; restore by hand what you want.`
    if (!isHeld(this.#log.state)) return NOT_HELD
    await this.#memory.replaceTexts(kept.before)
    const change = planChange(texts, kept.before, this.#redact)
    this.#log.emit({ type: 'replanned', round: this.#log.state.last?.round ?? 0, ...change, putBack: true })
    await this.#kept.drop()
    return null
  }
}

type PlanChangeOptions = Pick<RunnerOptions, 'log' | 'redactor' | 'memory' | 'planBefore'>

const NOT_HELD = 'The plan can be restored only while the session is paused and no round runs.'

/** True if nothing runs that reads or writes the plan. */
function isHeld({ pausedAt, running, replan }: SessionState): boolean {
  return pausedAt !== null && running === null && replan === null
}

/**
 * Returns the file that changed since that change, apart from codemachine's own writes; null: none. A file equal to its
 * earlier text counts as unchanged: an interrupted restore left it so.
 */
function changedSince({ before, after }: { before: MemoryTexts; after: MemoryTexts }, now: MemoryTexts): string | null {
  if (now.main !== after.main && now.main !== before.main) return 'MAIN.md'
  if (now.tasks === after.tasks || now.tasks === before.tasks) return null
  return isSamePlan(tasksIn(after), tasksIn(now)) ? null : 'tasks.json'
}

const GIVEN_UP = `The plan was not changed: ${MOST_BROKEN_OFF} rounds in a row were interrupted. Ask for it again in other words, or in smaller steps.`

/** True if the agent had worked and then fell silent or crashed, so that time alone does not help. */
function isBrokenOff(end: RoundClass, { replan, running }: SessionState): boolean {
  if (running === null || !running.hasWorked || running.replan !== replan) return false
  return end === 'silent' || end === 'crashed'
}

type Replanned = EventOf<'replanned'>
type PlanFiles = Replanned['files']

/** Most tasks in the event, most characters of one text of a task, and most fields of a task. */
const MOST_TASKS = 100
const MOST_TASK_CHARACTERS = 500
const MOST_FIELDS = 10

/** Returns the effect of a change as it is journaled. Pure. */
function planChange(
  before: MemoryTexts,
  after: MemoryTexts,
  redact: (text: string) => string,
): Pick<Replanned, 'files' | 'tasks' | 'main'> {
  const files = planDiff(before, after, redact)
  const main = linesOf(before.main, after.main)
  if (before.tasks === after.tasks) return { files, ...(main && { main }) }
  const changes = compareTasks(tasksIn(before), tasksIn(after))
  const shown = changes.slice(0, MOST_TASKS).map(change => shownChange(change, redact))
  return { files, tasks: { changes: shown, count: changes.length }, ...(main && { main }) }
}

/** Returns the raw tasks by id; empty if the text is not a list of tasks. */
function tasksIn({ tasks }: MemoryTexts): RawTasks {
  try {
    return rawTasksById(tasks)
  } catch {
    return new Map()
  }
}

function shownChange({ id, name, how, was, fields, behind }: TaskChange, redact: (text: string) => string): TaskChange {
  const shown = (text: string) => clipEnd(redact(text), MOST_TASK_CHARACTERS)
  return {
    id: shown(id),
    name: shown(name),
    how,
    ...(was === undefined ? {} : { was: shown(was) }),
    ...(fields === undefined ? {} : { fields: fields.slice(0, MOST_FIELDS).map(shown) }),
    ...(behind === undefined ? {} : { behind: behind === null ? null : shown(behind) }),
  }
}

/** Returns the numbers of added and removed lines; null: none, or too many to count. */
function linesOf(before: string, after: string): { added: number; removed: number } | null {
  if (before === after || isLong(before) || isLong(after)) return null
  const parts = diffLines(before, after, { maxEditLength: MOST_EDITS })
  const count = (is: 'added' | 'removed') =>
    parts?.reduce((sum, part) => sum + (part[is] ? (part.count ?? 0) : 0), 0) ?? 0
  return parts === undefined ? null : { added: count('added'), removed: count('removed') }
}

/**
 * Returns the changes of the memory files as unified diffs of at most 16 KiB each; a cut diff says how much is missing.
 * Pure.
 * @param redact takes secrets out of a whole text: one that a bound cuts in two would not be found later
 */
export function planDiff(before: MemoryTexts, after: MemoryTexts, redact: (text: string) => string): PlanFiles {
  return [
    { file: 'MAIN.md' as const, diff: diffOf('MAIN.md', before.main, after.main, redact) },
    { file: 'tasks.json' as const, diff: diffOf('tasks.json', before.tasks, after.tasks, redact) },
  ].filter(({ diff }) => diff !== '')
}

const MOST_CHARACTERS = 16 * 1024
/** Most edits in a diff: the search takes time with their square, and 500 take some 50 ms. */
const MOST_EDITS = 500
const MOST_LINES = 20_000

function diffOf(name: string, before: string, after: string, redact: (text: string) => string): string {
  if (before === after) return ''
  const [from, to] = [redact(before), redact(after)]
  const headers = `--- ${name}\n+++ ${name}\n`
  if (from === to) return `${headers}[… only a secret is different]\n`
  if (isLong(from) || isLong(to)) return `${headers}${ANEW}`
  const options = { context: 3, maxEditLength: MOST_EDITS, headerOptions: FILE_HEADERS_ONLY }
  const diff = createTwoFilesPatch(name, name, from, to, undefined, undefined, options)
  return clipEnd(diff ?? `${headers}${ANEW}`, MOST_CHARACTERS)
}

/** Shown in place of a diff that would take too long. */
const ANEW = '[… written anew]\n'

function isLong(text: string): boolean {
  let lines = 0
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) if (++lines > MOST_LINES) return true
  return false
}
