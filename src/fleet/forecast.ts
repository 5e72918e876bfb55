import { USUAL_TEMPLATE } from '../modes/registry.ts'
import { runsTemplate } from './queue.ts'
import { takesRepo } from './repos.ts'

/** A session that runs or waits. Moments are Unix times, ms. */
export interface ForecastSession {
  id: string
  /** Of those of one team and repository only so many run at once. */
  group: string
  repo: string
  state: 'running' | 'waiting' | 'held'
  /** The higher, the sooner. */
  priority: number
  tags: readonly string[]
  /** Null: the usual one. */
  template: string | null
  notBefore: number | null
  /** It is not begun after; null: whenever. */
  deadline: number | null
  hasBegun: boolean
  /** The session that has to be done before; null: none. */
  after: string | null
  /** Whether that one came to another end, so that this one waits for good. */
  isHeldForGood: boolean
  worker: string | null
  /** How long it has been worked on. */
  workedMs: number
}

/** A worker that runs. */
export interface ForecastWorker {
  name: string
  slots: number
  tags: readonly string[]
  repos: readonly string[]
  /** Empty: all. */
  templates: readonly string[]
  /** Whether it takes sessions, and goes on with those that it has: it does not drain, and nothing keeps it from it. */
  takes: boolean
  /** Until when its login lets it take nothing; null: it may. */
  pausedUntil: number | null
}

/** What a forecast is made of; moments are Unix times of the database's clock, ms. */
export interface ForecastFacts {
  now: number
  perRepository: number
  /** How long those took that ended within two weeks, the newest 500. */
  history: { repo: string; durationMs: number }[]
  /** Those that run or wait, in the order in which they are taken, at most 5,000. */
  sessions: ForecastSession[]
  /** How many more there are. */
  beyond: number
  workers: ForecastWorker[]
}

/** What the queue will have come to by a moment. */
export interface Forecast {
  /** Unix time, ms. */
  by: number
  /** How long a session takes, the median, ms, and of how many; null: none has ended lately, so nothing can be said. */
  usual: { medianMs: number; of: number } | null
  /** Those that will have ended by then, the first one first, and when. */
  done: { id: string; at: number }[]
  /** The others: when they will have ended, as far as that is known, or what keeps them. */
  late: { id: string; at: number | null; why: string | null }[]
}

/** A median of fewer than these says little of a repository. */
const LEAST_OF_REPOSITORY = 3
/** One that has been worked on for longer than usual is taken to need this part of the usual time more. */
const LEAST_LEFT = 1 / 10

interface Plan {
  session: ForecastSession
  leftMs: number
  /** What keeps it from ever being begun as things are, a clause; null: nothing. */
  wait: string | null
}

/**
 * Plays the queue to a moment: each worker that has room takes what `take` would give it, and each session takes as long as those of
 * its repository usually did. The same facts give the same forecast.
 * @param by Unix time, ms
 */
export function forecastOf({ now, history, sessions, workers, perRepository }: ForecastFacts, by: number): Forecast {
  const usual = medianOf(history.map(({ durationMs }) => durationMs))
  if (usual === null) return { by, usual, done: [], late: [] }
  const usualOf = usualTimes(history, usual.medianMs)
  const takers = workers.map(takerOf)
  const plans = sessions.map((session): Plan => {
    const whole = usualOf(session.repo)
    return { session, leftMs: Math.max(whole - session.workedMs, whole * LEAST_LEFT), wait: whyNever(session, takers) }
  })
  const ends = new Play(plans, takers, { now, perRepository }).runTo(by)
  const done = [...ends].filter(([, at]) => at <= by).map(([id, at]) => ({ id, at }))
  const late = plans
    .filter(({ session }) => (ends.get(session.id) ?? Number.POSITIVE_INFINITY) > by)
    .map(({ session, wait }) => {
      const at = ends.get(session.id) ?? null
      const isTooLate = at === null && !session.hasBegun && session.deadline !== null && session.deadline < by
      return { id: session.id, at, why: wait ?? (isTooLate ? 'it will not start before its deadline' : null) }
    })
  return { by, usual, done: done.toSorted((a, b) => a.at - b.at), late }
}

/** A worker, and what it takes. */
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

/** What goes on at each moment at which something ends or may begin. */
class Play {
  readonly #now: number
  readonly #perRepository: number
  readonly #takers: readonly Taker[]
  /** Those that wait, in the order in which they are taken. */
  #waiting: Plan[]
  /** When what each worker has, and each group, will have ended. */
  readonly #busy = new Map<string, number[]>()
  readonly #groups = new Map<string, number[]>()
  readonly #ends = new Map<string, number>()

  constructor(plans: readonly Plan[], takers: readonly Taker[], facts: { now: number; perRepository: number }) {
    this.#now = facts.now
    this.#perRepository = facts.perRepository
    this.#takers = takers
    // What a worker has that drains, or is lost, is taken by another one.
    const goesOn = ({ session: { state, worker } }: Plan) =>
      state === 'running' && takers.some(({ name, takes }) => name === worker && takes)
    for (const plan of plans) if (goesOn(plan)) this.#begin(plan, plan.session.worker ?? '', facts.now)
    // What few workers can do comes first, as in the queue.
    this.#waiting = plans
      .filter(plan => !goesOn(plan) && plan.wait === null)
      .toSorted((a, b) => b.session.tags.length - a.session.tags.length || b.session.priority - a.session.priority)
  }

  /** When each ends that begins by then; Unix time, ms. */
  runTo(by: number): ReadonlyMap<string, number> {
    for (let at: number | null = this.#now; at !== null && at <= by; at = this.#nextAfter(at)) this.#fill(at)
    return this.#ends
  }

  #fill(at: number): void {
    const hasRoom = ({ name, slots, takes, pausedUntil }: Taker) =>
      takes && (pausedUntil === null || pausedUntil <= at) && countAt(this.#busy.get(name), at) < slots
    let free = this.#takers.filter(hasRoom)
    const left: Plan[] = []
    for (const plan of this.#waiting) {
      const taker =
        free.length > 0 && this.#mayBegin(plan.session, at) ? free.find(each => each.isFor(plan.session)) : undefined
      if (taker === undefined) left.push(plan)
      else {
        this.#begin(plan, taker.name, at)
        free = free.filter(hasRoom)
      }
    }
    this.#waiting = left
  }

  #begin({ session: { id, group }, leftMs }: Plan, worker: string, at: number): void {
    const end = at + leftMs
    this.#ends.set(id, end)
    this.#busy.set(worker, [...(this.#busy.get(worker) ?? []), end])
    this.#groups.set(group, [...(this.#groups.get(group) ?? []), end])
  }

  #mayBegin({ notBefore, deadline, hasBegun, state, after, group }: ForecastSession, at: number): boolean {
    if (notBefore !== null && notBefore > at) return false
    if (!hasBegun && deadline !== null && deadline < at) return false
    if (state === 'held' && (this.#ends.get(after ?? '') ?? Number.POSITIVE_INFINITY) > at) return false
    return countAt(this.#groups.get(group), at) < this.#perRepository
  }

  /** The next moment at which anything can change; null: none. */
  #nextAfter(at: number): number | null {
    const moments = [
      ...this.#ends.values(),
      ...this.#waiting.map(({ session }) => session.notBefore),
      ...this.#takers.map(({ pausedUntil }) => pausedUntil),
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

/** How long a session of a repository usually takes, ms: the median of those of it, or of all where it has too few. */
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
  const sorted = durations.toSorted((a, b) => a - b)
  const middle = sorted[Math.floor((sorted.length - 1) / 2)]
  return middle === undefined ? null : { medianMs: Math.max(middle, 1), of: sorted.length }
}
