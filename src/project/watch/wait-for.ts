import { unreachable } from '../../base/errors.ts'
import type { Recorded } from '../../core/events/events.ts'
import type { SessionState, SessionStatus } from '../../core/state/state.ts'
import type { Records } from '../../session/records/records.ts'
import { describeEvent } from '../../tell/words/event.ts'
import { oneLine } from '../../tell/words/safe-text.ts'
import { questionsOrNone } from '../find.ts'
import type { WatchUpdate } from '../library.ts'
import type { World } from '../world.ts'
import { followSession } from './feed.ts'

/** Events to wait for, apart from a session's end. */
export const AWAITED = ['needs-person', 'round'] as const
type Awaited = (typeof AWAITED)[number]

/** Result of a wait. */
interface Happened {
  /** `cut-off`: not ended, but no process runs it; `nothing`: the time is over. */
  what: 'ended' | 'cut-off' | Awaited | 'nothing'
  /** In a sentence or a few words; empty for nothing. */
  words: string
  /** Number of known events: a wait that begins after these misses nothing. */
  seen: number
  standing: SessionStatus
}

interface WaitOptions {
  records: Records
  id: string
  /** Further events; the end always counts. */
  wanted: ReadonlySet<Awaited>
  /** Number of known events; null: the current state counts at once, then new events. */
  seen: number | null
  mostMs: number
  /** Ends the waiting. */
  signal: AbortSignal
}

/** Waits until something happens in a session, in any process. */
export async function waitForSession(
  world: Pick<World, 'clock' | 'platform' | 'pid'>,
  options: WaitOptions,
): Promise<Happened> {
  const { clock, platform, pid } = world
  const { records, id, mostMs, signal } = options
  const over = new AbortController()
  const late = AbortSignal.any([signal, over.signal])
  const endAfter = (ms: number) => clock.wait(ms, late).then(() => over.abort())
  const timers = [endAfter(mostMs)]
  const watched = new WatchedSession(options)
  try {
    const following = followSession({ records, id, platform, pid, clock, signal: late, ...UNSEEN })
    for await (const update of following) {
      const happened = await watched.take(update)
      if (happened !== null) return happened
      // The caller may begin or verify a session next, which fails until the run has released its lock.
      if (watched.hasEnded && timers.length === 1) timers.push(endAfter(LET_GO_MS))
    }
    return watched.atLast()
  } finally {
    over.abort()
    await Promise.all(timers)
  }
}

/** Known facts of a followed session, and whether the wait is over. */
class WatchedSession {
  readonly #options: Pick<WaitOptions, 'records' | 'wanted' | 'seen'>
  #isAttached = false
  #known: number
  #standing: SessionStatus = 'running'
  hasEnded = false

  constructor(options: WaitOptions) {
    this.#options = options
    this.#known = options.seen ?? 0
  }

  /** Returns what happened; null: nothing wanted yet, or the run still holds its lock. */
  async take(update: WatchUpdate): Promise<Happened | null> {
    switch (update.kind) {
      case 'event':
        return this.#event(update.event, update.state)
      case 'attached':
        return await this.#attached(update.state, update.standing)
      case 'ended':
        this.hasEnded = true
        return null
      case 'gone':
      case 'cut-off':
        this.#standing = 'cut-off'
        return this.#happened('cut-off', CUT_OFF)
      case 'next-session':
        return this.atLast()
      case 'live':
        return null
      default:
        return unreachable(update)
    }
  }

  /** Returns the result when no more updates come, or the time is over. */
  atLast(): Happened {
    if (!this.hasEnded) return this.#happened('nothing')
    this.#standing = 'ended'
    return this.#happened('ended')
  }

  #event(event: Recorded, state: SessionState): Happened | null {
    const { seen, wanted } = this.#options
    this.#known = Math.max(this.#known, state.events)
    const isNew = seen === null ? this.#isAttached : state.events > seen
    if (!isNew || this.hasEnded) return null
    if (event.type === 'session-ended') this.hasEnded = true
    else if (isAwaited(event, state, wanted))
      return this.#happened(event.type === 'round-ended' ? 'round' : 'needs-person', wordsOf(event, state))
    return null
  }

  async #attached(state: SessionState, standing: SessionStatus): Promise<Happened | null> {
    const { records, seen, wanted } = this.#options
    this.#isAttached = true
    this.#standing = standing
    this.#known = Math.max(this.#known, state.events)
    if (standing === 'cut-off') return this.#happened('cut-off', CUT_OFF)
    if (state.ended !== null) this.hasEnded = true
    if (state.ended !== null || seen !== null || !wanted.has('needs-person')) return null
    const words = await whatIsAsked(records, state)
    return words === null ? null : this.#happened('needs-person', words)
  }

  #happened(what: Happened['what'], words = ''): Happened {
    return { what, words: oneLine(words, MOST_WORDS), seen: this.#known, standing: this.#standing }
  }
}

/** The caller is a program, so it must not delay a decision's default. */
const UNSEEN = { unattended: true, onProblem: () => {} } as const
const CUT_OFF = 'No process runs it, and it has not ended; it can be resumed.'
const MOST_WORDS = 1_000
/** How long a run may hold its lock after its session's end, in ms: it writes the report first. */
const LET_GO_MS = 5_000

function isAwaited(event: Recorded, state: SessionState, wanted: ReadonlySet<Awaited>): boolean {
  return event.type === 'round-ended' ? wanted.has('round') : wanted.has('needs-person') && needsPerson(event, state)
}

function needsPerson(event: Recorded, state: SessionState): boolean {
  switch (event.type) {
    case 'question-asked':
    case 'decision-asked':
      return true
    case 'hold-until':
      // A decision was already reported when it was asked.
      return state.decision === null
    case 'task-judged':
      return event.verdict === 'parked'
    default:
      return false
  }
}

/** Returns the question that a person sees now; null: none. */
async function whatIsAsked(records: Records, { id, decision }: SessionState): Promise<string | null> {
  if (decision !== null) return decision.title
  return (await questionsOrNone(records, id, () => {})).find(({ answer }) => answer === null)?.text ?? null
}

function wordsOf(event: Recorded, state: SessionState): string {
  // Same words as for a question that is open at the start; an event line names terminal commands.
  if (event.type === 'decision-asked') return event.title
  return describeEvent(event, state)?.text ?? ''
}
