import { type Ended, type EndOptions, endMarked } from './end-processes.ts'
import { findMarked } from './find-marked.ts'
import { isStillRunning, type ProcessIdentity } from './processes.ts'

/** The environment variable by which all that codemachine starts, and all that these start, can be found again. */
export const MARK_VARIABLE = 'CODEMACHINE_MARK'

/** Whose work a process does. */
export interface Mark {
  /** The key of the records of the work directory. */
  key: string
  /** The codemachine process that started it. */
  owner: ProcessIdentity
  /** Tells apart what one owner starts. */
  n: number
}

/** The value of the variable: `<key>/<owner's pid>/<owner's start time, or ->/<n>`. */
export function makeMark({ key, owner, n }: Mark): string {
  return `${key}/${owner.pid}/${owner.startTime ?? '-'}/${n}`
}

/** Reads what `makeMark` wrote; null for anything else. */
export function parseMark(value: string): Mark | null {
  const [, key, pid, startTime, n] = /^([^/]+)\/([1-9]\d{0,9})\/([^/\s]+)\/(\d{1,9})$/.exec(value) ?? []
  if (key === undefined || startTime === undefined) return null
  return { key, owner: { pid: Number(pid), startTime: startTime === '-' ? null : startTime }, n: Number(n) }
}

/**
 * Ends what a codemachine that has died left running for the records with this key: every marked process whose owner
 * no longer lives. What a living codemachine started is not touched. Finds nothing on Windows.
 */
export async function endLeftovers(key: string, options: EndOptions): Promise<Ended> {
  const isOurs = (value: string) => parseMark(value)?.key === key
  const ownerless = new Set<string>()
  for (const { value } of await findMarked(MARK_VARIABLE, isOurs, options.platform)) {
    const mark = parseMark(value)
    if (mark !== null && !(await isStillRunning(mark.owner, options.platform))) ownerless.add(value)
  }
  if (ownerless.size === 0) return { ended: [], left: [] }
  return endMarked(MARK_VARIABLE, value => ownerless.has(value), options)
}
