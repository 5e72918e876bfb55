import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '../base/clock.ts'
import { isDiskFull, isNoRoom, messageOf, UserError } from '../base/errors.ts'
import { isEvent } from '../core/events/checks.ts'
import type { LiveEvent, Recorded, SessionEvent } from '../core/events/events.ts'
import { breaksStream, ENDS_WHAT_RUNS, liveKey } from '../core/events/live-board.ts'
import { exitCodeOf, type SessionOutcome } from '../core/events/outcome.ts'
import { fold } from '../core/state/fold.ts'
import type { View } from '../core/state/state.ts'
import { elapsedMs, isCall, type SessionState, sessionTokens } from '../core/state/state.ts'
import type { TemplateKinds } from '../core/template.ts'
import { writeWholeFile } from '../platform/files.ts'
import { cutUnfinished, type Redactor } from '../secrets/redactor.ts'
import { type Journal, openJournal } from './records/journal.ts'
import type { Records } from './records/records.ts'

interface SessionLogOptions {
  journal: Journal
  views: readonly View[]
  templates: TemplateKinds
  clock: Clock
  redactor: Redactor
}

/**
 * The one place that records events: it redacts, journals, folds and shows them, so a restart reads what was known before.
 * Live text comes in pieces, and a secret may span two. So an end that may begin a secret waits for the next piece or the
 * end of the item.
 */
export class SessionLog {
  #state: SessionState
  readonly #journal: Journal
  readonly #views: readonly View[]
  readonly #templates: TemplateKinds
  readonly #clock: Clock
  readonly #redactor: Redactor
  /** By item, its last piece with the text that is held back. */
  readonly #held = new Map<string, Delta>()

  constructor(state: SessionState, { journal, views, templates, clock, redactor }: SessionLogOptions) {
    this.#state = state
    this.#journal = journal
    this.#views = views
    this.#templates = templates
    this.#clock = clock
    this.#redactor = redactor
  }

  get state(): SessionState {
    return this.#state
  }

  emit(event: SessionEvent): void {
    const recorded = this.#record(event)
    this.#endHeld(recorded)
    this.#journal.append(recorded)
    this.#state = fold(this.#state, recorded, this.#templates)
    for (const view of this.#views) view.event(recorded, this.#state)
  }

  /** Returns the state after this event if it happened now. Journals nothing. */
  stateAfter(event: SessionEvent): SessionState {
    return fold(this.#state, this.#record(event), this.#templates)
  }

  live(event: LiveEvent): void {
    const isPiece = event.type === 'text-delta' || event.type === 'output-delta'
    const shown = isPiece ? this.#withoutUnfinished(event) : event
    if (shown !== null) this.#show(shown)
  }

  sync(): Promise<void> {
    return this.#journal.sync()
  }

  /** Returns the piece with the earlier held-back text and without the new; null if nothing is left. */
  #withoutUnfinished(delta: Delta): Delta | null {
    const key = liveKey(delta.item, delta.instance)
    const { whole, held } = cutUnfinished(this.#redactor, (this.#held.get(key)?.text ?? '') + delta.text)
    if (held === '') this.#held.delete(key)
    else this.#held.set(key, { ...delta, text: held })
    return whole === '' ? null : { ...delta, text: whole }
  }

  /** Shows the held-back text of a completed item. Drops that of an interrupted one: it may be most of a secret. */
  #endHeld(event: Recorded): void {
    if (ENDS_WHAT_RUNS.has(event.type)) this.#held.clear()
    if (this.#held.size === 0) return
    const completed = event.type === 'item-completed' ? liveKey(event.item.id, event.instance) : null
    for (const [key, delta] of this.#held) {
      if (key !== completed && !isCutOff(delta, event)) continue
      this.#held.delete(key)
      if (key === completed) this.#show(delta)
    }
  }

  #show(event: LiveEvent): void {
    const shown = this.#redactor.event(event)
    for (const view of this.#views) view.live(shown)
  }

  #record(event: SessionEvent): Recorded {
    const at = new Date(this.#clock.now()).toISOString()
    const shown = this.#redactor.event(event)
    const asRecorded = (one: SessionEvent): Recorded => ({ v: 1, at, session: this.#state.id, ...one })
    const recorded = asRecorded(shown)
    return shown === event || isEvent(recorded) ? recorded : asRecorded(withOwnWords(shown, event))
  }
}

/**
 * Restores the journal's own words in a redacted event, such as `nothing-changed`. A secret may equal one, and without it
 * nobody could read the event.
 */
function withOwnWords<T>(redacted: T, event: T): T
function withOwnWords(redacted: unknown, event: unknown): unknown {
  if (typeof event === 'string') return OWN_WORD.test(event) ? event : redacted
  if (typeof event !== 'object' || event === null || typeof redacted !== 'object' || redacted === null) return redacted
  const before: Readonly<Record<string, unknown>> = { ...event }
  const entries = Object.entries(redacted).map(([key, value]) => [key, withOwnWords(value, before[key])] as const)
  return Array.isArray(redacted) ? entries.map(([, value]) => value) : Object.fromEntries(entries)
}

const OWN_WORD = /^[a-z]+(?:-[a-z]+)*$/

type Delta = Extract<LiveEvent, { type: 'text-delta' | 'output-delta' }>

/** True if an item gets no more text although it is not completed. */
function isCutOff({ type, instance }: Delta, event: Recorded): boolean {
  if (event.type === 'agent-ended') return instance === event.instance
  return type === 'text-delta' && breaksStream(event, instance)
}

/**
 * Opens the journal and the log of a session, begins the session with `begin`, and plays it.
 * @param play if it throws, the end is journaled, where a person must fix the cause
 */
export async function playLogged<T>(
  state: SessionState,
  { records, ...options }: Omit<SessionLogOptions, 'journal' | 'templates'> & { records: Records },
  begin: (log: SessionLog) => Promise<void> | void,
  play: (log: SessionLog) => Promise<T>,
): Promise<T> {
  await using journal = openJournal(records.journal(state.id))
  const log = new SessionLog(state, { journal, templates: records.templates, ...options })
  await begin(log)
  const reserve = await openDiskReserve(records.sessionFolder(state.id))
  try {
    return await play(log)
  } catch (error) {
    await endSessionBrokenOff(error, log, reserve, options.clock)
    throw error
  } finally {
    await reserve.release()
  }
}

/**
 * Journals the session's end if a person must fix the cause: a full disk (in the reserved space), or files that git cannot
 * read. Without any space, the session looks interrupted.
 */
async function endSessionBrokenOff(error: unknown, log: SessionLog, reserve: DiskReserve, clock: Clock): Promise<void> {
  const { state } = log
  const isForPerson = error instanceof UserError && error.exitCode === 4
  if (!(isDiskFull(error) || isForPerson) || state.createdAt === 0 || state.ended !== null) return
  // The hint ends in a resume, and a call cannot be resumed.
  const hint =
    !isCall(state) && isDiskFull(error) && error instanceof UserError && error.hint !== null
      ? ({ do: 'free-disk-space' } as const)
      : null
  const outcome: SessionOutcome = { kind: 'needs-person', reason: messageOf(error), hint }
  try {
    await reserve.release()
    log.emit({
      type: 'session-ended',
      outcome,
      exitCode: exitCodeOf(outcome),
      rounds: state.roundsUsed,
      tokens: sessionTokens(state),
      durationMs: elapsedMs(state, 'running', clock.now()),
    })
    await log.sync()
  } catch (second) {
    if (!isDiskFull(second)) throw second
  }
}

const BYTES = 64 * 1024

/** 64 KiB of preallocated disk space. A full disk releases it, so that the session's end can still be journaled. */
interface DiskReserve {
  /** Releases the space. */
  release(): Promise<void>
}

/** Preallocates the space in the folder of a session's records; on a full disk, less or none. */
async function openDiskReserve(folder: string): Promise<DiskReserve> {
  const path = join(folder, 'reserve')
  try {
    // Do not write zeros: some file systems reserve no space for them.
    await writeWholeFile(path, Buffer.alloc(BYTES, 'codemachine '))
  } catch (error) {
    if (!isNoRoom(error)) throw error
  }
  return { release: () => rm(path, { force: true }) }
}
