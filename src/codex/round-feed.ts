import type { ServerNotification } from '../../protocol/codex.ts'
import type { Clock } from '../base/clock.ts'
import type { ModelInUse, RoundEvent, RoundRun } from '../session/engine.ts'
import type { Answered } from './answer-request.ts'
import { RetryNotices } from './retry-notices.ts'
import { translate } from './translate.ts'

/**
 * What the one who runs a round is told of it: the events, and the lines as they came. What comes while nobody runs it
 * is held until somebody does.
 *
 *     held ──open()──▶ open ──hold()──▶ held … ──close()──▶ closed
 */
export class RoundFeed {
  readonly #clock: Clock
  readonly #log: (message: string) => void
  readonly #seenUnknown = new Set<string>()
  readonly #notices = new RetryNotices()
  #held: (() => void)[] = []
  #run: RoundRun | null = null
  #state: 'held' | 'open' | 'closed' = 'held'

  constructor({ clock, log }: { clock: Clock; log(message: string): void }) {
    this.#clock = clock
    this.#log = log
  }

  open(run: RoundRun): void {
    if (this.#state === 'closed') return
    this.#run = run
    this.#state = 'open'
    for (const action of this.#held.splice(0)) action()
  }

  hold(): void {
    if (this.#state === 'open') this.#state = 'held'
  }

  close(): void {
    this.#state = 'closed'
    this.#held = []
  }

  /** Does it now, or once somebody runs the round. */
  whenOpen(action: () => void): void {
    if (this.#state === 'open') action()
    else if (this.#state === 'held') this.#held.push(action)
  }

  /** A line as codex wrote it; deltas are left out. */
  line(line: string, message: object): void {
    const method: unknown = Reflect.get(message, 'method')
    if (typeof method === 'string' && (method.endsWith('Delta') || method.endsWith('delta'))) return
    if (this.#state === 'open') this.#run?.onRecord(line)
    else this.whenOpen(() => this.#run?.onRecord(line))
  }

  /**
   * What codex tells, while the feed is open.
   * @param inUse what it said of the thread when it started
   */
  notification(message: ServerNotification, inUse: ModelInUse): void {
    const run = this.#run
    if (!run || this.#state !== 'open') return
    if (message.method === 'item/completed' || message.method === 'turn/started') this.#notices.forget()
    const translation = translate(message, run.round, inUse)
    switch (translation.kind) {
      case 'event':
        if (this.#isTold(translation.event)) run.onEvent(translation.event)
        break
      case 'live':
        run.onLive(translation.event)
        break
      case 'unknown':
        this.#logUnknown(message.method)
        break
      case 'ignored':
        break
    }
  }

  requestAnswered(method: string, { subject, answer }: Pick<Answered, 'subject' | 'answer'>): void {
    this.#event(round => ({ type: 'request-answered', round, method, subject, answer }))
  }

  machineSlept(ms: number): void {
    this.#event(round => ({ type: 'machine-slept', round, ms }))
  }

  #event(of: (round: number) => RoundEvent): void {
    this.whenOpen(() => this.#run?.onEvent(of(this.#run.round)))
  }

  #isTold(event: RoundEvent): boolean {
    return event.type !== 'error' || !event.willRetry || this.#notices.isNews(event, this.#clock.monotonic())
  }

  #logUnknown(method: string): void {
    if (this.#seenUnknown.has(method)) return
    this.#seenUnknown.add(method)
    this.#log(`codex sends ${method}, which this version of codemachine does not know; it is passed over.`)
  }
}
