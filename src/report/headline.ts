import { unreachable } from '../base/errors.ts'
import { describeOutcome, type OutcomeInWords } from '../ui/describe-outcome.ts'
import type { ProvedState } from '../ui/words-for-proof.ts'
import type { ReportData } from './report-data.ts'

/** How the session came out, or how it stands, in words. */
export function headlineOf({ outcome, standing, proof }: ReportData): OutcomeInWords {
  return outcome === null ? stands(standing) : describeOutcome(outcome, provedBy(proof))
}

function provedBy({ tree, gates, reviewed }: ReportData['proof']): ProvedState {
  const results = gates.flatMap(({ name, last }) =>
    last?.when === 'claim' ? [{ gate: name, status: last.status }] : [],
  )
  return {
    claim: tree === null ? { state: 'none' } : { state: 'accepted', tree, results },
    gates,
    reviews: { agreedTo: reviewed ? tree : null },
  }
}

function stands(standing: ReportData['standing']): OutcomeInWords {
  switch (standing) {
    case 'running':
      return { short: 'at work', text: 'at work: this is how far it is', hint: null, tone: 'strong' }
    case 'cut-off':
      return {
        short: 'cut off',
        text: 'cut off: codemachine was ended before the session was',
        hint: 'Nothing that was written down is lost; it can go on from there.',
        tone: 'warning',
      }
    case 'unknown':
    case 'ended':
      return { short: 'not ended', text: 'not ended; it is not known whether it runs', hint: null, tone: 'warning' }
    default:
      return unreachable(standing)
  }
}
