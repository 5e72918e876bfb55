import { unreachable } from '../base/errors.ts'
import type { Memory, MemorySnapshot } from '../workspace/memory.ts'
import type { RefusalReason } from './claim-events.ts'
import { judgeDone, type Verdict } from './done-rule.ts'
import { followStall } from './follow-stall.ts'
import { nextProof } from './next-proof.ts'
import type { SessionOutcome } from './outcome.ts'
import type { PersonAsked } from './person-asked.ts'
import type { Proof } from './proof.ts'
import type { ReviewCause } from './review.ts'
import type { SessionLog } from './session-log.ts'

export interface ClaimProofOptions {
  log: SessionLog
  memory: Memory
  asked: PersonAsked
  proof: Proof
  stallRounds: number
  /** Resolves when a person who has paused the session lets it go on. */
  hold(): Promise<null>
  /** Has a tree reviewed; an outcome if the session ends with that. */
  review(causes: readonly ReviewCause[], tree: string): Promise<SessionOutcome | null>
}

/** What became of one step: the tree that is there now, null if it has to be looked at again, and the end if it is one. */
interface AfterStep {
  tree: string | null
  end: SessionOutcome | null
}

/** How far the proof of one claim has come. */
interface Passing {
  /** The round that made the claim. */
  round: number
  /** The tree that was claimed. */
  claimed: string
  pass: 1 | 2
  /** The tree that the pass began with, and the gates that have run in it. */
  from: string
  ran: ReadonlySet<string>
}

const TAKEN_BACK = 'MAIN.md and tasks.json do not say it any more.'
const CHANGED_SINCE = 'files were changed since it was claimed. Look at the whole with fresh eyes.'

/**
 * The way of a done claim from nominated to accepted, refused, or the session's end, one step at a time: between two of
 * them a person can break in, and a crash loses no more than the proof so far.
 */
export class ClaimProof {
  readonly #options: ClaimProofOptions
  #passing: Passing | null = null

  constructor(options: ClaimProofOptions) {
    this.#options = options
  }

  /** The next step in the proof of what is claimed, as long as the memory files claim it. */
  async prove(tree: string, memory: MemorySnapshot): Promise<AfterStep> {
    const { log, asked, proof } = this.#options
    const { claim, last } = log.state
    if (asked.endedBy !== null && asked.ending.aborted) return { tree, end: this.#interrupted }
    // The claim's tree goes with what its gates have changed; anything else is somebody else's doing.
    if (claim.state !== 'nominated' || claim.tree !== tree) {
      return await this.#refused(tree, 'tree-changed', CHANGED_SINCE)
    }
    const stands: Verdict = last === null ? { kind: 'none' } : judgeDone(memory, last)
    if (stands.kind === 'none') return await this.#refused(tree, 'progress-left', TAKEN_BACK)
    if (stands.kind === 'refused') return await this.#refused(tree, stands.reason, stands.detail)
    const { claimed, pass, from, ran } = this.#begun(tree)
    const isProtectedChanged = await proof.isProtectedChanged(tree)
    const strayed = pass === 2 && tree !== from ? await proof.strayed(claimed, tree) : []
    const step = nextProof(log.state, { tree, isProtectedChanged, ran, pass, from, strayed })
    const takesTime = step.kind === 'gate' || step.kind === 'review'
    // Who wants it to stop after the round still learns what that one has come to, where it is plain.
    if (takesTime && asked.endedBy !== null) return { tree, end: this.#interrupted }
    if (takesTime && asked.isPaused) return { tree: await this.#options.hold(), end: null }
    switch (step.kind) {
      case 'gate': {
        const after = await proof.run([step.gate], 'claim', tree)
        if (after.isComplete) this.#passing = { ...this.#begun(tree), ran: new Set([...ran, step.gate.name]) }
        return { tree: after.tree, end: null }
      }
      case 'again':
        this.#passing = { ...this.#begun(tree), pass: 2, from: tree, ran: new Set() }
        return { tree, end: null }
      case 'review':
        return { tree: null, end: await this.#options.review(step.causes, tree) }
      case 'refuse':
        return await this.#refused(tree, step.reason, step.detail)
      case 'accept':
        await proof.keepAccepted(this.#round, tree)
        log.emit({ type: 'done-accepted', round: this.#round, tree, verified: step.verified })
        return { tree, end: null }
      case 'end':
        return { tree, end: step.outcome }
      default:
        return unreachable(step)
    }
  }

  get #round(): number {
    return this.#options.log.state.last?.round ?? 0
  }

  get #interrupted(): SessionOutcome | null {
    const by = this.#options.asked.endedBy
    return by === null ? null : { kind: 'interrupted', by }
  }

  #begun(tree: string): Passing {
    const round = this.#round
    if (this.#passing?.round !== round) {
      this.#passing = { round, claimed: tree, pass: 1, from: tree, ran: new Set() }
    }
    return this.#passing
  }

  async #refused(tree: string, reason: RefusalReason, detail: string): Promise<AfterStep> {
    const { log, memory, stallRounds } = this.#options
    log.emit({ type: 'done-refused', round: this.#round, reason, detail })
    await memory.withdrawClaim()
    return { tree, end: followStall(log, stallRounds) }
  }
}
