import { here, resumeWithMore } from '../words/commands.ts'
import type { ReportData } from './report-data.ts'

/** A command to type, and what it does. */
export interface ReportCommand {
  command: string
  what: string
  /** It is on the card, too, however many stand before it. */
  isOnCard?: true
}

/** How the commands of a report are typed. */
export interface CommandContext {
  /** What follows a command so that it is about this work directory, as ` -C ../other`; empty where that is not needed. */
  here: string
  /** The command that goes on with the session, with what it may take more. */
  resume: string
  /** Whether the savepoints of the session are no longer kept. */
  areSavepointsGone?: boolean
}

/** What to type to look closer, to go on, and to undo, those that matter most first. */
export function commandsOf(data: ReportData, place: CommandContext): ReportCommand[] {
  const { here, resume, areSavepointsGone = false } = place
  const { session: id, changes, proof, outcome, standing, questions } = data
  const isRunning = outcome === null && standing === 'running'
  const isDone = outcome?.kind === 'done'
  const typed = (words: string, what: string) => ({ command: `codemachine ${words}${here}`, what })
  const until = isRunning ? 'now' : `${id}/${changes.now?.round ?? 0}`
  const looks =
    areSavepointsGone || changes.start === null || changes.now === null || (changes.now.round === 0 && !isRunning)
      ? []
      : [typed(`diff ${id}/start ${until}`, 'what has changed, line by line')]
  const undoes =
    areSavepointsGone || changes.start === null || isRunning
      ? []
      : [typed(`rewind ${id}/start`, 'puts all files back as they were at the start; that can be undone, too')]
  const logs = typed(`logs ${id}`, 'everything that happened')
  if (changes.from === 'none' && !isRunning) return [logs]
  if (isRunning) return [typed(`watch ${id}`, 'see it at work'), logs, ...looks]
  const { follow } = data.work
  const follows: ReportCommand[] =
    follow === null || outcome === null
      ? []
      : [{ command: `${follow}${here}`, what: 'goes on from what it has come to', isOnCard: true }]
  const answers = questions.count === 0 ? [] : [typed(`questions ${id}`, 'what was asked, and how to answer it')]
  const review = typed(`review ${id}`, 'has the work looked through by a fresh pair of eyes')
  if (!isDone)
    return [{ command: resume, what: 'goes on from here' }, ...looks, ...undoes, ...follows, ...answers, logs, review]
  const verify = proof.gates.length === 0 ? [] : [typed(`verify ${id}`, 'runs the gates again: does it still hold?')]
  return [...looks, ...verify, ...undoes, ...follows, ...answers, logs, review]
}

/** The context of a report's commands. `directory`: as it was named on the command line; null if it was not. */
export function commandsHere(
  { session, outcome, limits, totals }: ReportData,
  directory: string | null,
): CommandContext {
  const used = {
    rounds: totals.rounds,
    timeMs: totals.durationMs,
    tokens: totals.tokens,
    cost: totals.cost?.amount ?? 0,
  }
  return { here: here(directory), resume: resumeWithMore({ id: session, outcome, limits, used, directory }) }
}
