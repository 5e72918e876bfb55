import { wordsForPart } from '../ui/words-for-build.ts'
import { wordsForClass } from '../ui/words-for-cause.ts'
import type { ReportRound } from './report-data.ts'

/** How a round ended, with codex's words and what became of a claim: `worked; claimed done, refused`. */
export function outcomeOfRow(row: ReportRound): string {
  const { outcome, message, claim, counts, part, changesPlan } = row
  const purpose = changesPlan ? 'change of plan: ' : part === null ? '' : `${wordsForPart(part)}: `
  const isFree = isFreeRow(row)
  const ended = outcome === null ? 'did not come to its end' : wordsForClass(outcome)
  const why = message === null || outcome === 'worked' ? '' : `: ${message}`
  const claimed = claim === null ? '' : `; claimed done, ${claim}`
  const again = outcome !== null && !counts && !isFree ? ' (tried again)' : ''
  return `${purpose}${ended}${why}${again}${claimed}${isFree ? ' (uses up no round)' : ''}`
}

/** The number of a round in a table; a dash for one that uses up none, whose number the next one has, too. */
export function numberOfRow(row: ReportRound): string {
  return isFreeRow(row) ? '–' : String(row.round)
}

/** Whether a round is none of the person's, however it ends. */
function isFreeRow({ part, changesPlan }: ReportRound): boolean {
  return changesPlan || part === 'summary'
}
