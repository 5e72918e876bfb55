import { Interrupted, UserError } from '../../base/errors.ts'
import type { RunOptions } from '../../project/library.ts'
import { settingsOf } from '../../project/open-run.ts'
import { recordsAround } from '../../session/records/records.ts'
import { readRunLock } from '../../session/records/run-lock.ts'
import { formatSpan } from '../../tell/words/numbers.ts'
import type { CliContext } from '../screen/cli-context.ts'

/** Begins at once, or, where that is wanted, when no other codemachine runs in the directory any more. */
export async function inItsTurn(
  context: CliContext,
  { directory, options, waits }: { directory: string; options: RunOptions; waits: boolean },
  begin: () => Promise<number>,
): Promise<number> {
  if (!waits) return await begin().catch(sayOfWait)
  const { settings } = await settingsOf(context, directory, options)
  const say = (sentence: string) => void context.stderr.write(`${context.program}: ${sentence}\n`)
  return await inTurn(context, { directory, mostMs: settings.maxWait, say }, begin)
}

/** Says of a refusal because another codemachine runs there that it can be waited for, too. */
function sayOfWait(error: unknown): never {
  const isRefused = error instanceof UserError && error.exitCode === 6 && error.hint !== null
  if (!isRefused) throw error
  throw new UserError(error.code, error.message, { hint: `${error.hint} --wait waits for its end.`, exitCode: 6 })
}

/** Between two looks at the lock of the directory. */
const LOOK_MS = 1000
/** Before another try where that lock is free: who is in the way runs in a folder of the directory, or around it. */
const TRY_MS = 5000

/** What is waited for. */
interface Turn {
  /** The work directory. */
  directory: string
  /** How long it may take, ms. */
  mostMs: number
  /** Told a sentence, once, when it waits. */
  say: (sentence: string) => void
}

/**
 * Does what one codemachine at a time may do in a work directory. While another one runs there, and as often as the action
 * is refused with exit code 6, it waits for the end of that and tries again. Throws the last refusal when the time is over,
 * `Interrupted` if the program is asked to end while it waits.
 */
export async function inTurn(context: CliContext, turn: Turn, action: () => Promise<number>): Promise<number> {
  const { clock, signal } = context
  const until = clock.monotonic() + turn.mostMs
  let isSaid = false
  const wait = async (refused: UserError, ms: number) => {
    const leftMs = until - clock.monotonic()
    if (leftMs <= 0) throw timeOver(refused, turn.mostMs)
    if (!isSaid) {
      turn.say(`${refused.message} Waiting for its end, at most ${formatSpan(turn.mostMs)}; Ctrl+C ends the wait.`)
    }
    isSaid = true
    await clock.wait(Math.min(ms, leftMs), signal)
    if (signal.aborted) throw new Interrupted(signal.reason)
  }
  for (;;) {
    for (let who = await whoRuns(context, turn); typeof who === 'object'; who = await whoRuns(context, turn)) {
      await wait(who, LOOK_MS)
    }
    try {
      return await action()
    } catch (error) {
      const isRefused = error instanceof UserError && error.exitCode === 6
      if (!isRefused || (await whoRuns(context, turn)) === 'unreadable') throw error
      await wait(error, TRY_MS)
    }
  }
}

/** What a run would be refused with because of the lock of the directory. `unreadable`: the lock is for a person to mend. */
async function whoRuns(context: CliContext, { directory }: Turn): Promise<UserError | 'nobody' | 'unreadable'> {
  const [records] = await recordsAround({ ...context, directory })
  if (records === undefined) return 'nobody'
  const lock = await readRunLock(records.lock, context.platform)
  if (lock.state === 'unreadable') return 'unreadable'
  if (lock.state !== 'held' && lock.state !== 'elsewhere') return 'nobody'
  const { pid, host } = lock.holder
  const where = lock.state === 'elsewhere' ? ` on ${host}` : ''
  return new UserError('CM0601', `Another codemachine (pid ${pid}${where}) is running here.`, { exitCode: 6 })
}

function timeOver({ code, message, hint }: UserError, mostMs: number): UserError {
  return new UserError(code, `${message} codemachine waited ${formatSpan(mostMs)} for its end.`, {
    hint: hint ?? 'codemachine status shows its work; --max-wait 48h waits longer.',
    exitCode: 6,
  })
}
