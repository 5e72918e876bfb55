import { createHash, randomUUID } from 'node:crypto'
import { createReadStream, type Dirent } from 'node:fs'
import { copyFile, lstat, mkdir, readdir, rename, rm } from 'node:fs/promises'
import { basename, dirname, join, relative } from 'node:path'
import * as v from 'valibot'
import { UserError, writing } from '../../../base/errors.ts'
import { pathExists, readBoundedText, writeWholeFile } from '../../../platform/files.ts'

/** A codex in the work directory that a person has named, and the place of its copy. */
interface CodexToCopy {
  /** Absolute path that the person named; it identifies the copy. */
  named: string
  /** Path of its program. */
  path: string
  /** Folder with all files of the program; null: that file only. */
  root: string | null
  /** Folder of the records for all copies. */
  folder: string
  /** True: create a missing copy. */
  makes: boolean
}

/**
 * Returns the copy of a codex in a place that agents can write, made at first use: later changes of rounds never run.
 * `remark`: a sentence if the original has changed. Null: no copy exists and none is made. Throws a `UserError` if the copy
 * fails.
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

/** Files of a copy. Paths are relative to the folder of the program; `hash`: SHA-256 of the copy. */
type Manifest = v.InferOutput<typeof manifestSchema>

/** Returns the manifest; null: no complete copy, because the manifest is written last. */
async function readManifest(kept: string): Promise<Manifest | null> {
  const read = await readBoundedText(join(kept, MANIFEST), MANIFEST_BYTES)
  if (typeof read === 'string' || 'problem' in read) return null
  try {
    return v.parse(manifestSchema, JSON.parse(read.text))
  } catch {
    return null
  }
}

/** Compares size and time of each file, and the hash if they differ. */
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

/** Moves a copy into place, and returns its manifest. Keeps a complete copy of another process, because it may run. */
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

/** Returns the files to copy, relative to `from`: the native binary and its companions (helper, rg, bwrap). */
async function filesOf({ path, root, named }: CodexToCopy): Promise<{ from: string; names: string[] }> {
  if (root === null) return { from: dirname(path), names: [basename(path)] }
  const names: string[] = []
  const folders = ['']
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    const entries: Dirent[] = await readdir(join(root, folder), { withFileTypes: true }).catch(() => [])
    for (const entry of entries) {
      const name = join(folder, entry.name)
      if (entry.isFile()) names.push(name)
      // Skip 50 MB of speech files, which no round uses.
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
/** Most files of a codex; codex 0.169 has 5. */
const MOST_FILES = 1000

async function hashOf(path: string): Promise<string> {
  const hash = createHash('sha256')
  for await (const bytes of createReadStream(path, { highWaterMark: 1024 * 1024 })) hash.update(bytes)
  return hash.digest('hex')
}
