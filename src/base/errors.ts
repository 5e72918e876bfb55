import type { ErrorCode } from './error-codes.ts'

/** A mistake or problem that a person must fix: shown as sentence, code and hint, without a stack. Default exit code 2. */
export class UserError extends Error {
  override readonly name = 'UserError'
  /** Code of its kind, not part of the message. */
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

/** A bug of the template that its message names; shown as that sentence, without a stack. Exit code 1. */
export class TemplateError extends Error {
  override readonly name = 'TemplateError'
}

/** A person or the system ended the program while it waited for input; nothing to show or fix. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted'
  readonly exitCode: 130 | 143

  constructor(signal: unknown) {
    super(`Ended by ${String(signal)}`)
    this.exitCode = signal === 'SIGTERM' ? 143 : 130
  }
}

/** Returns an error's message with its code, as shown to a person. */
export function withCode({ message, code }: UserError): string {
  // A message may continue with a list, or with a command's output.
  return message.replace(/$/m, ` (${code})`)
}

/** Parses another codemachine's shown error (`describeError`), without its name and code. `code` null: none. */
export function readShownError(shown: string): { text: string; code: ErrorCode | null } {
  const [marked, code = null] = / \((CM\d{4})\)/.exec(shown) ?? []
  const text = marked === undefined ? shown : shown.replace(marked, '')
  return { text: text.replaceAll(/^codemachine: /gm, '').trim(), code: code as ErrorCode | null }
}

/** Makes the compiler reject an unhandled case of a union; throws if data reaches it anyway. */
export function unreachable(value: never): never {
  throw new Error(`Unhandled case: ${JSON.stringify(value)}`)
}

/** For a `catch`: returns null for a `UserError`, and rethrows all else. */
export function nullIfUserError(error: unknown): null {
  if (error instanceof UserError) return null
  throw error
}

/** For a `catch`: ignores a missing file, and rethrows all else. */
export function ignoreMissing(error: unknown): void {
  if (systemErrorCode(error) !== 'ENOENT') throw error
}

/** Returns the `code` of a Node system error (`ENOENT`, `EACCES`, …); null: another error, for example a `UserError`. */
export function systemErrorCode(error: unknown): string | null {
  if (error instanceof UserError) return null
  if (error instanceof Error && 'code' in error && typeof error.code === 'string') return error.code
  return null
}

/** Returns the message of any thrown value. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** Returns true if an output error only means that its reader is gone: `| head`, a closed terminal. */
export function isReaderGone(error: unknown, isTerminal: boolean): boolean {
  const code = systemErrorCode(error) ?? ''
  return READER_GONE.has(code) || (isTerminal && code === 'EIO')
}

const READER_GONE: ReadonlySet<string> = new Set(['EPIPE', 'ECONNRESET', 'EOF', 'ERR_STREAM_DESTROYED'])

/** Returns the error for wanted output that could not be written. Exit code 4. */
export function outputLost(error: unknown): UserError {
  return new UserError('CM0108', `The output is incomplete, because it cannot be written: ${messageOf(error)}.`, {
    hint: isNoRoom(error) ? 'Free some space, or write it to another place.' : 'Write it to another place.',
    exitCode: 4,
    cause: error,
  })
}

/** Codes of a full disk, a quota, and a file size limit. */
const CODES: ReadonlySet<string> = new Set(['ENOSPC', 'EDQUOT', 'EFBIG'])
/** Words of git, codex and wrapped library errors. */
const WORDS = /no space left on device|out of diskspace|disk quota exceeded|file too large|file size limit exceeded/i

/** Returns true if an error means a full disk. */
export function isNoRoom(error: unknown): boolean {
  return CODES.has(systemErrorCode(error) ?? '') || WORDS.test(messageOf(error))
}

/** Returns true for a full disk, also inside a `UserError` about it. */
export function isDiskFull(error: unknown): boolean {
  return isNoRoom(error) || (error instanceof UserError && error.cause !== undefined && isNoRoom(error.cause))
}

/** Advice about a full disk, a sentence. */
export const FREE_SPACE = 'Free some space, then type codemachine resume; nothing recorded before is lost.'

/** Returns the error if `what` (a path, or a few words) does not fit on the disk. Exit code 4. */
export function diskFull(what: string, cause: unknown): UserError {
  return new UserError('CM0109', `The disk is full: ${what} cannot be written.`, {
    hint: FREE_SPACE,
    exitCode: 4,
    cause,
  })
}

/** Runs a write; a full disk becomes `diskFull(what)`, other errors stay. */
export async function writing<T>(what: string, write: () => Promise<T>): Promise<T> {
  try {
    return await write()
  } catch (error) {
    throw isNoRoom(error) && !(error instanceof UserError) ? diskFull(what, error) : error
  }
}

/**
 * Returns the text for a thrown value, whole lines, and its exit code. An interruption has no text. A bug has its stack, so
 * the caller must remove secrets.
 * @param program the typed program name, which starts the first line
 */
export function describeError(error: unknown, program = 'codemachine'): { text: string; exitCode: number } {
  if (error instanceof Interrupted) return { text: '', exitCode: error.exitCode }
  // An error during the cleanup of another error; Node 22 has no class of this name.
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

/** Returns the error if the machine is at fault, not codemachine; null: it is not. */
export function refusedBySystem(error: unknown): UserError | null {
  if (error instanceof UserError) return null
  if (isNoRoom(error)) return diskFull(placeOf(error), error)
  if (!OF_MACHINE.has(systemErrorCode(error) ?? '')) return null
  return new UserError('CM0112', `The system failed: ${messageOf(error)}.`, {
    hint: 'codemachine resume continues; codemachine doctor checks the machine.',
    exitCode: 4,
    cause: error,
  })
}

/** A failing disk, or no open files, processes or memory left. */
const OF_MACHINE: ReadonlySet<string> = new Set(['EIO', 'EMFILE', 'ENFILE', 'ENOMEM', 'EAGAIN'])

/** Returns the unwritable place; Node names a file on open errors, but not on write errors. */
function placeOf(error: unknown): string {
  const path: unknown = error instanceof Error ? Reflect.get(error, 'path') : null
  return typeof path === 'string' ? path : `a file (${messageOf(error).slice(0, 500)})`
}

/**
 * Cleanup actions, run in reverse order; a failure does not stop the others. For `await using`. (Node has
 * `AsyncDisposableStack` only since 24.)
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

  /** Moves all actions to the returned object. */
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
