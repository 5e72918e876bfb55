import { mkdir, readdir, rm, rmdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { diskFull, isNoRoom, messageOf, systemErrorCode, UserError, writing } from '../../../base/errors.ts'
import { stageFile } from '../../../platform/files.ts'
import { redactorOfEnvironment, type World } from '../../../project/world.ts'
import { findObstacle, makeFolderInside, readTextFile, whatIsThere } from '../../../workspace/files/inside-directory.ts'
import { findGit } from '../../../workspace/git/find-git.ts'
import { type GitSetting, hardenedEnvironment, runGitOrThrow } from '../../../workspace/git/git.ts'
import { memoryRoot } from '../../../workspace/memory/memory-paths.ts'

/** Folders of a workspace that teams write, each with its ignore rules. */
export const PROJECTS = 'projects'
export const RUNS = 'runs'
export const LOGS = 'logs'

/** Places of a team and its files; all exist. */
export interface TeamPlaces {
  /** Real path of the calling directory. */
  workspace: string
  /** Real path of its work directory. */
  project: string
  /** Whether that was created for it. */
  isNew: boolean
  /** File of the run, relative to the workspace, with `/`: at first without any work. */
  run: string
  /** Removes everything created, if nothing else was added. */
  undo(): Promise<void>
}

/** Values for the places. */
interface WantedPlaces {
  /** Real path of the calling directory. */
  workspace: string
  /** Goal as typed, the source of the names. */
  goal: string
  /** Real path of its directory; null: a new one. */
  project: string | null
}

/**
 * Creates the places of one team; two parallel teams never get the same. Throws a `UserError` if that fails, and leaves
 * nothing.
 */
export async function makePlaces(
  world: Pick<World, 'env' | 'clock'>,
  { workspace, goal, project: given }: WantedPlaces,
): Promise<TeamPlaces> {
  const program = given === null ? await findGit(world.env, workspace) : null
  const folders = [...(given === null ? [PROJECTS] : []), RUNS, LOGS]
  for (const folder of folders) await refuseObstacle(workspace, folder)
  const now = new Date(world.clock.now())
  const made: (() => Promise<unknown>)[] = []
  const undo = async () => {
    for (const take of made.splice(0).reverse()) await take().catch(() => undefined)
  }
  try {
    for (const folder of folders) await makeFolder(workspace, folder, made)
    const project = given ?? (await makeProject({ world, program, workspace, goal, now }, made))
    const run = await reserveRun({ world, workspace, goal, now }, made)
    return { workspace, project, isNew: given === null, run, undo }
  } catch (error) {
    await undo()
    throw error
  }
}

/** Returns a name from a goal: lower-case ASCII letters, digits and dashes, at most 40; `project` if none are left. */
export function slugOf(goal: string): string {
  const words = goal.slice(0, MOST_LOOKED_AT).toLowerCase()
  const slug = words
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-/, '')
    .slice(0, MOST_SLUG)
  return slug.replace(/-+$/, '') || 'project'
}

const MOST_SLUG = 40
const MOST_LOOKED_AT = 4_000

/** Formats a local day such as `20261121`, with a separator between its parts. */
export function dayOf(at: Date, between = ''): string {
  return [String(at.getFullYear()).padStart(4, '0'), twoDigits(at.getMonth() + 1), twoDigits(at.getDate())].join(
    between,
  )
}

function timeOf(at: Date): string {
  return [at.getHours(), at.getMinutes(), at.getSeconds()].map(twoDigits).join('')
}

/** `07`. */
export function twoDigits(value: number): string {
  return String(value).padStart(2, '0')
}

/** Returns the content of a run's file before any work. */
function runBefore(goal: string): string {
  return `${JSON.stringify({ goal, steps_executed: 0, results: [], review: null })}\n`
}

/** Undo actions of everything created so far, in order. */
type Made = (() => Promise<unknown>)[]

async function refuseObstacle(workspace: string, folder: string): Promise<void> {
  const obstacle = await findObstacle(workspace, folder).catch(error => {
    throw unmade(join(workspace, folder), error)
  })
  if (obstacle === null || obstacle.kind === 'missing') return
  throw new UserError(
    'CM0210',
    `${join(workspace, folder)} ${whatIsThere(obstacle)}; move it away, because codemachine needs this path.`,
  )
}

/** Throws if a folder of the workspace is missing, or no folder any more. */
export async function checkFolder(workspace: string, folder: string): Promise<void> {
  const obstacle = await findObstacle(workspace, folder)
  if (obstacle === null) return
  throw new UserError(
    'CM1008',
    obstacle.kind === 'missing' ? `${folder} was deleted.` : `${obstacle.path} ${whatIsThere(obstacle)}.`,
  )
}

/** Creates a folder of the workspace that git ignores. */
async function makeFolder(workspace: string, folder: string, made: Made): Promise<void> {
  const path = join(workspace, folder)
  const ignore = join(path, '.gitignore')
  let isNew = false
  const onMade = () => {
    isNew = true
    made.push(async () => {
      // Keep that of another team that has begun meanwhile.
      const names = await readdir(path)
      if (names.some(name => name !== '.gitignore')) return
      await rm(ignore, { force: true })
      await rmdir(path)
    })
  }
  const obstacle = await makeFolderInside(workspace, folder, { mode: 0o777, onMade }).catch(error => {
    throw unmade(path, error)
  })
  if (obstacle !== null) await refuseObstacle(workspace, folder)
  try {
    await writeFile(ignore, '*\n', { flag: 'wx' })
    if (!isNew) made.push(() => rm(ignore))
  } catch (error) {
    if (systemErrorCode(error) !== 'EEXIST') throw unmade(ignore, error)
  }
}

async function makeProject(
  { world, program, workspace, goal, now }: ForNames & { program: string | null },
  made: Made,
): Promise<string> {
  const name = `${slugOf(goal)}-${dayOf(now)}-${timeOf(now)}`
  const path = await firstFree(name, '', async each => {
    const path = join(workspace, PROJECTS, each)
    try {
      await mkdir(path)
      return path
    } catch (error) {
      if (systemErrorCode(error) === 'EEXIST') return null
      throw unmade(path, error)
    }
  })
  made.push(() => removeUntouched(path))
  if (program === null) return path
  // Like all of codemachine's git: without anyone's configuration, templates and hooks.
  const setting: GitSetting = { program, directory: path, env: hardenedEnvironment(world.env, join(path, 'none')) }
  await runGitOrThrow(setting, ['-c', 'init.defaultBranch=main', 'init', '--quiet', '--template=']).catch(error => {
    throw isNoRoom(error)
      ? diskFull(path, error)
      : new UserError('CM0504', `${path} cannot become a git repository: ${messageOf(error)}`)
  })
  const info = join(path, '.git', 'info')
  await writing(info, async () => {
    await mkdir(info, { recursive: true })
    await writeFile(join(info, 'exclude'), NOT_READ)
  })
  return path
}

/** Agents cannot read these, and `git add -A` fails on an unreadable file that is not ignored. */
const NOT_READ = '.env\n.env.*\n!.env.example\n!.env.sample\n!.env.template\n!.env.dist\n'

/** Files that codemachine itself creates in a project before its session begins. */
const OWN: ReadonlySet<string> = new Set(['.git', memoryRoot])

/** Removes a project that nobody has changed. */
async function removeUntouched(path: string): Promise<void> {
  const names = await readdir(path)
  if (names.every(name => OWN.has(name))) await rm(path, { recursive: true, force: true })
}

interface ForNames {
  world: Pick<World, 'env'>
  workspace: string
  goal: string
  now: Date
}

/** Reserves a file name for the run. */
async function reserveRun({ world, workspace, goal, now }: ForNames, made: Made): Promise<string> {
  const folder = join(workspace, RUNS)
  const content = runBefore(redactorOfEnvironment(world).text(goal))
  try {
    await using staged = await stageFile(folder, content)
    const name = await firstFree(`${slugOf(goal)}-${dayOf(now, '-')}`, '.json', async each =>
      (await staged.linkAs(each)) ? each : null,
    )
    made.push(async () => {
      const found = await readTextFile(join(folder, name), MOST_RUN_BEFORE)
      if (found.kind === 'text' && found.text === content) await rm(join(folder, name))
    })
    return `${RUNS}/${name}`
  } catch (error) {
    throw error instanceof UserError ? error : unmade(folder, error)
  }
}

const MOST_RUN_BEFORE = 8 * 1024 * 1024
const MOST_NAMES = 10_000

/** Returns the result for the first free name: `name`, `name-2`, `name-3`, … */
async function firstFree(
  name: string,
  ending: string,
  take: (name: string) => Promise<string | null>,
): Promise<string> {
  for (let count = 1; count <= MOST_NAMES; count++) {
    const taken = await take(`${name}${count === 1 ? '' : `-${count}`}${ending}`)
    if (taken !== null) return taken
  }
  throw new UserError(
    'CM1008',
    `codemachine finds no free name for the project: ${name}${ending} and ${MOST_NAMES} more exist; name one with --project.`,
  )
}

const WHY: Readonly<Record<string, string>> = {
  EACCES: 'you may not write there',
  EPERM: 'you may not write there',
  EROFS: 'that disk is read-only',
  ENOENT: 'nothing can be created there',
}

function unmade(path: string, error: unknown): unknown {
  if (error instanceof UserError) return error
  if (isNoRoom(error)) return diskFull(path, error)
  const code = systemErrorCode(error)
  if (code === null) return error
  return new UserError('CM0211', `${path} cannot be made: ${WHY[code] ?? messageOf(error)}.`, {
    hint: 'Change to a directory that you can write to, or name one with -C.',
    cause: error,
  })
}
