import { signal } from '@preact/signals'
import { TEXTS } from './texts.ts'

/** How it stands between the page and its server. */
type Connection = 'connecting' | 'open' | 'cut' | 'no-key'

/** Whether this device has been let in. */
export const isIn = signal(false)
export const connection = signal<Connection>('connecting')

interface Problem {
  problem: string
  /** Of its kind, such as `CM0601`. */
  code?: string
  hint?: string | null
}

/** What the server refuses, or a connection that is cut, in a sentence. */
export class Refused extends Error {
  /** With its code, and what to do. */
  readonly text: string

  constructor({ problem, code, hint }: Problem) {
    super(problem)
    this.text = `${problem}${code === undefined ? '' : ` (${code})`} ${hint ?? ''}`.trim()
  }
}

/** Opens the link that the page was opened by, if it was: its token stands in the fragment, which no server is sent. */
export async function enterByLink(): Promise<void> {
  const token = /^#t=([\w-]+)$/.exec(location.hash)?.[1]
  if (token === undefined) return
  // It opens nothing a second time, and is not to stand in the history.
  history.replaceState(null, '', location.pathname)
  const { publicKey, keep } = await newIdentity()
  const { device } = await post<{ device: { id: string } }>('enter', { token, name: nameOfDevice(), publicKey })
  await keep(device.id)
}

/** Who this device is: its key leaves this browser never, and nothing of the page can read it. */
interface Identity {
  id: string
  keys: CryptoKeyPair
}

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256' }
const STORE = 'device'
let identity: Identity | null = null
/** What is sent once it has signed in. It counts as long as that server runs, and stands nowhere. */
let sessionKey: string | null = null
let signingIn: Promise<void> | null = null
/** How long each of its two requests may take, ms. */
const SIGN_IN_MS = 20_000

/** Reads who this device is. */
export async function readIdentity(): Promise<void> {
  identity = ((await inStore('readonly', store => store.get(STORE)).catch(() => null)) as Identity | undefined) ?? null
  isIn.value = identity !== null
  if (identity === null) connection.value = 'no-key'
}

/** Makes a key for this device; `keep`: it was let in under that id. Rejects with `Refused` where a browser can make none. */
export async function newIdentity(): Promise<{ publicKey: string; keep(id: string): Promise<void> }> {
  if (!isSecureContext)
    throw new Refused({
      problem:
        'A browser cannot store a key over plain http. Open this page by https, or on the machine that serves it.',
    })
  const keys = await crypto.subtle.generateKey(ALGORITHM, false, ['sign', 'verify'])
  const publicKey = inBase64Url(await crypto.subtle.exportKey('spki', keys.publicKey))
  return {
    publicKey,
    async keep(id) {
      identity = { id, keys }
      sessionKey = null
      // Where a browser keeps nothing, as in a private window, it is in as long as the page is open.
      await inStore('readwrite', store => store.put(identity, STORE)).catch(() => {})
      isIn.value = true
    },
  }
}

/** The server does not know it: it was ended. It may be another server that says so: it is asked again. */
function leave(): void {
  sessionKey = null
  isIn.value = false
  connection.value = 'no-key'
}

/** How often a device that was told to be none tries again, ms. */
const TRY_AGAIN_MS = 10_000
setInterval(() => {
  if (isIn.value || identity === null || document.visibilityState === 'hidden') return
  signIn().then(
    () => {
      isIn.value = true
    },
    () => {},
  )
}, TRY_AGAIN_MS)

/** Signs in with the server that is there now: what is sent to one is worth nothing to whoever has its port afterwards. */
function signIn(): Promise<void> {
  const begin = async (own: Identity) => {
    const bound = () => ({ signal: AbortSignal.timeout(SIGN_IN_MS), keepalive: isLeft() })
    const { challenge } = await answerOf<{ challenge: string }>('challenge', { ...writing('{}'), ...bound() })
    const signed = new TextEncoder().encode(`codemachine\n${location.origin}\n${challenge}`)
    const signature = await crypto.subtle.sign({ name: 'ECDSA', hash: 'SHA-256' }, own.keys.privateKey, signed)
    const body = { device: own.id, challenge, signature: inBase64Url(signature) }
    const { key } = await answerOf<{ key: string }>('sign-in', { ...writing(JSON.stringify(body)), ...bound() })
    sessionKey = key
  }
  if (identity === null) return Promise.resolve()
  signingIn ??= begin(identity).finally(() => {
    signingIn = null
  })
  return signingIn
}

async function inStore<T>(mode: IDBTransactionMode, act: (store: IDBObjectStore) => IDBRequest<T>): Promise<T> {
  const opening = indexedDB.open('codemachine', 1)
  opening.onupgradeneeded = () => void opening.result.createObjectStore(STORE)
  const database = await resultOf(opening)
  try {
    return await resultOf(act(database.transaction(STORE, mode).objectStore(STORE)))
  } finally {
    database.close()
  }
}

function resultOf<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result)
    request.onerror = () => reject(request.error)
  })
}

function inBase64Url(bytes: ArrayBuffer): string {
  const text = btoa(String.fromCharCode(...new Uint8Array(bytes)))
  return text.replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '')
}

function fetchAsNobody(path: string, init: RequestInit): Promise<Response> {
  return fetch(`/api/${path}`, init).catch(() => {
    throw new Refused({ problem: TEXTS.isCut })
  })
}

/** Fetches as this device; once more where the server is another one than it has signed in with. */
async function fetchAsDevice(path: string, init: RequestInit): Promise<Response> {
  const once = () => {
    const headers = { ...(init.headers as Record<string, string> | undefined), ...authorization() }
    return fetchAsNobody(path, { ...init, headers })
  }
  // At once where it has signed in: who leaves the page has no time to wait.
  if (sessionKey === null) await signIn()
  const sent = sessionKey
  const answer = await once()
  if (answer.status !== 401 || identity === null) return answer
  if (sessionKey === sent) sessionKey = null
  if (sessionKey === null) await signIn()
  return await once()
}

/** Sends something that changes something, also while the page is left; rejects with `Refused`. */
export async function post<Answer>(path: string, body: object): Promise<Answer> {
  const text = JSON.stringify(body)
  const signal = AbortSignal.timeout(ANSWER_MS)
  // Of what is larger a browser sends nothing while the page is left.
  return await answerOf(path, { ...writing(text), signal, keepalive: isLeft() && text.length < 10_000 })
}

/** How long an answer may take, ms. A session that is begun is waited for for half a minute. */
const ANSWER_MS = 90_000

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
  return { method: 'POST', body, headers: { 'content-type': 'application/json', 'x-codemachine': '1' } }
}

/** Reads something; rejects with `Refused`. */
export async function get<Answer>(path: string, signal: AbortSignal): Promise<Answer> {
  return await answerOf(path, { signal: AbortSignal.any([signal, AbortSignal.timeout(ANSWER_MS)]) })
}

function authorization(): Record<string, string> {
  return sessionKey === null ? {} : { authorization: `Bearer ${sessionKey}` }
}

/** The ways by which it gets in are asked without what it has. */
const WITHOUT_KEY: ReadonlySet<string> = new Set(['enter', 'pair', 'challenge', 'sign-in'])

async function answerOf<Answer>(path: string, init: RequestInit): Promise<Answer> {
  const answer = await (WITHOUT_KEY.has(path) ? fetchAsNobody(path, init) : fetchAsDevice(path, init))
  if (answer.status === 401) leave()
  const body: unknown = await answer.json().catch(() => ({ problem: `The server answered ${answer.status}.` }))
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
  const init = { ...writing(JSON.stringify(body)), signal: over }
  const answer = await (WITHOUT_KEY.has(path) ? fetchAsNobody(path, init) : fetchAsDevice(path, init))
  if (!answer.ok || answer.body === null) {
    throw new Refused(
      (await answer.json().catch(() => ({ problem: `The server answered ${answer.status}.` }))) as Problem,
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
    throw error instanceof Refused ? error : new Refused({ problem: TEXTS.isCut })
  })
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
 * @param onConnection told whether it is open, cut, or opened again after the page was hidden
 */
export async function follow<Data>(
  path: () => string,
  onTold: (told: Told<Data>) => void,
  signal: AbortSignal,
  onConnection: (state: 'connecting' | 'open' | 'cut') => void = () => {},
): Promise<void> {
  let wait = FIRST_WAIT_MS
  while (!signal.aborted && isIn.value) {
    const cut = new AbortController()
    const unwatch = whenHidden(() => cut.abort())
    const over = AbortSignal.any([signal, cut.signal])
    const silent = setTimeout(() => cut.abort(), SILENCE_MS)
    try {
      const answer = await fetchAsDevice(path(), { signal: over })
      clearTimeout(silent)
      if (answer.status === 401) return leave()
      // Another server may have come to answer there.
      if (answer.ok && answer.body !== null && answer.headers.get('content-type')?.startsWith('text/event-stream')) {
        onConnection('open')
        await readEvents<Data>(
          answer.body,
          told => {
            wait = FIRST_WAIT_MS
            onTold(told)
          },
          () => cut.abort(),
        )
      }
    } catch {
      // Cut, as it may be at any time.
    } finally {
      clearTimeout(silent)
      unwatch()
    }
    if (signal.aborted) return
    if (document.visibilityState === 'hidden') {
      await untilSeen(signal)
      onConnection('connecting')
      wait = FIRST_WAIT_MS
      continue
    }
    // What is there again at once, as when a phone wakes up, was not worth a word.
    onConnection(wait > FIRST_WAIT_MS ? 'cut' : 'connecting')
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
