import { resolve } from 'node:path'
import { UserError } from '../../base/errors.ts'
import { foldJournal } from '../../session/fold-journal.ts'
import { exitCodeOf, type SessionOutcome } from '../../session/outcome.ts'
import { openQueue, type Queue } from '../../session/queue.ts'
import { openRecords, type Records } from '../../session/records.ts'
import type { SessionState } from '../../session/state.ts'
import type { View } from '../../session/view.ts'
import { jsonView } from '../../ui/json-view.ts'
import { plainView } from '../../ui/plain-view.ts'
import type { CliContext } from '../context.ts'
import { findSession } from '../find-session.ts'
import type { RunFlags } from '../flags.ts'
import { howToGoOn } from '../how-to-go-on.ts'
import { openRun, type Run } from '../open-run.ts'
import { readText } from '../read-text.ts'
import { Sessions } from '../sessions.ts'
import { wantsColour } from '../wants-colour.ts'

/** A session to be run; how it ended, and how many rounds it was allowed. */
type Start = (sessions: Sessions) => Promise<{ id: string; outcome: SessionOutcome; rounds: number }>

/**
 * `codemachine [goal]`: a session for the goal, then one for each prompt that waits.
 * @param resumable whether it can be gone on with, which is then said; the demo cannot, for its model ends with it
 */
export async function run(
  context: CliContext,
  goal: string | null,
  flags: RunFlags,
  resumable = true,
): Promise<number> {
  const text = goal === null ? null : await readText(context, goal)
  await using opened = await openRun(context, flags)
  const queue = openQueue(opened.records.queue)
  await dropTaken(opened, queue)
  const first: Start | null =
    text === null ? await nextInQueue(queue) : sessions => sessions.runNew({ text, queued: null }, async () => {})
  if (first === null) throw nothingToDo(context)
  return await workThrough(context, opened, queue, first, flags, resumable)
}

/** `codemachine resume`: goes on with a session that has not come to its end, then with what waits. */
export async function resume(context: CliContext, wanted: string | null, flags: RunFlags): Promise<number> {
  const { env, home, platform, cwd } = context
  const records = await openRecords({ directory: resolve(cwd, flags.cd ?? '.'), env, home, platform })
  const id = wanted === null ? await newestUnfinished(records) : await findSession(records, wanted)
  const before = await foldJournal(records.journal(id), id)
  if (before === null) throw new UserError(`The journal of ${id} holds no session, so there is nothing to go on with.`)

  await using opened = await openRun(context, { ...choicesOf(before), ...flags })
  const queue = openQueue(opened.records.queue)
  await dropTaken(opened, queue)
  // Read once more: until the lock was taken, another codemachine may have worked on it.
  const state = (await foldJournal(records.journal(id), id)) ?? before
  if (state.ended?.outcome.kind === 'done') throw new UserError(`${id} is done, so there is nothing to go on with.`)
  const rounds = flags.rounds === undefined ? state.maxRounds : opened.settings.rounds
  if (state.roundsUsed >= rounds) {
    throw new UserError(`${id} has used ${state.roundsUsed} of its ${rounds} rounds; give it more with --rounds.`)
  }
  const first: Start = async sessions => ({ id, rounds, outcome: await sessions.resume(state, rounds) })
  return await workThrough(context, opened, queue, first, flags, true)
}

/** What the person chose when the session began counts when it goes on, unless they now say otherwise. */
function choicesOf({ sandbox, network, model, effort, overrides }: SessionState): RunFlags {
  return {
    sandbox,
    network,
    ...(model === null ? {} : { model }),
    ...(effort === null ? {} : { effort }),
    config: [...overrides],
  }
}

async function newestUnfinished(records: Records): Promise<string> {
  for (const id of (await records.sessions()).reverse()) {
    const state = await foldJournal(records.journal(id), id)
    if (state !== null && state.ended?.outcome.kind !== 'done') return id
  }
  throw new UserError(`There is no session in ${records.directory} that could be gone on with.`, {
    hint: 'Start one: codemachine "…"',
  })
}

/** One session after the other. The exit code is that of an interruption, else of the first that was not done. */
async function workThrough(
  context: CliContext,
  opened: Run,
  queue: Queue,
  first: Start,
  flags: RunFlags,
  resumable: boolean,
): Promise<number> {
  await using sessions = await Sessions.open(context, opened, [viewOf(context, flags)])
  context.stdout.once('error', () => {
    context.stderr.write('Nobody reads the output any more. The work goes on; codemachine logs -f follows it.\n')
  })
  let exitCode = 0
  for (let start: Start | null = first; start !== null; start = await nextInQueue(queue)) {
    const { id, outcome, rounds } = await start(sessions)
    exitCode = outcome.kind === 'interrupted' ? exitCodeOf(outcome) : exitCode || exitCodeOf(outcome)
    const stops = !goesOn(outcome) || context.signal.aborted
    const waiting = stops ? (await queue.list()).prompts.length : 0
    const how = howToGoOn({ id, outcome, rounds, waiting, directory: flags.cd ?? null })
    if (how !== null && resumable) (flags.json ? context.stderr : context.stdout).write(`${how}\n`)
    if (stops) break
  }
  return exitCode
}

/** Whether the next prompt has its turn: not if a person ended the run, or has to mend what the next one needs too. */
function goesOn(outcome: SessionOutcome): boolean {
  return outcome.kind === 'done' || outcome.kind === 'limit'
}

/** A prompt that became a session just before a crash still lies in the queue; it is not run again. */
async function dropTaken({ records }: Run, queue: Queue): Promise<void> {
  const waiting = new Set((await queue.list()).prompts.map(prompt => prompt.id))
  if (waiting.size === 0) return
  for (const id of await records.sessions()) {
    const queued = (await foldJournal(records.journal(id), id))?.queued ?? null
    if (queued !== null && waiting.has(queued)) await queue.removeIfWaiting(queued)
  }
}

async function nextInQueue(queue: Queue): Promise<Start | null> {
  const next = await queue.peek()
  return (
    next && (sessions => sessions.runNew({ text: next.prompt, queued: next.id }, () => queue.removeIfWaiting(next.id)))
  )
}

function nothingToDo({ stdin }: CliContext): UserError {
  return new UserError('There is no goal, and nothing waits in the queue.', {
    hint: stdin.isTTY ? 'Say what to work on: codemachine "…"' : 'To read the goal from standard input: codemachine -',
  })
}

function viewOf(context: CliContext, flags: RunFlags): View {
  const write = (text: string) => void context.stdout.write(text)
  return flags.json ? jsonView(write) : plainView(write, { colour: wantsColour(context) })
}
