import type { Clock } from '../../base/clock.ts'
import { messageOf } from '../../base/errors.ts'
import type { SessionState, View } from '../../core/state/state.ts'
import {
  type Channel,
  type ChannelOptions,
  commandChannel,
  type DeliveryProblem,
  terminalChannel,
  webhookChannel,
} from './channels.ts'
import {
  isLongWait,
  type Notification,
  type NotifyEvent,
  notificationOf,
  plainLine,
  sampleNotification,
} from './notification.ts'

/** The settings under `notify`. */
export interface NotifySettings {
  /** Program and arguments. */
  command: readonly string[] | null
  /** An http(s) address. */
  webhook: string | null
  /** The terminal's bell and notification. */
  bell: boolean
  events: readonly NotifyEvent[]
}

/** A view that notifies a person who is not at the terminal. It never delays or fails a run. */
export interface Notifier extends View {
  /** Uses other settings from now on. Notifications under way still arrive. */
  change(settings: NotifySettings): void
  /** Resolves when the last notifications are delivered, or were aborted after too long; never rejects. */
  close(): Promise<void>
}

/** Opens the channels that the settings name. It does nothing if they name none, or only a bell without a terminal. */
export function openNotifier(
  first: NotifySettings,
  options: ChannelOptions & {
    /** Called with a sentence, once for each kind of problem; never while `event` is running. */
    onProblem(sentence: string): void
  },
): Notifier {
  const { clock, bell } = options
  let settings = first
  const open = () => openChannels({ ...settings, bell: settings.bell && bell !== null }, options)
  let channels = open()
  const deliveries = new Set<Promise<void>>()
  const underway = new Map<Channel, number>()
  const ending = new AbortController()
  const holds = new HoldWatch(clock)
  const said = new Set<string>()
  let closed = false
  /** Start of the failing rounds whose wait was already notified. */
  let failingSince: number | null = null

  const say = ({ kind, sentence }: DeliveryProblem) => {
    if (said.has(kind)) return
    said.add(kind)
    options.onProblem(sentence)
  }

  const deliver = async (channel: Channel, notification: Notification) => {
    // From here on the run continues: the rest is not part of `event`.
    await null
    if ((underway.get(channel) ?? 0) >= MOST_UNDERWAY) return say(dropped(channel))
    underway.set(channel, (underway.get(channel) ?? 0) + 1)
    const problem = await channel.deliver(notification, ending.signal).catch(error => unexpected(channel, error))
    underway.set(channel, (underway.get(channel) ?? 0) - 1)
    if (problem !== null) say(ending.signal.aborted && !problem.wasKnown ? cutShort(channel) : problem)
  }

  const send = (notification: Notification) => {
    for (const channel of channels) {
      const delivery = deliver(channel, notification).finally(() => deliveries.delete(delivery))
      deliveries.add(delivery)
    }
  }

  const settled = async (ms: number) => {
    const done = new AbortController()
    const all = Promise.allSettled(deliveries).then(() => done.abort())
    await Promise.race([all, clock.wait(ms, done.signal)])
  }

  return {
    event: (event, state) => {
      if (closed || channels.length === 0) return
      holds.follow(state)
      const notification = notificationOf(event, state)
      if (notification === null || !isWanted(notification, settings)) return
      if (notification.event === 'waiting' && !isLongWait(event)) {
        if (state.failures.since === failingSince) return
        failingSince = state.failures.since
      }
      if (notification.event === 'paused') holds.begin(() => send(notification))
      else send(notification)
    },
    live: () => {},
    change: changed => {
      settings = changed
      channels = open()
    },
    close: async () => {
      closed = true
      holds.end()
      await settled(CLOSE_MS)
      ending.abort()
      await settled(END_MS)
    },
  }
}

/** Opens one channel per setting. */
function openChannels({ command, webhook, bell }: NotifySettings, options: ChannelOptions): Channel[] {
  return [
    ...(command === null || command.length === 0 ? [] : [commandChannel(command, options)]),
    ...(webhook === null ? [] : [webhookChannel(webhook, options.clock)]),
    ...(bell ? [terminalChannel(options.bell, options.env)] : []),
  ]
}

/** How long `close` waits for the last notifications, ms. */
const CLOSE_MS = 5000
/** How long deliveries may take to end after they were aborted, ms. */
const END_MS = 2000
/** Most deliveries at a time on one channel. */
const MOST_UNDERWAY = 8

/** The setting `ended` also covers sessions that end as `needs-person`. */
function isWanted(notification: Notification, { events }: NotifySettings): boolean {
  const { event } = notification
  const isEnd = event === 'needs-person' && !('about' in notification)
  return events.some(each => each === event || (each === 'ended' && isEnd))
}

function dropped({ name }: Channel): DeliveryProblem {
  const sentence = `The ${name} is too slow for the notifications, so some were not sent.`
  return { kind: `${name}-dropped`, sentence }
}

function cutShort({ name }: Channel): DeliveryProblem {
  const sentence = `The ${name} for notifications did not finish in time, so the last notification may be missing.`
  return { kind: `${name}-cut-short`, sentence }
}

function unexpected({ name }: Channel, error: unknown): DeliveryProblem {
  const sentence = `The notification ${name} failed: ${plainLine(messageOf(error), 200)}.`
  return { kind: `${name}-unexpected`, sentence }
}

/** A person who has just paused or interrupted a session is still there: do not notify shorter pauses. ms. */
const LONG_HOLD_MS = 5 * 60_000

/** Calls back once for each pause that lasts longer than 5 minutes. */
class HoldWatch {
  readonly #clock: Clock
  #wait = new AbortController()
  #isTold = false

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Call it with the state after each of the session's events. */
  follow({ heldSince, pausedAt }: SessionState): void {
    if (heldSince === null) this.end()
    if (pausedAt === null) this.#isTold = false
  }

  /** Marks the start of a pause: calls back in 5 minutes if it still lasts and was not notified. */
  begin(tell: () => void): void {
    this.end()
    const { signal } = this.#wait
    void this.#clock.wait(LONG_HOLD_MS, signal).then(() => {
      if (signal.aborted || this.#isTold) return
      this.#isTold = true
      tell()
    })
  }

  end(): void {
    this.#wait.abort()
    this.#wait = new AbortController()
  }
}

/**
 * Sends a sample through every channel in the settings, whatever `events` says; empty if they name none. `problem` is a
 * sentence; null: delivered.
 */
export async function sendTest(
  settings: NotifySettings,
  options: ChannelOptions & { host: string; directory: string; signal: AbortSignal },
): Promise<{ channel: Channel['name']; problem: string | null }[]> {
  const at = new Date(options.clock.now()).toISOString()
  const sample = sampleNotification(at, options.host, options.directory)
  return await Promise.all(
    openChannels(settings, options).map(async channel => {
      const problem = await channel.deliver(sample, options.signal)
      return { channel: channel.name, problem: problem?.sentence ?? null }
    }),
  )
}
