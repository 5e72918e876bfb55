import { basename } from 'node:path'
import { codeBlock } from '../../base/markdown.ts'
import { type Project, readProjectFile, whyUnread } from './project-file.ts'
import { clipBytes, quoted } from './sections.ts'

/** A manifest of a project. Its text is untrusted. */
export interface Manifest {
  /** Path relative to the work directory. */
  path: string
  kind: ManifestKind
  /** Text of the file; empty if unreadable. */
  text: string
  /** Why it could not be read, as the predicate of a sentence; null: it was read. */
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
  | 'deno'
  | 'mix'

/** Kinds by file name. */
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
  [/^deno\.jsonc?$/, 'deno'],
  [/^mix\.exs$/, 'mix'],
]

/** Quick filter for a hundred thousand paths. */
const MAY_BE_ONE = /(?:\.json|\.toml|\.txt|\.mod|\.xml|\.gradle|\.kts|Gemfile|\.csproj|\.jsonc|mix\.exs)$/i

const MOST_MANIFESTS = 24
const MOST_LEVELS = 5
const MOST_BYTES = 256 * 1024
/** Most bytes of all manifests together. */
const MOST_TOGETHER = 1024 * 1024
/** Matches paths in folders of others' packages. */
const NOT_OURS = /(?:^|\/)(?:node_modules|vendor|third_party|testdata|fixtures|__fixtures__)\//

/**
 * Reads the manifests of a project, those nearest the top first: at most 24, each up to 256 KiB, and 1 MiB together. Skips
 * folders of others' packages.
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
    const text = file.kind === 'text' ? file.text : ''
    room -= text.length
    if (room < 0) {
      notes.push(`${manifestsLeft(nearest.length - at)} not read: the manifests before already have 1 MiB together.`)
      break
    }
    manifests.push({ path, kind, text, problem: file.kind === 'text' ? null : whyUnread(file, '256 KiB') })
  }
  const left = found.length - nearest.length
  if (left > 0) notes.push(`${manifestsLeft(left)} not read: too deep in the folders.`)
  return { manifests, notes }
}

function manifestsLeft(count: number): string {
  return count === 1 ? '1 more manifest was' : `${count} more manifests were`
}

/** Returns the unchanged manifests as Markdown. */
export function manifestsText(manifests: readonly Manifest[]): string {
  return manifests
    .map(({ path, text, problem }) => {
      const content =
        problem === null ? clipBytes(codeBlock(text), MOST_SHOWN) : `It ${problem}; nothing of it was read.`
      return `### ${quoted(path)}\n\n${content}`
    })
    .join('\n\n')
}

/** Most shown bytes of one manifest. */
const MOST_SHOWN = 6 * 1024
