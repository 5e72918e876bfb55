import { clipEnd } from '../../base/text.ts'
import { hasPassed } from '../../core/events/outcome.ts'
import {
  type CheckRun,
  type ContractState,
  countContract,
  lineOf,
  type SentenceNow,
  sentencesOf,
} from '../../core/rules/contract.ts'
import type { ReportSection } from '../../core/view.ts'
import { wordsForContract, wordsForKind, wordsForSentence } from '../words/contract.ts'
import { formatCount } from '../words/numbers.ts'
import { wordsForGate } from '../words/proof.ts'
import type { ReportContract } from './report-data.ts'

const QUOTE_CHARS = 300
const RUN_CHARS = 300
const DIFF_CHARS = 8_000

/**
 * What the report says of the contract; null: the session has none. `isOver`: whether the work is done: before that the report,
 * which agents can read, shows nothing of a check that is held out.
 */
export function reportContract(contract: ContractState | null, isOver: boolean): ReportContract | null {
  const words = wordsForContract(contract)
  if (contract === null || words === null) return null
  const { holding = 0, proved = 0, checkable = 0 } = countContract(contract) ?? {}
  return {
    words,
    holding,
    proved,
    checkable,
    acceptedBy: contract.acceptedBy,
    uncovered: contract.frozen?.uncovered ?? [],
    sentences: sentencesOf(contract).map(sentence => {
      const { id, quote, kind, state, reason, made, caught, flaw } = sentence
      const missed = contract.controls.find(each => each.sentence === id && each.result === 'not-caught')
      return {
        id,
        quote: clipEnd(quote, QUOTE_CHARS),
        kind,
        state,
        reason: reason ?? (flaw === null ? null : clipEnd(flaw.split('\n')[0] ?? '', QUOTE_CHARS)),
        controls: { made, caught },
        checks: sentence.isHeldOut && !isOver ? [] : checksOf(sentence, contract),
        weakness: missed === undefined ? null : clipEnd(missed.diff, DIFF_CHARS),
      }
    }),
  }
}

function checksOf({ id, checks }: SentenceNow, contract: ContractState) {
  return checks.map(({ run }, at) => ({
    run: clipEnd(lineOf(id, at + 1, run), RUN_CHARS),
    before: statusIn(contract.frozen?.before ?? [], id, at + 1),
    now: statusIn(contract.runs, id, at + 1),
  }))
}

function statusIn(runs: readonly CheckRun[], sentence: string, check: number): CheckRun['status'] | null {
  return runs.find(each => each.sentence === sentence && each.check === check)?.status ?? null
}

/** The first section of a report: each sentence, how it stands, and what shows that. */
export function contractSection(contract: ReportContract | undefined): ReportSection | null {
  if (contract === undefined) return null
  const { words, sentences, uncovered } = contract
  const asking = sentences.filter(({ kind }) => kind !== 'context')
  const weak = asking.filter(({ weakness }) => weakness !== null)
  const lines = [
    ...weak.map(({ id }) => `- Look at this first: ${id} is weak. No check notices this wrong version:`).slice(0, 5),
    ...uncovered.slice(0, 5).map(piece => `- In no sentence: ${piece.replace(/\s+/g, ' ')}`),
  ]
  const diffs = weak.slice(0, 5).flatMap(({ id, weakness }) => [`${id}:`, ...(weakness ?? '').split('\n').slice(0, 40)])
  return {
    title: 'What you asked for',
    note: `${words}.`,
    text: [...lines, ...diffs].join('\n'),
    ...(asking.length === 0
      ? {}
      : { table: { head: ['', 'sentence', 'kind', 'how it stands', 'shown by'], rows: asking.map(rowOf) } }),
  }
}

function rowOf({ id, quote, kind, state, reason, checks, controls }: ReportContract['sentences'][number]): string[] {
  const shown = checks.map(({ run, before, now }) => `${run}: ${stateOf(before)} before, ${stateOf(now)} now`)
  const tried =
    controls.made === 0 ? [] : [`${controls.caught} of ${formatCount(controls.made, 'wrong version')} noticed`]
  const why = reason === null ? [] : [reason]
  return [id, quote, wordsForKind(kind), wordsForSentence(state), [...shown, ...tried, ...why].join('; ')]
}

function stateOf(status: CheckRun['status'] | null): string {
  if (status === null) return 'not run'
  return hasPassed(status) ? 'passed' : wordsForGate({ status, exitCode: null })
}
