import { createHash } from 'node:crypto'
import { realpath } from 'node:fs/promises'
import { resolve } from 'node:path'
import { systemErrorCode } from '../../base/errors.ts'
import type { SessionState } from '../../core/state/state.ts'
import { type FlowPlan, PLAN_NAME } from '../../flow/plan.ts'
import { openKeptTexts } from '../../records/kept-texts.ts'
import type { Records } from '../../records/records.ts'
import { readRegularFile } from '../../workspace/files/inside-directory.ts'

/** The most bytes of a file that is compared: no workflow file, prompt or value has more. */
const MOST_BYTES = 2 * 1024 * 1024
const MOST_NAMED = 10

/**
 * What a person is told who goes on with a workflow: which of the files that it was read from are others now, for those do not
 * count. A sentence; none where nothing differs, and for a session of another kind.
 */
export async function remarksOnSources(
  { directory, sessionFolder }: Pick<Records, 'directory' | 'sessionFolder'>,
  { id, kept }: Pick<SessionState, 'id' | 'kept'>,
): Promise<string[]> {
  if (!kept.some(({ name }) => name === PLAN_NAME)) return []
  const plan = JSON.parse(await openKeptTexts(sessionFolder(id)).read(PLAN_NAME, kept)) as FlowPlan
  const differing: string[] = []
  for (const { path, sha256 } of plan.sources) {
    const now = await hashOf(resolve(directory, path))
    if (now !== sha256) differing.push(now === null ? `${path} (not there any more)` : path)
  }
  if (differing.length === 0) return []
  const more = differing.length - MOST_NAMED
  const named = `${differing.slice(0, MOST_NAMED).join(', ')}${more > 0 ? ` and ${more} more` : ''}`
  const is = differing.length === 1 ? 'it was' : 'they were'
  return [
    `Changed since this workflow began: ${named}. It goes on with what ${is} then; a new run reads what is there now.`,
  ]
}

/** Of its bytes, hex; null: it is not there, or nothing that could be read. */
async function hashOf(path: string): Promise<string | null> {
  const real = await realpath(path).catch((error: unknown) => {
    if (systemErrorCode(error) === null) throw error
    return null
  })
  if (real === null) return null
  const read = await readRegularFile(real, MOST_BYTES)
  return read.kind === 'bytes' ? createHash('sha256').update(read.bytes).digest('hex') : null
}
