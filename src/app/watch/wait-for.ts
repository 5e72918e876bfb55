import { unreachable } from '../../base/errors.ts'
import type { Recorded } from '../../core/events/events.ts'
import type { SessionState, SessionStatus } from '../../core/state/state.ts'
import { notificationOf } from '../../notify/notification.ts'
import type { Records } from '../../records/records.ts'
import { describeEvent } from '../../words/event.ts'
import { oneLine } from '../../words/safe-text.ts'
import { questionsOrNone } from '../find.ts'
import type { World } from '../world.ts'
import { followSession } from './feed.ts'

/** What of a session can be waited for, beside its end. */
export const AWAITED = ['needs-person', 'round'] as const
export type Awaited = (typeof AWAITED)[number]

/** What has come of waiting. */
export interface Happened {
  /** `cut-off`: nobody runs it any more, and it has not come to its end; `nothing`: the time is over. */
  what: 'ended' | 'cut-off' | Awaited | 'nothing'
  /** In a sentence or a few words; empty for nothing. */
  words: string
  /** How many of its events are known now: a wait that begins after these misses nothing. */
  seen: number
  standing: SessionStatus
}

export interface WaitOptions {
  records: Records
  id: string
  /** Its end is waited for in any case. */
  wanted: ReadonlySet<Awaited>
  /** How many of its events are known; null: what holds just now is told at once, and then what comes. */
  seen: number | null
  mostMs: number
  /** Ends the waiting. */
  signal: AbortSignal
}

/** Waits until something happens in a session, whoever runs it. */
export async function waitForSession(
  world: Pick<World, 'clock' | 'platform' | 'pid'>,
  { records, id, wanted, seen, mostMs, signal }: WaitOptions,
): Promise<Happened> {
  const { clock, platform, pid } = world
  const over = new AbortController()
  const late = AbortSignal.any([signal, over.signal])
  const timer = clock.wait(mostMs, late).then(() => over.abort())
  let known = seen ?? 0
  let standing: SessionStatus = 'running'
  try {
    let isAttached = false
    const following = followSession({ records, id, platform, pid, clock, signal: late, ...UNSEEN })
    for await (const update of following) {
      switch (update.kind) {
        case 'event': {
          const { event, state } = update
          known = Math.max(known, state.events)
          const isNew = seen === null ? isAttached : state.events > seen
          const what = isNew ? kindOf(event, state, wanted) : null
          if (what !== null) return { what, words: wordsOf(event, state), seen: state.events, standing }
          break
        }
        case 'attached': {
          isAttached = true
          standing = update.standing
          const holds = await holdsNow(records, update.state, standing, wanted)
          if (holds !== null && (seen === null || isOver(standing)))
            return { ...holds, seen: update.state.events, standing }
          break
        }
        case 'ended':
          return { what: 'ended', words: '', seen: known, standing: 'ended' }
        case 'gone':
        case 'cut-off':
          return { what: 'cut-off', words: CUT_OFF, seen: known, standing: 'cut-off' }
        case 'next-session':
          return { what: 'ended', words: '', seen: known, standing: 'ended' }
        case 'live':
          break
        default:
          return unreachable(update)
      }
    }
    return { what: 'nothing', words: '', seen: known, standing }
  } finally {
    over.abort()
    await timer
  }
}

/** Who waits is a program: a decision whose default is taken where nobody watches is not put off by it. */
const UNSEEN = { unattended: true, onProblem: () => {} } as const
const CUT_OFF = 'Nobody runs it any more, and it has not come to its end; it can be resumed.'
const MOST_WORDS = 1_000

function isOver(standing: SessionStatus): boolean {
  return standing === 'ended' || standing === 'cut-off'
}

function kindOf(event: Recorded, state: SessionState, wanted: ReadonlySet<Awaited>): Happened['what'] | null {
  if (event.type === 'session-ended') return 'ended'
  if (wanted.has('round') && event.type === 'round-ended') return 'round'
  if (!wanted.has('needs-person')) return null
  const needs = event.type === 'question-asked' || notificationOf(event, state)?.event === 'needs-person'
  return needs ? 'needs-person' : null
}

/** What a person would see of it now; null if that is nothing that is waited for. */
async function holdsNow(
  records: Records,
  { id, decision, ended }: SessionState,
  standing: SessionStatus,
  wanted: ReadonlySet<Awaited>,
): Promise<Pick<Happened, 'what' | 'words'> | null> {
  if (standing === 'cut-off') return { what: 'cut-off', words: CUT_OFF }
  if (ended !== null) return { what: 'ended', words: '' }
  if (!wanted.has('needs-person')) return null
  if (decision !== null) return { what: 'needs-person', words: oneLine(decision.title, MOST_WORDS) }
  const open = (await questionsOrNone(records, id, () => {})).find(({ answer }) => answer === null)
  return open === undefined ? null : { what: 'needs-person', words: oneLine(open.text, MOST_WORDS) }
}

function wordsOf(event: Recorded, state: SessionState): string {
  return oneLine(describeEvent(event, state)?.text ?? '', MOST_WORDS)
}
