import { opendir } from 'node:fs/promises'
import { truncate } from '../../../base/text.ts'
import { type Project, readProjectFile, whyUnread } from '../../../workspace/context/project-file.ts'

/** What is looked for at the top of a project, the most telling first. */
const LOOKED_FOR: readonly RegExp[] = [
  /^SERVER_RUN\.md$/i,
  /^README(?:\.\w{1,10})?$/i,
  /^start[\w.-]*\.sh$/i,
  /^(?:GNU)?Makefile$/i,
  /^package\.json$/,
  /^pyproject\.toml$/,
  /^(?:docker-)?compose\.ya?ml$/i,
]

/** Names that are looked at in a folder, and files that are told. */
const MOST_NAMES = 10_000
const MOST_FILES = 20
/** What of each is told, in characters, and of all together as JSON, in bytes: what a look finds stays in its event. */
const MOST_TEXT = 4_000
const MOST_TOGETHER = 40_000
const MOST_BYTES = 256 * 1024

/**
 * The beginning of each file at the top of a project by which a person starts and tests it. No link is followed, and what cannot
 * be read is said in its place. Rejects only if it is broken off.
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

/** Names of the regular files at the top, sorted; none if it cannot be read. */
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
