import { randomInt, timingSafeEqual } from 'node:crypto'
import { Hono } from 'hono'
import * as v from 'valibot'
import type { Clock } from '../../base/clock.ts'
import { UserError } from '../../base/errors.ts'
import type { Access, NewDevice, Right, Shown } from '../../project/page/access.ts'
import type { WebEnv } from './guard.ts'
import { bodyOf, publicKey, type Streams, shownBy } from './requests.ts'

/** How long a code can be typed, ms. */
const CODE_MS = 5 * 60_000
const MOST_WRONG = 10
/** How long no code is taken after so many wrong ones, ms. */
const LOCK_MS = 60_000
/** So many codes are there at once. */
const MOST_CODES = 20
const CODE_DIGITS = 8
const MOST_NAME = 80

/** How far a pairing is, for the host: nobody has typed the code, somebody has, or it is over. */
type PairingState =
  | { state: 'waiting' }
  | { state: 'asking'; name: string }
  | { state: 'over'; how: 'let-in' | 'refused' | 'too-late' }

/** A device that is not in, and waits for the host's word. */
interface Asking {
  name: string
  /** What a browser shows; null: it is a program. */
  shown: Shown | null
  answer(device: NewDevice | null): void
}

type Newcomer = Pick<Asking, 'name' | 'shown'>

interface Pairing {
  id: string
  /** The id of the device that has begun it. */
  by: string
  code: string
  until: number
  state: PairingState
  asking: Asking | null
  /** Aborted when the state is another. */
  changed: AbortController
}

/**
 * Pairs a device without a link. A device with access shows a code for five minutes. The new device sends the code with its
 * name. The first device lets it in or not, as long as it has access itself.
 * Nothing of it is kept on disk. After ten wrong codes none is taken for a minute.
 */
export class Pairings {
  readonly #access: Pick<Access, 'admit' | 'isThere'>
  readonly #clock: Clock
  readonly #open = new Map<string, Pairing>()
  #wrong = 0
  #lockedUntil = 0

  constructor({ access, clock }: { access: Pick<Access, 'admit' | 'isThere'>; clock: Clock }) {
    this.#access = access
    this.#clock = clock
  }

  /** Makes a code for the device of that id, and ends the oldest of too many. `until`: Unix time, ms. */
  begin(by: string): { id: string; code: string; until: number } {
    this.#removeOld()
    const [oldest] = this.#open.values()
    if (this.#open.size >= MOST_CODES && oldest !== undefined) this.#end(oldest, 'too-late')
    const code = String(randomInt(10 ** CODE_DIGITS)).padStart(CODE_DIGITS, '0')
    const id = String(randomInt(2 ** 47))
    const until = this.#clock.now() + CODE_MS
    this.#open.set(id, {
      id,
      by,
      code,
      until,
      state: { state: 'waiting' },
      asking: null,
      changed: new AbortController(),
    })
    return { id, code, until }
  }

  /** How it stands, and each time that this changes until it is over, or the signal aborts. */
  async *watch(id: string, signal: AbortSignal): AsyncGenerator<PairingState> {
    const pairing = this.#open.get(id)
    if (pairing === undefined) {
      yield { state: 'over', how: 'too-late' }
      return
    }
    while (!signal.aborted) {
      const { state, changed, until } = pairing
      yield state
      if (state.state === 'over') return
      await this.#clock.wait(Math.max(0, until - this.#clock.now()), AbortSignal.any([signal, changed.signal]))
      this.#removeOld()
    }
  }

  /**
   * A new device has typed a code: resolves with what it is given, null if the host refuses it, is too late or has gone. A
   * `UserError` for a wrong code, and while none is taken.
   */
  async ask(typed: string, { name, shown }: Newcomer, signal: AbortSignal): Promise<NewDevice | null> {
    const now = this.#clock.now()
    if (now < this.#lockedUntil) throw new UserError('CM0805', 'Too many wrong codes. Try again in a minute.')
    this.#removeOld()
    const pairing = [...this.#open.values()].find(each => each.asking === null && isSame(each.code, typed))
    if (pairing === undefined) {
      this.#wrong += 1
      if (this.#wrong >= MOST_WRONG) {
        this.#wrong = 0
        this.#lockedUntil = now + LOCK_MS
      }
      throw new UserError('CM0805', 'No device shows this code at the moment.', {
        hint: 'A code works only once, and only for five minutes.',
      })
    }
    this.#wrong = 0
    const { promise, resolve } = Promise.withResolvers<NewDevice | null>()
    pairing.asking = { name: name.slice(0, MOST_NAME), shown, answer: resolve }
    const leave = () => this.#end(pairing, 'too-late')
    signal.addEventListener('abort', leave, { once: true })
    const late = new AbortController()
    void this.#clock.wait(pairing.until - now, AbortSignal.any([signal, late.signal])).then(() => leave())
    try {
      // It may have been ended by another process.
      if (!(await this.#access.isThere(pairing.by))) leave()
      else if (this.#open.has(pairing.id)) this.#tell(pairing, { state: 'asking', name: pairing.asking.name })
      return await promise
    } finally {
      late.abort()
      signal.removeEventListener('abort', leave)
    }
  }

  /** The host's word: the right that the new device gets; null: it is not let in. A `UserError` if nobody asks there. */
  async answer(id: string, right: Right | null): Promise<void> {
    const pairing = this.#open.get(id)
    if (pairing?.asking == null) throw new UserError('CM0805', 'This request to pair has ended. Start to pair again.')
    const { asking } = pairing
    const device = right === null ? null : await this.#access.admit(asking.name, right, asking.shown)
    this.#end(pairing, right === null ? 'refused' : 'let-in', device)
  }

  /** Ends those that a device has begun. */
  end(device: string): void {
    for (const pairing of this.#open.values()) if (pairing.by === device) this.#end(pairing, 'too-late')
  }

  #removeOld(): void {
    for (const pairing of this.#open.values()) if (pairing.until <= this.#clock.now()) this.#end(pairing, 'too-late')
  }

  #end(pairing: Pairing, how: 'let-in' | 'refused' | 'too-late', device: NewDevice | null = null): void {
    if (!this.#open.delete(pairing.id)) return
    pairing.asking?.answer(device)
    this.#tell(pairing, { state: 'over', how })
  }

  #tell(pairing: Pairing, state: PairingState): void {
    const { changed } = pairing
    pairing.state = state
    pairing.changed = new AbortController()
    changed.abort()
  }
}

/** Without saying by how long it takes how much of it is right. */
function isSame(code: string, typed: string): boolean {
  const [a, b] = [Buffer.from(code), Buffer.from(typed.replaceAll(/\D/g, '').padEnd(CODE_DIGITS).slice(0, CODE_DIGITS))]
  return timingSafeEqual(a, b)
}

const askSchema = v.strictObject({
  code: v.pipe(v.string(), v.maxLength(40)),
  name: v.pipe(v.string(), v.maxLength(MOST_NAME)),
  publicKey,
})
const rightSchema = v.strictObject({ right: v.picklist(['look', 'steer']) })
const nothing = v.strictObject({})

/** The ways of pairing: `/pair` is for the new device, and needs no key. */
export function pairingRoutes(pairings: Pairings, streams: Streams): Hono<WebEnv> {
  const routes = new Hono<WebEnv>()
  routes.post('/pair', async c => {
    const { code, name, publicKey: key } = await bodyOf(c, askSchema)
    return streams.open(
      c,
      async (send, over) => {
        const asked = pairings.ask(code, { name, shown: shownBy(c, key) }, over)
        // Before its turn comes it may be refused, which is said as a problem.
        asked.catch(() => {})
        await send({ event: 'pair', data: { state: 'asked' } })
        const given = await asked
        if (given === null)
          return await send({ event: 'pair', data: { state: 'refused', problem: 'This device was not paired.' } })
        await send({ event: 'pair', data: { state: 'in', key: given.key, device: given.device.id } })
      },
      null,
    )
  })
  routes.post('/pairing', async c => {
    await bodyOf(c, nothing)
    return c.json(pairings.begin(c.get('device').id))
  })
  routes.get('/pairing/:id', c =>
    streams.open(c, async (send, over) => {
      for await (const state of pairings.watch(c.req.param('id'), over)) await send({ event: 'pairing', data: state })
    }),
  )
  routes.post('/pairing/:id/confirm', async c => {
    const { right } = await bodyOf(c, rightSchema)
    await pairings.answer(c.req.param('id'), right)
    return c.json({ right })
  })
  routes.post('/pairing/:id/refuse', async c => {
    await bodyOf(c, nothing)
    await pairings.answer(c.req.param('id'), null)
    return c.json({})
  })
  return routes
}
