import { UserError } from '../base/errors.ts'
import type { RunAllowance } from '../core/events/outcome.ts'
import { exitCodeOf, type SessionOutcome } from '../core/events/outcome.ts'
import type { QueuedPrompt } from '../core/shapes/queue.ts'
import type { View } from '../core/state/state.ts'
import type { TemplateKinds } from '../core/template.ts'
import { readSessions } from '../session/records/journal.ts'
import { openQueue, type Queue } from '../session/records/queue.ts'
import type { Stop } from '../tell/words/commands.ts'
import type { EndedSession } from './library.ts'
import type { Run } from './open-run.ts'
import { allowanceAtStart } from './session-terms.ts'
import { type RunObserver, Sessions } from './sessions.ts'
import { problemOfTemplate } from './start/templates.ts'
import type { World } from './world.ts'

/** Runs one session; resolves with how it ended and its allowance. */
export type Start = (sessions: Sessions) => Promise<EndedSession>

/** Work of a run. */
interface Work {
  /** Session to run first; null: the next prompt of the queue. */
  first: Start | null
  /** Set: another run handles the queue. */
  alone?: true
  /** The work directory as typed; null: not typed. */
  named: string | null
  /** Whether later commands can find the sessions. */
  resumable: boolean
  /** What the sessions may use together. Null: unknown; left out: the settings decide. */
  allowance?: RunAllowance | null
}

/** Result of a run. `exitCode` is that of an interruption of the run, else of the first session that was not done. */
export interface QueueResult {
  exitCode: number
  /** The sessions that ran, in order. */
  sessions: readonly EndedSession[]
  /** Whether the next prompt of the queue could run now. */
  goesOn: boolean
  /** Whether a person ended the run. */
  isBrokenOff: boolean
  /** What is left for more sessions of the run; null: unknown. */
  allowance: RunAllowance | null
}

/**
 * Runs sessions one after the other: the first, then one per queued prompt unless `alone` is set. Returns null if there was
 * nothing to do. Throws a `UserError` if nothing could be proved done as the settings require.
 */
export async function runQueue(
  world: World,
  opened: Run,
  work: Work,
  observer: RunObserver,
): Promise<QueueResult | null> {
  const { alone } = work
  if (opened.gateRefusal !== null) throw new UserError('CM0701', opened.gateRefusal)
  const queue = openQueue(opened.records.queue)
  await dropTaken(opened, queue)
  const refused = new Refused()
  const next = () => nextInQueue(queue, opened.records.templates, refused)
  if (work.first === null && (await nextToStart(queue, opened.records.templates)) === null) {
    await refuseUnstartable(opened, queue)
    return null
  }
  opened.remarks.push(
    ...(await unstartable(opened, queue)).map(({ id, problem }) => `${id} is still queued. ${problem}`),
  )
  const { allowance = allowanceAtStart(opened.settings, opened.sources) } = work
  const shown = { ...observer, view: loadingAhead(observer.view) }
  await using sessions = await Sessions.open(world, opened, shown, allowance)
  observer.reach?.(sessions)
  using _ = { [Symbol.dispose]: () => observer.reach?.(null) }
  let exitCode = 0
  const all: EndedSession[] = []
  for (let start = work.first ?? (await next()); start !== null; start = await next()) {
    const ended = await start(sessions)
    if (ended === null) continue
    all.push(ended)
    const { outcome } = ended
    exitCode = endsTheRun(outcome) ? exitCodeOf(outcome) : exitCode || exitCodeOf(outcome)
    const { allowance, hasLeft } = sessions
    const stops = !goesOn(outcome) || sessions.isToEnd || !hasLeft
    const waiting = stops ? (await queue.list()).prompts.length : 0
    await reportEnd(opened, { ...ended, waiting, directory: work.named }, work, observer)
    // The session's journal already says this.
    if (!hasLeft && waiting > 0) exitCode ||= NOTHING_LEFT
    if (stops) return { exitCode, sessions: all, goesOn: false, isBrokenOff: endsTheRun(outcome), allowance }
    if (alone) break
  }
  refused.rethrow()
  return { exitCode, sessions: all, goesOn: true, isBrokenOff: false, allowance: sessions.allowance }
}

/** Exit code of a run that reached a limit before the queue was empty. */
const NOTHING_LEFT = exitCodeOf({ kind: 'limit', limit: 'rounds' })

/**
 * Wraps a view so that it loads the report writer while the session waits: for its last turn, or for the proof of a claim.
 * Loading earlier would keep it in memory for most of the night.
 */
function loadingAhead(view: View): View {
  return {
    event: (event, state) => {
      view.event(event, state)
      const isLast = event.type === 'turn-started' && state.roundsUsed + 1 === state.limits.rounds
      // The end of the session reports a load error.
      if (isLast || event.type === 'done-nominated') void loadReports().catch(() => {})
    },
    live: event => view.live(event),
  }
}

async function loadReports(): Promise<void> {
  await Promise.all([import('./reports.ts'), import('../tell/report/page/page.ts')])
}

/** Writes the report of a session that has ended. */
async function reportEnd(
  { records, repository, savepoints, redactor }: Run,
  stop: Stop,
  { resumable, named }: Work,
  observer: RunObserver,
): Promise<void> {
  // Load it only when it is needed.
  const { reportAtEnd } = await import('./reports.ts')
  const sources = { savepoints, repository, redact: (text: string) => redactor.text(text) }
  observer.ended?.(stop, await reportAtEnd({ records, id: stop.id, named, resumable, sources }))
}

/** Returns whether the next prompt may run. Not if a person ended the run, or must fix what the next one needs too. */
function goesOn(outcome: SessionOutcome): boolean {
  if (outcome.kind === 'needs-person') return outcome.goalOnly ?? false
  return !endsTheRun(outcome)
}

/** Returns whether a person ended the whole run, not just this session. */
function endsTheRun(outcome: SessionOutcome): boolean {
  return outcome.kind === 'interrupted' && outcome.by !== 'skip'
}

/** Drops a prompt that became a session just before a crash. Puts a claimed prompt without a session back into the queue. */
async function dropTaken({ records, remarks }: Run, queue: Queue): Promise<void> {
  const claimed = await queue.claimed()
  const waiting = new Set([...claimed, ...(await queue.list()).prompts.map(prompt => prompt.id)])
  if (waiting.size === 0) return
  const { sessions, problems } = await readSessions(records)
  for (const { queued } of sessions) if (queued !== null && waiting.has(queued)) await queue.removeIfWaiting(queued)
  for (const id of claimed) await queue.release(id)
  remarks.push(...problems)
}

/** Returns the next prompt for which this version can begin a session; null: none. */
export async function nextToStart(
  queue: Queue,
  templates: TemplateKinds,
  refused: Pick<Refused, 'has'> = new Set<string>(),
): Promise<QueuedPrompt | null> {
  return await queue.peek(
    ({ id, template }) => !refused.has(id) && problemOfTemplate(templates, template, 'queue') === null,
  )
}

/** Returns the prompts that only another version can begin. */
async function unstartable({ records }: Run, queue: Queue): Promise<{ id: string; problem: string }[]> {
  const { prompts } = await queue.list()
  return prompts.flatMap(({ id, template }) => {
    const problem = problemOfTemplate(records.templates, template, 'queue')
    return problem === null ? [] : [{ id, problem }]
  })
}

/** Throws a `UserError` if the queue holds only prompts that this version cannot begin. */
async function refuseUnstartable(run: Run, queue: Queue): Promise<void> {
  const [first] = await unstartable(run, queue)
  if (first === undefined) return
  const hint = `To remove it: codemachine queue rm ${first.id}`
  throw new UserError('CM0618', `${first.id} is still queued. ${first.problem}`, { hint })
}

/** Prompts whose session could not begin in this run. They stay in the queue, and the run tries the others. */
class Refused {
  readonly #errors = new Map<string, UserError>()

  has(id: string): boolean {
    return this.#errors.has(id)
  }

  add(id: string, { code, message, hint, exitCode }: UserError): void {
    const mend = hint ?? `To remove it: codemachine queue rm ${id}`
    this.#errors.set(id, new UserError(code, `${id} is still queued. ${message}`, { hint: mend, exitCode }))
  }

  /** Throws the first error, if any. Called after all other prompts have run. */
  rethrow(): void {
    for (const error of this.#errors.values()) throw error
  }
}

/** Begins the session of the next prompt; null if it cannot begin. */
type StartNext = (sessions: Sessions) => Promise<EndedSession | null>

async function nextInQueue(queue: Queue, templates: TemplateKinds, refused: Refused): Promise<StartNext | null> {
  for (;;) {
    const next = await nextToStart(queue, templates, refused)
    if (next === null) return null
    // If the claim fails, somebody has just removed the prompt.
    if (!(await queue.claim(next.id))) continue
    return async sessions => {
      let hasBegun = false
      try {
        const { id, prompt, at: _, template, ...terms } = next
        const session = {
          text: prompt,
          queued: id,
          terms,
          ...(template === undefined ? {} : { template }),
        }
        return await sessions.runNew(session, async () => {
          hasBegun = true
          await queue.removeIfWaiting(id)
        })
      } catch (error) {
        // If the session has not begun, the prompt stays in the queue.
        await queue.release(next.id)
        if (hasBegun || !(error instanceof UserError)) throw error
        refused.add(next.id, error)
        return null
      }
    }
  }
}

/** A session to start from the specification. */
export interface NewStart {
  /** Its goal. */
  text: string
  /** Name of its template. */
  template: string
  /** Whether a person wants to see the plan before it runs. */
  asksPlan: boolean
}
