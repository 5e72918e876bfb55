import { USUAL_TEMPLATE } from '../modes/registry.ts'
import type { DayLimitNow } from './limits.ts'
import { runsTemplate } from './queue.ts'
import { takesRepo } from './repos.ts'

/** A session that runs or waits. Times are Unix times, ms. */
export interface ForecastSession {
  id: string
  /** Group of one team and repository, with a limit of sessions at once. */
  group: string
  /** Its team; `''`: none. */
  team: string
  repo: string
  state: 'running' | 'waiting' | 'held'
  /** Priority; higher ones start first. */
  priority: number
  tags: readonly string[]
  /** Template; null: the usual one. */
  template: string | null
  notBefore: number | null
  /** Latest start; null: no limit. */
  deadline: number | null
  hasBegun: boolean
  /** Id of the session that must be done first; null: none. */
  after: string | null
  /** True if that session ended differently, so that this one waits forever. */
  isHeldForGood: boolean
  worker: string | null
  /** Working time so far, ms. */
  workedMs: number
}

/** A running worker. */
export interface ForecastWorker {
  name: string
  slots: number
  tags: readonly string[]
  repos: readonly string[]
  /** Templates that it runs; empty: all. */
  templates: readonly string[]
  /** True if it accepts sessions and continues its own: not draining, and no problem. */
  takes: boolean
  /** Time until which its login blocks new sessions; null: not blocked. */
  pausedUntil: number | null
}

/** The input of a forecast; times are Unix times of the database's clock, ms. */
export interface ForecastFacts {
  now: number
  perRepository: number
  /** Durations, tokens and cost of the newest 500 sessions that ended within two weeks. */
  history: { repo: string; durationMs: number; tokens: number; cost: number }[]
  /** Running and waiting sessions in the order of start, at most 5,000. */
  sessions: ForecastSession[]
  /** Number of further sessions. */
  beyond: number
  workers: ForecastWorker[]
  limits: DayLimitNow[]
}

/** The predicted state of the queue at a time. */
export interface Forecast {
  /** Time of the prediction, Unix time in ms. */
  by: number
  /** Median duration of a session, ms, and the number of samples; null: none has ended lately, so no prediction. */
  usual: { medianMs: number; of: number } | null
  /** Sessions that will have ended by then, in order of their end, and when. */
  done: { id: string; at: number }[]
  /** The others: their predicted end if known, or what blocks them. */
  late: { id: string; at: number | null; why: string | null }[]
}

/** Fewest samples for a repository's own median. */
const LEAST_OF_REPOSITORY = 3
/** Share of the usual time that an overdue session is assumed to need further. */
const LEAST_LEFT = 1 / 10

interface Plan {
  session: ForecastSession
  leftMs: number
  /** What it will use until its end. */
  tokens: number
  cost: number
  /** A clause on why it can never begin as things are; null: it can. */
  wait: string | null
}

/**
 * Simulates the queue up to a time: each free worker takes what `take` would give it, and each session takes its
 * repository's usual time. The same facts give the same forecast.
 * @param by Unix time, ms
 */
export function forecastOf(facts: ForecastFacts, by: number): Forecast {
  const { history, sessions, workers } = facts
  const usual = medianOf(history.map(({ durationMs }) => durationMs))
  if (usual === null) return { by, usual, done: [], late: [] }
  const usualOf = usualTimes(history, usual.medianMs)
  const use = { tokens: middleOf(history.map(({ tokens }) => tokens)), cost: middleOf(history.map(({ cost }) => cost)) }
  const takers = workers.map(takerOf)
  const plans = sessions.map((session): Plan => {
    const whole = usualOf(session.repo)
    const leftMs = Math.max(whole - session.workedMs, whole * LEAST_LEFT)
    const share = leftMs / whole
    return { session, leftMs, tokens: use.tokens * share, cost: use.cost * share, wait: whyNever(session, takers) }
  })
  const play = new Play(plans, takers, facts)
  const ends = play.runTo(by)
  const done = [...ends].filter(([, at]) => at <= by).map(([id, at]) => ({ id, at }))
  const late = plans
    .filter(({ session }) => (ends.get(session.id) ?? Number.POSITIVE_INFINITY) > by)
    .map(({ session, wait }) => {
      const at = ends.get(session.id) ?? null
      const isTooLate = at === null && !session.hasBegun && session.deadline !== null && session.deadline < by
      const why =
        wait ?? (isTooLate ? 'it will not start before its deadline' : at === null ? play.whyWaits(session) : null)
      return { id: session.id, at, why }
    })
  return { by, usual, done: done.toSorted((a, b) => a.at - b.at), late }
}

/** A worker, and the sessions it accepts. */
interface Taker extends ForecastWorker {
  isFor(session: ForecastSession): boolean
  hasTags(session: ForecastSession): boolean
  runs(session: ForecastSession): boolean
}

function takerOf(worker: ForecastWorker): Taker {
  const takes = takesRepo(worker.repos)
  const known = new Map<string, boolean>()
  const isForRepo = (repo: string) => {
    const is = known.get(repo) ?? takes(repo)
    known.set(repo, is)
    return is
  }
  const hasTags: Taker['hasTags'] = ({ tags }) => worker.takes && tags.every(tag => worker.tags.includes(tag))
  const runs: Taker['runs'] = session => hasTags(session) && runsTemplate(worker, session.template)
  return { ...worker, hasTags, runs, isFor: session => runs(session) && isForRepo(session.repo) }
}

/** Simulates each time at which a session ends or may begin. */
class Play {
  readonly #now: number
  readonly #perRepository: number
  readonly #takers: readonly Taker[]
  /** Waiting sessions in the order of start. */
  #waiting: Plan[]
  /** End times by worker, and by group. */
  readonly #busy = new Map<string, number[]>()
  readonly #groups = new Map<string, number[]>()
  readonly #ends = new Map<string, number>()
  readonly #limits: readonly DayLimitNow[]
  /** What sessions will have used, and when. */
  readonly #uses: { team: string; at: number; tokens: number; cost: number }[] = []
  /** The limit that holds up a session. */
  readonly #heldUp = new Map<string, DayLimitNow>()

  constructor(plans: readonly Plan[], takers: readonly Taker[], facts: ForecastFacts) {
    this.#now = facts.now
    this.#perRepository = facts.perRepository
    this.#takers = takers
    this.#limits = facts.limits
    // Another worker takes the sessions of a draining or lost one.
    const goesOn = ({ session: { state, worker } }: Plan) =>
      state === 'running' && takers.some(({ name, takes }) => name === worker && takes)
    for (const plan of plans) if (goesOn(plan)) this.#begin(plan, plan.session.worker ?? '', facts.now)
    // As in the queue, sessions for few workers come first.
    this.#waiting = plans
      .filter(plan => !goesOn(plan) && plan.wait === null)
      .toSorted((a, b) => b.session.tags.length - a.session.tags.length || b.session.priority - a.session.priority)
  }

  /** Returns the end of each session that begins by then; Unix time, ms. */
  runTo(by: number): ReadonlyMap<string, number> {
    for (let at: number | null = this.#now; at !== null && at <= by; at = this.#nextAfter(at)) this.#fill(at)
    return this.#ends
  }

  #fill(at: number): void {
    const hasRoom = ({ name, slots, takes, pausedUntil }: Taker) =>
      takes && (pausedUntil === null || pausedUntil <= at) && countAt(this.#busy.get(name), at) < slots
    let free = this.#takers.filter(hasRoom)
    // What begins now has used nothing yet.
    const full = this.#limits.filter(each => this.#isFull(each, at))
    const left: Plan[] = []
    for (const plan of this.#waiting) {
      const taker =
        free.length > 0 && this.#mayBegin(plan.session, at, full)
          ? free.find(each => each.isFor(plan.session))
          : undefined
      if (taker === undefined) left.push(plan)
      else {
        this.#begin(plan, taker.name, at)
        free = free.filter(hasRoom)
      }
    }
    this.#waiting = left
  }

  /** Returns a clause on the limit that held up a session; null: none did. */
  whyWaits({ id }: ForecastSession): string | null {
    const limit = this.#heldUp.get(id)
    if (limit === undefined) return null
    const whose = limit.team === '' ? 'the fleet' : `the team ${limit.team}`
    return limit.isFull ? `${whose} has reached its limit of the day` : `${whose} will reach its limit of the day`
  }

  #begin({ session: { id, group, team }, leftMs, tokens, cost }: Plan, worker: string, at: number): void {
    const end = at + leftMs
    this.#uses.push({ team, at: end, tokens, cost })
    this.#ends.set(id, end)
    this.#busy.set(worker, [...(this.#busy.get(worker) ?? []), end])
    this.#groups.set(group, [...(this.#groups.get(group) ?? []), end])
  }

  #mayBegin(session: ForecastSession, at: number, full: readonly DayLimitNow[]): boolean {
    const { id, notBefore, deadline, hasBegun, state, after, group, team } = session
    if (notBefore !== null && notBefore > at) return false
    if (!hasBegun && deadline !== null && deadline < at) return false
    if (state === 'held' && (this.#ends.get(after ?? '') ?? Number.POSITIVE_INFINITY) > at) return false
    const limit = full.find(each => each.team === '' || each.team === team)
    if (limit !== undefined) this.#heldUp.set(id, limit)
    return limit === undefined && countAt(this.#groups.get(group), at) < this.#perRepository
  }

  /** True if a limit is reached on the day of `at`: this one or the next. */
  #isFull({ team, tokens, cost, usedTokens, usedCost, endsAt }: DayLimitNow, at: number): boolean {
    const isToday = at < endsAt.getTime()
    const uses = this.#uses.filter(
      use => (team === '' || use.team === team) && use.at <= at && (isToday || use.at >= endsAt.getTime()),
    )
    const sum = (of: 'tokens' | 'cost', before: number) =>
      uses.reduce((all, use) => all + use[of], isToday ? before : 0)
    return (tokens !== null && sum('tokens', usedTokens) >= tokens) || (cost !== null && sum('cost', usedCost) >= cost)
  }

  /** Returns the next time at which anything can change; null: none. */
  #nextAfter(at: number): number | null {
    const moments = [
      ...this.#ends.values(),
      ...this.#waiting.map(({ session }) => session.notBefore),
      ...this.#takers.map(({ pausedUntil }) => pausedUntil),
      ...this.#limits.map(({ endsAt }) => endsAt.getTime()),
    ]
    return moments.reduce<number | null>(
      (next, moment) => (moment !== null && moment > at && (next === null || moment < next) ? moment : next),
      null,
    )
  }
}

function countAt(ends: readonly number[] | undefined, at: number): number {
  return (ends ?? []).filter(end => end > at).length
}

function whyNever(session: ForecastSession, takers: readonly Taker[]): string | null {
  const { state, after, isHeldForGood, tags, template } = session
  if (state === 'held' && isHeldForGood) return `it waits for ${after}, which did not end as done`
  if (takers.length === 0) return 'no worker runs'
  if (takers.some(taker => taker.isFor(session))) return null
  if (takers.some(taker => taker.runs(session))) return 'no running worker takes its repository'
  if (takers.some(taker => taker.hasTags(session)))
    return `no free worker runs the template ${template ?? USUAL_TEMPLATE}`
  return tags.length === 0 ? 'no worker takes more sessions' : `no worker that takes sessions has ${tags.join(', ')}`
}

/** Returns a function for the usual duration by repository, ms: its median, or that of all with too few samples. */
function usualTimes(history: ForecastFacts['history'], ofAll: number): (repo: string) => number {
  const byRepository = new Map(
    [...Map.groupBy(history, ({ repo }) => repo)].flatMap(([repo, own]) => {
      const median = own.length < LEAST_OF_REPOSITORY ? null : medianOf(own.map(({ durationMs }) => durationMs))
      return median === null ? [] : [[repo, median.medianMs] as const]
    }),
  )
  return repo => byRepository.get(repo) ?? ofAll
}

function medianOf(durations: readonly number[]): Forecast['usual'] {
  return durations.length === 0 ? null : { medianMs: Math.max(middleOf(durations), 1), of: durations.length }
}

/** Returns the lower median; 0: no values. */
function middleOf(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor((values.length - 1) / 2)] ?? 0
}
