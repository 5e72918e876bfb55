import type { ErrorCode } from './error-codes.ts'

/** What a person did wrong or has to fix: shown as its sentence, code and hint, without a stack. Exit code 2 unless told. */
export class UserError extends Error {
  override readonly name = 'UserError'
  /** Of its kind; the message is without it. */
  readonly code: ErrorCode
  readonly hint: string | null
  readonly exitCode: 2 | 4 | 6

  constructor(
    code: ErrorCode,
    message: string,
    options: { hint?: string; exitCode?: 2 | 4 | 6; cause?: unknown } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    this.hint = options.hint ?? null
    this.exitCode = options.exitCode ?? 2
  }
}

/** A bug of a template, which its message names: shown as that sentence, without a stack. Exit code 1. */
export class TemplateError extends Error {
  override readonly name = 'TemplateError'
}

/** A person, or the system, has ended the program while it waited for input: there is nothing to say and nothing to fix. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted'
  readonly exitCode: 130 | 143

  constructor(signal: unknown) {
    super(`Ended by ${String(signal)}`)
    this.exitCode = signal === 'SIGTERM' ? 143 : 130
  }
}

/** The message of an error with its code, as a person is shown it. */
export function withCode({ message, code }: UserError): string {
  // A message may go on with a list, or with what a command has printed.
  return message.replace(/$/m, ` (${code})`)
}

/** What another codemachine has shown of an error (`describeError`), without its name and its code. `code`: null if it has none. */
export function readShownError(shown: string): { text: string; code: ErrorCode | null } {
  const [marked, code = null] = / \((CM\d{4})\)/.exec(shown) ?? []
  const text = marked === undefined ? shown : shown.replace(marked, '')
  return { text: text.replaceAll(/^codemachine: /gm, '').trim(), code: code as ErrorCode | null }
}

/** Makes the compiler reject a union whose case is not handled; throws if the wire got past it all the same. */
export function unreachable(value: never): never {
  throw new Error(`Unhandled case: ${JSON.stringify(value)}`)
}

/** Null for a `UserError`, for a `catch`; all else is thrown on. */
export function nullIfUserError(error: unknown): null {
  if (error instanceof UserError) return null
  throw error
}

/** Nothing where a file is not there, for a `catch`; all else is thrown on. */
export function ignoreMissing(error: unknown): void {
  if (systemErrorCode(error) !== 'ENOENT') throw error
}

/** The `code` of a Node system error (`ENOENT`, `EACCES`, …), or null for anything else, such as a `UserError`. */
export function systemErrorCode(error: unknown): string | null {
  if (error instanceof UserError) return null
  if (error instanceof Error && 'code' in error && typeof error.code === 'string') return error.code
  return null
}

/** The message of anything that was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** Whether the error of an output says only that nobody reads it any more, as behind `| head` or a closed terminal. */
export function isReaderGone(error: unknown, isTerminal: boolean): boolean {
  const code = systemErrorCode(error) ?? ''
  return READER_GONE.has(code) || (isTerminal && code === 'EIO')
}

const READER_GONE: ReadonlySet<string> = new Set(['EPIPE', 'ECONNRESET', 'EOF', 'ERR_STREAM_DESTROYED'])

/** What a person is told of output that could not be written, though somebody waits for it. Exit code 4. */
export function outputLost(error: unknown): UserError {
  return new UserError('CM0108', `The output is incomplete, because it cannot be written: ${messageOf(error)}.`, {
    hint: isNoRoom(error) ? 'Free some space, or write it to another place.' : 'Write it to another place.',
    exitCode: 4,
    cause: error,
  })
}

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

/** What a person can do about a full disk, as a sentence. */
export const FREE_SPACE = 'Free some space, then type codemachine resume; nothing recorded before is lost.'

/** What a person is told where `what` (a path, or a few words) could not be written for want of room. Exit code 4. */
export function diskFull(what: string, cause: unknown): UserError {
  return new UserError('CM0109', `The disk is full: ${what} cannot be written.`, {
    hint: FREE_SPACE,
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

/**
 * What a person is shown of anything that was thrown, whole lines, and the exit code that stands for it. Nothing is shown
 * of an interruption. A bug is shown with its stack, so secrets have to be removed before it is.
 * @param program the one that was typed: it begins the first line
 */
export function describeError(error: unknown, program = 'codemachine'): { text: string; exitCode: number } {
  if (error instanceof Interrupted) return { text: '', exitCode: error.exitCode }
  // What failed while a failure was cleaned up after; Node 22 has no class of this name.
  if (error instanceof Error && error.name === 'SuppressedError' && 'suppressed' in error)
    return describeError(error.suppressed, program)
  const shown = refusedBySystem(error) ?? error
  if (shown instanceof UserError) {
    const { hint, exitCode } = shown
    return { text: `${program}: ${withCode(shown)}\n${hint === null ? '' : `  ${hint}\n`}`, exitCode }
  }
  if (shown instanceof TemplateError) {
    return { text: `${program}: ${shown.message}. Everything before that is recorded.\n`, exitCode: 1 }
  }
  const stack = error instanceof Error ? (error.stack ?? error.message) : String(error)
  return {
    text: `${program}: this is a bug in codemachine. Please report it with the lines below.\n${stack}\n`,
    exitCode: 1,
  }
}

/** What a person is told where the machine is at fault, and not codemachine; null for anything else. */
function refusedBySystem(error: unknown): UserError | null {
  if (error instanceof UserError) return null
  if (isNoRoom(error)) return diskFull(placeOf(error), error)
  if (!OF_MACHINE.has(systemErrorCode(error) ?? '')) return null
  return new UserError('CM0112', `The system failed: ${messageOf(error)}.`, {
    hint: 'codemachine resume continues; codemachine doctor checks the machine.',
    exitCode: 4,
    cause: error,
  })
}

/** A failing disk, no more open files, processes or memory. */
const OF_MACHINE: ReadonlySet<string> = new Set(['EIO', 'EMFILE', 'ENFILE', 'ENOMEM', 'EAGAIN'])

/** What could not be written; Node names the file when it was to be opened, but not when it was written to. */
function placeOf(error: unknown): string {
  const path: unknown = error instanceof Error ? Reflect.get(error, 'path') : null
  return typeof path === 'string' ? path : `a file (${messageOf(error).slice(0, 500)})`
}

/**
 * What has to be undone in the end, the last thing first; each is undone whatever happens to the others. For `await
 * using`. (Node has had an `AsyncDisposableStack` only since 24.)
 */
export class Cleanup implements AsyncDisposable {
  #actions: (() => unknown)[] = []

  defer(action: () => unknown): void {
    this.#actions.push(action)
  }

  use<T extends AsyncDisposable>(resource: T): T {
    this.defer(() => resource[Symbol.asyncDispose]())
    return resource
  }

  /** Hands all of it to the one that is returned. */
  move(): Cleanup {
    const moved = new Cleanup()
    moved.#actions = this.#actions
    this.#actions = []
    return moved
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const failures: unknown[] = []
    for (const action of this.#actions.splice(0).reverse()) {
      try {
        await action()
      } catch (error) {
        failures.push(error)
      }
    }
    if (failures.length > 0) throw failures[0]
  }
}
