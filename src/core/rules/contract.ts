import { clipEnd, truncate } from '../../base/text.ts'
import type { EventOf } from '../events/events.ts'
import { hasPassed } from '../events/outcome.ts'
import type { Parsed } from '../shapes/memory.ts'
import type { AskedAnswer, JsonSchema } from './answer.ts'

/** Settings to write and prove a session's contract. */
export type ProveTerms = NonNullable<EventOf<'session-created'>['prove']>
/** A sentence of the request, in the person's words, with its checks. */
export type Sentence = EventOf<'contract-drafted'>['sentences'][number]
/** A command that tests a sentence, with its own files. */
export type Check = Sentence['checks'][number]
/** A wrong version of the work that checks must catch. */
export type ControlVersion = EventOf<'controls-written'>['versions'][number]

/** Last result of a check. `isFlaky`: it was flaky then or earlier. */
export type CheckRun = Omit<EventOf<'check-ended'>, 'type'> & { isFlaky: boolean }

/** A contract version that is not in force yet. */
export interface Draft {
  version: number
  by: EventOf<'contract-drafted'>['by']
  /** The only sentence whose checks are new; null: all are. */
  sentence: string | null
  sentences: readonly Sentence[]
  uncovered: readonly string[]
  runs: readonly CheckRun[]
}

/** A wrong version and its result. */
export interface Control extends ControlVersion {
  sentence: string
  /** Number within its sentence, from 1. */
  control: number
  tree: string
  /** Contract version whose checks were tried on it; null: none. */
  version: number | null
  result: EventOf<'control-tried'>['result'] | null
  /** The check that caught it. */
  check: number | null
  diff: string
  problem: string | null
}

/** A part in the contract: `author` writes it, `worker` does the work, `control` writes wrong versions. */
export type Role = 'author' | 'control' | 'worker'
/** The requested model of a role. Null `engine`: the rounds' one; `provider`, `model`: the engine's default. */
export interface Who {
  engine: string | null
  provider: string | null
  model: string | null
}

/** The contract of a session, folded from its journal. */
export interface ContractState {
  terms: ProveTerms
  /** Model of the last turn or round of each role. */
  who: Readonly<Record<Role, Who | null>>
  /** Number of drafts. */
  versions: number
  /** The current draft; null: none. */
  draft: Draft | null
  /** Number of drafts returned because checks gave wrong results before the work. */
  returns: number
  /** Consecutive unusable answers of the author, and the last problem; null: the last one was usable. */
  refusals: number
  problem: string | null
  /** The change that the person wants; null: none. */
  change: string | null
  /** Plan changes that the person asked for since the contract exists; sentences may quote them like the goal. */
  replans: readonly string[]
  /** The part that the version in force does not cover, and whether the person keeps that version; null: it covers all. */
  behind: { text: string; isKept: boolean } | null
  /** The version in force; null: none yet. `before`: results of its checks before the work. */
  frozen: (Omit<Draft, 'runs' | 'sentence'> & { before: readonly CheckRun[]; heldOut: readonly string[] }) | null
  acceptedBy: EventOf<'contract-frozen'>['by'] | null
  /** Sentences that the person removed. */
  refused: readonly Pick<Sentence, 'quote' | 'kind'>[]
  /** Reason to continue without a contract; null: it has one. */
  left: string | null
  /** Last results of the checks in force. */
  runs: readonly CheckRun[]
  /** Fingerprint of the work after its last round or check; null: no round has ended. */
  tree: string | null
  /** Sentences that were true at some time. */
  held: readonly string[]
  controls: readonly Control[]
  /** Sentences whose wrong versions were requested, with the number of consecutive unusable answers. */
  asked: readonly { sentence: string; refusals: number }[]
  /** Total number of wrong versions. */
  made: number
  /** Sentences whose author used its second chance. */
  seconds: readonly string[]
}

/** Returns a contract with terms only. */
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
    tree: null,
    held: [],
    controls: [],
    asked: [],
    made: 0,
    seconds: [],
  }
}

/** Limits of a contract. */
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
/** Limit of wrong versions in a session. */
export const MOST_CONTROLS = 20
/** Limit of returned drafts, and of consecutive unusable answers. */
const MOST_RETURNS = 2
const MOST_REFUSALS = 3
/** Slower checks do not run after each round, ms. */
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

/** Answer of a contract's author. */
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

/** Answer of the author after its checks missed a wrong version. */
export const MORE_CHECKS: AskedAnswer = {
  name: 'check',
  schema: strict({ checks: { type: 'array', items: CHECK_SCHEMA } }),
}

/** Answer of the agent that writes wrong versions. */
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

/** Returns the words that a contract may quote: the goal and later plan changes of the person. Pure. */
export function quotable({ goal, contract }: { goal: string; contract: ContractState | null }): string {
  return [goal, ...(contract?.replans ?? [])].join('\n\n')
}

/** The contract's text without its progress. */
export type ContractText = Pick<Draft, 'sentences' | 'uncovered'>

/**
 * Parses an author's answer, a value that fits `CONTRACT`. Each quote must be in the goal, and each sentence that asks for
 * something needs a check. Problems name each wrong place. Pure.
 */
export function readContract(value: unknown, goal: string): Parsed<ContractText> {
  const { sentences } = value as { sentences: readonly Omit<Sentence, 'id'>[] }
  if (sentences.length > MOST.sentences)
    return no([`There are ${sentences.length} sentences; group them into at most ${MOST.sentences}.`])
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

/** Parses the checks that an author added for one sentence. Pure. */
export function readMoreChecks(value: unknown): Parsed<readonly Check[]> {
  const { checks } = value as { checks: readonly Check[] }
  const problems = checks.length === 0 ? ['There is no check.'] : checks.slice(0, 1).flatMap(checkProblems)
  return problems.length > 0 ? no(problems) : { ok: true, value: checks.slice(0, 1).map(boundedCheck) }
}

/** Parses wrong versions; ignores those without an edit. Pure. */
export function readControls(value: unknown, most: number): Parsed<readonly ControlVersion[]> {
  const { versions } = value as { versions: readonly ControlVersion[] }
  const usable = versions.filter(({ edits }) => edits.length > 0 && edits.length <= MOST.edits)
  const wrong = usable.flatMap(({ edits }) => edits).find(({ path }) => !isInside(path))
  if (wrong !== undefined) return no([`"${truncate(wrong.path, MOST.path)}" is no path inside the project.`])
  if (usable.length === 0) return no(['No version changes anything.'])
  const bounded = usable.slice(0, Math.min(most, MOST.versions)).map(({ summary, edits }) => ({
    summary: truncate(summary.trim(), MOST.reason),
    edits: edits.map(edit => ({ ...edit, text: edit.text.slice(0, MOST.text) })),
  }))
  return { ok: true, value: bounded }
}

function no(problems: readonly string[]): { ok: false; problem: string } {
  return { ok: false, problem: problems.slice(0, 20).join('\n') }
}

/** Returns true if a check can test a sentence of this kind. */
function asksFor(kind: Sentence['kind']): boolean {
  return kind === 'must' || kind === 'must-not' || kind === 'keep'
}

function problemsOf({ quote, kind, reason, checks }: Omit<Sentence, 'id'>, goal: string): string[] {
  const words = collapsed(quote)
  const found = words !== '' && goal.includes(words)
  const isWithoutReason = kind === 'not-checkable' && (reason === null || reason.trim() === '')
  return [
    ...(found ? [] : [`the goal does not contain this quote: "${truncate(words, 200)}"`]),
    ...(isWithoutReason ? ['it gives no reason why no check can test it'] : []),
    ...(asksFor(kind) && checks.length === 0 ? [`it is of the kind "${kind}", but has no check`] : []),
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
    ...(wrong === undefined ? [] : [`"${truncate(wrong, MOST.path)}" is not a path inside the folder of the check`]),
    ...(new Set(paths).size < paths.length ? ['two files of a check have the same path'] : []),
  ]
}

/** Returns true for a relative path with `/`, without `..`, outside of `.codemachine` and `.git`. */
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

/** Returns the pieces of the goal with words that no quote covers. */
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

/** Returns the folder of a check's files, relative to the copy that it runs in: `.codemachine/checks/S1-1`. Pure. */
export function folderOfCheck(sentence: string, check: number): string {
  return `.codemachine/checks/${sentence}-${check}`
}

/** Returns true if a failed check proves nothing: its program is missing, or it ran no test. Pure. */
export function couldNotRun({ exitCode }: Pick<CheckRun, 'exitCode'>, tests: number | null): boolean {
  return exitCode === 126 || exitCode === 127 || tests === 0
}

/**
 * Returns the paths below `.codemachine` that a check printed, relative to its directory. The work has none there, so a
 * missing one is the check's own mistake. Pure.
 */
export function ownPathsIn(output: string, directory: string): readonly string[] {
  const text = output.replaceAll(`${directory}/`, ' ')
  return [...new Set(text.match(/(?<![\w/.-])\.codemachine\/[\w./@-]*\w/g))]
}

/** Returns the sentences that checks can prove. */
export function checkable(sentences: readonly Sentence[]): readonly Sentence[] {
  return sentences.filter(({ kind, checks }) => asksFor(kind) && checks.length > 0)
}

/** Returns the last result of a check; null: it has not run. Pure. */
export function runOf(runs: readonly CheckRun[], sentence: string, check: number): CheckRun | null {
  return runs.find(each => each.sentence === sentence && each.check === check) ?? null
}

/** A problem of a sentence's checks, shown by their results before the work; one line for the author. */
export interface Flaw {
  sentence: string
  /** True: the checks fail for reasons that have nothing to do with the work. */
  isUnusable: boolean
  problem: string
}

/** Returns problems of a draft's checks, from their results before any work. Pure. */
export function flawsOf({ sentences }: ContractText, runs: readonly CheckRun[]): readonly Flaw[] {
  return checkable(sentences).flatMap(({ id, kind, checks }): Flaw[] => {
    const came = checks.flatMap((_, at) => runOf(runs, id, at + 1) ?? [])
    const broken = came.find(({ cannotRun, status }) => cannotRun || status === 'timed-out')
    if (broken !== undefined) {
      const why = broken.status === 'timed-out' ? 'does not finish in time' : 'cannot run'
      return [{ sentence: id, isUnusable: true, problem: `check ${broken.check} ${why}.${printed(broken)}` }]
    }
    const failed = came.find(({ status }) => !hasPassed(status))
    if (kind === 'keep' && failed !== undefined)
      return [
        {
          sentence: id,
          isUnusable: true,
          problem: `it must be true before the work, but check ${failed.check} fails.${printed(failed)}`,
        },
      ]
    // A check that was added later has no result from before the work.
    const passesAlready = kind === 'must' && came.length > 0 && failed === undefined
    return passesAlready
      ? [{ sentence: id, isUnusable: false, problem: 'its checks already pass before any work.' }]
      : []
  })
}

function printed({ output, exitCode, problem }: CheckRun): string {
  const code = exitCode === null ? '' : ` (exit code ${exitCode})`
  const why = problem === null ? '' : ` ${problem}`
  const text = clipEnd(output.trim(), 1_500)
  return `${why}${text === '' ? '' : ` It printed${code}:\n    ${text.replaceAll('\n', '\n    ')}`}`
}

/** The next contract step before rounds continue; null: continue. */
export type ContractStep =
  | { kind: 'author' }
  | { kind: 'check'; sentence: Sentence; check: number; when: 'before' | 'after-round' }
  | { kind: 'decide' }
  | { kind: 'decide-behind' }
  | { kind: 'freeze' }

/**
 * Returns the contract step before the next round; null: none. Pure.
 * @param tree fingerprint of the work tree now
 * @param hasWorked true if a round has ended
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
  // A later version cannot run before the work any more.
  const due = hasWorked ? undefined : dueChecks(draft.sentences, draft.runs, null)[0]
  if (due !== undefined) return { kind: 'check', sentence: due.sentence, check: due.check, when: 'before' }
  if (draft.by === 'person') return { kind: 'freeze' }
  const isSentBack = returns < MOST_RETURNS && flawsOf(draft, draft.runs).length > 0
  return { kind: isSentBack ? 'author' : 'decide' }
}

/** Returns true if the author gave too many unusable answers. */
export function isGivenUp({ refusals }: ContractState): boolean {
  return refusals >= MOST_REFUSALS
}

function isQuick(run: CheckRun | null): boolean {
  return run !== null && run.status !== 'timed-out' && run.durationMs < QUICK_MS
}

/** Returns the last run of a check if it failed on this tree; null: it did not. Pure. */
export function failureOnTree(runs: readonly CheckRun[], of: CheckOfSentence, tree: string): CheckRun | null {
  const run = runOf(runs, of.sentence, of.number)
  return run?.status === 'failed' && run.tree === tree ? run : null
}

/** Returns the checks that have not run on this tree; `tree` null: that never ran. */
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

/** The contract's next step in the proof of a claim. `refuse`: ids of sentences that fail. */
export type ContractProof =
  | { kind: 'check'; sentence: Sentence; check: number; when: 'claim' | 'second' }
  | { kind: 'refuse'; failed: readonly string[] }
  | { kind: 'controls'; sentence: Sentence }
  | { kind: 'try'; control: Control; check: Sentence }
  | { kind: 'second'; sentence: Sentence; control: Control }
  | { kind: 'settle'; draft: Draft; isBetter: boolean }

/**
 * Returns the next check of a claim, or the refusal; null: all sentences hold. A check that failed before this claim runs
 * again: it may have failed by chance. Pure.
 * @param round the round that claims
 */
export function nextClaimCheck(contract: ContractState | null, tree: string, round: number): ContractProof | null {
  const { frozen = null, runs = [] } = contract ?? {}
  if (contract === null || frozen === null) return null
  const isOfClaim = (run: CheckRun) => hasPassed(run.status) || (run.when === 'claim' && run.round === round)
  const [due] = dueChecks(frozen.sentences, runs.filter(isOfClaim), tree)
  if (due !== undefined) return { kind: 'check', sentence: due.sentence, check: due.check, when: 'claim' }
  const failed = sentencesOf({ ...contract, tree }).filter(({ state }) => state === 'fails')
  return failed.length === 0 ? null : { kind: 'refuse', failed: failed.map(({ id }) => id) }
}

/** Returns the next step with wrong versions of the claimed work; null: none. Pure. */
export function nextControl(contract: ContractState | null, tree: string): ContractProof | null {
  const { frozen = null, controls = [], terms, asked = [], seconds = [], draft = null } = contract ?? {}
  if (contract === null || frozen === null || terms === undefined) return null
  if (draft?.sentence != null) return nextOfSecond(draft, controls, tree)
  // Checks that passed before the work stay weak, whatever they catch.
  const isProvable = ({ state, flaw }: SentenceNow) => HOLDS.has(state) && !(state === 'weak' && flaw !== null)
  const all = sentencesOf({ ...contract, tree }).filter(isProvable)
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

/** States of a true sentence. */
export const HOLDS: ReadonlySet<SentenceState> = new Set(['holds', 'weak', 'proved'])
/** Limit of consecutive requests for a sentence's wrong versions without a usable one. */
const MOST_ASKED = 2

/** Returns true if the tried wrong version says something about its sentence's checks. Pure. */
export function controlCounts({ result }: Pick<Control, 'result'>): boolean {
  return result === 'caught' || result === 'not-caught'
}

/** A check and its number in its sentence. */
export interface CheckOfSentence {
  sentence: string
  number: number
  check: Check
}

/**
 * Returns checks of other sentences; one must pass on a wrong version, else that version breaks everything. Prefers passing
 * checks that failed before the work; if there are none, returns all that pass now. Pure.
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

/** A new check must pass on the claimed work, and catch the version that the others missed. */
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
 * State of a sentence. `proved`: true, and its checks catch wrong versions. `weak`: they missed one, or passed a *must*
 * before the work. `holds`: true, no wrong version tried. `unusable`: its checks cannot be trusted. `open`: some checks have
 * not run on the work as it is now. `refused`: the person removed it.
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

/** A sentence of the contract in force, with its state. */
export interface SentenceNow extends Sentence {
  state: SentenceState
  isHeldOut: boolean
  /** Number of wrong versions that count, and of those that were caught. */
  made: number
  caught: number
  /** Problem of its checks, from results before the work; null: none. */
  flaw: string | null
}

/** Returns the sentences of the contract in force, then those that the person removed. Empty: no contract. Pure. */
export function sentencesOf(contract: ContractState | null): readonly SentenceNow[] {
  if (contract === null || contract.frozen === null) return []
  const { frozen, controls, refused } = contract
  const runs = runsNow(contract)
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

/** Returns the last results of checks on the work as it is now. Pure. */
export function runsNow({ runs, tree }: ContractState): readonly CheckRun[] {
  return tree === null ? runs : runs.filter(run => run.tree === tree)
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
 * Returns the sentences that a new version removes: those removed before, and, if a person wrote it, checkable sentences
 * that it no longer quotes. Pure.
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
  if (came.some(run => run !== null && !hasPassed(run.status))) return flaw?.isUnusable === true ? 'unusable' : 'fails'
  if (came.some(run => run === null)) return flaw?.isUnusable === true ? 'unusable' : 'open'
  if (flaw?.isUnusable === false) return 'weak'
  if (made === 0) return 'holds'
  return caught === made ? 'proved' : 'weak'
}

/** Numbers of checkable, true, unchecked and proved sentences. */
export interface ContractCount {
  checkable: number
  holding: number
  open: number
  proved: number
}

/** Counts the sentences of the contract in force; null: no contract. Pure. */
export function countContract(contract: ContractState | null): ContractCount | null {
  if (contract === null || contract.frozen === null) return null
  const all = sentencesOf(contract).filter(({ kind, state }) => asksFor(kind) && state !== 'refused')
  const count = (...states: SentenceState[]) => all.filter(({ state }) => states.includes(state)).length
  return { checkable: all.length, holding: count(...HOLDS), open: count('open'), proved: count('proved') }
}

/** Strength of proof of finished work. */
export type Proof = 'proved' | 'gates' | 'none'

/** Returns how strongly an accepted claim is proved; `verified`: required gates passed. Pure. */
export function proofOf(contract: ContractState | null, verified: boolean): Proof {
  const count = countContract(contract)
  if (count !== null && count.checkable > 0 && count.proved === count.checkable) return 'proved'
  return verified ? 'gates' : 'none'
}

/** Returns why the contract refused a claim, for the next round. For a held-out sentence: only that fact. Pure. */
export function wordsForFailedSentences(contract: ContractState, failed: readonly string[]): string {
  const sentences = sentencesOf(contract).filter(({ id }) => failed.includes(id))
  const lines = sentences.map(sentence => `- ${wordsForFailed(sentence, contract.runs)}`)
  // A person reads only the first line.
  const which = sentences.map(({ id, quote }) => `${id} "${truncate(collapsed(quote), 100)}"`).join(', ')
  return `these requirements are not met: ${which}\n${lines.join('\n')}`
}

/** Describes a failing sentence for a round. */
export function wordsForFailed({ id, quote, checks, isHeldOut }: SentenceNow, runs: readonly CheckRun[]): string {
  const words = `"${truncate(quote, 300)}"`
  if (isHeldOut) return `${id} does not hold yet: ${words}`
  const failed = checks.flatMap((check, at) => {
    const run = runOf(runs, id, at + 1)
    return run === null || hasPassed(run.status)
      ? []
      : [`\n  \`${truncate(lineOf(id, at + 1, check.run), 300)}\` ${HOW_FAILED[run.status] ?? 'fails'}.${printed(run)}`]
  })
  return `${id} does not hold yet: ${words}${failed.join('')}`
}

const HOW_FAILED: Partial<Record<CheckRun['status'], string>> = {
  'timed-out': 'takes too long',
  'not-started': 'could not be run',
}

/** Most characters of a contract in a round's input. */
const MOST_TOLD = 6_000

/** Describes the contract for a round's input; empty: no contract. `file`: the path of its full text. Pure. */
export function contractInInput(contract: ContractState | null, file: string): string {
  const shown = sentencesOf(contract).filter(({ state }) => state !== 'context' && state !== 'refused')
  if (shown.length === 0) return ''
  const lines = shown.map(({ id, kind, quote, state }) => {
    const how = TOLD_STATES[state]
    return `- ${id} (${kind === 'not-checkable' ? 'not checked by a program' : kind.replace('-', ' ')}${how}): "${truncate(quote, 300)}"`
  })
  const hidden = shown.filter(({ isHeldOut }) => isHeldOut).map(({ id }) => id)
  return [
    `Before codemachine accepts done, checks prove the goal sentence by sentence. Somebody else wrote these checks before the work. They run on a copy of the files, and are also tried on wrong versions. Do what the goal asks for; write nothing that works only for a check.`,
    clipEnd(lines.join('\n'), MOST_TOLD),
    `You can read the checks in \`${file}\`; changes there have no effect.${hidden.length === 0 ? '' : ` The checks of ${hidden.join(', ')} are not shown.`}`,
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

/** Returns the Markdown file of all sentences and of the checks that rounds may see. Pure. */
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

/** Returns a check's command line with its files' folder filled in. Pure. */
export function lineOf(sentence: string, check: number, run: string): string {
  return run.replaceAll('{files}', folderOfCheck(sentence, check))
}

function indented(text: string): string {
  return text.trimEnd().replace(/^/gm, '    ')
}
