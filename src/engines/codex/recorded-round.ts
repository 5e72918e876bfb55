import type { ServerNotification, ServerRequest, ThreadItem } from '../../../protocol/codex.ts'
import type { Clock } from '../../base/clock.ts'
import type { ModelInUse, RoundRun } from '../../core/engine.ts'
import type { RoundOutcome } from '../../core/events/outcome.ts'
import { ExecLines, isExecLine } from '../exec/exec-lines.ts'
import { turnOutcome, withRetryAt } from './classify.ts'
import { threadOf } from './round.ts'
import { RoundFeed } from './round-feed.ts'
import { modelInUse } from './thread-start.ts'
import { answerRequest } from './tools.ts'
import { translate } from './translate.ts'
import { boundedText } from './translate-item.ts'
import { memberOf, numberMember, parseObject, stringMember } from './wire.ts'

/** A playable line of a recording. */
export interface RecordedLine {
  message: object
  /** Time of sending, Unix time in ms; null: unknown. */
  at: number | null
  /** True if it probably produces an event. */
  isEvent: boolean
}

/**
 * Turns the lines of a recorded round into the same events as at the recording. Reads only: answers no request and calls no
 * tool. A recording has several turns if the round was retried.
 */
export class RecordedRound {
  readonly #clock: Clock
  readonly #feed: RoundFeed
  readonly #execLines: ExecLines
  #threadId: string | null = null
  #inUse: ModelInUse = {}
  #outcome: RoundOutcome | null = null
  #hasTurn = false

  /** @param directory where commands of a `codex exec` are said to have run */
  constructor(options: { clock: Clock; log(message: string): void; directory: string }) {
    this.#clock = options.clock
    this.#feed = new RoundFeed(options)
    this.#execLines = new ExecLines(options.directory)
  }

  /** Outcome of the last turn; null: none has ended. */
  get outcome(): RoundOutcome | null {
    return this.#outcome
  }

  /** True once a turn has begun. */
  get hasTurn(): boolean {
    return this.#hasTurn
  }

  open(run: RoundRun): void {
    this.#feed.open(run)
  }

  close(): void {
    this.#feed.close()
  }

  /** Parses a line for playing; null if it is not a JSON object. */
  read(line: string): RecordedLine | null {
    const message = parseObject(line)
    if (message === null) return null
    return { message, at: numberMember(message, 'emittedAtMs'), isEvent: makesEvent(message) }
  }

  /** Delivers the events of a line. False if the line is unknown or malformed. */
  play({ message, at }: RecordedLine): boolean {
    try {
      if (isOurLine(message)) return true
      if (memberOf(message, 'type') === 'request.answered') return this.#answeredThen(message)
      if (memberOf(message, 'type') === 'thread.started') this.#inUse = inUseOf(message)
      if (isExecLine(message))
        return this.#execLines
          .take(message)
          .map(each => this.#notification(each, at))
          .every(Boolean)
      if (typeof memberOf(message, 'method') !== 'string') return this.#answer(message)
      if (memberOf(message, 'id') !== undefined) return this.#request(message as ServerRequest)
      return this.#notification(message as ServerNotification, at)
    } catch {
      return false
    }
  }

  /** Handles an answer to codemachine; the one to `thread/start` names the thread of the round. */
  #answer(message: object): boolean {
    if (memberOf(message, 'id') === undefined) return false
    const result = memberOf(message, 'result')
    const id = memberOf(memberOf(result, 'thread'), 'id')
    if (typeof id !== 'string') return true
    this.#threadId = id
    this.#inUse = modelInUse(result)
    return true
  }

  /** Delivers an answer to codex in the format of `ExecJson`. */
  #answeredThen(line: object): boolean {
    const [method, subject, answer] = [...['method', 'subject', 'answer']].map(name => stringMember(line, name))
    if (method == null || subject == null || answer == null) return false
    this.#feed.requestAnswered(method, { subject: boundedText(subject), answer: boundedText(answer) })
    return true
  }

  #request(request: ServerRequest): boolean {
    // The item of the call shows its result.
    if (request.method === 'item/tool/call') return true
    this.#feed.requestAnswered(request.method, answerRequest(request))
    return true
  }

  #notification(message: ServerNotification, at: number | null): boolean {
    const thread = threadOf(message)
    const ours = thread === null || this.#threadId === null || thread === this.#threadId
    if (!ours && message.method !== 'thread/tokenUsage/updated') return true
    if (message.method === 'turn/completed') {
      const { status, error } = message.params.turn
      this.#outcome = withRetryAt(turnOutcome(status, error), at ?? this.#clock.now())
    }
    if (message.method === 'turn/started') {
      this.#outcome = null
      this.#hasTurn = true
    }
    if (message.method === 'item/completed') this.#refusedCall(message.params.item)
    return this.#feed.notification(message, this.#inUse)
  }

  /** Reports the answer to a failed call of codemachine's tool. */
  #refusedCall(item: ThreadItem): void {
    if (item.type !== 'dynamicToolCall' || item.success !== false) return
    const said = item.contentItems?.map(part => memberOf(part, 'text')).filter(text => typeof text === 'string')
    this.#feed.requestAnswered('item/tool/call', { subject: item.tool, answer: said?.join('\n') ?? '' })
  }
}

/** Returns model and effort, as `ExecJson` adds them to the first line of a thread. */
function inUseOf(line: object): ModelInUse {
  return modelInUse({ model: memberOf(line, 'model'), reasoningEffort: memberOf(line, 'reasoning_effort') })
}

/** Prefix of the `type` of lines that codemachine adds to a recording; codex never uses it. */
const OURS = 'codemachine.'

function isOurLine(message: object): boolean {
  const type = memberOf(message, 'type')
  return typeof type === 'string' && type.startsWith(OURS)
}

function makesEvent(message: object): boolean {
  if (isOurLine(message)) return false
  if (isExecLine(message)) return true
  if (typeof memberOf(message, 'method') !== 'string') return false
  if (memberOf(message, 'id') !== undefined) return memberOf(message, 'method') !== 'item/tool/call'
  try {
    return translate(message as ServerNotification, 1).kind === 'event'
  } catch {
    return false
  }
}
