import { mkdir, realpath, rm, rmdir } from 'node:fs/promises'
import { join } from 'node:path'
import { UserError, writing } from '../../base/errors.ts'
import { loadPrompt } from '../../base/package.ts'
import { problemOfPromptSize } from '../../base/text.ts'
import { writeWholeFile } from '../../platform/files.ts'
import { findObstacle, writeFileInside } from '../files/inside-directory.ts'
import { newMainFile } from './main-file.ts'
import { makeMemoryFolderOrRefuse, writingInside } from './memory-folder.ts'
import { memoryRoot, type SessionFolder, type SessionPlace, sessionFolder } from './memory-paths.ts'
import { archiveEarlierPlan } from './plan-files.ts'

/**
 * Creates the memory of a new session: `.codemachine/` with its `.gitignore`, `kb/`, the session's `MAIN.md` and
 * `tasks.json`, and their first good copies in the records. If it shares the project's plan, replaces an earlier one by an
 * empty one. Throws a `UserError` if the directory is not writable, the session's folder exists, or the goal exceeds 1 MiB.
 * Then removes its empty folder from the records.
 */
export async function createSessionFolder(session: NewSession): Promise<SessionFolder> {
  try {
    return await makeSessionFolder(session)
  } catch (error) {
    // Fails for a folder with content, as it should.
    await rmdir(session.records).catch(() => undefined)
    throw error
  }
}

interface NewSession extends SessionPlace {
  goal: string
  git: { commit: string | null; branch: string | null }
  /** Session of the plan in the work directory; null or undefined: unknown. */
  planOf?: string | null
  /** Removes secrets from a text. */
  redact(text: string): string
}

async function makeSessionFolder(session: NewSession): Promise<SessionFolder> {
  const problem = problemOfPromptSize(session.goal)
  if (problem !== null) throw new UserError('CM0107', problem)
  const main = { 'MAIN.md': newMainFile(loadPrompt('MAIN.template'), session, session.redact) }
  const all = { ...main, 'tasks.json': NO_TASKS }
  const files = session.memory === 'project-plan' ? main : all
  const place = sessionFolder(session)
  await writingInside(
    place.folder,
    () => writeFirstFiles(session.directory, session.id, files),
    code => `codemachine cannot write to ${session.directory} (${code}); make it a directory that you can write to.`,
  )
  try {
    await writing(place.lastGood, () => writeLastGood(place.lastGood, all))
    if (session.memory === 'project-plan') await archiveEarlierPlan(session.directory, session)
  } catch (error) {
    await rm(place.lastGood, { recursive: true, force: true }).catch(() => undefined)
    await removeFirstFiles(place.folder, files)
    throw error
  }
  return place
}

/** Text of a `tasks.json` without tasks. */
export const NO_TASKS = `${JSON.stringify({ tasks: [] }, null, 2)}\n`

async function writeFirstFiles(directory: string, id: string, files: Readonly<Record<string, string>>): Promise<void> {
  const root = await realpath(directory)
  const folder = join(memoryRoot, 'projects', id)
  const makeFolder = (path: string) => makeMemoryFolderOrRefuse(root, path, 'keep its memory there')
  await makeFolder(join(memoryRoot, 'kb'))
  await makeFolder(join(memoryRoot, 'projects'))
  if ((await findObstacle(root, folder))?.kind !== 'missing') {
    throw new UserError('CM0210', `${join(directory, folder)} already exists; remove it, or resume its session.`)
  }
  await makeFolder(folder)
  try {
    for (const [name, text] of Object.entries(files)) await writeFileInside(root, join(folder, name), text)
  } catch (error) {
    await removeFirstFiles(join(root, folder), files)
    throw error
  }
}

/** Writes the first good copies of memory files into a folder of the records, one after the other. */
export async function writeLastGood(folder: string, files: Readonly<Record<string, string>>): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  for (const [name, text] of Object.entries(files)) await writeWholeFile(join(folder, name), text)
}

/** Removes the files of an unfinished creation. */
async function removeFirstFiles(folder: string, files: Readonly<Record<string, string>>): Promise<void> {
  for (const name of Object.keys(files)) await rm(join(folder, name), { force: true }).catch(() => undefined)
  await rmdir(folder).catch(() => undefined)
}
