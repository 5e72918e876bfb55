import { opendir } from 'node:fs/promises'
import { truncate } from '../../base/text.ts'
import { type Project, readProjectFile, whyUnread } from './project-file.ts'

/** Files to find at the top of a project, the most useful first. */
const LOOKED_FOR: readonly RegExp[] = [
  /^SERVER_RUN\.md$/i,
  /^README(?:\.\w{1,10})?$/i,
  /^start[\w.-]*\.sh$/i,
  /^(?:GNU)?Makefile$/i,
  /^package\.json$/,
  /^pyproject\.toml$/,
  /^(?:docker-)?compose\.ya?ml$/i,
]

/** Most names to read in a folder, and most files to return. */
const MOST_NAMES = 10_000
const MOST_FILES = 20
/** Most characters per file, and most bytes of all as JSON: the result stays in its event. */
const MOST_TEXT = 4_000
const MOST_TOGETHER = 40_000
const MOST_BYTES = 256 * 1024

/**
 * Returns the beginning of each file at the top of a project that says how to start or test it. Follows no links, and notes
 * unreadable files. Rejects only if it is interrupted.
 */
export async function findStartFiles(
  project: Project,
  signal: AbortSignal,
): Promise<{ files: { path: string; text: string }[] }> {
  const names = await filesAtTop(project.root, signal)
  const wanted = LOOKED_FOR.flatMap(pattern => names.filter(name => pattern.test(name)))
  const files: { path: string; text: string }[] = []
  let room = MOST_TOGETHER
  for (const name of wanted.slice(0, MOST_FILES)) {
    signal.throwIfAborted()
    const file = await readProjectFile(project, name, MOST_BYTES)
    const told = file.kind === 'text' ? file.text.trim() : `(It ${whyUnread(file, '256 KiB')}; nothing of it was read.)`
    const text = truncate(told, MOST_TEXT)
    room -= Buffer.byteLength(JSON.stringify({ path: name, text }))
    if (room < 0) break
    files.push({ path: name, text })
  }
  return { files }
}

/** Returns the names of the regular files at the top, sorted; none if it is unreadable. */
async function filesAtTop(root: string, signal: AbortSignal): Promise<string[]> {
  const names: string[] = []
  try {
    let seen = 0
    for await (const entry of await opendir(root)) {
      signal.throwIfAborted()
      if (++seen > MOST_NAMES) break
      if (entry.isFile()) names.push(entry.name)
    }
  } catch {
    signal.throwIfAborted()
  }
  return names.sort()
}
