import { mkdir, readdir, rm } from 'node:fs/promises'
import { basename, isAbsolute, join, normalize } from 'node:path'
import * as v from 'valibot'
import { messageOf, systemErrorCode, UserError, writing } from '../base/errors.ts'
import { parsedOrNull } from '../base/json.ts'
import { problemOfKey, problemOfValue, type StoredSecret } from '../core/shapes/secrets.ts'
import { readBoundedNow, readBoundedText, writeWholeFile } from '../platform/files.ts'

/** A secret without its value. */
interface KnownSecret {
  key: string
  /** The command that tests it; null: none. */
  check: string | null
  /** Time of storage. */
  at: string
}

/**
 * The secrets of one project, a file each (`KEY.json`, mode 0600), and the list of work directory files that contain one
 * (`files.json`). Only a secret's file has its value; no error text does.
 */
interface SecretStore {
  /** Resolves with the secret; null: none of that name. Rejects with a `UserError` that names an unreadable file. */
  get(key: string): Promise<StoredSecret | null>
  /** Resolves with all, sorted by name; `broken`: those with an unreadable file, and why, one sentence. */
  list(): Promise<{ secrets: readonly KnownSecret[]; broken: readonly { key: string; problem: string }[] }>
  /** Stores or replaces a secret. Rejects with a `UserError` for an invalid name, value or check. */
  set(secret: StoredSecret, at: Date): Promise<void>
  /** Removes a secret, whatever its file contains; false: none of that name. */
  remove(key: string): Promise<boolean>
  /**
   * Returns files that only the person may read, relative to the work directory, with `/`, as of now. Synchronous and
   * bounded; empty if their list is missing or broken.
   */
  hidden(): readonly string[]
  /** Returns hidden files elsewhere (in a work tree's git directory, for example): absolute paths. */
  hiddenOutside(): readonly string[]
  /**
   * Hides more files, relative to the work directory or absolute. Hidden files stay hidden; missing ones are only dropped
   * above the limit. Rejects with a `UserError` if there are still too many; then as many as possible are hidden.
   * @param isThere returns true if a file exists; left out: all do
   */
  hide(files: readonly string[], isThere?: (path: string) => boolean): Promise<void>
}

/** Opens the secrets in this folder (`Records.secrets`), which is created on the first write. */
export function openSecrets(folder: string): SecretStore {
  let last: { bytes: Buffer | null; paths: readonly string[] } = { bytes: null, paths: [] }
  const all = (): readonly string[] => {
    const bytes = readBoundedNow(join(folder, HIDDEN_FILE), MOST_HIDDEN_BYTES)
    if (bytes === null) return []
    if (last.bytes === null || !bytes.equals(last.bytes)) last = { bytes, paths: hiddenIn(bytes) }
    return last.paths
  }
  const store: SecretStore = {
    async get(key) {
      refuseKey(key)
      const read = await readSecret(fileOf(folder, key), key)
      if (read === 'missing') return null
      if (typeof read === 'string')
        throw new UserError('CM0907', read, { hint: `codemachine secret set ${key} stores it again.` })
      return { key, value: read.value, check: read.check }
    },
    async list() {
      const secrets: KnownSecret[] = []
      const broken: { key: string; problem: string }[] = []
      for (const key of await keysIn(folder)) {
        const read = await readSecret(fileOf(folder, key), key)
        if (typeof read === 'object') secrets.push({ key, check: read.check, at: read.at })
        else if (read !== 'missing') broken.push({ key, problem: read })
      }
      return { secrets, broken }
    },
    async set({ key, value, check }, at) {
      refuseKey(key)
      const problem = problemOfValue(value) ?? problemOfCheck(check)
      if (problem !== null) throw new UserError('CM0903', problem)
      const keys = await keysIn(folder)
      if (!keys.includes(key) && keys.length >= MOST_SECRETS)
        throw new UserError('CM0903', `A project has at most ${MOST_SECRETS} secrets; remove one first.`)
      await write(folder, `${key}.json`, { v: 1, key, value, check, at: at.toISOString() })
    },
    async remove(key) {
      refuseKey(key)
      if (!(await keysIn(folder)).includes(key)) return false
      await rm(fileOf(folder, key), { force: true, recursive: true })
      return true
    },
    hidden: () => all().filter(isRelative),
    hiddenOutside: () => all().filter(isAbsolutePath),
    async hide(paths, isThere = () => true) {
      const known = [...new Set([...all(), ...paths.filter(path => isRelative(path) || isAbsolutePath(path))])]
      const wanted = known.length > MOST_HIDDEN ? known.filter(isThere) : known
      const kept = wanted.slice(0, MOST_HIDDEN)
      const [files, outside] = [kept.filter(isRelative), kept.filter(isAbsolutePath)]
      if (kept.join('\0') !== all().join('\0'))
        await write(folder, HIDDEN_FILE, { v: 1, files, ...(outside.length === 0 ? {} : { outside }) })
      if (wanted.length === kept.length) return
      throw new UserError(
        'CM0908',
        `More than ${MOST_HIDDEN} files contain a secret, and codemachine cannot hide so many files from agents.`,
        { hint: 'Remove the files that the last command made, then continue the session.' },
      )
    },
  }
  return store
}

const HIDDEN_FILE = 'files.json'
/** Room for a value of 64 KiB, with every byte written as `\u0001`, and a check. */
const MOST_BYTES = 1024 * 1024
const MOST_SECRETS = 100
/** Each is in an argument of codex (128 KiB), and costs each command 10 ms. */
const MOST_HIDDEN = 200
/** Room for the longest Linux paths, with every byte written as `\u0001`. */
const MOST_HIDDEN_BYTES = MOST_HIDDEN * 4096 * 6 + MOST_BYTES
const MOST_CHECK = 10_000

const secretSchema = v.object({
  v: v.literal(1, 'use 1'),
  key: v.string('use a text'),
  value: v.string('use a text'),
  check: v.nullable(v.string('use a text or null')),
  at: v.string('use a time'),
})
const hiddenSchema = v.object({
  v: v.literal(1),
  files: v.array(v.string()),
  /** Left out: none, or written by an earlier version. */
  outside: v.optional(v.array(v.string()), []),
})

function fileOf(folder: string, key: string): string {
  return join(folder, `${key}.json`)
}

function refuseKey(key: string): void {
  const problem = problemOfKey(key)
  if (problem !== null) throw new UserError('CM0901', problem)
}

function problemOfCheck(check: string | null): string | null {
  if (check === null) return null
  if (check.trim() === '') return 'The check is empty; give a command, or leave it out.'
  if (check.length > MOST_CHECK) return `The check has more than ${MOST_CHECK} characters; put it into a script.`
  return check.includes('\0') ? 'The check contains a zero byte, and a command cannot.' : null
}

/** Resolves with the sorted names of all secrets. Throws a `UserError` if the folder is unreadable. */
async function keysIn(folder: string): Promise<string[]> {
  try {
    const names = await readdir(folder)
    return names
      .flatMap(name => (name.endsWith('.json') ? [basename(name, '.json')] : []))
      .filter(key => problemOfKey(key) === null)
      .sort()
      .slice(0, MOST_SECRETS)
  } catch (error) {
    const code = systemErrorCode(error)
    if (code === 'ENOENT') return []
    if (code === null) throw error
    throw new UserError('CM0907', `The secrets in ${folder} cannot be read: ${messageOf(error)}.`, { cause: error })
  }
}

/** Reads a secret; `missing`, or a sentence why it is unreadable. Parser messages quote values, so they are not shown. */
async function readSecret(path: string, key: string): Promise<v.InferOutput<typeof secretSchema> | string> {
  const read = await readBoundedText(path, MOST_BYTES)
  if (read === 'missing') return 'missing'
  if ('problem' in read) return `${path} ${read.problem}.`
  const parsed = v.safeParse(secretSchema, parsedOrNull(read.text))
  const isSound = parsed.success && parsed.output.key === key && problemOfValue(parsed.output.value) === null
  return isSound ? parsed.output : `${path} does not hold a secret that codemachine stored.`
}

function hiddenIn(bytes: Buffer): string[] {
  const parsed = v.safeParse(hiddenSchema, parsedOrNull(bytes.toString('utf8')))
  if (!parsed.success) return []
  const { files, outside } = parsed.output
  return [...files.filter(isRelative), ...outside.filter(isAbsolutePath)].slice(0, MOST_HIDDEN)
}

function isRelative(path: string): boolean {
  return path !== '' && !path.startsWith('/') && !path.includes('\0') && !path.split('/').includes('..')
}

function isAbsolutePath(path: string): boolean {
  return isAbsolute(path) && normalize(path) === path && !path.includes('\0')
}

async function write(folder: string, name: string, content: unknown): Promise<void> {
  await writing(folder, async () => {
    await mkdir(folder, { recursive: true, mode: 0o700 })
    await writeWholeFile(join(folder, name), JSON.stringify(content))
  })
}
