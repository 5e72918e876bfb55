import { type Standing, standingOf } from '../../session/standing.ts'
import { latestSession } from '../find-session.ts'
import { FolderChanges } from '../folder-changes.ts'
import type { Fed, FeedOptions } from './fed.ts'
import { Attendance } from './feed-attendance.ts'
import { RunLookout } from './feed-runner.ts'
import { FollowedSession } from './feed-session.ts'
import { SessionsAhead } from './feed-sessions-ahead.ts'

/**
 * Feeds a screen with a session that another process runs, and with those that its run goes on with, from the last
 * events of the past on. Ends when nobody runs any more, or with `signal`; at once for a session of before, while another
 * one is at work. Any number may follow at a time. A `UserError` if a journal cannot be read.
 */
export async function* followSession(options: FeedOptions): AsyncGenerator<Fed> {
  const { records, clock } = options
  const sessions = new SessionsAhead(records)
  await sessions.remember()
  await using attendance = new Attendance(records.control, clock)
  const following = { ...options, run: new RunLookout(options), attendance, sessions }
  let next = yield* followOne(options.id, false, following)
  while (next !== null) {
    yield { kind: 'next-session', id: next }
    next = yield* followOne(next, true, following)
  }
}

/** For what a watcher has missed. */
const POLL_MS = 1000
/** Between two looks, ms: events that come close together are fed together. */
const PACE_MS = 25

interface Following extends FeedOptions {
  run: RunLookout
  attendance: Attendance
  sessions: SessionsAhead
}

/**
 * Follows one session; answers the next one that its run goes on with, null if there will be none.
 * @param isNew it has just begun, and nothing of it is past
 */
async function* followOne(id: string, isNew: boolean, following: Following): AsyncGenerator<Fed, string | null> {
  const { records, clock, signal, run, attendance, sessions } = following
  await using session = new FollowedSession(id, following)
  using changes = new FolderChanges([records.folder, records.sessionFolder(id)], following)
  const isLast = !isNew && (yield* attach(session, following))
  let hasRun = isNew
  while (!signal.aborted) {
    const runner = await run.look()
    if (runner !== null) attendance.keep()
    yield* session.news(runner)
    const standing = standingOf(session.state, runner)
    hasRun ||= standing === 'running'
    if (runner === null || isLast) {
      if (standing !== 'ended') yield { kind: hasRun ? 'gone' : 'cut-off' }
      return null
    }
    const next = isOver(standing) ? await sessions.next() : null
    if (next !== null) return next
    await changes.next(POLL_MS)
    await clock.wait(PACE_MS, signal)
  }
  return null
}

/** Tells the past; answers whether that is all: another session is at work. */
async function* attach(session: FollowedSession, following: Following): AsyncGenerator<Fed, boolean> {
  // Before the journal: a session that ends while it is read must not look cut off.
  const runner = await following.run.look()
  yield* session.past()
  const standing = standingOf(session.state, runner)
  yield { kind: 'attached', state: session.state, standing }
  if (runner === null || !isOver(standing)) return false
  return (await latestSession(following.records, () => {})) !== session.state.id
}

function isOver(standing: Standing): boolean {
  return standing === 'ended' || standing === 'cut-off'
}
