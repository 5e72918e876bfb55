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
      : [typed(`diff ${id}/start ${until}`, 'changes, line by line')]
  const undoes =
    areSavepointsGone || changes.start === null || isRunning
      ? []
      : [typed(`rewind ${id}/start`, 'restores all files from the start; can be undone')]
  const logs = typed(`logs ${id}`, 'everything that happened')
  if (changes.from === 'none' && !isRunning) return [logs]
  if (isRunning) return [typed(`watch ${id}`, 'see it at work'), logs, ...looks]
  const { follow } = data.work
  const follows: ReportCommand[] =
    follow === null || outcome === null
      ? []
      : [{ command: `${follow}${here}`, what: 'continues from its result', isOnCard: true }]
  const answers = questions.count === 0 ? [] : [typed(`questions ${id}`, 'the questions, and how to answer them')]
  const review = typed(`review ${id}`, 'has a reviewer look at the work')
  if (!isDone)
    return [{ command: resume, what: 'continues from here' }, ...looks, ...undoes, ...follows, ...answers, logs, review]
  const again = data.contract === undefined ? 'runs the gates again' : 'runs gates and checks again'
  const verify = proof.gates.length === 0 && data.contract === undefined ? [] : [typed(`verify ${id}`, again)]
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
