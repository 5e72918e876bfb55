import { UserError } from '../base/errors.ts'
import { displayOn } from '../cli/output.ts'
import { exitCodeOf, type SessionOutcome } from '../core/events/outcome.ts'
import { readSessions } from '../records/journal.ts'
import { openQueue, type Queue } from '../records/queue.ts'
import { howToGoOn, type Stop } from '../words/commands.ts'
import { openRun, type Run } from './project.ts'
import type { RunFlags } from './run-flags.ts'
import { type EndedSession, Sessions } from './sessions.ts'
import type { TemplateName } from './start/templates.ts'
import type { CliContext, Display } from './world.ts'

/** A session to be run; how it ended, and what it was allowed. */
export type Start = (sessions: Sessions) => Promise<EndedSession>

/** What to work through. `resumable`: whether a person is told how to go on where it stops. */
interface Work {
  /** Null: what waits. */
  first: Start | null
  /** Whether what waits has its turn in another run. */
  alone?: true
  flags: RunFlags
  resumable: boolean
}

/** How it went. `exitCode`: that of an interruption of the run, else of the first session that was not done. */
export interface WorkedThrough {
  exitCode: number
  /** Whether what waits would have its turn now. */
  goesOn: boolean
  /** Whether a person ended the run. */
  isBrokenOff: boolean
}

/**
 * Runs one session after the other: the first, then, unless it is to be `alone`, one for each prompt that waits. A
 * `UserError` if there is nothing to do, or it could not be proved done as the settings want it.
 */
export async function workThrough(context: CliContext, opened: Run, work: Work): Promise<WorkedThrough> {
  const { flags, resumable, alone } = work
  if (opened.gateRefusal !== null) throw new UserError(opened.gateRefusal)
  const queue = openQueue(opened.records.queue)
  await dropTaken(opened, queue)
  if (work.first === null && (await queue.peek()) === null) throw nothingToDo(context)
  const display = context.display ?? displayOn(context, flags)
  await using sessions = await Sessions.open(context, opened, [display.view])
  display.reach(sessions)
  using _ = { [Symbol.dispose]: () => display.reach(null) }
  let exitCode = 0
  for (let start = work.first ?? (await nextInQueue(queue)); start !== null; start = await nextInQueue(queue)) {
    const ended = await start(sessions)
    const { outcome } = ended
    exitCode = endsTheRun(outcome) ? exitCodeOf(outcome) : exitCode || exitCodeOf(outcome)
    const stops = !goesOn(outcome) || sessions.isToEnd
    const waiting = stops ? (await queue.list()).prompts.length : 0
    await sayWhatCameOfIt(display, opened, { ...ended, waiting, directory: flags.cd ?? null }, resumable)
    if (stops) return { exitCode, goesOn: false, isBrokenOff: endsTheRun(outcome) }
    if (alone) break
  }
  return { exitCode, goesOn: true, isBrokenOff: false }
}

/** Shows the report in short, and says how to go on where that is possible. */
async function sayWhatCameOfIt(display: Display, { records }: Run, stop: Stop, resumable: boolean): Promise<void> {
  // Not loaded before it is wanted.
  const { reportAtEnd } = await import('./reports.ts')
  const { id, directory: named } = stop
  const { card, problem } = await reportAtEnd({ records, id, named, resumable })
  display.card(card)
  if (problem !== null) display.say(problem)
  const how = howToGoOn(stop)
  if (how !== null && resumable) display.say(how)
}

/** Whether the next prompt has its turn: not if a person ended the run, or has to mend what the next one needs too. */
function goesOn(outcome: SessionOutcome): boolean {
  if (outcome.kind === 'needs-person') return outcome.goalOnly ?? false
  return !endsTheRun(outcome)
}

/** Whether a person ended more than this session. */
function endsTheRun(outcome: SessionOutcome): boolean {
  return outcome.kind === 'interrupted' && outcome.by !== 'skip'
}

/** A prompt that became a session just before a crash is not run again; one that had yet to become one waits again. */
async function dropTaken({ records, remarks }: Run, queue: Queue): Promise<void> {
  const claimed = await queue.claimed()
  const waiting = new Set([...claimed, ...(await queue.list()).prompts.map(prompt => prompt.id)])
  if (waiting.size === 0) return
  const { sessions, problems } = await readSessions(records)
  for (const { queued } of sessions) if (queued !== null && waiting.has(queued)) await queue.removeIfWaiting(queued)
  for (const id of claimed) await queue.release(id)
  remarks.push(...problems)
}

async function nextInQueue(queue: Queue): Promise<Start | null> {
  for (;;) {
    const next = await queue.peek()
    if (next === null) return null
    // Else somebody has taken it out in this moment.
    if (!(await queue.claim(next.id))) continue
    return async sessions => {
      try {
        return await sessions.runNew({ text: next.prompt, queued: next.id }, () => queue.removeIfWaiting(next.id))
      } catch (error) {
        // If it has not begun it waits again.
        await queue.release(next.id)
        throw error
      }
    }
  }
}

function nothingToDo({ stdin }: CliContext): UserError {
  return new UserError('There is no goal, and nothing waits in the queue.', {
    hint: stdin.isTTY ? 'Say what to work on: codemachine "…"' : 'To read the goal from standard input: codemachine -',
  })
}

/** A session that is to be started from the specification. */
export interface NewStart {
  /** Its goal. */
  text: string
  template: TemplateName
  /** Whether a person wants to see the plan before it is carried out. */
  asksPlan: boolean
}

/**
 * Runs the session to its end, and then what waits. Resolves with the exit code.
 * @param resumable whether it can be gone on with, which is then said
 */
export async function beginStart(
  context: CliContext,
  session: NewStart,
  flags: RunFlags,
  resumable = true,
): Promise<number> {
  await using opened = await openRun(context, flags)
  const first: Start = sessions => sessions.runNew({ ...session, queued: null }, async () => {})
  return (await workThrough(context, opened, { first, flags, resumable })).exitCode
}
