import { lstat, readdir, realpath, rm } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { systemErrorCode, UserError, writing } from '../../../base/errors.ts'
import type { SessionOutcome } from '../../../core/events/outcome.ts'
import { type SessionState, type SessionStatus, sessionStatusOf } from '../../../core/state/state.ts'
import { pathExists, pathInside } from '../../../platform/files.ts'
import { readableState } from '../../../project/find.ts'
import type { World } from '../../../project/world.ts'
import { openSecrets } from '../../../secrets/store.ts'
import { type Records, recordsAround, recordsOfGone } from '../../../session/records/records.ts'
import { askWhoRuns, takeRunLock } from '../../../session/records/run-lock.ts'
import { here } from '../../../tell/words/commands.ts'
import type { HowToTest, StepWork, TeamOptions, TeamReview, TeamWork } from '../work.ts'
import { TEAM } from './begin.ts'
import { PROJECTS, RUNS } from './places.ts'
import { projectOfRun } from './run-file.ts'

/** A team's run in a project: one session. */
interface TeamRun {
  session: string
  mode: TeamOptions['mode']
  standing: SessionStatus
  outcome: SessionOutcome | null
  /** ISO 8601 in UTC. */
  createdAt: string
  /** File of the run in the workspace, absolute; null: none. */
  file: string | null
}

/** A project in short, after its newest session. */
export interface ListedTeam extends Omit<TeamRun, 'mode'> {
  /** Name for `team show`: folder in `projects/`; else the path, relative to the workspace if inside. */
  name: string
  /** Absolute. */
  directory: string
  goal: string
  steps: { done: number; all: number }
  howToTest: readonly HowToTest[]
  /** Names of secrets that it waits for and that were not stored since. */
  missing: readonly string[]
}

/** A project with all its results. */
export interface ShownTeam extends Omit<ListedTeam, 'steps'> {
  steps: readonly Pick<StepWork, 'id' | 'description' | 'status' | 'missing'>[]
  review: TeamReview | null
  /** Names of its secrets. */
  secrets: readonly string[]
  /** Newest first, at most 20. */
  runs: readonly TeamRun[]
}

const MOST_PROJECTS = 500
const MOST_RUNS = 20

type Known = Pick<World, 'env' | 'home' | 'platform' | 'templates'>

/**
 * Returns a workspace's projects with team sessions, the last begun at the end: its own, and other directories of its runs
 * (`--project`).
 */
export async function listTeams(world: Known, workspace: string): Promise<ListedTeam[]> {
  const folder = join(workspace, PROJECTS)
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => [])
  const made = entries.flatMap(each => (each.isDirectory() ? [join(folder, each.name)] : [])).sort()
  const listed: ListedTeam[] = []
  for (const directory of new Set([...made.slice(-MOST_PROJECTS), ...(await givenDirectories(workspace))])) {
    if (!(await lstat(directory).catch(() => null))?.isDirectory()) continue
    const found = await findRuns(world, directory, 1)
    const [newest] = found?.runs ?? []
    if (found !== null && newest !== undefined) {
      const name = dirname(directory) === folder ? basename(directory) : (pathInside(workspace, directory) ?? directory)
      listed.push({ ...(await inShort(found.records, newest)), name })
    }
  }
  return listed.sort((a, b) => (a.createdAt < b.createdAt ? -1 : 1))
}

/** Returns the directories that the runs' files name. */
async function givenDirectories(workspace: string): Promise<string[]> {
  const folder = join(workspace, RUNS)
  const names = (await readdir(folder).catch(() => [])).filter(name => name.endsWith('.json')).sort()
  const found = await Promise.all(names.slice(-MOST_PROJECTS).map(name => projectOfRun(join(folder, name))))
  return found.filter(directory => directory !== null)
}

/**
 * Returns a project with all its results. Throws a `UserError` if there is none.
 * @param named its name in the workspace, or its directory
 */
export async function showTeam(world: Known, workspace: string, named: string): Promise<ShownTeam> {
  const found = await findTeam(world, workspace, named)
  const [newest] = found?.runs ?? []
  if (found === null || newest === undefined) throw noTeam(named)
  const { records, runs } = found
  const { steps, review } = workIn(newest.state)
  const { secrets } = await openSecrets(records.secrets).list()
  return {
    ...(await inShort(records, newest)),
    steps: steps.map(({ id, description, status, missing }) => ({ id, description, status, missing })),
    review,
    secrets: secrets.map(({ key }) => key),
    runs: runs.map(runOf),
  }
}

/** A removable project: its directory, its records, its secrets. */
export interface RemovableTeam {
  /** Absolute. */
  directory: string
  /** False: somebody removed the directory, but its records and secrets exist. */
  isThere: boolean
  /** Project directory; null: missing, or older than the team's work. */
  project: string | null
  /** Names of its secrets; null: none. */
  secrets: readonly string[] | null
  /** Removes these parts. Throws a `UserError` (exit code 6) while a session runs there. */
  remove(parts: { project: boolean; records: boolean; secrets: boolean }): Promise<void>
}

/**
 * Returns the removable parts of a project, even without its directory. Throws a `UserError` if there are none.
 * @param named its name in the workspace, or its directory
 */
export async function removableTeam(
  world: Known & Pick<World, 'pid' | 'clock'>,
  workspace: string,
  named: string,
): Promise<RemovableTeam> {
  const there = await findTeam(world, workspace, named)
  const found = there ?? (await findGoneTeam(world, workspace, named))
  if (found === null) throw noTeam(named)
  const { records, runs } = found
  const { folder, directory } = records
  const { secrets: stored, broken } = await openSecrets(records.secrets).list()
  const keys = [...stored, ...broken].map(({ key }) => key)
  return {
    directory,
    isThere: there !== null,
    project: there !== null && isMade(directory, runs) ? directory : null,
    secrets: keys.length === 0 ? null : keys,
    remove: async parts => {
      const isAll = parts.secrets || keys.length === 0
      {
        const hint = `To end it: codemachine stop --now${here(directory)}`
        await using _ = await takeRunLock(records.lock, { ...world, now: new Date(world.clock.now()), hint })
        if (parts.secrets) await removed(records.secrets)
        if (parts.project) await removed(directory)
        if (parts.records) await removeRecords(records, isAll)
      }
      if (parts.records && isAll) await removed(folder)
    },
  }
}

/** Returns whether a team created the directory: it is among the projects of its session's workspace. */
function isMade(directory: string, runs: readonly FoundRun[]): boolean {
  const projects = dirname(directory)
  return (
    basename(projects) === PROJECTS &&
    runs.some(({ state }) => workIn(state).options.workspace?.directory === dirname(projects))
  )
}

/** Removes everything but the lock, and but the secrets if they stay. */
async function removeRecords({ folder, lock, secrets }: Records, withSecrets: boolean): Promise<void> {
  const kept = [basename(lock), ...(withSecrets ? [] : [basename(secrets)])]
  for (const name of await readdir(folder)) {
    if (!kept.some(each => name.startsWith(each))) await removed(join(folder, name))
  }
}

async function removed(path: string): Promise<void> {
  await writing(path, () => rm(path, { recursive: true, force: true, maxRetries: 3 }))
}

/** A team's session, from its journal. */
interface FoundRun {
  state: SessionState
  standing: SessionStatus
}

/** A project with its newest team sessions, newest first. */
interface FoundTeam {
  records: Records
  runs: readonly FoundRun[]
}

async function findTeam(world: Known, workspace: string, named: string): Promise<FoundTeam | null> {
  for (const place of placesOf(workspace, named)) {
    // Do not follow a link: its target is another directory.
    const found = (await lstat(place).catch(() => null))?.isDirectory() ? await findRuns(world, place, MOST_RUNS) : null
    if (found !== null && found.runs.length > 0) return found
  }
  return null
}

/** Finds a project without directory that still has sessions or secrets. */
async function findGoneTeam(world: Known, workspace: string, named: string): Promise<FoundTeam | null> {
  for (const directory of placesOf(workspace, named)) {
    const records = (await isGone(directory)) ? await recordsOfGone({ ...world, directory }) : null
    if (records === null) continue
    const runs = await runsIn(world, records, MOST_RUNS)
    const { secrets, broken } = await openSecrets(records.secrets).list()
    if (runs.length + secrets.length + broken.length > 0) return { records, runs }
  }
  return null
}

async function isGone(path: string): Promise<boolean> {
  return await lstat(path).then(
    () => false,
    error => systemErrorCode(error) === 'ENOENT',
  )
}

/** Returns possible places of a project with this name. */
function placesOf(workspace: string, named: string): string[] {
  return [...(/[\\/]/.test(named) ? [] : [join(workspace, PROJECTS, named)]), resolve(workspace, named)]
}

function noTeam(named: string): UserError {
  return new UserError('CM1008', `"${named.slice(0, 200)}" is not a project of a team.`, {
    hint: 'The projects here: codemachine team list',
  })
}

/** Returns the newest team sessions in a directory, newest first; null: it has no records. */
async function findRuns(
  world: Known,
  directory: string,
  most: number,
): Promise<{ records: Records; runs: FoundRun[] } | null> {
  const [records] = await recordsAround({ ...world, directory: await realpath(directory) })
  if (records === undefined || !(await pathExists(records.folder))) return null
  return { records, runs: await runsIn(world, records, most) }
}

async function runsIn(world: Known, records: Records, most: number): Promise<FoundRun[]> {
  // Read the lock before the journals: a session that ends meanwhile must not look cut off.
  const runner = await askWhoRuns(records.lock, world.platform, () => {})
  const runs: FoundRun[] = []
  for (const id of (await records.sessions()).reverse()) {
    if (runs.length === most) break
    const state = await readableState(records, id, 'ends')
    if (state?.template === TEAM) runs.push({ state, standing: sessionStatusOf(state, runner) })
  }
  return runs
}

async function inShort({ directory, secrets: folder }: Records, run: FoundRun): Promise<ListedTeam> {
  const { state } = run
  const { steps, howToTest } = workIn(state)
  const waitsFor = steps.flatMap(({ status, waitsFor: wanted }) =>
    status === 'needs-secret' && wanted !== null ? [wanted.key] : [],
  )
  const { mode: _, ...others } = runOf(run)
  return {
    name: basename(directory),
    directory,
    goal: state.goal,
    ...others,
    steps: { done: steps.filter(({ status }) => status === 'done').length, all: steps.length },
    howToTest: howToTest ?? [],
    missing: waitsFor.length === 0 ? [] : await withoutNew(folder, [...new Set(waitsFor)], state.updatedAt),
  }
}

/** Returns the secrets not stored since: one that is requested again because it fails is older. */
async function withoutNew(folder: string, keys: readonly string[], since: number): Promise<string[]> {
  const { secrets } = await openSecrets(folder).list()
  const stored = secrets.filter(({ at }) => Date.parse(at) >= since)
  return keys.filter(wanted => !stored.some(({ key }) => key === wanted))
}

function runOf({ state, standing }: FoundRun): TeamRun {
  const { workspace, mode = 'all' } = workIn(state).options
  return {
    session: state.id,
    mode,
    standing,
    outcome: state.ended?.outcome ?? null,
    createdAt: new Date(state.createdAt).toISOString(),
    file: workspace == null ? null : join(workspace.directory, workspace.run),
  }
}

/** Returns its template's memory; nothing for a session without one. */
function workIn({
  work,
}: SessionState): Pick<TeamWork, 'steps' | 'howToTest' | 'review'> & { options: Partial<TeamOptions> } {
  return { options: {}, steps: [], howToTest: null, review: null, ...(work as Partial<TeamWork> | null) }
}
