import { unreachable } from '../../base/errors.ts'
import { asSentence } from '../../base/text.ts'
import type { StallRemedy } from '../../core/events/events.ts'
import type {
  RoundOutcome,
  SessionLimits,
  SessionOutcome,
  UsageWindow,
  WaitReason,
  WindDownLimit,
} from '../../core/events/outcome.ts'
import { countContract, type SentenceNow, sentencesOf } from '../../core/rules/contract.ts'
import type { Cost } from '../../core/rules/cost.ts'
import type { Decision, HoldEnd, OpenDecision } from '../../core/rules/decision.ts'
import { refusalForPerson } from '../../core/rules/refusals.ts'
import type { Adopted } from '../../core/shapes/conversation.ts'
import type { HookMoment } from '../../core/shapes/hook.ts'
import type { PlanTask, TaskBoard, TaskPlan } from '../../core/state/plan.ts'
import { withoutScope } from '../../core/state/scope.ts'
import {
  type Claim,
  fromSource,
  type GateRun,
  type PlanStep,
  type SessionState,
  type SessionStatus,
} from '../../core/state/state.ts'
import { CODEX_LOGIN } from '../../core/state/usage.ts'
import { wordsForAdopted } from './adopted.ts'
import { wordsForContract } from './contract.ts'
import { wordsForDeciding } from './decision.ts'
import { describePlan } from './item.ts'
import { SHELL_HINTS, type StateHints, withRest } from './names.ts'
import { formatClock, formatCount, formatCountdown, formatMoment, formatSpan, formatTokens } from './numbers.ts'
import {
  type Activity,
  describeOutcome,
  wordsForCost,
  wordsForForecast,
  wordsForHoldEnd,
  wordsForRemedy,
  wordsForStall,
  wordsForTimeUsed,
  wordsForTokensUsed,
  wordsForWait,
  wordsForWindDown,
} from './outcome.ts'
import { isPlanShown, requestInWords } from './plan.ts'
import { gateName, wordsForGate, wordsForGateTime, wordsForQuestions, wordsForReview } from './proof.ts'
import { oneLine, titleLine } from './safe-text.ts'
import type { WorkReport } from './work.ts'

const GOAL_CHARS = 200
const TEXT_CHARS = 500
const WARNING_CHARS = 2000
const NAME_CHARS = 120
const MOST_GATES = 10

/** Formats a report for a person, line by line. `now` is Unix time, ms. Pure. */
export function statusLines(report: StatusReport, now: number): string[] {
  const { session, sessions, queued, elsewhere } = report
  const none = sessions === 0 ? 'No sessions yet.' : 'No session can be read.'
  return [
    whoRuns(report, now),
    ...(session === null ? [none] : sessionLines(session, now)),
    labelled('queue', queued === 0 ? 'empty' : `${formatCount(queued, 'prompt')} waiting`),
    ...elsewhereLines(elsewhere, now),
  ]
}

/** Returns a line for each other place with sessions or a queue. */
function elsewhereLines(elsewhere: readonly PlaceReport[], now: number): string[] {
  const shown = elsewhere.filter(({ session, queued }) => session !== null || queued > 0)
  const names = shown.map(({ worktree }) => worktree ?? '(checkout)')
  const width = Math.max(...names.map(name => name.length))
  const lines = shown.map(({ session, queued }, at) => {
    const waiting = queued === 0 ? '' : `; ${formatCount(queued, 'prompt')} waiting`
    const state = session?.outcome ? describeOutcome(session.outcome).short : session && stateInWords(session, now)
    const words = session && `${session.id}  ${state}, ${howFar(session)}${waiting}: `
    return `  ${names[at]?.padEnd(width)}  ${words ?? waiting.slice(2)}${titleLine(session?.goal ?? '', NAME_CHARS)}`
  })
  return lines.length === 0 ? [] : ['Elsewhere in this repository:', ...lines]
}

function whoRuns({ directory, worktree, runner }: StatusReport, now: number): string {
  const where = `${worktree === null ? '' : `the worktree ${worktree}, `}${oneLine(directory, TEXT_CHARS)}`
  if (runner === 'unknown') return `Cannot tell if codemachine runs in ${where}.`
  if (runner === null) return `Nothing runs in ${where}.`
  const since = formatMoment(Date.parse(runner.since), now)
  return `codemachine runs in ${where} (pid ${runner.pid} on ${oneLine(runner.host, 80)}, since ${since}).`
}

function sessionLines(session: SessionReport, now: number): string[] {
  const { activity, claim, tasks, last, plan, limits, stall, keptAwake, waiting, build } = session
  // Its state already says that it began to wait.
  const isWait = activity === 'waiting' && last?.at === waiting?.since
  const facts = [
    howFar(session),
    wordsForTimeUsed(session.elapsedMs, limits),
    wordsForTokensUsed(session.tokens, limits),
    ...(session.cost === null ? [] : [wordsForCost(session.cost, limits)]),
    ...Object.entries(session.providerTokens).map(
      ([name, tokens]) => `${formatTokens(tokens)} of ${oneLine(name, NAME_CHARS)}`,
    ),
  ]
  return [
    labelled('session', `${session.id}  ${titleLine(session.goal, GOAL_CHARS)}`),
    labelled('state', stateInWords(session, now)),
    ...waitLines(session, now),
    labelled('so far', facts.join(', ')),
    ...(session.adopted === null ? [] : [labelled('from', wordsForAdopted(session.adopted, now))]),
    ...modelLines(session),
    ...(last && !isWait
      ? [labelled('last', `${formatMoment(Date.parse(last.at), now)}  ${oneLine(last.text, TEXT_CHARS)}`)]
      : []),
    ...(stall.remedy === null ? [] : [labelled('stuck', stallInWords(stall, stall.remedy))]),
    ...(plan.length === 0 ? [] : [labelled('plan', describePlan(plan))]),
    ...workLines(session.work, now),
    ...(tasks === null ? [] : [labelled('tasks', tasksInWords(tasks))]),
    ...(build === null ? [] : buildStatusLines(build, now).map(([label, text]) => labelled(label, text))),
    ...(claim.state === 'refused'
      ? [labelled('claim', `not accepted: ${oneLine(refusalForPerson(claim).fact, TEXT_CHARS)}`)]
      : []),
    ...proofLines(session),
    ...windowLines([session.primaryWindow, session.secondaryWindow], now),
    ...(session.forecast === null
      ? []
      : [labelled('ahead', wordsForForecast({ ...session.forecast, until: Date.parse(session.forecast.until) }, now))]),
    ...(keptAwake === null ? [] : [labelled('awake', `by ${oneLine(keptAwake, TEXT_CHARS)}`)]),
    ...session.warnings.map(warning => labelled('warned', oneLine(warning, WARNING_CHARS))),
  ]
}

function tasksInWords({ done, total, current }: NonNullable<SessionReport['tasks']>): string {
  const counted = `${done} of ${total} done`
  if (current === null) return counted
  const [id, name, phase] = [current.id, current.name, current.phase ?? ''].map(text => oneLine(text, NAME_CHARS))
  return `${counted}; ${id} ${name}${phase === '' ? '' : `, ${phase}`}`
}

/** Returns the template's own lines: its progress, and the rows of its board that are neither done nor to do. */
function workLines({ status, board }: WorkReport, now: number): string[] {
  const rows = board?.from === 'template' ? board.rows.filter(({ mark }) => mark !== 'done' && mark !== 'to-do') : []
  const shown = rows.slice(0, MOST_ROWS).map(row => rowInWords(row, now))
  return [
    ...(status === null ? [] : [labelled('work', oneLine(status, NAME_CHARS))]),
    ...withRest(shown, rows.length).map(row => labelled('board', row)),
  ]
}

/** `now: s2 compile (builder, for 12 min)`. */
function rowInWords(
  { mark, id, text, who, since }: NonNullable<WorkReport['board']>['rows'][number],
  now: number,
): string {
  const by = [
    ...(who === null ? [] : [line(who)]),
    ...(since === null ? [] : [`for ${formatSpan(Math.max(0, now - Date.parse(since)))}`]),
  ]
  return `${mark}: ${line(id)} ${oneLine(text, REQUEST_CHARS)}${by.length === 0 ? '' : ` (${by.join(', ')})`}`
}

function modelLines({ model, effort, provider, engine }: SessionReport): string[] {
  const source = provider ?? (engine === CODEX_LOGIN ? null : engine)
  const words = [model, effort, fromSource(model, source)]
    .filter(word => word !== null)
    .map(word => oneLine(word, NAME_CHARS))
  return words.length === 0 ? [] : [labelled('model', words.join(' '))]
}

/** Returns the lines on its proof: the gates with their last results, reviews, the savepoint, and questions. */
function proofLines({ gates, scope, reviews, contract, savepoint, questions }: SessionReport): string[] {
  const asked = wordsForQuestions(questions)
  return [
    ...(gates.length === 0 ? [] : [labelled('gates', wordsForResults(gates))]),
    ...(scope === null ? [] : [labelled('step', wordsForScope(scope))]),
    ...(contract === null ? [] : [labelled('proof', oneLine(contract.words, TEXT_CHARS))]),
    ...(reviews.answered === 0 ? [] : [labelled('review', wordsForReviews(reviews))]),
    ...(savepoint === null ? [] : [labelled('kept', wordsForSavepoint(savepoint))]),
    ...(asked === null ? [] : [labelled('asked', asked)]),
  ]
}

/** `fix, runs until it is done, 3 rounds; npm test failed (exit code 1)`. */
function wordsForScope({ name, rounds, gates }: NonNullable<SessionReport['scope']>): string {
  const words = `${oneLine(name, NAME_CHARS)}, runs until it is done, ${formatCount(rounds, 'round')}`
  return gates.length === 0 ? words : `${words}; ${wordsForResults(gates)}`
}

function wordsForResults(gates: SessionReport['gates']): string {
  const shown = gates.slice(0, MOST_GATES).map(({ name, required, last }) => {
    const time = last === null ? null : wordsForGateTime(last.when, last.round)
    const how = last === null ? 'not run yet' : `${wordsForGate(last)}${time === null ? '' : ` ${time}`}`
    return `${gateName(name)} ${how}${required ? '' : ' (not required)'}`
  })
  return withRest(shown, gates.length).join(', ')
}

function wordsForReviews({ answered, agreedTo, findings, repeated }: SessionReport['reviews']): string {
  const verdict = agreedTo === null ? 'findings' : 'agreed'
  return wordsForReview({ review: answered, verdict, findings, repeated })
}

function wordsForSavepoint({ round, commit }: NonNullable<SessionReport['savepoint']>): string {
  const when = round === 0 ? 'as it was before round 1' : `as it was after round ${round}`
  return `the work ${when} (savepoint ${oneLine(commit.slice(0, 12), NAME_CHARS)}); codemachine savepoints`
}

/**
 * Describes a session in an overview at the time `now` (Unix time, ms): its progress (`facts`), its present or future wait,
 * the rounds before that (`ahead`), and its last words. Empty text: nothing to say. Pure.
 */
export function cardInWords(session: SessionReport, now: number, hints: StateHints) {
  const { tasks, limits, cost, forecast, last, engine, round, roundsUsed, elapsedMs, tokens } = session
  const most = limits.timeMs === null ? '' : ` of ${formatSpan(limits.timeMs)}`
  return {
    state: stateInWords(session, now, hints),
    facts: [
      round === null && roundsUsed === 0 ? 'before the first round' : whichRound(session),
      ...(tasks === null ? [] : [`${tasks.done} of ${formatCount(tasks.total, 'task')}`]),
      ...(round === null ? [] : [`round ${formatClock(round.elapsedMs)}`]),
      `in all ${formatClock(elapsedMs)}${most}`,
      ...(tokens === 0 ? [] : [wordsForTokensUsed(tokens, limits)]),
      ...(cost === null || cost.amount === 0 ? [] : [wordsForCost(cost, limits)]),
      ...(engine === CODEX_LOGIN ? [] : [`on ${oneLine(engine, NAME_CHARS)}`]),
    ],
    wait: waitLines(session, now).join('').trim(),
    ahead: forecast === null ? '' : wordsForForecast({ ...forecast, until: Date.parse(forecast.until) }, now),
    last: last === null ? '' : oneLine(last.text, TEXT_CHARS),
  }
}

/** Describes a wait that begins only when it resumes. */
function waitLines({ activity, waiting }: SessionReport, now: number): string[] {
  if (waiting === null || activity === 'waiting') return []
  const wait = { ...waiting, until: Date.parse(waiting.until) }
  if (wait.until <= now) return []
  return [labelled('waits', `${wordsForWait(wait, now)}, once it continues`)]
}

/** Describes a session's activity, or its result, in a few words. `now` is Unix time, ms. */
export function stateInWords(session: SessionReport, now: number, hints: StateHints = SHELL_HINTS): string {
  const { activity, outcome } = session
  if (activity !== null) return wordsForActivity({ ...session, activity }, now, hints)
  if (outcome === null && session.standing === 'unknown') return 'not ended; cannot tell if it is running'
  if (outcome === null && !session.work.isKnown) {
    return `cut off; this codemachine does not know all of its template, ${oneLine(session.work.template, NAME_CHARS)}`
  }
  if (outcome === null) return `cut off; ${hints.resume}`
  const { text, hint } = describeOutcome(outcome, session)
  return hint === null ? text : `${asSentence(text)}  ${hint}`
}

type RunningReport = SessionReport & { activity: Activity }

/**
 * Describes a running session at the time `now` (Unix time, ms), its next request, and the person's options at this door.
 */
function wordsForActivity(session: RunningReport, now: number, hints: StateHints): string {
  const work = session.round === null ? session.checking?.kind : 'round'
  const next = work === undefined ? '' : ` after this ${work}`
  return [
    wordsFor(session, now, hints),
    ...(session.replanAsked ? ['the plan is being changed'] : []),
    ...(session.pausedAt !== null && session.activity !== 'paused' ? [`pausing${next}`] : []),
    ...(session.stopAsked ? [`stopping${next}`] : []),
  ]
    .filter(words => words !== '')
    .join('; ')
}

function wordsFor(session: RunningReport, now: number, hints: StateHints): string {
  const { activity, waiting, pausedAt, offlineSince, windingDown } = session
  switch (activity) {
    case 'running':
      return session.checking === null ? 'running' : wordsForCheck(session.checking, now)
    case 'waiting': {
      const wait = waiting && wordsForWait({ ...waiting, until: Date.parse(waiting.until) }, now)
      return `waiting ${wait ?? ''}; ${session.isCall ? hints.endWaitOfCall : hints.endWait}`
    }
    case 'deciding':
      return decisionInWords(session, now, hints)
    case 'paused':
      return session.build?.waitsForPerson
        ? `the plan waits for you${since(pausedAt, now)}; ${hints.startBuild}`
        : `paused${since(pausedAt, now)}${holdEnd(session, now)}; ${hints.goOn}`
    case 'waiting-for-network':
      return `waiting for the network${since(offlineSince, now)}; codex keeps trying`
    case 'winding-down':
      return `winding down${windingDown === null ? '' : `: ${wordsForWindDown(windingDown, session)}`}`
    // Every activity already names the request.
    case 'stopping':
      return session.checking === null ? '' : wordsForCheck(session.checking, now)
    default:
      return unreachable(activity)
  }
}

function decisionInWords({ decision, build }: RunningReport, now: number, hints: StateHints): string {
  if (decision === null) return ''
  if (build?.waitsForPerson) {
    const until = formatMoment(Date.parse(decision.until), now)
    return `the plan waits for you${since(decision.since, now)}, until ${until} at the longest; ${hints.startBuild}`
  }
  const open = { ...decision, since: Date.parse(decision.since), until: Date.parse(decision.until) }
  return `you decide: ${wordsForDeciding(open, now)}; ${hints.decide}`
}

function wordsForCheck(check: NonNullable<SessionReport['checking']>, now: number): string {
  const what = wordsForChecked(check)
  return `${what}, for ${formatSpan(now - Date.parse(check.since))} now`
}

function wordsForChecked(check: NonNullable<SessionReport['checking']>): string {
  switch (check.kind) {
    case 'gate':
      return `running gate ${gateName(check.gate)}`
    case 'review':
      return `running review ${check.review}`
    case 'check':
      return `running a check of ${oneLine(check.sentence, NAME_CHARS)}`
    case 'hook':
      return `running the hook ${check.hook}`
    case 'contract':
      return check.role === 'author'
        ? 'writing the contract'
        : `writing wrong versions for ${oneLine(check.sentence ?? '', NAME_CHARS)}`
    default:
      return unreachable(check)
  }
}

function holdEnd({ hold }: RunningReport, now: number): string {
  return hold === null ? '' : `, ${wordsForHoldEnd({ at: Date.parse(hold.until), how: hold.how }, now)}`
}

function since(at: string | null, now: number): string {
  return at === null ? '' : ` since ${formatMoment(Date.parse(at), now)}`
}

/** Returns a session's result in a word or two: `done, gates pass`, `waits for you`, `cut off`. */
export function standingInWords({
  outcome,
  activity = null,
  standing,
}: Pick<SessionReport, 'outcome' | 'standing'> & Partial<Pick<SessionReport, 'activity'>>): string {
  if (outcome !== null) return describeOutcome(outcome).short
  if (activity === 'deciding') return 'waits for you'
  return activity === 'paused' ? 'paused' : STANDINGS[standing]
}

const STANDINGS: Readonly<Record<SessionStatus, string>> = {
  running: 'running',
  'cut-off': 'cut off',
  ended: 'ended',
  unknown: 'not ended',
}

function howFar(session: SessionReport): string {
  const { round } = session
  return round === null ? whichRound(session) : `${whichRound(session)} for ${formatSpan(round.elapsedMs)}`
}

function whichRound({ round, roundsUsed, limits, work }: SessionReport): string {
  if (round !== null) {
    if (work.round !== null) return oneLine(work.round.title, NAME_CHARS)
    const most = limits.rounds === null ? '' : ` of ${limits.rounds}`
    return `round ${round.round}${most}`
  }
  return limits.rounds === null
    ? formatCount(roundsUsed, 'round')
    : `${roundsUsed} of ${formatCount(limits.rounds, 'round')}`
}

function stallInWords({ idleRounds, sameRefusals }: SessionReport['stall'], remedy: StallRemedy): string {
  const why = sameRefusals > idleRounds ? 'same-refusal' : 'nothing-changed'
  return `${wordsForStall(why, Math.max(idleRounds, sameRefusals))}: ${wordsForRemedy(remedy)}`
}

function windowLines(windows: readonly (UsageWindow | null)[], now: number): string[] {
  return windows.flatMap(window => {
    if (window === null) return []
    const span = window.windowMinutes === null ? '' : ` of ${formatSpan(window.windowMinutes * 60_000)}`
    return [
      labelled(
        'usage',
        `${Math.round(window.usedPercent)} % of the window${span}${resetInWords(window.resetsAt, now)}`,
      ),
    ]
  })
}

function resetInWords(resetsAt: number | null, now: number): string {
  if (resetsAt === null) return ''
  const moment = formatMoment(resetsAt, now)
  return resetsAt > now ? `, resets ${moment}, ${formatCountdown(resetsAt - now)} from now` : ` until ${moment}`
}

function labelled(label: string, text: string): string {
  return `  ${label.padEnd(7)}  ${text}`
}

const MOST_PARKED = 5
const MOST_ROWS = 10
const MOST_AGENTS = 10
const REQUEST_CHARS = 200

/** Returns labelled lines on a build: its parked tasks, and the agents at work. `now` is Unix time, ms. */
export function buildStatusLines({ tasks, agents }: BuildReport, now: number): [label: string, text: string][] {
  const parked = tasks.filter(task => task.parked !== null)
  return [
    ...capped(
      parked.map(({ id, name, parked }) => `${line(id)} ${line(name)}: ${oneLine(parked ?? '', REQUEST_CHARS)}`),
      MOST_PARKED,
      'parked',
    ),
    ...capped(
      agents.map(({ instance, agent, tasks, request, since }) => {
        // Two instances of one agent need their own names, also in commands.
        const isOnly = agents.filter(each => each.agent === agent).length === 1
        const words = oneLine(requestInWords(tasks, request), REQUEST_CHARS)
        return `${line(isOnly ? agent : instance)}, for ${formatSpan(Math.max(0, now - Date.parse(since)))} now: ${words}`
      }),
      MOST_AGENTS,
      'agent',
    ),
  ]
}

function capped(texts: readonly string[], most: number, label: string): [string, string][] {
  return withRest(texts.slice(0, most), texts.length).map(text => [label, text])
}

function line(text: string): string {
  return oneLine(text, NAME_CHARS)
}

/** Progress of a build. Times are ISO 8601 in UTC. */
interface BuildReport {
  plan: TaskPlan['state']
  /** Whether it is held so that the person looks at its plan. */
  waitsForPerson: boolean
  /** Tasks, as codemachine has accepted them. */
  tasks: readonly BuildTaskReport[]
  /** Agents that work on a task. */
  agents: readonly { instance: string; agent: string; tasks: readonly string[]; request: string; since: string }[]
}

type BuildTaskReport = Pick<PlanTask, 'id' | 'name' | 'phase' | 'done' | 'failures' | 'parked'>

/** Returns the report of a build; null: the session is no build; `isRunning`: whether a process runs it. Pure. */
export function buildReport(state: SessionState, isRunning: boolean): BuildReport | null {
  const { taskPlan, agents } = state
  if (taskPlan === null) return null
  return {
    plan: taskPlan.state,
    waitsForPerson: isRunning && isPlanShown(state),
    tasks: taskPlan.tasks.map(({ id, name, phase, done, failures, parked }) => ({
      id,
      name,
      phase,
      done,
      failures,
      parked,
    })),
    agents: isRunning
      ? agents.map(({ instance, agent, tasks, request, since }) => ({
          instance,
          agent,
          tasks,
          request,
          since: new Date(since).toISOString(),
        }))
      : [],
  }
}

/**
 * Report on a work directory and its worktrees: the running session's place, else that of the newest write; and the others.
 */
export interface StatusReport extends PlaceReport {
  elsewhere: readonly PlaceReport[]
}

/** Report on one directory. Times are ISO 8601 in UTC. */
export interface PlaceReport {
  directory: string
  /** Name of its worktree; null: the directory itself. */
  worktree: string | null
  /** Null: nobody runs there; `unknown`: the lock is unreadable. */
  runner: { pid: number; host: string; since: string } | null | 'unknown'
  /** The running session, or the last one. */
  session: SessionReport | null
  /** Number of sessions, unreadable ones included. */
  sessions: number
  /** Number of queued prompts. */
  queued: number
}

/** Progress of a session. */
export interface SessionReport extends ProofReport {
  id: string
  goal: string
  /** Agent conversation that it continues; null: none. */
  adopted: Adopted | null
  /** Whether it is a call of an agent, which accepts no commands. */
  isCall: boolean
  standing: SessionStatus
  /** Its activity; null: no process runs it. */
  activity: Activity | null
  outcome: SessionOutcome | null
  /** Running round; null between rounds. */
  round: { round: number; elapsedMs: number } | null
  roundsUsed: number
  limits: SessionLimits
  elapsedMs: number
  tokens: number
  /** Its cost, and the tokens of models without a price; null: there are no prices. */
  cost: Cost | null
  /** Tokens of these at each of the person's providers. */
  providerTokens: Readonly<Record<string, number>>
  /** Provider of the last started round; null: codex's own configuration. */
  provider: string | null
  /** Engine of the rounds, `codex` also for `exec`. */
  engine: string
  /** Model of codex; before codex reports it, the requested one; null: codex's choice. */
  model: string | null
  /** Reasoning effort, like `model`. */
  effort: string | null
  /** Last event, as in the log. */
  last: { at: string; text: string } | null
  /** Its wait; if it was interrupted in a wait, the one that it will continue. */
  waiting: { until: string; since: string; reason: WaitReason; cause: RoundOutcome } | null
  /** Time of a person's request to pause after the round. */
  pausedAt: string | null
  /** When and how its hold ends by itself (as in `hold-until`); null: no hold. */
  hold: { until: string; how: HoldEnd['how'] } | null
  /** Open decision; null: none. */
  decision: (Decision & { since: string; until: string }) | null
  /** Whether a requested change of plan is not made yet. */
  replanAsked: boolean
  /** Whether it stops after its round. */
  stopAsked: boolean
  /** Start of codex's wait for the network. */
  offlineSince: string | null
  /** Limit for which its round stops safely. */
  windingDown: WindDownLimit | null
  /** Its lack of progress, and the remedy. */
  stall: { idleRounds: number; sameRefusals: number; remedy: StallRemedy | null }
  /** Program that keeps the machine awake for it. */
  keptAwake: string | null
  plan: readonly PlanStep[]
  claim: Claim
  /** `current`: task at work; null: nobody works, or all are done. */
  tasks: {
    done: number
    total: number
    current: { id: string; name: string; phase: string | null } | null
  } | null
  /** Null: its template has no plan of tasks. */
  build: BuildReport | null
  /** Report of its template. */
  work: WorkReport
  /** About how many more rounds fit into the usage window, and its renewal; null: unknown. */
  forecast: { rounds: number; until: string } | null
  primaryWindow: UsageWindow | null
  secondaryWindow: UsageWindow | null
  /** Warnings of codemachine and codex from its beginning, and recent ones: at most 30 sentences. */
  warnings: readonly string[]
}

/** Returns the progress of a board's tasks, null: none; `isRunning`: whether somebody works on one. Pure. */
export function tasksOfBoard({ tasks, current }: TaskBoard, isRunning: boolean): SessionReport['tasks'] {
  if (tasks.length === 0) return null
  const at = isRunning ? tasks.find(({ id }) => id === current) : undefined
  return {
    done: tasks.filter(task => task.done).length,
    total: tasks.length,
    current: at === undefined ? null : { id: at.id, name: at.name, phase: at.phase },
  }
}

/** Converts an open decision for programs. Pure. */
export function decisionReport({ since, until, ...decision }: OpenDecision): NonNullable<SessionReport['decision']> {
  return { ...decision, since: new Date(since).toISOString(), until: new Date(until).toISOString() }
}

/** Basis of the proof of a session's work. Times are ISO 8601 in UTC. */
interface ProofReport {
  /** Check that runs between two rounds; null: none. */
  checking:
    | { kind: 'gate'; gate: string; since: string }
    | { kind: 'review'; review: number; since: string }
    | { kind: 'check'; sentence: string; since: string }
    | { kind: 'hook'; hook: HookMoment; since: string }
    | { kind: 'contract'; role: 'author' | 'control'; sentence: string | null; since: string }
    | null
  /** Gates before done, with their last results; `round`: the round before that run, 0 before the first. */
  gates: readonly ReportedGate[]
  /** Scope: a part that is worked on until it is done by itself, with its gates; null: none. */
  scope: { name: string; rounds: number; gates: readonly ReportedGate[] } | null
  /**
   * `answered`: number of reviews with an answer. The rest is from the last one: `agreedTo`: tree; `repeated`: found before,
   * and left to the person.
   */
  reviews: { answered: number; agreedTo: string | null; findings: number; repeated: number }
  /** Sentences of the goal, and how many hold and are proved; null: there is no contract. */
  contract: {
    words: string
    holding: number
    proved: number
    checkable: number
    sentences: readonly Pick<SentenceNow, 'id' | 'kind' | 'quote' | 'state'>[]
  } | null
  /** Last savepoint; `round` 0: the session's start. */
  savepoint: { round: number; commit: string } | null
  /** Number of questions noted for the person. */
  questions: number
}

type GateReport = Omit<GateRun, 'gate'>

interface ReportedGate {
  name: string
  run: string
  required: boolean
  last: GateReport | null
}

/** Returns the proof report of a session; `isRunning`: whether a process runs it. Pure. */
export function proofReport(state: SessionState, isRunning: boolean): ProofReport {
  const { checking, scope, savepoint, questions } = state
  const own = withoutScope(state)
  const { reviews } = own
  return {
    checking: checking === null || !isRunning ? null : withTime(checking),
    gates: gatesReported(own),
    scope: scope && { name: scope.name, rounds: scope.rounds, gates: gatesReported(state) },
    reviews: {
      answered: reviews.answered,
      agreedTo: reviews.agreedTo,
      findings: reviews.last?.findings.length ?? 0,
      repeated: reviews.repeated.length,
    },
    contract: contractReport(own),
    savepoint: savepoint && { round: savepoint.round, commit: savepoint.commit },
    questions,
  }
}

/** It hides held out checks: agents can read the status too. */
function contractReport({ contract }: SessionState): ProofReport['contract'] {
  const words = wordsForContract(contract)
  if (words === null) return null
  const { holding = 0, proved = 0, checkable = 0 } = countContract(contract) ?? {}
  const sentences = sentencesOf(contract).map(({ id, kind, quote, state }) => ({
    id,
    kind,
    quote: oneLine(quote, TEXT_CHARS),
    state,
  }))
  return { words, holding, proved, checkable, sentences }
}

function withTime(check: NonNullable<SessionState['checking']>): NonNullable<ProofReport['checking']> {
  const since = new Date(check.since).toISOString()
  switch (check.kind) {
    case 'gate':
      return { kind: check.kind, gate: check.gate, since }
    case 'review':
      return { kind: check.kind, review: check.review, since }
    case 'check':
      return { kind: check.kind, sentence: check.sentence, since }
    case 'hook':
      return { kind: check.kind, hook: check.hook, since }
    case 'contract':
      return { kind: check.kind, role: check.role, sentence: check.sentence, since }
    default:
      return unreachable(check)
  }
}

function gatesReported(state: SessionState): ReportedGate[] {
  return state.gates.map(({ name, run, required }) => ({ name, run, required, last: lastOf(name, state) }))
}

function lastOf(name: string, { gateRuns }: SessionState): GateReport | null {
  const run = gateRuns.find(({ gate }) => gate === name)
  if (run === undefined) return null
  const { gate: _, ...rest } = run
  return rest
}
