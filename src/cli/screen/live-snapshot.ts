import { rename, rm, writeFile } from 'node:fs/promises'
import { isEvent } from '../../session/event-shape.ts'
import type { Item } from '../../session/items.ts'
import { readTextFile } from '../../workspace/read-text-file.ts'

/** Something that codex does just now, and what has been streamed of it. */
export interface SharedItem {
  round: number
  item: Item
  /** Unix time, ms. */
  startedAt: number
  /** The end of what has been streamed; it only ever grows at its end, and loses what is before. */
  text: string
  /** How many characters were before `text`. */
  dropped: number
  /** The agent whose it is, if that is not the round's own. */
  instance?: string
}

/** What a run does just now, for who watches it from another process: the text of `live.json`. */
export interface LiveSnapshot {
  /** The run that wrote it; `startTime` as of `startTimeOf`. */
  pid: number
  startTime: string | null
  session: string
  /** How many events the session had come to. */
  events: number
  /** Counts up by one with each that a run writes. */
  sequence: number
  items: readonly SharedItem[]
}

/**
 * Writes a snapshot in the place of the one before, mode 0600. It need not outlive a crash, so nothing is waited for
 * until it is on the disk.
 */
export async function writeLiveSnapshot(path: string, snapshot: LiveSnapshot): Promise<void> {
  const temporary = `${path}.tmp`
  await writeFile(temporary, JSON.stringify(snapshot), { mode: 0o600 })
  await rename(temporary, path)
}

/** Takes it away, if there is one. */
export async function removeLiveSnapshot(path: string): Promise<void> {
  for (const each of [path, `${path}.tmp`]) await rm(each, { force: true })
}

/** The snapshot in a file; null if there is none, or the file holds something else. */
export async function readLiveSnapshot(path: string): Promise<LiveSnapshot | null> {
  const file = await readTextFile(path, MOST_BYTES)
  if (file.kind !== 'text') return null
  try {
    const value: unknown = JSON.parse(file.text)
    return isSnapshot(value) ? value : null
  } catch {
    return null
  }
}

/** Far more than what runs at one time comes to. */
const MOST_BYTES = 32 * 1024 * 1024

function isSnapshot(value: unknown): value is LiveSnapshot {
  if (!isObject(value)) return false
  const { pid, startTime, session, items } = value
  if (typeof pid !== 'number' || (startTime !== null && typeof startTime !== 'string')) return false
  if (typeof session !== 'string' || typeof value.events !== 'number' || typeof value.sequence !== 'number')
    return false
  return Array.isArray(items) && items.every(isShared)
}

function isShared(value: unknown): boolean {
  if (!isObject(value)) return false
  const { round, item, startedAt, text, dropped, instance } = value
  if (instance !== undefined && typeof instance !== 'string') return false
  if (![round, startedAt, dropped].every(each => typeof each === 'number') || typeof text !== 'string') return false
  // The journal says what an item has to have.
  return isEvent({ type: 'item-completed', at: new Date(0).toISOString(), item }) && hasId(item)
}

function hasId(item: unknown): boolean {
  return isObject(item) && typeof item.id === 'string'
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}
