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
import type { Claim, GateRun, PlanStep, SessionState, SessionStatus } from '../../core/state/state.ts'
import { CODEX_LOGIN } from '../../core/state/usage.ts'
import { wordsForAdopted } from './adopted.ts'
import { wordsForContract } from './contract.ts'
import { wordsForDeciding } from './decision.ts'
import { describePlan } from './item.ts'
import { SHELL_HINTS, type StateHints, withRest } from './names.ts'
import { formatCount, formatCountdown, formatMoment, formatSpan, formatTokens } from './numbers.ts'
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

/** A report for a person, line by line. `now` is Unix time, ms. Pure. */
export function statusLines(report: StatusReport, now: number): string[] {
  const { session, sessions, queued, elsewhere } = report
  const none = sessions === 0 ? 'No sessions yet.' : 'No session can be read.'
  return [
    whoRuns(report, now),
    ...(session === null ? [none] : sessionLines(session, now)),
    labelled('queue', queued === 0 ? 'nothing waits' : `${formatCount(queued, 'prompt')} waiting`),
    ...elsewhereLines(elsewhere, now),
  ]
}

/** A line for each other place that has anything. */
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
  return lines.length === 0 ? [] : ['Beside it:', ...lines]
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
  // That it began to wait is what its state says.
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
    ...(keptAwake === null ? [] : [labelled('awake', `kept so by ${oneLine(keptAwake, TEXT_CHARS)}`)]),
    ...session.warnings.map(warning => labelled('warned', oneLine(warning, WARNING_CHARS))),
  ]
}

function tasksInWords({ done, total, current }: NonNullable<SessionReport['tasks']>): string {
  const counted = `${done} of ${total} done`
  if (current === null) return counted
  const [id, name, phase] = [current.id, current.name, current.phase ?? ''].map(text => oneLine(text, NAME_CHARS))
  return `${counted}; ${id} ${name}${phase === '' ? '' : `, ${phase}`}`
}

/** What the template says of its own: how far it is, and the rows of its board that are neither done nor to do. */
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
  const words = [model, effort, source === null ? null : `of ${source}`]
    .filter(word => word !== null)
    .map(word => oneLine(word, NAME_CHARS))
  return words.length === 0 ? [] : [labelled('model', words.join(' '))]
}

/** What its proof stands on: the gates and how they came out last, reviews, what is kept, and what is asked. */
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

/** `fix, worked on until it is done, 3 rounds; npm test failed (exit code 1)`. */
function wordsForScope({ name, rounds, gates }: NonNullable<SessionReport['scope']>): string {
  const words = `${oneLine(name, NAME_CHARS)}, worked on until it is done, ${formatCount(rounds, 'round')}`
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
 * A session for somebody who looks after many, at the time `now` (Unix time, ms): its progress (`facts`), what it waits for
 * or will wait for, the rounds before that (`ahead`), and its last words.
 * Empty texts: there is nothing to say. Pure.
 */
export function cardInWords(session: SessionReport, now: number, hints: StateHints) {
  const { tasks, limits, cost, forecast, last, engine } = session
  return {
    state: stateInWords(session, now, hints),
    facts: [
      howFar(session),
      ...(tasks === null ? [] : [`${tasks.done} of ${formatCount(tasks.total, 'task')}`]),
      wordsForTimeUsed(session.elapsedMs, limits),
      wordsForTokensUsed(session.tokens, limits),
      ...(cost === null ? [] : [wordsForCost(cost, limits)]),
      ...(engine === CODEX_LOGIN ? [] : [`on ${oneLine(engine, NAME_CHARS)}`]),
    ],
    wait: waitLines(session, now).join('').trim(),
    ahead: forecast === null ? '' : wordsForForecast({ ...forecast, until: Date.parse(forecast.until) }, now),
    last: last === null ? '' : oneLine(last.text, TEXT_CHARS),
  }
}

/** A wait that it does not keep now, but will. */
function waitLines({ activity, waiting }: SessionReport, now: number): string[] {
  if (waiting === null || activity === 'waiting') return []
  const wait = { ...waiting, until: Date.parse(waiting.until) }
  if (wait.until <= now) return []
  return [labelled('waits', `${wordsForWait(wait, now)}, once it continues`)]
}

/** What a session does now, or how it stands, in a few words. `now` is Unix time, ms. */
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
 * What a session that runs does at the time `now` (Unix time, ms), what it was asked to do next, and what a person can do
 * about it where they look at it.
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
    // What it was asked for is said of every activity.
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
      return `review ${check.review} is made`
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

/** What has become of a session, in a word or two: `done, gates pass`, `waits for you`, `cut off`. */
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

function howFar({ round, roundsUsed, limits, work }: SessionReport): string {
  if (round !== null) {
    if (work.round !== null) return `${oneLine(work.round.title, NAME_CHARS)} for ${formatSpan(round.elapsedMs)}`
    const most = limits.rounds === null ? '' : ` of ${limits.rounds}`
    return `round ${round.round}${most} for ${formatSpan(round.elapsedMs)}`
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

/** What is told of a build, each with its label: the tasks that are parked, and who is at work. `now` is Unix time, ms. */
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
        // Two of one agent are told apart, and named to a command, by their instances.
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

/** How far a build is. Times are ISO 8601 in UTC. */
interface BuildReport {
  plan: TaskPlan['state']
  /** Whether it is held so that the person looks at its plan. */
  waitsForPerson: boolean
  /** As codemachine believes them to stand. */
  tasks: readonly BuildTaskReport[]
  /** Those that work because they were given a task. */
  agents: readonly { instance: string; agent: string; tasks: readonly string[]; request: string; since: string }[]
}

type BuildTaskReport = Pick<PlanTask, 'id' | 'name' | 'phase' | 'done' | 'failures' | 'parked'>

/** That of a session, null if it is no build; `isRunning`: whether somebody runs it. Pure. */
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

/** What goes on in a work directory and its worktrees: where a session runs, else where one was written to last; and in the others. */
export interface StatusReport extends PlaceReport {
  elsewhere: readonly PlaceReport[]
}

/** What goes on in one directory. Times are ISO 8601 in UTC. */
export interface PlaceReport {
  directory: string
  /** Name of the worktree that it is; null: the directory that was asked about. */
  worktree: string | null
  /** Null if nobody runs there; `unknown` if the lock cannot be read. */
  runner: { pid: number; host: string; since: string } | null | 'unknown'
  /** The session that runs, or the last that did. */
  session: SessionReport | null
  /** How many sessions there are, those that cannot be read too. */
  sessions: number
  /** Prompts that wait. */
  queued: number
}

/** How far a session is. */
export interface SessionReport extends ProofReport {
  id: string
  goal: string
  /** The conversation with an agent that it continues; null: none. */
  adopted: Adopted | null
  /** Whether it is a call of an agent, which takes no commands. */
  isCall: boolean
  standing: SessionStatus
  /** What it does now; null if nobody runs it. */
  activity: Activity | null
  outcome: SessionOutcome | null
  /** The round that runs; null between rounds. */
  round: { round: number; elapsedMs: number } | null
  roundsUsed: number
  limits: SessionLimits
  elapsedMs: number
  tokens: number
  /** What it has cost, and the tokens of models without a price; null if there are no prices. */
  cost: Cost | null
  /** Of these, those of each provider of the person's. */
  providerTokens: Readonly<Record<string, number>>
  /** Name of the provider of the round that started last; null: what codex is configured with. */
  provider: string | null
  /** The engine of the rounds, `codex` also for `exec`. */
  engine: string
  /** The model that codex works with; before it has said so, what was asked for; null: its own choice. */
  model: string | null
  /** As `model`, the reasoning effort. */
  effort: string | null
  /** The last thing that happened, as the log tells it. */
  last: { at: string; text: string } | null
  /** What it waits for; of one that was broken off while it waited, what it will go on to wait for. */
  waiting: { until: string; since: string; reason: WaitReason; cause: RoundOutcome } | null
  /** Since when a person wants it to pause, which it does when its round has ended. */
  pausedAt: string | null
  /** When the hold that it is in ends by itself, and how (as in `hold-until`); null if it holds for nothing. */
  hold: { until: string; how: HoldEnd['how'] } | null
  /** What a person is asked to decide now; null if nothing. */
  decision: (Decision & { since: string; until: string }) | null
  /** Whether a person has asked for a change of plan that is not made yet. */
  replanAsked: boolean
  /** Whether it stops when its round has ended. */
  stopAsked: boolean
  /** Since when codex has been waiting for the network. */
  offlineSince: string | null
  /** The limit for which its round comes to a safe stop. */
  windingDown: WindDownLimit | null
  /** How far it has got stuck, and what has been done about it. */
  stall: { idleRounds: number; sameRefusals: number; remedy: StallRemedy | null }
  /** What keeps the machine awake for it. */
  keptAwake: string | null
  plan: readonly PlanStep[]
  claim: Claim
  /** `current`: the one at work; null if nobody works, or all are done. */
  tasks: {
    done: number
    total: number
    current: { id: string; name: string; phase: string | null } | null
  } | null
  /** Null if its template has no plan of tasks. */
  build: BuildReport | null
  /** What its template says of it. */
  work: WorkReport
  /** How many more rounds fit into the usage window, about, and when it is renewed; null if that cannot be said. */
  forecast: { rounds: number; until: string } | null
  primaryWindow: UsageWindow | null
  secondaryWindow: UsageWindow | null
  /** What codemachine and codex warned of when it began, and lately: at most 30 sentences. */
  warnings: readonly string[]
}

/** How far the tasks of a board are, null if there are none; `isRunning`: whether somebody works on one. Pure. */
export function tasksOfBoard({ tasks, current }: TaskBoard, isRunning: boolean): SessionReport['tasks'] {
  if (tasks.length === 0) return null
  const at = isRunning ? tasks.find(({ id }) => id === current) : undefined
  return {
    done: tasks.filter(task => task.done).length,
    total: tasks.length,
    current: at === undefined ? null : { id: at.id, name: at.name, phase: at.phase },
  }
}

/** A decision that is asked for, as programs are told of it. Pure. */
export function decisionReport({ since, until, ...decision }: OpenDecision): NonNullable<SessionReport['decision']> {
  return { ...decision, since: new Date(since).toISOString(), until: new Date(until).toISOString() }
}

/** What the proof of a session's work stands on. Times are ISO 8601 in UTC. */
interface ProofReport {
  /** What codemachine checks between two rounds just now; null if it does not. */
  checking:
    | { kind: 'gate'; gate: string; since: string }
    | { kind: 'review'; review: number; since: string }
    | { kind: 'check'; sentence: string; since: string }
    | { kind: 'hook'; hook: HookMoment; since: string }
    | { kind: 'contract'; role: 'author' | 'control'; sentence: string | null; since: string }
    | null
  /** What has to pass before done, and how each came out the last time; `round`: after which that was, 0 before the first. */
  gates: readonly ReportedGate[]
  /** The part of the session that is worked on until it is done by itself, and what has to pass before that; null: none is. */
  scope: { name: string; rounds: number; gates: readonly ReportedGate[] } | null
  /** `answered`: how many reviews gave an answer; the rest is of the last of them: the tree that it agreed to, and what it found; `repeated`: found before, and left to the person. */
  reviews: { answered: number; agreedTo: string | null; findings: number; repeated: number }
  /** What was asked for, sentence by sentence, and how many of these hold and are proved; null: there is no contract. */
  contract: {
    words: string
    holding: number
    proved: number
    checkable: number
    sentences: readonly Pick<SentenceNow, 'id' | 'kind' | 'quote' | 'state'>[]
  } | null
  /** The savepoint made last; `round` 0: what the session began with. */
  savepoint: { round: number; commit: string } | null
  /** How many questions were noted for the person. */
  questions: number
}

type GateReport = Omit<GateRun, 'gate'>

interface ReportedGate {
  name: string
  run: string
  required: boolean
  last: GateReport | null
}

/** That of a session; `isRunning`: whether somebody runs it. Pure. */
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

/** Of held out checks nothing is told: agents can ask for the status, too. */
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
