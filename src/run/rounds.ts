import { isDeepStrictEqual } from 'node:util'
import { createTwoFilesPatch, FILE_HEADERS_ONLY } from 'diff'
import type { Clock } from '../base/clock.ts'
import type { Redactor } from '../base/redactor.ts'
import { clipEnd } from '../base/text.ts'
import type { Engines, PreparedRound } from '../core/contracts/engine.ts'
import type { Memory, MemorySnapshot, MemoryTexts } from '../core/contracts/memory.ts'
import { inTemplate, type RoundStep, type Template, type ThreadSpec } from '../core/contracts/template.ts'
import type { EventOf } from '../core/events/events.ts'
import { countsAsRound, type RoundClass, type RoundOutcome } from '../core/events/outcome.ts'
import { endsPlanChange } from '../core/rules/notices-after-round.ts'
import { higherEffort } from '../core/rules/stall.ts'
import { countTasks, partOf, roundTokens, type SessionState } from '../core/state/state.ts'
import type { Answers } from './answers.ts'
import { emitRestored, judgeClaim, type RepositoryGuard, type WorkTree } from './claim.ts'
import type { CurrentTurn } from './current-turn.ts'
import type { Proof } from './gates.ts'
import type { RunnerOptions } from './options.ts'
import type { PersonAsked } from './person.ts'
import type { RoundProviders } from './providers/round-providers.ts'
import type { Budget } from './retry-policy.ts'
import type { SessionLog } from './session-log.ts'
import type { MemoryAtHand } from './session-runner.ts'

export interface RoundsOptions extends RunnerOptions {
  ahead: ThreadAhead
  turns: CurrentTurn
  answers: Answers
  planChange: PlanChange
  atHand: MemoryAtHand
  proof: Proof
  /** Journals warnings that have come up meanwhile. */
  tellRemarks(): void
}

/** The rounds of a session, one after the other: each is played, recorded, and what it claims is judged. */
export class Rounds {
  readonly #options: RoundsOptions
  #synced: Promise<void> = Promise.resolve()

  constructor(options: RoundsOptions) {
    this.#options = options
  }

  /**
   * Plays the next round. `isShown`: it was a turn of a recording; `tree`: the fingerprint afterwards, null if it has to be
   * taken again.
   */
  async play(
    { kind, round: spec }: RoundStep,
    treeBefore: string,
  ): Promise<{ outcome: RoundOutcome; isShown: boolean; tree: string | null }> {
    const { engines, clock, answers } = this.#options
    const round = this.#options.log.state.roundsUsed + 1
    const prepared = this.#options.ahead.take(spec.thread)
    const { thread } = prepared
    const engine = engines.of(thread)
    const input = answers.inputOf(spec)
    const startedAt = clock.monotonic()
    this.#options.log.emit({
      type: 'round-started',
      round,
      agent: thread.agent,
      engine: engine.name,
      codex: engine.version,
      ...(engine.replays && { replayed: true as const }),
      ...(thread.provider === undefined ? {} : { provider: thread.provider }),
      model: thread.model,
      input,
      ...(spec.part === undefined ? {} : { part: spec.part }),
    })
    const { outcome, message } = await this.#options.turns.round(prepared, round, input, spec.answer?.schema)
    // What a round left running that did not come to its end must not write while the files are looked at; nor, where
    // there is a plan, when they have been: a change of it between two rounds is a person's.
    if (outcome.class !== 'worked' || this.#options.log.state.taskPlan !== null) await engines.settle()

    await this.#synced
    if (outcome.class === 'worked' && kind === 'round') await answers.take(spec, round, message)
    // A round that changes the plan makes no claim.
    if (kind === 'replan') await this.#options.memory.withdrawClaim()
    const { state } = this.#options.log
    const part = partOf(state.kind, spec.part ?? null)
    // Of a replay each turn that was shown counts: it would be shown again for ever.
    const isShown = engine.replays === true && state.running?.turn != null
    const counts =
      kind === 'round' && !part.free && ((isShown && outcome.class !== 'interrupted') || this.#counts(outcome))
    const played = { round, outcome, counts, startedAt, treeBefore }
    const { tree, memory } = await recordRound(played, this.#options)
    this.#syncSoon()
    this.#options.tellRemarks()
    this.#options.atHand.leave(memory)
    const { last } = this.#options.log.state
    if (last !== null) await this.#options.proof.afterRound(last)
    if (kind === 'replan') this.#options.planChange.end(outcome.class, memory, state)
    else if (!part.claims || this.#isOffPlan(memory))
      return { outcome, isShown, tree: await this.#goOn(spec, outcome, tree) }
    else return { outcome, isShown, tree: await this.#judge(memory, outcome, tree) }
    return { outcome, isShown, tree }
  }

  /** True if there is a plan whose tasks are not exactly those known to be done: then nothing can be claimed yet. */
  #isOffPlan({ tasks }: MemorySnapshot): boolean {
    const { taskPlan } = this.#options.log.state
    if (taskPlan === null) return false
    const done = new Set(taskPlan.tasks.filter(task => task.done).map(({ id }) => id))
    return tasks.length !== taskPlan.tasks.length || !tasks.every(({ id }) => done.has(id))
  }

  /** Goes on after a round that may not claim anything; resolves with the fingerprint afterwards. */
  async #goOn({ part }: RoundStep['round'], outcome: RoundOutcome, tree: string): Promise<string> {
    const { memory, template, log, proof } = this.#options
    await memory.withdrawClaim()
    this.#options.atHand.forget()
    if (outcome.class !== 'worked') return tree
    const problem = (await template.afterRound?.(log.state)) ?? null
    if (problem !== null) log.emit({ type: 'warning', round: null, message: problem })
    return partOf(log.state.kind, part ?? null).free ? tree : await proof.runEachRound(tree)
  }

  /** Judges the claim of the round; without one, runs the gates of every round. Resolves with the fingerprint afterwards. */
  async #judge(memory: MemorySnapshot, outcome: RoundOutcome, tree: string): Promise<string> {
    const { log, proof } = this.#options
    const after = (await judgeClaim(memory, this.#options)) ?? tree
    if (log.state.claim.state === 'nominated' || outcome.class !== 'worked') return after
    return await proof.runEachRound(after)
  }

  /** True for a round that counts against `--rounds`; one that the end of the session cut off does not. */
  #counts(outcome: RoundOutcome): boolean {
    if (outcome.class === 'interrupted' && this.#options.asked.ending.aborted) return false
    return countsAsRound(outcome.class, this.#options.log.state.running?.hasWorked ?? false)
  }

  /** The next round need not wait for the disk; what fails is thrown when that round has ended. */
  #syncSoon(): void {
    this.#synced = this.#options.log.sync()
    this.#synced.catch(() => {})
  }
}

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

/** A round that has played, of which nothing runs any more. */
interface PlayedRound {
  round: number
  outcome: RoundOutcome
  counts: boolean
  /** On the monotonic clock, ms. */
  startedAt: number
  treeBefore: string
}

interface RecordRoundOptions {
  log: SessionLog
  clock: Clock
  workTree: WorkTree
  guard: RepositoryGuard
  memory: Memory
}

/** Looks at what a round has left, and journals its end. Answers the files as they are now. */
async function recordRound(
  { round, outcome, counts, startedAt, treeBefore }: PlayedRound,
  { log, clock, workTree, guard, memory }: RecordRoundOptions,
): Promise<{ tree: string; memory: MemorySnapshot }> {
  const [tree, restored, left] = await Promise.all([workTree.take(), guard.check(), memory.read()])
  const { paths, count } = treeBefore === tree ? { paths: [], count: 0 } : await workTree.changed(treeBefore, tree)
  log.emit({
    type: 'round-ended',
    round,
    outcome,
    counts,
    durationMs: Math.round(clock.monotonic() - startedAt),
    tokens: roundTokens(log.state),
    treeBefore,
    treeAfter: tree,
    changed: paths,
    changedCount: count,
    memory: left.fingerprint,
    ...countTasks(left),
  })
  emitRestored(log, restored)
  return { tree, memory: left }
}

export interface ThreadAheadOptions {
  log: SessionLog
  providers: Pick<RoundProviders, 'complete'>
  template: Template
  engines: Engines
  asked: PersonAsked
  budget: Budget
}

/** The threads of a session's rounds, and of these at most one ahead: started while the present one works. */
export class ThreadAhead {
  readonly #options: ThreadAheadOptions
  #ahead: PreparedRound | null = null

  constructor(options: ThreadAheadOptions) {
    this.#options = options
  }

  /** Starts that of the round after the one that runs, if there may be one. */
  startNext(): void {
    const { log, template, asked, budget } = this.#options
    if (asked.endedBy !== null || asked.isPaused) return
    if (budget.limitReached(log.state.roundsUsed + 1) !== null) return
    const next = aheadOf(log, template)
    if (next) this.#start(this.#options.providers.complete(next))
  }

  /** Has codex say what is used of the account, before the first round: it may have been used up elsewhere. */
  async lookAtUsage(): Promise<void> {
    const { log, template, asked, budget, providers } = this.#options
    if (asked.endedBy !== null || asked.isPaused || budget.limitReached(log.state.roundsUsed) !== null) return
    const wanted = aheadOf(log, template)
    const thread = wanted && providers.complete(wanted)
    // Other providers have nothing to do with the account.
    if (thread === null || thread.provider !== undefined) return
    const discard = () => this.discard()
    asked.stopping.addEventListener('abort', discard, { once: true })
    const limits = await this.#start(thread).limits()
    asked.stopping.removeEventListener('abort', discard)
    if (limits !== null) log.emit({ type: 'limits', ...limits })
  }

  /** The one that was started, if it is what is wanted; else another. From now on it is the caller's. */
  take(wanted: ThreadSpec): PreparedRound {
    const thread = this.#withEffort(wanted)
    const ahead = this.#ahead
    this.#ahead = null
    if (ahead && isDeepStrictEqual(ahead.thread, thread)) return ahead
    ahead?.discard()
    return this.#options.engines.prepare(thread)
  }

  discard(): void {
    this.#ahead?.discard()
    this.#ahead = null
  }

  #start(thread: ThreadSpec): PreparedRound {
    this.#ahead ??= this.#options.engines.prepare(this.#withEffort(thread))
    return this.#ahead
  }

  /** A session that gets nowhere thinks harder; not so on a provider, of which nobody knows whether its model can. */
  #withEffort(thread: ThreadSpec): ThreadSpec {
    if (thread.provider !== undefined && thread.effort === null) return thread
    if (this.#options.log.state.stall.remedy !== 'more-effort') return thread
    return { ...thread, effort: higherEffort(thread.effort) }
  }
}

function aheadOf({ state }: SessionLog, template: Template): ThreadSpec | null {
  return inTemplate(state.template, 'ahead', () => template.ahead(state))
}
