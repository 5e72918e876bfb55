import { createHash } from 'node:crypto'
import { type Dirent, lstatSync, readdirSync, readFileSync, readlinkSync, type Stats } from 'node:fs'
import { join } from 'node:path'

/** Names that are excepted once an agent has them ignored. */
const WELL_KNOWN: ReadonlySet<string> = new Set(['node_modules', 'dist', 'coverage'])
/** What is larger is not read. */
const MOST_BYTES = 2 * 1024 ** 3

/**
 * What is in each file and link of a work directory, by other means than those that are tested: no git. Left out are repositories,
 * codemachine's own folder, what is well known as dependencies and build output, and these names.
 * @param ignored names that were ignored when the session began
 */
export function contentOf(work: string, ignored: readonly string[] = []): Record<string, string> {
  const content: Record<string, string> = {}
  const folders = ['']
  for (const folder of folders) {
    for (const { name } of entriesOf(join(work, folder))) {
      const path = join(folder, name)
      if (name === '.git' || path === '.codemachine' || WELL_KNOWN.has(name) || ignored.includes(name)) continue
      const stat = lstatSync(join(work, path), { throwIfNoEntry: false })
      if (stat?.isDirectory()) folders.push(path)
      else if (stat?.isFile() || stat?.isSymbolicLink()) content[path] = whatIsIn(join(work, path), stat)
    }
  }
  return content
}

function whatIsIn(path: string, stat: Stats): string {
  if (stat.isSymbolicLink()) return `link to ${readlinkSync(path)}`
  if (stat.size > MOST_BYTES) return `${stat.size} bytes of ${stat.mtimeMs}`
  try {
    const hash = createHash('sha1').update(readFileSync(path)).digest('hex')
    return `${(stat.mode & 0o100) === 0 ? 'file' : 'program'} ${hash}`
  } catch {
    return 'unreadable'
  }
}

function entriesOf(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
  } catch {
    return []
  }
}
