import type { ThreadSpec } from '../../core/engine.ts'
import type { AgentTask } from '../../core/shapes/tools.ts'
import { MOST_FAILURES, type NamedTask, PLAN_DECISION, type PlanTask, tasksNamed } from '../../core/state/plan.ts'
import { partOf } from '../../core/state/state.ts'
import { makeFolderInside } from '../../workspace/files/inside-directory.ts'
import type { SessionLog } from '../session-log.ts'
import { type BesideTurn, type CallOptions, playCall, refusedAnswer } from './agent-call.ts'
import {
  type AgentAnswer,
  type AgentRequest,
  type AgentWorking,
  boundedPaths,
  problemOfRequest,
  SHARED_FOLDERS,
} from './agent-request.ts'
import { GivenFolders, type Hold, PathHolds, type Paths, readPaths } from './path-holds.ts'

interface DelegationOptions extends CallOptions {
  /** Real path of the work directory. */
  directory: string
  platform: NodeJS.Platform
  /** Most agents that work at the same time. */
  atOnce: number
  /** `graceMs`: the round's time for a safe stop. Its agents get half, so that it can check their results. */
  policy: { readonly graceMs: number }
}

/** Most requests that wait for their turn. */
const MOST_WAITING = 20

const NOBODY_KNOWN =
  'The session does not know who asks: none of its agents at work, and nobody outside their sandbox. Nothing was started.'

/** An accepted request and its turn (null: it never comes), or a sentence on why it is refused. */
type Admission = { thread: ThreadSpec; paths: Paths; turn: Promise<Hold | null> } | { problem: string }

/**
 * Gives work to agents, for the round's agent and for callers on a command line. Each call is a round of its own: one
 * instance of its agent. One object per session.
 */
export class Delegation {
  readonly #options: DelegationOptions
  readonly #holds: PathHolds
  readonly #calls = new Set<Promise<unknown>>()
  readonly #byThread = new Map<string, AgentWorking>()
  /** Agents by instance name; null for an agent that has ended. */
  readonly #instances = new Map<string, AgentWorking | null>()
  readonly #ends: AgentEnds
  readonly #folders: GivenFolders
  /** Lists an agent while it works. */
  readonly #listed = {
    onStart: (working: AgentWorking) => void this.#instances.set(working.instance, working),
    onThread: (id: string, working: AgentWorking) => void this.#byThread.set(id, working),
    onOver: (working: AgentWorking) => this.#forget(working),
  }
  /** End of the last admission: requests are admitted one at a time, first come first served. */
  #admitted: Promise<unknown> = Promise.resolve()

  constructor(options: DelegationOptions) {
    this.#options = options
    this.#ends = new AgentEnds(options.log)
    this.#folders = new GivenFolders(options.directory)
    this.#holds = new PathHolds({ atOnce: options.atOnce, platform: options.platform })
  }

  /**
   * Plays one call after a wait for its turn. Resolves with the answer to the caller, however the call ended. Rejects only
   * if the journal or the memory cannot be written.
   * @param over aborted when nobody waits for the answer any more
   */
  async run(request: AgentRequest, over: AbortSignal): Promise<AgentAnswer> {
    const parent = request.thread === null ? null : (this.#byThread.get(request.thread) ?? null)
    if (parent === null && !this.#isKnown(request)) return refusedAnswer(NOBODY_KNOWN)
    const call = this.#call({ ...request, task: request.task.toWellFormed() }, parent, over)
    const sets = [this.#calls, ...(parent === null ? [] : [parent.children])]
    for (const set of sets) set.add(call)
    try {
      return await call
    } finally {
      for (const set of sets) set.delete(call)
    }
  }

  /** Plays work of the template beside the round's own turn. Rejects if the journal or an output cannot be written. */
  async beside(name: string, thread: ThreadSpec, turn: BesideTurn): Promise<void> {
    const { agent, readOnly } = thread
    const { windDown, ending } = this.#ends.now
    const paths = readOnly ? [] : null
    const call = playCall(
      {
        request: { agent, task: turn.input, paths, door: 'template', thread: null },
        round: this.#options.log.state.running?.round ?? 0,
        instance: name,
        tasks: [],
        thread,
        paths,
        hold: { paths, under: null, who: { agent } },
        parent: null,
        windDown: windDown.signal,
        ending: ending.signal,
        ...this.#listed,
        beside: turn,
      },
      this.#options,
    )
    this.#calls.add(call)
    try {
      await call
    } finally {
      this.#calls.delete(call)
    }
  }

  /** The agents at work, and the names of those that have ended, in the order of their start. */
  get agents(): { atWork: readonly AgentWorking[]; ended: readonly string[] } {
    const all = [...this.#instances]
    return {
      atWork: all.flatMap(([, working]) => working ?? []),
      ended: all.flatMap(([instance, working]) => (working === null ? [instance] : [])),
    }
  }

  /** Asks the agents for a safe stop, and ends them after half of the round's time for it. */
  windDown(): void {
    const { windDown, ending, done } = this.#ends.now
    if (windDown.signal.aborted) return
    windDown.abort()
    const { clock, policy } = this.#options
    void clock.wait(policy.graceMs / 2, done.signal).then(() => {
      if (!done.signal.aborted) ending.abort()
    })
  }

  /** Resolves when no agent works or waits. Until the next round, only working agents can ask for others. */
  async settled(): Promise<void> {
    const ends = this.#ends.now
    ends.isClosed = true
    while (this.#calls.size > 0) await Promise.allSettled(this.#calls)
    ends.done.abort()
  }

  /** Ends all agents; resolves when none works. Accepts nothing new until the next round. */
  async end(): Promise<void> {
    this.#ends.now.ending.abort()
    await this.settled()
  }

  async #call(request: AgentRequest, parent: AgentWorking | null, over: AbortSignal): Promise<AgentAnswer> {
    const { log } = this.#options
    const { windDown, ending: roundEnding } = this.#ends.now
    const ending = AbortSignal.any([over, roundEnding.signal, ...(parent === null ? [] : [parent.over])])
    const noTurn = AbortSignal.any([ending, windDown.signal])
    const admitted = await this.#inOrder(() => this.#admit(request, parent, noTurn))
    if ('problem' in admitted) return refusedAnswer(admitted.problem)
    const { thread, paths } = admitted
    const hold = await admitted.turn
    if (hold === null) return refusedAnswer('It was called off before its turn came, and nothing was started.')
    try {
      // Check again: the state may have changed since the request.
      const late = this.#ends.notNow(parent !== null) ?? refuseTasks(request, log)
      if (late !== null) return refusedAnswer(late)
      const bound = await this.#bound(thread, paths)
      if ('problem' in bound) return refusedAnswer(bound.problem)
      const { state } = log
      const call = {
        request,
        round: state.running?.round ?? 0,
        instance: this.#nameFor(request.agent),
        tasks: tasksNamed(request.task, state.taskPlan?.tasks ?? []).map(({ id }) => id),
        thread: bound,
        paths,
        hold,
        parent,
        windDown: windDown.signal,
        ending,
        ...this.#listed,
      }
      return await playCall(call, this.#options)
    } finally {
      if (paths !== null) await this.#folders.takeBack(paths)
      this.#holds.release(hold)
    }
  }

  /** Checks a request, and queues it for its turn. */
  async #admit(request: AgentRequest, parent: AgentWorking | null, noTurn: AbortSignal): Promise<Admission> {
    const { log, book } = this.#options
    const problem = this.#ends.notNow(parent !== null) ?? problemOfRequest(request, parent) ?? refuseTasks(request, log)
    if (problem !== null) return { problem }
    const found = await book.thread(request.agent)
    if ('problem' in found) return found
    const reach = await this.#reachOf(request, parent)
    if ('problem' in reach) return reach
    if (this.#holds.waiting >= MOST_WAITING) {
      return { problem: `${MOST_WAITING} requests wait already; ask again when some of them have ended.` }
    }
    const { agent, feed } = request
    const who = { agent, ...(feed && { onBehind: (agents: readonly string[]) => feed.waits(agents) }) }
    const paths = found.thread.readOnly ? [] : reach.paths
    return { thread: found.thread, paths, turn: this.#holds.take(paths, parent?.hold ?? null, noTurn, who) }
  }

  /** Runs an action after all earlier ones. */
  #inOrder<T>(action: () => Promise<T>): Promise<T> {
    const done = this.#admitted.then(action)
    this.#admitted = done.catch(() => {})
    return done
  }

  /** Returns the paths that it may write: the requested ones, within those of its parent. */
  async #reachOf(
    { paths }: AgentRequest,
    parent: AgentWorking | null,
  ): Promise<{ paths: Paths } | { problem: string }> {
    const read = await readPaths(paths, this.#options)
    return 'problem' in read ? read : boundedPaths(read.paths, parent, this.#options.platform)
  }

  /** Returns a thread that can write in these paths only. Creates missing folders. */
  async #bound(thread: ThreadSpec, paths: Paths): Promise<ThreadSpec | { problem: string }> {
    const { directory } = this.#options
    if (paths === null || thread.readOnly) return thread
    const problem = await this.#folders.give(paths)
    if (problem !== null) return { problem }
    const also = []
    for (const folder of SHARED_FOLDERS) if (await isMade(directory, folder)) also.push(folder)
    return { ...thread, writable: [...paths, ...also] }
  }

  #nameFor(agent: string): string {
    const name = instanceName(agent, this.#options.clock.now(), each => this.#instances.has(each))
    this.#instances.set(name, null)
    return name
  }

  /** True if the request comes from the round's own agent, or from a caller outside of any sandbox. */
  #isKnown({ door, thread, isOutside }: AgentRequest): boolean {
    if (door === 'tool' || isOutside) return true
    return thread !== null && thread === this.#options.log.state.running?.thread
  }

  #forget(working: AgentWorking): void {
    this.#instances.set(working.instance, null)
    for (const [thread, each] of this.#byThread) if (each === working) this.#byThread.delete(thread)
  }
}

/** Creates a folder of the memory; true if it exists now. The read of the memory reports an obstacle. */
async function isMade(directory: string, folder: string): Promise<boolean> {
  return await makeFolderInside(directory, folder).then(
    obstacle => obstacle === null,
    () => false,
  )
}

/** Signals that end the agents of a round. */
interface RoundEnds {
  /** Number and start time of the round. */
  round: string
  windDown: AbortController
  ending: AbortController
  /** Aborted when all agents have ended. */
  done: AbortController
  /** True if only working agents can ask for others. */
  isClosed: boolean
}

/** Keeps the signals that end the agents, one set per round. */
class AgentEnds {
  readonly #log: Pick<SessionLog, 'state'>
  #ends = newEnds('')

  constructor(log: Pick<SessionLog, 'state'>) {
    this.#log = log
  }

  /** The signals of the running round, otherwise of the last one. */
  get now(): RoundEnds {
    const { running } = this.#log.state
    const round = running === null ? this.#ends.round : `${running.round} ${running.startedAt}`
    if (round !== this.#ends.round) this.#ends = newEnds(round)
    return this.#ends
  }

  /** Returns why no agent can start now; null if one can. `isOfAgent`: a working agent asks. */
  notNow(isOfAgent: boolean): string | null {
    const { running, windingDown, decision, kind, pausedAt } = this.#log.state
    if (running === null) {
      if (decision !== null) return decision.id === PLAN_DECISION ? PLAN_WAITS : DECISION_WAITS
      return pausedAt === null ? BETWEEN_ROUNDS : PAUSED
    }
    if (running.replan !== null || !partOf(kind, running.part).delegates) return NOT_AT_WORK
    const { isClosed, windDown, ending } = this.now
    const isEnding = windingDown !== null || windDown.signal.aborted || ending.signal.aborted
    if (!isEnding && !(isClosed && !isOfAgent)) return null
    return 'The round comes to its end, so no agent is started any more.'
  }
}

const BETWEEN_ROUNDS = 'No round of the session runs just now, so no agent is started; ask again in a moment.'
const PAUSED = 'The session is paused, so no agent is started. To let it go on: codemachine unpause; ask again then.'
const PLAN_WAITS =
  'The plan waits for a person, so no agent is started. To have it carried out: codemachine decide; ask again then.'
const DECISION_WAITS =
  'A person has to decide something first, so no agent is started. To see what: codemachine decide; ask again then.'
const NOT_AT_WORK = 'Agents are only given work while the plan is being carried out; this round does something else.'

function newEnds(round: string): RoundEnds {
  const [windDown, ending, done] = [new AbortController(), new AbortController(), new AbortController()]
  return { round, windDown, ending, done, isClosed: false }
}

/**
 * Returns a sentence for the caller if the agent may not get the tasks that the request names; null if it may. Parks a task
 * that has failed too often.
 */
function refuseTasks({ agent, task: request }: AgentTask, log: SessionLog): string | null {
  const { taskPlan, running } = log.state
  const refused = refusalOf(tasksNamed(request, taskPlan?.tasks ?? []), agent)
  if (refused === null) return null
  const { id, name, phase } = refused.task
  const round = running?.round ?? 0
  if (refused.parked !== null) {
    log.emit({ type: 'task-judged', round, task: id, name, phase, verdict: 'parked', detail: refused.parked })
  }
  return refused.problem
}

/** The reason why nobody may work on a task; `parked`: the reason to park it, null if it is parked already. */
interface TaskRefusal {
  task: PlanTask
  problem: string
  parked: string | null
}

/** Returns the refusal of the first task that this agent may not get again, or that is parked; null: none. */
function refusalOf(tasks: readonly NamedTask[], agent: string): TaskRefusal | null {
  for (const { id, task } of tasks) {
    const known = task.parked === null ? null : `${task.id} is parked, and nobody works on it any more: ${task.parked}`
    if (known !== null) return { task, problem: `${known} ${GO_ON}`, parked: null }
    // A part of a task is not the whole task.
    const isAgain = id === task.id && (task.givenTo[agent] ?? 0) > 0
    if (task.done || !isAgain || task.failures + 1 < MOST_FAILURES) continue
    const parked = `It was worked on ${MOST_FAILURES} times and is not done; ${agent} was to try once more.`
    return { task, problem: `${task.id} is parked now: it failed ${MOST_FAILURES} times. ${GO_ON}`, parked }
  }
  return null
}

const GO_ON = 'Continue with the others.'

/**
 * Returns the instance name of a call: `frontend-dev-20261122T004530123`, with UTC time; 1 ms later if the name is taken.
 * @param now Unix time, ms
 */
function instanceName(agent: string, now: number, isTaken: (name: string) => boolean): string {
  const name = `${agent}-${new Date(now).toISOString().replace(/[-:.Z]/g, '')}`
  return isTaken(name) ? instanceName(agent, now + 1, isTaken) : name
}
