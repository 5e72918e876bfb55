import { createHash } from 'node:crypto'
import type { FileHandle } from 'node:fs/promises'
import { inflateSync } from 'node:zlib'

/** Error for an invalid or truncated pack, or one with too large an object. */
export class BadPack extends Error {
  override readonly name = 'BadPack'
}

/** Bytes of an object's id: SHA-1 or SHA-256. */
type IdBytes = 20 | 32

/**
 * Yields the whole content of each object in a git pack or bundle, with deltas applied. An object whose base is elsewhere is
 * yielded as its delta. An agent may have written the file: nothing in it is trusted, and objects over 64 MiB are not
 * unpacked. Throws `BadPack`.
 */
export async function* objectsInPack(file: FileHandle, idBytes: IdBytes): AsyncGenerator<Buffer> {
  const pack = new Pack(file, (await file.stat()).size, idBytes)
  const start = await pack.start()
  yield* pack.objects(start)
}

/** Returns true if a file starts like a pack or bundle. @param beginning its first bytes, at least 12 if it is that long */
export function looksLikePack(beginning: Buffer): boolean {
  return PACK.equals(beginning.subarray(0, 4)) || /^# v\d git bundle\n/.test(beginning.toString('latin1'))
}

const PACK = Buffer.from('PACK')
const MOST_OBJECT = 64 * 1024 * 1024
/** Limit of cached unpacked objects, bytes; they may be bases of deltas. */
const MOST_KEPT = 96 * 1024 * 1024
/** Limit of a delta chain; git makes at most 4,095. */
const MOST_CHAIN = 4_096
const READ_BYTES = 256 * 1024
/** Bytes of an object's header: its size, and its base's id or distance. */
const HEADER_BYTES = 64
const MOST_BUNDLE_HEADER = 1024 * 1024

const KINDS: Readonly<Record<number, string>> = { 1: 'commit', 2: 'tree', 3: 'blob', 4: 'tag' }
const [BY_OFFSET, BY_ID] = [6, 7]

interface Entry {
  /** Start of the next entry. */
  end: number
  /** Git's object kind; null: a delta. */
  kind: string | null
  /** Its content, or the delta. */
  content: Buffer
  /** Start of its base; null: not in this pack. */
  base: number | null
}

interface Whole {
  kind: string
  content: Buffer
}

class Pack {
  readonly #file: FileHandle
  readonly #size: number
  readonly #idBytes: IdBytes
  #block = { at: 0, bytes: Buffer.alloc(0) }
  /** Cached objects by start, least recently used first. */
  readonly #kept = new Map<number, Whole>()
  #keptBytes = 0
  /** Start of an object, by id (hex). */
  readonly #places = new Map<string, number>()

  constructor(file: FileHandle, size: number, idBytes: IdBytes) {
    this.#file = file
    this.#size = size
    this.#idBytes = idBytes
  }

  /** Resolves with the start of the pack, after a bundle's references. */
  async start(): Promise<number> {
    const beginning = await this.#read(0, Math.min(this.#size, MOST_BUNDLE_HEADER))
    const at = PACK.equals(beginning.subarray(0, 4)) ? 0 : beginning.indexOf('\n\nPACK') + 2
    if (!PACK.equals(beginning.subarray(at, at + 4))) throw new BadPack('it has no pack')
    return at
  }

  async *objects(start: number): AsyncGenerator<Buffer> {
    const header = await this.#read(start, 12)
    if (header.length < 12 || header.readUInt32BE(4) > 3) throw new BadPack('it is a pack of another version')
    let at = start + 12
    let waiting: number[] = []
    for (let left = header.readUInt32BE(8); left > 0; left--) {
      const entry = await this.#entry(at)
      const whole = await this.#whole(at, entry)
      if (whole === null) waiting.push(at)
      else yield whole.content
      at = entry.end
    }
    // The base of a delta may follow it.
    for (let before = -1; waiting.length > 0 && waiting.length !== before; ) {
      before = waiting.length
      const still: number[] = []
      for (const place of waiting) {
        const whole = await this.#whole(place, await this.#entry(place))
        if (whole === null) still.push(place)
        else yield whole.content
      }
      waiting = still
    }
    for (const place of waiting) yield (await this.#entry(place)).content
  }

  /** Resolves with the object at this place; null: a base is missing. */
  async #whole(place: number, first: Entry): Promise<Whole | null> {
    const chain: { at: number; delta: Buffer }[] = []
    let [at, entry] = [place, first]
    let whole: Whole | null = null
    while (whole === null) {
      const { kind, content, base } = entry
      if (kind !== null) {
        whole = { kind, content }
        this.#keep(at, whole)
      } else {
        if (base === null) return null
        chain.push({ at, delta: content })
        if (chain.length > MOST_CHAIN) throw new BadPack('its differences lead on and on')
        at = base
        whole = this.#keptAt(at)
        if (whole === null) entry = await this.#entry(at)
      }
    }
    for (const link of chain.reverse()) {
      whole = { kind: whole.kind, content: patched(whole.content, link.delta) }
      this.#keep(link.at, whole)
    }
    return whole
  }

  async #entry(at: number): Promise<Entry> {
    const header = await this.#read(at, HEADER_BYTES)
    const { type, size, length } = headerOf(header)
    if (size > MOST_OBJECT) throw new BadPack('it has an object of more than 64 MiB')
    let from = length
    let base: number | null = null
    if (type === BY_OFFSET) {
      const { distance, end } = distanceIn(header, from)
      base = at - distance
      from = end
      if (distance <= 0 || base < 0) throw new BadPack('it has a difference from nothing')
    } else if (type === BY_ID) {
      base = this.#places.get(header.subarray(from, from + this.#idBytes).toString('hex')) ?? null
      from += this.#idBytes
    } else if (KINDS[type] === undefined) throw new BadPack('it has something that is no object')
    const packed = await this.#read(at + from, size + Math.ceil(size / 1024) + 128)
    const { content, taken } = inflated(packed, size)
    return { end: at + from + taken, kind: KINDS[type] ?? null, content, base }
  }

  #keptAt(at: number): Whole | null {
    const whole = this.#kept.get(at)
    if (whole === undefined) return null
    this.#kept.delete(at)
    this.#kept.set(at, whole)
    return whole
  }

  #keep(at: number, { kind, content }: Whole): void {
    const id = createHash(this.#idBytes === 20 ? 'sha1' : 'sha256')
    this.#places.set(id.update(`${kind} ${content.length}\0`).update(content).digest('hex'), at)
    this.#kept.set(at, { kind, content })
    this.#keptBytes += content.length
    for (const [oldest, whole] of this.#kept) {
      if (this.#keptBytes <= MOST_KEPT || oldest === at) break
      this.#kept.delete(oldest)
      this.#keptBytes -= whole.content.length
    }
  }

  /** Reads `length` bytes from there, fewer at the end of the file. The caller must not keep them. */
  async #read(at: number, length: number): Promise<Buffer> {
    const within = at - this.#block.at
    if (within >= 0 && within + length <= this.#block.bytes.length)
      return this.#block.bytes.subarray(within, within + length)
    const wanted = Math.max(0, Math.min(Math.max(length, READ_BYTES), this.#size - at))
    const bytes = Buffer.allocUnsafe(wanted)
    let filled = 0
    while (filled < wanted) {
      const { bytesRead } = await this.#file.read(bytes, filled, wanted - filled, at + filled)
      if (bytesRead === 0) break
      filled += bytesRead
    }
    this.#block = { at, bytes: bytes.subarray(0, filled) }
    return this.#block.bytes.subarray(0, length)
  }
}

/** Reads a 3-bit type, and a size: first 4 bits, then groups of 7. */
function headerOf(bytes: Buffer): { type: number; size: number; length: number } {
  let byte = bytes[0] ?? 0
  const type = (byte >> 4) & 7
  let size = byte & 15
  let length = 1
  for (let factor = 16; byte & 128; factor *= 128) {
    byte = bytes[length++] ?? 0
    size += (byte & 127) * factor
  }
  return { type, size, length }
}

/** Reads the distance from an object back to its base. */
function distanceIn(bytes: Buffer, from: number): { distance: number; end: number } {
  let end = from
  let byte = bytes[end++] ?? 0
  let distance = byte & 127
  while (byte & 128) {
    byte = bytes[end++] ?? 0
    distance = (distance + 1) * 128 + (byte & 127)
  }
  return { distance, end }
}

function inflated(packed: Buffer, size: number): { content: Buffer; taken: number } {
  try {
    const options = { info: true, maxOutputLength: Math.max(1, size) }
    // The result of `info` is only typed for the asynchronous call.
    const { buffer, engine } = inflateSync(packed, options) as unknown as {
      buffer: Buffer
      engine: { bytesWritten: number }
    }
    if (buffer.length === size) return { content: buffer, taken: engine.bytesWritten }
  } catch (error) {
    if (!(error instanceof Error && 'code' in error)) throw error
  }
  throw new BadPack('it has an object that cannot be unpacked')
}

/** Applies a delta: pieces of the base, and bytes of its own. */
function patched(base: Buffer, delta: Buffer): Buffer {
  let at = 0
  const number = () => {
    let value = 0
    for (let factor = 1; factor < 2 ** 49; factor *= 128) {
      const byte = delta[at++]
      if (byte === undefined) throw new BadPack('it has a difference that ends too early')
      value += (byte & 127) * factor
      if (value > MOST_OBJECT) throw new BadPack('it has an object of more than 64 MiB')
      if (byte < 128) return value
    }
    throw new BadPack('it has a difference without a size')
  }
  if (number() !== base.length) throw new BadPack('it has a difference from another object')
  const size = number()
  const content = Buffer.alloc(size)
  let filled = 0
  while (at < delta.length) {
    const op = delta[at++] as number
    let piece: Buffer
    if (op & 128) {
      const little = (bits: readonly number[]) =>
        bits.reduce((value, bit, index) => (op & bit ? value + (delta[at++] ?? 0) * 256 ** index : value), 0)
      const from = little([1, 2, 4, 8])
      const length = little([16, 32, 64]) || 0x10000
      piece = base.subarray(from, from + length)
    } else {
      piece = delta.subarray(at, at + op)
      at += op
    }
    filled += piece.copy(content, filled)
  }
  return content.subarray(0, filled)
}
