import { Interrupted, UserError } from '../base/errors.ts'
import { settingsOf } from '../project/open-run.ts'
import type { World } from '../project/world.ts'
import { type Database, type DatabaseAddress, DatabaseAway, openDatabase } from './database.ts'
import { type FleetQueue, openQueue } from './queue.ts'
import { type FleetTerms, fleetTerms } from './schema.ts'
import type { FollowedFleet } from './view.ts'

/** A fleet that is set up: its database, and what waits in it. Disposing of it closes every connection. */
export interface Fleet extends AsyncDisposable {
  readonly database: Database
  readonly queue: FleetQueue
  readonly terms: FleetTerms
}

/** Names the database of the fleet, in the environment; the only one of the three that may hold a password. */
const QUEUE_VARIABLE = 'CODEMACHINE_QUEUE'
/** How many connections a command needs. */
const FEW = 4

/**
 * Opens the database of the fleet, which need not be set up. A `UserError` where none is named.
 * @param typed what `--queue` says
 * @param most the number of connections
 */
export async function fleetDatabase(world: World, typed: string | undefined, most = FEW): Promise<Database> {
  return await openDatabase(await addressOf(world, typed), { env: world.env, most })
}

/** The same of a fleet that is set up; a `UserError` where it is not. */
export async function readyDatabase(world: World, typed: string | undefined): Promise<Database> {
  const database = await fleetDatabase(world, typed)
  try {
    await fleetTerms(database)
    return database
  } catch (error) {
    await database[Symbol.asyncDispose]()
    throw error
  }
}

/**
 * Opens the fleet. A `UserError` where no database is named, or it is not set up.
 * @param onProblem told what goes wrong in the background
 */
export async function openFleet(
  world: World,
  typed: string | undefined,
  { most = FEW, onProblem = () => {} }: { most?: number; onProblem?: (problem: string) => void } = {},
): Promise<Fleet> {
  const database = await fleetDatabase(world, typed, most)
  try {
    const terms = await fleetTerms(database)
    const queue = await openQueue(database, terms, onProblem)
    return {
      database,
      queue,
      terms,
      [Symbol.asyncDispose]: async () => {
        await queue[Symbol.asyncDispose]()
        await database[Symbol.asyncDispose]()
      },
    }
  } catch (error) {
    await database[Symbol.asyncDispose]()
    throw error
  }
}

/**
 * Keeps copies of the fleet's sessions for the page and MCP, which show them as those of here, until it is disposed of. Where no fleet is
 * named it does nothing.
 * @param onProblem told a sentence of what goes wrong, once
 */
export async function followNamedFleet(world: World, onProblem: (problem: string) => void): Promise<FollowedFleet> {
  if (!(await hasFleet(world))) return { looked: Promise.resolve(), [Symbol.asyncDispose]: async () => {} }
  const { followFleet } = await import('./view.ts')
  return followFleet(world, { open: () => readyDatabase(world, undefined), onProblem })
}

/** Whether this person has a fleet at all: the page and MCP show nothing of one where none is named. */
async function hasFleet(world: World): Promise<boolean> {
  return (await namedBy(world, undefined)) !== null
}

async function addressOf(world: World, typed: string | undefined): Promise<DatabaseAddress> {
  const address = await namedBy(world, typed)
  if (address !== null) return address
  throw new UserError('CM1101', 'No fleet database is configured.', {
    hint: 'Name it with --queue postgres://…, with CODEMACHINE_QUEUE, or in your own config.toml: [fleet] queue = "postgres://…".',
  })
}

async function namedBy(world: World, typed: string | undefined): Promise<DatabaseAddress | null> {
  if (typed !== undefined) return { url: typed, from: '--queue', mayHoldPassword: false }
  const named = world.env[QUEUE_VARIABLE]
  if (named) return { url: named, from: QUEUE_VARIABLE, mayHoldPassword: true }
  // A clone has no say in which database anything is sent to.
  const { settings } = await settingsOf(world, world.cwd, {}, { withoutProject: true })
  const { queue } = settings.fleet
  return queue === null ? null : { url: queue, from: 'fleet.queue', mayHoldPassword: false }
}

/** How often a database that is away is asked again, ms. */
const AGAIN_MS = 2_000

/**
 * Does something with the database as soon as it is there: a machine that starts at night may be sooner than that. `say` is told once.
 * Throws `Interrupted` with the world's signal.
 */
export async function whenThere<T>(
  { clock, signal }: Pick<World, 'clock' | 'signal'>,
  work: () => Promise<T>,
  say: (line: string) => void,
): Promise<T> {
  for (let isFirst = true; ; isFirst = false) {
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof DatabaseAway)) throw error
      if (isFirst) say(`${error.message} codemachine tries again until it answers.`)
    }
    await clock.wait(AGAIN_MS, signal)
    if (signal.aborted) throw new Interrupted(signal.reason)
  }
}
