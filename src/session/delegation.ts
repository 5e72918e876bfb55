import { makeFolder } from '../workspace/inside-directory.ts'
import {
  type AgentAnswer,
  type AgentRequest,
  type AgentWorking,
  boundedPaths,
  EVERYBODYS,
  problemOf,
} from './delegation-agents.ts'
import { refusal } from './delegation-answers.ts'
import { type CallOptions, playCall } from './delegation-call.ts'
import { AgentEnds } from './delegation-ends.ts'
import { GivenFolders } from './delegation-folders.ts'
import { readPaths } from './delegation-paths.ts'
import { refuseTasks } from './delegation-tasks.ts'
import { instanceName } from './instance-name.ts'
import { type Hold, PathHolds, type Paths } from './path-holds.ts'
import { tasksNamed } from './tasks-named.ts'
import type { ThreadSpec } from './template.ts'

export type { AgentAnswer, AgentBook, AgentRequest } from './delegation-agents.ts'

export interface DelegationOptions extends CallOptions {
  /** The work directory's real path. */
  directory: string
  platform: NodeJS.Platform
  /** How many agents work at the same time. */
  atOnce: number
  /** What the round gets to come to a safe stop, ms; its agents get half of it, so that it can look at what they leave. */
  graceMs: number
}

/** The most requests that wait for their turn. */
const MOST_WAITING = 20

const NOBODY_KNOWN =
  'The session does not know who asks: it is none of the agents that work for it now, and it is not outside of their sandbox. Nothing was started.'

/** A request that is taken, and its turn; null: it does not come. Or why it is not taken, a sentence. */
type Admission = { thread: ThreadSpec; paths: Paths; turn: Promise<Hold | null> } | { problem: string }

/**
 * Gives work to agents, for the agent of a round and for those who ask from a command line: each call is a round of its
 * own beside that of the session, an instance of its agent. One object for a session.
 */
export class Delegation {
  readonly #options: DelegationOptions
  readonly #holds: PathHolds
  readonly #ignoresCase: boolean
  readonly #calls = new Set<Promise<unknown>>()
  readonly #byThread = new Map<string, AgentWorking>()
  readonly #names = new Set<string>()
  readonly #ends: AgentEnds
  readonly #folders: GivenFolders
  /** Requests are looked at one after the other: who comes first is served first. */
  #admitted: Promise<unknown> = Promise.resolve()

  constructor(options: DelegationOptions) {
    this.#options = options
    this.#ends = new AgentEnds(options.log)
    this.#folders = new GivenFolders(options.directory)
    this.#ignoresCase = options.platform === 'darwin' || options.platform === 'win32'
    this.#holds = new PathHolds({ atOnce: options.atOnce, ignoresCase: this.#ignoresCase })
  }

  /**
   * One call, which waits for its turn first. Resolves with what whoever asked is told, however it ended; rejects only
   * if it cannot be journaled, or kept.
   * @param over aborted when nobody waits for the answer any more
   */
  async run(request: AgentRequest, over: AbortSignal): Promise<AgentAnswer> {
    const parent = request.thread === null ? null : (this.#byThread.get(request.thread) ?? null)
    if (parent === null && !this.#isKnown(request)) return refusal(NOBODY_KNOWN)
    const call = this.#call({ ...request, task: request.task.toWellFormed() }, parent, over)
    const sets = [this.#calls, ...(parent === null ? [] : [parent.children])]
    for (const set of sets) set.add(call)
    try {
      return await call
    } finally {
      for (const set of sets) set.delete(call)
    }
  }

  /** The round comes to a safe stop: agents are asked to, and ended when half of the round's time for it is over. */
  windDown(): void {
    const { windDown, ending, done } = this.#ends.now
    if (windDown.signal.aborted) return
    windDown.abort()
    const { clock, graceMs } = this.#options
    void clock.wait(graceMs / 2, done.signal).then(() => {
      if (!done.signal.aborted) ending.abort()
    })
  }

  /** Resolves when none works or waits any more; takes nothing new until the next round, but from agents that work. */
  async settled(): Promise<void> {
    const ends = this.#ends.now
    ends.isClosed = true
    while (this.#calls.size > 0) await Promise.allSettled(this.#calls)
    ends.done.abort()
  }

  /** Ends all of them; resolves when none works any more. Takes nothing new until the next round. */
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
    if ('problem' in admitted) return refusal(admitted.problem)
    const { thread, paths } = admitted
    const hold = await admitted.turn
    if (hold === null) return refusal('It was called off before its turn came, and nothing was started.')
    try {
      // What was so when it was asked for need not be so any more.
      const late = this.#ends.notNow(parent !== null) ?? refuseTasks(request, log)
      if (late !== null) return refusal(late)
      const bound = await this.#bound(thread, paths)
      if ('problem' in bound) return refusal(bound.problem)
      const { state } = log
      const call = {
        request,
        round: state.running?.round ?? 0,
        instance: this.#nameFor(request.agent),
        tasks: tasksNamed(request.task, state.build?.tasks ?? []).map(({ id }) => id),
        thread: bound,
        paths,
        hold,
        parent,
        windDown: windDown.signal,
        ending,
        onThread: (id: string, working: AgentWorking) => void this.#byThread.set(id, working),
        onOver: (working: AgentWorking) => this.#forget(working),
      }
      return await playCall(call, this.#options)
    } finally {
      if (paths !== null) await this.#folders.takeBack(paths)
      this.#holds.release(hold)
    }
  }

  /** Looks at a request, and has it wait for its turn. */
  async #admit(request: AgentRequest, parent: AgentWorking | null, noTurn: AbortSignal): Promise<Admission> {
    const { log, book } = this.#options
    const problem = this.#ends.notNow(parent !== null) ?? problemOf(request, parent) ?? refuseTasks(request, log)
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

  /** Does it once all is done that came before. */
  #inOrder<T>(action: () => Promise<T>): Promise<T> {
    const done = this.#admitted.then(action)
    this.#admitted = done.catch(() => {})
    return done
  }

  /** Where it may write: in the paths that are asked for, and not beyond those of its parent. */
  async #reachOf(
    { paths }: AgentRequest,
    parent: AgentWorking | null,
  ): Promise<{ paths: Paths } | { problem: string }> {
    const read = await readPaths(paths, { ...this.#options, ignoresCase: this.#ignoresCase })
    return 'problem' in read ? read : boundedPaths(read.paths, parent, this.#ignoresCase)
  }

  /** The thread that can write in these paths only, which are made if they are not there. */
  async #bound(thread: ThreadSpec, paths: Paths): Promise<ThreadSpec | { problem: string }> {
    const { directory } = this.#options
    if (paths === null || thread.readOnly) return thread
    const problem = await this.#folders.give(paths)
    if (problem !== null) return { problem }
    const also = []
    for (const folder of EVERYBODYS) if (await isMade(directory, folder)) also.push(folder)
    return { ...thread, writable: [...paths, ...also] }
  }

  #nameFor(agent: string): string {
    const name = instanceName(agent, this.#options.clock.now(), each => this.#names.has(each))
    this.#names.add(name)
    return name
  }

  /** Whether it is of the round's own agent, or of somebody whom no sandbox binds. */
  #isKnown({ door, thread, isOutside }: AgentRequest): boolean {
    if (door === 'tool' || isOutside) return true
    return thread !== null && thread === this.#options.log.state.running?.thread
  }

  #forget(working: AgentWorking): void {
    for (const [thread, each] of this.#byThread) if (each === working) this.#byThread.delete(thread)
  }
}

/** Whether a folder of the memory is there now. What is in the way of it is said where the memory is read. */
async function isMade(directory: string, folder: string): Promise<boolean> {
  return await makeFolder(directory, folder).then(
    obstacle => obstacle === null,
    () => false,
  )
}
