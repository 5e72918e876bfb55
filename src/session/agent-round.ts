import { join } from 'node:path'
import type { Clock } from '../base/clock.ts'
import { unreachable } from '../base/errors.ts'
import type { Redactor } from '../base/redactor.ts'
import { SpokenText } from './delegation-spoken.ts'
import type { PreparedRound, RoundEvent, RoundRun } from './engine.ts'
import { FirstFailure } from './first-failure.ts'
import type { RoundOutcome } from './outcome.ts'
import { playTurns } from './play-turns.ts'
import { noteQuestion } from './question-note.ts'
import { openRecord } from './round-record.ts'
import type { SessionLog } from './session-log.ts'
import type { TokenCounts } from './token-counts.ts'

export interface AgentRoundOptions {
  log: SessionLog
  clock: Clock
  redactor: Redactor
  /** Where `003-<instance>.ndjson` goes. */
  roundsDirectory: string
  /** Journals what the engine reports of it, as far as it concerns the session. */
  onRoundEvent(event: RoundEvent): void
  /** Called with the id of each thread that is known to be its own. */
  onThread(thread: string): void
  /** Called with what the agent says, in pieces as they come; left out: nobody follows it. */
  onText?(text: string): void
  /** Aborted when it has to come to a safe stop. */
  windDown: AbortSignal
  /** Aborted when it has to end now. */
  ending: AbortSignal
}

/** One call of an agent that is played. */
interface AgentToPlay {
  round: number
  instance: string
  input: string
}

/** How it ended, what the agent said last (empty: nothing), and the tokens of all its threads; null: none were reported. */
export interface PlayedAgent {
  outcome: RoundOutcome
  words: string
  tokens: TokenCounts | null
}

/** What an agent is asked that has to come to its end. */
const WIND_DOWN =
  'This stretch of work ends now. Bring what you are doing to a safe stop: leave nothing half-changed, start nothing new, and end your turn with what is done and what is not.'

/** Plays the round of an agent that was given a task, as `playRound` does that of the session, beside which it runs. */
export async function playAgent(
  prepared: PreparedRound,
  { round, instance, input }: AgentToPlay,
  options: AgentRoundOptions,
): Promise<PlayedAgent> {
  const { log, clock, redactor, onThread, onText, onRoundEvent, windDown } = options
  const failure = new FirstFailure()
  const record = openRecord(recordPath(options.roundsDirectory, round, instance), problem =>
    failure.safely(() => onRoundEvent({ type: 'warning', round, message: `${instance} is not recorded: ${problem}` })),
  )
  const heard = new Heard()
  const spoken = onText && new SpokenText(redactor, onText)
  const steer = () => void prepared.steer(WIND_DOWN)
  const run: RoundRun = {
    round,
    input,
    onEvent: event =>
      failure.safely(() => {
        heard.note(event)
        if (event.type === 'item-completed' && event.item.kind === 'agent-message') spoken?.end()
        if (event.type === 'turn-started' || event.type === 'usage') onThread(event.thread)
        const journaled = ofAgent(event, instance)
        if (journaled !== null) onRoundEvent(journaled)
        // It was to stop before its turn had begun.
        if (event.type === 'turn-started' && windDown.aborted) steer()
      }),
    onLive: event => {
      if (event.type === 'still-waiting') return
      failure.safely(() => log.live({ ...event, instance }))
      if (event.type === 'text-delta' && event.source === 'agent-message') spoken?.add(event.text)
    },
    onRecord: line => record.write(redactor.line(line)),
    onToolCall: call => failure.answer(() => noteQuestion(call, { log, redact: text => redactor.text(text) })),
  }
  windDown.addEventListener('abort', steer)
  try {
    const outcome = await playTurns(prepared, run, {
      clock,
      ending: AbortSignal.any([options.ending, failure.signal]),
      isWindingDown: () => windDown.aborted,
    })
    failure.rethrow()
    return { outcome, words: heard.lastWords, tokens: heard.tokens }
  } finally {
    windDown.removeEventListener('abort', steer)
    await record.end()
  }
}

/** The event as the session journals it; null if it says something of this thread alone. */
function ofAgent(event: RoundEvent, instance: string): RoundEvent | null {
  switch (event.type) {
    case 'item-completed':
      return { ...event, instance }
    // Counted by thread, so each token once.
    case 'usage':
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

/** What is kept of what an agent says: its messages and its tokens. */
class Heard {
  #final: string | null = null
  #last = ''
  readonly #totals = new Map<string, TokenCounts>()

  note(event: RoundEvent): void {
    if (event.type === 'usage') this.#totals.set(event.thread, event.total)
    if (event.type !== 'item-completed' || event.item.kind !== 'agent-message') return
    this.#last = event.item.text
    if (event.item.phase === 'final-answer') this.#final = event.item.text
  }

  get lastWords(): string {
    return this.#final ?? this.#last
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
