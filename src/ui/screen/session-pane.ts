import type { Recorded } from '../../session/events.ts'
import type { Item } from '../../session/items.ts'
import type { LiveEvent } from '../../session/live-events.ts'
import type { SessionState } from '../../session/state.ts'
import { eventLines } from '../blocks/event-lines.ts'
import { markdownLines } from '../blocks/markdown-lines.ts'
import { reviewerLines } from '../blocks/reviewer-lines.ts'
import { breaksStream, ENDS_WHAT_RUNS, LiveBoard, type LiveItem } from '../live/live-board.ts'
import { MessageStream } from '../live/message-stream.ts'
import { TypedText } from '../live/typed-text.ts'
import { isReviewAnswer, isReviewing } from '../reviewer.ts'
import type { Theme } from '../theme.ts'

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
