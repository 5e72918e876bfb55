import { clipEnd, clipStart } from '../../base/text.ts'
import { hasPassed } from '../../core/events/outcome.ts'
import {
  type CheckRun,
  type ContractState,
  countContract,
  lineOf,
  runOf,
  runsNow,
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
const VERSION_CHARS = 4_000
const OUTPUT_CHARS = 1_000

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
        versions: sentence.isHeldOut && !isOver ? [] : versionsOf(id, contract),
        weakness: missed === undefined ? null : clipEnd(missed.diff, DIFF_CHARS),
      }
    }),
  }
}

function checksOf({ id, checks }: SentenceNow, contract: ContractState) {
  const runs = runsNow(contract)
  return checks.map(({ run }, at) => ({
    run: clipEnd(lineOf(id, at + 1, run), RUN_CHARS),
    before: runOf(contract.frozen?.before ?? [], id, at + 1)?.status ?? null,
    now: runOf(runs, id, at + 1)?.status ?? null,
    isFlaky: runOf(runs, id, at + 1)?.isFlaky ?? false,
    output: clipStart(runOf(runs, id, at + 1)?.output.trim() ?? '', OUTPUT_CHARS),
  }))
}

function versionsOf(id: string, { controls }: ContractState) {
  return controls
    .filter(({ sentence, result }) => sentence === id && (result === 'caught' || result === 'not-caught'))
    .map(({ summary, diff, result }) => ({
      summary: clipEnd(summary, QUOTE_CHARS),
      diff: clipEnd(diff, VERSION_CHARS),
      isCaught: result === 'caught',
    }))
}

/** What of the goal is in no sentence, a line each. */
export function uncoveredInWords({ uncovered }: ReportContract): string[] {
  return uncovered.slice(0, 5).map(piece => `Not covered by any sentence: ${piece.replace(/\s+/g, ' ')}`)
}

/** The first section of a report in Markdown: each sentence, how it stands, and what shows that. */
export function contractSection(contract: ReportContract | undefined): ReportSection | null {
  if (contract === undefined) return null
  const { words, sentences } = contract
  const asking = sentences.filter(({ kind }) => kind !== 'context')
  const weak = asking.filter(({ weakness }) => weakness !== null)
  const lines = [
    ...weak.map(({ id }) => `- No check of ${id} notices this wrong version:`).slice(0, 5),
    ...uncoveredInWords(contract).map(text => `- ${text}`),
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

function rowOf(sentence: ReportContract['sentences'][number]): string[] {
  const { id, quote, kind, state } = sentence
  return [id, quote, wordsForKind(kind), wordsForSentence(state), evidenceOf(sentence)]
}

/** What a sentence was checked with, and what came of it, on one line; empty: nothing. */
export function evidenceOf({ reason, checks, controls }: ReportContract['sentences'][number]): string {
  const shown = checks.map(check => `${check.run}: ${howItCame(check)}`)
  const tried =
    controls.made === 0 ? [] : [`${controls.caught} of ${formatCount(controls.made, 'wrong version')} noticed`]
  const why = reason === null ? [] : [reason]
  return [...shown, ...tried, ...why].join('; ')
}

/** How a check came out: `failed before, passed now`. */
export function howItCame({ before, now, isFlaky }: ReportContract['sentences'][number]['checks'][number]): string {
  return `${stateOfCheck(before)} before, ${stateOfCheck(now)} now${isFlaky ? ', flaky' : ''}`
}

/** Null: it did not run. */
function stateOfCheck(status: CheckRun['status'] | null): string {
  if (status === null) return 'not run'
  return hasPassed(status) ? 'passed' : wordsForGate({ status, exitCode: null })
}
