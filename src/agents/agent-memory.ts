import { lstat, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { systemErrorCode, UserError } from '../base/errors.ts'
import { clipEnd, truncate } from '../base/text.ts'
import { readTextFile, renameAsBroken, whatIsThere, writeFileInside } from '../workspace/files/inside-directory.ts'
import { makeMemoryFolder } from '../workspace/memory/memory-folder.ts'
import { memoryRoot, planPaths, projectFolders } from '../workspace/memory/memory-paths.ts'
import { specificationFile } from '../workspace/memory/plan-files.ts'

/**
 * Path of an agent's memory file, relative to the work directory: `.codemachine/memory/.frontend-memory.md` for
 * `frontend-dev`.
 */
export function agentMemoryFile(name: string): string {
  return join(promptPaths.memoryFolder, `.${name.replace(/-dev$/, '')}-memory.md`)
}

/**
 * Appends a result to an agent's memory file, and folds the oldest entries to keep the file within its size. Writes of
 * one process are queued; of two processes that write at once, the later one wins. Returns a sentence about what went
 * wrong; `null` on success.
 */
export async function rememberResult(directory: string, name: string, entry: MemoryEntry): Promise<string | null> {
  const root = await realpath(directory)
  const path = join(root, agentMemoryFile(name))
  const before = writing.get(path) ?? Promise.resolve()
  const written = before.then(() => writeOrExplain(root, name, entry))
  writing.set(path, written)
  try {
    return await written
  } finally {
    if (writing.get(path) === written) writing.delete(path)
  }
}

/** The last queued write of each file. */
const writing = new Map<string, Promise<unknown>>()

/** Codemachine keeps a file within 64 KiB, but others may write to it. */
const MOST_READ_BYTES = 1024 * 1024

/** Returns write errors as sentences: they must not fail an agent that has done its work. */
async function writeOrExplain(root: string, name: string, entry: MemoryEntry): Promise<string | null> {
  try {
    return await appendEntry(root, name, entry)
  } catch (error) {
    if (error instanceof UserError) return error.message
    const code = systemErrorCode(error)
    if (code === null) throw error
    return `${agentMemoryFile(name)} cannot be written (${code}), so codemachine cannot note the work of ${name} there.`
  }
}

async function appendEntry(root: string, name: string, entry: MemoryEntry): Promise<string | null> {
  const obstacle = await makeMemoryFolder(root, promptPaths.memoryFolder)
  if (obstacle !== null) {
    return `${obstacle.path} ${whatIsThere(obstacle)}, so ${name} has no memory; replace it by a folder.`
  }
  const file = agentMemoryFile(name)
  const kind = await kindOf(join(root, file))
  if (kind === 'other')
    return `${file} is a link or no file, so codemachine cannot note the work of ${name} there; remove it.`
  const read = kind === 'missing' ? null : await readTextFile(join(root, file), MOST_READ_BYTES)
  const aside = read?.kind === 'broken' ? await renameAsBroken(root, file) : null
  await writeFileInside(root, file, addEntry(read?.kind === 'text' ? read.text : '', name, entry))
  if (read?.kind !== 'broken') return null
  return `${file} could not be read and was set aside as ${aside}: ${read.problem}`
}

async function kindOf(path: string): Promise<'missing' | 'file' | 'other'> {
  try {
    return (await lstat(path)).isFile() ? 'file' : 'other'
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return 'missing'
    throw error
  }
}

/** One task of an agent, and its result. */
export interface MemoryEntry {
  /** `frontend-dev-20261122T004530123`. */
  instance: string
  /** ISO 8601 in UTC. */
  at: string
  request: string
  result: string
}

/** Maximum bytes (UTF-8) of the whole file, of one entry, of all folded entries, and of notes that are not entries. */
const MOST_BYTES = 64 * 1024
const MOST_ENTRY_BYTES = 16 * 1024
const MOST_EARLIER_BYTES = 8 * 1024
const MOST_NOTES_BYTES = 8 * 1024
/** Reserved for title, headings, and the marks of cuts. */
const MOST_TITLE_BYTES = 1024

/** Maximum characters of a request in an entry, and of a folded entry. */
const MOST_REQUEST = 2000
const MOST_LINE = 300

/** The first line of an entry. Lines within an entry are escaped so that they never match. */
const HEADING = /^## [a-z][a-z0-9-]*-\d{8}T\d{9}$/
const EARLIER = '## Earlier'

interface MemoryParts {
  /** Text before the first section, without the title. */
  notes: string
  /** Folded entries, one per line, oldest first. */
  earlier: readonly string[]
  /** Entries with their headings, oldest first. */
  entries: readonly string[]
}

/**
 * Returns an agent's memory file with one more entry. Above 64 KiB, the oldest entries become one line each under `##
 * Earlier`, which drops its oldest lines above 8 KiB. A new entry is cut at 16 KiB; no later cut is made.
 */
export function addEntry(text: string, name: string, entry: MemoryEntry): string {
  const { notes, earlier, entries } = parseMemory(text)
  const all = [...entries, entryText(entry)]
  const whole = fileText(name, { notes, earlier, entries: all })
  if (bytesOf(whole) <= MOST_BYTES && bytesOf(earlier.join('\n')) < MOST_EARLIER_BYTES) return whole
  const kept = lastThatFit(all, MOST_BYTES - MOST_EARLIER_BYTES - MOST_NOTES_BYTES - MOST_TITLE_BYTES)
  const folded = all.slice(0, all.length - kept.length).map(foldEntry)
  return fileText(name, { notes, earlier: lastThatFit([...earlier, ...folded], MOST_EARLIER_BYTES), entries: kept })
}

function entryText({ instance, at, request, result }: MemoryEntry): string {
  const asked = clipEnd(request.trim(), MOST_REQUEST)
  const quoted = asked.split('\n').map(line => `> ${line}`.trimEnd())
  const lines = [...quoted, '', ...(result.trim() || 'It said nothing.').split('\n').map(escapeHeading)]
  return `## ${instance}\n\n${at}\n${clipToBytes(lines.join('\n').toWellFormed(), MOST_ENTRY_BYTES)}`
}

/** Indents a line that would begin another entry. */
function escapeHeading(line: string): string {
  return HEADING.test(line.trimEnd()) || line.trimEnd() === EARLIER ? ` ${line}` : line
}

function parseMemory(text: string): MemoryParts {
  const sections = text.split(/\r?\n/).reduce<string[][]>(
    (all, line) => {
      const begins = HEADING.test(line) || line === EARLIER
      if (begins) all.push([line])
      else all.at(-1)?.push(line)
      return all
    },
    [[]],
  )
  const [first = [], ...rest] = sections
  const notes = first.filter(line => !line.startsWith('# Memory of ')).join('\n')
  const isEarlier = (section: readonly string[]) => section[0] === EARLIER
  return {
    notes: clipToBytes(notes.trim(), MOST_NOTES_BYTES),
    earlier: rest.filter(isEarlier).flatMap(section => section.filter(line => line.startsWith('- '))),
    entries: rest.filter(section => !isEarlier(section)).map(section => section.join('\n').trim()),
  }
}

function fileText(name: string, { notes, earlier, entries }: MemoryParts): string {
  const folded = earlier.length === 0 ? [] : [`${EARLIER}\n\n${earlier.join('\n')}`]
  const sections = [`# Memory of ${name}`, ...(notes === '' ? [] : [notes]), ...folded, ...entries]
  return `${sections.join('\n\n')}\n`
}

/** Returns an entry as one line: its instance, the request, and the first line of the result. */
function foldEntry(entry: string): string {
  const [heading = '', ...lines] = entry.split('\n').map(line => line.trim())
  const said = lines.filter(line => line !== '' && !/^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(line))
  const asked = said.find(line => line.startsWith('> '))?.slice(2) ?? ''
  const result = said.find(line => !line.startsWith('>')) ?? ''
  return `- ${heading.slice(3)}: ${truncate(asked, MOST_LINE / 2)} → ${truncate(result, MOST_LINE / 2)}`
}

/** Returns the last texts that fit into `most` bytes, including separators. */
function lastThatFit(texts: readonly string[], most: number): readonly string[] {
  let bytes = 0
  const first = texts.findLastIndex(text => {
    bytes += bytesOf(text) + 2
    return bytes > most
  })
  return texts.slice(first + 1)
}

function clipToBytes(text: string, most: number): string {
  if (bytesOf(text) <= most) return text
  const start = new TextDecoder().decode(Buffer.from(text).subarray(0, most)).replace(/\uFFFD+$/, '')
  return `${start}\n[… more was said than is kept here]`
}

function bytesOf(text: string): number {
  return Buffer.byteLength(text)
}

const plan = planPaths('')

/** Paths of a project's files in prompts, relative to the work directory. */
export const promptPaths = {
  agentsFolder: projectFolders.agents,
  /** The agents as data. */
  agentsConfig: join(projectFolders.agents, 'agents-config.json'),
  inputs: projectFolders.inputs,
  specification: specificationFile,
  tasks: plan.tasks,
  summary: plan.summary,
  earlier: plan.earlier,
  kb: join(memoryRoot, 'kb'),
  memoryFolder: projectFolders.memory,
}

/**
 * Returns an agent's last message without codex's additions: colours, token counts, marks of citations and of codex's own
 * apps. For a whole transcript: only the last answer.
 */
export function cleanResult(text: string): string {
  const plain = stripVTControlCharacters(text).replaceAll('\r\n', '\n')
  return withoutMemoryNotes(lastAnswer(plain.split('\n')).join('\n'))
    .replace(/\n(\[[^\]\n]*\] )?tokens used:?\s+[\d,.]+\s*$/, '')
    .replace(/ ?【F:([^【†】\n]+)†L(\d+)[^【】\n]*】/g, ' ($1:$2)')
    .replace(/^::[a-z][a-z-]*\{[^\n]*\}$/gm, '')
    .trim()
}

/** Returns the part of a transcript after its last `codex` line, which older versions prefix with the time. */
function lastAnswer(lines: readonly string[]): readonly string[] {
  const header = lines.findIndex(line => /^(\[[^\]]*\] )?OpenAI Codex v\d/.test(line))
  // A message may quote the header; a transcript's own header comes after at most a few lines about codex's start.
  if (header === -1 || header > 5 || !/^-{4,}$/.test(lines[header + 1] ?? '')) return lines
  const speaks = lines.findLastIndex(line => /^(\[[^\]]*\] )?codex$/.test(line))
  if (speaks > header) return lines.slice(speaks + 1)
  const ends = lines.findIndex((line, index) => index > header + 1 && /^-{4,}$/.test(line))
  return lines.slice(ends + 1)
}

/** Removes codex's citations of its own memories. */
function withoutMemoryNotes(text: string): string {
  const [before = '', ...noted] = text.split(NOTES_START)
  return noted.reduce((all, part) => {
    const end = part.indexOf(NOTES_END)
    return end === -1 ? `${all}${NOTES_START}${part}` : all + part.slice(end + NOTES_END.length)
  }, before)
}

const NOTES_START = '<oai-mem-citation>'
const NOTES_END = '</oai-mem-citation>'
