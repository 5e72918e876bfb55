import type { LiveEvent, Recorded } from '../../../core/events/events.ts'
import type { Item } from '../../../core/events/items.ts'
import { breaksStream, ENDS_WHAT_RUNS, LiveBoard, type LiveItem } from '../../../core/events/live-board.ts'
import type { SessionState } from '../../../core/state/state.ts'
import { formatCount } from '../../../tell/words/numbers.ts'
import { isAnswerTold, isReviewing } from '../../../tell/words/proof.ts'
import { eventLines } from '../blocks/event-lines.ts'
import { reviewerLines } from '../blocks/gates-and-reviews.ts'
import { shellItem } from '../blocks/item-lines.ts'
import { besideWordsMark } from '../blocks/layout.ts'
import { markdownLines } from '../blocks/markdown.ts'
import { MessageStream, TypedText } from '../blocks/message-stream.ts'
import type { Theme } from '../terminal/theme.ts'

/** The session on the screen: finished blocks are printed to the scrollback, what still runs is drawn live. */
export class SessionPane {
  readonly #options: SessionPaneOptions
  readonly #live = new LiveBoard()
  readonly #messages = new Map<string, Message>()
  #state: SessionState | null = null
  #lastCommand: Command | null = null
  #lastAnswer: string | null = null
  #isReview = false
  /** The state by which what streams is drawn: what is cut off by an event is still of the one before. */
  #drawn: SessionState | null = null
  /** When something came from codex or happened, last: Unix time, ms. */
  #movedAt = 0
  /** Which decision has been printed with what it is about. */
  #printedDecision: string | null = null
  readonly #listeners = new Set<(event: Recorded | null) => void>()

  constructor(options: SessionPaneOptions) {
    this.#options = options
  }

  get state(): SessionState | null {
    return this.#state
  }

  /** The last words of an agent, whole and without secrets; null while none has said anything. */
  get lastAnswer(): string | null {
    return this.#lastAnswer === null ? null : this.#options.redact(this.#lastAnswer)
  }

  /** The command that runs, or else ran last; null if there was none. */
  get lastCommand(): Command | null {
    const running = this.#live.items.findLast(({ item }) => item.kind === 'command')
    return running?.item.kind === 'command'
      ? { ...running.item, output: this.#options.redact(running.text) }
      : this.#lastCommand
  }

  /** Forgets the session, before another one is shown. */
  reset(): void {
    this.#state = null
    this.#messages.clear()
    this.#lastCommand = null
    this.#lastAnswer = null
    this.#isReview = false
    this.#drawn = null
  }

  /** Calls the listener after each event, and with null after a live one; returns what ends that. */
  subscribe(listener: (event: Recorded | null) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Prints an event. @param state the session after it */
  event(event: Recorded, state: SessionState): void {
    this.#show(event, state)
    for (const listener of this.#listeners) listener(event)
  }

  #show(event: Recorded, state: SessionState): void {
    const asked = this.#state?.decision ?? null
    if (asked !== null && (event.type === 'session-ended' || state.decision?.since !== asked.since))
      this.printDecision()
    const planBefore = this.#state?.plan ?? []
    this.#state = state
    if (ENDS_WHAT_RUNS.has(event.type) || breaksStream(event)) this.#printCutOff()
    if (ENDS_WHAT_RUNS.has(event.type)) this.#messages.clear()
    this.#live.event(event)
    this.#movedAt = Math.max(this.#movedAt, Date.parse(event.at))
    this.#isReview = isReviewing(state)
    this.#drawn = state
    if (event.type === 'item-completed' && event.item.kind === 'command') this.#lastCommand = event.item
    if (event.type === 'shell-ran') this.#lastCommand = shellItem(event)
    if (event.type === 'item-completed' && event.item.kind === 'agent-message') this.#lastAnswer = event.item.text
    if (event.type === 'item-completed' && event.item.kind === 'agent-message' && event.instance === undefined) {
      if (this.#endMessage(event.item)) return
    }
    const { theme, columns, print } = this.#options
    print(eventLines(event, state, { columns: columns(), theme: theme(), full: false, planBefore }))
  }

  /** Prints what the open decision is about, once: until it is called, only the question shows it. */
  printDecision(): void {
    const { id, since, body } = this.#state?.decision ?? { id: '', since: 0, body: '' }
    const { theme, columns, print, redact } = this.#options
    const key = `${id} ${since}`
    // For a screen reader it was printed when it was asked.
    if (body.trim() === '' || key === this.#printedDecision || !theme().symbols) return
    this.#printedDecision = key
    print(['', ...markdownLines(redact(body), { columns: columns(), theme: theme(), first: true })])
  }

  /** Takes in a live event. @param now Unix time, ms */
  live(event: LiveEvent, now: number): void {
    this.#live.live(event, now)
    for (const listener of this.#listeners) listener(null)
    if (event.type !== 'still-waiting') this.#movedAt = now
  }

  /** The sign of life at the time `now` (Unix time, ms): it stands still once nothing has come for 3 s. Null with reduced motion. */
  sign(now: number): string | null {
    if (this.#options.motion === 'reduced') return null
    const step = Math.floor(Math.min(now, this.#movedAt + LIVELY_MS) / SIGN_MS)
    return SIGNS_OF_LIFE.charAt(step % SIGNS_OF_LIFE.length)
  }

  /** Advances the typing animation to the time `now` (Unix time, ms); true if more of it is due later. */
  step(now: number): boolean {
    let isBehind = false
    let isOldest = true
    for (const { item, text } of this.#own) {
      if (item.kind !== 'agent-message' || this.#isHidden(text)) continue
      const message = this.#messageOf(item.id)
      message.typed.arrive(text)
      message.typed.step(now)
      isBehind ||= message.typed.isBehind
      // Two messages that stream at once would be printed interleaved.
      if (isOldest) this.#print(message, message.stream.advance(message.typed.shown))
      isOldest = false
    }
    return isBehind
  }

  /** What an agent does now, with all that is kept of what was streamed; null: the round's own. */
  itemsOf(instance: string | null): readonly LiveItem[] {
    return this.#live.items.filter(live => (live.instance ?? null) === instance).map(live => this.#shownWhole(live))
  }

  /** The items that run now; of each message of the round's own agent the part that is typed and not printed yet. */
  get items(): readonly LiveItem[] {
    const { redact } = this.#options
    return this.#live.items.map(live => {
      const { item, startedAt, dropped, text, instance } = live
      if (instance !== undefined) return this.#shownWhole(live)
      const message = this.#messages.get(item.id)
      const shown = message === undefined ? this.#visible(item, text) : message.typed.shown.slice(message.printed)
      return { item, startedAt, dropped: dropped + (message?.printed ?? 0), text: redact(shown) }
    })
  }

  #shownWhole(live: LiveItem): LiveItem {
    const { redact } = this.#options
    const visible = () => (live.instance === undefined ? this.#visible(live.item, live.text) : live.text)
    const { item, startedAt, dropped, instance } = live
    return {
      item,
      startedAt,
      dropped,
      ...(instance === undefined ? {} : { instance }),
      // Ten agents write at once, and of most nothing is shown.
      get text() {
        return redact(visible())
      },
    }
  }

  /** The items of the round's own agent. */
  get #own(): readonly LiveItem[] {
    return this.#live.items.filter(({ instance }) => instance === undefined)
  }

  /** Whether a message is an answer (JSON) that is shown in words once it is given. */
  #isHidden(text: string): boolean {
    return this.#drawn !== null && isAnswerTold(text, this.#drawn)
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
    const goesOn = message.printed > 0
    const draw = (columns: number) =>
      besideWordsMark({ ...place, columns, goesOn }, inner =>
        markdownLines(redact(markdown), { ...place, columns: inner, first: true }),
      )
    const lines = this.#isReview ? reviewerLines(place, draw) : draw(place.columns)
    print(lines.length === 0 ? [] : ['', ...lines])
    message.printed += markdown.length
  }

  /** Prints the rest of a message that was printed in part; false if none of it was, or all of it is to be printed again. */
  #endMessage({ id, text }: { id: string; text: string }): boolean {
    const message = this.#messages.get(id)
    this.#messages.delete(id)
    if (message === undefined || message.printed === 0) return false
    const end = message.isCutOff ? afterCut(message.typed.shown, text) : message.stream.end(text)
    if (end.isRepeat) return false
    this.#print(message, end.markdown)
    return true
  }

  /** Prints what has arrived of the messages that were cut off. */
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

const SIGNS_OF_LIFE = '⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏'
/** How long each is shown, ms. */
const SIGN_MS = 120
const LIVELY_MS = 3_000

interface SessionPaneOptions {
  theme(): Theme
  motion: 'full' | 'reduced'
  /** Width of the terminal, in cells. */
  columns(): number
  /** Removes secrets from a text. */
  redact(text: string): string
  /** Adds finished lines to the scrollback. */
  print(lines: readonly string[]): void
}

interface Message {
  typed: TypedText
  stream: MessageStream
  /** The number of typed characters that are in the scrollback. */
  printed: number
  /** Whether it was cut off; codex may complete it nevertheless. */
  isCutOff: boolean
}

type Command = Extract<Item, { kind: 'command' }>

/** What is left to print of a message that was completed after it had been cut off. */
function afterCut(shown: string, text: string): { markdown: string; isRepeat: boolean } {
  return text.startsWith(shown)
    ? { markdown: text.slice(shown.length).trimStart(), isRepeat: false }
    : { markdown: text, isRepeat: true }
}

/** The most lines that wait while the terminal is lent (to a pager, an editor); older ones are only in the logs. */
const MOST_WAITING = 5_000

/** The queue of finished lines on their way to the terminal's own scrollback. */
export class Scrollback {
  #waiting: string[] = []
  #dropped = 0
  #hasLines = false

  get isEmpty(): boolean {
    return this.#waiting.length === 0
  }

  /** Whether lines were ever added. */
  get hasLines(): boolean {
    return this.#hasLines
  }

  /** The number of waiting lines. */
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

  /** Removes the waiting lines and returns them as one text; empty if there are none. */
  take(): string {
    const lines = this.#waiting
    if (this.#dropped > 0) lines.unshift(`[… ${formatCount(this.#dropped, 'line')} more, in the log]`)
    this.#waiting = []
    this.#dropped = 0
    return lines.length === 0 ? '' : `${lines.join('\n')}\n`
  }
}
