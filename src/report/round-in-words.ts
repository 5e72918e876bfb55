import { wordsForPart } from '../ui/words-for-build.ts'
import { wordsForClass } from '../ui/words-for-cause.ts'
import type { ReportRound } from './report-data.ts'

/** How a round ended, with codex's words and what became of a claim: `worked; claimed done, refused`. */
export function outcomeOfRow({ outcome, message, claim, counts, part, changesPlan }: ReportRound): string {
  const purpose = changesPlan ? 'change of plan: ' : part === null ? '' : `${wordsForPart(part)}: `
  const isFree = changesPlan || part === 'summary'
  const ended = outcome === null ? 'did not come to its end' : wordsForClass(outcome)
  const why = message === null || outcome === 'worked' ? '' : `: ${message}`
  const claimed = claim === null ? '' : `; claimed done, ${claim}`
  const again = outcome !== null && !counts && !isFree ? ' (tried again)' : ''
  return `${purpose}${ended}${why}${again}${claimed}`
}
