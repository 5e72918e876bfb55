import type { Clock } from '../base/clock.ts'
import { messageOf } from '../base/errors.ts'
import type { WritableByAgents } from '../platform/writable-by-agents.ts'
import type { View } from '../session/view.ts'
import { commandDoor } from './command-door.ts'
import type { Door, DoorProblem } from './door.ts'
import { HoldWatch } from './hold-watch.ts'
import type { Notification, NotifyEvent } from './notification.ts'
import { notificationOf } from './notification-of.ts'
import { plainLine } from './plain-line.ts'
import { type Terminal, terminalDoor } from './terminal-door.ts'
import { webhookDoor } from './webhook-door.ts'

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
  stdout: Terminal
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
  const { clock, stdout } = options
  const doors = openDoors({ ...settings, bell: settings.bell && stdout.isTTY === true }, options)
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
export function openDoors({ command, webhook, bell }: NotifySettings, options: DoorOptions): Door[] {
  return [
    ...(command === null || command.length === 0 ? [] : [commandDoor(command, options)]),
    ...(webhook === null ? [] : [webhookDoor(webhook, options.clock)]),
    ...(bell ? [terminalDoor(options.stdout, options.env)] : []),
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
