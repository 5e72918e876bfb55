import * as v from 'valibot'
import type { EventOf, SessionEvent } from '../../core/events/events.ts'
import type { PartKind, SessionState } from '../../core/state/state.ts'
import type { TemplateKind } from '../../core/template.ts'
import { executionAtResume } from './execution/fold.ts'
import { hasWorkLeft, MOST_ROUNDS, NO_EXECUTION } from './execution/queue.ts'
import { NO_ROOM, NO_ROOM_TEXT, STATES } from './machine.ts'
import { MOST_VERSIONS, NO_PLANNING, withPlanning, withWanted } from './states/planning.ts'
import { changeView } from './view.ts'
import type { ChangeOptions, ChangePart, ChangeWork, StateName } from './work.ts'

/** A round of a change. Only the template claims done. A round that only looks may change nothing. */
const WORKS: PartKind = {
  words: '',
  claims: false,
  free: false,
  countsForStall: false,
  delegates: false,
  keepsWords: 400,
  // Views already show the plan, the tasks and each task's output.
  tellsAnswer: true,
}

const PARTS = {
  plan: { ...WORKS, words: 'planning' },
  decompose: { ...WORKS, words: 'cutting the plan into tasks' },
  gather: { ...WORKS, words: 'looking something up' },
  act: { ...WORKS, words: 'working on a task' },
  // The next attempt gets its words.
  fix: { ...WORKS, words: 'mending', keepsWords: 2_000 },
  // The summary must be complete.
  summary: { ...WORKS, words: 'summary', free: true, keepsWords: 15_000 },
} satisfies Record<ChangePart, PartKind>

/** Default number of attempts to fix one verification. */
const FIX_ATTEMPTS = 5

/** Options of a change; left out: the defaults of the settings. */
const changeOptions = v.object({
  review: v.optional(v.picklist(['manual', 'auto']), 'manual'),
  planOnly: v.optional(v.boolean(), false),
  fixAttempts: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(10)), FIX_ATTEMPTS),
  executor: v.optional(
    v.nullable(
      v.object({
        provider: v.string(),
        model: v.nullable(v.string()),
        contextWindow: v.nullable(v.number()),
        isLocal: v.exactOptional(v.boolean()),
      }),
    ),
    null,
  ),
  executorEngine: v.exactOptional(v.string()),
  planner: v.optional(
    v.object({
      model: v.nullable(v.string()),
      effort: v.nullable(v.string()),
      engine: v.exactOptional(v.string()),
    }),
    { model: null, effort: null },
  ),
})

const FIRST_STATE: StateName = 'WAITING_FOR_INPUT'

/** The `change` template: one change, from request to proof. */
export const changeKind: TemplateKind<ChangeWork> = {
  name: 'change',
  description: 'one change: planned, accepted, carried out task by task, and proved',
  command: 'codemachine change "…"',
  defaultRounds: () => MOST_ROUNDS,
  parts: PARTS,
  hasPlan: false,
  memory: 'session',
  proves: true,
  replansItself: true,
  isSummedUp: (own, session) =>
    session.claim.state === 'accepted' || (own.state === 'GENERATING_SUMMARY' && !hasWorkLeft(own, session)),
  refusesReplan: ({ planning }) => (planning.versions.length < MOST_VERSIONS ? null : NO_ROOM_TEXT),
  addsGates: true,
  hasPlainState: true,
  firstState: FIRST_STATE,
  mendsClaims: true,
  needsRequest: true,
  options: changeOptions,
  first: firstWork,
  fold: foldChange,
  view: changeView,
  open: async setup => await (await import('./effects.ts')).openChange(setup),
}

function firstWork({ goal, options }: EventOf<'session-created'>): ChangeWork {
  return {
    options: optionsOf(options),
    request: goal,
    state: FIRST_STATE,
    context: null,
    planning: NO_PLANNING,
    execution: NO_EXECUTION,
    summary: null,
    words: null,
    outcome: null,
  }
}

/** Throws for options of another version that this one cannot use. */
function optionsOf(options: unknown): ChangeOptions {
  return v.parse(changeOptions, options ?? {})
}

function foldChange(own: ChangeWork, event: SessionEvent, session: SessionState): ChangeWork {
  switch (event.type) {
    case 'session-resumed':
      return resumed(own, session)
    case 'replan-asked':
      return withWanted(own, event)
    case 'state-entered':
      return entered(own, event, session)
    default: {
      const isNoRoom = event.type === 'noted' && event.name === NO_ROOM
      if (isNoRoom) return withPlanning(own, { wanted: null })
      return STATES[own.state].state.fold?.(own, event, session) ?? own
    }
  }
}

/** Throws for a state of another version: this one cannot resume such a session. */
function entered(own: ChangeWork, { state: to }: EventOf<'state-entered'>, session: SessionState): ChangeWork {
  if (!isStateName(to)) throw new Error(`There is no state ${to.slice(0, 100)}.`)
  const left = STATES[own.state].state.exit?.(own, session) ?? own
  const next = STATES[to].state.enter?.(left, session) ?? left
  return { ...next, state: to }
}

function isStateName(name: string): name is StateName {
  return Object.hasOwn(STATES, name)
}

/** A person who resumes an ended session has seen why it ended. */
function resumed(own: ChangeWork, { ended }: SessionState): ChangeWork {
  if (ended === null) return own
  const { options, planning } = own
  return {
    ...executionAtResume(own, ended.outcome),
    // Now carry out the accepted plan.
    options: ended.outcome.kind === 'planned' ? { ...options, planOnly: false } : options,
    planning: { ...planning, refusals: 0, isRefused: false, isStopped: false },
  }
}
