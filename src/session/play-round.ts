import { createWriteStream, existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Clock } from '../base/clock.ts'
import type { EngineEvent, PreparedRound, RoundRun, ToolAnswer, ToolCall } from '../core/engine.ts'
import type { LiveEvent } from '../core/events/events.ts'
import type { Item } from '../core/events/items.ts'
import { limitReached, type RoundOutcome, renewalOf, type WindDownLimit } from '../core/events/outcome.ts'
import { problemOfModel } from '../core/rules/cost.ts'
import { CARRY_ON } from '../core/rules/notices.ts'
import { sessionTokens } from '../core/state/state.ts'
import { usageOf } from '../core/state/usage.ts'
import type { SessionLog } from './session-log.ts'

interface PlayTurnsOptions {
  clock: Clock
  /** Aborted when the round must end now. */
  ending: AbortSignal
  /** Returns true if the round must come to a safe stop: no further turn begins. */
  isWindingDown(): boolean
  /** Called with the outcome of the first turn before another one begins. */
  onCarryOn?(cause: RoundOutcome): void
  /** Returns the input of the next turn in the same thread; null: the round is over. Undefined: the round has one turn. */
  nextInput?: (() => Promise<string | null>) | undefined
}

/** Delay between a turn that lost the network and the next one in its thread, ms. */
const CARRY_ON_MS = 2_000

/** Plays the turns of a round. After a network failure, plays one more turn in the same thread, then releases the thread. */
export async function playTurns(
  prepared: PreparedRound,
  run: RoundRun,
  options: PlayTurnsOptions,
): Promise<RoundOutcome> {
  const { ending, nextInput } = options
  const interrupt = () => void prepared.interrupt()
  ending.addEventListener('abort', interrupt)
  const mayGoOn = () => !ending.aborted && !options.isWindingDown()
  try {
    if (ending.aborted) prepared.discard()
    let outcome = await overNetwork(prepared, await prepared.run(run), options)
    while (outcome.class === 'worked' && nextInput !== undefined && mayGoOn()) {
      const input = await nextInput()
      if (ending.aborted) return INTERRUPTED
      if (input === null || !mayGoOn()) return outcome
      const next = prepared.isOver === true ? null : await prepared.carryOn(input)
      if (next === null) return NO_NEXT_TURN
      outcome = await overNetwork(prepared, next, options)
    }
    return outcome
  } finally {
    ending.removeEventListener('abort', interrupt)
    prepared.discard()
  }
}

const INTERRUPTED: RoundOutcome = { class: 'interrupted', message: null }
const NO_NEXT_TURN: RoundOutcome = {
  class: 'crashed',
  message: 'The thread of the round has gone between two of its turns.',
}

/** Returns the outcome of a turn, or of the turn that follows it after a network failure. */
async function overNetwork(
  prepared: PreparedRound,
  cause: RoundOutcome,
  { clock, ending, isWindingDown, onCarryOn }: PlayTurnsOptions,
): Promise<RoundOutcome> {
  const mayGoOn = () => !ending.aborted && !isWindingDown() && prepared.isOver !== true
  if (cause.class !== 'network' || !mayGoOn()) return cause
  await clock.wait(CARRY_ON_MS, ending)
  if (!mayGoOn()) return cause
  onCarryOn?.(cause)
  return (await prepared.carryOn(CARRY_ON)) ?? cause
}

export interface RoundPlayOptions extends LimitPolicy {
  log: SessionLog
  clock: Clock
  /** Directory of the records `001.ndjson`, …. */
  roundsDirectory: string
  /** Removes secrets from a line of JSON. */
  redactLine(line: string): string
  /** Called with each of these lines; undefined: not called. */
  onRecord?: ((line: string) => void) | undefined
  /** Aborted when a person ends the round now. */
  ending: AbortSignal
  onEvent(event: EngineEvent): void
  /** Answers a call of one of codemachine's own tools. */
  onToolCall(call: ToolCall, over: AbortSignal): Promise<ToolAnswer>
  /** Called first with a function to report events of others in this round. They are journaled and counted with it. */
  onOpen?(report: (event: EngineEvent) => void): void
  /**
   * Returns the input of the next turn in the same thread; null: the round is over. `message`: the agent's last words.
   * `over` is aborted when the round must end now. Undefined: the round has one turn.
   */
  nextInput?: ((message: string | null, over: AbortSignal) => Promise<string | null>) | undefined
  /** Resolves when the others have ended, after the round's own turn. `ending` is aborted when they must end now. */
  untilOthersEnd?(outcome: RoundOutcome, ending: AbortSignal): Promise<void>
}

/** A round to play: its input and its description. */
interface RoundToPlay {
  round: number
  input: string
  /** Images, as in `RoundRun.images`. */
  images?: readonly string[]
  /** Name of its record without `.ndjson`; undefined: the round's number. */
  record?: string
  /** JSON Schema of its last message; undefined: free text. */
  outputSchema?: object
}

/** The outcome of a round and the whole last message of its agent; null unless it ended normally with a message. */
export interface EndedTurn {
  outcome: RoundOutcome
  message: string | null
}

/**
 * Plays one round, and journals and records the engine's events. Continues once in the same thread after a network failure.
 * Brings the agent to a safe stop at a limit.
 */
export async function playRound(
  prepared: PreparedRound,
  { round, input, images, record: name, outputSchema }: RoundToPlay,
  options: RoundPlayOptions,
): Promise<EndedTurn> {
  const { log, clock, redactLine } = options
  const failure = new FirstFailure()
  const ending = AbortSignal.any([options.ending, failure.signal])
  const path = join(options.roundsDirectory, `${name ?? String(round).padStart(3, '0')}.ndjson`)
  const record = openRecord(path, problem =>
    failure.safely(() => log.emit({ type: 'warning', round, message: `The round is not recorded: ${problem}` })),
  )
  const limits = new LimitWatch(prepared, round, options, action => failure.safely(action))
  const report = (event: EngineEvent) =>
    failure.safely(() => {
      options.onEvent(event)
      limits.look(event)
    })
  options.onOpen?.(report)
  const last = new LastMessage()
  const thread = new PricedThread(prepared, log)
  const commands = new RunningCommands(clock)
  const run: RoundRun = {
    round,
    input,
    onEvent: event => {
      last.note(event)
      commands.note(event)
      report(thread.note(event))
    },
    onLongMessage: (item, text) => last.noteLong(item, text),
    onLive: event => {
      commands.live(event)
      failure.safely(() => log.live(event))
    },
    onRecord: line => {
      const redacted = redactLine(line)
      record.write(redacted)
      failure.safely(() => options.onRecord?.(redacted))
    },
    onToolCall: (call, over) => failure.answer(() => options.onToolCall(call, over)),
    ...(images === undefined ? {} : { images }),
    ...(outputSchema === undefined ? {} : { outputSchema }),
    ...(options.nextInput === undefined ? {} : { keepsThread: true as const }),
  }
  const { nextInput } = options
  const over = AbortSignal.any([ending, limits.over])
  try {
    const outcome = await playTurns(prepared, run, {
      clock,
      ending: over,
      isWindingDown: () => log.state.windingDown !== null,
      onCarryOn: cause => failure.safely(() => log.emit({ type: 'turn-continued', round, cause })),
      nextInput: nextInput && (() => failure.input(() => nextInput(last.ofTurn(), over))),
    })
    await options.untilOthersEnd?.(outcome, ending)
    for (const item of commands.cutOff()) report({ type: 'item-completed', round, item })
    failure.rethrow()
    return {
      outcome: limits.outcomeOf(thread.outcomeOf(outcome)),
      message: outcome.class === 'worked' ? last.text : null,
    }
  } finally {
    limits.end()
    await record.end()
  }
}

/**
 * A thread with priced tokens. Adds the model to their usage. Ends the turn if the cost is limited and the model has no
 * price.
 */
export class PricedThread {
  readonly #prepared: PreparedRound
  readonly #log: SessionLog
  #model: string | null
  #problem: string | null = null

  constructor(prepared: PreparedRound, log: SessionLog) {
    this.#prepared = prepared
    this.#log = log
    this.#model = prepared.thread.model
  }

  /** Returns the event as it is journaled. */
  note(event: EngineEvent): EngineEvent {
    const { prices, limits } = this.#log.state
    if (prices.length === 0) return event
    if (event.type === 'turn-started') this.#model = event.model ?? this.#model
    else if (event.type === 'model-rerouted') this.#model = event.to
    else if (event.type !== 'usage') return event
    // An engine may report usage without a `turn-started` event.
    if (limits.cost !== undefined && this.#problem === null) {
      this.#problem = problemOfModel(prices, this.#model)
      if (this.#problem !== null) void this.#prepared.interrupt()
    }
    return event.type === 'usage' && this.#model !== null ? { ...event, model: this.#model } : event
  }

  /** Returns the outcome of its turn; `config` if the turn was ended for want of a price. */
  outcomeOf(outcome: RoundOutcome): RoundOutcome {
    return this.#problem === null ? outcome : { class: 'config', message: this.#problem }
  }
}

/** Tracks the commands of a round that have not ended. A turn may end before them; they end with its codex. */
export class RunningCommands {
  readonly #clock: Clock
  readonly #running = new Map<string, { item: Command; since: number }>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  live(event: LiveEvent): void {
    if (event.type !== 'item-started' || event.item.kind !== 'command') return
    if (this.#running.size >= MOST_COMMANDS || this.#running.has(event.item.id)) return
    this.#running.set(event.item.id, { item: event.item, since: this.#clock.monotonic() })
  }

  note(event: EngineEvent): void {
    if (event.type === 'item-completed') this.#running.delete(event.item.id)
  }

  /** Returns the commands that end with the round, for the journal, without output: its end may be half a secret. */
  cutOff(): Command[] {
    const now = this.#clock.monotonic()
    return [...this.#running.values()].map(({ item, since }) => ({
      ...item,
      output: '',
      status: 'running',
      cutOffMs: Math.round(now - since),
    }))
  }
}

type Command = Extract<Item, { kind: 'command' }>

/** Most running commands that are tracked at once. */
const MOST_COMMANDS = 200

/** Collects the whole last message of a round's agent: the final answer, if codex marks one. */
export class LastMessage {
  #text: string | null = null
  #isFinal = false
  /** The whole text of a message that its event shortens. */
  #long: { item: string; text: string } | null = null

  #isOfTurnBefore = false

  noteLong(item: string, text: string): void {
    this.#long = { item, text }
  }

  note(event: EngineEvent): void {
    if (event.type === 'turn-started' && this.#isOfTurnBefore) {
      this.#text = null
      this.#isFinal = false
      this.#isOfTurnBefore = false
    }
    if (event.type !== 'item-completed' || event.item.kind !== 'agent-message') return
    const { id, text, phase } = event.item
    const isFinal = phase === 'final-answer'
    if (this.#isFinal && !isFinal) return
    this.#text = this.#long?.item === id ? this.#long.text : text
    this.#isFinal = isFinal
    this.#long = null
  }

  get text(): string | null {
    return this.#text
  }

  /** Returns the last message of the ended turn. The next turn begins without one. */
  ofTurn(): string | null {
    this.#isOfTurnBefore = true
    return this.#text
  }
}

const COULD_NOT: ToolAnswer = { text: 'It could not be done.', success: false }

/**
 * Keeps the first error of the work during a turn. After it, nothing more is done: what cannot be journaled must not
 * continue.
 */
export class FirstFailure {
  readonly #failed = new AbortController()

  /** Aborted with the first error. */
  get signal(): AbortSignal {
    return this.#failed.signal
  }

  /** Runs an action unless something has failed before. */
  safely(action: () => void): void {
    if (this.signal.aborted) return
    try {
      action()
    } catch (error) {
      this.#failed.abort(error)
    }
  }

  /** Answers a tool call, even if that fails or something has failed before. */
  async answer(answering: () => Promise<ToolAnswer> | ToolAnswer): Promise<ToolAnswer> {
    if (this.signal.aborted) return COULD_NOT
    try {
      return await answering()
    } catch (error) {
      this.#failed.abort(error)
      return COULD_NOT
    }
  }

  /** Returns the next turn's input; null also if that fails. */
  async input(finding: () => Promise<string | null>): Promise<string | null> {
    try {
      return await finding()
    } catch (error) {
      this.#failed.abort(error)
      return null
    }
  }

  /** Throws the first error, if there is one. */
  rethrow(): void {
    this.signal.throwIfAborted()
  }
}

/** Limits of a round, in addition to those of the session. */
interface LimitPolicy {
  /** Time for an agent's safe stop, ms. */
  graceMs: number
  /** Usable percentage of a usage window, 0 to 100; null: all. `login`: owner of the window, as in `Engines.loginOf`. */
  maxUsage: number | null
  login: string | null
  /** Time left to the session, ms; infinity: no limit. */
  timeLeftMs: number
  /** Longest time of the round, ms; undefined: the time left to the session. */
  roundMs?: number | undefined
  /** Request to the agent to stop safely. */
  windDown: string
  /** Called when the agent must stop safely. */
  onWindDown?(): void
}

interface LimitWatchOptions extends LimitPolicy {
  log: SessionLog
  clock: Clock
  /** Aborted when a person ends the round now. */
  ending: AbortSignal
}

/** Watches the limits of the running round: asks its agent for a safe stop, and interrupts it if that fails. */
class LimitWatch {
  readonly #prepared: PreparedRound
  readonly #round: number
  readonly #options: LimitWatchOptions
  readonly #safely: (action: () => void) => void
  readonly #ended = new AbortController()
  readonly #over = new AbortController()
  #state: 'watching' | 'untold' | 'told' = 'watching'
  /** True once the turn is interrupted because the round has taken too long. */
  #isRoundOver = false

  constructor(
    prepared: PreparedRound,
    round: number,
    options: LimitWatchOptions,
    safely: (action: () => void) => void,
  ) {
    this.#prepared = prepared
    this.#round = round
    this.#options = options
    this.#safely = safely
    if (Number.isFinite(options.timeLeftMs)) void this.#after(options.timeLeftMs, () => this.#windDown('time'))
    if (options.roundMs !== undefined) void this.#after(options.roundMs, () => this.#windDown('round'))
  }

  /** Aborted when the round must end because it did not stop safely. */
  get over(): AbortSignal {
    return this.#over.signal
  }

  look(event: EngineEvent): void {
    // The limit was reached before the turn started.
    if (this.#state === 'untold' && event.type === 'turn-started') void this.#tell()
    if (this.#state !== 'watching') return
    const { log, maxUsage, clock } = this.#options
    const { state } = log
    if (event.type === 'usage') {
      const used = { rounds: 0, timeMs: 0, tokens: sessionTokens(state), cost: state.cost.amount }
      const reached = limitReached(state.limits, used)
      if (reached === 'tokens' || reached === 'cost') this.#windDown(reached)
    } else if (event.type === 'limits' && maxUsage !== null) {
      const { primaryWindow, secondaryWindow } = usageOf(state, this.#options.login)
      if (renewalOf([primaryWindow, secondaryWindow], maxUsage, clock.now()) !== null) this.#windDown('usage')
    }
  }

  end(): void {
    this.#ended.abort()
  }

  /** Returns the outcome of the turn, with the reason if the round's time limit interrupted it and no person did. */
  outcomeOf(outcome: RoundOutcome): RoundOutcome {
    const { roundMs = 0, ending } = this.#options
    if (outcome.class !== 'interrupted' || !this.#isRoundOver || ending.aborted) return outcome
    return { ...outcome, message: `Its time of ${inWords(roundMs)} is over.` }
  }

  #windDown(limit: WindDownLimit): void {
    if (this.#state !== 'watching' || this.#ended.signal.aborted) return
    this.#state = 'untold'
    const { graceMs, log } = this.#options
    this.#safely(() => log.emit({ type: 'winding-down', round: this.#round, limit, graceMs }))
    this.#options.onWindDown?.()
    void this.#tell()
    void this.#after(graceMs, () => {
      this.#isRoundOver = limit === 'round'
      this.#over.abort()
    })
  }

  async #tell(): Promise<void> {
    if (await this.#prepared.steer(this.#options.windDown)) this.#state = 'told'
  }

  async #after(ms: number, action: () => void): Promise<void> {
    const { signal } = this.#ended
    // Timers are limited to 24 days, and no round takes as long.
    await this.#options.clock.wait(Math.min(Math.max(0, ms), 2 ** 31 - 1), signal)
    if (!signal.aborted) action()
  }
}

function inWords(ms: number): string {
  const [count, unit] = ms % 60_000 === 0 ? [ms / 60_000, 'minute'] : [ms / 1000, 'second']
  return `${count} ${unit}${count === 1 ? '' : 's'}`
}

/** A file with codex's messages of a round, one line of JSON each. */
interface RoundRecord {
  write(line: string): void
  /** Resolves when everything is written, or cannot be; never rejects. */
  end(): Promise<void>
}

/** Opens a record for appending. Reports problems before its end. */
export function openRecord(path: string, onProblem: (problem: string) => void): RoundRecord {
  const isAgain = existsSync(path)
  const stream = createWriteStream(path, { flags: 'a', mode: 0o600 })
  // An interrupted attempt may have left half a line.
  if (isAgain) stream.write('\n')
  let isOver = false
  stream.on('error', ({ message }) => {
    if (!isOver) onProblem(message)
  })
  return {
    write: line => void stream.write(`${line}\n`),
    async end() {
      isOver = true
      const closed = Promise.withResolvers<void>()
      stream.once('close', closed.resolve)
      stream.end()
      if (!stream.closed) await closed.promise
    },
  }
}
