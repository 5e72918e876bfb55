import { mkdir, readdir, readFile, rename, rm } from 'node:fs/promises'
import { join, sep } from 'node:path'
import { pathExists } from '../platform/path-exists.ts'
import { writeWholeFile } from '../platform/write-whole-file.ts'
import { GitError, type GitResult, type GitSetting, runGit } from './git-command.ts'
import { removeUnfinished } from './unfinished-objects.ts'

/** The private git directory, and how git is run on it. */
export interface GitPlace {
  gitDir: string
  /** `directory` is the top that all paths of the index are relative to. */
  setting: GitSetting
  objectFormat: 'sha1' | 'sha256'
}

/**
 * Makes a private git directory what it has to be, and takes away the locks that a killed git has left. A broken one is
 * mended, its objects and references kept; one that cannot be is put aside. The caller holds the lock of the run.
 */
export async function layOutPrivateGit(git: GitPlace, excludes: string): Promise<void> {
  const { gitDir } = git
  if (!(await isUsable(git))) await makeAnew(git)
  await mkdir(join(gitDir, 'info'), { recursive: true })
  await mkdir(join(gitDir, 'objects', 'info'), { recursive: true })
  await writeIfOther(join(gitDir, 'empty'), '')
  // What is borrowed is said by the environment, so that it can be left out.
  await writeIfOther(join(gitDir, 'objects', 'info', 'alternates'), '')
  await writeIfOther(join(gitDir, 'info', 'exclude'), Buffer.from(excludes, 'latin1'))
  await writeIfOther(join(gitDir, 'info', 'attributes'), bytesAsTheyAre)
  await writeConfig(gitDir)
  await removeLocks(gitDir)
}

/** Those that a git left which was killed. */
async function removeLocks(gitDir: string): Promise<void> {
  const refs = join('refs', 'savepoints')
  const names = await readdir(join(gitDir, refs), { recursive: true }).catch(() => [])
  const locks = names.filter(name => name.endsWith('.lock')).map(name => join(refs, name))
  for (const lock of ['index.lock', 'packed-refs.lock', ...locks]) {
    await rm(join(gitDir, lock), { force: true, recursive: true })
  }
}

/** Removes what was not finished by who held the lock of the run before; nothing of it is written yet by who holds it now. */
export async function removeLeftovers(gitDir: string): Promise<void> {
  const names = await readdir(gitDir)
  for (const name of names.filter(each => each.startsWith('rewind-'))) {
    await rm(join(gitDir, name), { force: true, recursive: true })
  }
  // Somebody may look, who needs no lock, and write what the files are now.
  if (!names.some(name => name.startsWith('look-'))) await removeUnfinished(gitDir)
}

/** Whether git takes it for what it has to be. */
export async function isUsable({ gitDir, setting, objectFormat }: GitPlace): Promise<boolean> {
  // Without its config git takes it for a repository all the same.
  if (!(await pathExists(join(gitDir, 'config')))) return false
  const { ok, stdout } = await runGit(setting, ['rev-parse', '--show-object-format'])
  return ok && stdout.trim() === objectFormat
}

/** What of it is good stays: the savepoints outlive a broken config or HEAD. */
async function makeAnew(git: GitPlace): Promise<void> {
  const { gitDir } = git
  await mkdir(gitDir, { recursive: true, mode: 0o700 })
  if (!(await hasOtherFormat(git))) {
    await dropIndex(git)
    for (const name of ['HEAD', 'config']) await rm(join(gitDir, name), { force: true, recursive: true })
    if ((await init(git)).ok && (await isUsable(git))) return
  }
  const broken = `${gitDir}.broken`
  await rm(broken, { recursive: true, force: true })
  await rename(gitDir, broken)
  await mkdir(gitDir, { recursive: true, mode: 0o700 })
  const result = await init(git)
  if (!result.ok) throw new GitError(['init'], result)
}

async function hasOtherFormat({ setting, objectFormat }: GitPlace): Promise<boolean> {
  const { ok, stdout } = await runGit(setting, ['rev-parse', '--show-object-format'])
  return ok && stdout.trim() !== objectFormat
}

/** `git init` finds out what the file system can do (modes, links, case). */
function init({ gitDir, setting, objectFormat }: GitPlace): Promise<GitResult> {
  const { GIT_DIR: _, GIT_WORK_TREE: __, ...env } = setting.env
  const format = `--object-format=${objectFormat}`
  return runGit({ ...setting, directory: gitDir, env }, ['init', '--quiet', '--bare', '--template=', format, '.'])
}

/** `splitIndex`: of 50,000 files, one change then costs 15 ms to write in place of 40. */
async function writeConfig(gitDir: string): Promise<void> {
  const path = join(gitDir, 'config')
  const [probed = ''] = (await readFile(path, 'utf8')).split(ownConfigMark)
  const empty = JSON.stringify(join(gitDir, 'empty'))
  const own = `${ownConfigMark}
[core]
\tfsmonitor = false
\thooksPath = ${JSON.stringify(join(gitDir, 'no-hooks'))}
\tattributesFile = ${empty}
\texcludesFile = ${empty}
\tautocrlf = false
\tsplitIndex = true${sep === '/' ? anyName : ''}
[splitIndex]
\tsharedIndexExpire = 1.day.ago
[gc]
\tauto = 0
[maintenance]
\tauto = false
`
  await writeIfOther(path, probed + own)
}

/** Whole or not at all: a cut-off file would change what git looks at. */
async function writeIfOther(path: string, content: string | Buffer): Promise<void> {
  const bytes = Buffer.from(content)
  const before = await readFile(path).catch(() => null)
  if (before === null || !before.equals(bytes)) await writeWholeFile(path, bytes)
}

/** Forgets what the index knows, together with the lock that a crash has left: the caller holds the lock of the run. */
export async function dropIndex({ gitDir }: Pick<GitPlace, 'gitDir'>): Promise<void> {
  const names = await readdir(gitDir)
  const parts = names.filter(name => /^(?:index(?:\.lock)?$|sharedindex\.|(?:look|rewind)-.*\.index)/.test(name))
  for (const name of parts) await rm(join(gitDir, name), { force: true, recursive: true })
}

/** A folder that an agent calls `git~1` is one as any other, and what is in it counts. */
const anyName = '\n\tprotectNTFS = false'
const ownConfigMark = '# What follows is codemachine’s.'
// A file's own bytes count: no filter, line ending or encoding that a `.gitattributes` in the tree asks for.
// Nor is a text not shown for it.
const bytesAsTheyAre = '* -text -eol -ident -filter -working-tree-encoding !diff !merge !whitespace\n'
