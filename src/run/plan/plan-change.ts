import { createTwoFilesPatch, FILE_HEADERS_ONLY } from 'diff'
import type { Redactor } from '../../base/redactor.ts'
import { clipEnd } from '../../base/text.ts'
import type { MemorySnapshot, MemoryTexts } from '../../core/contracts/memory.ts'
import type { Step } from '../../core/contracts/template.ts'
import type { EventOf } from '../../core/events/events.ts'
import type { RoundClass } from '../../core/events/outcome.ts'
import { endsPlanChange } from '../../core/rules/notices-after-round.ts'
import type { SessionState } from '../../core/state/state.ts'
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
  /** The files before the first try. */
  #before: MemoryTexts | null = null
  #brokenOff = 0

  constructor(log: SessionLog, redact: Redactor['text']) {
    this.#log = log
    this.#redact = redact
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
  end(end: RoundClass, memory: MemorySnapshot, state: SessionState): void {
    if (this.#before === null) return
    const round = state.running?.round ?? 0
    this.#brokenOff = isBrokenOff(end, state) ? this.#brokenOff + 1 : 0
    const isGivenUp = this.#brokenOff >= MOST_BROKEN_OFF
    if (!isGivenUp && !endsPlanChange(state, end)) return
    if (isGivenUp) this.#log.emit({ type: 'warning', round, message: GIVEN_UP })
    const files = planDiff(this.#before, memory.texts, this.#redact)
    this.#log.emit({ type: 'replanned', round, files })
    this.#before = null
    this.#brokenOff = 0
  }
}

const GIVEN_UP = `The change of plan is given up: ${MOST_BROKEN_OFF} rounds in a row broke off in the middle of it. Ask for it again in other words, or in smaller steps.`

/** Whether the agent had worked, and nothing says that time mends it. */
function isBrokenOff(end: RoundClass, { replan, running }: SessionState): boolean {
  if (running === null || !running.hasWorked || running.replan !== replan) return false
  return end === 'silent' || end === 'crashed'
}

type PlanFiles = EventOf<'replanned'>['files']

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
