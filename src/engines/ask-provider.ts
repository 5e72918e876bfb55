import { BlockList, isIP } from 'node:net'
import type { Clock } from '../base/clock.ts'
import { messageOf, systemErrorCode } from '../base/errors.ts'
import { version } from '../base/package.ts'
import type { Provider, ProviderProblem } from '../core/shapes/provider.ts'

interface AskProviderOptions {
  /** The person's environment, which has the keys. */
  env: Readonly<NodeJS.ProcessEnv>
  clock: Clock
  /** Aborts the request, which then resolves with null. */
  signal: AbortSignal
}

/**
 * Asks a provider for its models (`GET <base_url>/models`), in at most 3 s. Returns why it cannot work, or null if no
 * problem is known. Never rejects. The key goes to that address only: redirects are not followed. A provider behind a proxy
 * of the environment is not asked (`canBeAsked`); only its key is checked.
 * @param model that it has to have; null: any
 */
export async function askProvider(
  provider: Provider,
  model: string | null,
  options: AskProviderOptions,
): Promise<ProviderProblem | null> {
  return (await askOnce(provider, model, options)).problem
}

/**
 * Like `askProvider`, but asks a possibly busy provider three times within 30 s before it counts as away. A busy one accepts
 * the request and does not answer in time, or answers that it cannot now. A local model answers nothing else while it works.
 */
export async function askPatiently(
  provider: Provider,
  model: string | null,
  options: AskProviderOptions,
): Promise<ProviderProblem | null> {
  for (let tries = 1; ; tries += 1) {
    const { problem, mayBeBusy } = await askOnce(provider, model, options)
    if (problem === null || !mayBeBusy || tries === MOST_TRIES) return problem
    await options.clock.wait(BETWEEN_MS, options.signal)
    if (options.signal.aborted) return null
  }
}

const MOST_TRIES = 3
/** Delay between requests, ms: with the waits for three answers, 30 s in all. */
const BETWEEN_MS = 10_500

async function askOnce(
  provider: Provider,
  model: string | null,
  options: AskProviderOptions,
): Promise<{ problem: ProviderProblem | null; mayBeBusy: boolean }> {
  const { env } = options
  const known = (problem: ProviderProblem | null) => ({ problem, mayBeBusy: false })
  const key = keyOf(provider, env)
  if (key !== null && 'problem' in key) return known({ kind: 'no-key', message: key.problem })
  if (!canBeAsked(provider, env)) return known(null)
  const answer = await askForModels(provider, key, { ...options, withinMs: ANSWER_MS }, async response => {
    const problem = problemOfStatus(provider, response.status)
    if (problem !== null || response.status !== 200) {
      await response.body?.cancel().catch(() => {})
      return problem
    }
    return model === null ? null : problemOfModel(provider, model, modelsIn(await readBounded(response)))
  })
  if ('read' in answer) return { problem: answer.read, mayBeBusy: answer.read?.kind === 'away' }
  if (answer.why === null) return known(null)
  return { problem: away(provider, answer.why), mayBeBusy: answer.isLate }
}

/**
 * Returns the names of the models on a provider of this machine. Null if it is on another machine, does not answer in time,
 * or gives another answer. Never rejects.
 */
export async function modelsOffered(
  provider: Provider,
  options: AskProviderOptions & { withinMs: number },
): Promise<string[] | null> {
  const key = keyOf(provider, options.env)
  if (!isOnThisMachine(new URL(provider.baseUrl)) || (key !== null && 'problem' in key)) return null
  const answer = await askForModels(provider, key, options, async response => {
    if (response.status === 200) return modelsIn(await readBounded(response))
    await response.body?.cancel().catch(() => {})
    return null
  })
  return 'read' in answer ? answer.read : null
}

/**
 * Requests `GET <base_url>/models` within that time. `why`: reason for no answer; null: `signal` ended the request.
 * `isLate`: the provider accepted the request, or the network is slow.
 */
async function askForModels<T>(
  { baseUrl }: Provider,
  key: { value: string } | null,
  { clock, signal, withinMs }: AskProviderOptions & { withinMs: number },
  read: (response: Response) => Promise<T>,
): Promise<{ read: T } | { why: string | null; isLate: boolean }> {
  const over = new AbortController()
  const late = new AbortController()
  const bound = clock.wait(withinMs, over.signal).then(() => late.abort())
  try {
    const response = await fetch(`${baseUrl}/models`, {
      headers: {
        accept: 'application/json',
        'user-agent': `codemachine/${version}`,
        ...(key === null ? {} : { authorization: `Bearer ${key.value}` }),
      },
      redirect: 'manual',
      signal: AbortSignal.any([late.signal, signal]),
    })
    return { read: await read(response) }
  } catch (error) {
    const isLate = late.signal.aborted
    if (signal.aborted) return { why: null, isLate }
    return { why: isLate ? `no answer within ${withinMs / 1000} s` : reasonOf(error), isLate }
  } finally {
    over.abort()
    await bound
  }
}

/** True if a provider can be asked: it is on this machine, or no proxy is set. Node uses proxies unlike codex. */
export function canBeAsked({ baseUrl }: Pick<Provider, 'baseUrl'>, env: Readonly<NodeJS.ProcessEnv>): boolean {
  const url = new URL(baseUrl)
  if (isOnThisMachine(url)) return true
  const names = [`${url.protocol.slice(0, -1)}_proxy`, 'all_proxy']
  if (!names.some(name => env[name] || env[name.toUpperCase()])) return true
  const exempt = (env.no_proxy || env.NO_PROXY || '').toLowerCase().split(/[\s,]+/)
  return exempt.some(entry => isExempt(url, entry))
}

/** True if the address of a provider is on this machine. */
export function isOnThisMachine({ hostname }: URL): boolean {
  return /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(hostname)
}

const ANSWER_MS = 3_000
/** Longest answer, in bytes: twice the list of a service with all known models. */
const MOST_BYTES = 4 * 1024 * 1024
const REASON_CHARACTERS = 200
const NAME_CHARACTERS = 60
/** Most models that a message names. */
const MOST_NAMES = 5

/** Returns a provider's key; null: none. Rejects invalid header text: a message of `fetch` would repeat it. */
function keyOf(
  { name, keyEnv }: Provider,
  env: Readonly<NodeJS.ProcessEnv>,
): { value: string } | { problem: string } | null {
  if (keyEnv === null) return null
  const value = env[keyEnv]?.trim() ?? ''
  if (value === '')
    return { problem: `The provider ${name} needs the environment variable ${keyEnv}, which is not set.` }
  if (/^[\x21-\x7e]+$/.test(value)) return { value }
  return { problem: `The environment variable ${keyEnv} of the provider ${name} does not hold a valid key.` }
}

/** True if an entry of `NO_PROXY` matches: `*`, a host (or its parent), an address or a range; a port may follow. */
function isExempt({ protocol, hostname, port }: URL, entry: string): boolean {
  const [, name = '', itsPort] = isIP(entry) === 0 ? (/^\[?(.*?)\]?(?::(\d+))?$/.exec(entry) ?? []) : ['', entry]
  if (itsPort !== undefined && itsPort !== (port || (protocol === 'https:' ? '443' : '80'))) return false
  const host = hostname.replace(/^\[|\]$|\.$/g, '')
  const family = isIP(host)
  if (name === '*') return true
  if (family !== 0) return isInRange(host, family === 6 ? 'ipv6' : 'ipv4', name)
  const domain = name.replace(/^\*?\./, '')
  return domain !== '' && (host === domain || host.endsWith(`.${domain}`))
}

function isInRange(host: string, family: 'ipv4' | 'ipv6', range: string): boolean {
  const [address = '', bits = family === 'ipv6' ? '128' : '32'] = range.split('/')
  const most = family === 'ipv6' ? 128 : 32
  if (isIP(address) !== (family === 'ipv6' ? 6 : 4) || !/^\d{1,3}$/.test(bits) || Number(bits) > most) return false
  const list = new BlockList()
  list.addSubnet(address, Number(bits), family)
  return list.check(host, family)
}

function away({ name, baseUrl }: Provider, why: string): ProviderProblem {
  return { kind: 'away', message: `The provider ${name} does not answer at ${baseUrl} (${why}).` }
}

function problemOfStatus(provider: Provider, status: number): ProviderProblem | null {
  const { name, baseUrl, keyEnv } = provider
  if (status >= 500 || status === 429 || status === 408) return away(provider, `HTTP ${status}`)
  if (status === 401 || status === 403) {
    const why = keyEnv === null ? 'wants a key; name its variable with key_env' : `rejects the key in ${keyEnv}`
    return { kind: 'refused', message: `The provider ${name} ${why} (HTTP ${status}).` }
  }
  if (status < 300 || status >= 400) return null
  return {
    kind: 'refused',
    message: `The provider ${name} redirects from ${baseUrl} (HTTP ${status}), and codemachine follows no redirects; use the other address as its base_url.`,
  }
}

/** Returns at most 4 MiB of the body, and drops the rest. */
async function readBounded(response: Response): Promise<string> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of response.body ?? []) {
    length += chunk.length
    if (length > MOST_BYTES) return ''
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

/** Returns the names in an answer `{ data: [{ id }] }`; null for another format, which proves nothing. */
function modelsIn(text: string): string[] | null {
  try {
    const { data } = Object(JSON.parse(text))
    if (!Array.isArray(data)) return null
    return data.map(each => Object(each).id).filter(id => typeof id === 'string')
  } catch {
    return null
  }
}

/** Returns a problem if the provider lacks the model. A name without a tag also matches `:latest`, as in ollama. */
function problemOfModel({ name }: Provider, model: string, offered: string[] | null): ProviderProblem | null {
  if (offered === null || offered.includes(model) || offered.includes(`${model}:latest`)) return null
  const names = offered.slice(0, MOST_NAMES).map(each => brief(each, NAME_CHARACTERS))
  const more = offered.length - names.length
  const has = names.length === 0 ? 'none at all' : `${names.join(', ')}${more === 0 ? '' : ` and ${more} more`}`
  return { kind: 'no-model', message: `The provider ${name} does not have the model ${model}; it has ${has}.` }
}

/** Returns the code or message of an error. The cause of `fetch failed` has the details. */
function reasonOf(error: unknown): string {
  const cause = error instanceof Error && error.cause !== undefined ? error.cause : error
  return brief(systemErrorCode(cause) ?? messageOf(cause), REASON_CHARACTERS)
}

function brief(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most).toWellFormed()}…`
}
