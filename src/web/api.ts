import { type Context, Hono } from 'hono'
import { streamSSE } from 'hono/streaming'
import * as v from 'valibot'
import { askRun } from '../app/commands.ts'
import type { Ask } from '../app/library.ts'
import { type SessionCard, SessionCards } from '../app/watch/cards.ts'
import { giveAnswer } from '../app/watch/questions.ts'
import type { World } from '../app/world.ts'
import { UserError } from '../base/errors.ts'
import { problemOfPrompt } from '../base/text.ts'
import { questionsOf } from '../records/answers.ts'
import { openQueue } from '../records/queue.ts'
import type { Access } from './access.ts'
import type { WebEnv } from './guard.ts'
import { SessionHub } from './session-hub.ts'

export interface ApiOptions {
  world: World
  access: Access
  /** Ends what goes on. */
  signal: AbortSignal
  onProblem(problem: string): void
}

/** The page's own commands and streams, and what they hold open. */
export interface Api extends AsyncDisposable {
  routes: Hono<WebEnv>
}

/** A stream says at least this often that it is there, ms; then it is also looked whether its device was ended. */
const BEAT_MS = 10_000
const MOST_NAME = 80

const text = v.pipe(
  v.string(),
  v.check(given => problemOfPrompt(given) === null, 'a text that says something'),
)
const name = v.pipe(v.string(), v.maxLength(200))
const enterSchema = v.strictObject({
  token: v.pipe(v.string(), v.maxLength(200)),
  name: v.pipe(v.string(), v.maxLength(MOST_NAME)),
})
const askSchema = v.variant('type', [
  v.strictObject({ type: v.literal('steer'), text }),
  v.strictObject({ type: v.literal('steer-agent'), agent: name, text }),
  v.strictObject({ type: v.literal('stop-agent'), agent: name }),
  v.strictObject({ type: v.literal('replan'), text, go: v.exactOptional(v.literal(true)) }),
  v.strictObject({ type: v.literal('stop'), now: v.boolean() }),
  v.strictObject({ type: v.picklist(['pause', 'unpause', 'retry', 'interrupt', 'skip', 'put-plan-back']) }),
  v.strictObject({
    type: v.literal('decide'),
    choice: name,
    text: v.exactOptional(text),
    session: v.exactOptional(name),
    decision: v.exactOptional(name),
    version: v.exactOptional(v.pipe(v.number(), v.integer())),
  }),
])
const answerSchema = v.strictObject({ question: name, answer: text, again: v.exactOptional(v.boolean()) })

/** What the page can ask for: nothing of it is the page's own, all is what codemachine offers to every door. */
export function openApi(options: ApiOptions): Api {
  const { world, access, signal, onProblem } = options
  const hub = new SessionHub(world)
  const listeners = new Set<() => void>()
  const streams = new Streams(options)
  const cards = new SessionCards({
    world,
    signal,
    onChange: () => {
      for (const changed of listeners) changed()
    },
    onProblem,
  })
  let following: Promise<void> | null = null
  // Nobody looks before somebody does.
  const follow = () => {
    following ??= cards.follow()
  }
  const routes = new Hono<WebEnv>()
  const sessionOf = (c: Context<WebEnv>): SessionCard => {
    const key = `${c.req.param('place')}/${c.req.param('id')}`
    const card = cards.cards.find(({ row }) => row.key === key)
    if (card === undefined) throw new UserError('There is no such session any more.')
    return card
  }

  routes.post('/enter', async c => {
    const { token, name: called } = await bodyOf(c, enterSchema)
    const opened = await access.openLink(token, called)
    if (opened === null)
      return c.json(
        {
          problem: 'This link was opened before, or is older than an hour.',
          hint: 'codemachine web link makes a new one.',
        },
        403,
      )
    return c.json({ key: opened.key, device: opened.device })
  })
  routes.get('/me', c => c.json({ device: c.get('device') }))
  routes.get('/devices', async c => c.json({ devices: await access.devices() }))
  routes.post('/devices/:id/end', async c => {
    const { id } = c.req.param()
    if (!(await access.end(id))) return c.json({ problem: 'There is no such device any more.' }, 404)
    streams.end(id)
    return c.json({ ended: id })
  })

  routes.get('/now', c =>
    streams.open(c, async (send, over) => {
      follow()
      let news = Promise.withResolvers<void>()
      const changed = () => news.resolve()
      listeners.add(changed)
      over.addEventListener('abort', changed)
      for (let at = 0; !over.aborted; at += 1) {
        news = Promise.withResolvers<void>()
        await send({ event: 'now', id: String(at), data: { isWhole: cards.isWhole, cards: cards.cards.map(shown) } })
        await news.promise
      }
      listeners.delete(changed)
    }),
  )
  routes.get('/sessions/:place/:id/stream', c =>
    streams.open(c, async (send, over) => {
      const { row } = sessionOf(c)
      for await (const part of hub.watch(row.records, row.id, afterOf(c), over)) {
        await send({ event: part.kind, id: String(part.n), data: part })
      }
    }),
  )
  routes.post('/sessions/:place/:id/ask', async c => {
    const ask: Ask = await bodyOf(c, askSchema)
    const { row } = sessionOf(c)
    const reply = await askRun(world, row.records, ask)
    return c.json(reply ?? { code: 'no-session', message: 'Nobody runs it any more.' })
  })
  routes.post('/sessions/:place/:id/answer', async c => {
    const { question, answer, again = false } = await bodyOf(c, answerSchema)
    const { row } = sessionOf(c)
    const asked = (await questionsOf(row.records, row.id, () => {})).find(each => each.question === question)
    if (asked === undefined) return c.json({ problem: 'There is no such question.' }, 404)
    const { worktree } = row
    const said = await giveAnswer(
      world,
      { records: row.records, worktree, asked, id: `${row.id}/${question}` },
      { answer, again },
    )
    return c.json({ code: 'done', message: said })
  })
  routes.get('/sessions/:place/:id/queue', async c => c.json(await openQueue(sessionOf(c).row.records.queue).list()))

  return {
    routes,
    [Symbol.asyncDispose]: async () => {
      await hub[Symbol.asyncDispose]()
      await following
    },
  }
}

/** A card as JSON: of the records only what tells the session apart, and where it works. */
function shown({ row, report, questions, queued }: SessionCard): object {
  const { records, ...rest } = row
  return { ...rest, directory: records.directory, report, questions, queued }
}

/** How many of its events the reader knows; null: none. */
function afterOf(c: Context<WebEnv>): number | null {
  const after = c.req.query('after') ?? c.req.header('last-event-id') ?? ''
  return /^\d{1,12}$/.test(after) ? Number(after) : null
}

async function bodyOf<T>(c: Context<WebEnv>, schema: v.GenericSchema<unknown, T>): Promise<T> {
  const body: unknown = await c.req.json().catch(() => {
    throw new UserError('What was sent is no JSON.')
  })
  const { success, output, issues } = v.safeParse(schema, body)
  if (success) return output
  const [issue] = issues
  throw new UserError(
    `What was sent is not understood${issue === undefined ? '' : `: ${v.getDotPath(issue) ?? 'it'}: ${issue.message}`}.`,
  )
}

interface Sent {
  event: string
  id: string
  data: unknown
}

type Send = (sent: Sent) => Promise<void>

/** The streams that are open, each of a device: they end with their connection, with the server, and with the device. */
class Streams {
  readonly #options: ApiOptions
  readonly #open = new Map<AbortController, string>()

  constructor(options: ApiOptions) {
    this.#options = options
  }

  open(c: Context<WebEnv>, run: (send: Send, over: AbortSignal) => Promise<void>): Response {
    const { id } = c.get('device')
    return streamSSE(c, async out => {
      const gone = new AbortController()
      const over = AbortSignal.any([this.#options.signal, gone.signal])
      this.#open.set(gone, id)
      out.onAbort(() => gone.abort())
      const beating = this.#beat(id, gone, over, () => out.write(': there\n\n'))
      try {
        const send: Send = async ({ event, id: n, data }) => {
          await out.writeSSE({ event, id: n, data: JSON.stringify(data) })
        }
        await run(send, over)
      } finally {
        gone.abort()
        this.#open.delete(gone)
        await beating
      }
    })
  }

  /** Ends those of a device. */
  end(device: string): void {
    for (const [gone, of] of this.#open) if (of === device) gone.abort()
  }

  /** A device may be ended by another process, too. */
  async #beat(device: string, gone: AbortController, over: AbortSignal, say: () => Promise<unknown>): Promise<void> {
    const { world, access } = this.#options
    while (!over.aborted) {
      await world.clock.wait(BEAT_MS, over)
      if (over.aborted) return
      if (await access.isThere(device)) await say()
      else gone.abort()
    }
  }
}
