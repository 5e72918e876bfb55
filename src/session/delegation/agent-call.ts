import { join } from 'node:path'
import type { Clock } from '../../base/clock.ts'
import { unreachable } from '../../base/errors.ts'
import { clipEnd } from '../../base/text.ts'
import type { EngineEvent, Engines, PreparedRound, RoundRun, ThreadSpec } from '../../core/engine.ts'
import type { TokenCounts } from '../../core/events/events.ts'
import type { RoundOutcome } from '../../core/events/outcome.ts'
import type { AgentStatus } from '../../core/state/plan.ts'
import { cutUnfinished, type Redactor } from '../../secrets/redactor.ts'
import { FirstFailure, LastMessage, openRecord, PricedThread, playTurns, RunningCommands } from '../play-round.ts'
import type { SessionLog } from '../session-log.ts'
import { answerAskPerson, HostTools } from '../tools.ts'
import type { AgentAnswer, AgentBook, AgentRequest, AgentWorking } from './agent-request.ts'
import type { Hold, Paths } from './path-holds.ts'

export interface CallOptions {
  log: SessionLog
  engines: Engines
  clock: Clock
  book: AgentBook
  redactor: Redactor
  /** Directory of the records `003-<instance>.ndjson`, …. */
  roundsDirectory: string
  /** Journals an engine's report on an agent's round, as one of the round itself. */
  onRoundEvent(event: EngineEvent): void
}

/** A call whose turn has come. */
interface Call {
  request: AgentRequest
  round: number
  instance: string
  /** Ids of the plan's tasks that the request names. */
  tasks: readonly string[]
  /** The thread as it is started, limited to the paths that it may write. */
  thread: ThreadSpec
  paths: Paths
  hold: Hold
  parent: AgentWorking | null
  /** Aborted for a safe stop (`windDown`), and for an immediate end (`ending`). */
  windDown: AbortSignal
  ending: AbortSignal
  /** Called before its turn begins. */
  onStart(working: AgentWorking): void
  /** Called with the id of each thread of the agent. */
  onThread(thread: string, working: AgentWorking): void
  /** Called when none of its threads can ask for anything any more. */
  onOver(working: AgentWorking): void
  /** Work of the template beside the round's own turn; undefined: a task that somebody gives to the agent. */
  beside?: BesideTurn
}

/** The turn of work beside a round's own turn. */
export interface BesideTurn extends Pick<RoundRun, 'input' | 'images' | 'outputSchema' | 'onRecord'> {
  /** Journals and stores the agent's last message once the turn has worked; null: none. */
  take(message: string | null): Promise<void>
}

/** Has an agent do the requested work, journals and keeps the result, and answers the caller. */
export async function playCall(call: Call, options: CallOptions): Promise<AgentAnswer> {
  const { request, round, instance, tasks, thread, paths, windDown, ending, beside } = call
  const { log, clock, engines, book, redactor } = options
  const { agent, task, door } = request
  log.emit({
    type: 'agent-started',
    round,
    instance,
    agent,
    tasks,
    request: requestOf(task),
    door,
    parent: call.parent?.instance ?? null,
    ...engines.named(thread),
    model: thread.model,
    effort: thread.effort,
    paths,
  })
  const { feed } = request
  feed?.started(instance)
  const prepared = engines.prepare(thread)
  const person = new PersonAtAgent(prepared, clock)
  const working = person.reach(call)
  call.onStart(working)
  const startedAt = clock.monotonic()
  let played: PlayedAgent = { outcome: { class: 'interrupted', message: null }, words: '', tokens: null }
  let end: AgentEnd
  try {
    const input = beside?.input ?? `User Request:\n${task}`
    const onThread = (id: string) => {
      person.begin()
      call.onThread(id, working)
    }
    played = await playAgent(
      prepared,
      { round, instance, input, beside },
      {
        ...options,
        onRoundEvent: event => options.onRoundEvent(engines.reported(event, thread)),
        onThread,
        ...(feed && { onText: text => feed.text(text) }),
        windDown,
        ending: AbortSignal.any([ending, person.stopping]),
      },
    )
  } finally {
    call.onOver(working)
    person.end()
    await Promise.allSettled(working.children)
    // Nobody may write in its paths while processes that it left may still write there.
    await engines.settle()
    const isStopped = person.stopping.aborted && !ending.aborted
    end = { agent, outcome: played.outcome, words: redactor.text(book.clean(played.words)), isStopped }
    if (end.outcome.class === 'worked') await beside?.take(played.words === '' ? null : played.words)
    log.emit({
      type: 'agent-ended',
      round,
      instance,
      status: statusOf(end.outcome),
      result: resultOf(end),
      durationMs: Math.round(clock.monotonic() - startedAt),
      tokens: played.tokens,
      ...(beside && { outcome: end.outcome }),
    })
  }
  if (end.outcome.class === 'worked' && beside === undefined) {
    const entry = { instance, at: clock.now(), request: redactor.text(task), result: end.words }
    const problem = await book.remember(agent, entry)
    if (problem !== null) options.onRoundEvent({ type: 'warning', round, message: problem })
  }
  return answerOf(end, instance, tasks.length > 0 || log.state.taskPlan === null)
}

/** Longest wait of a person's words for the turn of an agent that is starting, ms. */
const BEGIN_MS = 5_000

/** Carries a person's words and stop requests to a working agent. */
class PersonAtAgent {
  readonly #prepared: PreparedRound
  readonly #clock: Clock
  readonly #begun = new AbortController()
  readonly #stopping = new AbortController()
  readonly #over = new AbortController()

  constructor(prepared: PreparedRound, clock: Clock) {
    this.#prepared = prepared
    this.#clock = clock
  }

  /** Aborted when a person stops the agent. */
  get stopping(): AbortSignal {
    return this.#stopping.signal
  }

  /** Returns the working agent of this call. */
  reach({ request, instance, tasks, paths, hold, parent }: Call): AgentWorking {
    return {
      instance,
      agent: request.agent,
      tasks,
      paths,
      hold,
      parent,
      over: this.#over.signal,
      children: new Set(),
      steer: text => this.#steer(text),
      stop: () => this.#stopping.abort(),
    }
  }

  /** Notes that its turn has begun. */
  begin(): void {
    this.#begun.abort()
  }

  end(): void {
    this.#over.abort()
  }

  async #steer(text: string): Promise<boolean> {
    await this.#clock.wait(BEGIN_MS, AbortSignal.any([this.#begun.signal, this.#over.signal]))
    return !this.#over.signal.aborted && (await this.#prepared.steer(text))
  }
}

interface AgentRoundOptions {
  log: SessionLog
  clock: Clock
  redactor: Redactor
  /** Directory of the record `003-<instance>.ndjson`. */
  roundsDirectory: string
  /** Journals those reports of its engine that concern the session. */
  onRoundEvent(event: EngineEvent): void
  /** Called with the id of each known thread of the agent. */
  onThread(thread: string): void
  /** Called with each piece of the agent's text; undefined: nobody follows it. */
  onText?(text: string): void
  /** Aborted when the agent must come to a safe stop. */
  windDown: AbortSignal
  /** Aborted when the agent must end now. */
  ending: AbortSignal
}

/** One call of an agent to play. */
interface AgentToPlay {
  round: number
  instance: string
  input: string
  beside: BesideTurn | undefined
}

/** The outcome, the agent's last words (empty: none), and the tokens of all its threads; null: none reported. */
interface PlayedAgent {
  outcome: RoundOutcome
  words: string
  tokens: TokenCounts | null
}

/** Words to an agent that must come to its end. */
const WIND_DOWN =
  'Your time for this task is over. Stop safely: leave nothing half-changed, and start nothing new. End your turn by saying what is done and what is not.'

/** Plays the round of an agent with a task, as `playRound` plays the session's round, at the same time. */
async function playAgent(
  prepared: PreparedRound,
  { round, instance, input, beside }: AgentToPlay,
  options: AgentRoundOptions,
): Promise<PlayedAgent> {
  const { log, clock, redactor, onThread, onText, onRoundEvent, windDown } = options
  const failure = new FirstFailure()
  const record = openRecord(recordPath(options.roundsDirectory, round, instance), problem =>
    failure.safely(() => onRoundEvent({ type: 'warning', round, message: `${instance} is not recorded: ${problem}` })),
  )
  const heard = new Heard()
  const priced = new PricedThread(prepared, log)
  const commands = new RunningCommands(clock)
  const spoken = onText && new SpokenText(redactor, onText)
  const steer = () => void prepared.steer(WIND_DOWN)
  const tools = new HostTools([answerAskPerson({ log, agent: instance, redact: text => redactor.text(text) })])
  const run: RoundRun = {
    round,
    input,
    onEvent: event =>
      failure.safely(() => {
        heard.note(event)
        commands.note(event)
        if (event.type === 'item-completed' && event.item.kind === 'agent-message') spoken?.end()
        if (event.type === 'turn-started' || event.type === 'usage') onThread(event.thread)
        const journaled = ofAgent(priced.note(event), instance)
        if (journaled !== null) onRoundEvent(journaled)
        // The stop request came before the turn began.
        if (event.type === 'turn-started' && windDown.aborted) steer()
      }),
    onLive: event => {
      if (event.type === 'still-waiting') return
      commands.live(event)
      failure.safely(() => log.live({ ...event, instance }))
      if (event.type === 'text-delta' && event.source === 'agent-message') spoken?.add(event.text)
    },
    onRecord: line => {
      const redacted = redactor.line(line)
      record.write(redacted)
      failure.safely(() => beside?.onRecord(redacted))
    },
    onToolCall: (call, over) => failure.answer(() => tools.answer(call, over)),
    ...(beside && { onLongMessage: (item: string, text: string) => heard.noteLong(item, text) }),
    ...(beside?.images && { images: beside.images }),
    ...(beside?.outputSchema && { outputSchema: beside.outputSchema }),
  }
  windDown.addEventListener('abort', steer)
  try {
    const outcome = await playTurns(prepared, run, {
      clock,
      ending: AbortSignal.any([options.ending, failure.signal]),
      isWindingDown: () => windDown.aborted,
    })
    for (const item of commands.cutOff())
      failure.safely(() => onRoundEvent({ type: 'item-completed', round, item, instance }))
    failure.rethrow()
    return { outcome: priced.outcomeOf(outcome), words: heard.lastWords, tokens: heard.tokens }
  } finally {
    windDown.removeEventListener('abort', steer)
    await record.end()
  }
}

/** Returns the event as the session journals it; null if it concerns this thread only. */
function ofAgent(event: EngineEvent, instance: string): EngineEvent | null {
  switch (event.type) {
    case 'item-completed':
    // Usage is counted by thread, so each token counts once.
    case 'usage':
      return { ...event, instance }
    case 'limits':
    case 'request-answered':
    case 'warning':
    case 'error':
      return event
    case 'turn-started':
    case 'plan-updated':
    case 'model-rerouted':
    case 'machine-slept':
      return null
    default:
      return unreachable(event)
  }
}

/** Collects the messages and tokens of an agent. */
class Heard {
  readonly #message = new LastMessage()
  readonly #totals = new Map<string, TokenCounts>()

  note(event: EngineEvent): void {
    if (event.type === 'usage') this.#totals.set(event.thread, event.total)
    this.#message.note(event)
  }

  noteLong(item: string, text: string): void {
    this.#message.noteLong(item, text)
  }

  get lastWords(): string {
    return this.#message.text ?? ''
  }

  get tokens(): TokenCounts | null {
    const counts = [...this.#totals.values()]
    if (counts.length === 0) return null
    const sum = (key: keyof TokenCounts) => counts.reduce((total, each) => total + each[key], 0)
    return {
      input: sum('input'),
      cachedInput: sum('cachedInput'),
      output: sum('output'),
      reasoning: sum('reasoning'),
      total: sum('total'),
    }
  }
}

function recordPath(folder: string, round: number, instance: string): string {
  return join(folder, `${String(round).padStart(3, '0')}-${instance}.ndjson`)
}

/** Passes on an agent's text in pieces without secrets; holds back a possible beginning of a secret. */
export class SpokenText {
  readonly #redactor: Redactor
  readonly #letOut: (text: string) => void
  #held = ''
  #isInLine = false

  constructor(redactor: Redactor, letOut: (text: string) => void) {
    this.#redactor = redactor
    this.#letOut = letOut
  }

  add(piece: string): void {
    const { whole, held } = cutUnfinished(this.#redactor, this.#held + piece)
    this.#held = held
    this.#tell(this.#redactor.text(whole))
  }

  /** Passes on the rest of a message that has ended. */
  end(): void {
    this.#tell(this.#redactor.text(this.#held))
    this.#held = ''
    if (this.#isInLine) this.#tell('\n')
  }

  #tell(text: string): void {
    if (text === '') return
    this.#isInLine = !text.endsWith('\n')
    this.#letOut(text)
  }
}

/** Longest result for the caller, and for the journal, in characters without the note on the cut part. */
const MOST_ANSWER = 31_900
const MOST_JOURNALED = 3_900

/** The end of an agent's work, and its last words, cleaned; empty: none. */
interface AgentEnd {
  agent: string
  outcome: RoundOutcome
  words: string
  /** True if a person ended it, not the end of the round. */
  isStopped: boolean
}

/** Returns the journal's status for the end of a turn. */
function statusOf({ class: end }: RoundOutcome): AgentStatus {
  if (end === 'worked') return 'completed'
  return end === 'interrupted' ? 'terminated' : 'error'
}

/** Returns the result as it is journaled. */
function resultOf(end: AgentEnd): string {
  return clipEnd(inWords(end), MOST_JOURNALED)
}

/** Returns the answer to the caller. `counts`: the work counts for a task of the plan. */
function answerOf(end: AgentEnd, instance: string, counts: boolean): AgentAnswer {
  const text = clipEnd(inWords(end), MOST_ANSWER)
  const status = statusOf(end.outcome)
  const success = status === 'completed'
  return { text: success && !counts ? `${text}\n\n${COUNTS_FOR_NONE}` : text, success, status, instance }
}

/** Returns the answer to a caller whose request started nothing. */
export function refusedAnswer(problem: string): AgentAnswer {
  return { text: problem, success: false, status: 'refused' }
}

/** Returns the request as `agent-started` has it. */
function requestOf(task: string): string {
  return clipEnd(task, MOST_JOURNALED)
}

const COUNTS_FOR_NONE = '(The first line of the request names no task of the plan, so this counts for none.)'

function inWords({ agent, outcome, words, isStopped }: AgentEnd): string {
  if (outcome.class === 'worked') return words || `${agent} has ended without a word.`
  const last = words === '' ? '' : `\n\nThis is what it said last:\n\n${words}`
  return `${agent} ${isStopped && outcome.class === 'interrupted' ? STOPPED : whyNot(outcome)}${last}`
}

const STOPPED =
  'was stopped by a person before its work was done; only this agent was. Look at what it left before you give that work to anybody again.'

function whyNot({ class: end, message }: RoundOutcome): string {
  const why = message === null ? '' : ` ${message}`
  switch (end) {
    case 'interrupted':
      return 'was ended before its work was done.'
    case 'window':
    case 'quota':
      return `did not come to its end: the account's usage is used up.${why}`
    case 'silent':
      return `did not come to its end: codex was silent.${why}`
    case 'crashed':
      return `did not come to its end: its codex died.${why}`
    default:
      return `did not come to its end.${why}`
  }
}
