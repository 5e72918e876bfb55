import { randomBytes } from 'node:crypto'
import { type Context, Hono } from 'hono'
import * as v from 'valibot'
import { UserError } from '../../base/errors.ts'
import { parseCertificate } from '../../core/rules/certificate.ts'
import type { Reply } from '../../core/shapes/reply.ts'
import type { TaskBoard } from '../../core/state/plan.ts'
import type { BoardMark } from '../../core/view.ts'
import { readBoundedText } from '../../platform/files.ts'
import { askRun } from '../../project/commands/commands.ts'
import { OpenComparison } from '../../project/diff/comparison.ts'
import { latestSession } from '../../project/find.ts'
import type { Ask } from '../../project/library.ts'
import { OpenProject } from '../../project/open-project.ts'
import type { Verifications } from '../../project/proof/verifications.ts'
import { certificatePath } from '../../project/proof/verify.ts'
import { lookForPage } from '../../project/reports.ts'
import { areSavepointsGone, lookAtSavepoints, rewindInWords } from '../../project/savepoints.ts'
import { setSecret } from '../../project/secrets/person-secrets.ts'
import { redactorOfProject } from '../../project/secrets/redactor.ts'
import { resumeDetached, type StartingWorld } from '../../project/start/detached.ts'
import type { SessionCard } from '../../project/watch/cards.ts'
import { eventsBefore, roundsFrom } from '../../project/watch/history.ts'
import { giveAnswer } from '../../project/watch/questions.ts'
import { boardPlaceOf, readTaskBoard } from '../../project/watch/task-watch.ts'
import type { World } from '../../project/world.ts'
import { foldJournal } from '../../session/records/journal.ts'
import { questionsOf } from '../../session/records/questions.ts'
import { askWhoRuns } from '../../session/records/run-lock.ts'
import { commandsHere } from '../../tell/report/commands.ts'
import { proofNow } from '../../tell/report/proof-now.ts'
import { pageOf } from '../../tell/report/write.ts'
import { describeEvent } from '../../tell/words/event.ts'
import { ownBoard } from '../../tell/words/work.ts'
import { isPrivate, type WebEnv } from './guard.ts'
import { bodyOf, limits, name, numberOf, type Streams, text } from './requests.ts'
import { rowOf, streamSession } from './session-stream.ts'

/** What the page asks of one session. */
interface SessionApiOptions {
  world: World & StartingWorld
  streams: Streams
  tickets: ReportTickets
  verifications: Verifications
  /** The session that a request is about; a `UserError` if there is none of it any more. */
  sessionOf(c: Context<WebEnv>): SessionCard
  onProblem(problem: string): void
}

const askSchema = v.variant('type', [
  v.strictObject({ type: v.literal('steer'), text }),
  v.strictObject({ type: v.literal('steer-agent'), agent: name, text }),
  v.strictObject({ type: v.literal('stop-agent'), agent: name }),
  v.strictObject({ type: v.literal('replan'), text, go: v.exactOptional(v.literal(true)) }),
  v.strictObject({ type: v.literal('stop'), now: v.boolean() }),
  v.strictObject({ type: v.picklist(['pause', 'unpause', 'retry', 'interrupt', 'skip', 'put-plan-back']) }),
  v.strictObject({ type: v.literal('limits'), ...limits }),
  v.strictObject({
    type: v.literal('decide'),
    choice: name,
    text: v.exactOptional(text),
    session: v.exactOptional(name),
    decision: v.exactOptional(name),
    version: v.exactOptional(v.pipe(v.number(), v.integer())),
    since: v.exactOptional(v.string()),
  }),
])
/** `answer`: null accepts what the agent assumed. */
const answerSchema = v.strictObject({ question: name, answer: v.nullable(text), again: v.exactOptional(v.boolean()) })
const rewindSchema = v.strictObject({ to: name, go: v.boolean() })
const secretSchema = v.strictObject({ key: name, value: v.pipe(v.string(), v.maxLength(64 * 1024)) })
const nothing = v.strictObject({})

/** How many rows or rounds are given at once. */
const MOST_ROWS = 500
const MOST_ROUNDS = 200
const MOST_CERTIFICATE = 4 * 1024 * 1024
const MOST_SAVEPOINTS = 2_000
/** How long who verifies waits for its end, ms; gates have bounds of their own. */
const VERIFY_MS = 24 * 60 * 60_000
const NOBODY = { code: 'no-session', message: 'The session is no longer running.' }

/** The ways of one session, below `/sessions/<place>/<id>`. */
export function sessionRoutes(options: SessionApiOptions): Hono<WebEnv> {
  const routes = new Hono<WebEnv>()
  addLooking(routes, options)
  addTelling(routes, options)
  addFiles(routes, options)
  addProof(routes, options)
  return routes
}

function addLooking(routes: Hono<WebEnv>, { world, streams, sessionOf }: SessionApiOptions): void {
  routes.get('/stream', c =>
    streams.open(c, async (send, over) => {
      await streamSession(world, sessionOf(c).row, {
        after: numberOf(c, 'after'),
        tell: part => send({ event: part.kind, id: String(part.n), data: part }),
        signal: over,
      })
    }),
  )
  routes.get('/rows', async c => {
    const { row } = sessionOf(c)
    const redactor = redactorOfProject(world, row.records)
    const { events } = await eventsBefore(row.records, row.id, {
      before: numberOf(c, 'before') ?? Number.MAX_SAFE_INTEGER,
      most: MOST_ROWS,
      isWanted: (event, state) => describeEvent(event, state) !== null,
    })
    const rows = events.flatMap(({ event, state }) => rowOf(event, state, redactor) ?? [])
    return c.json({ rows, first: rows[0]?.n ?? 0 })
  })
  routes.get('/rounds', async c => {
    const { row } = sessionOf(c)
    const most = Math.min(MOST_ROUNDS, numberOf(c, 'count') ?? MOST_ROUNDS)
    const some = await roundsFrom(row.records, row.id, { from: numberOf(c, 'from') ?? 0, most })
    return c.json(redactorOfProject(world, row.records).event(some))
  })
  routes.get('/board', async c => {
    const { row } = sessionOf(c)
    const { records, id } = row
    const redactor = redactorOfProject(world, records)
    const state = await foldJournal(records, id, 'ends')
    const own = state === null ? null : ownBoard(state)
    if (own !== null) {
      const tasks = own.rows.map(({ mark, id: task, text: title, who }) => {
        return { id: task, title: redactor.text(title), status: mark, phase: null, who }
      })
      return c.json({ tasks, count: own.count })
    }
    const { tasks, current } = await readTaskBoard(boardPlaceOf(records, id, redactor, () => state))
    const shown = tasks.slice(0, MOST_TASKS).map(task => {
      return { id: task.id, title: task.name, status: statusOf(task, current), phase: task.phase, who: null }
    })
    return c.json({ tasks: tasks.length === 0 ? null : shown, count: tasks.length })
  })
}

const MOST_TASKS = 2_000

/** In the words of a board. */
function statusOf({ id, done, parked, claimed }: TaskBoard['tasks'][number], current: string | null): BoardMark {
  if (done) return 'done'
  if (parked !== undefined) return 'parked'
  if (claimed) return 'claimed'
  return id === current ? 'now' : 'to-do'
}

function addTelling(routes: Hono<WebEnv>, { world, sessionOf }: SessionApiOptions): void {
  routes.post('/ask', async c => {
    const { since, ...given } = { since: undefined, ...(await bodyOf(c, askSchema)) }
    const ask: Ask = given
    const { row, report } = sessionOf(c)
    const { records, id } = row
    // The same may be asked about another plan by now.
    if (since !== undefined && report?.decision != null && report.decision.since !== since)
      return c.json({ code: 'not-asked', message: 'The question has changed. Read it again.' })
    // Who runs there may have come to the next session since the person saw this one.
    const running = await latestSession(records, () => {})
    if (running !== null && running !== id && (await askWhoRuns(records.lock, world.platform, () => {})) !== null)
      return c.json({ code: 'other-session', message: `${running} runs now, not ${id}.` } satisfies Reply)
    return c.json((await askRun(world, records, ask)) ?? NOBODY)
  })
  routes.post('/answer', async c => {
    const { question, answer, again = false } = await bodyOf(c, answerSchema)
    const { records, id, worktree } = sessionOf(c).row
    const asked = (await questionsOf(records, id, () => {})).find(each => each.question === question)
    if (asked === undefined) return c.json({ problem: 'No such question.' }, 404)
    const answered = { records, worktree, asked, id: `${id}/${question}` }
    return c.json({ code: 'done', message: await giveAnswer(world, answered, { answer, again }) })
  })
  routes.post('/resume', async c => {
    const more = await bodyOf(c, v.strictObject(limits))
    const { records, id } = sessionOf(c).row
    return c.json(await resumeDetached(world, records, { id, limits: more }, world.signal))
  })
  routes.post('/secret', async c => {
    if (!isPrivate(c)) {
      const hint = 'Use codemachine secret set on this machine, or open the page by https.'
      return c.json({ problem: 'Secrets need a connection that nobody else can read.', hint }, 403)
    }
    const { key, value } = await bodyOf(c, secretSchema)
    const words = await setSecret(world, sessionOf(c).row.records, key, value, undefined)
    return c.json({ message: [`${key} is stored.`, ...words].join(' ') })
  })
}

function addFiles(routes: Hono<WebEnv>, { world, sessionOf, onProblem }: SessionApiOptions): void {
  routes.get('/savepoints', async c => {
    const { records } = sessionOf(c).row
    await using open = await lookAtSavepoints(world, records, onProblem)
    const all = (await open?.savepoints.list()) ?? []
    const listed = all.slice(-MOST_SAVEPOINTS).map(({ id, session, round, at }) => ({ id, session, round, at }))
    return c.json({ savepoints: listed })
  })
  routes.get('/changes', async c => {
    await using open = comparisonOf(c)
    const { files, ...sums } = await open.read(c.req.raw.signal)
    const protectedPaths = await open.protectedPaths(files)
    const shown = files.map(({ path, from, added, removed }) => {
      return { path, from, added, removed, isProtected: protectedPaths.has(path) }
    })
    return c.json(redactorOfProject(world, sessionOf(c).row.records).event({ ...sums, files: shown }))
  })
  routes.get('/changes/file', async c => {
    await using open = comparisonOf(c)
    const { files } = await open.read(c.req.raw.signal)
    const redactor = redactorOfProject(world, sessionOf(c).row.records)
    const file = files.find(({ path }) => redactor.text(path) === c.req.query('path')) ?? null
    if (file === null) return c.json({ problem: 'This file no longer differs.' }, 404)
    const lines = await open.lines(file, c.req.raw.signal)
    return c.json({ lines: lines.map(line => ({ ...line, text: redactor.text(line.text) })) })
  })
  routes.post('/rewind', async c => {
    const wanted = await bodyOf(c, rewindSchema)
    return c.json(await rewindInWords(world, sessionOf(c).row.records, wanted, onProblem))
  })

  function comparisonOf(c: Context<WebEnv>): OpenComparison {
    const { records, id } = sessionOf(c).row
    const round = numberOf(c, 'round')
    const { from, to } = c.req.query()
    const states =
      round !== null
        ? ({ kind: 'round', session: id, round } as const)
        : from === undefined && to === undefined
          ? ({ kind: 'ended', session: id } as const)
          : ({ kind: 'between', from: from ?? `${id}/start`, to: to ?? 'now' } as const)
    return new OpenComparison(world, records, states, onProblem)
  }
}

function addProof(routes: Hono<WebEnv>, options: SessionApiOptions): void {
  const { world, streams, tickets, verifications, sessionOf, onProblem } = options
  routes.get('/proof', async c => {
    const { records, id } = sessionOf(c).row
    const project = await OpenProject.open(world, { directory: records.directory })
    return c.json(redactorOfProject(world, records).event(proofNow(await project.report(id))))
  })
  routes.get('/certificate', async c => {
    const { records, id } = sessionOf(c).row
    const read = await readBoundedText(certificatePath(records, id), MOST_CERTIFICATE)
    if (typeof read !== 'object' || !('text' in read)) return c.json({ text: null, canVerify: false })
    const { gates, contract } = parseCertificate(read.text, certificatePath(records, id))
    return c.json({
      text: redactorOfProject(world, records).text(read.text),
      canVerify: gates.length > 0 || contract !== undefined,
    })
  })
  routes.post('/verify', async c => {
    await bodyOf(c, nothing)
    const { records, id } = sessionOf(c).row
    return streams.open(c, async (send, over) => {
      const say = (said: string) => void send({ event: 'said', data: { text: said } }).catch(() => {})
      // It goes on when the one who has asked is away, such as a phone that was locked, and is taken up when they ask again.
      const now = await verifications.take({ records, id }, { mostMs: VERIFY_MS, signal: over, onSaid: say })
      if (now.state === 'ended') await send({ event: 'verified', data: { verdict: now.verdict, words: now.words } })
    })
  })
  routes.get('/report-ticket', async c => {
    const { row } = sessionOf(c)
    const project = await OpenProject.open(world, { directory: row.records.directory })
    const data = await project.report(row.id)
    const areGone = await areSavepointsGone(world, row.records, data, onProblem)
    const extras = await lookForPage(world, row.records, data, { areGone, onWarning: onProblem })
    const commands = { ...commandsHere(data, null), areSavepointsGone: areGone }
    return c.json({ path: `/report/${tickets.add(await pageOf(data, commands, extras))}` })
  })
}

/** How long a report can be fetched once it was asked for, ms, and how many wait at once. */
const TICKET_MS = 60_000
const MOST_TICKETS = 20

/** Reports that a frame or a tab fetches, which can send no key: each under a name of 256 bits, once, within a minute. */
export class ReportTickets {
  readonly #now: () => number
  readonly #waiting = new Map<string, { html: string; until: number }>()

  constructor({ clock }: Pick<World, 'clock'>) {
    this.#now = () => clock.now()
  }

  /** Resolves with the name. */
  add(html: string): string {
    for (const [ticket, { until }] of this.#waiting) if (until <= this.#now()) this.#waiting.delete(ticket)
    const [oldest] = this.#waiting.keys()
    if (this.#waiting.size >= MOST_TICKETS && oldest !== undefined) this.#waiting.delete(oldest)
    const ticket = randomBytes(32).toString('base64url')
    this.#waiting.set(ticket, { html, until: this.#now() + TICKET_MS })
    return ticket
  }

  /** The report of that name, which is there no more then; null: there is none. */
  take(ticket: string): string | null {
    const found = this.#waiting.get(ticket)
    this.#waiting.delete(ticket)
    return found === undefined || found.until <= this.#now() ? null : found.html
  }
}

/** Refuses what only a session that is there can be asked. */
export function gone(): UserError {
  return new UserError('CM0808', 'This session no longer exists.')
}
