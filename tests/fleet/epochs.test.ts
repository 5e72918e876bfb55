import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { append, beat, finish, giveBack, Superseded, type Taken, type Taker, takeBack } from '../../src/fleet/store.ts'
import {
  type FleetPlace,
  hasPostgres,
  type PostgresCluster,
  setUpFleet,
  startPostgres,
  WITHOUT_POSTGRES,
} from '../support/postgres.ts'
import { promise } from '../support/promise.ts'
import { DONE, loseLease, rowOf, submitAll, superviseAnew, takeFor, taker } from './submissions.ts'

/** What befalls a session. `by`: which of all that ever had it, the last one first. */
type Step =
  | { do: 'take'; worker: number }
  | { do: 'append'; by: number; lines: number; again: number }
  | { do: 'give-back' | 'finish' | 'beat'; by: number }
  | { do: 'lose-lease' }
  | { do: 'restart'; worker: number }
  /** All at the same time. */
  | { do: 'at-once'; steps: Step[] }

const worker = fc.nat({ max: 2 })
/** Mostly who has it now. */
const by = fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, { weight: 2, arbitrary: fc.nat({ max: 3 }) })
const one: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant('take' as const), worker }) },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('append' as const),
      by,
      lines: fc.integer({ min: 1, max: 3 }),
      again: fc.nat({ max: 2 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('give-back' as const), by }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('finish' as const, 'beat' as const), by }) },
  { weight: 3, arbitrary: fc.constant({ do: 'lose-lease' as const }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('restart' as const), worker }) },
)
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: one },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('at-once' as const),
      steps: fc.array(one, { minLength: 2, maxLength: 4 }),
    }),
  },
)

/** Has each end of a session be counted by the database itself. */
const COUNT_ENDS = `
  create table ends (epoch int);
  create function count_end() returns trigger language plpgsql as $$ begin insert into ends values (new.epoch); return new; end $$;
  create trigger count_end after update on codemachine.session for each row
    when (new.state = 'ended' and old.ended_at is distinct from new.ended_at) execute function count_end()`

/** One that has, or had, the session: what it knows of it. */
interface Owner {
  taken: Taken
  /** The lines that it knows to be there. */
  known: string[]
}

/** A session, and three workers that do not know of each other. */
class Fought {
  readonly #fleet: FleetPlace
  readonly #id: string
  readonly #workers: Taker[] = ['a', 'b', 'c'].map(name => taker(name))
  readonly #owners: Owner[] = []
  #written = 0

  constructor(fleet: FleetPlace, id: string) {
    this.#fleet = fleet
    this.#id = id
  }

  async do(step: Step): Promise<void> {
    const { database, queue } = this.#fleet
    switch (step.do) {
      case 'take':
        return await this.#take(step.worker)
      case 'append':
        return await this.#by(step.by, owner => this.#append(owner, step))
      case 'give-back':
        return await this.#by(step.by, ({ taken }) => giveBack(database, queue, taken, { reason: 'drained' }))
      case 'finish':
        return await this.#by(step.by, ({ taken }) => finish(database, queue, taken, DONE))
      case 'beat':
        return await this.#by(step.by, async ({ taken }) => void (await beat(database, queue, taken)))
      case 'lose-lease':
        return await loseLease(this.#fleet, this.#id)
      case 'restart': {
        const name = this.#workers[step.worker]?.name ?? ''
        const fresh = taker(name)
        this.#workers[step.worker] = fresh
        return await takeBack(database, queue, fresh)
      }
      case 'at-once':
        await Promise.all(step.steps.map(each => this.do(each)))
    }
  }

  /** Expects what has to be true whatever happened. */
  async look(): Promise<void> {
    const { database } = this.#fleet
    const events = await database.sql<{ number: string; epoch: number; line: string }>(
      'select number, epoch, line from codemachine.event order by number',
    )
    const row = await rowOf(this.#fleet, this.#id)
    // Without a gap, each by the owner of its time, one after the other, and none twice.
    expect(events.map(({ number }) => Number(number))).toEqual(events.map((_, at) => at + 1))
    expect(Number(row.events)).toBe(events.length)
    expect(events.map(({ line }) => Number(line.split(' ')[0]))).toEqual(events.map(({ epoch }) => epoch))
    expect(events.map(({ epoch }) => epoch)).toEqual(events.map(({ epoch }) => epoch).toSorted((a, b) => a - b))
    expect(new Set(events.map(({ line }) => line)).size).toBe(events.length)
    // What an owner was told is there, is.
    for (const { known } of this.#owners) expect(events.slice(0, known.length).map(({ line }) => line)).toEqual(known)
    const epochs = this.#owners.map(({ taken }) => taken.epoch).toSorted((a, b) => a - b)
    expect(epochs).toEqual(epochs.map((_, at) => at + 1))
    expect(row.epoch).toBe(epochs.length)
    const ends = await database.sql<{ epoch: number }>('select epoch from ends')
    expect(ends).toEqual(row.state === 'ended' ? [{ epoch: row.epoch }] : [])
    // It waits once, or somebody has it, or it is over.
    const jobs = await database.sql<{ count: string }>(
      `select count(*) from codemachine_queue.job where state in ('created', 'retry', 'active')`,
    )
    const most = row.state === 'ended' ? [0, 1] : [1]
    expect(most).toContain(Number(jobs[0]?.count))
  }

  async #take(at: number): Promise<void> {
    const by = this.#workers[at]
    if (by === undefined) return
    const taken = await takeFor(this.#fleet, by)
    if (taken === null) return
    const rows = await this.#fleet.database.sql<{ line: string }>(
      'select line from codemachine.event where number <= $1 order by number',
      [taken.events],
    )
    this.#owners.unshift({ taken, known: rows.map(({ line }) => line) })
  }

  async #append(owner: Owner, { lines, again }: { lines: number; again: number }): Promise<void> {
    const { taken, known } = owner
    const news = Array.from({ length: lines }, (_, at) => `${taken.epoch} ${this.#written + at}`)
    this.#written += lines
    const from = Math.max(0, known.length - again)
    const wanted = [...known, ...news]
    const count = await append(this.#fleet.database, taken, from + 1, wanted.slice(from), null)
    expect(count).toBe(wanted.length)
    owner.known = wanted
  }

  /** Does something as one that has had it; that it is somebody else's by now may be the answer. */
  async #by(at: number, work: (owner: Owner) => Promise<void>): Promise<void> {
    const owner = this.#owners[at % Math.max(1, this.#owners.length)]
    if (owner === undefined) return
    await work(owner).catch(error => {
      if (!(error instanceof Superseded)) throw error
    })
  }
}

/** With one append among those at once, at most: an owner has one sender. */
function withOneSender(steps: readonly Step[]): Step[] {
  return steps.map(each => {
    if (each.do !== 'at-once') return each
    const first = each.steps.findIndex(one => one.do === 'append')
    return { ...each, steps: each.steps.filter((one, at) => one.do !== 'append' || at === first) }
  })
}

describe.skipIf(!hasPostgres)(`a session that workers fight for${WITHOUT_POSTGRES}`, () => {
  let cluster: PostgresCluster
  beforeAll(async () => {
    cluster = await startPostgres()
  })
  afterAll(() => cluster?.[Symbol.asyncDispose]())

  promise(
    'N2',
    'A session has one owner at a time, each event once and in order, and one end, whatever happens in whatever order',
  )
  test('has one owner per epoch, each event once and in order, and one end, whatever happens in whatever order', async () => {
    await using fleet = await setUpFleet(cluster)
    const { sql } = fleet.database
    await sql(COUNT_ENDS)
    const property = fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 14 }), async steps => {
      await sql('delete from codemachine_queue.job')
      await sql('delete from codemachine.session')
      await sql('delete from ends')
      const [id = ''] = await submitAll(fleet, {})
      const fought = new Fought(fleet, id)
      for (const each of withOneSender(steps)) {
        await fought.do(each)
        await fought.look()
      }
      // Whatever it was, somebody can end it.
      await loseLease(fleet, id)
      await superviseAnew(fleet)
      await fought.do({ do: 'take', worker: 0 })
      await fought.do({ do: 'finish', by: 0 })
      await fought.look()
      expect(await rowOf(fleet, id)).toMatchObject({ state: 'ended' })
    })
    await fc.assert(property)
  })
})
