import { unreachable } from '../../base/errors.ts'
import { namesFailure } from '../../base/failure-lines.ts'
import type { RecordedOf } from '../../core/events/events.ts'
import type { Gate, GateResult, GateStatus, GateTime } from '../../core/events/outcome.ts'
import { type ContractCount, type ContractState, countContract, type Proof } from '../../core/rules/contract.ts'
import { wordsForDoubts } from '../../core/rules/proof/counter-proof.ts'
import { refusalForPerson } from '../../core/rules/refusals.ts'
import { type Finding, findingKey, type ReviewAnswer, type ReviewTerms } from '../../core/rules/review.ts'
import { type Claim, partOf, type SessionKind, type SessionState } from '../../core/state/state.ts'
import {
  clipLines,
  type Description,
  describe,
  type Hints,
  safeOutput,
  type Tone,
  withRest,
  wordsForCause,
} from './names.ts'
import { formatCount, formatDuration, formatTokens } from './numbers.ts'
import { oneLine } from './safe-text.ts'

const NAME_CHARS = 200
const TEXT_CHARS = 2000
const MOST_FILES = 20
const MOST_OPTIONS = 20

const TOUCHES: Readonly<Record<RecordedOf<'protected-changed'>['files'][number]['how'], string>> = {
  changed: 'changed',
  deleted: 'deleted',
  skipped: 'tests in it marked to be skipped',
}

/** Describes the protected files that a round touched. */
export function describeProtected({ round, files, count }: RecordedOf<'protected-changed'>): Description {
  const shown = files.slice(0, MOST_FILES).map(({ path, how, gates }) => {
    const of = gates.length === 0 ? '' : `  (gate ${gates.map(gateName).join(', ')})`
    return `${name(path)}: ${TOUCHES[how]}${of}`
  })
  const lines = [
    `round ${round} changed ${formatCount(count, 'protected file')}. Unless they are restored, a reviewer must agree before done`,
    ...withRest(shown, count),
  ]
  return describe(lines.join('\n'), 'warning')
}

/** Describes changed configuration of gates; null if nothing ever differed. */
export function describeConfiguration({ round, files, count }: RecordedOf<'gate-configuration'>): Description | null {
  if (count === 0) return round === 0 ? null : describe('the configuration of the gates is unchanged again', 'quiet')
  const shown = files.slice(0, MOST_FILES).map(({ path, how }) => `${name(path)}: ${how === 'added' ? 'new' : how}`)
  const what = `${formatCount(count, 'file')} in the configuration of the gates ${count === 1 ? 'is' : 'are'} new or changed since the start`
  return describe([`${what}: a reviewer must agree before done`, ...withRest(shown, count)].join('\n'), 'warning')
}

/** Describes a gate that ran without the work. */
export function describeCounterProof(proof: RecordedOf<'counter-proof'>): Description | null {
  const { result, gate, made, problem, doubts } = proof
  if (doubts.length > 0) {
    const lines = wordsForDoubts(proof, MOST_FILES).map(line)
    return describe(
      [`gate ${gateName(gate)} may prove nothing: a reviewer must agree before done`, ...lines].join('\n'),
      'warning',
    )
  }
  const shown = { ...proof, gate: gateName(gate), problem: line(problem ?? ''), made: made.map(name) }
  const words = wordsForCounterProof(shown, MOST_MADE)
  return words === null ? null : describe(words, result === 'stands' ? 'good' : 'quiet')
}

const MOST_MADE = 5

/** Describes a clear run of a gate without the work; null: nothing to say. `most`: named files that made it pass. */
export function wordsForCounterProof(
  {
    gate,
    result,
    problem,
    made,
    madeCount,
    isSmallest,
  }: Pick<RecordedOf<'counter-proof'>, 'gate' | 'result' | 'problem' | 'made' | 'madeCount' | 'isSmallest'>,
  most: number,
): string | null {
  if (result === 'not-tried') return `gate ${gate} cannot be tried on the files from before the work: ${problem ?? ''}`
  if (result !== 'stands') return null
  const files = withRest(made.slice(0, most), madeCount).join(', ')
  return `gate ${gate} fails on the files from before the work; ${isSmallest ? 'it passes because of' : 'it passes because of some of'}: ${files}`
}

/** Describes a question that is stored for a person. */
export function describeQuestion(
  { session, question, text, options, assumption, agent }: RecordedOf<'question-asked'>,
  hints: Hints,
): Description {
  const shown = options.slice(0, MOST_OPTIONS).map((option, i) => `${i + 1}. ${line(option)}`)
  const lines = [
    `question ${name(question)}${agent === undefined ? '' : ` of ${name(agent)}`}: ${line(text)}`,
    ...withRest(shown, options.length),
    `until you answer, the agent assumes: ${line(assumption)}`,
    `${hints.answer(name(`${session}/${question}`))}${options.length > 0 ? ', or give the number of an option' : ''}`,
  ]
  return describe(lines.join('\n'), 'strong')
}

/** Describes a refused claim. */
export function describeRefusal({ reason, detail, scope }: RecordedOf<'done-refused'>): Description {
  const { fact, next } = refusalForPerson({ reason, detail })
  return describe(`${ofStep(scope)}Not accepted: ${line(`${fact} ${next}`.trim())}`, 'warning')
}

/** Describes a claim. */
export function describeClaim({ by, whyNothing, scope }: RecordedOf<'done-nominated'>): Description {
  const isOwn = by.every(each => each === 'template')
  const who = by.map(each => (each === 'template' ? 'codemachine itself' : name(each))).join(' and ')
  const claimed = `${ofStep(scope)}${isOwn ? 'No work is left. codemachine checks the result' : `The agent says it is done (${who})`}`
  return whyNothing === undefined
    ? describe(claimed)
    : describe(`${claimed}, and that no work was needed: ${line(whyNothing)}`, 'warning')
}

function ofStep(scope: string | undefined): string {
  return scope === undefined ? '' : `step ${name(scope)}: `
}

/** Describes an accepted claim. */
export function describeAccepted(
  { tree, verified, scope }: RecordedOf<'done-accepted'>,
  state: SessionState,
): Description {
  if (scope !== undefined) {
    const { claim } = state
    const accepted = { state: 'accepted', tree, results: claim.state === 'nominated' ? claim.results : [] } as const
    return describe(
      `step ${name(scope)} is done: ${wordsForProof(verified ?? false, { ...state, claim: accepted })}`,
      'good',
    )
  }
  const proof = verified === undefined ? '' : `: ${wordsForProof(verified, state)}`
  return describe(`Accepted (files at ${name(tree.slice(0, 12))})${proof}`, 'good')
}

/** Says that a scope begins: a part of the session that is worked on until it is done. */
export function describeScopeEntered({ name: scope, gates }: RecordedOf<'scope-entered'>): Description {
  return describe(`step ${name(scope)} runs until it is done: ${wordsForGates(gates)}`)
}

/** Lists the commands that the template added to the session's gates. */
export function describeGatesAdded({ gates, why }: RecordedOf<'gates-added'>): Description {
  const because = why === '' ? '' : ` (${line(why)})`
  if (gates.length === 0) return describe(`no more gates are added${because}`)
  return describe(`new checks that must pass: ${wordsForGates(gates)}${because}`)
}

/** Says that a scope ended; null if it was already reported done. */
export function describeScopeLeft({ name: scope, outcome, why }: RecordedOf<'scope-left'>): Description | null {
  if (outcome === 'done') return null
  return describe(`step ${name(scope)} ended, not done${why === null ? '' : `: ${line(why)}`}`, 'warning')
}

function name(value: string): string {
  return oneLine(value, NAME_CHARS)
}

function line(value: string): string {
  return oneLine(value, TEXT_CHARS)
}

type GateEnded = RecordedOf<'gate-ended'>

const OUTPUT_LINES = 10
/** Number of earlier lines with a failure to show. */
const FAILURE_LINES = 5
const LINE_CHARS = 300

/** A gate that ran, in parts for a person. */
interface GateInWords {
  /** `gate tests`, `gate tests, after round 3`. */
  name: string
  /** `failed (exit code 1)`. */
  end: string
  time: string
  /** Other facts of its result: `it failed before round 1, too`. */
  remarks: readonly string[]
  /** Sentences on its obstacles, and its changes of files. */
  notes: readonly string[]
  /** Whether its output shows the problem. */
  isOutputShown: boolean
  tone: Tone
}

/** Describes a gate's result, with its last lines of output if it is not good. */
export function describeGate(event: GateEnded, state: SessionState): Description {
  const { name, end, time, remarks, notes, isOutputShown, tone } = gateInWords(event, state)
  const line = [`${name}: ${end}, ${time}`, ...remarks].join('; ')
  return describe([line, ...notes, ...(isOutputShown ? lastLinesShown(event.output) : [])].join('\n'), tone)
}

/** Returns the parts of that description. */
export function gateInWords(event: GateEnded, state: SessionState): GateInWords {
  const { gate, status, when, round, durationMs } = event
  const time = wordsForGateTime(when, round, isAdded(gate, state))
  const isBad = status === 'failed' || status === 'timed-out' || status === 'not-started'
  return {
    name: `gate ${gateName(gate)}${time === null ? '' : `, ${time}`}`,
    end: wordsForGate(event),
    time: formatDuration(durationMs),
    remarks: isBad ? remarksOn(event, state) : status === 'flaky' ? [wordsForFlaky(event)] : [],
    notes: notesOn(event),
    isOutputShown: isBad || status === 'flaky',
    tone: isBad || status === 'flaky' ? 'warning' : status === 'passed' ? 'good' : 'quiet',
  }
}

function remarksOn({ gate, when, status }: GateEnded, { gates, addedGates, before }: SessionState): string[] {
  const first = before.find(result => result.gate === gate)?.status
  const since =
    when === 'before' || first === undefined ? null : wordsForBefore(first, status, isAdded(gate, { addedGates }))
  const isOptional = gates.some(({ name, required }) => name === gate && !required)
  return [
    ...(since === null ? [] : [since]),
    ...(isOptional && when === 'claim' ? ['it is not required, so the session can be done without it'] : []),
  ]
}

function isAdded(gate: string, { addedGates }: Pick<SessionState, 'addedGates'>): boolean {
  return addedGates.some(({ name }) => name === gate)
}

function notesOn({ problem, ...rest }: GateEnded): string[] {
  const changed = wordsForChangedByGate(rest)
  return [...(problem === null ? [] : [oneLine(problem, TEXT_CHARS)]), ...(changed === null ? [] : [changed])]
}

/** Returns the last ten lines of a gate's or command's output, as shown below its result. */
export function lastLinesShown(output: string): string[] {
  const lines = safeOutput(output).filter(line => line !== '')
  const left = lines.length - OUTPUT_LINES
  return [
    ...lines
      .slice(0, Math.max(0, left))
      .filter(namesFailure)
      .slice(0, FAILURE_LINES)
      .map(line => oneLine(line, LINE_CHARS)),
    ...(left > 0 ? [`… ${formatCount(left, 'line')} before`] : []),
    ...lines.slice(-OUTPUT_LINES).map(line => oneLine(line, LINE_CHARS)),
  ].map(line => `  ${line}`)
}

const SHORT_NAME_CHARS = 120
const PATH_CHARS = 300
const MOST_CHANGED_FILES = 10

/**
 * Returns a gate's name for display, which may be a whole command: on one line, at most 120 characters, in backticks if it
 * could blend with the words around it.
 */
export function gateName(name: string): string {
  const line = oneLine(name, SHORT_NAME_CHARS)
  return MIXES_WITH_WORDS.test(line) ? `\`${line}\`` : line
}

const MIXES_WITH_WORDS = /[,;:()]/

/** Describes a gate's result: `passed`, `failed (exit code 1)`. */
export function wordsForGate({ status, exitCode }: Pick<GateResult, 'status' | 'exitCode'>): string {
  switch (status) {
    case 'passed':
      return 'passed'
    case 'flaky':
      return 'flaky'
    case 'failed':
      return `failed${exitCode === null ? '' : ` (exit code ${exitCode})`}`
    case 'timed-out':
      return 'timed out'
    case 'not-started':
      return 'could not be run'
    case 'broken-off':
      return 'broken off'
    default:
      return unreachable(status)
  }
}

/** Says why a gate counts as flaky. */
export function wordsForFlaky({ exitCode }: Pick<GateResult, 'exitCode'>): string {
  const code = exitCode === null ? '' : ` (exit code ${exitCode})`
  return `it failed${code}, and passed when it was run again on the same files`
}

/** Says how a failing gate ended the first time, before round 1 or when it was added; null if that tells nothing. */
export function wordsForBefore(first: GateStatus, now: GateStatus, isAdded = false): string | null {
  const when = wordsForFirstTime(isAdded)
  if (first === 'flaky') return `it failed and then passed on the same files ${when}`
  if (first === 'passed' || first === 'broken-off') return null
  return first === 'failed' && now === 'failed' ? `it failed ${when}, too` : `it did not pass ${when} either`
}

/** Says when a gate first ran. `isAdded`: whether a template added it, possibly after work was done. */
export function wordsForFirstTime(isAdded: boolean): string {
  return isAdded ? 'when it was added' : 'before round 1'
}

/** Says what a gate did to the files that it checks: `it changed 2 files itself, which is not …: a, b`; null: nothing. */
export function wordsForChangedByGate({ changed, changedCount }: ChangedByGate): string | null {
  if (changedCount === 0) return null
  const shown = changed.slice(0, MOST_CHANGED_FILES).map(path => oneLine(path, PATH_CHARS))
  const list = withRest(shown, changedCount).join(', ')
  return `it changed ${formatCount(changedCount, 'file')} itself, which does not count as the agent's work: ${list}`
}

type ChangedByGate = Pick<GateResult, 'changed' | 'changedCount'>

/** Says when a gate ran, if not for a claim: `before round 1`; `isAdded`: whether a template added it. */
export function wordsForGateTime(when: GateTime, round: number, isAdded = false): string | null {
  switch (when) {
    case 'before':
      return wordsForFirstTime(isAdded)
    case 'after-round':
      return `after round ${round}`
    case 'tasks':
      return `for the tasks of round ${round}`
    case 'counter-proof':
      return 'on the files from before the work'
    case 'limit':
      return 'when the limit was reached'
    case 'claim':
      return null
    default:
      return unreachable(when)
  }
}

type ReviewEnded = RecordedOf<'review-ended'>

const SUMMARY_LINES = 10
const MOST_FINDINGS = 20

const CAUSES: Readonly<Record<string, string>> = {
  asked: 'you asked for a review before done',
  protected: 'protected files have changed',
  configuration: 'the configuration of the gates has changed',
  'counter-proof': 'a gate may also pass on the files from before the work',
}

/** Tone of a finding, by its severity. */
export const SEVERITY_TONES: Readonly<Record<Finding['severity'], Tone>> = {
  critical: 'bad',
  major: 'warning',
  minor: 'quiet',
}

/** Describes the start of a review: its cause and its model. */
export function describeReviewStart({
  review,
  causes,
  engine,
  model,
  effort,
}: RecordedOf<'review-started'>): Description {
  const why = causes.map(cause => (Object.hasOwn(CAUSES, cause) ? CAUSES[cause] : oneLine(cause, NAME_CHARS)))
  const terms = [engine ?? null, model, effort].filter(term => term !== null).map(term => oneLine(term, NAME_CHARS))
  const reasons = why.length === 0 ? '' : `: ${why.join(', and ')}`
  return describe(`review ${review} starts${reasons}${terms.length === 0 ? '' : `  (${terms.join(' ')})`}`, 'strong')
}

/** Describes a review's result, with each finding on its own lines. */
export function describeReviewEnd(event: ReviewEnded): Description {
  const { answer } = event
  const tone = answer?.verdict === 'agreed' ? 'good' : 'warning'
  if (answer === null) return describe(reviewEndInWords(event), tone)
  const shown = answer.findings.slice(0, MOST_FINDINGS)
  const left = answer.findings.length - shown.length
  const rest = `all of it: codemachine logs ${event.session} --json`
  const lines = [
    reviewEndInWords(event),
    ...(answer.summary.trim() === '' ? [] : [clipLines(answer.summary, SUMMARY_LINES, rest)]),
    ...shown.flatMap(finding => findingLines(finding, isRepeated(finding, event))),
    ...(left > 0 ? [`[… ${formatCount(left, 'more finding')}; ${rest}]`] : []),
  ]
  return describe(lines.join('\n'), tone)
}

/** Says `review 2: 3 findings, 1 of them found before (you decide), 1m02s, 9.1k tokens`. */
export function reviewEndInWords(event: ReviewEnded): string {
  const { review, tokens, durationMs, answer, outcome, repeated } = event
  const facts = [formatDuration(durationMs), ...(tokens === null ? [] : [formatTokens(tokens.total)])]
  const why = outcome.class === 'worked' ? ' that can be read' : `: ${wordsForCause(outcome)}`
  const verdict =
    answer === null
      ? `review ${review} gave no answer${why}`
      : wordsForReview({ review, ...answer, findings: answer.findings.length, repeated: repeated.length })
  return [verdict, ...facts].join(', ')
}

/** Result of a review; `findings` and `repeated`: counts. `verdict` null: it gave no answer. */
interface ReviewFacts {
  review: number
  verdict: ReviewAnswer['verdict'] | null
  findings: number
  repeated: number
}

/** In words: `review 2: 3 findings, 1 of them found before (you decide)`, `review 3: agreed`. */
export function wordsForReview({ review, verdict, findings, repeated }: ReviewFacts): string {
  if (verdict === null) return `review ${review} gave no answer`
  const count = formatCount(findings, 'finding')
  if (verdict === 'agreed') return `review ${review}: agreed${findings === 0 ? '' : `, with ${count}`}`
  if (repeated === 0) return `review ${review}: ${count}`
  const which = repeated === findings ? (repeated === 1 ? '' : 'all ') : `${repeated} of them `
  return `review ${review}: ${count}, ${which}found before (you decide)`
}

/** Returns whether an earlier review found it too. */
export function isRepeated(finding: Finding, { repeated }: ReviewEnded): boolean {
  return repeated.some(other => findingKey(other) === findingKey(finding))
}

/** Returns the place of a finding: `src/a.ts:3`; empty if it names no file. */
export function placeOf({ file, line }: Pick<Finding, 'file' | 'line'>): string {
  return file === null ? '' : `${oneLine(file, NAME_CHARS)}${line === null ? '' : `:${line}`}`
}

/** Returns a finding on a line, with its fix below. */
export function findingLines(finding: Finding, isAgain: boolean): string[] {
  const { severity, problem, mend } = finding
  const place = placeOf(finding)
  return [
    `- ${severity}${place === '' ? '' : `  ${place}`}  ${oneLine(problem, TEXT_CHARS)}${isAgain ? '  (found before; you decide)' : ''}`,
    ...(mend.trim() === '' ? [] : [`  fix: ${oneLine(mend, TEXT_CHARS)}`]),
  ]
}

const MOST_GATES = 8

/** Facts that prove a claim, as in SessionState. */
export interface ProvedState extends MayProve {
  claim:
    | Exclude<Claim, { state: 'accepted' }>
    | { state: 'accepted'; tree: string; results: readonly Pick<GateResult, 'gate' | 'status'>[] }
  gates: { readonly length: number }
  reviews: Pick<SessionState['reviews'], 'agreedTo'>
  /** Sentences of the goal; null, or left out: there is no contract. */
  contract?: ContractState | Pick<ContractCount, 'proved' | 'checkable'> | null
}

/**
 * Says how gates and reviews proved the result: `verified by 2 gates, reviewed`.
 * @param state the session after its claim was accepted; left out: not known
 */
function wordsForProof(verified: boolean, state?: ProvedState): string {
  const claim = state?.claim.state === 'accepted' ? state.claim : null
  const named = (...status: GateResult['status'][]) =>
    (claim?.results ?? []).filter(result => status.includes(result.status)).map(({ gate }) => gateName(gate))
  const [passed, flaky] = [named('passed', 'flaky'), named('flaky')]
  const failed = named('failed', 'timed-out', 'not-started')
  const isReviewed = claim !== null && claim.tree === state?.reviews.agreedTo
  const why = state?.gates.length ? 'no gate is required' : 'no gates are configured'
  const proved = verified ? `${verifiedBy(passed.length)}${isReviewed ? ', reviewed' : ''}` : null
  return [
    proved ?? (isReviewed ? `not verified: a review agreed, but ${why}` : `not verified: ${why}`),
    ...(flaky.length === 0 ? [] : [`flaky: ${flaky.join(', ')}`]),
    ...(failed.length === 0 ? [] : [`failed, but not required: ${failed.join(', ')}`]),
  ].join('; ')
}

/** Says how a person can get more proof; null: unknown. */
export function hintForDone(proof: Proof, state?: ProvedState): string | null {
  if (proof !== 'none' || state === undefined) return null
  if (state.contract != null) return 'codemachine contract shows which sentences are not proved.'
  const would = whatWouldProve(state)
  return would === '' ? null : `Next time: ${would}.`
}

/** Says how a done session was proved: `7 of 7 sentences; verified by 2 gates`; empty: nothing to add. */
export function wordsForDone(proof: Proof, state?: ProvedState): string {
  const { contract = null } = state ?? {}
  const counted = contract !== null && 'terms' in contract ? countContract(contract) : contract
  const count = counted?.checkable === 0 ? null : counted
  const sentences = count === null ? [] : [`${count.proved} of ${formatCount(count.checkable, 'sentence')} proved`]
  const hasPassed = proof === 'gates' || (proof === 'proved' && (state?.gates.length ?? 0) > 0)
  const gates = wordsForProof(hasPassed, state).replace(/^(?:not )?verified(?:: |$)/, '')
  const isSaid = gates === '' || (proof !== 'gates' && !hasPassed && count !== null)
  const unchecked = proof === 'gates' && count === null ? ['your request itself was not checked'] : []
  return [...sentences, ...(isSaid ? [] : [gates, ...unchecked])].join('; ')
}

function verifiedBy(passed: number): string {
  return passed === 0 ? 'verified' : `verified by ${formatCount(passed, 'gate')}`
}

/** Lists the gates of a session: `gates tests, lint (not required)`; null: unknown, `no gates`: none. */
export function wordsForGates(gates: readonly Gate[] | undefined): string | null {
  if (gates === undefined) return null
  if (gates.length === 0) return 'no gates'
  const shown = gates.slice(0, MOST_GATES).map(gate => `${gateName(gate.name)}${remarkOn(gate)}`)
  return `gates ${withRest(shown, gates.length).join(', ')}`
}

/** Possible proofs of a session: whether its template has contracts, and the likely command of the project's tests. */
interface MayProve {
  kind?: Pick<SessionKind, 'proves' | 'addsGates'> | null
  tests?: Pick<NonNullable<SessionState['tests']>, 'run'> | null
}

/** Says which test command `--verify auto` took, or what could prove the goal if nothing does. Null: neither. */
export function wordsForTests(
  { gates, review, prove, tests, replayed }: RecordedOf<'session-created'>,
  { kind }: Pick<SessionState, 'kind'>,
): string | null {
  const taken = tests && gates?.find(({ run }) => run === tests.run)
  if (tests !== undefined && taken !== undefined) {
    const kept =
      taken.protect.length === 0 ? 'no file is protected' : `protects ${taken.protect.map(gateName).join(', ')}`
    const others = tests.others.length === 0 ? [] : [`also found: ${tests.others.map(gateName).join(', ')}`]
    return [`test command of ${oneLine(tests.from, NAME_CHARS)}: ${gateName(tests.run)}`, kept, ...others].join('; ')
  }
  const isSet = gates?.length !== 0 || Boolean(review) || prove !== undefined || replayed === true
  const isOffered = !isSet && kind?.proves === true && kind.addsGates !== true
  return isOffered ? `Nothing checks this goal. ${whatWouldProve({ kind, tests: tests ?? null })}.` : null
}

/** Says `--verify auto runs "npm test"; --prove checks each sentence`; empty: neither would. */
export function whatWouldProve({ kind, tests }: MayProve): string {
  return [
    ...(tests ? [`--verify auto runs "${oneLine(tests.run, NAME_CHARS)}"`] : []),
    ...(kind?.proves ? ['--prove checks each sentence'] : []),
  ].join('; ')
}

function remarkOn({ required, everyRound }: Gate): string {
  const remarks = [...(required ? [] : ['not required']), ...(everyRound ? ['after every round'] : [])]
  return remarks.length === 0 ? '' : ` (${remarks.join(', ')})`
}

/** Says that a review must agree before done, and its model; null: none is required. */
export function wordsForReviewTerms(review: ReviewTerms | null | undefined): string | null {
  if (review === undefined || review === null) return null
  const terms = [review.engine ?? null, review.model, review.effort]
    .filter(term => term !== null)
    .map(term => oneLine(term, SHORT_NAME_CHARS))
  return `a review before done${terms.length === 0 ? '' : ` (${terms.join(' ')})`}`
}

/** Says that the agent asked questions: `2 questions were asked; codemachine questions shows them`; null: none. */
export function wordsForQuestions(questions: number): string | null {
  if (questions === 0) return null
  const were =
    questions === 1 ? 'was asked; codemachine questions shows it' : 'were asked; codemachine questions shows them'
  return `${formatCount(questions, 'question')} ${were}`
}

/** Returns whether codex now works as a reviewer, or on the contract, and not in a round. */
export function isReviewing({ running, checking }: Pick<SessionState, 'running' | 'checking'>): boolean {
  return running === null && (checking?.kind === 'review' || checking?.kind === 'contract')
}

/**
 * Returns whether a message is an answer in JSON, or its beginning, that is described once it is complete: a reviewer's, or
 * that of a round whose template does so.
 * @param state the session when it is written
 */
export function isAnswerTold(text: string, state: Pick<SessionState, 'running' | 'checking' | 'kind'>): boolean {
  if (!text.trimStart().startsWith('{')) return false
  const { running, kind } = state
  return isReviewing(state) || (running?.part != null && partOf(kind, running.part).tellsAnswer === true)
}
