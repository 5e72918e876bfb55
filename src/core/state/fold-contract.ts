import type { ContractEvent, EventOf } from '../events/events.ts'
import { hasPassed } from '../events/outcome.ts'
import {
  type CheckRun,
  type ContractState,
  controlCounts,
  HOLDS,
  type Role,
  refusedSince,
  runOf,
  sentencesOf,
  type Who,
  wordsForFailed,
} from '../rules/contract.ts'
import { sentenceNotice } from '../rules/notices.ts'
import { withNotice } from '../rules/notices-after-round.ts'
import { PLAN_CHOICES } from './plan.ts'
import { afterOtherTurn, type FoldsOf, gaveNoAnswer, reachAfter, type SessionState } from './state.ts'

/** The id of the decision on a contract, and its choices. */
export const CONTRACT_DECISION = 'contract'
const { accept, change } = PLAN_CHOICES
export const CONTRACT_CHOICES = { accept, change, edit: 'edit', without: 'without' } as const
/** The id and choices of the decision on a contract that does not cover the person's change. */
export const BEHIND_DECISION = 'contract-behind'
export const BEHIND_CHOICES = { keep: accept, renew: 'renew' } as const

/** Returns the contract after a person's decision; the author gets a wanted change. Pure. */
export function contractDecided(
  contract: ContractState | null,
  { id, choice, text }: EventOf<'decision-made'>,
): ContractState | null {
  if (contract === null) return null
  if (id === BEHIND_DECISION && contract.behind !== null) {
    const { behind } = contract
    const change = choice === BEHIND_CHOICES.renew ? behind.text : contract.change
    return { ...contract, behind: { ...behind, isKept: true }, change }
  }
  const isChange = id === CONTRACT_DECISION && choice === CONTRACT_CHOICES.change && text !== null
  return isChange ? { ...contract, change: text } : contract
}

/** Returns the contract with the model of a role's last turn. Pure. */
export function withWho(contract: ContractState | null, role: Role, who: Who): ContractState | null {
  return contract && { ...contract, who: { ...contract.who, [role]: who } }
}

/** Returns the contract after a requested plan change, which a contract in force does not cover. Pure. */
export function contractReplanned(contract: ContractState | null, text: string): ContractState | null {
  if (contract === null || contract.frozen === null || contract.left !== null) return contract
  const { behind, replans } = contract
  const all = behind === null ? text : `${behind.text}\n\n${text}`
  return { ...contract, replans: [...replans, text], behind: { text: all, isKept: false } }
}

/** Returns the contract after the last plan change was reverted; the earlier request is valid again. Pure. */
export function contractPutBack(contract: ContractState | null): ContractState | null {
  return contract && { ...contract, replans: contract.replans.slice(0, -1), behind: null }
}

/** Folds of contract events. Pure. */
export const CONTRACT_FOLDS: FoldsOf<ContractEvent> = {
  'contract-turn-started': (state, event, at) => {
    const { role, sentence = null, engine = null, provider = null, model } = event
    return {
      ...state,
      contract: withWho(state.contract, role, { engine, provider, model }),
      providerInUse: provider,
      reachOfEngines: reachAfter(state, event),
      checking: { kind: 'contract', role, sentence, since: at },
    }
  },
  'contract-turn-ended': endTurn,
  'contract-drafted': (state, event) => withContract(state, contract => drafted(contract, event)),
  'contract-dropped': state =>
    withContract(state, contract => ({ ...contract, draft: null, change: null, refusals: 0, problem: null })),
  'contract-frozen': (state, event) => withContract(state, contract => frozen(contract, event)),
  'contract-left': (state, { why }) =>
    withContract(state, contract => ({ ...contract, draft: null, change: null, left: why })),
  'check-started': (state, { sentence, when }, at) => ({
    ...state,
    checking: { kind: 'check', sentence, when, since: at },
  }),
  'check-ended': endCheck,
  'controls-written': (state, { sentence, tree, versions }) =>
    withContract(state, contract => ({
      ...contract,
      made: contract.made + versions.length,
      controls: [
        ...contract.controls.filter(each => each.sentence !== sentence),
        ...versions.map((version, at) => ({
          ...version,
          sentence,
          control: at + 1,
          tree,
          ...UNTRIED,
        })),
      ],
    })),
  'control-tried': (state, event) => withContract(state, contract => tried(contract, event)),
}

const UNTRIED = { version: null, result: null, check: null, diff: '', problem: null } as const

function withContract(state: SessionState, change: (contract: ContractState) => ContractState): SessionState {
  return state.contract === null ? state : { ...state, checking: null, contract: change(state.contract) }
}

/** Returns the state after a turn of the author or of a wrong version's author; it fails and retries like a review. */
function endTurn(state: SessionState, event: EventOf<'contract-turn-ended'>, at: number): SessionState {
  return afterOtherTurn(
    withContract(state, contract => afterTurn(contract, event)),
    event.outcome,
    at,
  )
}

function afterTurn(
  contract: ContractState,
  { role, sentence, outcome, problem }: EventOf<'contract-turn-ended'>,
): ContractState {
  if (problem === null || !gaveNoAnswer(outcome)) return contract
  if (sentence === undefined) return { ...contract, refusals: contract.refusals + 1, problem }
  if (role === 'author') return { ...contract, seconds: [...contract.seconds, sentence] }
  return gaveNoControl(contract, sentence)
}

function gaveNoControl(contract: ContractState, sentence: string): ContractState {
  const refusals = 1 + (contract.asked.find(each => each.sentence === sentence)?.refusals ?? 0)
  const others = contract.asked.filter(each => each.sentence !== sentence)
  return { ...contract, asked: [...others, { sentence, refusals }] }
}

function tried(
  contract: ContractState,
  { sentence, control, result, check, diff, problem }: EventOf<'control-tried'>,
): ContractState {
  const version = contract.draft?.version ?? contract.frozen?.version ?? null
  const controls = contract.controls.map(each =>
    each.sentence === sentence && each.control === control ? { ...each, result, check, diff, problem, version } : each,
  )
  const next = { ...contract, controls }
  const isUseless = controls.every(each => each.sentence !== sentence || (each.result !== null && !controlCounts(each)))
  return isUseless ? gaveNoControl(next, sentence) : next
}

function drafted(contract: ContractState, event: EventOf<'contract-drafted'>): ContractState {
  const { version, by, sentences, uncovered } = event
  const sentence = event.sentence ?? null
  const isReturn = by === 'author' && sentence === null && contract.draft !== null && contract.change === null
  const refused = refusedSince(contract, { by, sentences })
  return {
    ...contract,
    versions: version,
    refused,
    draft: {
      ...{ version, by, sentence, sentences, runs: [] },
      uncovered: uncovered.filter(piece => !refused.some(({ quote }) => quote.includes(piece))),
    },
    returns: isReturn ? contract.returns + 1 : contract.change === null ? contract.returns : 0,
    refusals: 0,
    problem: null,
    change: null,
    // A person who edits the contract wants one.
    left: by === 'person' ? null : contract.left,
    seconds: sentence === null ? contract.seconds : [...contract.seconds, sentence],
  }
}

function frozen(contract: ContractState, { by, heldOut }: EventOf<'contract-frozen'>): ContractState {
  const { draft } = contract
  if (draft === null) return contract
  const { runs, sentence, ...rest } = draft
  // Only one check is new; the others' results are known.
  const isMore = sentence !== null && contract.frozen !== null
  const next: ContractState = {
    ...contract,
    draft: null,
    returns: 0,
    behind: isMore ? contract.behind : null,
    acceptedBy: by,
    frozen: { ...rest, before: isMore ? (contract.frozen?.before ?? []) : runs, heldOut },
    runs: isMore ? [...contract.runs, ...runs] : runs,
    controls: isMore ? contract.controls : [],
    asked: isMore ? contract.asked : [],
    seconds: isMore ? contract.seconds : [],
  }
  const held = sentencesOf(next).filter(({ state }) => HOLDS.has(state))
  return isMore ? next : { ...next, held: held.map(({ id }) => id) }
}

function endCheck(state: SessionState, event: EventOf<'check-ended'>): SessionState {
  // A stopped check proves nothing, and runs again.
  if (state.contract === null || event.status === 'broken-off') return { ...state, checking: null }
  const { type: _, ...ran } = event
  const { contract } = state
  const { sentence, check, status, when } = ran
  const wasFlaky = runOf(contract.runs, sentence, check)?.isFlaky === true
  const run: CheckRun = { ...ran, isFlaky: wasFlaky || status === 'flaky' }
  if (when === 'before' || when === 'second') {
    const { draft } = contract
    return withContract(state, () => ({
      ...contract,
      draft: draft && { ...draft, runs: withRun(draft.runs, run) },
    }))
  }
  const isStale = when === 'claim' && contract.controls.some(({ tree }) => tree !== event.tree)
  const after: ContractState = {
    ...contract,
    runs: withRun(contract.runs, run),
    tree: event.tree,
    ...(isStale ? { controls: [], asked: [] } : {}),
  }
  const now = sentencesOf(after).find(({ id }) => id === event.sentence)
  const holds = now !== undefined && HOLDS.has(now.state)
  const next = withContract(state, () => ({
    ...after,
    held: holds ? [...new Set([...contract.held, event.sentence])] : contract.held.filter(id => id !== event.sentence),
  }))
  const isLost = when === 'after-round' && contract.held.includes(event.sentence) && !hasPassed(event.status)
  return isLost && now !== undefined ? withNotice(next, sentenceNotice(wordsForFailed(now, after.runs))) : next
}

function withRun(runs: readonly CheckRun[], run: CheckRun): readonly CheckRun[] {
  return [...runs.filter(each => each.sentence !== run.sentence || each.check !== run.check), run]
}
