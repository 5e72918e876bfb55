import { realpath, stat } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { readTextFile } from './read-text-file.ts'

/** The person's git repository around a directory. All paths are absolute. */
export interface PersonRepository {
  /** The top of the work tree: the folder that holds `.git`. */
  root: string
  /** The work tree's own git directory (HEAD, index). */
  gitDir: string
  /** The git directory that worktrees share (objects, branches, config); `gitDir` itself for a plain repository. */
  commonDir: string
}

/** What a repository has checked out. */
export interface Head {
  /** Null for a branch without a commit, or where the references cannot be read (reftable). */
  commit: string | null
  /** Null when detached, or not readable. */
  branch: string | null
}

/** Finds the repository that a directory lies in, without running git: null if there is none. */
export async function findRepository(directory: string): Promise<PersonRepository | null> {
  for (let root = await realpath(directory); ; root = dirname(root)) {
    const gitDir = await gitDirectoryOf(root)
    if (gitDir !== null) return { root, gitDir, commonDir: await commonDirectoryOf(gitDir) }
    if (dirname(root) === root) return null
  }
}

/** Reads what is checked out, without running git; never throws for what it finds there. */
export async function readHead({ gitDir, commonDir }: PersonRepository): Promise<Head> {
  const head = await readLine(join(gitDir, 'HEAD'))
  if (head === null) return { commit: null, branch: null }
  const ref = targetOf(head)
  if (ref === null) return { commit: isHash(head) ? head : null, branch: null }
  const branch = ref.startsWith(branches) ? ref.slice(branches.length) : null
  if (branch === reftableBranch) return { commit: null, branch: null }
  return { commit: await resolveRef(commonDir, ref), branch }
}

async function gitDirectoryOf(root: string): Promise<string | null> {
  const path = join(root, '.git')
  const found = await stat(path).catch(() => null)
  if (found === null) return null
  const gitDir = found.isDirectory() ? path : await readPointer(path, root)
  // As git does: something else that is called `.git` does not end the search.
  if (gitDir === null || (await stat(join(gitDir, 'HEAD')).catch(() => null)) === null) return null
  return realpath(gitDir).catch(() => null)
}

/** The target of a `.git` file, as worktrees and submodules have it. */
async function readPointer(path: string, root: string): Promise<string | null> {
  const line = await readLine(path)
  const target = line?.match(/^gitdir: (.+)$/)?.[1]
  return target === undefined ? null : resolve(root, target)
}

async function commonDirectoryOf(gitDir: string): Promise<string> {
  const line = await readLine(join(gitDir, 'commondir'))
  if (line === null) return gitDir
  return realpath(resolve(gitDir, line)).catch(() => gitDir)
}

async function resolveRef(commonDir: string, name: string): Promise<string | null> {
  let ref = name
  for (let step = 0; step < symbolicSteps; step += 1) {
    if (!isSafeRef(ref)) return null
    const line = await readLine(join(commonDir, ref))
    if (line === null) return readPackedRef(commonDir, ref)
    const next = targetOf(line)
    if (next === null) return isHash(line) ? line : null
    ref = next
  }
  return null
}

async function readPackedRef(commonDir: string, ref: string): Promise<string | null> {
  const packed = await readTextFile(join(commonDir, 'packed-refs'), packedLimit)
  if (packed.kind !== 'text') return null
  const end = packed.text.indexOf(` ${ref}\n`)
  if (end === -1) return null
  const hash = packed.text.slice(packed.text.lastIndexOf('\n', end) + 1, end)
  return isHash(hash) ? hash : null
}

async function readLine(path: string): Promise<string | null> {
  const file = await readTextFile(path, lineLimit)
  if (file.kind !== 'text') return null
  const line = file.text.trimEnd()
  return line === '' ? null : line
}

function targetOf(line: string): string | null {
  return line.match(/^ref: *(.+)$/)?.[1] ?? null
}

function isSafeRef(ref: string): boolean {
  return ref.startsWith('refs/') && !ref.split('/').some(part => part === '' || part === '..')
}

function isHash(text: string): boolean {
  return /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/.test(text)
}

const branches = 'refs/heads/'
// What HEAD of a reftable repository says, for programs that know only files.
const reftableBranch = '.invalid'
const symbolicSteps = 5
const lineLimit = 16 * 1024
const packedLimit = 64 * 1024 * 1024
