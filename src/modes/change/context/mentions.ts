import { codeBlock } from '../../../base/markdown.ts'
import { formatBytes } from '../../../base/text.ts'
import { pathInside } from '../../../platform/files.ts'
import { type Project, type ProjectFile, readProjectFile } from '../../../workspace/context/project-file.ts'
import { clipBytes, oneLine, quoted } from '../../../workspace/context/sections.ts'
import { findSymbols, type SymbolPlace } from './symbols.ts'

/** Files that a request names, with their content as Markdown. */
interface Mentions {
  /** Relative to the work directory; those with `@` first. */
  files: string[]
  text: string
  notes: string[]
}

interface Mention {
  path: string
  /** Reason for the file, a note in brackets. */
  why: string
  /** Relevant line, from 1; null: none. */
  line: number | null
}

const MOST_REQUEST = 64 * 1024
const MOST_FILES = 24
const MOST_AT = 16
/** Most files per name; a name of more files counts for none. */
const MOST_MEANT = 3
const MOST_BYTES_AT = 12 * 1024
const MOST_BYTES_OTHER = 6 * 1024
/** Bytes of a file if there are many, while there is space. */
const LEAST_BYTES = 1024
const MOST_BYTES = 35 * 1024
const WITH_AT = 'named with @'

/**
 * Finds the files that a request names: `@path` and `@"a path"` first (as in the composer, ignored files too), then paths
 * and file names, then names that files define. Reads only files of the project.
 */
export async function findMentions(
  project: Project,
  { request, paths, signal }: { request: string; paths: readonly string[]; signal: AbortSignal },
): Promise<Mentions> {
  const text = project.redact(request).slice(0, MOST_REQUEST)
  const names = indexOfNames(paths)
  const found = new Map<string, Mention>()
  const notes: string[] = []
  const add = (path: string, why: string, line: number | null = null) => {
    const before = found.get(path)
    if (before === undefined && found.size < MOST_FILES) found.set(path, { path, why, line })
    // A named file, too, is shown from the line that defines the requested name.
    else if (before !== undefined && before.line === null && line !== null)
      found.set(path, { ...before, why: `${before.why}, ${why}`, line })
  }
  for (const written of atWords(text)) {
    const meant = await meantByAt(project, written, names)
    if (typeof meant === 'string') notes.push(meant)
    else for (const path of meant.paths) add(path, WITH_AT, meant.line)
  }
  const { files, symbols, words } = namesIn(text)
  for (const written of files)
    for (const path of meantByName(project, written, names)) add(path, 'named in the request')
  for (const symbol of symbols)
    for (const path of fewest(names.byStem.get(stemOf(symbol)))) add(path, `named like ${symbol}`)
  const { places, left } = await findSymbols(project.root, symbols, paths, signal)
  for (const place of places) add(place.path, describeSymbol(place), place.line)
  if (left > 0) notes.push(`${left} source files were not searched for names from the request: there are too many.`)
  for (const word of words) for (const path of fewest(names.byStem.get(stemOf(word)))) add(path, `named like "${word}"`)
  return { ...(await shownFiles(project, [...found.values()], signal)), notes }
}

function describeSymbol({ symbol, isDefinition, line }: SymbolPlace): string {
  return `${isDefinition ? 'defines' : 'uses'} ${symbol} in line ${line}`
}

/** Returns the files' content while there is space; of the others only the names. */
async function shownFiles(
  project: Project,
  mentions: readonly Mention[],
  signal: AbortSignal,
): Promise<{ files: string[]; text: string }> {
  const parts: string[] = []
  const files: string[] = []
  let left = MOST_BYTES
  for (const [index, mention] of mentions.entries()) {
    signal.throwIfAborted()
    const file = await readProjectFile(project, mention.path)
    if (file.kind === 'gone') continue
    files.push(mention.path)
    const isAt = mention.why.startsWith(WITH_AT)
    const asGood = mentions.slice(index).filter(({ why }) => why.startsWith(WITH_AT) === isAt).length
    const most = Math.min(isAt ? MOST_BYTES_AT : MOST_BYTES_OTHER, Math.max(LEAST_BYTES, left / asGood))
    const part = `### ${quoted(mention.path)} (${mention.why})\n\n${contentOf(file, mention, most - 400)}`
    const fits = Buffer.byteLength(part) <= left
    parts.push(fits ? part : `- ${quoted(mention.path)} (${mention.why}): no room for its content`)
    left -= Buffer.byteLength(parts.at(-1) ?? '') + 2
  }
  return { files, text: parts.join('\n\n') }
}

function contentOf(file: Exclude<ProjectFile, { kind: 'gone' }>, { line, path }: Mention, most: number): string {
  switch (file.kind) {
    case 'binary':
      return `Binary, ${formatBytes(file.size)}.`
    case 'huge':
      return `Not shown: ${formatBytes(file.size)}.`
    case 'secret':
      return 'Not read: by its name it holds secrets.'
    case 'unread':
      return `Not read: it ${file.why}.`
    case 'text': {
      if (file.text.trim() === '') return 'Empty.'
      const language = /\.(\w{1,12})$/.exec(path)?.[1] ?? ''
      const { text, note } = aroundLine(file.text, line, most)
      const told = [...(file.encoding === 'UTF-8' ? [] : [`Read as ${file.encoding}.`]), ...(note === '' ? [] : [note])]
      return `${told.length === 0 ? '' : `${told.join(' ')}\n\n`}${clipBytes(codeBlock(text, language), Math.max(200, most))}`
    }
  }
}

/** Cuts a too long text to a part that begins a few lines before the relevant line. */
function aroundLine(text: string, line: number | null, most: number): { text: string; note: string } {
  if (line === null || line <= LINES_BEFORE + 1 || Buffer.byteLength(text) <= most) return { text, note: '' }
  const lines = text.split('\n')
  const from = Math.min(line, lines.length) - LINES_BEFORE
  return { text: lines.slice(from - 1).join('\n'), note: `From line ${from} of ${lines.length}.` }
}

const LINES_BEFORE = 15

interface FileNames {
  all: ReadonlySet<string>
  /** By file name without folder, in lower case. */
  byName: ReadonlyMap<string, readonly string[]>
  /** By file name without folder, extension and word separators, in lower case: `userservice` for `user-service.test.ts`. */
  byStem: ReadonlyMap<string, readonly string[]>
}

function indexOfNames(paths: readonly string[]): FileNames {
  const byName = new Map<string, string[]>()
  const byStem = new Map<string, string[]>()
  for (const path of paths) {
    const name = path.slice(path.lastIndexOf('/') + 1)
    put(byName, name.toLowerCase(), path)
    put(byStem, stemOf(name), path)
  }
  return { all: new Set(paths), byName, byStem }
}

function put(map: Map<string, string[]>, key: string, path: string): void {
  const paths = map.get(key)
  if (paths === undefined) map.set(key, [path])
  else paths.push(path)
}

function stemOf(name: string): string {
  const end = name.indexOf('.', 1)
  return (end === -1 ? name : name.slice(0, end)).toLowerCase().replace(/[-_$.\s()]/g, '')
}

/** Returns none if there are too many for one name. */
function fewest(paths: readonly string[] | undefined): readonly string[] {
  return paths === undefined || paths.length > MOST_MEANT ? [] : paths
}

/** Returns the words after an `@` at a word's start, without quotes; the first 16. */
function atWords(text: string): string[] {
  const found = Array.from(
    text.matchAll(/(?:^|[\s([{,;:'`])@(?:"([^"\n]{1,1000})"|([^\s"`<>|]{1,1000}))/g),
    ([, quoted, plain]) => quoted ?? plain ?? '',
  )
  return [...new Set(found)].slice(0, MOST_AT)
}

/** Returns the files of an `@` word, or a remark if there are none. */
async function meantByAt(
  project: Project,
  written: string,
  names: FileNames,
): Promise<{ paths: readonly string[]; line: number | null } | string> {
  let isOutside = true
  // Sentence punctuation or a line number may follow: `@src/app.ts:12.`
  const endings = [written, written.replace(/[.,;:!?)\]}'"]+$/, '')]
  for (const { name, line } of endings.flatMap(word => [{ name: word, line: null }, withoutLine(word)])) {
    const path = pathInside(project.root, name)
    isOutside &&= path === null
    const paths = path === null ? [] : await filesAt(project, path, names)
    if (paths.length > 0) return { paths, line }
  }
  const word = `@${oneLine(written, 200)}`
  return isOutside
    ? `${word} lies outside of the project, so it was not read.`
    : `${word} names no file of the project.`
}

/** Returns the file of this path, the first files of a folder, or those whose paths end with it. */
async function filesAt(project: Project, path: string, names: FileNames): Promise<readonly string[]> {
  if (names.all.has(path)) return [path]
  const inside = namesBelow(names, path)
  if (inside.length > 0) return inside
  // Git may ignore it.
  const isThere = (await readProjectFile(project, path)).kind !== 'gone'
  return isThere ? [path] : fewest(endingWith(names, path))
}

/** `src/app.ts:12`, `src/app.ts#L12`: the path, and the line. */
function withoutLine(word: string): { name: string; line: number | null } {
  const [, path, line] = /^(.+?)(?::|#L)(\d{1,7})(?:[-:]\w+)?$/.exec(word) ?? []
  return path === undefined ? { name: word, line: null } : { name: path, line: Number(line) }
}

/** Returns the first files of a folder. */
function namesBelow({ all }: FileNames, folder: string): string[] {
  const found: string[] = []
  for (const path of all) {
    if (found.length >= MOST_OF_FOLDER) break
    if (path.startsWith(`${folder}/`)) found.push(path)
  }
  return found
}

const MOST_OF_FOLDER = 8

/** Returns the files whose paths end in these folders and this name. */
function endingWith({ byName }: FileNames, path: string): readonly string[] {
  const wanted = path.toLowerCase()
  const named = byName.get(wanted.slice(wanted.lastIndexOf('/') + 1)) ?? []
  const found = named.filter(each => `/${each.toLowerCase()}`.endsWith(`/${wanted}`))
  const exact = found.filter(each => `/${each}`.endsWith(`/${path}`))
  return exact.length > 0 ? exact : found
}

function meantByName({ root }: Project, written: string, names: FileNames): readonly string[] {
  const path = pathInside(root, withoutLine(written).name)
  if (path === null) return []
  return names.all.has(path) ? [path] : fewest(endingWith(names, path))
}

/** Returns words of a text that may name a file, a definition in code, or both. */
function namesIn(text: string): { files: string[]; symbols: string[]; words: string[] } {
  const files = new Set<string>()
  const symbols = new Set<string>()
  const words = new Set<string>()
  for (const [word] of text.matchAll(/[\p{L}\p{N}_$.@+~#:/\\-]{2,300}/gu)) {
    const plain = word
      .replace(/^@/, '')
      .replaceAll('\\', '/')
      .replace(/[.:,#-]+$/, '')
    if (/[./]/.test(plain) || BARE_NAMES.test(plain)) files.add(plain)
    else if (/^\p{L}{4,40}$/u.test(plain) && !COMMON.has(plain.toLowerCase())) words.add(plain)
  }
  for (const [, inner = ''] of text.matchAll(/`([^`\n]{1,200})`/g))
    for (const [name] of inner.matchAll(/[A-Za-z_$][\w$]{2,80}/g)) symbols.add(name)
  for (const [name] of text.matchAll(/(?<![\w$./@-])[A-Za-z_$][\w$]{2,80}(?:\(|\b)/g)) {
    const plain = name.replace('(', '')
    if (name.endsWith('(') || /[a-z\d][A-Z]|[A-Za-z\d]_[A-Za-z\d]/.test(plain)) symbols.add(plain)
  }
  return {
    files: [...files].slice(0, 200),
    symbols: [...symbols].slice(0, MOST_SYMBOLS),
    words: [...words].slice(0, 200),
  }
}

const MOST_SYMBOLS = 16
const BARE_NAMES = /^(?:Makefile|Dockerfile|Gemfile|Rakefile|Jenkinsfile|Procfile|LICENSE|README|CHANGELOG|justfile)$/
/** Words of requests that are common file names. */
const COMMON: ReadonlySet<string> = new Set(
  'main index test tests spec file files code build make init with from this that when then into should which what some only also each every name type types data list page user using'.split(
    ' ',
  ),
)
