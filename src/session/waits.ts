import type { Clock } from '../base/clock.ts'
import type { RoundOutcome, SessionOutcome, WaitReason } from '../core/events/outcome.ts'
import { checkedDecision, type Decision, endOfHold, type HoldEnd, type OpenDecision } from '../core/rules/decision.ts'
import { inTemplate } from '../core/template.ts'
import type { Answers } from './answers.ts'
import type { Budget } from './budget.ts'
import type { FilesAtHand } from './files-at-hand.ts'
import type { RunnerOptions } from './options.ts'
import type { SessionLog } from './session-log.ts'
import type { ThreadAhead } from './thread-ahead.ts'

/** Parts of the session that a wait limits or lets go. */
interface WaitParts {
  budget: Budget
  ahead: ThreadAhead
  atHand: FilesAtHand
  answers: Answers
}

/** Waits of a session between two steps: for a moment, or for a person. */
export class Waits {
  readonly #options: RunnerOptions
  readonly #log: SessionLog
  readonly #parts: WaitParts
  /** Aborted so that a wait for a person checks its conditions again. */
  #woken = new AbortController()
  /** Whether a person is at the question that is waited for, and whether its default is due if nobody is. */
  #isAttended = false
  #isCounting = false

  constructor(options: RunnerOptions, parts: WaitParts) {
    this.#options = options
    this.#log = options.log
    this.#parts = parts
  }

  /** Ends the idle codex and forgets cached files: during a wait anybody may change files. */
  releaseIdle(): void {
    const { ahead, atHand, answers } = this.#parts
    ahead.discard()
    atHand.forgetAll()
    answers.forgetFile()
  }

  /** Journals a wait, and waits until then (Unix time, ms). @param isOver asked every 10 s; undefined: only time ends it */
  async wait(reason: WaitReason, cause: RoundOutcome, until: number, isOver?: IsOver): Promise<void> {
    this.releaseIdle()
    const round = this.#log.state.roundsUsed + 1
    this.#log.emit({ type: 'waiting', round, reason, cause, until: new Date(until).toISOString() })
    await this.waitUntil(until, isOver)
  }

  /** Waits until a journaled `waiting` is over, at most as long as the session or a person allows. */
  async waitUntil(until: number, isOver?: IsOver): Promise<void> {
    const { clock, asked, policy } = this.#options
    const now = clock.now()
    const end = Math.min(until, now + Math.max(0, this.#parts.budget.timeLeftMs), now + policy.maxWaitMs)
    const onSlice = (leftMs: number) => this.#log.live({ type: 'still-waiting', leftMs })
    const reason = await asked.duringWait(signal => waitUntil(end, { clock, signal, onSlice, isOver }))
    this.#log.emit({ type: 'wait-ended', round: this.#log.state.roundsUsed + 1, reason })
  }

  /**
   * Pauses the session until a person resumes it or changes its plan, its default applies, or it ends. Returns null if it
   * continues. An explicit pause has no default.
   */
  async hold(): Promise<SessionOutcome | null> {
    const { asked } = this.#options
    this.releaseIdle()
    this.#log.emit({ type: 'held' })
    const how = await this.#waitForPerson({
      hasDefault: () => !asked.isHeldByPause,
      isOver: () => !asked.isPaused || this.#log.state.replan !== null,
      onEnd: ({ at, how }) => this.#log.emit({ type: 'hold-until', until: new Date(at).toISOString(), how }),
    })
    if (how === 'limit') return { kind: 'limit', limit: 'time' }
    if (how === 'needs-person') return { kind: 'needs-person', reason: STILL_PAUSED, hint: null }
    if (how === 'goes-on') {
      this.#log.emit({ type: 'unpaused', by: 'default' })
      asked.unpause()
    }
    return null
  }

  /** Waits for a person. Returns how the wait ended by itself, or `over`: the person has answered or ended the session. */
  async #waitForPerson({ hasDefault, isOver, onEnd }: PersonWait): Promise<'over' | HoldEnd['how']> {
    const { clock, asked, policy, audience } = this.#options
    const [since, sinceDay] = [clock.monotonic(), clock.now()]
    // A machine that sleeps or a clock that is set back does not prolong the wait.
    const passed = () => Math.max(clock.monotonic() - since, clock.now() - sinceDay)
    let aloneSince: number | null = null
    let told: HoldEnd | null = null
    this.#isAttended = false
    using _ = {
      [Symbol.dispose]: () => {
        this.#isCounting = false
      },
    }
    for (;;) {
      // Create the signals before the checks, so that a change meanwhile ends the wait at once.
      this.#woken = new AbortController()
      const woken = AbortSignal.any([this.#woken.signal, asked.changed, audience.changed, asked.stopping])
      const isAttached = (await audience.isAttached()) || this.#isAttended
      if (isOver() || asked.endedBy !== null) return 'over'
      const now = passed()
      aloneSince = isAttached ? null : (aloneSince ?? now)
      const limitAt = now + this.#parts.budget.timeLeftMs
      const end = endOfHold({ ...policy, now, limitAt, aloneSince, hasDefault: hasDefault() })
      this.#isCounting = !isAttached && end.how === 'goes-on'
      const left = end.at - now
      if (left <= 0) return end.how
      const at = clock.now() + left
      if (told === null || told.how !== end.how || Math.abs(told.at - at) >= SAME_MS) {
        told = { at, how: end.how }
        onEnd(told)
      }
      if (end.how === 'goes-on') this.#log.live({ type: 'still-waiting', leftMs: left })
      await clock.wait(Math.min(left, isAttached && !audience.isForGood ? WATCHER_LOOK_MS : SLICE_MS), woken)
    }
  }

  /**
   * Asks for a decision, and waits until a person or the default makes it. Returns null if the session continues: the state
   * has the answer, or a person has asked for a change of plan first.
   */
  async decide(wanted: Decision): Promise<SessionOutcome | null> {
    const { asked, audience, clock, policy, canAsk } = this.#options
    this.releaseIdle()
    const { replansAsked, template } = this.#log.state
    const isAttached = await audience.isAttached()
    if (asked.endedBy !== null) return { kind: 'interrupted', by: asked.endedBy }
    if (this.#parts.budget.timeLeftMs <= 0) return { kind: 'limit', limit: 'time' }
    // A person asked for a change of plan meanwhile: ask the template again.
    if (this.#log.state.replan !== null || this.#log.state.replansAsked !== replansAsked) return null
    const decision = inTemplate(template, 'next', () => checkedDecision(wanted))
    const { maxWaitMs, decideAfterMs } = policy
    const usualMs = isAttached ? maxWaitMs : canAsk ? Math.min(decideAfterMs, maxWaitMs) : 0
    // Without a default, the session also ends as "needs a person" if its time runs out first.
    const waitMs = decision.default === null ? Math.min(maxWaitMs, this.#parts.budget.timeLeftMs) : usualMs
    this.#log.emit({ type: 'decision-asked', ...decision, until: new Date(clock.now() + waitMs).toISOString() })
    const open = this.#log.state.decision
    return open === null ? null : await this.#untilDecided(open)
  }

  async #untilDecided(open: OpenDecision): Promise<SessionOutcome | null> {
    if (open.until <= open.since) return this.#undecided(open)
    let isTold = false
    const how = await this.#waitForPerson({
      hasDefault: () => open.default !== null,
      isOver: () => this.#log.state.decision === null,
      onEnd: ({ at, how }) => {
        // `decision-asked` already told the first time. A time limit needs no person here.
        if (isTold && how !== 'limit') this.#log.emit({ type: 'hold-until', until: new Date(at).toISOString(), how })
        isTold = true
      },
    })
    if (how === 'limit') return { kind: 'limit', limit: 'time' }
    if (how !== 'over') return this.#undecided(open)
    const { endedBy } = this.#options.asked
    return this.#log.state.decision === null || endedBy === null ? null : { kind: 'interrupted', by: endedBy }
  }

  /** Applies the default if nobody has decided in time. Without one, returns that the session needs a person. */
  #undecided({ id, title, default: usual }: OpenDecision): SessionOutcome | null {
    if (usual !== null) {
      this.#log.emit({ type: 'decision-made', id, choice: usual, text: null, by: 'default' })
      return null
    }
    const outOfTime = this.#parts.budget.timeLeftMs <= 0 ? { outOfTime: true as const } : {}
    const hint = { do: 'decide' as const, session: this.#log.state.id, title, ...outOfTime }
    return { kind: 'needs-person', reason: `Nobody decided: ${title}`, hint, goalOnly: true }
  }

  /**
   * Marks that a person is at the open question, which then waits for them until it is closed; `isThere` false: they have left.
   * Returns true if this stopped a countdown.
   */
  attend(isThere: boolean): boolean {
    if (isThere === this.#isAttended) return false
    const stops = isThere && this.#isCounting
    this.#isAttended = isThere
    this.wake()
    return stops
  }

  /** Has a wait for a person check its conditions again. */
  wake(): void {
    this.#woken.abort()
  }
}

/** Conditions of a wait for a person. */
interface PersonWait {
  /** Returns true if the session continues by itself when nobody answers. */
  hasDefault(): boolean
  /** Returns true once the person has answered. */
  isOver(): boolean
  /** Called with the time at which the wait ends by itself, and whenever that changes; Unix time, ms. */
  onEnd(end: HoldEnd): void
}

/** A machine that slept wakes up late, so the wait checks the time of day this often, ms. */
const SLICE_MS = 60_000
/** Longest time until the session notices that a watcher has left, ms. */
const WATCHER_LOOK_MS = 5000
/** A change of the end by less than this is not reported, ms. */
const SAME_MS = 1000
/** Interval between two calls of `isOver` during a wait, ms. */
const LOOK_MS = 10_000

type IsOver = (signal: AbortSignal) => Promise<boolean>

interface WaitOptions {
  clock: Clock
  /** Ends the wait early. */
  signal: AbortSignal
  /** Called once a minute with the remaining time, ms. */
  onSlice(leftMs: number): void
  /** Asked every ten seconds; true ends the wait. Undefined: only time ends it. */
  isOver: IsOver | undefined
}

/** Waits until a time of day, Unix time in ms. A machine that sleeps or a clock that is set back does not prolong it. */
async function waitUntil(until: number, { clock, signal, onSlice, isOver }: WaitOptions): Promise<void> {
  const end = clock.monotonic() + (until - clock.now())
  let toldAt = clock.monotonic()
  for (;;) {
    const left = Math.min(until - clock.now(), end - clock.monotonic())
    if (!(left > 0) || signal.aborted) return
    await clock.wait(Math.min(left, isOver === undefined ? SLICE_MS : LOOK_MS), signal)
    if (signal.aborted || (await isOver?.(signal))) return
    const stillLeft = until - clock.now()
    if (stillLeft <= 0 || clock.monotonic() - toldAt < SLICE_MS) continue
    toldAt = clock.monotonic()
    onSlice(stillLeft)
  }
}

const STILL_PAUSED = 'It was paused, and nobody resumed it.'
