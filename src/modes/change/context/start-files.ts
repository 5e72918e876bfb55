import { opendir } from 'node:fs/promises'
import { messageOf } from '../../../base/errors.ts'
import { truncate } from '../../../base/text.ts'
import { findCommands } from './commands.ts'
import { readManifests } from './manifests.ts'
import { type Project, type ProjectFile, readProjectFile } from './project-file.ts'

/** What is looked for at the top of a project, the most telling first: its name, and what of its text is told. */
const LOOKED_FOR: readonly { name: RegExp; tell?(text: string): string }[] = [
  { name: /^SERVER_RUN\.md$/i },
  { name: /^README(?:\.\w{1,10})?$/i },
  { name: /^start[\w.-]*\.sh$/i },
  { name: /^(?:GNU)?Makefile$/i, tell: targetsOf },
  { name: /^package\.json$/ },
  { name: /^pyproject\.toml$/ },
  { name: /^(?:docker-)?compose\.ya?ml$/i },
]
const MANIFESTS: ReadonlySet<string> = new Set(['package.json', 'pyproject.toml'])

/** Names that are looked at in a folder, and files that are told. */
const MOST_NAMES = 10_000
const MOST_FILES = 20
/** What of each is told, in characters, and of all together as JSON, in bytes: what a look finds stays in its event. */
const MOST_TEXT = 4_000
const MOST_TOGETHER = 40_000
const MOST_BYTES = 256 * 1024

/**
 * What there is at the top of a project by which a person starts and tests it: of README, SERVER_RUN.md, start*.sh and compose.yml
 * their beginning, of a Makefile its targets, of package.json and pyproject.toml their scripts. No link is followed, and what
 * cannot be read is said in its place. Rejects only if it is broken off.
 */
export async function findStartFiles(
  project: Project,
  signal: AbortSignal,
): Promise<{ files: { path: string; text: string }[] }> {
  const names = await filesAtTop(project.root, signal)
  const wanted = LOOKED_FOR.flatMap(({ name: pattern, tell }) =>
    names.filter(name => pattern.test(name)).map(name => ({ name, tell })),
  )
  const files: { path: string; text: string }[] = []
  let room = MOST_TOGETHER
  for (const { name, tell } of wanted.slice(0, MOST_FILES)) {
    signal.throwIfAborted()
    const told = MANIFESTS.has(name) ? await scriptsOf(project, name, names, signal) : await textOf(project, name, tell)
    const text = truncate(told.trim(), MOST_TEXT)
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

async function textOf(project: Project, name: string, tell = (text: string) => text): Promise<string> {
  const file = await readProjectFile(project, name, MOST_BYTES)
  return file.kind === 'text' ? tell(file.text) : unreadText(whyUnread(file))
}

function unreadText(why: string): string {
  return `(It ${why}; nothing of it was read.)`
}

function whyUnread(file: Exclude<ProjectFile, { kind: 'text' }>): string {
  switch (file.kind) {
    case 'binary':
      return 'is no text'
    case 'huge':
      return 'is larger than 256 KiB'
    case 'gone':
      return 'is gone'
    case 'secret':
      return 'is named like a file with secrets'
    case 'unread':
      return file.why
  }
}

/** The scripts of a manifest, and the commands that it is usually tested and started with. */
async function scriptsOf(
  project: Project,
  name: string,
  names: readonly string[],
  signal: AbortSignal,
): Promise<string> {
  try {
    const { manifests } = await readManifests(project, [name], signal)
    const [manifest] = manifests
    if (manifest === undefined) return unreadText('is gone')
    if (manifest.problem !== null) return unreadText(manifest.problem)
    const commands = await findCommands(project, names, manifests)
    const scripts = manifest.scripts.map(([script, run]) => `${line(script, 80)}: ${line(run, 240)}`)
    const usual = commands.filter(({ from }) => from === name).map(({ kind, run }) => `${kind}: ${run}`)
    return [
      ...(scripts.length === 0 ? ['It has no scripts.'] : ['Scripts:', ...scripts]),
      ...(usual.length === 0 ? [] : ['Usually run as:', ...usual]),
    ].join('\n')
  } catch (error) {
    signal.throwIfAborted()
    return unreadText(`cannot be read: ${line(messageOf(error), 200)}`)
  }
}

/** The targets of a Makefile that a person types, with the first line of what each runs. */
function targetsOf(text: string): string {
  const lines = text.split('\n')
  const targets = lines.flatMap((each, at) => {
    const [, names] = /^([A-Za-z0-9][\w./ -]{0,100}):(?!=)/.exec(each) ?? []
    if (names === undefined) return []
    const next = lines[at + 1] ?? ''
    return [`make ${names.trim()}${next.startsWith('\t') ? `: ${line(next, 160)}` : ''}`]
  })
  return targets.length === 0 ? 'It has no targets.' : targets.join('\n')
}

function line(text: string, most: number): string {
  return truncate(
    text
      .slice(0, 4 * most)
      .trim()
      .replace(/\s+/g, ' '),
    most,
  )
}
