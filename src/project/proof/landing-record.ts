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
  /** `key=value` pairs for codex. */
  overrides: v.array(v.string()),
  /** Globs of files that belong to the tree although git ignores them. */
  lookedAt: v.array(v.string()),
  /** Files of its checks, which are gates in the certificate. */
  checks: v.array(v.object({ name: v.string(), files: v.array(v.object({ path: v.string(), text: v.string() })) })),
})

/** Stored record of a landing: its certificate, and the means to run its gates again. */
export interface LandingRecord extends Omit<v.InferOutput<typeof landingSchema>, 'certificate'> {
  certificate: Certificate
}

/** The same record, as read for a verification. */
type FoundLanding = Omit<LandingRecord, 'checks'> & {
  filesOf(name: string): readonly { path: string; text: string }[]
}

const PREFIX = 'land-'

/** Returns whether a text is the id of a landing, such as `land-20261126_1`. */
export function isLandingId(text: string): boolean {
  return text.startsWith(PREFIX) && isSessionId(text.slice(PREFIX.length))
}

/** Returns the id of the next landing. The caller must hold the run lock. */
export async function nextLandingId(records: Pick<Records, 'folder'>, now: Date): Promise<string> {
  const day = localDay(now)
  const last = (await landings(records)).findLast(id => id.startsWith(`${PREFIX}${day}_`))
  return `${PREFIX}${day}_${last === undefined ? 1 : Number(last.slice(last.indexOf('_') + 1)) + 1}`
}

/** Writes the record of a landing, and replaces an earlier one. */
export async function writeLanding(records: Pick<Records, 'folder'>, record: LandingRecord): Promise<void> {
  const folder = join(records.folder, 'landings')
  await writing(folder, async () => {
    await mkdir(folder, { recursive: true, mode: 0o700 })
    await writeWholeFile(pathOf(records, record.certificate.session), `${JSON.stringify(record, null, 2)}\n`)
  })
}

/** Reads the record of a landing. Throws a `UserError` if there is none with this id, or it is damaged. */
export async function readLanding(records: Pick<Records, 'folder'>, id: string): Promise<FoundLanding> {
  const path = pathOf(records, id)
  const read = await readBoundedText(path, CERTIFICATE_BYTES)
  if (read === 'missing') throw new UserError('CM0702', `There is no record here that codemachine land made ${id}.`)
  if ('problem' in read) throw new UserError('CM0703', `${path} ${read.problem}, so nothing shows what was proved.`)
  const parsed = v.safeParse(landingSchema, parsedOrNull(read.text))
  if (!parsed.success) throw new UserError('CM0703', `${path} is no record of a landing: it was damaged or changed.`)
  const { certificate, checks, ...rest } = parsed.output
  return {
    ...rest,
    certificate: parseCertificate(JSON.stringify(certificate), path),
    filesOf: name => checks.find(check => check.name === name)?.files ?? [],
  }
}

/** Returns the newest landing of a directory; null: none. */
export async function newestLanding(records: Pick<Records, 'folder'>): Promise<FoundLanding | null> {
  const last = (await landings(records)).at(-1)
  return last === undefined ? null : await readLanding(records, last)
}

/** Returns the ids of the landings, oldest first. */
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
