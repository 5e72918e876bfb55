import { join } from 'node:path'
import type { Clock } from '../base/clock.ts'
import type { PreparedRound, RoundEvent, RoundRun, ToolAnswer, ToolCall } from './engine.ts'
import { FirstFailure } from './first-failure.ts'
import { type LimitPolicy, LimitWatch } from './limit-watch.ts'
import type { RoundOutcome } from './outcome.ts'
import { playTurns } from './play-turns.ts'
import { openRecord } from './round-record.ts'
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
  /** Answers a call of one of codemachine's own tools. */
  onToolCall(call: ToolCall, over: AbortSignal): Promise<ToolAnswer>
  /** Told first how to report what others do for this round, which is journaled and counted with it. */
  onOpen?(report: (event: RoundEvent) => void): void
  /** Resolves when those others have ended, after its own turn has. `ending` is aborted when they have to end now. */
  untilOthersEnd?(outcome: RoundOutcome, ending: AbortSignal): Promise<void>
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

/**
 * Plays one round: journals and records what the engine reports, goes on in the same thread once if the network broke
 * off, and brings the agent to a safe stop when a limit is reached.
 */
export async function playRound(
  prepared: PreparedRound,
  { round, input, record: name, outputSchema }: RoundToPlay,
  options: RoundPlayOptions,
): Promise<RoundOutcome> {
  const { log, clock, redactLine } = options
  const failure = new FirstFailure()
  const ending = AbortSignal.any([options.ending, failure.signal])
  const path = join(options.roundsDirectory, `${name ?? String(round).padStart(3, '0')}.ndjson`)
  const record = openRecord(path, problem =>
    failure.safely(() => log.emit({ type: 'warning', round, message: `The round is not recorded: ${problem}` })),
  )
  const limits = new LimitWatch(prepared, round, options, action => failure.safely(action))
  const report = (event: RoundEvent) =>
    failure.safely(() => {
      options.onEvent(event)
      limits.look(event)
    })
  options.onOpen?.(report)
  const run: RoundRun = {
    round,
    input,
    onEvent: report,
    onLive: event => failure.safely(() => log.live(event)),
    onRecord: line => record.write(redactLine(line)),
    onToolCall: (call, over) => failure.answer(() => options.onToolCall(call, over)),
    ...(outputSchema === undefined ? {} : { outputSchema }),
  }
  try {
    const outcome = await playTurns(prepared, run, {
      clock,
      ending,
      isWindingDown: () => log.state.windingDown !== null,
      onCarryOn: cause => failure.safely(() => log.emit({ type: 'turn-continued', round, cause })),
    })
    await options.untilOthersEnd?.(outcome, ending)
    failure.rethrow()
    return outcome
  } finally {
    limits.end()
    // What comes next need not wait for the disk.
    void record.end()
  }
}
