import { lstat, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { systemErrorCode, UserError } from '../base/errors.ts'
import { clipEnd } from '../base/text.ts'
import { readTextFile, renameAsBroken, writeFileInside } from '../workspace/files/inside-directory.ts'
import { planPaths, projectFolders, specificationFile } from '../workspace/memory/plan-files.ts'
import { makeMemoryFolder, memoryRoot } from '../workspace/memory/session-memory.ts'

/** The memory file of an agent, from the work directory: `.codemachine/memory/.frontend-memory.md` of `frontend-dev`. */
export function agentMemoryFile(name: string): string {
  return join(promptPaths.memoryFolder, `.${name.replace(/-dev$/, '')}-memory.md`)
}

/**
 * Appends what an agent has done to its memory file, and folds the oldest entries so that the file keeps to its size.
 * Within one process one writes after the other; of two processes that write at the same moment, the later one counts.
 * Answers what was in the way (a sentence); null if nothing was.
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

/** What is being written, by file. */
const writing = new Map<string, Promise<unknown>>()

/** A file has at most 64 KiB unless somebody else wrote into it. */
const MOST_READ_BYTES = 1024 * 1024

/** An agent that did its work is not failed for want of a place to note it. */
async function writeOrExplain(root: string, name: string, entry: MemoryEntry): Promise<string | null> {
  try {
    return await appendEntry(root, name, entry)
  } catch (error) {
    if (error instanceof UserError) return error.message
    const code = systemErrorCode(error)
    if (code === null) throw error
    return `${agentMemoryFile(name)} cannot be written (${code}), so what ${name} did is not kept there.`
  }
}

async function appendEntry(root: string, name: string, entry: MemoryEntry): Promise<string | null> {
  const obstacle = await makeMemoryFolder(root, promptPaths.memoryFolder)
  if (obstacle !== null) {
    const what = obstacle.kind === 'link' ? 'is a link' : 'is not a folder'
    return `${obstacle.path} ${what}, so ${name} has no memory; put a folder in its place.`
  }
  const file = agentMemoryFile(name)
  const kind = await kindOf(join(root, file))
  if (kind === 'other') return `${file} is a link or no file, so what ${name} did is not kept there; remove it.`
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

/** What an agent was asked for once, and what came of it. */
export interface MemoryEntry {
  /** `frontend-dev-20261122T004530123`. */
  instance: string
  /** ISO 8601 in UTC. */
  at: string
  request: string
  result: string
}

/** The most of the whole file, of one entry, of what was folded, and of notes that are no entry; in bytes of UTF-8. */
const MOST_BYTES = 64 * 1024
const MOST_ENTRY_BYTES = 16 * 1024
const MOST_EARLIER_BYTES = 8 * 1024
const MOST_NOTES_BYTES = 8 * 1024
/** Title, headings, and the notes of what was cut. */
const MOST_TITLE_BYTES = 1024

/** The most characters of a request in an entry, and of a folded entry. */
const MOST_REQUEST = 2000
const MOST_LINE = 300

/** Begins an entry. What is written into one never looks like it. */
const HEADING = /^## [a-z][a-z0-9-]*-\d{8}T\d{9}$/
const EARLIER = '## Earlier'

interface MemoryParts {
  /** What stands before the first section, without the title. */
  notes: string
  /** Folded entries, one a line, the oldest first. */
  earlier: readonly string[]
  /** The oldest first, each with its heading. */
  entries: readonly string[]
}

/**
 * The text of an agent's memory file with one entry more. Above 64 KiB the oldest entries become a line each under
 * `## Earlier`, which has 8 KiB and lets its oldest lines go; no entry is cut, but one of more than 16 KiB as it comes.
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

/** A line that would begin another entry is set in. */
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

/** An entry in a line: whose it is, what it was asked for, and the first that it said. */
function foldEntry(entry: string): string {
  const [heading = '', ...lines] = entry.split('\n').map(line => line.trim())
  const said = lines.filter(line => line !== '' && !/^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(line))
  const asked = said.find(line => line.startsWith('> '))?.slice(2) ?? ''
  const result = said.find(line => !line.startsWith('>')) ?? ''
  return `- ${heading.slice(3)}: ${short(asked)} → ${short(result)}`
}

function short(text: string): string {
  return text.length <= MOST_LINE / 2 ? text : `${text.slice(0, MOST_LINE / 2 - 1).toWellFormed()}…`
}

/** The last texts that fit, with what stands between two. */
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

/** What prompts say of where a project's files are; relative to the work directory. */
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
 * What an agent said last, without what codex puts around it: colours, the header and what came before the last answer
 * where a whole transcript was caught, the count of tokens, marks for citations and for codex's own apps.
 */
export function cleanResult(text: string): string {
  const plain = stripVTControlCharacters(text).replaceAll('\r\n', '\n')
  return withoutMemoryNotes(lastAnswer(plain.split('\n')).join('\n'))
    .replace(/\n(\[[^\]\n]*\] )?tokens used:?\s+[\d,.]+\s*$/, '')
    .replace(/ ?【F:([^【†】\n]+)†L(\d+)[^【】\n]*】/g, ' ($1:$2)')
    .replace(/^::[a-z][a-z-]*\{[^\n]*\}$/gm, '')
    .trim()
}

/** Of a transcript what stands after the last line that says who speaks: codex. Older versions put the time before it. */
function lastAnswer(lines: readonly string[]): readonly string[] {
  const header = lines.findIndex(line => /^(\[[^\]]*\] )?OpenAI Codex v\d/.test(line))
  // Anybody may quote the header; before a transcript stand only lines that say how codex was started.
  if (header === -1 || header > 5 || !/^-{4,}$/.test(lines[header + 1] ?? '')) return lines
  const speaks = lines.findLastIndex(line => /^(\[[^\]]*\] )?codex$/.test(line))
  if (speaks > header) return lines.slice(speaks + 1)
  const ends = lines.findIndex((line, index) => index > header + 1 && /^-{4,}$/.test(line))
  return lines.slice(ends + 1)
}

/** What codex has an answer say about memories of its own. */
function withoutMemoryNotes(text: string): string {
  const [before = '', ...noted] = text.split(NOTES_START)
  return noted.reduce((all, part) => {
    const end = part.indexOf(NOTES_END)
    return end === -1 ? `${all}${NOTES_START}${part}` : all + part.slice(end + NOTES_END.length)
  }, before)
}

const NOTES_START = '<oai-mem-citation>'
const NOTES_END = '</oai-mem-citation>'
