import { basename } from 'node:path'
import { unreachable } from '../../base/errors.ts'
import type { Item } from '../../core/events/items.ts'
import type { LiveItem } from '../../core/events/live-board.ts'
import type { UsageWindow } from '../../core/events/outcome.ts'
import type { TaskBoard } from '../../core/state/plan.ts'
import type { Checking, SessionState } from '../../core/state/state.ts'
import { cutLine } from './cells.ts'
import { labelOf } from './decision.ts'
import { workOf } from './event.ts'
import { shownCommand } from './names.ts'
import { formatClock, formatCount, formatNumber, shortMoment } from './numbers.ts'
import { activityOf, describeOutcome, waitEndOf } from './outcome.ts'
import { agentOf, boardNow, isDelegation, isPlanShown } from './plan.ts'
import { gateName } from './proof.ts'
import { oneLine, titleLine } from './safe-text.ts'
import { statusOfWork, titleOfRound, wordsForStep } from './work.ts'

/** How many tasks are done: `1 of 4 tasks`. */
export function wordsForTasks(done: number, total: number): string {
  return `${formatNumber(done)} of ${formatCount(total, 'task')}`
}

/** The round that runs, else the last one: `round 2 of 10`, without a limit `round 2`; null before the first. */
export function wordsForRound({
  running,
  roundsUsed,
  limits: { rounds },
}: Pick<SessionState, 'running' | 'roundsUsed'> & { limits: Pick<SessionState['limits'], 'rounds'> }): string | null {
  const round = running?.round ?? roundsUsed
  return round === 0 ? null : `round ${round}${rounds === null ? '' : ` of ${rounds}`}`
}

/** How far a session is, where there is little room: the tasks that are done and the round, in the template's own words if it has some. */
export function factsInShort(state: SessionState, board: TaskBoard | null, ownCells: number): string[] {
  const work = statusOfWork(state)
  const { tasks } = boardNow(board, state) ?? { tasks: [] }
  const counted = tasks.length === 0 ? null : wordsForTasks(tasks.filter(({ done }) => done).length, tasks.length)
  const own = titleOfRound(state)
  return [
    work === null ? counted : cutLine(oneLine(work, WORK_CHARS), ownCells),
    own === null ? wordsForRound(state) : cutLine(own.title, ownCells),
  ].filter(fact => fact !== null)
}

const TITLE_CHARS = 120
const LOOKED_AT_CHARS = 4000

/**
 * Returns a session's title: with a plan, the first heading of its specification; else its memory's title; else the first
 * non-empty line of its goal.
 */
export function titleOf({ goal, taskPlan }: Pick<SessionState, 'goal' | 'taskPlan'>, board: TaskBoard | null): string {
  const beginning = goal.slice(0, LOOKED_AT_CHARS)
  const heading = taskPlan === null ? undefined : HEADING.exec(beginning)?.[1]
  const title = titleLine(heading ?? board?.title ?? '', TITLE_CHARS)
  return title === '' ? titleLine(beginning, TITLE_CHARS) : title
}

const HEADING = /^#{1,3}[ \t]+(\S[^\r\n]*)/m

/** Returns the fuller of the account's usage windows that are not renewed by `now` (Unix time, ms). */
export function usedWindow(
  { primaryWindow, secondaryWindow }: Pick<SessionState, 'primaryWindow' | 'secondaryWindow'>,
  now: number,
): UsageWindow | null {
  const known = [primaryWindow, secondaryWindow].filter(window => window !== null)
  const current = known.filter(({ resetsAt }) => resetsAt === null || resetsAt > now)
  return current.reduce<UsageWindow | null>(
    (fuller, window) => (fuller === null || window.usedPercent > fuller.usedPercent ? window : fuller),
    null,
  )
}

/** Current work of a session. */
export interface Doing {
  kind: 'at-work' | 'waiting' | 'held' | 'done' | 'ended'
  /** `running npm test`. */
  words: string
  /** A shorter form: `npm test`. */
  short: string
  /** Elapsed or remaining time: `0:42`, `(4:10 left)`, `(Start in 4:10)`. */
  time: string | null
  /** The request for afterwards: `stopping after this round`. */
  next: string | null
}

/**
 * Returns the work of a session at the time `now` (Unix time, ms); an open one counts as running.
 * @param live current items of its turn; null: invisible
 */
export function doing(state: SessionState, live: readonly LiveItem[] | null, now: number): Doing {
  return state.ended === null
    ? { ...running(state, live, now), next: nextOf(state) }
    : { ...ended(state.ended), next: null }
}

type DoingNow = Omit<Doing, 'next'>

function ended({ outcome }: NonNullable<SessionState['ended']>): DoingNow {
  const { short } = describeOutcome(outcome)
  return { kind: outcome.kind === 'done' ? 'done' : 'ended', words: short, short, time: null }
}

function running(state: SessionState, live: readonly LiveItem[] | null, now: number): DoingNow {
  const activity = activityOf(state)
  switch (activity) {
    case 'running':
    case 'stopping':
      return state.replan === null || state.checking !== null || isInterrupted(state)
        ? atWork(state, live, now)
        : within('changing the plan', atWork(state, live, now))
    case 'waiting':
      return waiting(state, now)
    case 'deciding':
      return deciding(state, now)
    case 'paused': {
      if (state.replan !== null) return plainly('changing the plan')
      if (isPlanShown(state)) return { kind: 'held', words: 'asks you about the plan', short: 'asks you', time: null }
      return { kind: 'held', words: 'paused', short: 'paused', time: leftOfHold(state, now) }
    }
    case 'waiting-for-network':
      return {
        kind: 'waiting',
        words: 'waiting for the network',
        short: 'network down',
        time: state.offlineSince === null ? null : formatClock(now - state.offlineSince),
      }
    case 'winding-down':
      return within('winding down', atWork(state, live, now))
    default:
      return unreachable(activity)
  }
}

/** Returns the time until it continues by itself; null: it does not, or not within an hour. */
function leftOfHold({ holdEnd }: SessionState, now: number): string | null {
  return holdEnd?.how === 'goes-on' ? hurryTo('continues', holdEnd.at, now) : null
}

/** Formats what happens without a person, and when: `(Yes in 4:10)`; null: no need to hurry, as while somebody watches. */
function hurryTo(what: string, until: number, now: number): string | null {
  return until - now > HOUR_MS ? null : `(${what} in ${clock(until, now)})`
}

const HOUR_MS = 3_600_000
const LABEL_CHARS = 24

/** Formats the time until then, rounded up to a second: `4:10`. */
function clock(until: number, now: number): string {
  return formatClock(Math.ceil((until - now) / 1000) * 1000)
}

function deciding(state: SessionState, now: number): DoingNow {
  const { decision } = state
  const time =
    decision === null || decision.default === null
      ? null
      : hurryTo(titleLine(labelOf(decision.choices, decision.default), LABEL_CHARS), decision.until, now)
  return isPlanShown(state)
    ? { kind: 'held', words: 'asks you about the plan', short: 'asks you', time }
    : { kind: 'held', words: 'asks you', short: 'asks you', time }
}

function waiting(state: SessionState, now: number): DoingNow {
  const until = waitEndOf(state) ?? now
  const moment = `until ${shortMoment(until, now)}`
  const time = `(${clock(until, now)} left)`
  // It ends as soon as the provider answers.
  if (state.waiting?.reason === 'provider-away')
    return { kind: 'waiting', words: 'waiting for the provider', short: 'provider down', time }
  return { kind: 'waiting', words: `waiting ${moment}`, short: moment, time }
}

function atWork(state: SessionState, live: readonly LiveItem[] | null, now: number): DoingNow {
  const { running } = state
  if (running === null) return betweenRounds(state, now)
  if (running.isInterrupted) return plainly('interrupting the round')
  if (running.turn === null) return plainly('starting codex')
  const latest = live?.findLast(({ instance }) => instance === undefined)
  const isIdle = latest === undefined || isDelegation(latest.item)
  if (state.agents.length > 0 && isIdle) return delegating(state, now)
  // A delegated task lasts until its result was read.
  if (isIdle) return plainly(live === null ? 'running' : 'thinking')
  const { words, short, isTimed } = wordsForItem(latest.item)
  return { kind: 'at-work', words, short, time: isTimed ? formatClock(now - latest.startedAt) : null }
}

function delegating({ agents }: SessionState, now: number): DoingNow {
  const words =
    agents.length === 1 ? `${agentOf(agents[0]?.instance ?? '')} at work` : `${agents.length} agents at work`
  const since = Math.min(...agents.map(({ since }) => since))
  return { kind: 'at-work', words, short: formatCount(agents.length, 'agent'), time: formatClock(now - since) }
}

/** Describes codemachine's own work between two rounds. */
function checking(check: Checking, { gates }: SessionState, now: number): DoingNow {
  const short = shortOf(check)
  const words = check.kind === 'gate' || check.kind === 'check' || check.kind === 'hook' ? `running ${short}` : short
  const gate = check.kind === 'gate' ? gates.find(({ name }) => name === check.gate) : undefined
  return { kind: 'at-work', words, short, time: clockOf(now - check.since, gate?.timeoutMs) }
}

/** Names the check, or who works on the proof. */
function shortOf(check: Checking): string {
  switch (check.kind) {
    case 'gate':
      return `gate ${gateName(check.gate)}`
    case 'review':
      return `review ${check.review}`
    case 'check':
      return `check of ${oneLine(check.sentence, NAME_CHARS)}`
    case 'hook':
      return `hook ${check.hook}`
    case 'contract':
      return check.role === 'author'
        ? 'the contract'
        : `wrong versions for ${oneLine(check.sentence ?? '', NAME_CHARS)}`
    default:
      return unreachable(check)
  }
}

/** Says how long a command has run, and after a minute also its bound: `1:04 of 10:00`. */
function clockOf(ms: number, mostMs: number | undefined): string {
  const isLong = mostMs !== undefined && ms >= LONG_MS
  return isLong ? `${formatClock(ms)} of ${formatClock(mostMs)}` : formatClock(ms)
}

const LONG_MS = 60_000

/** Puts the purpose of the work before it. */
function within(purpose: string, work: DoingNow): DoingNow {
  return { ...work, words: `${purpose}: ${work.words}`, short: purpose }
}

function isInterrupted({ running }: SessionState): boolean {
  return running?.isInterrupted ?? false
}

function plainly(words: string): DoingNow {
  return { kind: 'at-work', words, short: words, time: null }
}

function betweenRounds(state: SessionState, now: number): DoingNow {
  if (state.checking !== null) return checking(state.checking, state, now)
  if (state.step === null) return plainly(judging(state))
  const { since, mostMs } = state.step
  return { kind: 'at-work', ...wordsForStep(state, state.step), time: clockOf(now - since, mostMs) }
}

function judging({ last, claim, taskPlan }: SessionState): string {
  if (claim.state === 'nominated') return 'checking the claim'
  if (taskPlan !== null && last !== null && !taskPlan.judged) {
    return taskPlan.state === 'ready' ? 'checking the tasks' : 'looking at the plan'
  }
  return last === null ? 'starting' : 'between two rounds'
}

function nextOf(state: SessionState): string | null {
  const work = workOf(state)
  const after = state.waiting !== null ? ' after the wait' : work === null ? '' : ` after this ${work}`
  if (state.stopAsked) return `stopping${after}`
  if (state.pausedAt === null || activityOf(state) === 'paused') return null
  const isPlanned = state.running !== null && !isInterrupted(state)
  return state.replan === null || isPlanned ? `pausing${after}` : `changing the plan${after}`
}

const MOST_CELLS = 100
const TITLE_CELLS = 24
const WORK_CELLS = 24
const WORK_CHARS = 120

/**
 * Describes a running session in a short line for tmux's status bar: `linkcheck · running · 1 of 15 tasks · round 4 of 10`.
 * No colours; each `#` is doubled, because tmux reads a single one as a command.
 */
export function statusLine(state: SessionState, board: TaskBoard | null, now: number): string {
  const { words, time, next } = doing(state, null, now)
  const window = usedWindow(state, now)
  const facts = [
    cutLine(titleOf(state, board), TITLE_CELLS),
    time === null ? words : `${words} ${time}`,
    next ?? '',
    ...factsInShort(state, board, WORK_CELLS),
    // These words already say it.
    state.agents.length === 0 || words.endsWith('at work') ? '' : formatCount(state.agents.length, 'agent'),
    state.questions === 0 ? '' : formatCount(state.questions, 'question'),
    window === null || window.resetsAt === null
      ? ''
      : `usage ${Math.round(window.usedPercent)} %, resets ${shortMoment(window.resetsAt, now)}`,
  ]
  return cutLine(facts.filter(fact => fact !== '').join(' · '), MOST_CELLS).replaceAll('#', '##')
}

const COMMAND_CHARS = 200
const NAME_CHARS = 80

/** Words for codex's work on an item; `isTimed`: whether its time is worth showing. */
interface ItemInWords {
  words: string
  short: string
  isTimed: boolean
}

/** Describes a running item: `running npm test`, in short `npm test`. */
export function wordsForItem(item: Item): ItemInWords {
  switch (item.kind) {
    case 'user-message':
    case 'reasoning':
      return untimed('thinking')
    case 'agent-message':
      return untimed('writing')
    case 'plan':
      return untimed('planning')
    case 'unknown':
      return untimed('working')
    case 'command': {
      const command = oneLine(shownCommand(item.command), COMMAND_CHARS)
      return command === '' ? timed('running a command') : timed(`running ${command}`, command)
    }
    case 'file-change':
      return untimed(`editing ${wordsForFiles(item)}`)
    case 'web-search':
      return timed('searching the web', 'searching')
    case 'mcp-tool-call':
      return timed(`calling ${oneLine(`${item.server}/${item.tool}`, NAME_CHARS)}`)
    case 'tool-call': {
      const command = oneLine(item.command ?? '', COMMAND_CHARS)
      return command === '' ? timed(`calling ${oneLine(item.tool, NAME_CHARS)}`) : timed(`running ${command}`, command)
    }
    case 'sub-agent':
      return timed(item.action === 'wait' ? 'waiting for a sub-agent' : 'working with a sub-agent', 'sub-agent')
    case 'image':
      return untimed('looking at an image', 'image')
    case 'compaction':
      return timed('compacting the context', 'compacting')
    default:
      return unreachable(item)
  }
}

function wordsForFiles({ changes }: Extract<Item, { kind: 'file-change' }>): string {
  const [first] = changes
  if (first === undefined) return 'files'
  return changes.length === 1 ? oneLine(basename(first.path), NAME_CHARS) : formatCount(changes.length, 'file')
}

function timed(words: string, short = words): ItemInWords {
  return { words, short, isTimed: true }
}

function untimed(words: string, short = words): ItemInWords {
  return { words, short, isTimed: false }
}
