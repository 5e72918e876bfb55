import type { Tone } from '../words/names.ts'
import { notProved } from './look-first.ts'
import type { ReportData, ReportGate } from './report-data.ts'
import { capital, gateInWords, noGateInWords, notesOnProof, reviewInWords, shortName, toneOfGate } from './words.ts'

/** A line on the proof. Its text came from outside in part, and is not made safe. */
interface ProofLine {
  text: string
  tone: Tone
}

/** What of a session is proved as it stands, and what is not proved yet; while it runs, too. */
export function proofNow(data: ReportData): { proved: ProofLine[]; open: ProofLine[] } {
  const { proof, contract } = data
  const none = noGateInWords(data, 'the work')
  const review = proof.reviews.entries.at(-1)
  const hasPassed = ({ last }: ReportGate) => last?.status === 'passed' || last?.status === 'flaky'
  const ofGate = (gate: ReportGate) => ({
    text: `${shortName(gate.name)}: ${gateInWords(gate)}`,
    tone: toneOfGate(gate),
  })
  return {
    open: [
      ...(contract === undefined ? [] : notProved(contract)),
      ...(none === null ? [] : [{ text: `${capital(none)}.`, tone: 'warning' as const }]),
      ...proof.gates.filter(gate => !hasPassed(gate)).map(ofGate),
    ],
    proved: [
      ...(contract === undefined ? [] : [{ text: `${contract.words}.`, tone: 'plain' as const }]),
      ...proof.gates.filter(hasPassed).map(ofGate),
      ...(review === undefined ? [] : [reviewInWords(review)]),
      ...notesOnProof(data).map(({ text, tone }) => ({ text: capital(text), tone })),
    ],
  }
}
