import { mkdir, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import * as v from 'valibot'
import { ignoreMissing, UserError, writing } from '../../base/errors.ts'
import { parsedOrNull } from '../../base/json.ts'
import { CERTIFICATE_BYTES, type Certificate, parseCertificate } from '../../core/rules/certificate.ts'
import { readBoundedText, writeWholeFile } from '../../platform/files.ts'
import { bySessionId, isSessionId, localDay, type Records } from '../../session/records/records.ts'

const landingSchema = v.object({
  /** As in `done.json`. */
  certificate: v.looseObject({}),
  /** `key=value` pairs handed to codex. */
  overrides: v.array(v.string()),
  /** Globs of what counts as part of the tree although git ignores it. */
  lookedAt: v.array(v.string()),
  /** The files of its checks, which are gates in the certificate. */
  checks: v.array(v.object({ name: v.string(), files: v.array(v.object({ path: v.string(), text: v.string() })) })),
})

/** What is kept of a landing: its certificate, and with what its gates run again. */
export interface LandingRecord extends Omit<v.InferOutput<typeof landingSchema>, 'certificate'> {
  certificate: Certificate
}

/** The same, as what was proved is found. */
type FoundLanding = Omit<LandingRecord, 'checks'> & {
  filesOf(name: string): readonly { path: string; text: string }[]
}

const PREFIX = 'land-'

/** Whether a text is the id of a landing: `land-20261126_1`. */
export function isLandingId(text: string): boolean {
  return text.startsWith(PREFIX) && isSessionId(text.slice(PREFIX.length))
}

/** The id of the next landing. The caller holds the run lock. */
export async function nextLandingId(records: Pick<Records, 'folder'>, now: Date): Promise<string> {
  const day = localDay(now)
  const last = (await landings(records)).findLast(id => id.startsWith(`${PREFIX}${day}_`))
  return `${PREFIX}${day}_${last === undefined ? 1 : Number(last.slice(last.indexOf('_') + 1)) + 1}`
}

/** Writes what is kept of a landing, in the place of what was. */
export async function writeLanding(records: Pick<Records, 'folder'>, record: LandingRecord): Promise<void> {
  const folder = join(records.folder, 'landings')
  await writing(folder, async () => {
    await mkdir(folder, { recursive: true, mode: 0o700 })
    await writeWholeFile(pathOf(records, record.certificate.session), `${JSON.stringify(record, null, 2)}\n`)
  })
}

/** What was proved of a landing. A `UserError` if there is none of this id, or it was damaged. */
export async function readLanding(records: Pick<Records, 'folder'>, id: string): Promise<FoundLanding> {
  const path = pathOf(records, id)
  const read = await readBoundedText(path, CERTIFICATE_BYTES)
  if (read === 'missing') throw new UserError('CM0702', `There is no landing ${id} here.`)
  if ('problem' in read) throw new UserError('CM0703', `${path} ${read.problem}, so what was proved is not known.`)
  const parsed = v.safeParse(landingSchema, parsedOrNull(read.text))
  if (!parsed.success) throw new UserError('CM0703', `${path} is no record of a landing: it was damaged or changed.`)
  const { certificate, checks, ...rest } = parsed.output
  return {
    ...rest,
    certificate: parseCertificate(JSON.stringify(certificate), path),
    filesOf: name => checks.find(check => check.name === name)?.files ?? [],
  }
}

/** The newest landing of a directory; null: there is none. */
export async function newestLanding(records: Pick<Records, 'folder'>): Promise<FoundLanding | null> {
  const last = (await landings(records)).at(-1)
  return last === undefined ? null : await readLanding(records, last)
}

/** Their ids, the oldest first. */
async function landings({ folder }: Pick<Records, 'folder'>): Promise<string[]> {
  const names = (await readdir(join(folder, 'landings')).catch(ignoreMissing)) ?? []
  const ids = names.flatMap(name =>
    name.endsWith('.json') && isLandingId(name.slice(0, -5)) ? [name.slice(0, -5)] : [],
  )
  return ids.sort((a, b) => bySessionId(a.slice(PREFIX.length), b.slice(PREFIX.length)))
}

function pathOf({ folder }: Pick<Records, 'folder'>, id: string): string {
  return join(folder, 'landings', `${id}.json`)
}
