import type { EventOf, SessionEvent } from '../events/events.ts'
import type { Gate } from '../events/outcome.ts'
import type { Notice } from '../rules/notices.ts'
import { NO_REVIEWS } from '../rules/review.ts'
import { NO_STALL } from '../rules/stall.ts'
import { reviewsAtResume } from './fold-claim.ts'
import { type GivenUpScope, type Scope, SET_ASIDE, type SessionState, type SetAside } from './state.ts'

/** Start values in a scope, instead of the fields that are set aside. */
const AT_ENTRY = {
  review: null,
  before: [],
  gateRuns: [],
  gateFailures: [],
  flakyGates: [],
  testCounts: [],
  counterProofs: [],
  reviews: NO_REVIEWS,
  gateConfiguration: null,
  protectedChanged: [],
  hasChangedFiles: false,
  toldNothingDone: false,
  claim: { state: 'none' },
  stall: NO_STALL,
} as const satisfies Omit<SetAside, 'gates'>

/** More scopes than any useful session has. */
const MOST_GIVEN_UP = 1_000

/** Returns the session in a scope; leaves an open scope first. Pure. */
export function enterScope(before: SessionState, event: EventOf<'scope-entered'>): SessionState {
  const state = leaveScope(before, 'given-up')
  const { name, goal, gates, tree, protectFrom, programs } = event
  const notices = state.notices.filter(isOfProof)
  const session = { ...setAside(state), claim: AT_ENTRY.claim, stall: AT_ENTRY.stall, notices }
  return {
    ...state,
    ...AT_ENTRY,
    gateConfiguration: programs === undefined ? null : { files: [], count: 0, digest: null, programs },
    gates,
    notices: state.notices.filter(notice => !isOfProof(notice)),
    scope: { name, goal, rounds: 0, tree, since: protectFrom ?? tree, replayed: false, session },
  }
}

/** Returns the session after it left its scope, done or not. Its own claims are proved as before; none is open. Pure. */
export function leaveScope(state: SessionState, outcome: EventOf<'scope-left'>['outcome']): SessionState {
  const { scope } = state
  if (scope === null) return state
  const { notices, ...own } = scope.session
  return {
    ...state,
    ...own,
    claim: AT_ENTRY.claim,
    hasChangedFiles: own.hasChangedFiles || state.hasChangedFiles,
    notices: [...notices, ...state.notices.filter(notice => !isOfProof(notice))],
    givenUp: outcome === 'done' ? state.givenUp.filter(each => each.name !== scope.name) : givenUpAfter(state, scope),
    scope: null,
  }
}

function givenUpAfter(state: SessionState, { name, since: tree }: Scope): readonly GivenUpScope[] {
  const { givenUp, gateConfiguration } = state
  if (!hasChangedProof(state) || givenUp.some(each => each.name === name)) return givenUp
  return [...givenUp, { name, tree, programs: gateConfiguration?.programs ?? null }].slice(0, MOST_GIVEN_UP)
}

/** Returns true if files were changed that gates protect or use. Pure. */
export function hasChangedProof(state: Pick<SessionState, 'protectedChanged' | 'gateConfiguration'>): boolean {
  return state.protectedChanged.length > 0 || (state.gateConfiguration?.count ?? 0) > 0
}

/** Returns an older base of comparison for a scope of this name; null: its own start. Pure. */
export function agreedBefore(
  { givenUp, protectFrom }: Pick<SessionState, 'givenUp' | 'protectFrom'>,
  name: string,
): Omit<GivenUpScope, 'name'> | null {
  const known = givenUp.find(each => each.name === name) ?? givenUp[0]
  return known ?? (protectFrom === null ? null : { tree: protectFrom, programs: null })
}

/** Returns the session as if outside of a scope: with its own gates, reviews and claim. Pure. */
export function withoutScope(state: SessionState): SessionState {
  const { scope } = state
  if (scope === null) return state
  const { notices: _, ...own } = scope.session
  return { ...state, ...own, scope: null }
}

/**
 * Folds one event. Events of the session itself do not change its current scope; events of another scope change nothing.
 * Pure.
 */
export function foldInScope(
  state: SessionState,
  event: SessionEvent,
  fold: (session: SessionState) => SessionState,
): SessionState {
  const { scope } = state
  const of = scopeOf(event)
  if (typeof of === 'string' && of !== scope?.name) return state
  if (scope === null) return fold(state)
  if (of === null) return foldOutside(state, scope, fold)
  const after = fold(state)
  return { ...after, scope: after.scope === scope ? scopeAfter(scope, event) : after.scope }
}

/** Returns the gates of the session and of its current scope. Pure. */
export function gatesOfAll(state: SessionState): readonly Gate[] {
  return state.scope === null ? state.gates : [...state.scope.session.gates, ...state.gates]
}

/** Folds an event of the session itself while it is in a scope. */
function foldOutside(state: SessionState, scope: Scope, fold: (session: SessionState) => SessionState): SessionState {
  const after = fold(withoutScope(state))
  return { ...after, ...setAside(state), scope: { ...scope, session: { ...scope.session, ...setAside(after) } } }
}

/** Returns an event's scope: its name; null: the session itself; undefined: the current one. */
function scopeOf(event: SessionEvent): string | null | undefined {
  switch (event.type) {
    case 'gate-ended':
    case 'protected-changed':
    case 'gate-configuration':
      return event.scope ?? null
    case 'gate-started':
    case 'counter-proof':
    case 'done-nominated':
    case 'review-started':
    case 'review-ended':
    case 'done-refused':
    case 'done-accepted':
      return event.scope
    default:
      return undefined
  }
}

/** Returns the scope field of an event; empty: the session itself. */
export function inScope({ scope }: Pick<SessionState, 'scope'>): { scope?: string } {
  return scope === null ? {} : { scope: scope.name }
}

/** Returns the gates and reviews of a resumed session; new ones apply to the session, not to its scope. Pure. */
export function gatesAtResume(
  state: SessionState,
  event: EventOf<'session-resumed'>,
): Pick<SessionState, 'gates' | 'addedGates' | 'review' | 'scope'> {
  const { scope } = state
  const own = withoutScope(state)
  const { gates, addedGates } = withAdded(event.gates ?? gatesOfPerson(own), own.addedGates)
  const review = event.review === undefined ? own.review : event.review
  if (scope === null) return { gates, addedGates, review, scope }
  const reviews = reviewsAtResume(own)
  return {
    gates: state.gates,
    addedGates,
    review: state.review,
    scope: { ...scope, session: { ...scope.session, gates, review, reviews } },
  }
}

/** Returns the gates that no template added. Pure. */
export function gatesOfPerson({ gates, addedGates }: Pick<SessionState, 'gates' | 'addedGates'>): readonly Gate[] {
  return gates.filter(({ name }) => !addedGates.some(added => added.name === name))
}

/** Replaces all gates that the template added; new ones have not run yet. Pure. */
export function addGates(state: SessionState, wanted: readonly Gate[]): SessionState {
  const next = withAdded(gatesOfPerson(state), wanted)
  const isAsBefore = ({ name, run }: Gate) => state.gates.some(gate => gate.name === name && gate.run === run)
  const known = new Set(next.gates.filter(isAsBefore).map(({ name }) => name))
  return {
    ...state,
    ...next,
    before: state.before.filter(({ gate }) => known.has(gate)),
    gateRuns: state.gateRuns.filter(({ gate }) => known.has(gate)),
    flakyGates: state.flakyGates.filter(gate => known.has(gate)),
  }
}

/** Appends the added gates whose commands are new, each with a unique name. */
function withAdded(gates: readonly Gate[], wanted: readonly Gate[]): Pick<SessionState, 'gates' | 'addedGates'> {
  const all = [...gates]
  for (const gate of wanted) {
    if (all.some(({ run }) => run === gate.run)) continue
    const names = new Set(all.map(({ name }) => name))
    let name = gate.name
    for (let n = 2; names.has(name); n++) name = `${gate.name} (${n})`
    all.push(name === gate.name ? gate : { ...gate, name })
  }
  return { gates: all, addedGates: all.slice(gates.length) }
}

function scopeAfter(scope: Scope, event: SessionEvent): Scope {
  if (event.type === 'round-started' && event.replayed === true) return { ...scope, replayed: true }
  if (event.type === 'round-ended' && event.counts) return { ...scope, rounds: scope.rounds + 1 }
  return scope
}

function setAside(state: SessionState): SetAside {
  return Object.fromEntries(SET_ASIDE.map(key => [key, state[key]])) as SetAside
}

/** Returns true for a notice about a claim, a gate or a lack of progress: it belongs to the scope or the session alone. */
function isOfProof(notice: Notice): boolean {
  return notice.from === 'gate' || notice.isOfProof === true
}
