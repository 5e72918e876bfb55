import { signal } from '@preact/signals'

/** What the page keeps of this device, in the storage of its own origin. */
const KEY = 'codemachine.key'

/** How it stands between the page and its server. */
export type Connection = 'connecting' | 'open' | 'cut' | 'no-key'

/** The key of this device; null: it has none. */
export const deviceKey = signal<string | null>(localStorage.getItem(KEY))
export const connection = signal<Connection>('connecting')

interface Problem {
  problem: string
  hint?: string | null
}

/** What the server refuses, or a connection that is cut, in a sentence. */
export class Refused extends Error {
  readonly hint: string | null

  constructor({ problem, hint = null }: Problem) {
    super(problem)
    this.hint = hint
  }
}

/** Opens the link that the page was opened by, if it was: its token stands in the fragment, which no server is sent. */
export async function enterByLink(): Promise<void> {
  const token = /^#t=([\w-]+)$/.exec(location.hash)?.[1]
  if (token === undefined) return
  // It opens nothing a second time, and is not to stand in the history.
  history.replaceState(null, '', location.pathname)
  const { key } = await post<{ key: string }>('enter', { token, name: nameOfDevice() })
  takeKey(key)
}

/** Forgets the key: the device was ended. */
export function forgetKey(): void {
  localStorage.removeItem(KEY)
  deviceKey.value = null
  connection.value = 'no-key'
}

/** Sends something that changes something, also while the page is left; rejects with `Refused`. */
export async function post<Answer>(path: string, body: object): Promise<Answer> {
  const text = JSON.stringify(body)
  // Of what is larger a browser sends nothing then.
  return await answerOf(path, { ...writing(text), keepalive: isLeft() && text.length < 10_000 })
}

let isHidden = false
addEventListener('pagehide', () => {
  isHidden = true
})
addEventListener('pageshow', () => {
  isHidden = false
})

function isLeft(): boolean {
  return isHidden || document.visibilityState === 'hidden'
}

function writing(body: string): RequestInit {
  const headers = { 'content-type': 'application/json', 'x-codemachine': '1', ...authorization() }
  return { method: 'POST', body, headers }
}

/** Reads something; rejects with `Refused`. */
export async function get<Answer>(path: string, signal: AbortSignal): Promise<Answer> {
  return await answerOf(path, { headers: authorization(), signal })
}

function authorization(): Record<string, string> {
  return deviceKey.value === null ? {} : { authorization: `Bearer ${deviceKey.value}` }
}

async function answerOf<Answer>(path: string, init: RequestInit): Promise<Answer> {
  const answer = await fetch(`/api/${path}`, init).catch(() => {
    throw new Refused({ problem: 'The connection is cut.' })
  })
  if (answer.status === 401) forgetKey()
  const body: unknown = await answer.json().catch(() => ({ problem: `The server answers ${answer.status}.` }))
  if (!answer.ok) throw new Refused(body as Problem)
  return body as Answer
}

/** Sends something whose answer is a stream, such as a verification that takes long; rejects with `Refused`, also where it is cut. */
export async function postStream<Data>(
  path: string,
  body: object,
  onTold: (told: Told<Data>) => void,
  signal: AbortSignal,
): Promise<void> {
  const cut = new AbortController()
  const over = AbortSignal.any([signal, cut.signal])
  const isCut = () => new Refused({ problem: 'The connection is cut.' })
  const answer = await fetch(`/api/${path}`, { ...writing(JSON.stringify(body)), signal: over }).catch(() => {
    throw isCut()
  })
  if (!answer.ok || answer.body === null) {
    throw new Refused(
      (await answer.json().catch(() => ({ problem: `The server answers ${answer.status}.` }))) as Problem,
    )
  }
  await readEvents<Data>(
    answer.body,
    told => {
      if (told.event === 'problem') throw new Refused(told.data as unknown as Problem)
      onTold(told)
    },
    () => cut.abort(),
  ).catch((error: unknown) => {
    throw error instanceof Refused ? error : isCut()
  })
}

/** Makes the device's own that key which it was given. */
export function takeKey(key: string): void {
  localStorage.setItem(KEY, key)
  deviceKey.value = key
}

/** One event of a stream. */
export interface Told<Data> {
  event: string
  data: Data
}

/** After a cut the stream is opened again: first soon, then every 10 s, ms. */
const FIRST_WAIT_MS = 500
const MOST_WAIT_MS = 10_000
/** The server says at least every 10 s that it is there. */
const SILENCE_MS = 25_000
/** A page that nobody sees follows nothing after so long: it would count as somebody who looks, ms. */
const HIDDEN_MS = 5_000
/** Of one event, characters: larger ones are passed over. */
const MOST_EVENT = 16 * 1024 * 1024

/**
 * Follows a stream, and again after each cut and when the page is seen again, until the signal aborts.
 * @param onTold told each event
 * @param path answers where to go on from
 * @param onConnection told whether it is open or cut
 */
export async function follow<Data>(
  path: () => string,
  onTold: (told: Told<Data>) => void,
  signal: AbortSignal,
  onConnection: (state: 'open' | 'cut') => void = () => {},
): Promise<void> {
  let wait = FIRST_WAIT_MS
  while (!signal.aborted && deviceKey.value !== null) {
    const cut = new AbortController()
    const unwatch = whenHidden(() => cut.abort())
    const over = AbortSignal.any([signal, cut.signal])
    try {
      const answer = await fetch(`/api/${path()}`, { headers: authorization(), signal: over })
      if (answer.status === 401) return forgetKey()
      if (answer.ok && answer.body !== null) {
        onConnection('open')
        wait = FIRST_WAIT_MS
        await readEvents(answer.body, onTold, () => cut.abort())
      }
    } catch {
      // Cut, as it may be at any time.
    } finally {
      unwatch()
    }
    if (signal.aborted) return
    if (cut.signal.aborted && document.visibilityState === 'hidden') {
      await untilSeen(signal)
      continue
    }
    onConnection('cut')
    await waitFor(wait, signal)
    wait = Math.min(MOST_WAIT_MS, wait * 2)
  }
}

async function readEvents<Data>(
  body: ReadableStream<Uint8Array>,
  onTold: (told: Told<Data>) => void,
  cut: () => void,
): Promise<void> {
  const reader = body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader()
  const events = new EventBuffer()
  for (;;) {
    const silent = setTimeout(cut, SILENCE_MS)
    const { done, value } = await reader.read().finally(() => clearTimeout(silent))
    if (done) return
    for (const block of events.add(value)) {
      const event = fieldOf(block, 'event')
      if (event !== null) onTold({ event, data: JSON.parse(fieldOf(block, 'data') ?? 'null') })
    }
  }
}

/** Cuts a stream into its events. What has come is not looked through again with each part of a large one. */
class EventBuffer {
  #parts: string[] = []
  #length = 0
  #isTooLarge = false

  add(part: string): string[] {
    const isSplit = part.startsWith('\n') && this.#parts.at(-1)?.endsWith('\n') === true
    if (!isSplit && !part.includes('\n\n')) {
      this.#keep(part)
      return []
    }
    const blocks = [...this.#parts, part].join('').split('\n\n')
    if (this.#isTooLarge) blocks.shift()
    this.#parts = []
    this.#length = 0
    this.#isTooLarge = false
    this.#keep(blocks.pop() ?? '')
    return blocks
  }

  #keep(part: string): void {
    this.#length += part.length
    this.#isTooLarge ||= this.#length > MOST_EVENT
    if (this.#isTooLarge) this.#parts = [part.slice(-1)]
    else if (part !== '') this.#parts.push(part)
  }
}

function fieldOf(block: string, name: string): string | null {
  const line = block.split('\n').find(each => each.startsWith(`${name}: `))
  return line === undefined ? null : line.slice(name.length + 2)
}

/** Calls back once the page has not been seen for `HIDDEN_MS`; what is returned ends that. */
function whenHidden(act: () => void): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined
  const look = () => {
    clearTimeout(timer)
    if (document.visibilityState === 'hidden') timer = setTimeout(act, HIDDEN_MS)
  }
  document.addEventListener('visibilitychange', look)
  look()
  return () => {
    clearTimeout(timer)
    document.removeEventListener('visibilitychange', look)
  }
}

function untilSeen(signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const look = () => {
    if (document.visibilityState === 'hidden' && !signal.aborted) return
    document.removeEventListener('visibilitychange', look)
    signal.removeEventListener('abort', look)
    resolve()
  }
  document.addEventListener('visibilitychange', look)
  signal.addEventListener('abort', look)
  look()
  return promise
}

/** Ends early with the signal, or when the browser is online again. */
function waitFor(ms: number, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const over = () => {
    clearTimeout(timer)
    signal.removeEventListener('abort', over)
    removeEventListener('online', over)
    resolve()
  }
  const timer = setTimeout(over, ms)
  signal.addEventListener('abort', over)
  addEventListener('online', over)
  return promise
}

/** What a person knows the device by: `Firefox on Android`. */
export function nameOfDevice(agent: string = navigator.userAgent): string {
  const browser = ['Edg', 'OPR', 'Firefox', 'Chrome', 'Safari'].find(each => agent.includes(each)) ?? 'Browser'
  const system = ['Android', 'iPhone', 'iPad', 'Windows', 'Mac', 'Linux'].find(each => agent.includes(each))
  const name = browser.replace('Edg', 'Edge').replace('OPR', 'Opera')
  return system === undefined ? name : `${name} on ${system}`
}
