import type { MemorySnapshot } from '../workspace/memory.ts'
import { judgeClaim } from './judge-claim.ts'
import type { MemoryAtHand } from './memory-at-hand.ts'
import { countsAsRound, type RoundOutcome } from './outcome.ts'
import type { PlanChange } from './plan-change.ts'
import type { Proof } from './proof.ts'
import { recordRound } from './record-round.ts'
import type { RunnerOptions } from './runner-options.ts'
import type { RoundStep } from './template.ts'
import type { ThreadAhead } from './thread-ahead.ts'
import type { TurnPlay } from './turn-play.ts'

export interface RoundsOptions extends RunnerOptions {
  ahead: ThreadAhead
  turns: TurnPlay
  planChange: PlanChange
  atHand: MemoryAtHand
  proof: Proof
  /** Journals what was noticed meanwhile and a person should know. */
  tellRemarks(): void
}

/** The rounds of a session, one after the other: each is played, recorded, and what it claims is judged. */
export class Rounds {
  readonly #options: RoundsOptions
  #synced: Promise<void> = Promise.resolve()

  constructor(options: RoundsOptions) {
    this.#options = options
  }

  /** Plays the next one; `tree`: the fingerprint that is there now, null if it has to be taken anew. */
  async play(
    { kind, round: spec }: RoundStep,
    treeBefore: string,
  ): Promise<{ outcome: RoundOutcome; tree: string | null }> {
    const { engine, clock } = this.#options
    const round = this.#options.log.state.roundsUsed + 1
    const prepared = this.#options.ahead.take(spec.thread)
    const { thread } = prepared
    const startedAt = clock.monotonic()
    this.#options.log.emit({
      type: 'round-started',
      round,
      agent: thread.agent,
      engine: engine.name,
      codex: engine.version,
      model: thread.model,
      input: spec.input,
      ...(spec.part === undefined ? {} : { part: spec.part }),
    })
    const outcome = await this.#options.turns.round(prepared, round, spec.input)
    // What a round left running that did not come to its end must not write while the files are looked at; nor, in a
    // build, when they have been: a change of the plan between two rounds is a person's.
    if (outcome.class !== 'worked' || this.#options.log.state.build !== null) await engine.settle()

    await this.#synced
    // A change of plan is none of the rounds of which claims are judged.
    if (kind === 'replan') await this.#options.memory.withdrawClaim()
    const { state } = this.#options.log
    const counts = kind === 'round' && !spec.isFree && this.#counts(outcome)
    const played = { round, outcome, counts, startedAt, treeBefore }
    const { tree, memory } = await recordRound(played, this.#options)
    this.#syncSoon()
    this.#options.tellRemarks()
    this.#options.atHand.leave(memory)
    const { last } = this.#options.log.state
    if (last !== null) await this.#options.proof.afterRound(last)
    if (kind === 'replan') this.#options.planChange.end(outcome.class, memory, state)
    else if (spec.claims === false || this.#isOffPlan(memory))
      return { outcome, tree: await this.#goOn(spec, outcome, tree) }
    else return { outcome, tree: await this.#judge(memory, outcome, tree) }
    return { outcome, tree }
  }

  /** Whether the tasks of a build are not those that are known to be done: then nothing can be claimed yet. */
  #isOffPlan({ tasks }: MemorySnapshot): boolean {
    const { build } = this.#options.log.state
    if (build === null) return false
    const done = new Set(build.tasks.filter(task => task.done).map(({ id }) => id))
    return tasks.length !== build.tasks.length || !tasks.every(({ id }) => done.has(id))
  }

  /** After a round that may claim nothing, whatever it has written. */
  async #goOn({ isFree, part }: RoundStep['round'], outcome: RoundOutcome, tree: string): Promise<string> {
    const { memory, build } = this.#options
    await memory.withdrawClaim()
    this.#options.atHand.forget()
    const summary = this.#options.log.state.build?.summary ?? null
    if (part === 'summary' && outcome.class === 'worked' && summary !== null) {
      const problem = await build?.keepSummary(summary)
      if (problem) this.#options.log.emit({ type: 'warning', round: null, message: problem })
    }
    return isFree || outcome.class !== 'worked' ? tree : await this.#options.proof.runEachRound(tree)
  }

  /** Judges what the round claims; if it claims nothing, the gates that want to be run are. */
  async #judge(memory: MemorySnapshot, outcome: RoundOutcome, tree: string): Promise<string> {
    const { log, proof } = this.#options
    const after = (await judgeClaim(memory, this.#options)) ?? tree
    if (log.state.claim.state === 'nominated' || outcome.class !== 'worked') return after
    return await proof.runEachRound(after)
  }

  /** Whether a round that ends so uses up one of the person's; what the end of the session cut off does not. */
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
