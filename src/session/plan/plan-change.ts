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

/** What a template asks for that does not change the plan, though a person has asked for that. */
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
/** After so many rounds in a row that worked and then fell silent or crashed, it is given up. */
const MOST_BROKEN_OFF = 3

/** The change of plan that a person asked for, from the first round that tries it to what came of it. */
export class PlanChange {
  readonly #log: SessionLog
  readonly #redact: Redactor['text']
  readonly #memory: Memory
  readonly #kept: PlanBefore
  /** The files before the first try. */
  #before: MemoryTexts | null = null
  #brokenOff = 0

  constructor({ log, redactor, memory, planBefore }: PlanChangeOptions) {
    this.#log = log
    this.#redact = text => redactor.text(text)
    this.#memory = memory
    this.#kept = planBefore
  }

  /**
   * True if it is left out, which is journaled: the template asks for something else first, so it has nothing by which a
   * plan could be changed, and what was asked for is not left standing.
   */
  passOver(next: Step['kind']): boolean {
    const { template, last, replan } = this.#log.state
    if (replan === null || !PASSES_OVER.has(next)) return false
    const message = `A session of the template ${template} cannot change its plan, so what was asked for is left out; to tell its agents something, use codemachine steer.`
    this.#log.emit({ type: 'warning', round: null, message })
    this.#log.emit({ type: 'replanned', round: last?.round ?? 0, files: [] })
    return true
  }

  /** A round starts that is to make it. */
  begin(memory: MemorySnapshot): void {
    this.#before ??= memory.texts
  }

  /**
   * That round has ended, and left the files so: journals what changed, unless it is to be tried again.
   * @param state the session just before the round ended
   */
  async end(end: RoundClass, memory: MemorySnapshot, state: SessionState): Promise<void> {
    if (this.#before === null) return
    const round = state.running?.round ?? 0
    this.#brokenOff = isBrokenOff(end, state) ? this.#brokenOff + 1 : 0
    const isGivenUp = this.#brokenOff >= MOST_BROKEN_OFF
    // What a person has asked for since makes one change with this, which the next round tries.
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
   * Puts the files of the plan back as they were before its last change, which is journaled. Only while the session holds.
   * Resolves with why not, a sentence; null: they are back. A `UserError` if they cannot be written.
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

/** Whether nothing runs that reads or writes the plan. */
function isHeld({ pausedAt, running, replan }: SessionState): boolean {
  return pausedAt !== null && running === null && replan === null
}

/**
 * The file that is not what that change has left, but for what codemachine writes itself; null: none. One that is as it was
 * before counts as unchanged: a putting back that was cut off has left it so.
 */
function changedSince({ before, after }: { before: MemoryTexts; after: MemoryTexts }, now: MemoryTexts): string | null {
  if (now.main !== after.main && now.main !== before.main) return 'MAIN.md'
  if (now.tasks === after.tasks || now.tasks === before.tasks) return null
  return isSamePlan(tasksIn(after), tasksIn(now)) ? null : 'tasks.json'
}

const GIVEN_UP = `The plan was not changed: ${MOST_BROKEN_OFF} rounds in a row were interrupted. Ask for it again in other words, or in smaller steps.`

/** Whether the agent had worked, and nothing says that time mends it. */
function isBrokenOff(end: RoundClass, { replan, running }: SessionState): boolean {
  if (running === null || !running.hasWorked || running.replan !== replan) return false
  return end === 'silent' || end === 'crashed'
}

type Replanned = EventOf<'replanned'>
type PlanFiles = Replanned['files']

/** The most tasks that are told of, the most characters of a text of one, and the most fields of it. */
const MOST_TASKS = 100
const MOST_TASK_CHARACTERS = 500
const MOST_FIELDS = 10

/** What a change did, as it is journaled. Pure. */
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

/** Those of a text that is no list of tasks: none. */
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

/** The lines that came and went; null if none did, or too many to be counted. */
function linesOf(before: string, after: string): { added: number; removed: number } | null {
  if (before === after || isLong(before) || isLong(after)) return null
  const parts = diffLines(before, after, { maxEditLength: MOST_EDITS })
  const count = (is: 'added' | 'removed') =>
    parts?.reduce((sum, part) => sum + (part[is] ? (part.count ?? 0) : 0), 0) ?? 0
  return parts === undefined ? null : { added: count('added'), removed: count('removed') }
}

/**
 * What changed in the memory files, as unified diffs of at most 16 KiB each, which then say how much is missing. Pure.
 * @param redact takes secrets out of a whole text: one that a bound cuts in two would not be found later
 */
export function planDiff(before: MemoryTexts, after: MemoryTexts, redact: (text: string) => string): PlanFiles {
  return [
    { file: 'MAIN.md' as const, diff: diffOf('MAIN.md', before.main, after.main, redact) },
    { file: 'tasks.json' as const, diff: diffOf('tasks.json', before.tasks, after.tasks, redact) },
  ].filter(({ diff }) => diff !== '')
}

const MOST_CHARACTERS = 16 * 1024
/** Looking for a shorter way between two files takes time with its square; this much some 50 ms. */
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

/** Where so much is different that it is not worth the time to say what. */
const ANEW = '[… written anew]\n'

function isLong(text: string): boolean {
  let lines = 0
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) if (++lines > MOST_LINES) return true
  return false
}
