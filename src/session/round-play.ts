import { createWriteStream, existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Clock } from '../base/clock.ts'
import type { PreparedRound, RoundEvent, RoundRun, ToolAnswer, ToolCall } from './engine.ts'
import { type LimitPolicy, LimitWatch } from './limit-watch.ts'
import { CARRY_ON } from './notices.ts'
import type { RoundOutcome } from './outcome.ts'
import type { SessionLog } from './session-log.ts'

export interface RoundPlayOptions extends LimitPolicy {
  log: SessionLog
  clock: Clock
  /** Where `001.ndjson`, … go. */
  roundsDirectory: string
  /** Takes secrets out of a line of JSON. */
  redactLine(line: string): string
  /** Aborted when a person wants the round to end now. */
  ending: AbortSignal
  onEvent(event: RoundEvent): void
  /** Answers a call of one of codemachine's own tools; left out: the thread has none. */
  onToolCall?(call: ToolCall, over: AbortSignal): Promise<ToolAnswer>
  /** Told first how to report what others do for this round, which is journaled and counted with it. */
  onOpen?(report: (event: RoundEvent) => void): void
  /** Resolves when those others have ended, after its own turn has. */
  untilOthersEnd?(outcome: RoundOutcome): Promise<void>
}

/** What is played: the input of its turn, and what is said of it. */
interface RoundToPlay {
  round: number
  input: string
  /** Name of its record without `.ndjson`; left out: the round's number. */
  record?: string
  /** JSON Schema that its last message has to fit; left out: any text. */
  outputSchema?: object
}

const COULD_NOT: ToolAnswer = { text: 'It could not be done.', success: false }

/** From a turn that lost the network to the next one in its thread, ms. */
const CARRY_ON_MS = 2_000

/**
 * Plays one round: journals and records what the engine reports, goes on in the same thread once if the network broke
 * off, and brings the agent to a safe stop when a limit is reached.
 */
export async function playRound(
  prepared: PreparedRound,
  { round, input, record: name, outputSchema }: RoundToPlay,
  options: RoundPlayOptions,
): Promise<RoundOutcome> {
  const { log, ending, redactLine } = options
  const path = join(options.roundsDirectory, `${name ?? String(round).padStart(3, '0')}.ndjson`)
  const isAgain = existsSync(path)
  const record = createWriteStream(path, { flags: 'a', mode: 0o600 })
  // An attempt that was cut off may have left half a line.
  if (isAgain) record.write('\n')
  // What cannot be journaled must not go on: the turn is ended, and what failed is thrown from here.
  const failures: unknown[] = []
  const safely = (action: () => void) => {
    if (failures.length > 0) return
    try {
      action()
    } catch (error) {
      failures.push(error)
      void prepared.interrupt()
    }
  }
  let isOver = false
  record.on('error', ({ message }) => {
    if (!isOver) safely(() => log.emit({ type: 'warning', round, message: `The round is not recorded: ${message}` }))
  })
  const limits = new LimitWatch(prepared, round, options, safely)
  const report = (event: RoundEvent) =>
    safely(() => {
      options.onEvent(event)
      limits.look(event)
    })
  options.onOpen?.(report)
  const run: RoundRun = {
    round,
    input,
    onEvent: report,
    onLive: event => safely(() => log.live(event)),
    onRecord: line => record.write(`${redactLine(line)}\n`),
    onToolCall: async (call, over) => {
      if (failures.length > 0) return COULD_NOT
      try {
        return (await options.onToolCall?.(call, over)) ?? COULD_NOT
      } catch (error) {
        safely(() => {
          throw error
        })
        return COULD_NOT
      }
    },
    ...(outputSchema === undefined ? {} : { outputSchema }),
  }
  const interrupt = () => void prepared.interrupt()
  ending.addEventListener('abort', interrupt)
  try {
    if (ending.aborted) prepared.discard()
    const outcome = await playTurns(prepared, run, options, safely)
    await options.untilOthersEnd?.(outcome)
    if (failures.length > 0) throw failures[0]
    return outcome
  } finally {
    isOver = true
    ending.removeEventListener('abort', interrupt)
    limits.end()
    record.end()
    prepared.discard()
  }
}

async function playTurns(
  prepared: PreparedRound,
  run: RoundRun,
  { clock, ending, log }: RoundPlayOptions,
  safely: (action: () => void) => void,
): Promise<RoundOutcome> {
  const cause = await prepared.run(run)
  const mayGoOn = () => !ending.aborted && log.state.windingDown === null
  if (cause.class !== 'network' || !mayGoOn()) return cause
  await clock.wait(CARRY_ON_MS, ending)
  if (!mayGoOn()) return cause
  safely(() => log.emit({ type: 'turn-continued', round: run.round, cause }))
  return (await prepared.carryOn(CARRY_ON)) ?? cause
}
