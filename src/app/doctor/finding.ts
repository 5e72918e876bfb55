import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { messageOf, systemErrorCode, UserError } from '../../base/errors.ts'
import { endMarked, MARK_VARIABLE, makeMark } from '../../platform/end-processes.ts'
import { startTimeOf } from '../../platform/processes.ts'
import type { Check, Finding } from '../../words/doctor.ts'
import type { World } from '../world.ts'

/** The findings of a check, and the value that later checks need; null if it could not be had. */
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

/** A `UserError` or a system error as a finding; any other error is thrown again. */
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

/** One run of doctor. Disposing of it ends every process that a check has started and removes the temporary files. */
export interface CheckRun extends AsyncDisposable {
  world: World
  /** The environment of every process that a check starts. */
  env: NodeJS.ProcessEnv
  /** A fresh directory. */
  temporary: string
  /** The findings of a check; a problem if it throws or takes longer than `ms`. Empty if the person has left. */
  look(check: Check, ms: number, find: () => Promise<readonly Finding[]>): Promise<readonly Finding[]>
  /** The same for a check with a value. */
  check<T>(check: Check, ms: number, find: () => Promise<Checked<T>>): Promise<Checked<T>>
}

const GRACE_MS = 500

/** Starts a run: makes its temporary directory, and the mark of the processes that it starts. */
export async function openCheckRun(world: World): Promise<CheckRun> {
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
