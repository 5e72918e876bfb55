import type { LiveEvent, Recorded } from '../../core/events/events.ts'
import type { Item } from '../../core/events/items.ts'
import { breaksStream, ENDS_WHAT_RUNS, LiveBoard, type LiveItem } from '../../core/events/live-board.ts'
import type { SessionState } from '../../core/state/state.ts'
import { formatCount } from '../../words/numbers.ts'
import { isReviewAnswer, isReviewing } from '../../words/proof.ts'
import { eventLines } from '../blocks/event-lines.ts'
import { reviewerLines } from '../blocks/gates-and-reviews.ts'
import { markdownLines } from '../blocks/markdown.ts'
import { MessageStream, TypedText } from '../blocks/message-stream.ts'
import type { PickerQuestion, PickerResult } from '../composer/picker.ts'
import type { Theme } from '../terminal/theme.ts'

/** Lines that wait while the terminal belongs to somebody else (a pager, an editor); more are in the logs. */
const MOST_WAITING = 5_000

/** What is finished, on its way into the terminal's own scrollback: written once, and forgotten. */
export class Scrollback {
  #waiting: string[] = []
  #dropped = 0
  #hasLines = false

  get isEmpty(): boolean {
    return this.#waiting.length === 0
  }

  /** Whether anything has been printed. */
  get hasLines(): boolean {
    return this.#hasLines
  }

  /** Lines that wait. */
  get count(): number {
    return this.#waiting.length
  }

  /** @param lines each at most as wide as the terminal */
  add(lines: readonly string[]): void {
    this.#hasLines ||= lines.length > 0
    for (const line of lines) this.#waiting.push(line)
    const surplus = this.#waiting.length - MOST_WAITING
    if (surplus <= 0) return
    this.#waiting.splice(0, surplus)
    this.#dropped += surplus
  }

  /** All that waits, as the text to be written; empty if nothing does. */
  take(): string {
    const lines = this.#waiting
    if (this.#dropped > 0) lines.unshift(`[… ${formatCount(this.#dropped, 'line')} more; Ctrl+E shows them]`)
    this.#waiting = []
    this.#dropped = 0
    return lines.length === 0 ? '' : `${lines.join('\n')}\n`
  }
}

/**
 * An answer to a question on the screen; `withdrawn`: there is nothing to answer any more, or something else is done;
 * `left`: closed by Ctrl+C.
 */
export type Answer = PickerResult | { kind: 'withdrawn' | 'left' }

/**
 * A question. `yieldsToTyping`: whoever types goes on in the composer; `whileHeld`: it is over when the session goes on;
 * `escGoesOn`: that is what closing it comes to; `leavesOnInterrupt`: Ctrl+C, which has opened it, leaves;
 * `takesCommands`: a slash command is run in place of an answer.
 */
export type Question = PickerQuestion & {
  yieldsToTyping?: true
  whileHeld?: true
  escGoesOn?: true
  leavesOnInterrupt?: true
  takesCommands?: true
}

export interface SessionPaneOptions {
  theme(): Theme
  motion: 'full' | 'reduced'
  /** Width of the terminal, in cells. */
  columns(): number
  /** Takes secrets out of a text. */
  redact(text: string): string
  /** Puts finished lines into the scrollback. */
  print(lines: readonly string[]): void
}

interface Message {
  typed: TypedText
  stream: MessageStream
  /** Characters of what is typed that are in the scrollback. */
  printed: number
  /** Whether it was cut off, which codex may not keep to. */
  isCutOff: boolean
}

type Command = Extract<Item, { kind: 'command' }>

/** One session as it is shown: what is finished goes to the scrollback, what is not stays live. */
export class SessionPane {
  readonly #options: SessionPaneOptions
  readonly #live = new LiveBoard()
  readonly #messages = new Map<string, Message>()
  #state: SessionState | null = null
  #lastCommand: Command | null = null
  #isReview = false

  constructor(options: SessionPaneOptions) {
    this.#options = options
  }

  get state(): SessionState | null {
    return this.#state
  }

  /** The command that ran last, or runs. */
  get lastCommand(): Command | null {
    const running = this.#live.items.findLast(({ item }) => item.kind === 'command')
    return running?.item.kind === 'command'
      ? { ...running.item, output: this.#options.redact(running.text) }
      : this.#lastCommand
  }

  /** Another session is to be shown. */
  reset(): void {
    this.#state = null
    this.#messages.clear()
    this.#lastCommand = null
    this.#isReview = false
  }

  event(event: Recorded, state: SessionState): void {
    this.#state = state
    if (ENDS_WHAT_RUNS.has(event.type) || breaksStream(event)) this.#printCutOff()
    if (ENDS_WHAT_RUNS.has(event.type)) this.#messages.clear()
    this.#live.event(event)
    this.#isReview = isReviewing(state)
    if (event.type === 'item-completed' && event.item.kind === 'command') this.#lastCommand = event.item
    if (event.type === 'item-completed' && event.item.kind === 'agent-message' && event.instance === undefined) {
      if (this.#endMessage(event.item)) return
    }
    const { theme, columns, print } = this.#options
    print(eventLines(event, state, { columns: columns(), theme: theme(), full: false }))
  }

  /** @param now Unix time, ms */
  live(event: LiveEvent, now: number): void {
    this.#live.live(event, now)
  }

  /** Moves the typing on; whether it has more to show by itself. */
  step(now: number): boolean {
    let isBehind = false
    let isOldest = true
    for (const { item, text } of this.#own) {
      if (item.kind !== 'agent-message' || this.#isHidden(text)) continue
      const message = this.#messageOf(item.id)
      message.typed.arrive(text)
      message.typed.step(now)
      isBehind ||= message.typed.isBehind
      // Two that are written at once would be printed through each other.
      if (isOldest) this.#print(message, message.stream.advance(message.typed.shown))
      isOldest = false
    }
    return isBehind
  }

  /** What runs now, with as much of each message as is typed and not printed yet. */
  get items(): readonly LiveItem[] {
    const { redact } = this.#options
    return this.#live.items.map(live => {
      const { item, startedAt, dropped, text, instance } = live
      // Of another agent is said what it does, and nothing of what it prints.
      if (instance !== undefined) return { item, startedAt, dropped, text: '', instance }
      const message = this.#messages.get(item.id)
      const shown = message === undefined ? this.#visible(item, text) : message.typed.shown.slice(message.printed)
      return { item, startedAt, dropped, text: redact(shown) }
    })
  }

  /** What the round's own agent does. */
  get #own(): readonly LiveItem[] {
    return this.#live.items.filter(({ instance }) => instance === undefined)
  }

  /** Whether a message is the answer of a reviewer, which is told in words when the review ends. */
  #isHidden(text: string): boolean {
    return this.#isReview && isReviewAnswer(text)
  }

  #visible(item: Item, text: string): string {
    return item.kind === 'agent-message' && this.#isHidden(text) ? '' : text
  }

  #messageOf(id: string): Message {
    const known = this.#messages.get(id)
    if (known) return known
    const message = { typed: new TypedText(this.#options), stream: new MessageStream(), printed: 0, isCutOff: false }
    this.#messages.set(id, message)
    return message
  }

  #print(message: Message, markdown: string): void {
    if (markdown === '') return
    const { theme, columns, print, redact } = this.#options
    const place = { columns: columns(), theme: theme() }
    const draw = (columns: number) => markdownLines(redact(markdown), { ...place, columns, first: true })
    const lines = this.#isReview ? reviewerLines(place, draw) : draw(place.columns)
    print(lines.length === 0 ? [] : ['', ...lines])
    message.printed += markdown.length
  }

  /** Whether a part of the message was printed before, and the rest is now. */
  #endMessage({ id, text }: { id: string; text: string }): boolean {
    const message = this.#messages.get(id)
    this.#messages.delete(id)
    if (message === undefined || message.printed === 0) return false
    const end = message.isCutOff ? afterCut(message.typed.shown, text) : message.stream.end(text)
    if (end.isAgain) return false
    this.#print(message, end.markdown)
    return true
  }

  /** What was being said when it was cut off. */
  #printCutOff(): void {
    for (const { item, text } of this.#own) {
      if (item.kind !== 'agent-message' || this.#isHidden(text)) continue
      const message = this.#messageOf(item.id)
      message.typed.arrive(text)
      message.typed.complete()
      message.typed.step(0)
      this.#print(message, message.typed.shown.slice(message.printed))
      message.isCutOff = true
      const { theme, print } = this.#options
      print([theme().paint('dim', '[broken off]')])
    }
  }
}

/** What is still to be printed of a message that has come to its end after all. */
function afterCut(shown: string, text: string): { markdown: string; isAgain: boolean } {
  return text.startsWith(shown)
    ? { markdown: text.slice(shown.length).trimStart(), isAgain: false }
    : { markdown: text, isAgain: true }
}
