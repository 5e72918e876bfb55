import { messageOf, systemErrorCode, UserError } from './errors.ts'

/** Of the disk, of a quota, and of the size that a file may have. */
const CODES: ReadonlySet<string> = new Set(['ENOSPC', 'EDQUOT', 'EFBIG'])
/** As git, codex and what a library wraps say it. */
const WORDS = /no space left on device|out of diskspace|disk quota exceeded|file too large|file size limit exceeded/i

/** Whether something failed because there was no room to write. */
export function isNoRoom(error: unknown): boolean {
  return CODES.has(systemErrorCode(error) ?? '') || WORDS.test(messageOf(error))
}

/** Whether something failed for want of room, also where a person has been told so already. */
export function isDiskFull(error: unknown): boolean {
  return isNoRoom(error) || (error instanceof UserError && error.cause !== undefined && isNoRoom(error.cause))
}

/** What a person is told where `what` (a path, or a few words) could not be written for want of room. Exit code 4. */
export function diskFull(what: string, cause: unknown): UserError {
  return new UserError(`The disk is full: ${what} cannot be written.`, {
    hint: 'Free some space; nothing that was journaled before is lost, and codemachine resume goes on from there.',
    exitCode: 4,
    cause,
  })
}

/** Does some writing; a failure for want of room becomes `diskFull(what)`, any other stays what it is. */
export async function writing<T>(what: string, write: () => Promise<T>): Promise<T> {
  try {
    return await write()
  } catch (error) {
    throw isNoRoom(error) && !(error instanceof UserError) ? diskFull(what, error) : error
  }
}
