import { unreachable } from '../../base/errors.ts'
import type { RecordedOf } from '../../core/events/events.ts'
import { hasPassed } from '../../core/events/outcome.ts'
import {
  type ContractCount,
  type ContractState,
  checkable,
  countContract,
  flawsOf,
  nextContractStep,
  type SentenceNow,
  type SentenceState,
} from '../../core/rules/contract.ts'
import type { SessionState } from '../../core/state/state.ts'
import { type Description, describe, withRest, wordsForCause } from './names.ts'
import { formatCount, formatDuration, formatTokens } from './numbers.ts'
import { wordsForFlaky, wordsForGate } from './proof.ts'
import { oneLine } from './safe-text.ts'

const NAME_CHARS = 200
const TEXT_CHARS = 500
const MOST_LINES = 20

/** Says who works on the contract now. */
export function describeContractTurn({
  role,
  sentence,
  engine,
  model,
  effort,
}: RecordedOf<'contract-turn-started'>): Description {
  const terms = [engine ?? null, model, effort].filter(term => term !== null).map(term => line(term))
  const what =
    role === 'author'
      ? sentence === undefined
        ? 'writing the contract: what you asked for, sentence by sentence, with checks'
        : `writing one more check of ${line(sentence)}`
      : `writing wrong versions of the work for ${line(sentence ?? '')}; its checks must fail on them`
  return describe(`${what}${terms.length === 0 ? '' : `  (${terms.join(' ')})`}`, 'strong')
}

/** Says that a turn failed; null: its result tells itself. */
export function describeContractTurnEnd({
  role,
  outcome,
  problem,
  durationMs,
  tokens,
}: RecordedOf<'contract-turn-ended'>): Description | null {
  if (problem === null) return null
  const who = role === 'author' ? 'the author of the contract' : 'the author of the wrong versions'
  const why = outcome.class === 'worked' ? oneLine(problem, TEXT_CHARS) : wordsForCause(outcome)
  const facts = [formatDuration(durationMs), ...(tokens === null ? [] : [formatTokens(tokens.total)])]
  return describe(`${who} gave no usable answer: ${why}  (${facts.join(', ')})`, 'warning')
}

/** Describes a version of the contract, sentence by sentence. */
export function describeDraft({
  version,
  by,
  sentence,
  sentences,
  uncovered,
}: RecordedOf<'contract-drafted'>): Description {
  if (sentence !== undefined) return describe(`one more check of ${line(sentence)}`)
  const count = checkable(sentences).flatMap(({ checks }) => checks).length
  const head = `contract, version ${version}${by === 'person' ? ', as you edited it' : ''}: ${formatCount(sentences.length, 'sentence')}, ${formatCount(count, 'check')}`
  const rows = sentences
    .slice(0, MOST_LINES)
    .map(({ id, kind, quote }) => `  ${line(id)} (${line(wordsForKind(kind))}) ${oneLine(quote, NAME_CHARS)}`)
  const left = uncovered.map(piece => `  in no sentence: ${oneLine(piece, NAME_CHARS)}`)
  return describe([head, ...withRest(rows, sentences.length), ...left.slice(0, 5)].join('\n'), 'strong')
}

/** Says that the contract applies from now on. */
export function describeFrozen(
  { version, by, heldOut, problem }: RecordedOf<'contract-frozen'>,
  { contract }: SessionState,
): Description {
  if (by === 'controls') return describe('the new check is used, because it notices the wrong version', 'good')
  const how = by === 'person' ? 'accepted by you' : 'accepted automatically, because nobody answered'
  const hidden =
    heldOut.length === 0
      ? problem === null
        ? ''
        : `; all checks are visible to the agents: ${oneLine(problem, TEXT_CHARS)}`
      : `; agents do not see the checks of ${heldOut.map(line).join(', ')}`
  const flaws = contract?.frozen == null ? [] : flawsOf(contract.frozen, contract.frozen.before)
  const lines = flaws.map(
    ({ sentence, problem }) => `  ${line(sentence)}: ${oneLine(problem.split('\n')[0] ?? '', TEXT_CHARS)}`,
  )
  return describe(
    [`contract, version ${version}, is ${how}${hidden}`, ...lines].join('\n'),
    lines.length > 0 ? 'warning' : 'good',
  )
}

/** Describes a check's result; null if it is as expected. The last one after a round says how many sentences hold. */
export function describeCheck(
  { sentence, check, when, status, exitCode, problem, cannotRun, durationMs, tree }: RecordedOf<'check-ended'>,
  { contract }: SessionState,
): Description | null {
  const kind = (contract?.draft ?? contract?.frozen)?.sentences.find(({ id }) => id === sentence)?.kind
  const end = `${line(sentence)}, check ${check}: ${wordsForGate({ status, exitCode })}`
  const why = problem === null ? '' : `: ${oneLine(problem, TEXT_CHARS)}`
  const time = `, ${formatDuration(durationMs)}`
  if (status === 'broken-off') return null
  if (when === 'before') {
    const isAsWanted = !cannotRun && hasPassed(status) !== (kind === 'must')
    return describe(
      `${end} before the work${cannotRun ? ', and could not itself run' : ''}${time}${why}`,
      isAsWanted ? 'quiet' : 'warning',
    )
  }
  if (when === 'after-round') {
    const isLast = contract !== null && nextContractStep(contract, tree, true)?.kind !== 'check'
    const lines = [hasPassed(status) ? null : `${end}${time}${why}`, isLast ? wordsForContract(contract) : null]
    const shown = lines.filter(each => each !== null)
    return shown.length === 0 ? null : describe(shown.join('\n'), 'quiet')
  }
  if (status === 'flaky') return describe(`${end}${time}: ${wordsForFlaky({ exitCode })}`, 'warning')
  return describe(`${end}${time}${why}`, hasPassed(status) ? 'good' : 'warning')
}

/** Describes the result of a wrong version. */
export function describeControl({
  sentence,
  control,
  result,
  check,
  problem,
}: RecordedOf<'control-tried'>): Description {
  const which = `wrong version ${control} for ${line(sentence)}`
  switch (result) {
    case 'caught':
      return describe(`${which}: caught by check ${check ?? 1}`, 'good')
    case 'not-caught':
      return describe(`${which}: no check notices it`, 'warning')
    case 'same':
      return describe(`${which} changes nothing, so it does not count`, 'quiet')
    case 'broken':
      return describe(
        `${which} breaks other sentences, too, so it does not count: ${oneLine(problem ?? '', TEXT_CHARS)}`,
        'quiet',
      )
    case 'not-tried':
      return describe(`${which} was not tried: ${oneLine(problem ?? '', TEXT_CHARS)}`, 'quiet')
    default:
      return unreachable(result)
  }
}

/** What a sentence of a goal asks for, in words: `must not happen`. */
export function wordsForKind(kind: SentenceNow['kind']): string {
  return KINDS[kind]
}

const KINDS: Readonly<Record<SentenceNow['kind'], string>> = {
  must: 'must be true',
  'must-not': 'must not happen',
  keep: 'must stay true',
  'not-checkable': 'cannot be checked',
  context: 'background',
}

const STATES: Readonly<Record<SentenceState, string>> = {
  proved: 'proved',
  weak: 'weak: its checks pass on a wrong version',
  holds: 'its checks pass; no wrong version was tried',
  fails: 'does not hold',
  open: 'not checked',
  unusable: 'its checks cannot be used',
  'not-checkable': 'no program can check it',
  context: 'background: it asks for nothing',
  refused: 'removed by you',
}

/** Describes the state of a sentence: `proved`, `weak: a wrong version was not noticed`. */
export function wordsForSentence(state: SentenceState): string {
  return STATES[state]
}

/** Does the same for a state from a foreign certificate of any version. */
export function wordsForNamedState(state: string): string {
  if (state === 'refused') return 'removed by the person'
  return Object.entries(STATES).find(([name]) => name === state)?.[1] ?? state
}

/** Says how many sentences hold, `5 of 7 sentences hold`, or that there is no contract; null: none is wanted. */
export function wordsForContract(contract: ContractState | null): string | null {
  if (contract === null) return null
  if (contract.left !== null) return `no contract: ${oneLine(contract.left, TEXT_CHARS)}`
  const count = countContract(contract)
  if (count === null) return 'the contract is not accepted yet'
  return `${wordsForHolding(count)}${contract.behind === null ? '' : `; ${BEHIND}`}`
}

const BEHIND = 'the contract does not contain your later changes (codemachine contract edit)'

/** Says `5 of 7 sentences hold`; once some are proved, how many. */
function wordsForHolding({ checkable, holding, open, proved }: ContractCount): string {
  if (checkable === 0) return 'no check can test a sentence'
  if (proved > 0 && holding === checkable) return `${proved} of ${formatCount(checkable, 'sentence')} proved`
  const unchecked = open === 0 ? '' : `, ${open} not checked`
  return `${holding} of ${formatCount(checkable, 'sentence')} ${holding === 1 ? 'holds' : 'hold'}${unchecked}`
}

function line(text: string): string {
  return oneLine(text, NAME_CHARS)
}
