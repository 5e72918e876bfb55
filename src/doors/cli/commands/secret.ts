import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { Interrupted, UserError } from '../../../base/errors.ts'
import { MOST_VALUE_BYTES, problemOfKey, problemOfValue } from '../../../core/shapes/secrets.ts'
import { PROJECTS } from '../../../modes/team/start/places.ts'
import { pathExists } from '../../../platform/files.ts'
import { exportSecret } from '../../../project/secrets/export-secret.ts'
import {
  checkSecret,
  listSecrets,
  removeSecret,
  setSecret,
  waitingKeys,
} from '../../../project/secrets/person-secrets.ts'
import { openRecords, type Records, recordsAround } from '../../../session/records/records.ts'
import { readRunner } from '../../../session/records/run-lock.ts'
import { here } from '../../../tell/words/commands.ts'
import { oneLine } from '../../../tell/words/safe-text.ts'
import type { CliContext } from '../../screen/cli-context.ts'
import { askValue } from '../decision-prompt.ts'
import { type DirectoryFlags, directoryOf, type LookFlags, printDone, readBytes } from '../flags.ts'
import { inColumns } from '../output.ts'
import { warnOn } from '../warn-on.ts'

/** What may be said to `secret set`, as typed. */
interface SecretSetFlags extends LookFlags {
  /** A command that passes if the value is a good one. */
  check?: string
}

/** What may be said to `secret check`, as typed. */
interface SecretCheckFlags extends LookFlags {
  /** Whether its check reaches the network. */
  network?: true
}

/** What may be said to `secret export`, as typed. */
interface SecretExportFlags extends LookFlags {
  to?: string
}

/** `codemachine secret set`: stores a value that is typed hidden, or comes through standard input; 130 if they left by Ctrl+C. */
export async function secretSet(context: CliContext, typed: string, flags: SecretSetFlags): Promise<number> {
  const { stdin } = context
  const key = keyOf(typed)
  const isWaitedFor = async (each: Records) => (await keysWaitedFor(each)).includes(key)
  const records = await projectFor(context, flags, isWaitedFor)
  const value = stdin.isTTY === true ? await typedValue(context, key) : await valueOfInput(context)
  if (value === null) return 130
  for (const warning of await setSecret(context, records, key, value, flags.check)) warnOn(context)(warning)
  const next = (await isWaitedFor(records)) ? await howToGoOn(context, records) : ''
  return printDone(context, flags, `${key} is stored for ${records.directory}.\n${next}`.trimEnd(), { key })
}

/** The secrets that the newest session of a project waits for. */
async function keysWaitedFor(records: Records): Promise<string[]> {
  return (await hasSessions(records)) ? await waitingKeys(records) : []
}

/** What is missing still, or the command that goes on, as a line; nothing where the session runs and has been told. */
async function howToGoOn({ platform }: CliContext, records: Records): Promise<string> {
  if ((await readRunner(records.lock, platform)) !== null) return ''
  const stored = new Set((await listSecrets(records)).map(({ key }) => key))
  const missing = (await keysWaitedFor(records)).filter(key => !stored.has(key))
  const where = here(records.directory)
  if (missing.length === 0) return `To continue: codemachine resume${where}\n`
  return `Still missing: ${missing.map(key => `codemachine secret set ${key}${where}`).join('; ')}\n`
}

/** Null: they left by Ctrl+C, which has been said. */
async function typedValue(context: CliContext, key: string): Promise<string | null> {
  const { stdout, stderr, signal } = context
  const typed = await askValue({ ...context, stdout: stdout.isTTY ? stdout : stderr }, key)
  if (typed.kind === 'typed') return typed.text
  if (typed.by === 'signal') throw new Interrupted(signal.reason)
  if (typed.by === 'ctrl-d') throw new UserError('CM0903', NOTHING, { exitCode: 4 })
  stderr.write(`codemachine: ${NOTHING}\n`)
  return null
}

const NOTHING = 'Left without a value; nothing is stored.'

/** What comes through standard input; the line end at its end is none of the value. */
async function valueOfInput(context: CliContext): Promise<string> {
  const bytes = await readBytes(context, MOST_VALUE_BYTES + '\r\n'.length)
  const value = bytes?.subarray(0, bytes.length - lengthOfLineEnd(bytes))
  const problem =
    value === undefined ? `The value has more than ${MOST_VALUE_BYTES / 1024} KiB.` : problemOfValue(value)
  if (bytes === null || problem !== null)
    throw new UserError('CM0903', `${problem} Nothing is stored.`, { hint: HOW_TO_PIPE })
  return bytes.toString('utf8')
}

function lengthOfLineEnd(bytes: Buffer): number {
  const end = bytes.subarray(-2).toString('latin1')
  return end === '\r\n' ? 2 : end.endsWith('\n') ? 1 : 0
}

const HOW_TO_PIPE =
  'From a file: codemachine secret set KEY < file. On a terminal it is typed at a prompt that shows nothing.'

/** `codemachine secret list`: names, never values. */
export async function secretList(context: CliContext, flags: LookFlags): Promise<number> {
  const { stdout } = context
  const records = await projectFor(context, flags, async each => (await listSecrets(each)).length > 0)
  const secrets = await listSecrets(records)
  if (flags.json) stdout.write(`${JSON.stringify(secrets)}\n`)
  else if (secrets.length === 0)
    stdout.write(
      `There are no secrets for ${oneLine(records.directory, 500)}. To store one: codemachine secret set <KEY>\n`,
    )
  else {
    const rows = secrets.map(({ key, check, since, short, problem }) => [
      key,
      since === null ? '' : `set ${new Date(since).toLocaleString('sv-SE').slice(0, 16)}`,
      check === null ? 'no check' : `check: ${oneLine(check, MOST_SHOWN)}`,
      problem ?? (short ? 'too short to be searched for' : ''),
    ])
    stdout.write(`${inColumns(rows).join('\n')}\n`)
  }
  return 0
}

const MOST_SHOWN = 80

/** `codemachine secret rm`. */
export async function secretRemove(context: CliContext, typed: string, flags: LookFlags): Promise<number> {
  const key = keyOf(typed)
  const records = await projectFor(context, flags, hasKey(key))
  if (!(await removeSecret(context, records, key))) throw new UserError('CM0902', notThere(key, records))
  return printDone(context, flags, `${key} is removed from ${records.directory}. Exported copies are still there.`, {
    key,
  })
}

/** `codemachine secret check`: 0 if it is there and its check passes, 4 if not. */
export async function secretCheck(context: CliContext, typed: string, flags: SecretCheckFlags): Promise<number> {
  const key = keyOf(typed)
  const records = await projectFor(context, flags, hasKey(key))
  const known = (await listSecrets(records)).find(each => each.key === key)
  if (known === undefined) throw new UserError('CM0902', notThere(key, records), { exitCode: 4 })
  const options = { directory: records.directory, ...(flags.network ? { network: true } : {}) }
  const { ok, problem, words } = await checkSecret(context, records, options, key)
  for (const line of words) warnOn(context)(line)
  if (!ok) {
    throw new UserError('CM0905', `${key} does not work. ${problem ?? ''}`.trim(), {
      exitCode: 4,
      ...(flags.network ? {} : { hint: 'A check that needs the network: codemachine secret check KEY --network' }),
    })
  }
  const { check } = known
  return printDone(
    context,
    flags,
    `${key} is there${check === null ? '; it has no check' : ', and its check passes'}.`,
    { key },
  )
}

/** `codemachine secret export`: writes it into a file of variables. */
export async function secretExport(context: CliContext, typed: string, flags: SecretExportFlags): Promise<number> {
  const key = keyOf(typed)
  if (flags.to === undefined || flags.to.trim() === '')
    throw new UserError('CM0906', 'Name the file that gets the secret, such as --to .env.')
  const records = await projectFor(context, flags, hasKey(key))
  if (!(await hasKey(key)(records))) throw new UserError('CM0902', notThere(key, records))
  const { path, words } = await exportSecret(context, records, key, flags.to)
  for (const line of words) warnOn(context)(line)
  return printDone(context, flags, `${key} is in ${path}, which only you may read.`, { key, path })
}

function notThere(key: string, { directory }: Records): string {
  return `There is no secret ${key} for ${directory}.`
}

const LOOKS_LIKE_NAME = /^[A-Z][A-Z0-9_]{0,63}$/

/** The name that was typed. What is none may be a value, and is not repeated. */
function keyOf(typed: string): string {
  if (!LOOKS_LIKE_NAME.test(typed))
    throw new UserError(
      'CM0901',
      'This is not a valid name of a secret; use capital letters, digits and _, and begin with a letter, such as SERVICE_API_KEY.',
    )
  const problem = problemOfKey(typed)
  if (problem !== null) throw new UserError('CM0901', problem)
  return typed
}

function hasKey(key: string): (records: Records) => Promise<boolean> {
  return async records => (await listSecrets(records)).some(each => each.key === key)
}

/** The most projects of a workspace that are looked into. */
const MOST_PROJECTS = 500
const MOST_NAMED = 8

/**
 * The project that is meant: the directory itself; where that is no project and has some, the only one of which `isMeant` holds.
 * A `UserError` that names them if there is not exactly one.
 */
async function projectFor(
  context: CliContext,
  flags: DirectoryFlags,
  isMeant: (records: Records) => Promise<boolean>,
): Promise<Records> {
  const directory = directoryOf(context, flags)
  const [own] = await recordsAround({ ...context, directory })
  if (own === undefined) throw new UserError('CM0106', `${directory} is not a directory; name an existing one.`)
  const isItself = (await isMeant(own)) || (await hasSessions(own))
  const projects = isItself ? [] : await projectsIn(context, own.directory)
  if (projects.length === 0) return await openRecords({ ...context, directory })
  const meant: Records[] = []
  for (const each of projects) if (await isMeant(each)) meant.push(each)
  const [first] = meant
  if (first !== undefined && meant.length === 1) return await openRecords({ ...context, directory: first.directory })
  const among = meant.length > 1 ? meant : projects
  const named = among.slice(-MOST_NAMED).map(each => here(each.directory).trimStart())
  throw new UserError('CM1008', `${own.directory} contains several projects; name one of them with -C.`, {
    hint: `One of: ${among.length > MOST_NAMED ? '…, ' : ''}${named.join(', ')}`,
  })
}

/** The projects of a workspace in which a session has run, by name. */
async function projectsIn(context: CliContext, workspace: string): Promise<Records[]> {
  const folder = join(workspace, PROJECTS)
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => [])
  const names = entries.flatMap(each => (each.isDirectory() ? [each.name] : [])).sort()
  const found: Records[] = []
  for (const name of names.slice(-MOST_PROJECTS)) {
    const [records] = await recordsAround({ ...context, directory: join(folder, name) })
    if (records !== undefined && (await hasSessions(records))) found.push(records)
  }
  return found
}

/** Whether a session has run there, so that there are records of it. */
async function hasSessions(records: Records): Promise<boolean> {
  return (await pathExists(records.folder)) && (await records.sessions()).length > 0
}
