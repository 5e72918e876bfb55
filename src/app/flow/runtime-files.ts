import { join } from 'node:path'
import { messageOf, systemErrorCode, UserError } from '../../base/errors.ts'
import { type FlowStep, memoryFileOf } from '../../flow/plan.ts'
import { makeFolderInside, whatIsThere, writeFileInside } from '../../workspace/files/inside-directory.ts'
import { writeIfMissing } from '../../workspace/memory/session-memory.ts'

/** What a run writes for people, relative to the work directory; the records are what counts. */
const RUNTIME = '.codex-flow/runtime'

/** Writes the last message of a step into `memory/`, below the real path of the work directory. A sentence if that failed. */
export async function writeMemory(
  root: string,
  step: Pick<FlowStep, 'index' | 'stem' | 'description' | 'work'>,
  text: string,
): Promise<string | null> {
  const path = join(RUNTIME, 'memory', memoryFileOf(step))
  return await attempt(path, async () => {
    await makeRuntimeFolder(root, 'memory')
    await writeFileInside(root, path, text.endsWith('\n') ? text : `${text}\n`)
  })
}

/** Makes a folder below `RUNTIME`, which git does not look at. Throws a `UserError` if something else is in its place. */
async function makeRuntimeFolder(root: string, name: string): Promise<void> {
  const obstacle = await makeFolderInside(root, join(RUNTIME, name), { mode: 0o755 })
  if (obstacle !== null) throw new UserError(`${obstacle.path} ${whatIsThere(obstacle)}; move it away.`)
  await writeIfMissing(join(root, RUNTIME, '.gitignore'), '*\n')
}

/** A sentence that names the file if it could not be written: a run does not end for that. */
async function attempt(path: string, write: () => Promise<void>): Promise<string | null> {
  try {
    await write()
    return null
  } catch (error) {
    const code = systemErrorCode(error)
    if (code === null && !(error instanceof UserError)) throw error
    return `${path} could not be written: ${code === null ? messageOf(error) : `${code}.`}`
  }
}
