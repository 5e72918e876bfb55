import { clipEnd, truncate } from '../../base/text.ts'
import type { EventOf } from '../events/events.ts'
import { hasPassed } from '../events/outcome.ts'
import type { Parsed } from '../shapes/memory.ts'
import type { AskedAnswer, JsonSchema } from './answer.ts'

/** With what the contract of a session is made and proved. */
export type ProveTerms = NonNullable<EventOf<'session-created'>['prove']>
/** A sentence of what was asked for, in the words of the person, with the checks that show whether it holds. */
export type Sentence = EventOf<'contract-drafted'>['sentences'][number]
/** A line that shows whether a sentence holds, with files of its own. */
export type Check = Sentence['checks'][number]
/** A wrong version of the work that checks have to catch. */
export type ControlVersion = EventOf<'controls-written'>['versions'][number]

/** How a check came out the last time that it ran. `isFlaky`: it was so then, or at a time before. */
export type CheckRun = Omit<EventOf<'check-ended'>, 'type'> & { isFlaky: boolean }

/** A version of the contract that does not count yet. */
export interface Draft {
  version: number
  by: EventOf<'contract-drafted'>['by']
  /** The only sentence whose checks are new; null: all are. */
  sentence: string | null
  sentences: readonly Sentence[]
  uncovered: readonly string[]
  runs: readonly CheckRun[]
}

/** A wrong version, and what came of it. */
export interface Control extends ControlVersion {
  sentence: string
  /** From 1 in its sentence. */
  control: number
  tree: string
  /** The version of the contract whose checks were tried on it; null: none were. */
  version: number | null
  result: EventOf<'control-tried'>['result'] | null
  /** The check that caught it. */
  check: number | null
  diff: string
  problem: string | null
}

/** Who has to do with what was asked for: who writes down what it is, who does it, and who does it wrong. */
export type Role = 'author' | 'control' | 'worker'
/** On what a role works, as asked for. `engine` null: that of the rounds; `provider`: what the engine is configured with; `model`: its own choice. */
export interface Who {
  engine: string | null
  provider: string | null
  model: string | null
}

/** The contract of a session; part of the fold of its journal. */
export interface ContractState {
  terms: ProveTerms
  /** Who had the last turn, or round, of each role. */
  who: Readonly<Record<Role, Who | null>>
  /** How many drafts there were. */
  versions: number
  /** The one that is being made; null: there is none. */
  draft: Draft | null
  /** How often the author was sent back for what its checks did before the work. */
  returns: number
  /** Turns of the author in a row whose answer could not be used, and why the last could not; null: it could. */
  refusals: number
  problem: string | null
  /** What the person wants changed; null: nothing. */
  change: string | null
  /** Changes of the plan that the person asked for since there is a contract: their words may be quoted as the goal is. */
  replans: readonly string[]
  /** What of them the version that counts does not know, and whether the person keeps it nevertheless; null: it knows all. */
  behind: { text: string; isKept: boolean } | null
  /** The one that counts; null: none yet. `before`: how its checks came out before the work. */
  frozen: (Omit<Draft, 'runs' | 'sentence'> & { before: readonly CheckRun[]; heldOut: readonly string[] }) | null
  acceptedBy: EventOf<'contract-frozen'>['by'] | null
  /** Sentences that the person has taken out of it. */
  refused: readonly Pick<Sentence, 'quote' | 'kind'>[]
  /** Why the session goes on without a contract; null: it does not. */
  left: string | null
  /** How the checks that count came out last. */
  runs: readonly CheckRun[]
  /** Sentences that have held at some time. */
  held: readonly string[]
  controls: readonly Control[]
  /** Sentences of which wrong versions were asked for, with how often in a row that gave none that counts. */
  asked: readonly { sentence: string; refusals: number }[]
  /** How many wrong versions there were in all. */
  made: number
  /** Sentences whose author has had its second chance. */
  seconds: readonly string[]
}

/** A contract of which nothing is known but its terms. */
export function newContract(terms: ProveTerms): ContractState {
  return {
    terms,
    who: { author: null, control: null, worker: null },
    versions: 0,
    draft: null,
    returns: 0,
    refusals: 0,
    problem: null,
    change: null,
    replans: [],
    behind: null,
    frozen: null,
    acceptedBy: null,
    refused: [],
    left: null,
    runs: [],
    held: [],
    controls: [],
    asked: [],
    made: 0,
    seconds: [],
  }
}

/** The most of everything in a contract. */
const MOST = {
  sentences: 40,
  checks: 3,
  files: 8,
  run: 2_000,
  seconds: 600,
  text: 64 * 1024,
  reason: 500,
  path: 200,
  uncovered: 20,
  piece: 300,
  versions: 2,
  edits: 10,
}
/** Wrong versions in a whole session. */
export const MOST_CONTROLS = 20
/** How often the author is sent back, and how often in a row an answer may be unusable. */
const MOST_RETURNS = 2
const MOST_REFUSALS = 3
/** A check that took longer does not run after each round, ms. */
const QUICK_MS = 10_000

const TEXT = { type: 'string' } as const
const TEXT_OR_NULL = { type: ['string', 'null'] } as const

function strict(properties: Readonly<Record<string, object>>): JsonSchema {
  return { type: 'object', properties, required: Object.keys(properties), additionalProperties: false }
}

const CHECK_SCHEMA = strict({
  run: TEXT,
  seconds: { type: 'integer' },
  needs: TEXT_OR_NULL,
  files: { type: 'array', items: strict({ path: TEXT, text: TEXT }) },
})

/** The answer that the author of a contract is asked for. */
export const CONTRACT: AskedAnswer = {
  name: 'contract',
  schema: strict({
    sentences: {
      type: 'array',
      items: strict({
        quote: TEXT,
        kind: { type: 'string', enum: ['must', 'must-not', 'keep', 'not-checkable', 'context'] },
        reason: TEXT_OR_NULL,
        checks: { type: 'array', items: CHECK_SCHEMA },
      }),
    },
  }),
}

/** The answer that the author is asked for once a wrong version was not caught. */
export const MORE_CHECKS: AskedAnswer = {
  name: 'check',
  schema: strict({ checks: { type: 'array', items: CHECK_SCHEMA } }),
}

/** The answer of who writes wrong versions. */
export const CONTROLS: AskedAnswer = {
  name: 'controls',
  schema: strict({
    versions: {
      type: 'array',
      items: strict({
        summary: TEXT,
        edits: { type: 'array', items: strict({ path: TEXT, find: TEXT_OR_NULL, text: TEXT }) },
      }),
    },
  }),
}

/** The words that a contract quotes: the goal, and what the person has changed of it since there is a contract. Pure. */
export function quotable({ goal, contract }: { goal: string; contract: ContractState | null }): string {
  return [goal, ...(contract?.replans ?? [])].join('\n\n')
}

/** What a contract says, without how far it is. */
export type ContractText = Pick<Draft, 'sentences' | 'uncovered'>

/**
 * Reads what an author answered, a value that fits the schema of `CONTRACT`: each quote has to stand in the goal, and what asks
 * for something needs a check. A problem names each wrong place. Pure.
 */
export function readContract(value: unknown, goal: string): Parsed<ContractText> {
  const { sentences } = value as { sentences: readonly Omit<Sentence, 'id'>[] }
  if (sentences.length > MOST.sentences)
    return no([`There are ${sentences.length} sentences; group them, so that there are at most ${MOST.sentences}.`])
  if (sentences.length === 0) return no(['There is no sentence.'])
  const words = collapsed(goal)
  const problems = sentences.flatMap((each, at) => problemsOf(each, words).map(problem => `S${at + 1}: ${problem}`))
  if (problems.length > 0) return no(problems)
  const read = sentences.map(({ quote, kind, reason, checks }, at): Sentence => {
    const hasChecks = asksFor(kind)
    return {
      id: `S${at + 1}`,
      quote,
      kind,
      reason: reason === null || reason.trim() === '' ? null : truncate(reason.trim(), MOST.reason),
      checks: hasChecks ? checks.map(boundedCheck) : [],
    }
  })
  return { ok: true, value: { sentences: read, uncovered: uncoveredBy(read, words) } }
}

/** Reads the checks that an author added for one sentence. Pure. */
export function readMoreChecks(value: unknown): Parsed<readonly Check[]> {
  const { checks } = value as { checks: readonly Check[] }
  const problems = checks.length === 0 ? ['There is no check.'] : checks.slice(0, 1).flatMap(checkProblems)
  return problems.length > 0 ? no(problems) : { ok: true, value: checks.slice(0, 1).map(boundedCheck) }
}

/** Reads wrong versions; those without an edit are none. Pure. */
export function readControls(value: unknown, most: number): Parsed<readonly ControlVersion[]> {
  const { versions } = value as { versions: readonly ControlVersion[] }
  const usable = versions.filter(({ edits }) => edits.length > 0 && edits.length <= MOST.edits)
  const wrong = usable.flatMap(({ edits }) => edits).find(({ path }) => !isInside(path))
  if (wrong !== undefined) return no([`"${truncate(wrong.path, MOST.path)}" is no path inside the project.`])
  if (usable.length === 0) return no(['There is no version that changes anything.'])
  const bounded = usable.slice(0, Math.min(most, MOST.versions)).map(({ summary, edits }) => ({
    summary: truncate(summary.trim(), MOST.reason),
    edits: edits.map(edit => ({ ...edit, text: edit.text.slice(0, MOST.text) })),
  }))
  return { ok: true, value: bounded }
}

function no(problems: readonly string[]): { ok: false; problem: string } {
  return { ok: false, problem: problems.slice(0, 20).join('\n') }
}

/** Whether a sentence of this kind asks for something that a check can tell. */
function asksFor(kind: Sentence['kind']): boolean {
  return kind === 'must' || kind === 'must-not' || kind === 'keep'
}

function problemsOf({ quote, kind, reason, checks }: Omit<Sentence, 'id'>, goal: string): string[] {
  const words = collapsed(quote)
  const found = words !== '' && goal.includes(words)
  const isWithoutReason = kind === 'not-checkable' && (reason === null || reason.trim() === '')
  return [
    ...(found ? [] : [`the quote does not stand so in the goal: "${truncate(words, 200)}"`]),
    ...(isWithoutReason ? ['it says not why no check can tell'] : []),
    ...(asksFor(kind) && checks.length === 0 ? [`it is of the kind "${kind}", and has no check`] : []),
    ...(checks.length > MOST.checks ? [`it has more than ${MOST.checks} checks`] : []),
    ...(asksFor(kind) ? checks.flatMap(checkProblems) : []),
  ]
}

function checkProblems({ run, seconds, files }: Check): string[] {
  const paths = files.map(({ path }) => path)
  const wrong = paths.find(path => !isInside(path))
  return [
    ...(run.trim() === '' || run.length > MOST.run ? [`a line to run has 1 to ${MOST.run} characters`] : []),
    ...(seconds >= 1 && seconds <= MOST.seconds ? [] : [`a check takes 1 to ${MOST.seconds} seconds`]),
    ...(files.length > MOST.files ? [`a check has at most ${MOST.files} files`] : []),
    ...(files.some(file => file.text.length > MOST.text) ? [`a file has at most ${MOST.text} characters`] : []),
    ...(wrong === undefined ? [] : [`"${truncate(wrong, MOST.path)}" is no path inside the folder of the check`]),
    ...(new Set(paths).size < paths.length ? ['two files of a check have the same path'] : []),
  ]
}

/** A relative path with `/`, without `..`, that is no part of codemachine's or git's own. */
function isInside(path: string): boolean {
  const parts = path.split('/')
  if (path.length > MOST.path || /[\\:\p{Cc}]/u.test(path)) return false
  const first = parts[0]?.toLowerCase()
  return first !== '.git' && first !== '.codemachine' && parts.every(part => !['', '.', '..'].includes(part))
}

function boundedCheck({ run, seconds, needs, files }: Check): Check {
  return {
    run: run.trim(),
    seconds,
    needs: needs === null || needs.trim() === '' ? null : truncate(needs.trim(), MOST.reason),
    files,
  }
}

function collapsed(text: string): string {
  return text.normalize('NFC').replace(/\s+/g, ' ').trim()
}

/** The pieces of the goal that stand in no quote and have words. */
function uncoveredBy(sentences: readonly Sentence[], goal: string): string[] {
  const covered = new Uint8Array(goal.length)
  for (const { quote } of sentences) {
    const words = collapsed(quote)
    for (let at = goal.indexOf(words); at !== -1; at = goal.indexOf(words, at + words.length))
      covered.fill(1, at, at + words.length)
  }
  const pieces: string[] = []
  for (let at = 0; at < goal.length; ) {
    const isCovered = covered[at]
    const next = covered.indexOf(isCovered === 1 ? 0 : 1, at)
    const end = next === -1 ? goal.length : next
    const piece = goal.slice(at, end).trim()
    if (isCovered === 0 && (piece.match(/[\p{L}\p{N}]/gu)?.length ?? 0) >= 3) pieces.push(clipEnd(piece, MOST.piece))
    at = end
  }
  return pieces.slice(0, MOST.uncovered)
}

/** The folder of the files of a check, relative to the copy in which it runs: `.codemachine/checks/S1-1`. Pure. */
export function folderOfCheck(sentence: string, check: number): string {
  return `.codemachine/checks/${sentence}-${check}`
}

/** Whether a check that failed says nothing of the work: its program is not there, or it ran no test. Pure. */
export function couldNotRun({ exitCode }: Pick<CheckRun, 'exitCode'>, tests: number | null): boolean {
  return exitCode === 126 || exitCode === 127 || tests === 0
}

/**
 * The paths below `.codemachine` that a check printed, relative to the directory in which it ran. The work has none there: one
 * that is missing is the check's own mistake. Pure.
 */
export function ownPathsIn(output: string, directory: string): readonly string[] {
  const text = output.replaceAll(`${directory}/`, ' ')
  return [...new Set(text.match(/(?<![\w/.-])\.codemachine\/[\w./@-]*\w/g))]
}

/** The sentences that can be proved. */
export function checkable(sentences: readonly Sentence[]): readonly Sentence[] {
  return sentences.filter(({ kind, checks }) => asksFor(kind) && checks.length > 0)
}

/** How a check came out last; null: it has not run. Pure. */
export function runOf(runs: readonly CheckRun[], sentence: string, check: number): CheckRun | null {
  return runs.find(each => each.sentence === sentence && each.check === check) ?? null
}

/** What is wrong with the checks of a sentence by how they came out before the work, a line for the author; null: nothing. */
export interface Flaw {
  sentence: string
  /** Whether they cannot be believed: they fail for what has nothing to do with the work. */
  isUnusable: boolean
  problem: string
}

/** What is wrong with the checks of a draft before any work was done. Pure. */
export function flawsOf({ sentences }: ContractText, runs: readonly CheckRun[]): readonly Flaw[] {
  return checkable(sentences).flatMap(({ id, kind, checks }): Flaw[] => {
    const came = checks.flatMap((_, at) => runOf(runs, id, at + 1) ?? [])
    const broken = came.find(({ cannotRun, status }) => cannotRun || status === 'timed-out')
    if (broken !== undefined) {
      const why = broken.status === 'timed-out' ? 'does not come to its end in time' : 'cannot itself run'
      return [{ sentence: id, isUnusable: true, problem: `check ${broken.check} ${why}.${printed(broken)}` }]
    }
    const failed = came.find(({ status }) => !hasPassed(status))
    if (kind === 'keep' && failed !== undefined)
      return [
        {
          sentence: id,
          isUnusable: true,
          problem: `it is to be true before the work, and check ${failed.check} fails.${printed(failed)}`,
        },
      ]
    // A check that was added later has not run then.
    const passesAlready = kind === 'must' && came.length > 0 && failed === undefined
    return passesAlready
      ? [{ sentence: id, isUnusable: false, problem: 'its checks pass before any work was done.' }]
      : []
  })
}

function printed({ output, exitCode, problem }: CheckRun): string {
  const code = exitCode === null ? '' : ` (exit code ${exitCode})`
  const why = problem === null ? '' : ` ${problem}`
  const text = clipEnd(output.trim(), 1_500)
  return `${why}${text === '' ? '' : ` It printed${code}:\n    ${text.replaceAll('\n', '\n    ')}`}`
}

/** What comes next before the rounds go on; null: they do. */
export type ContractStep =
  | { kind: 'author' }
  | { kind: 'check'; sentence: Sentence; check: number; when: 'before' | 'after-round' }
  | { kind: 'decide' }
  | { kind: 'decide-behind' }
  | { kind: 'freeze' }

/**
 * What is to be done with the contract before the next round. Pure.
 * @param tree fingerprint of the work tree now
 * @param hasWorked whether a round has ended
 */
export function nextContractStep(contract: ContractState, tree: string, hasWorked: boolean): ContractStep | null {
  const { left, draft, frozen, change, behind, returns, runs } = contract
  if (left !== null) return null
  if (frozen !== null && draft === null && change === null) {
    if (behind?.isKept === false) return { kind: 'decide-behind' }
    const due = hasWorked ? dueChecks(frozen.sentences, runs, tree).find(({ run }) => isQuick(run)) : undefined
    return due === undefined ? null : { kind: 'check', sentence: due.sentence, check: due.check, when: 'after-round' }
  }
  if (draft === null || change !== null) return { kind: 'author' }
  // A later version is not run before the work, for that is over.
  const due = hasWorked ? undefined : dueChecks(draft.sentences, draft.runs, null)[0]
  if (due !== undefined) return { kind: 'check', sentence: due.sentence, check: due.check, when: 'before' }
  if (draft.by === 'person') return { kind: 'freeze' }
  const isSentBack = returns < MOST_RETURNS && flawsOf(draft, draft.runs).length > 0
  return { kind: isSentBack ? 'author' : 'decide' }
}

/** Whether an author that gives nothing usable is not asked any more. */
export function isGivenUp({ refusals }: ContractState): boolean {
  return refusals >= MOST_REFUSALS
}

function isQuick(run: CheckRun | null): boolean {
  return run !== null && run.status !== 'timed-out' && run.durationMs < QUICK_MS
}

/** The failure of a check on this tree, the last time that it ran; null: it did not fail there. Pure. */
export function failureOnTree(runs: readonly CheckRun[], of: CheckOfSentence, tree: string): CheckRun | null {
  const run = runOf(runs, of.sentence, of.number)
  return run?.status === 'failed' && run.tree === tree ? run : null
}

/** The checks that have not run on this tree; `tree` null: at all. */
function dueChecks(
  sentences: readonly Sentence[],
  runs: readonly CheckRun[],
  tree: string | null,
): { sentence: Sentence; check: number; run: CheckRun | null }[] {
  return checkable(sentences)
    .flatMap(sentence => sentence.checks.map((_, at) => ({ sentence, check: at + 1 })))
    .map(each => ({ ...each, run: runOf(runs, each.sentence.id, each.check) }))
    .filter(({ run }) => run === null || (tree !== null && run.tree !== tree))
}

/** What comes next in the proof of a claim, by the contract. `refuse`: ids of the sentences that do not hold. */
export type ContractProof =
  | { kind: 'check'; sentence: Sentence; check: number; when: 'claim' | 'second' }
  | { kind: 'refuse'; failed: readonly string[] }
  | { kind: 'controls'; sentence: Sentence }
  | { kind: 'try'; control: Control; check: Sentence }
  | { kind: 'second'; sentence: Sentence; control: Control }
  | { kind: 'settle'; draft: Draft; isBetter: boolean }

/**
 * The next check of what is claimed, or the refusal; null: all sentences hold. A check that failed before this claim may have
 * failed by chance: it runs again. Pure.
 * @param round the one that claims
 */
export function nextClaimCheck(contract: ContractState | null, tree: string, round: number): ContractProof | null {
  const { frozen = null, runs = [] } = contract ?? {}
  if (contract === null || frozen === null) return null
  const isOfClaim = (run: CheckRun) => hasPassed(run.status) || (run.when === 'claim' && run.round === round)
  const [due] = dueChecks(frozen.sentences, runs.filter(isOfClaim), tree)
  if (due !== undefined) return { kind: 'check', sentence: due.sentence, check: due.check, when: 'claim' }
  const failed = sentencesOf(contract).filter(({ state }) => state === 'fails')
  return failed.length === 0 ? null : { kind: 'refuse', failed: failed.map(({ id }) => id) }
}

/** What comes next with wrong versions of what is claimed; null: nothing. Pure. */
export function nextControl(contract: ContractState | null, tree: string): ContractProof | null {
  const { frozen = null, controls = [], terms, asked = [], seconds = [], draft = null } = contract ?? {}
  if (contract === null || frozen === null || terms === undefined) return null
  if (draft?.sentence != null) return nextOfSecond(draft, controls, tree)
  // What missed the tree before the work is weak whatever it catches.
  const isProvable = ({ state, flaw }: SentenceNow) => HOLDS.has(state) && !(state === 'weak' && flaw !== null)
  const all = sentencesOf(contract).filter(isProvable)
  const sentences = all.flatMap(({ id }) => frozen.sentences.find(each => each.id === id) ?? [])
  const of = (id: string) => controls.filter(each => each.sentence === id && each.tree === tree)
  for (const sentence of sentences) {
    const untried = of(sentence.id).find(({ result }) => result === null)
    if (untried !== undefined) return { kind: 'try', control: untried, check: sentence }
    const missed = of(sentence.id).find(({ result }) => result === 'not-caught')
    if (missed !== undefined && !seconds.includes(sentence.id)) return { kind: 'second', sentence, control: missed }
  }
  if (terms.controls === 0 || contract.made >= MOST_CONTROLS) return null
  const isOver = (id: string) => asked.some(({ sentence, refusals }) => sentence === id && refusals >= MOST_ASKED)
  const unasked = sentences.find(({ id }) => !of(id).some(controlCounts) && !isOver(id))
  return unasked === undefined ? null : { kind: 'controls', sentence: unasked }
}

/** The states of a sentence that holds. */
export const HOLDS: ReadonlySet<SentenceState> = new Set(['holds', 'weak', 'proved'])
/** So often in a row wrong versions of a sentence are asked for of which none counts. */
const MOST_ASKED = 2

/** Whether a wrong version that was tried says something of the checks of its sentence. Pure. */
export function controlCounts({ result }: Pick<Control, 'result'>): boolean {
  return result === 'caught' || result === 'not-caught'
}

/** A check, and which one of its sentence it is. */
export interface CheckOfSentence {
  sentence: string
  number: number
  check: Check
}

/**
 * The checks of other sentences, one of which has to pass on a wrong version for this one: else it breaks all, as a program does
 * that cannot start. Those that failed before the work depend on it; where there are none, all that pass now. Pure.
 */
export function bystandersOf({ frozen, runs }: ContractState, sentence: string): readonly CheckOfSentence[] {
  const passing = checkable(frozen?.sentences ?? [])
    .filter(({ id }) => id !== sentence)
    .flatMap(({ id, checks }) => checks.map((check, at) => ({ sentence: id, number: at + 1, check })))
    .filter(({ sentence, number }) => hasPassed(runOf(runs, sentence, number)?.status ?? 'failed'))
  const failedBefore = passing.filter(({ sentence, number }) => {
    const before = runOf(frozen?.before ?? [], sentence, number)
    return before !== null && !hasPassed(before.status)
  })
  return failedBefore.length > 0 ? failedBefore : passing
}

/** A new check has to pass on what is claimed, and to catch what the others did not. */
function nextOfSecond(draft: Draft, controls: readonly Control[], tree: string): ContractProof | null {
  const sentence = draft.sentences.find(({ id }) => id === draft.sentence)
  if (sentence === undefined) return null
  const check = sentence.checks.length
  const run = runOf(draft.runs, sentence.id, check)
  if (run === null) return { kind: 'check', sentence, check, when: 'second' }
  if (!hasPassed(run.status)) return { kind: 'settle', draft, isBetter: false }
  const missed = controls.filter(
    each => each.sentence === sentence.id && each.tree === tree && each.result === 'not-caught',
  )
  const untried = missed.find(({ version }) => version !== draft.version)
  if (untried !== undefined) return { kind: 'try', control: untried, check: sentence }
  return { kind: 'settle', draft, isBetter: missed.length === 0 }
}

/**
 * How a sentence stands. `proved`: it holds, and its checks catch wrong versions; `weak`: one was not caught, or they passed
 * before the work, which is the first wrong version of a *must*; `holds`: without any wrong version; `unusable`: its checks
 * cannot be believed; `open`: not all of its checks have run; `refused`: the person has taken it out.
 */
export type SentenceState =
  | 'proved'
  | 'weak'
  | 'holds'
  | 'fails'
  | 'open'
  | 'unusable'
  | 'not-checkable'
  | 'context'
  | 'refused'

/** A sentence of the contract that counts, and how it stands. */
export interface SentenceNow extends Sentence {
  state: SentenceState
  isHeldOut: boolean
  /** Wrong versions that count, and how many of them were caught. */
  made: number
  caught: number
  /** What is wrong with its checks by how they came out before the work; null: nothing. */
  flaw: string | null
}

/** The sentences of the contract that counts, in their order, and behind them those that the person has taken out; none: there is none. Pure. */
export function sentencesOf(contract: ContractState | null): readonly SentenceNow[] {
  const { frozen = null, controls = [], runs = [], refused = [] } = contract ?? {}
  if (frozen === null) return []
  const flaws = flawsOf(frozen, frozen.before)
  const out = refused.map((each, at) => ({ ...each, id: `R${at + 1}`, ...TAKEN_OUT }))
  const counting = frozen.sentences.map(sentence => {
    const { id } = sentence
    const flaw = flaws.find(each => each.sentence === id) ?? null
    const counted = controls.filter(each => each.sentence === id && controlCounts(each))
    const caught = counted.filter(({ result }) => result === 'caught').length
    const state = stateOf(sentence, runs, { flaw, made: counted.length, caught })
    const isHeldOut = frozen.heldOut.includes(id)
    return { ...sentence, state, isHeldOut, made: counted.length, caught, flaw: flaw?.problem ?? null }
  })
  return [...counting, ...out]
}

const TAKEN_OUT = {
  reason: null,
  checks: [],
  state: 'refused' as const,
  isHeldOut: false,
  made: 0,
  caught: 0,
  flaw: null,
}

/**
 * What is taken out of a contract with a new version: the sentences with checks of which it quotes nothing any more, if a person
 * wrote it, and those that were taken out before. Pure.
 */
export function refusedSince(
  { draft, frozen, refused }: ContractState,
  { by, sentences }: Pick<Draft, 'by' | 'sentences'>,
): ContractState['refused'] {
  const before = by === 'person' ? checkable((draft ?? frozen)?.sentences ?? []) : []
  const all = [...refused, ...before.map(({ quote, kind }) => ({ quote, kind }))]
  const now = sentences.map(({ quote }) => collapsed(quote))
  return all.filter(({ quote }) => {
    const words = collapsed(quote)
    return !now.some(each => each.includes(words) || words.includes(each))
  })
}

function stateOf(
  { id, kind, checks }: Sentence,
  runs: readonly CheckRun[],
  { flaw, made, caught }: { flaw: Flaw | null; made: number; caught: number },
): SentenceState {
  if (kind === 'context' || kind === 'not-checkable') return kind
  const came = checks.map((_, at) => runOf(runs, id, at + 1))
  if (came.some(run => run?.status === 'not-started')) return 'unusable'
  if (came.some(run => run !== null && !hasPassed(run.status))) return flaw?.isUnusable === true ? 'unusable' : 'fails'
  if (came.some(run => run === null)) return 'open'
  if (flaw?.isUnusable === false) return 'weak'
  if (made === 0) return 'holds'
  return caught === made ? 'proved' : 'weak'
}

/** How many of the sentences that a check can tell hold, and how many are proved. */
export interface ContractCount {
  checkable: number
  holding: number
  proved: number
}

/** Of the contract that counts; null: there is none. Pure. */
export function countContract(contract: ContractState | null): ContractCount | null {
  if (contract === null || contract.frozen === null) return null
  const all = sentencesOf(contract).filter(({ kind, state }) => asksFor(kind) && state !== 'refused')
  const count = (...states: SentenceState[]) => all.filter(({ state }) => states.includes(state)).length
  return { checkable: all.length, holding: count(...HOLDS), proved: count('proved') }
}

/** How far what is done is proved. */
export type Proof = 'proved' | 'gates' | 'none'

/** How far an accepted claim is proved; `verified`: whether required gates passed. Pure. */
export function proofOf(contract: ContractState | null, verified: boolean): Proof {
  const count = countContract(contract)
  if (count !== null && count.checkable > 0 && count.proved === count.checkable) return 'proved'
  return verified ? 'gates' : 'none'
}

/** Why a claim was refused by the contract, for the next round. Of a sentence that is held out it says no more than that. Pure. */
export function wordsForFailedSentences(contract: ContractState, failed: readonly string[]): string {
  const sentences = sentencesOf(contract).filter(({ id }) => failed.includes(id))
  const lines = sentences.map(sentence => `- ${wordsForFailed(sentence, contract.runs)}`)
  // A person reads the first line alone.
  const which = sentences.map(({ id, quote }) => `${id} "${truncate(collapsed(quote), 100)}"`).join(', ')
  return `not all that was asked for holds: ${which}\n${lines.join('\n')}`
}

/** What a round is told of a sentence that does not hold. */
export function wordsForFailed({ id, quote, checks, isHeldOut }: SentenceNow, runs: readonly CheckRun[]): string {
  const words = `"${truncate(quote, 300)}"`
  if (isHeldOut) return `${id} does not hold yet: ${words}`
  const failed = checks.flatMap((check, at) => {
    const run = runOf(runs, id, at + 1)
    return run === null || hasPassed(run.status)
      ? []
      : [
          `\n  \`${truncate(lineOf(id, at + 1, check.run), 300)}\` ${run.status === 'timed-out' ? 'takes too long' : 'fails'}.${printed(run)}`,
        ]
  })
  return `${id} does not hold yet: ${words}${failed.join('')}`
}

/** The most of a contract in the input of a round, characters. */
const MOST_TOLD = 6_000

/** What a round is told of the contract; empty: there is none. `file`: where all of it stands. Pure. */
export function contractInInput(contract: ContractState | null, file: string): string {
  const shown = sentencesOf(contract).filter(({ state }) => state !== 'context' && state !== 'refused')
  if (shown.length === 0) return ''
  const lines = shown.map(({ id, kind, quote, state }) => {
    const how = TOLD_STATES[state]
    return `- ${id} (${kind === 'not-checkable' ? 'not checked by a program' : kind.replace('-', ' ')}${how}): "${truncate(quote, 300)}"`
  })
  const hidden = shown.filter(({ isHeldOut }) => isHeldOut).map(({ id }) => id)
  return [
    `What was asked for is proved sentence by sentence before done is believed, by checks that somebody else wrote before the work. They run on a copy of the files, and each is tried on wrong versions, too. Do the work as it was asked for; write nothing that works only for a check.`,
    clipEnd(lines.join('\n'), MOST_TOLD),
    `The checks stand in \`${file}\`, to read: nobody looks at what is changed there.${hidden.length === 0 ? '' : ` Those of ${hidden.join(', ')} are not shown.`}`,
  ].join('\n\n')
}

const TOLD_STATES: Readonly<Record<SentenceState, string>> = {
  proved: ', holds',
  weak: ', holds',
  holds: ', holds',
  fails: ', does not hold yet',
  open: '',
  unusable: ', its check is broken',
  'not-checkable': '',
  context: '',
  refused: '',
}

/** The file with the sentences and the checks that the rounds may see. Pure. */
export function contractFile(contract: ContractState): string {
  const counting = sentencesOf(contract).filter(({ state }) => state !== 'refused')
  const parts = counting.map(({ id, kind, quote, reason, checks, isHeldOut }) => {
    const head = `## ${id} (${kind.replaceAll('-', ' ')})\n\n${quote
      .split('\n')
      .map(line => `> ${line}`)
      .join('\n')}`
    const why = reason === null ? '' : `\n\n${reason}`
    if (isHeldOut) return `${head}${why}\n\nIts checks are not shown.`
    return `${head}${why}${checks.map((check, at) => `\n\n${checkInMarkdown(id, at + 1, check)}`).join('')}`
  })
  return `# What was asked for, and how it is checked\n\n${parts.join('\n\n')}\n`
}

function checkInMarkdown(sentence: string, check: number, { run, seconds, files }: Check): string {
  const folder = folderOfCheck(sentence, check)
  return [
    `Check ${check}, at most ${seconds} s:\n\n${indented(lineOf(sentence, check, run))}`,
    ...files.map(({ path, text }) => `\`${folder}/${path}\`:\n\n${indented(text)}`),
  ].join('\n\n')
}

/** The line of a check with the folder of its files filled in. Pure. */
export function lineOf(sentence: string, check: number, run: string): string {
  return run.replaceAll('{files}', folderOfCheck(sentence, check))
}

function indented(text: string): string {
  return text.trimEnd().replace(/^/gm, '    ')
}
