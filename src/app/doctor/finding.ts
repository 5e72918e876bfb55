import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { messageOf, systemErrorCode, UserError } from '../../base/errors.ts'
import { endMarked, MARK_VARIABLE, makeMark } from '../../platform/end-processes.ts'
import { startTimeOf } from '../../platform/processes.ts'
import type { Check, Finding } from '../../words/doctor.ts'
import type { World } from '../world.ts'

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

/** Where checks are made. Disposing of it ends every process that a check has started and removes the temporary files. */
export interface Bench extends AsyncDisposable {
  world: World
  /** The environment of every process that a check starts. */
  env: NodeJS.ProcessEnv
  /** A fresh directory. */
  temporary: string
  /** What a check finds; a problem if it throws one, or has not ended after `ms`. Nothing if the person has left. */
  look(check: Check, ms: number, find: () => Promise<readonly Finding[]>): Promise<readonly Finding[]>
  /** The same, of a check that others go by. */
  check<T>(check: Check, ms: number, find: () => Promise<Checked<T>>): Promise<Checked<T>>
}

const GRACE_MS = 500

/** Opens a bench. */
export async function openBench(world: World): Promise<Bench> {
  const { clock, pid, platform, signal } = world
  const owner = { pid, startTime: await startTimeOf(pid, platform) }
  const mark = makeMark({ key: 'doctor', owner, n: 0 })
  const temporary = await mkdtemp(join(tmpdir(), 'codemachine-doctor-'))
  const closing = new AbortController()

  const check = async <T>(check: Check, ms: number, find: () => Promise<Checked<T>>): Promise<Checked<T>> => {
    const none = (...findings: Finding[]): Checked<T> => ({ findings, value: null })
    const settled = new AbortController()
    const over = clock.wait(ms, AbortSignal.any([settled.signal, closing.signal, signal]))
    const late = over.then(() =>
      signal.aborted ? none() : none(problem(check, `There was no answer within ${ms / 1000} s.`, SLOW)),
    )
    const found = find().catch((error: unknown) => none(problemOf(check, error, UNREADABLE)))
    // Where it is late, it may still fail when its processes are ended.
    found.catch(() => {})
    try {
      return await Promise.race([found, late])
    } finally {
      settled.abort()
    }
  }
  return {
    world,
    env: { ...world.env, [MARK_VARIABLE]: mark },
    temporary,
    check,
    look: async (name, ms, find) =>
      (await check(name, ms, async () => ({ findings: await find(), value: null }))).findings,
    async [Symbol.asyncDispose]() {
      closing.abort()
      await endMarked(MARK_VARIABLE, value => value === mark, { clock, platform, self: pid, graceMs: GRACE_MS })
      await rm(temporary, { recursive: true, force: true, maxRetries: 3 })
    },
  }
}

const UNREADABLE = 'See to it that you may read and write there, then run `codemachine doctor` again.'
const SLOW = 'See whether the machine, or a network drive that it uses, hangs; then run `codemachine doctor` again.'
