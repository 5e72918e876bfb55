/** What a person did wrong or has to mend: shown as its sentence and hint, without a stack. Exit code 2 unless told. */
export class UserError extends Error {
  override readonly name = 'UserError'
  readonly hint: string | null
  readonly exitCode: 2 | 4 | 6

  constructor(message: string, options: { hint?: string; exitCode?: 2 | 4 | 6; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.hint = options.hint ?? null
    this.exitCode = options.exitCode ?? 2
  }
}

/** A person, or the system, has ended the program while it waited for input: there is nothing to say and nothing to mend. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted'
  readonly exitCode: 130 | 143

  constructor(signal: unknown) {
    super(`Ended by ${String(signal)}`)
    this.exitCode = signal === 'SIGTERM' ? 143 : 130
  }
}

/** Makes the compiler reject a union whose case is not handled; throws if the wire got past it all the same. */
export function unreachable(value: never): never {
  throw new Error(`Unhandled case: ${JSON.stringify(value)}`)
}

/** The `code` of a Node system error (`ENOENT`, `EACCES`, …), or null for anything else. */
export function systemErrorCode(error: unknown): string | null {
  if (error instanceof Error && 'code' in error && typeof error.code === 'string') return error.code
  return null
}

/** The message of anything that was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
