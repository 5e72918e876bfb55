import { existsSync, lstatSync, readdirSync, realpathSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { systemErrorCode } from '../../base/errors.ts'
import type { SessionSecrets } from '../../core/shapes/secrets.ts'
import { isWithin } from '../../platform/files.ts'
import { searchFiles } from '../../secrets/search.ts'
import type { LearningRedactor } from '../../secrets/secrets.ts'
import { openSecrets } from '../../secrets/store.ts'
import type { Records } from '../../session/records/records.ts'

/**
 * Opens a project's secrets for a session there. `binary`: the codex that runs its commands; `writable`: absolute paths of
 * further folders where they may write.
 */
export function openSessionSecrets(
  { root, folder, directory, secrets }: Pick<Records, 'root' | 'folder' | 'directory' | 'secrets'>,
  { binary, redactor, writable }: { binary: { path: string }; redactor: LearningRedactor; writable: readonly string[] },
): SessionSecrets {
  const store = openSecrets(secrets)
  const around = [directory, ...writable]
  const outside = writable.filter(path => !around.some(other => other !== path && isWithin(other, path)))
  return {
    get: key => store.get(key),
    unreadable: () => {
      const hidden = store.hidden().flatMap(path => placeOf(directory, path))
      const elsewhere = store.hiddenOutside().filter(isThere).flatMap(withoutLinks)
      const paths = [
        ...environmentFiles(directory),
        ...closedRecords({ root, folder, directory }, binary),
        ...hidden,
        ...elsewhere,
      ]
      return [...new Set(paths.map(asPattern))]
    },
    async search(since, wanted, signal) {
      const known = new Set([...store.hidden(), ...store.hiddenOutside()])
      const options = { since, secrets: wanted, signal, now: () => performance.now() }
      const found = [await searchFiles(directory, options)]
      for (const folder of outside) {
        const { files, problem } = await searchFiles(folder, options)
        found.push({ files: files.map(path => join(folder, path)), problem })
      }
      const files = [...new Set(found.flatMap(({ files }) => files))].filter(path => !known.has(path))
      return { files, problem: found.find(({ problem }) => problem !== null)?.problem ?? null }
    },
    hide: files => store.hide(files, path => isThere(resolve(directory, path))),
    refresh: () => redactor.refresh(),
  }
}

/**
 * Returns the paths that an agent's command may not read or create now; none if the project has no secrets.
 * @param usesThem whether the session may need some of its own
 */
export function closedPaths(
  { secrets }: Pick<Records, 'secrets'>,
  opened: Pick<SessionSecrets, 'unreadable'>,
  usesThem = false,
): () => readonly string[] {
  return () => (usesThem || existsSync(secrets) ? opened.unreadable() : [])
}

/** Returns absolute paths of all sessions' records, without those that codex and its commands need. */
export function closedRecords(
  { root, folder, directory }: Pick<Records, 'root' | 'folder' | 'directory'>,
  binary: { path: string },
): string[] {
  const copies = join(folder, 'bin')
  const needed = [isWithin(copies, binary.path) ? copies : dirname(binary.path), directory]
  return closedIn(join(root, 'state'), needed).map(asPattern)
}

const STAGES = ['development', 'production', 'test', 'staging', 'dev', 'prod']
/** Denied in the work directory even if missing: no agent may create one with a secret. */
const USUAL = ['.env', '.env.local', ...STAGES.flatMap(stage => [`.env.${stage}`, `.env.${stage}.local`])]
/** Files that only list variables. */
const SAMPLES = /\.(?:example|sample|template|dist)$/
/** Folders of installed or generated files, which hold no secrets of a project. */
const PASSED_OVER: ReadonlySet<string> = new Set(
  'node_modules .git .venv venv .tox .nox .mypy_cache .pytest_cache __pycache__ site-packages .codemachine'.split(' '),
)
const MOST_ENTRIES = 20_000
const MOST_FILES = 200
const MOST_DEPTH = 16

/** Returns the variables files of a work directory: the usual ones, and all existing ones, also in subfolders. */
function environmentFiles(directory: string): string[] {
  const found: string[] = []
  let left = MOST_ENTRIES
  const look = (folder: string, depth: number) => {
    for (const entry of entriesOf(folder)) {
      if (--left < 0 || found.length >= MOST_FILES) return
      if (entry.isDirectory()) {
        if (depth < MOST_DEPTH && !PASSED_OVER.has(entry.name)) look(join(folder, entry.name), depth + 1)
      } else if (/^\.env(?:\..+)?$/.test(entry.name) && !SAMPLES.test(entry.name)) {
        found.push(...withoutLinks(join(folder, entry.name)))
      }
    }
  }
  look(directory, 0)
  const usual = USUAL.map(name => join(directory, name)).flatMap(path => (isThere(path) ? [] : [path]))
  return [...found, ...usual]
}

/** Returns all paths of a folder except those on the way to a needed path. */
function closedIn(folder: string, needed: readonly string[]): string[] {
  if (!needed.some(path => isWithin(folder, path) && existsSync(path))) return existsSync(folder) ? [folder] : []
  if (needed.includes(folder)) return []
  return entriesOf(folder)
    .slice(0, MOST_ENTRIES)
    .flatMap(entry => closedIn(join(folder, entry.name), needed))
}

/**
 * Converts a path to a codex pattern: `?` replaces special and control characters. Codex takes `[`, `*` or `?` as pattern
 * signs, and skips a path with a tab or a line end.
 */
function asPattern(path: string): string {
  return /[*?[\p{Cc}]/u.test(path) ? path.replace(/[*?[\]{}\\\p{Cc}]/gu, '?') : path
}

/**
 * Returns a denied file only if its folder exists in the work directory: codex would create a file in the folder's place. It
 * skips missing files of git: the empty placeholder would be a broken object.
 */
function placeOf(directory: string, path: string): string[] {
  try {
    if (/(?:^|\/)\.git\//.test(path) && !isThere(join(directory, path))) return []
    const folder = realpathSync(dirname(join(directory, path)))
    return isWithin(directory, folder) ? withoutLinks(join(folder, path.slice(path.lastIndexOf('/') + 1))) : []
  } catch (error) {
    if (systemErrorCode(error) === null) throw error
    return []
  }
}

/** Returns the file that a link leads to; none for a dead link, or a folder, which commands may need. */
function withoutLinks(path: string): string[] {
  if (!isThere(path)) return [path]
  try {
    const real = realpathSync(path)
    return lstatSync(real).isFile() ? [real] : []
  } catch (error) {
    if (systemErrorCode(error) === null) throw error
    return []
  }
}

function isThere(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined
}

function entriesOf(folder: string) {
  try {
    return readdirSync(folder, { withFileTypes: true })
  } catch (error) {
    if (systemErrorCode(error) === null) throw error
    return []
  }
}
