import { join } from 'node:path'
import { UserError } from '../../base/errors.ts'
import { readBoundedText } from '../../platform/bounded-file.ts'
import { pathExists } from '../../platform/path-exists.ts'
import { CERTIFICATE_BYTES, type Certificate, parseCertificate } from '../../session/certificate.ts'
import { foldJournal } from '../../session/fold-journal.ts'
import type { Records } from '../../session/records.ts'
import type { SessionState } from '../../session/state.ts'
import { findObstacle } from '../../workspace/inside-directory.ts'
import { readTextFile } from '../../workspace/read-text-file.ts'
import { findSession } from '../find-session.ts'

/** What was proved, and what else of the session its gates run with. */
export interface Found {
  certificate: Certificate
  /** `key=value` pairs handed to codex. */
  overrides: readonly string[]
}

/**
 * The certificate of the session that a person means, or of the newest that is done: always that of the records, for
 * agents can write its copy. A `UserError` if there is none.
 * @param say told what a person should know of it, a sentence each
 */
export async function findCertificate(
  records: Records,
  wanted: string | null,
  say: (remark: string) => void,
): Promise<Found> {
  const state =
    wanted === null ? await newestDone(records, say) : await stateOf(records, await findSession(records, wanted))
  const { id } = state
  if (!isDone(state)) {
    throw new UserError(`Session ${id} is not done, so there is nothing to verify.`, {
      hint: `codemachine logs ${id} shows what became of it.`,
    })
  }
  const path = certificatePath(records, id)
  const read = await readBoundedText(path, CERTIFICATE_BYTES)
  if (read === 'missing') throw new UserError(`${path} is not there, so what was proved of session ${id} is not known.`)
  if ('problem' in read) throw new UserError(`${path} ${read.problem}, so what was proved is not known.`)
  const certificate = parseCertificate(read.text, path)
  if (certificate.session !== id) throw new UserError(`${path} is the certificate of another session.`)
  await compareCopy(records.directory, id, read.text, say)
  return { certificate, overrides: state.overrides }
}

async function newestDone(records: Records, say: (remark: string) => void): Promise<SessionState> {
  for (const id of (await records.sessions()).reverse()) {
    // Long journals are not read for nothing.
    if (!(await pathExists(certificatePath(records, id)))) continue
    try {
      const state = await stateOf(records, id)
      if (isDone(state)) return state
    } catch (error) {
      if (!(error instanceof UserError)) throw error
      say(error.message)
    }
  }
  throw new UserError(
    `No session in ${records.directory} is done and has a certificate, so there is nothing to verify.`,
  )
}

async function stateOf(records: Records, id: string): Promise<SessionState> {
  const state = await foldJournal(records.journal(id), id)
  if (state === null) throw new UserError(`${records.journal(id)} holds no session.`)
  return state
}

/** One that went on after it was done is not. */
function isDone({ ended }: SessionState): boolean {
  return ended?.outcome.kind === 'done'
}

function certificatePath(records: Records, id: string): string {
  return join(records.sessionFolder(id), 'done.json')
}

async function compareCopy(directory: string, id: string, text: string, say: (remark: string) => void): Promise<void> {
  const folder = join('.codemachine', 'projects', id)
  if ((await findObstacle(directory, folder)) !== null) return
  const copy = await readTextFile(join(directory, folder, 'done.json'), CERTIFICATE_BYTES)
  if (copy.kind === 'gone' || (copy.kind === 'text' && copy.text === text)) return
  say(`${join(folder, 'done.json')} is not what codemachine wrote there; it is not believed, and the record is.`)
}
