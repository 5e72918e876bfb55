import { cp, mkdir, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import type { EventOf } from '../../core/events/events.ts'
import { pathExists } from '../../platform/files.ts'
import { fingerprintOptions } from '../../project/open-run.ts'
import { carryOutRewind, holdSavepoints, planRewindTo } from '../../project/savepoints.ts'
import type { World } from '../../project/world.ts'
import { openJournal } from '../../session/records/journal.ts'
import type { Records } from '../../session/records/records.ts'
import { openPrivateGitReadOnly, type PrivateGit } from '../../workspace/git/private-git.ts'
import { memoryRoot } from '../../workspace/memory/memory-paths.ts'
import { type Carried, type CarriedSavepoint, packSession, unpackSession } from '../carried.ts'

/** The state of a carried session: after the savepoint of that round, with so many events. */
interface Standing {
  session: string
  epoch: number
  events: number
  round: number
  /** Previous commit; null: this is the first. */
  previous: string | null
}

/** A packed session: its commit and the private git directory with it. */
export interface Packed {
  git: PrivateGit
  commit: string
}

/** Packs a session, running or not, at a savepoint; null: there is no private git directory yet. */
export async function carrySession(
  world: World,
  records: Records,
  { session, ...standing }: Standing,
  onWarning: (warning: string) => void,
): Promise<Packed | null> {
  const look = await openPrivateGitReadOnly(await fingerprintOptions(world, records, onWarning))
  if (look === null) return null
  try {
    const { git } = look
    const own = `projects/${session}/`
    const folders = {
      // Take files that the records also have from there: the next round's agent may be writing them.
      memory: {
        root: join(records.directory, memoryRoot),
        leaves: (path: string) =>
          path === 'running.json' || path === 'inbox' || path === `${own}MAIN.md` || path === `${own}tasks.json`,
      },
      records: {
        root: records.sessionFolder(session),
        leaves: (path: string) => /^(journal\.|lock$|rounds$|history$|set-aside$)/.test(path),
      },
    }
    const commit = await packSession(git, { session, ...standing, folders, at: world.clock.now() }, onWarning)
    return { git, commit }
  } finally {
    await look.forget()
  }
}

/**
 * Restores a carried session into the records and files of a work directory, so that it can be resumed there. They have
 * nothing of it yet.
 * @param journal the lines of its events
 * @param to who goes on with it
 * @param fetch brings the objects of the commit into a private git directory, all of them
 */
export async function settleSession(
  world: World,
  records: Records,
  {
    carried,
    journal,
    to,
  }: { carried: Carried; journal: readonly string[]; to: Pick<EventOf<'session-moved'>, 'worker' | 'epoch'> },
  fetch: (git: PrivateGit) => Promise<void>,
  onWarning: (warning: string) => void,
): Promise<void> {
  const { session } = carried
  const own = records.sessionFolder(session)
  await mkdir(own, { recursive: true, mode: 0o700 })
  await writeFile(records.journal(session), `${[JOURNAL_HEAD, ...journal].join('\n')}\n`, { mode: 0o600 })
  await using opened = await holdSavepoints(world, records, onWarning)
  await using log = openJournal(records.journal(session))
  log.append({
    v: 1,
    at: new Date(world.clock.now()).toISOString(),
    session,
    type: 'session-moved',
    directory: records.directory,
    host: hostname(),
    ...to,
  })
  const { git } = opened.fingerprints
  await fetch(git)
  const memory = join(records.directory, memoryRoot)
  await mkdir(memory, { recursive: true, mode: 0o700 })
  await unpackSession(git, carried, { memory, records: own })
  await takeLastGood(join(own, 'last-good'), memory, session)
  const newest = newestOf(carried.savepoints)
  if (newest === null) return
  const planned = await planRewindTo(opened, records, `${session}/${newest.round === 0 ? 'start' : newest.round}`)
  await carryOutRewind(opened, records, planned, world.clock.now())
}

const JOURNAL_HEAD = '{"format":"codemachine-journal","v":1}'

function newestOf(savepoints: readonly CarriedSavepoint[]): CarriedSavepoint | null {
  return savepoints.toSorted((a, b) => b.round - a.round)[0] ?? null
}

/** Restores the memory files from their last good copies. */
async function takeLastGood(from: string, memory: string, session: string): Promise<void> {
  const own = join(memory, 'projects', session)
  await mkdir(own, { recursive: true, mode: 0o700 })
  for (const name of ['MAIN.md', 'tasks.json', 'steps']) {
    if (!(await pathExists(join(from, name)))) continue
    // A build's tasks are in its plan.
    const plan = join(memory, 'plan', name)
    const to = name === 'tasks.json' && (await pathExists(plan)) ? plan : join(own, name)
    await cp(join(from, name), to, { recursive: true, force: true })
  }
}
