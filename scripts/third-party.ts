import { existsSync, readdirSync, readFileSync, realpathSync } from 'node:fs'
import { dirname, join, relative, resolve, sep } from 'node:path'
import type { Metafile } from 'esbuild'

/** What is known of packages that have no licence file of their own, by name. */
export interface WithoutFile {
  /** For each package: SPDX id as in its manifest, who holds the copyright, and where that is said. */
  packages: Readonly<Record<string, { licence: string; holder: string; source: string }>>
  /** Text of each of these licences by SPDX id, with `{holder}` where its holder stands. */
  texts: Readonly<Record<string, string>>
}

/** The licences of what a bundle is made of; `problems` are sentences, none if every package is accounted for. */
export interface ThirdParty {
  text: string
  problems: string[]
}

interface Package {
  /** Name and version. */
  id: string
  name: string
  /** As in its manifest. */
  licence: string
  /** Text of its own licence files, and of what else has to be handed on, by path inside the package. */
  licences: Map<string, string>
  notices: Map<string, string>
}

/**
 * Collects the licence and notice files of all packages in a bundle.
 *
 * @param root the folder to which the bundle's inputs are relative: the package that is bundled
 */
export function thirdParty({ inputs }: Pick<Metafile, 'inputs'>, root: string, known: WithoutFile): ThirdParty {
  const packages = packagesOf(Object.keys(inputs), realpathSync(root))
  return { text: textOf(packages, known), problems: problemsOf(packages, known) }
}

/** What stands in the repository on packages without a licence file. */
export function readWithoutFile(): WithoutFile {
  const folder = join(import.meta.dirname, 'licences')
  const texts = readdirSync(folder).filter(name => name.endsWith('.txt'))
  return {
    packages: JSON.parse(readFileSync(join(folder, 'without-file.json'), 'utf8')),
    texts: Object.fromEntries(texts.map(name => [name.slice(0, -'.txt'.length), readText(join(folder, name))])),
  }
}

const LIST = 'scripts/licences/without-file.json'
const LICENCE = /licen[cs]e|^copying/i
const NOTICE = /notice|^copyright|^patents/i
const FOLDER_OF_LICENCES = /^licen[cs]es?$/i
const CODE = /\.([cm]?[jt]sx?|json|map)$/i
/** What a plugin of the build made up, such as `light-start:node:process`. */
const NO_FILE = /^[\w-]{2,}:/

function packagesOf(inputs: readonly string[], root: string): Package[] {
  const packages = new Map<string, Package>()
  for (const input of inputs.filter(each => !NO_FILE.test(each))) {
    const path = resolve(root, input)
    const { folder, ...found } = packageAround(path)
    if (folder === root) continue
    const known = packages.get(found.id) ?? found
    packages.set(known.id, known)
    // From the file upwards: a package may hold another one's code, with its licence beside it.
    for (let inside = dirname(path); inside !== dirname(folder); inside = dirname(inside))
      collect(inside, folder, known)
  }
  return [...packages.values()].sort((a, b) => (a.id < b.id ? -1 : 1))
}

/** The nearest package with a name and a version: others only say how their folder's modules are read. */
function packageAround(path: string): Package & { folder: string } {
  for (let folder = dirname(path); folder !== dirname(folder); folder = dirname(folder)) {
    const manifest = join(folder, 'package.json')
    if (!existsSync(manifest)) continue
    const { name, version, license } = JSON.parse(readFileSync(manifest, 'utf8'))
    if (!name || !version) continue
    const licence = String(license?.type ?? license ?? 'no licence in its manifest')
    return { id: `${name}@${version}`, name, licence, licences: new Map(), notices: new Map(), folder }
  }
  throw new Error(`${path} is in no package`)
}

function collect(inside: string, folder: string, into: Package): void {
  for (const entry of readdirSync(inside, { withFileTypes: true })) {
    const path = join(inside, entry.name)
    const add = (texts: Map<string, string>, file: string) =>
      texts.set(relative(folder, file).split(sep).join('/'), readText(file))
    if (entry.isDirectory()) {
      // Those of parts that the package has from elsewhere.
      if (FOLDER_OF_LICENCES.test(entry.name)) for (const file of filesIn(path)) add(into.notices, file)
    } else if (CODE.test(entry.name)) continue
    else if (LICENCE.test(entry.name)) add(inside === folder ? into.licences : into.notices, path)
    else if (NOTICE.test(entry.name)) add(into.notices, path)
  }
}

function filesIn(folder: string): string[] {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true })
  return entries.filter(each => each.isFile()).map(({ parentPath, name }) => join(parentPath, name))
}

function problemsOf(packages: readonly Package[], known: WithoutFile): string[] {
  const gone = Object.keys(known.packages).filter(name => !packages.some(each => each.name === name))
  return [
    ...packages.flatMap(each => problemOf(each, known) ?? []),
    ...gone.map(name => `${name} is in ${LIST} and no longer in the bundle: take it out.`),
  ]
}

function problemOf({ id, name, licence, licences }: Package, { packages: listed, texts }: WithoutFile): string | null {
  const entry = listed[name]
  if (licences.size > 0) return entry ? `${id} has a licence file now: take ${name} out of ${LIST}.` : null
  if (!entry) return `${id} (${licence}) has no licence file and is not in ${LIST}: who holds its copyright?`
  if (entry.licence !== licence) return `${id} is under ${licence}, and not under ${entry.licence} as ${LIST} says.`
  return texts[licence] ? null : `${id} needs the text of ${licence}: scripts/licences/${licence}.txt.`
}

/** Each text once, under the names of all packages that have it. */
function textOf(packages: readonly Package[], known: WithoutFile): string {
  const owners = new Map<string, Set<string>>()
  for (const each of packages) {
    for (const text of textsOf(each, known)) owners.set(text, (owners.get(text) ?? new Set()).add(each.id))
  }
  return [
    `The bundle of codemachine holds code of ${packages.length} other packages:\n`,
    ...packages.map(({ id, licence }) => `- ${id} (${licence})`),
    '\nThese are their licences and notices.',
    ...[...owners].map(([text, ids]) => `\n${'='.repeat(80)}\n${[...ids].join('\n')}\n\n${text}`),
    '',
  ].join('\n')
}

function textsOf({ name, licences, notices }: Package, { packages: listed, texts }: WithoutFile): string[] {
  const files = [...licences.values(), ...[...notices].map(([path, text]) => `${path}:\n\n${text}`)]
  const entry = licences.size === 0 ? listed[name] : undefined
  const standard = entry && texts[entry.licence]
  return standard ? [standard.replace('{holder}', entry.holder), ...files] : files
}

function readText(path: string): string {
  const text = readFileSync(path, 'utf8').replace(/^\uFEFF/, '')
  return text.replaceAll(/[ \t]*\r?\n/g, '\n').trim()
}
