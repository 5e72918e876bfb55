import { createHash, randomUUID } from 'node:crypto'
import { createReadStream, type Dirent } from 'node:fs'
import { copyFile, lstat, mkdir, readdir, rename, rm } from 'node:fs/promises'
import { basename, dirname, join, relative } from 'node:path'
import * as v from 'valibot'
import { UserError, writing } from '../../../base/errors.ts'
import { pathExists, readBoundedText, writeWholeFile } from '../../../platform/files.ts'

/** A codex in the work directory that a person has named, and where its copy is kept. */
interface CodexToCopy {
  /** What the person named, absolute: the copy goes by that. */
  named: string
  /** The program that it stands for. */
  path: string
  /** The folder with all that belongs to the program; null: it is that file alone. */
  root: string | null
  /** Folder of the records for all copies. */
  folder: string
  /** Whether one that is missing is made. */
  makes: boolean
}

/**
 * The copy of a codex that lies where agents can write, made at its first use and kept: whatever a round writes there
 * afterwards is not run. `remark`: a sentence where the original is not what was copied. Null: there is none, and none is
 * made. Throws a `UserError` if it cannot be made.
 */
export async function copiedCodex(codex: CodexToCopy): Promise<{ path: string; remark: string | null } | null> {
  const kept = join(codex.folder, createHash('sha256').update(codex.named).digest('hex').slice(0, 12))
  const known = await readManifest(kept)
  if (known !== null) {
    const path = join(kept, known.program)
    if (await isAsCopied(codex, known)) return { path, remark: null }
    const remark = `The codex in the work directory (${codex.named}) has changed since codemachine copied it. An agent may have changed it, so the copy runs. If you changed it yourself, delete ${kept}.`
    return { path, remark }
  }
  if (!codex.makes) return null
  const made = await writing(codex.folder, () => makeCopy(codex, kept))
  return { path: join(kept, made.program), remark: null }
}

const MANIFEST = 'copied.json'

const fileSchema = v.object({ path: v.string(), size: v.number(), mtimeMs: v.number(), hash: v.string() })
const manifestSchema = v.object({ program: v.string(), files: v.array(fileSchema) })

/** Paths are relative to the folder of the program; `hash`: SHA-256 of the copy. */
type Manifest = v.InferOutput<typeof manifestSchema>

/** Null where there is no whole copy: the manifest is written last. */
async function readManifest(kept: string): Promise<Manifest | null> {
  const read = await readBoundedText(join(kept, MANIFEST), MANIFEST_BYTES)
  if (typeof read === 'string' || 'problem' in read) return null
  try {
    return v.parse(manifestSchema, JSON.parse(read.text))
  } catch {
    return null
  }
}

/** By size and time of each file, and by its hash where these differ. */
async function isAsCopied(codex: CodexToCopy, { program, files }: Manifest): Promise<boolean> {
  const { from, names } = await filesOf(codex)
  if (relative(from, codex.path) !== program || names.length !== files.length) return false
  for (const { path, size, mtimeMs, hash } of files) {
    const now = await lstat(join(from, path)).catch(() => null)
    if (now === null || !now.isFile() || now.size !== size) return false
    if (now.mtimeMs !== mtimeMs && (await hashOf(join(from, path))) !== hash) return false
  }
  return true
}

async function makeCopy(codex: CodexToCopy, kept: string): Promise<Manifest> {
  const { from, names } = await filesOf(codex)
  const staged = `${kept}.${randomUUID()}`
  try {
    await mkdir(staged, { recursive: true, mode: 0o700 })
    const files: Manifest['files'] = []
    for (const path of names) {
      const copy = join(staged, path)
      await mkdir(dirname(copy), { recursive: true, mode: 0o700 })
      const { size, mtimeMs } = await lstat(join(from, path))
      await copyFile(join(from, path), copy)
      files.push({ path, size, mtimeMs, hash: await hashOf(copy) })
    }
    const manifest = { program: relative(from, codex.path), files }
    await writeWholeFile(join(staged, MANIFEST), JSON.stringify(manifest))
    return await putInPlace(staged, kept, manifest)
  } finally {
    await rm(staged, { recursive: true, force: true })
  }
}

/** Answers what is in place then: a whole copy that another process has made meanwhile stays, for it may run. */
async function putInPlace(staged: string, kept: string, manifest: Manifest): Promise<Manifest> {
  try {
    await rename(staged, kept)
    return manifest
  } catch (error) {
    const other = await readManifest(kept)
    if (other !== null) return other
    if (!(await pathExists(kept))) throw error
  }
  await rm(kept, { recursive: true, force: true })
  await rename(staged, kept)
  return manifest
}

/** What has to be copied, relative to `from`: the native binary and what codex finds beside it (its helper, rg, bwrap). */
async function filesOf({ path, root, named }: CodexToCopy): Promise<{ from: string; names: string[] }> {
  if (root === null) return { from: dirname(path), names: [basename(path)] }
  const names: string[] = []
  const folders = ['']
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    const entries: Dirent[] = await readdir(join(root, folder), { withFileTypes: true }).catch(() => [])
    for (const entry of entries) {
      const name = join(folder, entry.name)
      if (entry.isFile()) names.push(name)
      // 50 MB that talk and listen; no round does.
      else if (entry.isDirectory() && entry.name !== 'voice') folders.push(name)
    }
    if (names.length + folders.length > MOST_FILES)
      throw new UserError(
        'CM0304',
        `${named} belongs to more than ${MOST_FILES} files; name a codex that npm installed.`,
      )
  }
  return { from: root, names: names.sort() }
}

const MANIFEST_BYTES = 1024 * 1024
/** Codex 0.169 has 5 of them. */
const MOST_FILES = 1000

async function hashOf(path: string): Promise<string> {
  const hash = createHash('sha256')
  for await (const bytes of createReadStream(path, { highWaterMark: 1024 * 1024 })) hash.update(bytes)
  return hash.digest('hex')
}
