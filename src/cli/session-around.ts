import { UserError, unreachable } from '../base/errors.ts'
import { MARK_VARIABLE, type Mark, parseMark } from '../platform/marks.ts'
import { pathExists } from '../platform/path-exists.ts'
import { type Records, recordsAround } from '../session/records.ts'
import { readRunLock } from '../session/run-lock.ts'
import type { CliContext } from './context.ts'
import { findProject } from './find-project.ts'

/** A session that can be asked. */
export interface SessionAround {
  /** The real path of its work directory. */
  directory: string
  /** The folder of its records, which may not be seen from here. */
  records: string
  /** False where only a lock says so whose process may have died, or may not be seen. */
  isSure: boolean
  /** Whether it is known not to run any more; null where its process cannot be seen from here. */
  isGone: (() => Promise<boolean>) | null
}

/**
 * The session that can be asked in a folder: the one that has started this very process, or else the one that runs in
 * the project around it; null if none runs. Writes nothing: from the sandbox of an agent the records cannot be written,
 * and may not even be seen.
 */
export async function sessionAround(
  context: Pick<CliContext, 'env' | 'home' | 'platform'>,
  folder: string,
): Promise<SessionAround | null> {
  const around = await recordsAround({ ...context, directory: folder })
  const mark = parseMark(context.env[MARK_VARIABLE] ?? '')
  const own = around.find(({ key }) => key === mark?.key)
  const [here] = around
  const project = own?.directory ?? (here === undefined ? null : await findProject(here.directory, here.root))
  const records = around.find(({ directory }) => directory === project)
  if (records === undefined) return null
  const isRunning = await (own && mark ? ofMark(records, mark, context) : ofLock(records, context))
  if (isRunning === false) return null
  const isGone = await goneWithLock(records, context)
  return { directory: records.directory, records: records.folder, isSure: isRunning === true, isGone }
}

/** Whether the process that holds the lock now has let go of it, or died. */
async function goneWithLock(
  { lock }: Records,
  { platform }: Pick<CliContext, 'platform'>,
): Promise<SessionAround['isGone']> {
  const before = await readRunLock(lock, platform)
  if (before.state !== 'held') return null
  return async () => {
    const now = await readRunLock(lock, platform)
    if (now.state === 'free' || now.state === 'stale') return true
    return now.state === 'held' && now.holder.nonce !== before.holder.nonce
  }
}

/**
 * Whether it is a session that has started this process. An agent that works by itself bears a mark too, of a process
 * that does not hold the lock; and in codex's sandbox a process that holds it may not be seen.
 */
async function ofMark(records: Records, { owner }: Mark, { platform }: Pick<CliContext, 'platform'>): Promise<boolean> {
  const lock = await readRunLock(records.lock, platform)
  switch (lock.state) {
    case 'held':
    case 'elsewhere':
    case 'unreadable':
      return true
    case 'stale':
      return lock.holder.pid === owner.pid
    case 'free':
      // Hidden, if not even their folder is there.
      return !(await pathExists(records.folder))
    default:
      return unreachable(lock)
  }
}

async function ofLock(
  records: Records,
  { env, platform }: Pick<CliContext, 'env' | 'platform'>,
): Promise<boolean | 'perhaps'> {
  const lock = await readRunLock(records.lock, platform)
  switch (lock.state) {
    case 'held':
    case 'elsewhere':
      return true
    case 'stale':
      // A person may have codex hand no variables of theirs on, the mark among them.
      return env.CODEX_THREAD_ID === undefined ? false : 'perhaps'
    case 'free':
      return false
    case 'unreadable':
      throw new UserError(`${lock.problem}; if no codemachine runs here, delete it.`, { exitCode: 6 })
    default:
      return unreachable(lock)
  }
}
