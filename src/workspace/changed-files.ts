import { type GitSetting, runGit } from './git-command.ts'
import { onOwnObjects, type PrivateGit, withoutIndex } from './private-git.ts'

/** A file that differs between two trees. A renamed one is a deleted and an added one. */
export interface ChangedFile {
  /** Relative to the work directory, with `/`. */
  path: string
  how: 'added' | 'changed' | 'deleted'
  /** Hashes of what it was and is; null where it was or is no regular file. */
  before: string | null
  after: string | null
}

/** All files that differ between two trees of the private git directory; null if one of the trees is gone. */
export async function changedFiles(git: PrivateGit, before: string, after: string): Promise<ChangedFile[] | null> {
  if (before === after) return []
  const args = ['diff-tree', '-r', '-z', '--raw', '--no-renames', '--no-abbrev', '--end-of-options', before, after]
  const result = await firstThatWorks(git, args)
  return result === null ? null : parseRaw(result)
}

/** All files of a tree, as though they had been added; null if it is gone. */
export async function filesOfTree(git: PrivateGit, tree: string): Promise<ChangedFile[] | null> {
  const result = await firstThatWorks(git, ['ls-tree', '-r', '-z', '--full-tree', tree])
  if (result === null) return null
  return [...result.matchAll(/(\d{6}) \S+ ([0-9a-f]+)\t([^\0]*)\0/g)].map(([, mode = '', hash = '', path = '']) => {
    return { path: readable(path), how: 'added', before: null, after: isRegular(mode) ? hash : null }
  })
}

/**
 * The lines that a changed file has more than before, and all of an added one, as latin1; a line that was only moved is
 * none. Nothing of what is larger than 1 MiB, nor of what comes after the first 64 MiB.
 */
export async function addedLines(git: PrivateGit, files: readonly ChangedFile[]): Promise<Map<string, string[]>> {
  const wanted = files.flatMap(({ before, after }) => [before, after]).filter(hash => hash !== null)
  const texts = await readBlobs(git, [...new Set(wanted)])
  const lines = new Map<string, string[]>()
  for (const { path, before, after } of files) {
    const text = after === null ? undefined : texts.get(after)
    if (text === undefined) continue
    lines.set(path, linesBeyond(before === null ? '' : (texts.get(before) ?? ''), text))
  }
  return lines
}

/**
 * What codemachine itself holds comes first: an agent can write other things into the repository that objects are
 * borrowed from.
 */
async function firstThatWorks(git: PrivateGit, args: readonly string[], input?: string): Promise<string | null> {
  for (const setting of [onOwnObjects(git), withoutIndex(git)]) {
    const { ok, stdout } = await runGit(setting, args, input)
    if (ok) return stdout
  }
  return null
}

function parseRaw(raw: string): ChangedFile[] {
  const pattern = /:(\d{6}) (\d{6}) ([0-9a-f]+) ([0-9a-f]+) (\w)\d*\0([^\0]*)\0/g
  return [...raw.matchAll(pattern)].map(([, oldMode = '', newMode = '', old = '', now = '', status, path = '']) => ({
    path: readable(path),
    how: status === 'A' ? 'added' : status === 'D' ? 'deleted' : 'changed',
    before: isRegular(oldMode) ? old : null,
    after: isRegular(newMode) ? now : null,
  }))
}

function isRegular(mode: string): boolean {
  return mode.startsWith('100')
}

async function readBlobs(git: PrivateGit, hashes: readonly string[]): Promise<Map<string, string>> {
  const setting = withoutIndex(git)
  const texts = new Map<string, string>()
  for (const some of await inPortions(setting, hashes)) {
    const { stdout } = await runGit(setting, ['cat-file', '--batch'], asLines(some))
    for (let at = 0; at < stdout.length; ) {
      const end = stdout.indexOf('\n', at)
      const [hash = '', , size = ''] = stdout.slice(at, end).split(' ')
      const length = Number(size)
      if (end === -1 || !Number.isInteger(length)) break
      texts.set(hash, stdout.slice(end + 1, end + 1 + length))
      at = end + 1 + length + 1
    }
  }
  return texts
}

/** Those that are small enough, in portions that can be read at once. */
async function inPortions(setting: GitSetting, hashes: readonly string[]): Promise<string[][]> {
  if (hashes.length === 0) return []
  const { stdout } = await runGit(setting, ['cat-file', '--batch-check'], asLines(hashes))
  const portions: string[][] = []
  let total = 0
  let room = 0
  for (const [, hash = '', size] of stdout.matchAll(/^([0-9a-f]+) blob (\d+)$/gm)) {
    const bytes = Number(size)
    if (bytes > largest || total + bytes > most) continue
    total += bytes
    if (room < bytes) {
      portions.push([])
      room = portion
    }
    room -= bytes
    portions.at(-1)?.push(hash)
  }
  return portions
}

function linesBeyond(before: string, after: string): string[] {
  const known = new Map<string, number>()
  for (const line of before.split('\n')) known.set(line, (known.get(line) ?? 0) + 1)
  return after.split('\n').filter(line => {
    const left = known.get(line) ?? 0
    known.set(line, left - 1)
    return left <= 0
  })
}

function asLines(hashes: readonly string[]): string {
  return hashes.map(hash => `${hash}\n`).join('')
}

function readable(latin1: string): string {
  return Buffer.from(latin1, 'latin1').toString('utf8')
}

const largest = 1024 * 1024
const portion = 16 * 1024 * 1024
const most = 64 * 1024 * 1024
