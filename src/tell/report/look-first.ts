import { truncate } from '../../base/text.ts'
import type { SentenceNow } from '../../core/rules/contract.ts'
import { wordsForSentence } from '../words/contract.ts'
import type { Tone } from '../words/names.ts'
import { wordsForFlaky } from '../words/proof.ts'
import type { ReportContract, ReportData } from './report-data.ts'
import { capital, headlineOf, protectedInWords, taskInWords, whatIsLeft } from './words.ts'
import { uncommittedInWords } from './words-of-changes.ts'

/** A thing that a person should look at. Its text came from outside in part, and is not made safe. */
interface LookedAt {
  text: string
  tone: Tone
}

const MOST = 12
const MOST_LEFT = 5
const MOST_OF_A_KIND = 3
const QUOTE_CHARS = 120
/** The most of one thing; a longer one is cut. */
export const FIRST_CHARS = 200

/**
 * What a person should look at before all else: what stopped it, sentences that are not proved, assumptions, protected files
 * that changed, tasks given up, files in no commit. It fits a chat message; the rest stands below in the report.
 */
export function lookAtFirst(data: ReportData): LookedAt[] {
  const { contract, changes, outcome } = data
  const { hint } = headlineOf(data)
  const left = leftBeside(data)
  // What is said of a session that is done is for the next one.
  const isLater = outcome?.kind === 'done' && hint !== null
  const files = uncommittedInWords(changes)
  const all = [
    ...shortened(isLater ? left.slice(1) : left, 'more, below', MOST_LEFT),
    ...(contract === undefined ? [] : unproved(contract)),
    ...assumptions(data),
    ...protectedChanges(data),
    ...parked(data),
    ...(files === null ? [] : [warning(capital(files))]),
    ...(contract === undefined ? [] : notCheckable(contract)),
    ...(isLater ? left.slice(0, 1) : []),
  ]
  return shortened(all, 'more, below', MOST).map(({ text, tone }) => ({ text: truncate(text, FIRST_CHARS), tone }))
}

/** Without assumptions and parked tasks, which are told by themselves. */
function leftBeside(data: ReportData): LookedAt[] {
  const { questions, build } = data
  const untold = { questions: { ...questions, entries: [], count: 0 }, build: build && { ...build, tasks: [] } }
  return whatIsLeft({ ...data, ...untold })
}

/** The worst first. */
const NOT_PROVED: readonly SentenceNow['state'][] = ['fails', 'weak', 'unusable', 'open', 'holds']

/** Each sentence of a contract that is not proved, the worst first. */
export function notProved({ sentences }: ReportContract): LookedAt[] {
  return sentences
    .filter(({ kind, state }) => kind !== 'context' && NOT_PROVED.includes(state))
    .sort((a, b) => NOT_PROVED.indexOf(a.state) - NOT_PROVED.indexOf(b.state))
    .map(({ id, quote, state }) => ({
      text: `${id} ${wordsForSentence(state)}: ${quoted(quote)}`,
      tone: state === 'fails' ? ('bad' as const) : ('warning' as const),
    }))
}

function unproved(contract: ReportContract): LookedAt[] {
  const flaky = contract.sentences.filter(({ checks }) => checks.some(({ isFlaky }) => isFlaky))
  const words = wordsForFlaky({ exitCode: null })
  return [
    ...shortened(notProved(contract), 'sentences that are not proved'),
    ...shortened(
      flaky.map(({ id }) => warning(`${id} has a flaky check: ${words}`)),
      'flaky checks',
    ),
  ]
}

function notCheckable({ sentences }: ReportContract): LookedAt[] {
  const open = sentences
    .filter(({ kind, state }) => kind !== 'context' && state === 'not-checkable')
    .map(({ id, quote }) => ({
      text: `${id} cannot be checked by a program: ${quoted(quote)}`,
      tone: 'plain' as const,
    }))
  return shortened(open, 'sentences that no program can check')
}

function quoted(quote: string): string {
  return `"${truncate(quote.replace(/\s+/g, ' '), QUOTE_CHARS)}"`
}

function assumptions({ questions }: ReportData): LookedAt[] {
  const open = questions.entries.filter(({ answered }) => !answered)
  return shortened(
    open.map(({ id, text, assumption }) => warning(`Assumed: ${assumption} (${id}: ${text})`)),
    'assumptions',
  )
}

function protectedChanges({ proof }: ReportData): LookedAt[] {
  const changed = proof.protectedFiles.filter(({ putBack }) => !putBack)
  return shortened(
    changed.map(file => warning(`Protected: \`${file.path.replaceAll('`', "'")}\` ${protectedInWords(file)}`)),
    'protected files',
  )
}

function parked({ build }: ReportData): LookedAt[] {
  const tasks = (build?.tasks ?? []).filter(({ state }) => state === 'parked')
  return shortened(
    tasks.map(task => warning(`Task ${task.id} ${task.name} is ${taskInWords(task)}`)),
    'parked tasks',
  )
}

function shortened(list: readonly LookedAt[], more: string, most = MOST_OF_A_KIND): LookedAt[] {
  if (list.length <= most) return [...list]
  return [...list.slice(0, most - 1), { text: `and ${list.length - most + 1} ${more}`, tone: 'plain' }]
}

function warning(text: string): LookedAt {
  return { text, tone: 'warning' }
}
