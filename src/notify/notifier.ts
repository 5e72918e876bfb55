import type { Clock } from '../base/clock.ts'
import { messageOf } from '../base/errors.ts'
import type { View } from '../core/events/events.ts'
import type { SessionState } from '../core/state/state.ts'
import type { WritableByAgents } from '../platform/files.ts'
import { type Bell, commandDoor, type Door, type DoorProblem, terminalDoor, webhookDoor } from './doors.ts'
import { type Notification, type NotifyEvent, notificationOf, plainLine, sampleNotification } from './notification.ts'

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

/** What the doors of a notifier need. */
export interface DoorOptions {
  clock: Clock
  env: Readonly<NodeJS.ProcessEnv>
  platform: NodeJS.Platform
  home: string
  /** Where agents can write: no command is taken from there. */
  where: WritableByAgents
  /** Null where there is no terminal to ring it on. */
  bell: Bell | null
}

export interface NotifierOptions extends DoorOptions {
  /** Told once of each kind of problem, a sentence; never while `event` is running. */
  onProblem(sentence: string): void
}

/** A view that tells a person who is not looking. Nothing that it does delays or fails a run. */
export interface Notifier extends View {
  /** Resolves when the last notifications have arrived, or have been ended because they took too long; never rejects. */
  close(): Promise<void>
}

/** Opens what the settings ask for; with nothing set, and for a bell without a terminal, it does nothing. */
export function openNotifier(settings: NotifySettings, options: NotifierOptions): Notifier {
  const { clock, bell } = options
  const doors = openDoors({ ...settings, bell: settings.bell && bell !== null }, options)
  const deliveries = new Set<Promise<void>>()
  const underway = new Map<Door, number>()
  const ending = new AbortController()
  const holds = new HoldWatch(clock)
  const said = new Set<string>()
  let closed = false

  const say = ({ kind, sentence }: DoorProblem) => {
    if (said.has(kind)) return
    said.add(kind)
    options.onProblem(sentence)
  }

  const deliver = async (door: Door, notification: Notification) => {
    // From here on the run goes on: what follows is not part of `event`.
    await null
    if ((underway.get(door) ?? 0) >= MOST_UNDERWAY) return say(dropped(door))
    underway.set(door, (underway.get(door) ?? 0) + 1)
    const problem = await door.deliver(notification, ending.signal).catch(error => unexpected(door, error))
    underway.set(door, (underway.get(door) ?? 0) - 1)
    if (problem !== null) say(ending.signal.aborted && !problem.wasKnown ? cutShort(door) : problem)
  }

  const send = (notification: Notification) => {
    for (const door of doors) {
      const delivery = deliver(door, notification).finally(() => deliveries.delete(delivery))
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
      if (closed || doors.length === 0) return
      holds.follow(state)
      const notification = notificationOf(event, state)
      if (notification === null || !isWanted(notification, settings)) return
      if (notification.event === 'paused') holds.begin(() => send(notification))
      else send(notification)
    },
    live: () => {},
    close: async () => {
      closed = true
      holds.end()
      await settled(CLOSE_MS)
      ending.abort()
      await settled(END_MS)
    },
  }
}

/** A way for each that the settings name. */
function openDoors({ command, webhook, bell }: NotifySettings, options: DoorOptions): Door[] {
  return [
    ...(command === null || command.length === 0 ? [] : [commandDoor(command, options)]),
    ...(webhook === null ? [] : [webhookDoor(webhook, options.clock)]),
    ...(bell ? [terminalDoor(options.bell, options.env)] : []),
  ]
}

/** How long `close` lets the last notifications take, ms. */
const CLOSE_MS = 5000
/** What the end of what was aborted may take, ms. */
const END_MS = 2000
/** On one way at a time. */
const MOST_UNDERWAY = 8

/** Whoever wants to know that a session has ended wants to know it of every end. */
function isWanted(notification: Notification, { events }: NotifySettings): boolean {
  const { event } = notification
  const isEnd = event === 'needs-person' && !('about' in notification)
  return events.some(each => each === event || (each === 'ended' && isEnd))
}

function dropped({ name }: Door): DoorProblem {
  return {
    kind: `${name}-dropped`,
    sentence: `Notifications come faster than the ${name} takes them, and some were dropped.`,
  }
}

function cutShort({ name }: Door): DoorProblem {
  return {
    kind: `${name}-cut-short`,
    sentence: `The notification ${name} took too long at the end, and the last notification may not have arrived.`,
  }
}

function unexpected({ name }: Door, error: unknown): DoorProblem {
  return {
    kind: `${name}-unexpected`,
    sentence: `The notification ${name} failed: ${plainLine(messageOf(error), 200)}.`,
  }
}

/** Whoever has just paused a session, or broken in on it, is still there; ms. */
const LONG_HOLD_MS = 5 * 60_000

/** Sees once of each pause that it has lasted for a while. */
class HoldWatch {
  readonly #clock: Clock
  #wait = new AbortController()
  #isTold = false

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** To be called with the session after each of its events. */
  follow({ heldSince, pausedAt }: SessionState): void {
    if (heldSince === null) this.end()
    if (pausedAt === null) this.#isTold = false
  }

  /** The session is held from now on: calls back after a while, if it still is, and nobody was told before. */
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

/** What became of a test: `problem` is a sentence, or null if it has arrived. */
export interface TestResult {
  door: Door['name']
  problem: string | null
}

/** Sends a sample through every way that the settings name, whatever `events` says; empty if they name none. */
export async function sendTest(
  settings: NotifySettings,
  options: DoorOptions & { host: string; directory: string; signal: AbortSignal },
): Promise<TestResult[]> {
  const at = new Date(options.clock.now()).toISOString()
  const sample = sampleNotification(at, options.host, options.directory)
  return await Promise.all(
    openDoors(settings, options).map(async door => {
      const problem = await door.deliver(sample, options.signal)
      return { door: door.name, problem: problem?.sentence ?? null }
    }),
  )
}
