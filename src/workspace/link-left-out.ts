import type { Dirent } from 'node:fs'
import { copyFile, lstat, mkdir, readdir, readlink, symlink } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { runGit } from './git-command.ts'
import { findObstacle } from './inside-directory.ts'
import type { PrivateGit } from './private-git.ts'

/**
 * What is needed to run a project and is not in git: what was installed, and local settings. What was built is not among
 * it: it is to be built anew.
 */
const LINKED = new Set([
  'node_modules',
  'bower_components',
  'jspm_packages',
  '.yarn',
  '.pnp.cjs',
  '.pnp.loader.mjs',
  '.npmrc',
  '.venv',
  'venv',
  'vendor',
  '.bundle',
  'Pods',
  'deps',
  'elm-stuff',
  '.cargo',
  '.gradle',
  '.m2',
  '.env',
  '.env.local',
  '.env.test',
  '.env.test.local',
])

/** What tools write into `node_modules` while they run. */
const CACHES = new Set(['.cache', '.vite', '.vite-temp', '.tmp', '.vitest'])

/** Links what git ignores and a project needs from the person's files into `top`, wherever nothing else is. */
export async function linkLeftOut({ setting }: PrivateGit, top: string): Promise<void> {
  const args = ['ls-files', '-o', '-i', '-z', '--exclude-standard', '--directory']
  const { ok, stdout } = await runGit(setting, args)
  if (!ok) return
  for (const entry of stdout.split('\0')) {
    const path = Buffer.from(entry, 'latin1').toString('utf8').replace(/\/$/, '')
    if (LINKED.has(basename(path))) await link(join(setting.directory, path), top, path)
  }
}

/** Never through a link that was committed: it may lead anywhere. */
async function link(from: string, top: string, path: string): Promise<void> {
  const folder = dirname(path)
  if (folder !== '.' && (await findObstacle(top, folder)) !== null) return
  const to = join(top, path)
  if (await isThere(to)) return
  const isFolder = (await lstat(from)).isDirectory()
  if (isFolder && basename(path) === 'node_modules') await linkEach(from, to, isOwnPackages)
  else await symlink(from, to)
}

/**
 * A folder of its own with a link to each part. A link among them stays what it is: one of a workspace leads to the
 * package beside it, which has to be that of the files laid out, and not that of the person.
 */
async function linkEach(from: string, to: string, goesInto: (entry: Dirent) => boolean): Promise<void> {
  await mkdir(to)
  for (const entry of await readdir(from, { withFileTypes: true })) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)]
    if (CACHES.has(entry.name)) continue
    if (entry.isSymbolicLink()) await symlink(await readlink(source), target)
    else if (goesInto(entry)) await linkEach(source, target, () => false)
    // A list of what is installed, which tools write anew.
    else if (entry.isFile()) await copyFile(source, target)
    else await symlink(source, target)
  }
}

/** `@scope`, in which packages lie. */
function isOwnPackages(entry: Dirent): boolean {
  return entry.isDirectory() && entry.name.startsWith('@')
}

function isThere(path: string): Promise<boolean> {
  return lstat(path).then(
    () => true,
    () => false,
  )
}
