import { messageOf, systemErrorCode, UserError } from '../../base/errors.ts'

/** What doctor looks at, in the order in which it is shown. */
export type Check =
  | 'node'
  | 'directory'
  | 'settings'
  | 'records'
  | 'disk'
  | 'leftovers'
  | 'git'
  | 'codex'
  | 'codex-home'
  | 'codex-config'
  | 'model'
  | 'login'
  | 'sandbox'

/** What a check has found. `problem`: codemachine cannot work like that; `warning`: it can, and a person should know. */
export interface Finding {
  check: Check
  status: 'ok' | 'warning' | 'problem'
  message: string
  /** What to do about it, in one sentence; null if nothing has to be done. */
  mend: string | null
}

/** Findings, and what later checks go by; null if there is none. */
export interface Checked<T> {
  findings: readonly Finding[]
  value: T | null
}

export function ok(check: Check, message: string): Finding {
  return { check, status: 'ok', message, mend: null }
}

export function warning(check: Check, message: string, mend: string): Finding {
  return { check, status: 'warning', message, mend }
}

export function problem(check: Check, message: string, mend: string): Finding {
  return { check, status: 'problem', message, mend }
}

/** The problem that something thrown stands for: a `UserError`, or the system's no. What is neither is thrown on. */
export function problemOf(check: Check, error: unknown, mend: string): Finding {
  if (error instanceof UserError) {
    if (error.hint !== null) return problem(check, error.message, error.hint)
    // The sentence of a UserError ends with its mend: `rounds is "x"; use a whole number …`.
    const [, message = error.message, own = mend] = /^(.*); (.*)$/s.exec(error.message) ?? []
    return problem(check, own === mend ? message : `${message}.`, own.charAt(0).toUpperCase() + own.slice(1))
  }
  if (systemErrorCode(error) === null) throw error
  return problem(check, messageOf(error), mend)
}
