import type { EventOf } from '../../../core/events/events.ts'
import { PLAN_DECISION } from '../../../core/state/plan.ts'
import type { SessionState } from '../../../core/state/state.ts'
import type { Step } from '../../../core/template.ts'
import { CHOICES, planDecision } from '../plan-decision.ts'
import type { AcceptedPlan, ChangeState, ChangeWork, FileHashes } from '../work.ts'
import {
  aheadInMaking,
  beginAgain,
  foldMaking,
  hashesOf,
  LOOKS,
  lastVersion,
  MOST_VERSIONS,
  nextInMaking,
  planRound,
  withFiled,
  withoutDraft,
  withPlanning,
} from './planning.ts'

/** A new version: the session's options say whether a person looks at it. */
export const userReview: ChangeState = {
  process({ options, planning }) {
    if (planning.isGo) return { to: AUTO, why: 'the person accepted the changed plan in advance' }
    return options.review === 'auto'
      ? { to: AUTO, why: 'plans are accepted automatically (--auto)' }
      : {
          to: 'REVIEWING_PLAN.manual-review',
          why: `version ${lastVersion(planning).version} waits for a person to accept it`,
        }
  },
}

const AUTO = 'REVIEWING_PLAN.auto-accepted'

/** Nobody is asked, so nothing that the plan names counts as proof. */
export const autoAccepted: ChangeState = {
  enter: own => withAccepted(own, own.planning.isGo ? 'go' : 'auto', null),
  fold: foldAccepted,
  process: processAccepted,
  ahead: (own, _, parts) => (own.options.planOnly ? null : parts.thread('decomposer', 'planner')),
}

/** A person looks at the version, and decides. */
export const manualReview: ChangeState = {
  enter: own => withPlanning(own, { accepting: null, changedFiles: null, toldFiles: null }),
  fold(own, event) {
    if (event.type === 'decision-made') return event.id === PLAN_DECISION ? decided(own, event) : own
    return event.type === 'looked' && event.what === LOOKS.files ? afterLook(own, hashesOf(event.result)) : own
  },
  process(own, session, parts) {
    const { accepting, feedback, reading, isStopped } = own.planning
    if (isStopped) return { step: { kind: 'end', outcome: { kind: 'interrupted', by: 'stop' } } }
    if (reading !== null) return { to: 'REVIEWING_PLAN.rejected', why: 'edited by the person' }
    if (feedback !== null) return { to: 'REVIEWING_PLAN.rejected', why: 'the person wants another plan' }
    if (accepting === null) return { step: { kind: 'decide', decision: planDecision(own, session, parts) } }
    if (!accepting.isSame) return { step: { kind: 'look', what: LOOKS.files } }
    return { to: 'REVIEWING_PLAN.accepted', why: `the person accepts version ${lastVersion(own.planning).version}` }
  },
}

/** A person accepted the version: its verification commands count as proof. */
export const accepted: ChangeState = {
  enter: own => withAccepted(own, 'person', own.planning.accepting?.remark ?? null),
  fold: foldAccepted,
  process: processAccepted,
  ahead: (own, _, parts) => (own.options.planOnly ? null : parts.thread('decomposer', 'planner')),
}

/** A person wants another plan. */
export const rejected: ChangeState = {
  process({ planning: { reading } }) {
    const why = reading === null ? 'the planner makes another plan, as the person asked' : 'the edited plan is read'
    return { to: 'REVIEWING_PLAN.refinement', why }
  },
}

/** The planner makes the next version, or a person's edit becomes it. */
export const refinement: ChangeState = {
  enter: own => withPlanning(own, beginAgain(own.planning)),
  exit: withoutDraft,
  fold: foldMaking,
  process(own, session, parts) {
    const making = nextInMaking(own, session)
    if (making !== null) return making
    const { planning } = own
    if (planning.feedback !== null) return { step: planRound(own, session, parts) }
    const why = planning.problem ?? `version ${lastVersion(planning).version} is there`
    return { to: 'REVIEWING_PLAN.user-review', why }
  },
  ahead: aheadInMaking,
}

function decided(own: ChangeWork, { choice, text }: EventOf<'decision-made'>): ChangeWork {
  const { changedFiles, versions } = own.planning
  // A change may also be requested at other doors.
  const hasRoom = versions.length < MOST_VERSIONS
  switch (choice) {
    case CHOICES.accept:
      return withPlanning(own, { accepting: { remark: text?.trim() ? text : null, isSame: false } })
    case CHOICES.change:
      return withPlanning(own, hasRoom ? { feedback: text } : { wanted: { text: text ?? '', isGo: false } })
    case CHOICES.again:
      return withPlanning(own, { feedback: planAgain(changedFiles ?? []) })
    case CHOICES.edit:
      return withPlanning(own, { reading: 'edited' })
    default:
      return withPlanning(own, { isStopped: true })
  }
}

function planAgain(files: readonly string[]): string {
  return `Files that the plan names were changed after it was made: ${files.join(', ')}. Read them again, and make the plan fit what is there now.`
}

/** Checks an acceptance against the files that the person knows: those of the plan, or those that they heard about. */
function afterLook(own: ChangeWork, now: FileHashes): ChangeWork {
  const { accepting, toldFiles } = own.planning
  if (accepting === null) return own
  const { files } = lastVersion(own.planning)
  const differing = (from: FileHashes) =>
    Object.keys(files).filter(path => (from[path] ?? null) !== (now[path] ?? null))
  if (differing(toldFiles ?? files).length === 0)
    return withPlanning(own, { accepting: { ...accepting, isSame: true } })
  const changed = differing(files)
  return withPlanning(own, {
    accepting: null,
    changedFiles: changed.length === 0 ? null : changed,
    toldFiles: now,
  })
}

function withAccepted(own: ChangeWork, by: AcceptedPlan['by'], remark: string | null): ChangeWork {
  const { version, sha256 } = lastVersion(own.planning)
  return withPlanning(own, {
    accepted: { version, sha256, by, remark, hasGates: false },
    accepting: null,
    changedFiles: null,
    toldFiles: null,
    isGo: false,
    // An edited but refused file gets the version's text again.
    ...(own.planning.problem === null ? {} : { filed: version - 1 }),
    problem: null,
  })
}

function foldAccepted(own: ChangeWork, event: Parameters<NonNullable<ChangeState['fold']>>[1]): ChangeWork {
  const { accepted } = own.planning
  if (event.type === 'kept') return withFiled(own, event)
  if (event.type !== 'gates-added' || accepted === null) return own
  return withPlanning(own, { accepted: { ...accepted, hasGates: true }, addsGates: event.gates.length > 0 })
}

function processAccepted(own: ChangeWork, session: SessionState): ReturnType<ChangeState['process']> {
  const { planning, options } = own
  const making = nextInMaking(own, session)
  if (making !== null) return making
  if (options.planOnly) return { step: { kind: 'end', outcome: { kind: 'planned' } } }
  const gates = planning.accepted?.hasGates ? null : gatesOf(own)
  if (gates !== null) return { step: gates }
  return { to: 'EXECUTING_TASKS.decomposition', why: `version ${lastVersion(planning).version} is carried out` }
}

/** A plan's command runs at most as long as a gate without a timeout, ms. */
const GATE_MS = 10 * 60_000

/** Returns the commands of a person's accepted plan, which replace those of an earlier version; null: no change. */
function gatesOf({ planning }: ChangeWork): Step | null {
  const { plan, version } = lastVersion(planning)
  const isSeen = planning.accepted?.by === 'person'
  const runs = isSeen ? [...new Set(plan.verification.map(({ run }) => run))] : []
  if (runs.length === 0 && !planning.addsGates) return null
  const why = isSeen
    ? `the person accepted them with version ${version} of the plan`
    : 'nobody has seen the commands of the plan'
  return { kind: 'gates', gates: runs.map(run => ({ name: run, run, timeoutMs: GATE_MS })), why }
}
