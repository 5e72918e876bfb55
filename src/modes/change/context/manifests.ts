import { basename } from 'node:path'
import { tomlProgram, tomlTree, tomlValue } from '../../../platform/toml.ts'
import { withoutComments } from '../../../workspace/memory/main-file.ts'
import { type Project, type ProjectFile, readProjectFile } from './project-file.ts'
import { oneLine, quoted } from './sections.ts'

/** What a manifest says of a project. Names and values are as they stand there: untrusted. */
export interface Manifest {
  /** Relative to the work directory. */
  path: string
  kind: ManifestKind
  /** Such as name, version and language. */
  facts: readonly (readonly [name: string, value: string])[]
  scripts: readonly (readonly [name: string, command: string])[]
  /** Names with versions, by group: `dependencies`, `dev`. */
  dependencies: readonly (readonly [group: string, names: readonly string[]])[]
  /** Why it could not be read, the predicate of a sentence; null if it was. */
  problem: string | null
}

type ManifestKind =
  | 'npm'
  | 'python'
  | 'requirements'
  | 'cargo'
  | 'go'
  | 'maven'
  | 'gradle'
  | 'gem'
  | 'composer'
  | 'dotnet'
type Content = Pick<Manifest, 'facts' | 'scripts' | 'dependencies'>

/** By the name of the file. */
const KINDS: readonly (readonly [RegExp, ManifestKind])[] = [
  [/^package\.json$/, 'npm'],
  [/^pyproject\.toml$/, 'python'],
  [/^requirements[\w.-]*\.txt$/, 'requirements'],
  [/^Cargo\.toml$/, 'cargo'],
  [/^go\.mod$/, 'go'],
  [/^pom\.xml$/, 'maven'],
  [/^build\.gradle(?:\.kts)?$/, 'gradle'],
  [/^Gemfile$/, 'gem'],
  [/^composer\.json$/, 'composer'],
  [/\.csproj$/i, 'dotnet'],
]

/** Sorts out most of a hundred thousand paths at once. */
const MAY_BE_ONE = /(?:\.json|\.toml|\.txt|\.mod|\.xml|\.gradle|\.kts|Gemfile|\.csproj)$/i

const READERS: Readonly<Record<ManifestKind, (text: string) => Content>> = {
  npm: readNpm,
  python: readPython,
  requirements: readRequirements,
  cargo: readCargo,
  go: readGoMod,
  maven: readPom,
  gradle: readGradle,
  gem: readGemfile,
  composer: readComposer,
  dotnet: readCsproj,
}

const MOST_MANIFESTS = 24
const MOST_LEVELS = 5
const MOST_BYTES = 256 * 1024
/** Of all together: readers of some formats take seconds for a MiB. */
const MOST_TOGETHER = 1024 * 1024
/** Of folders with others' packages. */
const NOT_OURS = /(?:^|\/)(?:node_modules|vendor|third_party|testdata|fixtures|__fixtures__)\//

/**
 * Reads the manifests of a project, those nearest the top first: at most 24, none larger than 256 KiB, and 1 MiB
 * together. Those in folders of others' packages are left out.
 * @param paths all files
 */
export async function readManifests(
  project: Project,
  paths: readonly string[],
  signal: AbortSignal,
): Promise<{ manifests: Manifest[]; notes: string[] }> {
  const found = paths.flatMap(path => {
    if (!MAY_BE_ONE.test(path)) return []
    const kind = KINDS.find(([name]) => name.test(basename(path)))?.[1]
    const depth = path.split('/').length
    return kind === undefined || depth > MOST_LEVELS || NOT_OURS.test(path) ? [] : [{ path, kind, depth }]
  })
  const nearest = found.sort((a, b) => a.depth - b.depth || (a.path < b.path ? -1 : 1)).slice(0, MOST_MANIFESTS)
  const manifests: Manifest[] = []
  const notes: string[] = []
  let room = MOST_TOGETHER
  for (const [at, { path, kind }] of nearest.entries()) {
    signal.throwIfAborted()
    const file = await readProjectFile(project, path, MOST_BYTES)
    if (file.kind === 'text') room -= file.text.length
    if (room < 0) {
      notes.push(`${manifestsLeft(nearest.length - at)} not read: those before it have 1 MiB together.`)
      break
    }
    manifests.push({ path, kind, ...readOne(file, READERS[kind]) })
  }
  const left = found.length - nearest.length
  if (left > 0) notes.push(`${manifestsLeft(left)} not read, further down.`)
  return { manifests, notes }
}

function manifestsLeft(count: number): string {
  return count === 1 ? '1 more manifest was' : `${count} more manifests were`
}

function readOne(file: ProjectFile, read: (text: string) => Content): Content & Pick<Manifest, 'problem'> {
  const nothing = { facts: [], scripts: [], dependencies: [] }
  if (file.kind === 'text') {
    try {
      return { ...read(file.text), problem: null }
    } catch (error) {
      if (!(error instanceof NotReadable)) throw error
      return { ...nothing, problem: error.message }
    }
  }
  const why = {
    binary: 'is no text',
    huge: 'is larger than 256 KiB',
    gone: 'is gone',
    secret: 'is named like a file with secrets',
  }
  return { ...nothing, problem: file.kind === 'unread' ? file.why : why[file.kind] }
}

/** Thrown for a manifest that is not what its name says; the message is a predicate. */
class NotReadable extends Error {}

/** The manifests as Markdown. */
export function manifestsText(manifests: readonly Manifest[]): string {
  return manifests.map(manifestText).join('\n\n')
}

function manifestText({ path, facts, scripts, dependencies, problem }: Manifest): string {
  const lines = [`### ${quoted(path)}`, '']
  if (problem !== null) lines.push(`It ${problem}; nothing of it was read.`)
  if (facts.length > 0)
    lines.push(facts.map(([name, value]) => `${oneLine(name, 60)}: ${oneLine(value, 160)}`).join(' · '))
  if (scripts.length > 0)
    lines.push(
      'Scripts:',
      ...someOf(scripts, MOST_SCRIPTS).map(([name, run]) => `- ${quoted(name, 80)}: ${quoted(run, 240)}`),
    )
  if (scripts.length > MOST_SCRIPTS) lines.push(`- … and ${scripts.length - MOST_SCRIPTS} more`)
  for (const [group, names] of dependencies) {
    if (names.length === 0) continue
    const left = names.length - MOST_NAMES
    const shown = someOf(names, MOST_NAMES)
      .map(name => oneLine(name, 100))
      .join(', ')
    lines.push(`${oneLine(group, 60)} (${names.length}): ${shown}${left > 0 ? `, … and ${left} more` : ''}`)
  }
  return lines.join('\n')
}

function someOf<T>(list: readonly T[], most: number): readonly T[] {
  return list.slice(0, most)
}

const MOST_SCRIPTS = 40
const MOST_NAMES = 80

function readNpm(text: string): Content {
  const data = jsonObject(text)
  const groups = ['dependencies', 'devDependencies', 'peerDependencies', 'optionalDependencies']
  return {
    facts: [
      ...textFacts(data, ['name', 'version', 'type', 'packageManager']),
      ...Object.entries(objectOf(data.engines)).flatMap(([name, value]) => factOf(`engine ${name}`, value)),
      ...listFact('workspaces', Array.isArray(data.workspaces) ? data.workspaces : objectOf(data.workspaces).packages),
    ],
    scripts: commandsOf(data.scripts),
    dependencies: groups.map(group => [group, versionsOf(data[group])] as const),
  }
}

function readComposer(text: string): Content {
  const data = jsonObject(text)
  return {
    facts: textFacts(data, ['name', 'type']),
    scripts: commandsOf(data.scripts),
    dependencies: ['require', 'require-dev'].map(group => [group, versionsOf(data[group])] as const),
  }
}

function readPython(text: string): Content {
  const data = tomlObject(text)
  const project = objectOf(data.project)
  const tool = objectOf(data.tool)
  const poetry = objectOf(tool.poetry)
  const groups = Object.entries(objectOf(poetry.group)).map(
    ([name, group]) => [`poetry ${name}`, versionsOf(objectOf(group).dependencies)] as const,
  )
  return {
    facts: [
      ...textFacts({ ...poetry, ...project }, ['name', 'version', 'requires-python']),
      ...textFacts(objectOf(data['build-system']), ['build-backend']),
      ...listFact('tools', Object.keys(tool)),
    ],
    scripts: [
      ...commandsOf(project.scripts),
      ...commandsOf(objectOf(tool.pdm).scripts),
      ...commandsOf(objectOf(tool.poe).tasks),
    ],
    dependencies: [
      ['dependencies', textsOf(project.dependencies)],
      ...Object.entries(objectOf(project['optional-dependencies'])).map(
        ([name, list]) => [name, textsOf(list)] as const,
      ),
      ...Object.entries(objectOf(data['dependency-groups'])).map(([name, list]) => [name, textsOf(list)] as const),
      ['poetry', versionsOf(poetry.dependencies)],
      ['poetry dev', versionsOf(poetry['dev-dependencies'])],
      ...groups,
    ],
  }
}

function readRequirements(text: string): Content {
  const lines = linesOf(text).map(line => line.replace(/(?:^|\s)#.*$/, '').trim())
  return {
    facts: [],
    scripts: [],
    dependencies: [['requires', lines.filter(line => line !== '' && !line.startsWith('-'))]],
  }
}

function readCargo(text: string): Content {
  const data = tomlObject(text)
  const groups = ['dependencies', 'dev-dependencies', 'build-dependencies']
  return {
    facts: [
      ...textFacts(objectOf(data.package), ['name', 'version', 'edition', 'rust-version']),
      ...listFact('workspace', objectOf(data.workspace).members),
      ...listFact('features', Object.keys(objectOf(data.features))),
    ],
    scripts: [],
    dependencies: [
      ...groups.map(group => [group, versionsOf(data[group])] as const),
      ['workspace dependencies', versionsOf(objectOf(data.workspace).dependencies)],
    ],
  }
}

function readGoMod(text: string): Content {
  const facts: [string, string][] = []
  const requires: string[] = []
  let block = ''
  for (const raw of linesOf(text)) {
    const line = raw.replace(/\/\/.*$/, '').trim()
    const [word = '', ...rest] = line.split(/\s+/)
    if (line === ')') block = ''
    else if (rest.at(-1) === '(') block = word
    else if (word === 'module' || word === 'go' || word === 'toolchain') facts.push([word, rest.join(' ')])
    else if (line !== '' && (block === 'require' || word === 'require'))
      requires.push((block === '' ? rest : [word, ...rest]).join(' '))
  }
  return { facts, scripts: [], dependencies: [['require', requires]] }
}

function readPom(text: string): Content {
  const xml = withoutComments(text)
  if (!xml.includes('<project')) throw new NotReadable('has no <project>')
  const own = withoutParts(xml, ['parent', 'dependencies', 'dependencyManagement', 'build', 'profiles', 'reporting'])
  const facts = ['groupId', 'artifactId', 'version', 'packaging'].flatMap(tag => factOf(tag, insideOf(own, tag)))
  const modules = partsOf(xml, 'module')
  const dependencies = partsOf(xml, 'dependency').map(part => {
    const of = (tag: string) => insideOf(part, tag)
    const [version, scope] = [of('version'), of('scope')]
    return `${of('groupId') ?? '?'}:${of('artifactId') ?? '?'}${version === null ? '' : `:${version}`}${scope === null ? '' : ` (${scope})`}`
  })
  const plugins = partsOf(xml, 'plugin').map(part => insideOf(part, 'artifactId') ?? '?')
  return {
    facts: [...facts, ...listFact('modules', modules)],
    scripts: [],
    dependencies: [
      ['dependencies', dependencies],
      ['plugins', plugins],
    ],
  }
}

function readGradle(text: string): Content {
  const dependencies: string[] = []
  const plugins: string[] = []
  for (const line of linesOf(text)) {
    const [, by, named, listed] = DEPENDS.exec(line) ?? []
    const what = named ?? listed
    if (by !== undefined && what !== undefined) dependencies.push(`${what} (${by})`)
    const plugin = /^\s*(?:id[\s(]{0,20}["']([\w.-]+)["']|kotlin\("([\w.-]+)"\)|apply plugin: *["']([\w.-]+)["'])/.exec(
      line,
    )
    if (plugin !== null) plugins.push(plugin[1] ?? plugin[3] ?? `kotlin ${plugin[2]}`)
  }
  return {
    facts: [],
    scripts: [],
    dependencies: [
      ['plugins', plugins],
      ['dependencies', dependencies],
    ],
  }
}

const DEPENDS =
  /^\s*(\w*[iI]mplementation|api|\w*[cC]ompileOnly|\w*[rR]untimeOnly|kapt|ksp|annotationProcessor|classpath)\b[\s(]{0,20}(?:platform\s{0,4}\(\s{0,4})?(?:["']([^"']{1,200})["']|(libs\.[\w.]{1,100}))/

function readGemfile(text: string): Content {
  const gems: string[] = []
  const facts: [string, string][] = []
  for (const line of linesOf(text)) {
    const [, name, rest = ''] = /^\s*gem[\s(]{0,20}["']([\w.-]{1,100})["'](.{0,200})/.exec(line) ?? []
    const version = /^\s*,\s*["']([^"']{1,60})["']/.exec(rest)?.[1]
    if (name !== undefined) gems.push(version === undefined ? name : `${name} ${version}`)
    const ruby = /^\s*ruby\s+["']([^"']{1,60})["']/.exec(line)?.[1]
    if (ruby !== undefined) facts.push(['ruby', ruby])
  }
  return { facts, scripts: [], dependencies: [['gems', gems]] }
}

function readCsproj(text: string): Content {
  const xml = withoutComments(text)
  if (!xml.includes('<Project')) throw new NotReadable('has no <Project>')
  const references = Array.from(
    xml.matchAll(/<(?:PackageReference|ProjectReference)\s([^<>]{1,500})>/g),
    ([, attributes = '']) => {
      const of = (name: string) => new RegExp(`\\b${name}\\s*=\\s*"([^"]{1,200})"`).exec(attributes)?.[1]
      const version = of('Version')
      return `${of('Include') ?? of('Update') ?? '?'}${version === undefined ? '' : ` ${version}`}`
    },
  )
  const sdk = /<Project\s[^<>]{0,300}?Sdk="([^"]{1,100})"/.exec(xml)?.[1] ?? null
  const tags = ['TargetFramework', 'TargetFrameworks', 'OutputType', 'LangVersion']
  return {
    facts: [...factOf('Sdk', sdk), ...tags.flatMap(tag => factOf(tag, insideOf(xml, tag)))],
    scripts: [],
    dependencies: [['references', references]],
  }
}

function jsonObject(text: string): Readonly<Record<string, unknown>> {
  try {
    const data: unknown = JSON.parse(text)
    if (isObject(data)) return data
  } catch {
    throw new NotReadable('is not valid JSON')
  }
  throw new NotReadable('is no JSON object')
}

function tomlObject(text: string): Readonly<Record<string, unknown>> {
  const program = tomlProgram(text)
  if ('problem' in program) throw new NotReadable(`is not valid TOML at line ${program.line}`)
  return objectOf(tomlValue(tomlTree({ text, program })))
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function objectOf(value: unknown): Readonly<Record<string, unknown>> {
  return isObject(value) ? value : {}
}

function textsOf(value: unknown): string[] {
  return Array.isArray(value) ? value.filter(each => typeof each === 'string') : []
}

function textFacts(data: Readonly<Record<string, unknown>>, keys: readonly string[]): [string, string][] {
  return keys.flatMap(key => factOf(key, Object.hasOwn(data, key) ? data[key] : null))
}

function factOf(name: string, value: unknown): [string, string][] {
  return typeof value === 'string' && value.trim() !== '' ? [[name, value.trim()]] : []
}

function listFact(name: string, value: unknown): [string, string][] {
  const texts = textsOf(value)
  return texts.length === 0 ? [] : [[name, texts.slice(0, 20).join(', ')]]
}

/** Scripts by name: a text, a list of texts, or an object with a `cmd` or `shell`. */
function commandsOf(value: unknown): [string, string][] {
  return Object.entries(objectOf(value)).flatMap(([name, command]) => {
    const line = isObject(command) ? (command.cmd ?? command.shell ?? command.script) : command
    if (Array.isArray(line)) return [[name, textsOf(line).join(' && ')] as [string, string]]
    return typeof line === 'string' ? [[name, line] as [string, string]] : []
  })
}

/** `{ react: '^19' }` as `react ^19`; of an object its `version`. */
function versionsOf(value: unknown): string[] {
  return Object.entries(objectOf(value)).map(([name, version]) => {
    const text = isObject(version) ? version.version : version
    return typeof text === 'string' ? `${name} ${text}` : name
  })
}

/** Without what is too long to be a line of a manifest. */
function linesOf(text: string): string[] {
  return text.split('\n').filter(line => line.length <= 1_000)
}

/** What stands between the first `<tag>` and its end, trimmed; null if there is none. */
function insideOf(xml: string, tag: string): string | null {
  return partsOf(xml, tag, 1)[0]?.trim() ?? null
}

/** What stands between each `<tag>` and the next `</tag>`; in linear time. */
function partsOf(xml: string, tag: string, most = 500): string[] {
  const parts: string[] = []
  for (let at = 0; parts.length < most; ) {
    const start = xml.indexOf(`<${tag}>`, at)
    const end = start === -1 ? -1 : xml.indexOf(`</${tag}>`, start)
    if (end === -1) return parts
    parts.push(xml.slice(start + tag.length + 2, end))
    at = end
  }
  return parts
}

function withoutParts(xml: string, tags: readonly string[]): string {
  return tags.reduce((text, tag) => {
    const start = text.indexOf(`<${tag}>`)
    const end = text.lastIndexOf(`</${tag}>`)
    return start === -1 || end < start ? text : text.slice(0, start) + text.slice(end)
  }, xml)
}
