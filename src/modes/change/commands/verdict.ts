/**
 * What the exit code of a command says. `real`: it depends on the work; `exists`: only on whether a file is there which the
 * change makes itself; `always`: it succeeds whatever the work is like; `never`: it fails whatever the work is like. `why`: a
 * clause, without its end.
 */
export type Verdict = { kind: 'real' | 'never' } | { kind: 'exists' | 'always'; why: string }

export const REAL: Verdict = { kind: 'real' }
export const NEVER: Verdict = { kind: 'never' }

/** A command that succeeds whatever the work is like. */
export function always(why: string): Verdict {
  return { kind: 'always', why }
}

/** Whether it says nothing about the work. */
export function isWeak(verdict: Verdict): verdict is Extract<Verdict, { why: string }> {
  return verdict.kind === 'exists' || verdict.kind === 'always'
}

/** Both have to succeed. */
export function both(first: Verdict, second: Verdict): Verdict {
  if (first.kind === 'never' || second.kind === 'never') return NEVER
  if (first.kind === 'real' || second.kind === 'real') return REAL
  return first.kind === 'exists' ? first : second
}

/** One of them has to succeed: the weaker one counts. */
export function either(first: Verdict, second: Verdict): Verdict {
  if (second.kind === 'never') return first
  return [first, second].find(({ kind }) => kind === 'always') ?? (isWeak(first) ? first : second)
}

/** It has to fail. That a file is not there any more says something. */
export function opposite(verdict: Verdict): Verdict {
  if (verdict.kind === 'always') return NEVER
  return verdict.kind === 'never' ? always('what "!" is before always fails, so that it always succeeds') : REAL
}

/** A word of a command. */
export interface Argument {
  /** What the shell makes of it, where that is known beforehand; its source where it is not. */
  text: string
  /** Whether `text` is known: nothing in it is put in by the shell. */
  isLiteral: boolean
  /** Whether what is put in comes from looking at something. */
  isReal: boolean
}

/** What a program is called with, and what is known there. */
export interface Call {
  name: string
  args: readonly Argument[]
  /** What it reads from its standard input: a text that the line holds itself, names of files, anything else; null: nothing. */
  input: 'constant' | 'names' | 'real' | null
  /** Whether it stands behind a pipe. */
  isPiped: boolean
  around: Around
}

/** What is known where a program is called. */
export interface Around {
  /** Files that the change makes. */
  made: readonly string[]
  /** What the command before this one came to. */
  last: Verdict
  /** What runs in the background; null: nothing. */
  job: Verdict | null
  /** What a text comes to that a shell is given. */
  script(text: string): Verdict
  /** From here on, a failure ends the line. */
  stopsAtFailure(stops: boolean): void
  /** From here on, a pipe fails where a part of it does. */
  pipesFail(fail: boolean): void
  /** Nothing that follows counts, for this reason. */
  spoil(why: string): void
}

/** A word that stands in a command as it is. */
export function literal(text: string): Argument {
  return { text, isLiteral: true, isReal: false }
}
