import { mkdir, readdir, rm, rmdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { diskFull, isNoRoom, messageOf, systemErrorCode, UserError, writing } from '../../../base/errors.ts'
import { stageFile } from '../../../platform/files.ts'
import { redactorOfEnvironment, type World } from '../../../project/world.ts'
import { findObstacle, makeFolderInside, readTextFile, whatIsThere } from '../../../workspace/files/inside-directory.ts'
import { findGit } from '../../../workspace/git/find-git.ts'
import { type GitSetting, hardenedEnvironment, runGitOrThrow } from '../../../workspace/git/git.ts'
import { memoryRoot } from '../../../workspace/memory/memory-paths.ts'

/** The folders of a workspace that teams write, and what is ignored in each. */
export const PROJECTS = 'projects'
export const RUNS = 'runs'
export const LOGS = 'logs'

/** Where a team works, and what it writes; all made. */
export interface TeamPlaces {
  /** The real path of the directory where it was called. */
  workspace: string
  /** The real path of its work directory. */
  project: string
  /** Whether that was made for it. */
  isNew: boolean
  /** The file that says how the run went, relative to the workspace, with `/`: it holds a run in which nothing was done. */
  run: string
  /** Takes away all that was made, if nothing else has come into it. */
  undo(): Promise<void>
}

/** What the places are made for. */
interface WantedPlaces {
  /** The real path of where it was called. */
  workspace: string
  /** As typed: what the names are made of. */
  goal: string
  /** The real path of the directory that it is to work in; null: a new one. */
  project: string | null
}

/**
 * Makes the places of one team; of two that begin at once none gets the same. A `UserError` if they cannot be made: then
 * nothing is left of them.
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

/** What names are made of a goal: lower-case ASCII letters, digits and dashes, at most 40; `project` if there are none in it. */
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

/** A local day such as `20261121`, its parts with something between them. */
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

/** What the file of a run says before anything was done in it. */
function runBefore(goal: string): string {
  return `${JSON.stringify({ goal, steps_executed: 0, results: [], review: null })}\n`
}

/** What has been made so far, in its order, each as what takes it away again. */
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

/** Throws for a folder of the workspace that is gone, or is none any more. */
export async function checkFolder(workspace: string, folder: string): Promise<void> {
  const obstacle = await findObstacle(workspace, folder)
  if (obstacle === null) return
  throw new UserError(
    'CM1008',
    obstacle.kind === 'missing' ? `${folder} is gone.` : `${obstacle.path} ${whatIsThere(obstacle)}.`,
  )
}

/** A folder of the workspace, which git does not look into. */
async function makeFolder(workspace: string, folder: string, made: Made): Promise<void> {
  const path = join(workspace, folder)
  const ignore = join(path, '.gitignore')
  let isNew = false
  const onMade = () => {
    isNew = true
    made.push(async () => {
      // That of another team, which has begun meanwhile, stays as it is.
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
  // As codemachine runs git everywhere: by nobody's configuration, templates and hooks.
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

/** Agents cannot read these, and `git add -A` fails at a file that it cannot read and does not ignore. */
const NOT_READ = '.env\n.env.*\n!.env.example\n!.env.sample\n!.env.template\n!.env.dist\n'

/** What codemachine itself makes in a project before its session begins. */
const OWN: ReadonlySet<string> = new Set(['.git', memoryRoot])

/** Removes a project in which nobody has made anything. */
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

/** Gives a file for the run its name, for good. */
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

/** What the first name comes to that can be taken: `name`, `name-2`, `name-3`, … */
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
    `${name}${ending} and ${MOST_NAMES} names after it exist already; say the goal in other words.`,
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
