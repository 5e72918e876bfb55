import { Interrupted, UserError } from '../base/errors.ts'
import { settingsOf } from '../project/open-run.ts'
import type { World } from '../project/world.ts'
import { type Database, type DatabaseAddress, DatabaseAway, openDatabase } from './database.ts'
import { type FleetQueue, openQueue } from './queue.ts'
import { type FleetTerms, fleetTerms } from './schema.ts'
import type { FollowedFleet } from './view.ts'

/** An initialized fleet: its database and its queue. Disposal closes every connection. */
export interface Fleet extends AsyncDisposable {
  readonly database: Database
  readonly queue: FleetQueue
  readonly terms: FleetTerms
}

/** Environment variable with the fleet's database; of the three sources, only it may have a password. */
const QUEUE_VARIABLE = 'CODEMACHINE_QUEUE'
/** Number of connections that a command needs. */
const FEW = 4

/**
 * Opens the database of the fleet, initialized or not. Throws a `UserError` if none is named.
 * @param typed what `--queue` says
 * @param most the number of connections
 */
export async function fleetDatabase(world: World, typed: string | undefined, most = FEW): Promise<Database> {
  return await openDatabase(await addressOf(world, typed), { env: world.env, most })
}

/** Opens the database of an initialized fleet; otherwise throws a `UserError`. */
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
 * Opens the fleet. Throws a `UserError` if no database is named or it is not initialized.
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
 * Keeps copies of the fleet's sessions until disposal, so that the page and MCP show them like local ones. Without a named
 * fleet it does nothing.
 * @param onProblem told a sentence of what goes wrong, once
 */
export async function followNamedFleet(world: World, onProblem: (problem: string) => void): Promise<FollowedFleet> {
  if (!(await hasFleet(world))) return { looked: Promise.resolve(), [Symbol.asyncDispose]: async () => {} }
  const { followFleet } = await import('./view.ts')
  return followFleet(world, { open: () => readyDatabase(world, undefined), onProblem })
}

/** Throws a `UserError` if another database than `url` is named. */
export async function refuseOtherDatabase(world: World, url: string): Promise<void> {
  const named = await namedBy(world, undefined)
  if (named === null || named.url === url) return
  throw new UserError('CM1101', `${named.from} already names another database of a fleet.`, {
    hint: `Remove ${named.from} first.`,
  })
}

/** Resolves with true if this person has named a fleet; otherwise the page and MCP show none. */
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
  // A clone may not choose the database.
  const { settings } = await settingsOf(world, world.cwd, {}, { withoutProject: true })
  const { queue } = settings.fleet
  return queue === null ? null : { url: queue, from: 'fleet.queue', mayHoldPassword: false }
}

/** Retry interval for an unreachable database, ms. */
const AGAIN_MS = 2_000

/**
 * Runs an action once the database is reachable: a machine may start before it at night. Calls `say` once. Throws
 * `Interrupted` with the world's signal.
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
