import type { Clock } from '../base/clock.ts'
import type { Redactor } from '../base/redactor.ts'
import { type PlayedAgent, playAgent } from './agent-round.ts'
import type { AgentAnswer, AgentBook, AgentRequest, AgentWorking } from './delegation-agents.ts'
import { type AgentEnd, answerOf, requestOf, resultOf, statusOf } from './delegation-answers.ts'
import type { Engine, RoundEvent } from './engine.ts'
import type { Hold, Paths } from './path-holds.ts'
import type { SessionLog } from './session-log.ts'
import type { ThreadSpec } from './template.ts'

export interface CallOptions {
  log: SessionLog
  engine: Engine
  clock: Clock
  book: AgentBook
  redactor: Redactor
  /** Where `003-<instance>.ndjson`, … go. */
  roundsDirectory: string
  /** Journals what an engine reports of an agent's round, as that of the round itself. */
  onRoundEvent(event: RoundEvent): void
}

/** A call that has its turn. */
export interface Call {
  request: AgentRequest
  round: number
  instance: string
  /** Ids of the tasks of the plan that it is about. */
  tasks: readonly string[]
  /** As it is started, bound to what it may write. */
  thread: ThreadSpec
  paths: Paths
  hold: Hold
  parent: AgentWorking | null
  /** Aborted when it has to come to a safe stop, and when it has to end now. */
  windDown: AbortSignal
  ending: AbortSignal
  /** Called with each thread that is its own. */
  onThread(thread: string, working: AgentWorking): void
  /** Called when none of them can ask for anything any more. */
  onOver(working: AgentWorking): void
}

/** Has an agent do what it was asked for, journals that, keeps what came of it, and answers whoever asked. */
export async function playCall(call: Call, options: CallOptions): Promise<AgentAnswer> {
  const { request, round, instance, tasks, thread, paths, hold, parent, windDown, ending } = call
  const { log, clock, engine, book, redactor } = options
  const { agent, task, door } = request
  const over = new AbortController()
  const working: AgentWorking = { instance, agent, paths, hold, parent, over: over.signal, children: new Set() }
  log.emit({
    type: 'agent-started',
    round,
    instance,
    agent,
    tasks,
    request: requestOf(task),
    door,
    parent: parent?.instance ?? null,
    model: thread.model,
    effort: thread.effort,
    paths,
  })
  const { feed } = request
  feed?.started(instance)
  const startedAt = clock.monotonic()
  let played: PlayedAgent = { outcome: { class: 'interrupted', message: null }, words: '', tokens: null }
  let end: AgentEnd
  try {
    const input = `User Request:\n${task}`
    const onThread = (id: string) => call.onThread(id, working)
    played = await playAgent(
      engine.prepare(thread),
      { round, instance, input },
      { ...options, onThread, ...(feed && { onText: text => feed.text(text) }), windDown, ending },
    )
  } finally {
    call.onOver(working)
    over.abort()
    await Promise.allSettled(working.children)
    // Where it has written nobody else writes while something that it left running may.
    await engine.settle()
    end = { agent, outcome: played.outcome, words: redactor.text(book.clean(played.words)) }
    log.emit({
      type: 'agent-ended',
      round,
      instance,
      status: statusOf(end.outcome),
      result: resultOf(end),
      durationMs: Math.round(clock.monotonic() - startedAt),
      tokens: played.tokens,
    })
  }
  if (end.outcome.class === 'worked') {
    const entry = { instance, at: clock.now(), request: redactor.text(task), result: end.words }
    const problem = await book.remember(agent, entry)
    if (problem !== null) options.onRoundEvent({ type: 'warning', round, message: problem })
  }
  return answerOf(end, instance, tasks.length > 0 || log.state.build === null)
}
