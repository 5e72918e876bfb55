import type { SessionLog } from './session-log.ts'

/** What ends the agents of a round. */
interface RoundEnds {
  /** Of which round. */
  round: string
  windDown: AbortController
  ending: AbortController
  /** Aborted when all have ended. */
  done: AbortController
  /** Whether it takes no requests any more, but those of agents that work. */
  isClosed: boolean
}

/** What ends the agents of each round, one after the other. */
export class AgentEnds {
  readonly #log: Pick<SessionLog, 'state'>
  #ends = newEnds('')

  constructor(log: Pick<SessionLog, 'state'>) {
    this.#log = log
  }

  /** Those of the round that runs; those of the last one if none does. */
  get now(): RoundEnds {
    const { running } = this.#log.state
    const round = running === null ? this.#ends.round : `${running.round} ${running.startedAt}`
    if (round !== this.#ends.round) this.#ends = newEnds(round)
    return this.#ends
  }

  /** Why no agent is started just now; null if one may be. `isOfAgent`: whether one that works asks for it. */
  notNow(isOfAgent: boolean): string | null {
    const { running, windingDown, build, pausedAt } = this.#log.state
    if (running === null) {
      if (pausedAt === null) return BETWEEN_ROUNDS
      return build?.plan === 'ready' && !build.isLetGo ? PLAN_WAITS : PAUSED
    }
    if (running.replan !== null || (build !== null && running.part !== 'orchestration')) return NOT_AT_WORK
    const { isClosed, windDown, ending } = this.now
    const isEnding = windingDown !== null || windDown.signal.aborted || ending.signal.aborted
    if (!isEnding && !(isClosed && !isOfAgent)) return null
    return 'The round comes to its end, so no agent is started any more.'
  }
}

const BETWEEN_ROUNDS = 'No round of the session runs just now, so no agent is started; ask again in a moment.'
const PAUSED = 'The session is paused, so no agent is started. To let it go on: codemachine unpause; ask again then.'
const PLAN_WAITS =
  'The plan waits for a person, so no agent is started. To have it carried out: codemachine unpause; ask again then.'
const NOT_AT_WORK = 'Agents are only given work while the plan is being carried out; this round does something else.'

function newEnds(round: string): RoundEnds {
  const [windDown, ending, done] = [new AbortController(), new AbortController(), new AbortController()]
  return { round, windDown, ending, done, isClosed: false }
}
