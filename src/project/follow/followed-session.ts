import { UserError } from '../../base/errors.ts'
import { problemOfSession } from '../../session/records/journal.ts'
import type { Records } from '../../session/records/records.ts'
import type { ReportData } from '../../tell/report/report-data.ts'
import { oneLine, titleLine } from '../../tell/words/safe-text.ts'
import { followUpOfWork } from '../../tell/words/work.ts'
import type { Fingerprints } from '../../workspace/fingerprint/fingerprint.ts'
import { GitBlocked } from '../../workspace/git/blocking-files.ts'
import { GitError } from '../../workspace/git/git.ts'
import { changedFiles } from '../../workspace/git/trees.ts'
import { findSession } from '../find.ts'

/** The session that a new one follows. */
export interface FollowedSession {
  id: string
  /** Its result for the new session's agents: Markdown of at most 64 KiB. */
  text: string
  /** A sentence that tells the person that its changes are not in the files any more; null: nothing to tell. */
  remark: string | null
}

/** The files as they are now. */
interface FilesNow {
  fingerprints: Pick<Fingerprints, 'take' | 'mending'>
  signal: AbortSignal
}

const MOST_EARLIER = 30
const GOAL_CHARS = 160
const PATH_CHARS = 300
const MOST_PATHS = 20

/**
 * Returns the result of the session that a new one follows: the session itself, one line for each session that it followed,
 * and what happened to its changes since. Throws a `UserError` if there is no such session, or it is unreadable.
 * @param wanted its id, or a person's typed text for it
 * @param files null: skip the check of the files
 */
export async function followedSession(
  records: Records,
  wanted: string,
  files: FilesNow | null,
): Promise<FollowedSession> {
  const id = await findSession(records, wanted)
  const { followUpOf } = await import('../../tell/report/follow-up.ts')
  const { data, state } = await readOrRefuse(records, id)
  const [earlier, since] = [
    await earlierSessions(records, id, state.follows),
    files === null ? null : await changesSince(data, files),
  ]
  const note = since === null ? null : wordsForSince(since)
  const isGone = since !== null && since.gone.length === since.count
  return {
    id,
    text: followUpOf(data, { work: followUpOfWork(state), earlier, note }),
    remark: isGone ? `The changes of ${id}, which this session continues, are no longer in the files.` : null,
  }
}

type Read = NonNullable<Awaited<ReturnType<typeof readSession>>>

async function readOrRefuse(records: Records, id: string): Promise<Read> {
  const read = await readSession(records, id).catch((error: unknown) => {
    throw new UserError('CM0607', problemOfSession(id, error))
  })
  if (read === null) throw new UserError('CM0607', `${records.journal(id)} has no session to continue from.`)
  return read
}

async function readSession(records: Records, id: string) {
  const { readReportAndState } = await import('../../tell/report/write.ts')
  return await readReportAndState(records, id)
}

/** Returns one line for each earlier session of the chain, newest first. */
async function earlierSessions(records: Records, id: string, first: string | null): Promise<string[]> {
  const { headlineOf } = await import('../../tell/report/words.ts')
  const seen = new Set([id])
  const lines: string[] = []
  for (let next = first; next !== null && !seen.has(next) && lines.length < MOST_EARLIER; ) {
    seen.add(next)
    const read = await readSession(records, next).catch((error: unknown) => {
      problemOfSession(id, error)
      return null
    })
    if (read === null) return [...lines, `${next}: its records cannot be read`]
    const { goal, changes } = read.data
    const files = changes.files === 1 ? '1 file changed' : `${changes.files} files changed`
    lines.push(`${next}: "${titleLine(goal, GOAL_CHARS)}": ${headlineOf(read.data).text}; ${files}`)
    next = read.state.follows
  }
  return lines
}

/** What happened to the files that a session changed. */
interface Since {
  /** Number of files that it changed. */
  count: number
  /** Files that are again as they were before it. */
  gone: readonly string[]
  /** Files that match neither the state before it nor after it. */
  changed: readonly string[]
}

/** Null: no changes, or unknown. */
async function changesSince({ changes }: ReportData, { fingerprints, signal }: FilesNow): Promise<Since | null> {
  const { from, start, now } = changes
  if (from !== 'savepoints' || start === null || now === null || start.tree === now.tree) return null
  try {
    const present = await fingerprints.take(signal)
    const made = await fingerprints.mending(git => changedFiles(git, start.tree, now.tree), signal)
    const later = await fingerprints.mending(git => changedFiles(git, now.tree, present), signal)
    if (made === null || later === null) return null
    const laterByPath = new Map(later.map(file => [file.path, file]))
    const touched = made.flatMap(({ path, before }) => {
      const file = laterByPath.get(path)
      return file === undefined ? [] : [{ path, isGone: file.after === before }]
    })
    if (touched.length === 0) return null
    const paths = (isGone: boolean) => touched.filter(each => each.isGone === isGone).map(({ path }) => path)
    return { count: made.length, gone: paths(true), changed: paths(false) }
  } catch (error) {
    // The session's own first look reports it, or the session ends before that.
    const isTold = error instanceof GitError || error instanceof GitBlocked || error instanceof UserError
    if (isTold || signal.aborted) return null
    throw error
  }
}

function wordsForSince({ count, gone, changed }: Since): string {
  if (gone.length === count) {
    return 'None of these changes is in the files any more: all files are as before that session. Check the files before you build on them.'
  }
  return [
    ...(gone.length === 0 ? [] : [`As they were before that session again: ${listed(gone)}.`]),
    ...(changed.length === 0 ? [] : [`Changed since that session ended: ${listed(changed)}.`]),
  ].join(' ')
}

function listed(paths: readonly string[]): string {
  const shown = paths.slice(0, MOST_PATHS).map(path => oneLine(path, PATH_CHARS))
  return [...shown, ...(paths.length > shown.length ? [`and ${paths.length - shown.length} more`] : [])].join(', ')
}
