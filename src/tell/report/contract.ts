import { clipEnd, clipStart } from '../../base/text.ts'
import { hasPassed } from '../../core/events/outcome.ts'
import {
  type CheckRun,
  type ContractState,
  countContract,
  lineOf,
  runOf,
  type SentenceNow,
  sentencesOf,
} from '../../core/rules/contract.ts'
import type { ReportSection } from '../../core/view.ts'
import { wordsForContract, wordsForKind, wordsForSentence } from '../words/contract.ts'
import { formatCount } from '../words/numbers.ts'
import { wordsForFlaky, wordsForGate } from '../words/proof.ts'
import type { ReportContract, ReportData } from './report-data.ts'
import { protectedInWords, taskInWords, whatIsLeft } from './words.ts'

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
  return checks.map(({ run }, at) => ({
    run: clipEnd(lineOf(id, at + 1, run), RUN_CHARS),
    before: runOf(contract.frozen?.before ?? [], id, at + 1)?.status ?? null,
    now: runOf(contract.runs, id, at + 1)?.status ?? null,
    isFlaky: runOf(contract.runs, id, at + 1)?.isFlaky ?? false,
    output: clipStart(runOf(contract.runs, id, at + 1)?.output.trim() ?? '', OUTPUT_CHARS),
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

/** A thing that a person should look at. Its text came from outside in part, and is not made safe. */
interface LookedAt {
  text: string
  tone: 'warning' | 'bad' | 'plain'
}

/**
 * What a person should look at before all else, where there is a contract: sentences that are not proved, assumptions,
 * protected files that changed, and what was given up.
 */
export function lookAtFirst({ contract, questions, proof, build }: ReportData): LookedAt[] {
  const open = (contract?.sentences ?? []).filter(({ kind, state }) => kind !== 'context' && state !== 'proved')
  const rank = (state: SentenceNow['state']) => ['fails', 'weak', 'unusable', 'open', 'holds'].indexOf(state)
  const unproved = open.filter(({ state }) => rank(state) >= 0).sort((a, b) => rank(a.state) - rank(b.state))
  const changed = proof.protectedFiles.filter(({ putBack }) => !putBack)
  const flaky = (contract?.sentences ?? []).filter(({ checks }) => checks.some(({ isFlaky }) => isFlaky))
  return [
    ...unproved.map(({ id, quote, state }) => ({
      text: `${id} ${wordsForSentence(state)}: "${clipEnd(quote.replace(/\s+/g, ' '), SHORT_CHARS)}"`,
      tone: state === 'fails' ? ('bad' as const) : ('warning' as const),
    })),
    ...flaky.map(({ id }) => ({ text: `${id} has a flaky check: ${FLAKY}`, tone: 'warning' as const })),
    ...questions.entries.flatMap(({ id, text, assumption, answered }) =>
      answered ? [] : [{ text: `Assumed: ${assumption} (${id}: ${text})`, tone: 'warning' as const }],
    ),
    ...changed.map(file => ({
      text: `Protected: \`${file.path.replaceAll('`', "'")}\` ${protectedInWords(file)}`,
      tone: 'warning' as const,
    })),
    ...open.flatMap(({ id, state, quote }) =>
      state === 'not-checkable'
        ? [
            {
              text: `${id} no program can tell: "${clipEnd(quote.replace(/\s+/g, ' '), SHORT_CHARS)}"`,
              tone: 'plain' as const,
            },
          ]
        : [],
    ),
    ...(build?.tasks ?? []).flatMap(task =>
      task.state === 'parked'
        ? [{ text: `Task ${task.id} ${task.name} is ${taskInWords(task)}`, tone: 'warning' as const }]
        : [],
    ),
  ].slice(0, MOST_LOOKED_AT)
}

/** What is left beside that: assumptions and parked tasks are not told again. */
export function leftBeside(data: ReportData): ReturnType<typeof whatIsLeft> {
  const { contract, questions, build } = data
  if (contract === undefined) return whatIsLeft(data)
  const untold = { questions: { ...questions, entries: [], count: 0 }, build: build && { ...build, tasks: [] } }
  return whatIsLeft({ ...data, ...untold })
}

const FLAKY = wordsForFlaky({ exitCode: null })
const MOST_LOOKED_AT = 30
const SHORT_CHARS = 120

/** What of the goal is in no sentence, a line each. */
export function uncoveredInWords({ uncovered }: ReportContract): string[] {
  return uncovered.slice(0, 5).map(piece => `In no sentence: ${piece.replace(/\s+/g, ' ')}`)
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
