import { isAbsolute } from 'node:path'
import type { Clock } from '../../base/clock.ts'
import { messageOf, systemErrorCode } from '../../base/errors.ts'
import { version } from '../../base/package.ts'
import { isWritableByAgents, type WritableByAgents } from '../../platform/files.ts'
import { EXECA_OPTIONS, findProgram, isProgram, OWN_GROUP, withSearchPathOutside } from '../../platform/run-process.ts'
import { type Notification, plainLine } from './notification.ts'

/** A way in which notifications reach a person: a command, a webhook, or the terminal. */
export interface Channel {
  readonly name: 'command' | 'webhook' | 'terminal'
  /** Delivers within bounded time; `signal` ends everything it started. Null: delivered. Never rejects. */
  deliver(notification: Notification, signal: AbortSignal): Promise<DeliveryProblem | null>
}

/** Why a notification was not delivered. Of each `kind` only the first problem is reported. */
export interface DeliveryProblem {
  kind: string
  sentence: string
  /** True if an attempt before an early end had already failed. */
  wasKnown?: boolean
}

/** Means of the process for channels. */
export interface ChannelOptions {
  clock: Clock
  env: Readonly<NodeJS.ProcessEnv>
  platform: NodeJS.Platform
  /** The person's home directory, where a command runs. */
  home: string
  /** Folders that agents can write: no command comes from there. */
  where: WritableByAgents
  /** Null: no terminal to ring. */
  bell: Bell | null
}

/** Runs a command of the person's, without a shell: the notification is the JSON on its stdin. */
export function commandChannel(argv: readonly string[], options: CommandOptions): Channel {
  const [program = '', ...args] = argv
  const shown = plainLine(program, NAME_CHARS)
  return {
    name: 'command',
    deliver: async (notification, signal) => {
      const path = await programOf(program, options)
      if (typeof path !== 'string') return path
      const end = await run(path, args, `${JSON.stringify(notification)}\n`, options, signal)
      return end === null
        ? null
        : { kind: `command-${end.kind}`, sentence: `The notification command ${shown} ${end.how}.` }
    },
  }
}

type CommandOptions = Omit<ChannelOptions, 'bell'>

const NAME_CHARS = 200
/** How long a command may run, ms. */
const COMMAND_MS = 30_000

/** A plain name is searched on the PATH. */
async function programOf(program: string, options: CommandOptions): Promise<string | DeliveryProblem> {
  const shown = plainLine(program, NAME_CHARS)
  const path = isAbsolute(program) ? program : null
  const found =
    path === null
      ? await findProgram(program, options)
      : { path: (await isProgram(path)) ? path : null, passedOver: [] }
  if (found.path !== null && (path === null || !isWritableByAgents(path, options.where))) return found.path
  if (found.path !== null || found.passedOver.length > 0)
    return {
      kind: 'command-unsafe',
      sentence: `codemachine does not run the notification command ${shown}, because agents can change it. Move it out of their reach.`,
    }
  return {
    kind: 'command-missing',
    sentence: `The notification command ${shown} does not exist${path === null ? '' : ', or is not executable'}; correct notify.command in the settings.`,
  }
}

/** Resolves when the command has ended: with a clause about its failure, or null for exit code 0. */
async function run(
  path: string,
  args: readonly string[],
  input: string,
  { clock, env, home, where, platform }: CommandOptions,
  signal: AbortSignal,
): Promise<{ kind: string; how: string } | null> {
  const { execa } = await import('execa')
  const child = execa(path, args, {
    ...EXECA_OPTIONS,
    ...OWN_GROUP,
    cwd: home,
    env: withSearchPathOutside(env, where, platform),
    // The command may ignore its stdin.
    input,
    stdout: 'ignore',
    stderr: 'ignore',
  })
  const over = new AbortController()
  let hangs = false
  const bound = clock.wait(COMMAND_MS, AbortSignal.any([over.signal, signal])).then(() => {
    if (over.signal.aborted) return
    hangs = !signal.aborted
    child.kill()
  })
  const { exitCode, signal: killedBy, cause } = await child
  over.abort()
  await bound
  if (exitCode === 0) return null
  if (hangs) return { kind: 'hangs', how: `did not end within ${COMMAND_MS / 1000} s, and was ended` }
  if (exitCode !== undefined) return { kind: 'failed', how: `ended with exit code ${exitCode}` }
  return killedBy === undefined
    ? { kind: 'not-started', how: `could not be started (${systemErrorCode(cause) ?? messageOf(cause)})` }
    : { kind: 'failed', how: `was ended by ${killedBy}` }
}

/** Sends notifications to an http(s) address, as the body of a POST. */
export function webhookChannel(address: string, clock: Clock): Channel {
  const url = URL.canParse(address) ? new URL(address) : null
  if (url === null || !/^https?:$/.test(url.protocol)) {
    const sentence = 'The webhook is not an http or https address; correct notify.webhook in the settings.'
    return { name: 'webhook', deliver: async () => ({ kind: 'webhook-address', sentence }) }
  }
  const shown = shownAddress(url)
  const request = requestOf(url)
  return {
    name: 'webhook',
    deliver: async (notification, signal) => {
      const body = JSON.stringify(notification)
      let known: DeliveryProblem | null = null
      for (let attempt = 0; ; attempt++) {
        const answer = await post({ ...request, body }, clock, signal)
        const problem = problemOf(answer, shown)
        if (signal.aborted) return known ?? problem
        const pause = PAUSES_MS[attempt]
        if (problem === null || !answer.mayPass || pause === undefined) return problem
        known = { ...problem, wasKnown: true }
        await clock.wait(pause, signal)
      }
    },
  }
}

const ATTEMPT_MS = 10_000
/** Pauses before the second and the third attempt. */
const PAUSES_MS = [1000, 5000]
const REASON_CHARS = 200

interface WebhookRequest {
  url: string
  headers: Record<string, string>
  body: string
}

/** How an attempt ended: with an HTTP status, or with a failure. `mayPass`: another attempt may succeed. */
type Answer = { status: number; mayPass: boolean } | { failure: string; mayPass: boolean }

/** Returns the address without possible secrets: user, password, query, and the path, which is the key of many webhooks. */
function shownAddress(url: URL): string {
  return `${url.origin}${url.pathname === '/' && url.search === '' ? '/' : '/…'}`
}

/** `fetch` rejects credentials in an address. */
function requestOf(url: URL): Omit<WebhookRequest, 'body'> {
  const bare = new URL(url)
  const headers: Record<string, string> = {
    'content-type': 'application/json',
    'user-agent': `codemachine/${version}`,
  }
  if (url.username !== '' || url.password !== '') {
    const credentials = `${decoded(url.username)}:${decoded(url.password)}`
    headers.authorization = `Basic ${Buffer.from(credentials).toString('base64')}`
    bare.username = ''
    bare.password = ''
  }
  return { url: bare.href, headers }
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

/** Node reads its HTTP client (20 MB, 0.2 s) only when `fetch` is first called. */
async function post({ url, headers, body }: WebhookRequest, clock: Clock, signal: AbortSignal): Promise<Answer> {
  const over = new AbortController()
  const late = new AbortController()
  const bound = clock.wait(ATTEMPT_MS, over.signal).then(() => late.abort())
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers,
      body,
      // A redirect would send the notification to an address that the person has not named.
      redirect: 'manual',
      signal: AbortSignal.any([late.signal, signal]),
    })
    await response.body?.cancel().catch(() => {})
    return { status: response.status, mayPass: response.status === 429 || response.status >= 500 }
  } catch (error) {
    if (late.signal.aborted) return { failure: `no answer within ${ATTEMPT_MS / 1000} s`, mayPass: true }
    return { failure: reasonOf(error), mayPass: mayPass(error) }
  } finally {
    over.abort()
    await bound
  }
}

function problemOf(answer: Answer, shown: string): DeliveryProblem | null {
  if ('failure' in answer)
    return { kind: 'webhook-unreachable', sentence: `The webhook ${shown} could not be reached: ${answer.failure}.` }
  const { status } = answer
  if (status >= 200 && status < 300) return null
  if (status >= 300 && status < 400)
    return {
      kind: 'webhook-redirect',
      sentence: `The webhook ${shown} redirects elsewhere (HTTP ${status}); write the new address into notify.webhook.`,
    }
  return { kind: 'webhook-refused', sentence: `The webhook ${shown} did not accept a notification (HTTP ${status}).` }
}

/** Returns true for network errors; false for errors of `fetch` itself, certificates and TLS. */
function mayPass(error: unknown): boolean {
  return /^(E(?!RR_)[A-Z0-9_]+|UND_ERR_(SOCKET|[A-Z]+_TIMEOUT))$/.test(systemErrorCode(causeOf(error)) ?? '')
}

/** The cause of `fetch failed` is the real error. */
function causeOf(error: unknown): unknown {
  return error instanceof Error && error.cause !== undefined ? error.cause : error
}

/** An error's code or message: the message of `fetch` itself could hold the address. */
function reasonOf(error: unknown): string {
  const cause = causeOf(error)
  return plainLine(systemErrorCode(cause) ?? messageOf(cause), REASON_CHARS)
}

/** A terminal that a person may be looking at. */
export interface Bell {
  write(text: string): unknown
}

/**
 * Rings the terminal's bell and shows a desktop notification (`OSC 9`), which other terminals ignore. Without a terminal
 * it does nothing.
 */
export function terminalChannel(bell: Bell | null, env: Readonly<NodeJS.ProcessEnv>): Channel {
  return {
    name: 'terminal',
    deliver: async ({ title, message }) => {
      if (bell === null) return { kind: 'no-terminal', sentence: 'The bell cannot ring: stdout is not a terminal.' }
      // The text begins with a word: a number would be a command to some terminals (`9;4` is a progress bar).
      bell.write(env.TERM === 'dumb' ? BEL : `${BEL}${OSC_9}${title}. ${message}${BEL}`)
      return null
    },
  }
}

const BEL = '\x07'
const OSC_9 = '\x1b]9;'
