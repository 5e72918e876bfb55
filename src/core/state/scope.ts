import type { EventOf, SessionEvent } from '../events/events.ts'
import type { Gate } from '../events/outcome.ts'
import type { Notice } from '../rules/notices.ts'
import { NO_REVIEWS } from '../rules/review.ts'
import { NO_STALL } from '../rules/stall.ts'
import { reviewsAtResume } from './fold-claim.ts'
import { type GivenUpScope, type Scope, SET_ASIDE, type SessionState, type SetAside } from './state.ts'

/** What a session begins with in a scope in the place of what is set aside. */
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

/** More scopes than a session has that does anything else. */
const MOST_GIVEN_UP = 1_000

/** The session in a scope. One that it is in already is left first. Pure. */
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

/** The session once it has left its scope, done or not: its own claims are proved as before, and none is made. Pure. */
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

/** Whether files were changed that gates protect or run through. Pure. */
export function hasChangedProof(state: Pick<SessionState, 'protectedChanged' | 'gateConfiguration'>): boolean {
  return state.protectedChanged.length > 0 || (state.gateConfiguration?.count ?? 0) > 0
}

/** What a scope of this name is compared with, if that is older than what it begins with; null: it is not. Pure. */
export function agreedBefore(
  { givenUp, protectFrom }: Pick<SessionState, 'givenUp' | 'protectFrom'>,
  name: string,
): Omit<GivenUpScope, 'name'> | null {
  const known = givenUp.find(each => each.name === name) ?? givenUp[0]
  return known ?? (protectFrom === null ? null : { tree: protectFrom, programs: null })
}

/** The session as though it were in no scope: with its own gates, reviews and claim. Pure. */
export function withoutScope(state: SessionState): SessionState {
  const { scope } = state
  if (scope === null) return state
  const { notices: _, ...own } = scope.session
  return { ...state, ...own, scope: null }
}

/**
 * The session after one more event, as `fold` has it: what is of the session itself does not touch the scope that it is in, and
 * what is of another scope changes nothing. Pure.
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

/** What has to pass in the scope that a session is in, and what has to pass before the session is done. Pure. */
export function gatesOfAll(state: SessionState): readonly Gate[] {
  return state.scope === null ? state.gates : [...state.scope.session.gates, ...state.gates]
}

/** The session after a fold that is of itself, though it is in a scope. */
function foldOutside(state: SessionState, scope: Scope, fold: (session: SessionState) => SessionState): SessionState {
  const after = fold(withoutScope(state))
  return { ...after, ...setAside(state), scope: { ...scope, session: { ...scope.session, ...setAside(after) } } }
}

/** Which scope an event is of: its name; null: of the session itself; undefined: of whatever the session is in. */
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

/** The field of an event that says which scope it is of; none for the session itself. */
export function inScope({ scope }: Pick<SessionState, 'scope'>): { scope?: string } {
  return scope === null ? {} : { scope: scope.name }
}

/** The gates and reviews of a session that goes on: those that are named now are its own, not those of its scope. Pure. */
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

/** The gates of a session that no template has added. Pure. */
export function gatesOfPerson({ gates, addedGates }: Pick<SessionState, 'gates' | 'addedGates'>): readonly Gate[] {
  return gates.filter(({ name }) => !addedGates.some(added => added.name === name))
}

/** The session with these gates in the place of all that the template has added; what is new has not run yet. Pure. */
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

/** Those gates, and behind them the added ones with other commands, each by a name of its own. */
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

/** Whether a notice is of a claim or a gate, or of rounds that get nowhere: of the scope alone, or of the session alone. */
function isOfProof(notice: Notice): boolean {
  return notice.from === 'gate' || notice.isOfProof === true
}
