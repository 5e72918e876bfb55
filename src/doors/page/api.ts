import { type Context, Hono } from 'hono'
import * as v from 'valibot'
import { messageOf } from '../../base/errors.ts'
import { version } from '../../base/package.ts'
import type { Access } from '../../project/page/access.ts'
import { linkToPage, type ServedPage } from '../../project/page/served.ts'
import { Verifications } from '../../project/proof/verifications.ts'
import type { StartingWorld } from '../../project/start/detached.ts'
import { type SessionCard, SessionCards } from '../../project/watch/cards.ts'
import type { World } from '../../project/world.ts'
import { repositoryOfCopy } from '../../session/records/records.ts'
import type { WebEnv } from './guard.ts'
import { Pairings, pairingRoutes } from './pairing.ts'
import { placesRoutes } from './places-api.ts'
import { NewsTeller, Push, pushRoutes } from './push.ts'
import { bodyOf, publicKey, Streams, shownBy } from './requests.ts'
import { gone, ReportTickets, sessionRoutes } from './session-api.ts'

export interface ApiOptions {
  world: World & StartingWorld
  access: Access
  /** The folder of the page in the records; absolute. */
  folder: string
  /** Where the page is. Asked once it is served. */
  page(): Pick<ServedPage, 'address' | 'names'>
  /** Whether notifications may go to this machine, as tests have them; they go to the internet alone if left out. */
  allowsLoopbackPush?: boolean
  /** Ends what goes on. */
  signal: AbortSignal
  onProblem(problem: string): void
}

/** The page's own commands and streams, and what they hold open. */
export interface Api extends AsyncDisposable {
  /** Whether somebody looks, or something runs that somebody may want to look at. */
  readonly isNeeded: boolean
  routes: Hono<WebEnv>
  /** The report of that name, which is there no more then; null: there is none. */
  takeReport(ticket: string): string | null
}

const MOST_NAME = 80
/** Of so many sessions a card is shown, the newest. */
const MOST_CARDS = 1_000

const enterSchema = v.strictObject({
  token: v.pipe(v.string(), v.maxLength(200)),
  name: v.pipe(v.string(), v.maxLength(MOST_NAME)),
  publicKey,
})
const signInSchema = v.strictObject({
  device: v.pipe(v.string(), v.maxLength(40)),
  challenge: v.pipe(v.string(), v.maxLength(200)),
  signature: v.pipe(v.string(), v.maxLength(200)),
})
const linkSchema = v.strictObject({ right: v.picklist(['look', 'steer']) })
const nothing = v.strictObject({})

/** What the page can ask for: nothing of it is the page's own, all is what codemachine offers to every door. */
export function openApi(options: ApiOptions): Api {
  const { access, folder, allowsLoopbackPush: allowsLoopback = false, onProblem } = options
  const closing = new AbortController()
  const signal = AbortSignal.any([options.signal, closing.signal])
  const world = { ...options.world, signal }
  const streams = new Streams({ clock: world.clock, access, signal })
  const tickets = new ReportTickets(world)
  const verifications = new Verifications(world)
  const push = new Push({ folder, world, access, allowsLoopback, signal, onProblem })
  const news = new NewsTeller(message => push.send(message))
  const all = new SessionCards({ world, signal, onProblem, onWhole: cards => news.look(cards) })
  // From the beginning on: notifications come without anybody who looks.
  const following = all.follow()
  following.catch((error: unknown) => onProblem(`The page no longer follows the sessions: ${messageOf(error)}`))
  const pairings = new Pairings({ access, clock: world.clock })
  const routes = new Hono<WebEnv>()

  routes.route('/', deviceRoutes({ ...options, streams, push, pairings }))
  routes.route('/', pairingRoutes(pairings, streams))
  routes.route('/', pushRoutes(push))
  routes.route('/', placesRoutes({ world, cards: () => all.cards, whole: () => all.whole }))
  routes.get('/now', c =>
    streams.open(c, async (send, over) => {
      let at = 0
      for await (const cards of all.changes(over)) {
        const shownCards = cards.slice(0, MOST_CARDS).map(card => shown(card, world.clock.now()))
        const data = { version, isWhole: all.isWhole, count: cards.length, cards: shownCards }
        await send({ event: 'now', id: String(at), data })
        at += 1
      }
    }),
  )
  const sessionOf = (c: Context<WebEnv>): SessionCard => {
    const key = `${c.req.param('place')}/${c.req.param('id')}`
    const card = all.cards.find(({ row }) => row.key === key)
    if (card === undefined) throw gone()
    return card
  }
  routes.route('/sessions/:place/:id', sessionRoutes({ world, streams, tickets, verifications, sessionOf, onProblem }))

  return {
    get isNeeded() {
      return streams.count > 0 || verifications.isGoing || all.cards.some(({ row }) => row.standing === 'running')
    },
    routes,
    takeReport: ticket => tickets.take(ticket),
    [Symbol.asyncDispose]: async () => {
      closing.abort()
      await streams.ended()
      await verifications[Symbol.asyncDispose]()
      await following
      await news.done()
    },
  }
}

/** Who has come by a link, and is, and may be ended. */
function deviceRoutes({
  access,
  page,
  streams,
  push,
  pairings,
}: ApiOptions & { streams: Streams; push: Push; pairings: Pairings }): Hono<WebEnv> {
  const routes = new Hono<WebEnv>()
  routes.post('/enter', async c => {
    const { token, name: called, publicKey: key } = await bodyOf(c, enterSchema)
    const opened = await access.openLink(token, called, shownBy(c, key))
    if (opened !== null) return c.json({ key: opened.key, device: opened.device })
    const problem = 'This link was used already, or is older than an hour.'
    return c.json({ problem, code: 'CM0805', hint: 'For a new link, type: codemachine web link' }, 403)
  })
  routes.post('/challenge', async c => {
    await bodyOf(c, nothing)
    return c.json({ challenge: access.challenge() })
  })
  routes.post('/sign-in', async c => {
    const signed = await bodyOf(c, signInSchema)
    // Who passes on what a browser has signed for another address has another origin.
    const given = await access.signIn({ ...signed, origin: c.req.header('origin') ?? '' })
    if (given === 'late') return c.json({ problem: 'The signature came too late. Try again.' }, 409)
    return given === null
      ? c.json({ problem: 'This device was removed, or its key is another one.' }, 401)
      : c.json(given)
  })
  routes.get('/me', async c => {
    const publicKey = await push.publicKey()
    return c.json({ device: c.get('device'), version, push: { publicKey } })
  })
  routes.get('/devices', async c => c.json({ devices: await access.devices() }))
  routes.post('/devices/:id/end', async c => {
    await bodyOf(c, nothing)
    const { id } = c.req.param()
    if (!(await access.end(id))) return c.json({ problem: 'This device was removed.' }, 404)
    pairings.end(id)
    await push.switchOff(id)
    streams.end(id)
    return c.json({ ended: id })
  })
  routes.post('/link', async c => {
    const { right } = await bodyOf(c, linkSchema)
    return c.json({ link: await linkToPage(access, page(), right, c.get('device').id) })
  })
  return routes
}

/** A card as JSON: of the records only what tells the session apart, and where it works. */
function shown({ row, report, reportedAt, questions, queued }: SessionCard, now: number): object {
  const { records, ...rest } = row
  return {
    ...rest,
    place: records.key,
    directory: repositoryOfCopy(records) ?? records.directory,
    report,
    ageMs: now - reportedAt,
    questions,
    queued,
  }
}
