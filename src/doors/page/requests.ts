import type { Context } from 'hono'
import { streamSSE } from 'hono/streaming'
import * as v from 'valibot'
import type { Clock } from '../../base/clock.ts'
import { UserError } from '../../base/errors.ts'
import { problemOfPrompt } from '../../base/text.ts'
import { MOST_GATES } from '../../core/events/outcome.ts'
import { type Access, isPublicKey, type Shown } from '../../project/page/access.ts'
import type { WebEnv } from './guard.ts'

/** A text that can be a prompt. */
export const text = v.pipe(
  v.string(),
  v.check(given => problemOfPrompt(given) === null, 'a text that is not empty and not too long'),
)
/** A word by which something is known. */
export const name = v.pipe(v.string(), v.maxLength(200))

/** The public half of a browser's key; left out: who asks is a program, and is given a key. */
export const publicKey = v.exactOptional(
  v.pipe(v.string(), v.maxLength(200), v.check(isPublicKey, 'use a key of ECDSA over P-256, as SPKI in base64url')),
)

const count = v.pipe(v.number(), v.safeInteger(), v.minValue(1))
/** What a session may take, in all. */
export const limits = {
  rounds: v.exactOptional(count),
  timeMs: v.exactOptional(v.pipe(count, v.minValue(1_000))),
  tokens: v.exactOptional(count),
  cost: v.exactOptional(v.pipe(v.number(), v.finite(), v.minValue(0.01))),
}

/** What a session is begun with, beside its goal. */
export const terms = {
  template: v.optional(v.pipe(v.string(), v.maxLength(60))),
  gates: v.optional(v.pipe(v.array(v.pipe(v.string(), v.maxLength(10_000))), v.maxLength(MOST_GATES))),
  limits: v.optional(v.strictObject(limits)),
}

/** What a browser shows of itself with a request; null: it is a program that asks. */
export function shownBy(c: Context<WebEnv>, key: string | undefined): Shown | null {
  return key === undefined ? null : { publicKey: key, origin: c.req.header('origin') ?? '' }
}

/** The body of a request, of that shape; a `UserError` that names the place where it is not. */
export async function bodyOf<T>(c: Context<WebEnv>, schema: v.GenericSchema<unknown, T>): Promise<T> {
  const body: unknown = await c.req.json().catch(() => {
    throw new UserError('CM0807', 'The body of the request is not JSON.')
  })
  const { success, output, issues } = v.safeParse(schema, body)
  if (success) return output
  const [issue] = issues
  const place = issue === undefined ? null : v.getDotPath(issue)
  throw new UserError('CM0807', `Invalid request${issue === undefined ? '' : `: ${place ?? 'it'}: ${issue.message}`}.`)
}

/** A whole number of the query, from 0 on; null: it is not there. */
export function numberOf(c: Context<WebEnv>, key: string): number | null {
  const typed = c.req.query(key) ?? ''
  return /^\d{1,12}$/.test(typed) ? Number(typed) : null
}

/** What is sent on a stream: an event of that name. `id`: its number, by which a stream goes on. */
interface Sent {
  event: string
  id?: string
  data: unknown
}

type Send = (sent: Sent) => Promise<void>

interface StreamsOptions {
  clock: Clock
  access: Access
  /** Ends all of them. */
  signal: AbortSignal
}

/** A stream says at least this often that it is there, ms; then it is also looked whether its device was ended. */
const BEAT_MS = 10_000

/** The streams that are open, each of a device: they end with their connection, with the server, and with the device. */
export class Streams {
  readonly #options: StreamsOptions
  readonly #open = new Map<AbortController, { device: string | null; over: Promise<void> }>()

  constructor(options: StreamsOptions) {
    this.#options = options
  }

  /**
   * Answers with server-sent events, as long as `run` goes on. What a person has to mend comes as the event `problem`.
   * @param device whose it is; null: of one that has no key yet
   */
  open(
    c: Context<WebEnv>,
    run: (send: Send, over: AbortSignal) => Promise<void>,
    device: string | null = c.get('device').id,
  ): Response {
    return streamSSE(c, async out => {
      const gone = new AbortController()
      const over = AbortSignal.any([this.#options.signal, gone.signal])
      const { promise: closed, resolve } = Promise.withResolvers<void>()
      this.#open.set(gone, { device, over: closed })
      out.onAbort(() => gone.abort())
      const beating = this.#beat(device, gone, over, () => out.write(': there\n\n'))
      const send: Send = async ({ event, id, data }) => {
        await out.writeSSE({ event, ...(id === undefined ? {} : { id }), data: JSON.stringify(data) })
      }
      try {
        await run(send, over)
      } catch (error) {
        if (over.aborted) return
        if (!(error instanceof UserError)) throw error
        await send({
          event: 'problem',
          data: { kind: 'problem', n: 0, problem: error.message, code: error.code, hint: error.hint },
        })
      } finally {
        gone.abort()
        await beating
        this.#open.delete(gone)
        resolve()
      }
    })
  }

  /** How many are open. */
  get count(): number {
    return this.#open.size
  }

  /** Ends those of a device. */
  end(device: string): void {
    for (const [gone, open] of this.#open) if (open.device === device) gone.abort()
  }

  /** Resolves when each that is open has ended. */
  async ended(): Promise<void> {
    await Promise.all([...this.#open.values()].map(({ over }) => over))
  }

  /** A device may be ended by another process, too. */
  async #beat(
    device: string | null,
    gone: AbortController,
    over: AbortSignal,
    say: () => Promise<unknown>,
  ): Promise<void> {
    const { clock, access } = this.#options
    while (!over.aborted) {
      await clock.wait(BEAT_MS, over)
      if (over.aborted) return
      if (device === null || (await access.isThere(device))) await say()
      else gone.abort()
    }
  }
}
