import type { CommandPlace } from '../report/report-commands.ts'
import type { ReportData } from '../report/report-data.ts'
import { here, resumeWithMore } from './how-to-go-on.ts'

/** How the commands of a report are typed. `directory`: as it was named on the command line; null if it was not. */
export function commandsHere({ session, limits, totals }: ReportData, directory: string | null): CommandPlace {
  const used = { rounds: totals.rounds, timeMs: totals.durationMs, tokens: totals.tokens }
  return { here: here(directory), resume: resumeWithMore({ id: session, limits, used, directory }) }
}
