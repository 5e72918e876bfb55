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
  /** Aborted when the round has to end now. */
  ending: AbortSignal
  /** Whether it has to come to a safe stop, so that no turn is begun any more. */
  isWindingDown(): boolean
  /** Called with how the first turn ended before another one begins. */
  onCarryOn?(cause: RoundOutcome): void
  /** The input of the turn after one that worked, in the same thread; null: the round is over. Left out: it has one turn. */
  nextInput?: (() => Promise<string | null>) | undefined
}

/** From a turn that lost the network to the next one in its thread, ms. */
const CARRY_ON_MS = 2_000

/** Plays the turns of a round: each is followed by another one in its thread if the network broke it off. Then the thread is given up. */
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

/** How a turn ended, or the one that followed it in its thread where the network broke it off. */
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
  /** Where `001.ndjson`, … go. */
  roundsDirectory: string
  /** Takes secrets out of a line of JSON. */
  redactLine(line: string): string
  /** Told each of these lines; left out: nobody is. */
  onRecord?: ((line: string) => void) | undefined
  /** Aborted when a person wants the round to end now. */
  ending: AbortSignal
  onEvent(event: EngineEvent): void
  /** Answers a call of one of codemachine's own tools. */
  onToolCall(call: ToolCall, over: AbortSignal): Promise<ToolAnswer>
  /** Told first how to report what others do for this round, which is journaled and counted with it. */
  onOpen?(report: (event: EngineEvent) => void): void
  /**
   * The input of the turn after one that worked, in the same thread; null: the round is over. `message`: what its agent said
   * last. `over` is aborted when the round has to end now. Left out: it has one turn.
   */
  nextInput?: ((message: string | null, over: AbortSignal) => Promise<string | null>) | undefined
  /** Resolves when those others have ended, after its own turn has. `ending` is aborted when they have to end now. */
  untilOthersEnd?(outcome: RoundOutcome, ending: AbortSignal): Promise<void>
}

/** What is played: the input of its turn, and what is said of it. */
interface RoundToPlay {
  round: number
  input: string
  /** As `RoundRun.images`. */
  images?: readonly string[]
  /** Name of its record without `.ndjson`; left out: the round's number. */
  record?: string
  /** JSON Schema that its last message has to fit; left out: any text. */
  outputSchema?: object
}

/** How a round ended, and what its agent said last, whole; null unless it came to its end and said something. */
export interface EndedTurn {
  outcome: RoundOutcome
  message: string | null
}

/**
 * Plays one round: journals and records what the engine reports, goes on in the same thread once if the network broke
 * off, and brings the agent to a safe stop when a limit is reached.
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
 * A thread whose tokens have a price: says with which model they were used, and ends its turn where the cost is limited and
 * its model has none.
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

  /** The event as it is journaled. */
  note(event: EngineEvent): EngineEvent {
    const { prices, limits } = this.#log.state
    if (prices.length === 0) return event
    if (event.type === 'turn-started') this.#model = event.model ?? this.#model
    else if (event.type === 'model-rerouted') this.#model = event.to
    else if (event.type !== 'usage') return event
    // An engine may tell what was used, and never that the turn has started.
    if (limits.cost !== undefined && this.#problem === null) {
      this.#problem = problemOfModel(prices, this.#model)
      if (this.#problem !== null) void this.#prepared.interrupt()
    }
    return event.type === 'usage' && this.#model !== null ? { ...event, model: this.#model } : event
  }

  /** How its turn ended, which was ended for the price if it had none. */
  outcomeOf(outcome: RoundOutcome): RoundOutcome {
    return this.#problem === null ? outcome : { class: 'config', message: this.#problem }
  }
}

/** The commands of a round that have begun and not ended: a turn may end while they run, and they end with its codex. */
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

  /** Those that end with the round, as they are journaled: without what they printed, of which the end may be half a secret. */
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

/** A round that has more at once is told of these. */
const MOST_COMMANDS = 200

/** What the agent of a round says last, whole: its final answer, where codex marks one. */
class LastMessage {
  #text: string | null = null
  #isFinal = false
  /** A message that is longer than its event. */
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

  /** That of the turn that has ended; the next turn begins without one. */
  ofTurn(): string | null {
    this.#isOfTurnBefore = true
    return this.#text
  }
}

const COULD_NOT: ToolAnswer = { text: 'It could not be done.', success: false }

/**
 * The first thing that failed of what is done beside a turn. What cannot be journaled must not go on: after it nothing
 * more is done.
 */
export class FirstFailure {
  readonly #failed = new AbortController()

  /** Aborted when there is one. */
  get signal(): AbortSignal {
    return this.#failed.signal
  }

  /** Does it, unless something has failed before. */
  safely(action: () => void): void {
    if (this.signal.aborted) return
    try {
      action()
    } catch (error) {
      this.#failed.abort(error)
    }
  }

  /** Answers the call of a tool, also where that fails, or something has failed before. */
  async answer(answering: () => Promise<ToolAnswer> | ToolAnswer): Promise<ToolAnswer> {
    if (this.signal.aborted) return COULD_NOT
    try {
      return await answering()
    } catch (error) {
      this.#failed.abort(error)
      return COULD_NOT
    }
  }

  /** Finds out what the next turn is to be told; null, too, if that fails. */
  async input(finding: () => Promise<string | null>): Promise<string | null> {
    try {
      return await finding()
    } catch (error) {
      this.#failed.abort(error)
      return null
    }
  }

  /** Throws it, if there is one. */
  rethrow(): void {
    this.signal.throwIfAborted()
  }
}

/** What a round may take, beside the session's own limits. */
interface LimitPolicy {
  /** What an agent gets to come to a safe stop, ms. */
  graceMs: number
  /** The part of a usage window that may be used, 0 to 100; null: all. `login`: whose window, as of `Engines.loginOf`. */
  maxUsage: number | null
  login: string | null
  /** How long the session may still be worked on, ms; infinity: no limit. */
  timeLeftMs: number
  /** How long the round may take, ms; left out: as long as the session may. */
  roundMs?: number | undefined
  /** What the agent is asked when it has to come to its end. */
  windDown: string
  /** Called when it has to. */
  onWindDown?(): void
}

interface LimitWatchOptions extends LimitPolicy {
  log: SessionLog
  clock: Clock
  /** Aborted when a person wants the round to end now. */
  ending: AbortSignal
}

/** Looks whether the running round reaches a limit; then the agent is asked to stop safely, and interrupted if it does not. */
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

  /** Aborted when the round has to end, for it has not come to a safe stop. */
  get over(): AbortSignal {
    return this.#over.signal
  }

  look(event: EngineEvent): void {
    // A limit that was reached before the turn had started.
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

  /** How the turn ended, which was interrupted for the time of the round if it was, and no person did it. */
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
    // A timer cannot be set to more than 24 days, and no round takes as long.
    await this.#options.clock.wait(Math.min(Math.max(0, ms), 2 ** 31 - 1), signal)
    if (!signal.aborted) action()
  }
}

function inWords(ms: number): string {
  const [count, unit] = ms % 60_000 === 0 ? [ms / 60_000, 'minute'] : [ms / 1000, 'second']
  return `${count} ${unit}${count === 1 ? '' : 's'}`
}

/** A file of what codex sends in a round, one JSON line each. */
interface RoundRecord {
  write(line: string): void
  /** Resolves when all of it is written, or cannot be; never rejects. */
  end(): Promise<void>
}

/** Opens one, to go on with it if it is there already; what goes wrong with it before its end is told. */
export function openRecord(path: string, onProblem: (problem: string) => void): RoundRecord {
  const isAgain = existsSync(path)
  const stream = createWriteStream(path, { flags: 'a', mode: 0o600 })
  // An attempt that was cut off may have left half a line.
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
