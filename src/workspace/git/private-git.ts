import { randomUUID } from 'node:crypto'
import { mkdir, readdir, readFile, realpath, rename, rm } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join, relative, resolve, sep } from 'node:path'
import { ignoreMissing } from '../../base/errors.ts'
import { pathExists, writeWholeFile } from '../../platform/files.ts'
import { readRegularFile, readTextFile } from '../files/inside-directory.ts'
import { findGit } from './find-git.ts'
import {
  borrowedObjectsEnvironment,
  copyIndex,
  fromLatin1,
  GitError,
  type GitResult,
  type GitSetting,
  hardenedEnvironment,
  type PersonRepository,
  removeUnfinishedObjects,
  runGit,
  toLatin1,
  withoutBorrowedObjects,
  withoutGitVariables,
  withVariables,
  writeToPrivateGit,
} from './git.ts'

/** The location of a private git directory, and its work directory. */
export interface PrivateGitOptions {
  /** Directory that agents cannot write. Created if missing. */
  gitDir: string
  /** Real path of the work directory. */
  directory: string
  /** The person's repository around the work directory: its objects are borrowed, its ignore rules apply. */
  repository: PersonRepository | null
  env: NodeJS.ProcessEnv
  /** True to borrow objects of the person's repository; the default. */
  borrows?: boolean
}

/**
 * codemachine's own git directory for a work directory. It uses none of the person's index, references, config or
 * hooks.
 */
export interface PrivateGit extends PrivateGitLocation {
  repository: PersonRepository | null
  /** Work directory relative to git's top, ending in `/`; empty if they are equal. */
  prefix: string
  /** Resolves with true if git can write many files into one pack instead of loose objects: git 2.38 and newer. */
  packsInBulk(): Promise<boolean>
}

/**
 * Opens or creates the private git directory. Repairs a broken one and keeps its objects and references. Renames an
 * irreparable one to `<gitDir>.broken`, replacing an earlier one. The caller holds the run lock.
 */
export async function openPrivateGit(options: PrivateGitOptions): Promise<PrivateGit> {
  const { gitDir, directory, repository, env } = options
  const program = await findGit(env, repository?.root ?? directory)
  const git = await locatePrivateGit(options, program)
  await writeToPrivateGit(gitDir, () =>
    preparePrivateGit(git, () => readPersonExcludes(program, directory, repository, env)),
  )
  await removeLeftovers(gitDir)
  return (await isIgnored(git)) ? withTopAt(git, directory) : git
}

/**
 * Opens the private git directory without the run lock: creates, repairs and removes nothing, and copies the index, which
 * `forget` removes. `null` if there is no usable one.
 */
export async function openPrivateGitReadOnly(
  options: PrivateGitOptions,
): Promise<{ git: PrivateGit; forget(): Promise<void> } | null> {
  const { gitDir, directory } = options
  const described = await locatePrivateGit(options, await findGit(options.env, options.repository?.root ?? directory))
  if (!(await isUsable(described))) return null
  const index = join(gitDir, `look-${randomUUID()}.index`)
  await writeToPrivateGit(gitDir, () => copyIndex(join(gitDir, 'index'), index).catch(ignoreMissing))
  const git = { ...described, setting: withVariables(described.setting, { GIT_INDEX_FILE: index }) }
  return {
    git: (await isIgnored(git)) ? withTopAt(git, directory) : git,
    forget: async () => {
      for (const path of [index, `${index}.lock`]) await rm(path, { force: true })
    },
  }
}

/**
 * Returns a setting to run git on objects only. It reads and locks no index. Without a work tree, a diff or pack reads no
 * `.gitattributes`, at which it might wait forever.
 */
export function withoutIndex({ gitDir, setting }: PrivateGit): GitSetting {
  const { GIT_WORK_TREE: _, ...env } = setting.env
  return withVariables({ ...setting, env }, { GIT_INDEX_FILE: join(gitDir, 'no-index') })
}

/** As `withoutIndex`, with only the private git directory's own objects, not borrowed ones. */
export function withOwnObjectsOnly(git: PrivateGit): GitSetting {
  return withoutBorrowedObjects(withoutIndex(git))
}

/** Recreates an unusable git directory; does not touch a good one. */
export async function repairPrivateGit(git: PrivateGit): Promise<void> {
  await preparePrivateGit(git, () => readFile(join(git.gitDir, 'info', 'exclude'), 'latin1').catch(() => ''))
}

async function locatePrivateGit(options: PrivateGitOptions, program: string): Promise<PrivateGit> {
  const { gitDir, directory, repository, env, borrows = true } = options
  const top = repository?.root ?? directory
  const variables = {
    ...hardenedEnvironment(env, join(gitDir, 'empty')),
    GIT_DIR: gitDir,
    GIT_WORK_TREE: top,
    ...borrowedObjectsEnvironment(borrows ? repository : null),
  }
  return {
    gitDir,
    repository,
    setting: { program, directory: top, env: variables },
    prefix: prefixOf(top, directory),
    objectFormat: repository === null ? 'sha1' : await objectFormatOf(repository),
    packsInBulk: () => isAtLeast({ program, directory, env: variables }, [2, 38]),
  }
}

/**
 * True if the person's rules ignore the whole work directory. Then the rules above it must not apply, or it would seem
 * empty.
 */
async function isIgnored({ prefix, setting }: PrivateGit): Promise<boolean> {
  if (prefix === '') return false
  // `check-ignore` refuses literal pathspecs, and reads none from stdin.
  const plain = withVariables(setting, { GIT_LITERAL_PATHSPECS: '0' })
  return (await runGit(plain, ['check-ignore', '--quiet', '--no-index', '--stdin', '-z'], `${toLatin1(prefix)}\0`)).ok
}

function withTopAt(git: PrivateGit, directory: string): PrivateGit {
  return { ...git, prefix: '', setting: { ...withVariables(git.setting, { GIT_WORK_TREE: directory }), directory } }
}

async function objectFormatOf({ commonDir }: PersonRepository): Promise<PrivateGitLocation['objectFormat']> {
  const config = await readTextFile(join(commonDir, 'config'), CONFIG_BYTES)
  return config.kind === 'text' && /^\s*objectformat\s*=\s*"?sha256/im.test(config.text) ? 'sha256' : 'sha1'
}

async function isAtLeast(setting: GitSetting, [major, minor]: readonly [number, number]): Promise<boolean> {
  const { stdout } = await runGit(setting, ['version'])
  const [, x, y] = stdout.match(/(\d+)\.(\d+)/) ?? []
  return Number(x) > major || (Number(x) === major && Number(y) >= minor)
}

function prefixOf(top: string, directory: string): string {
  const path = relative(top, directory).split(sep).join('/')
  return path === '' ? '' : `${path}/`
}

const CONFIG_BYTES = 1024 * 1024

/** A private git directory, and the setting to run git in it. */
interface PrivateGitLocation {
  gitDir: string
  /** Setting whose `directory` is the top; all paths of the index are relative to it. */
  setting: GitSetting
  objectFormat: 'sha1' | 'sha256'
}

/**
 * Writes the files of a private git directory, and removes the locks of a killed git. Repairs a broken directory, or renames
 * it and creates a new one. The caller holds the run lock.
 * @param readExcludes answers the rules for `info/exclude`, latin1
 */
async function preparePrivateGit(git: PrivateGitLocation, readExcludes: () => Promise<string>): Promise<void> {
  const { gitDir } = git
  const looks = [isUsable(git), readExcludes(), isAtLeast(git.setting, [2, 36])] as const
  // If one fails, the git of another must not outlive this call.
  await Promise.allSettled(looks)
  const [isGood, excludes, isNew] = await Promise.all(looks)
  if (!isGood) await recreate(git)
  await mkdir(join(gitDir, 'info'), { recursive: true })
  await mkdir(join(gitDir, 'objects', 'info'), { recursive: true })
  await writeIfDifferent(join(gitDir, 'empty'), '')
  // The environment names borrowed objects, so that a command can run without them.
  await writeIfDifferent(join(gitDir, 'objects', 'info', 'alternates'), '')
  await writeIfDifferent(join(gitDir, 'info', 'exclude'), Buffer.from(excludes, 'latin1'))
  // The hidden files follow it; each opening of the fingerprints rewrites them.
  const attributes = await readFile(join(gitDir, 'info', 'attributes'), 'latin1').catch(() => '')
  if (!attributes.startsWith(NO_CONVERSION)) await writeAttributes(gitDir, '')
  await writeConfig(gitDir, isNew ? 'fsync = committed' : 'fsyncObjectFiles = true')
  await removeLocks(gitDir)
}

/** Writes the attributes of files for git there; `more`: latin1 lines after those for all files. */
export async function writeAttributes(gitDir: string, more: string): Promise<void> {
  await writeIfDifferent(join(gitDir, 'info', 'attributes'), Buffer.from(NO_CONVERSION + more, 'latin1'))
}

/** Returns the private git with a signal; its commands throw `GitStopped` once that is aborted. */
export function stoppable(git: PrivateGit, signal: AbortSignal | undefined): PrivateGit {
  return signal === undefined ? git : { ...git, setting: { ...git.setting, signal } }
}

/** Removes the locks of a killed git. */
async function removeLocks(gitDir: string): Promise<void> {
  const refs = join('refs', 'savepoints')
  const names = await readdir(join(gitDir, refs), { recursive: true }).catch(() => [])
  const locks = names.filter(name => /\.(?:lock|tmp)$/.test(name)).map(name => join(refs, name))
  for (const lock of ['index.lock', 'packed-refs.lock', ...locks]) {
    await rm(join(gitDir, lock), { force: true, recursive: true })
  }
}

/** Removes unfinished files of the previous holder of the run lock. The current holder has written none yet. */
async function removeLeftovers(gitDir: string): Promise<void> {
  const names = await readdir(gitDir)
  for (const name of names.filter(each => each.startsWith('rewind-'))) {
    await rm(join(gitDir, name), { force: true, recursive: true })
  }
  // A read-only process without the lock may be writing objects.
  if (!names.some(name => name.startsWith('look-'))) await removeUnfinishedObjects(gitDir)
}

/** True if git accepts the directory, with the expected hash. */
async function isUsable({ gitDir, setting, objectFormat }: PrivateGitLocation): Promise<boolean> {
  // Git also accepts a repository without a config.
  if (!(await pathExists(join(gitDir, 'config')))) return false
  const { ok, stdout } = await runGit(setting, ['rev-parse', '--show-object-format'])
  return ok && stdout.trim() === objectFormat
}

/** Recreates the broken parts; savepoints survive a broken config or HEAD. */
async function recreate(git: PrivateGitLocation): Promise<void> {
  const { gitDir } = git
  await mkdir(gitDir, { recursive: true, mode: 0o700 })
  if (!(await hasOtherFormat(git))) {
    await removeIndex(git)
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

async function hasOtherFormat({ setting, objectFormat }: PrivateGitLocation): Promise<boolean> {
  const { ok, stdout } = await runGit(setting, ['rev-parse', '--show-object-format'])
  return ok && stdout.trim() !== objectFormat
}

/** Runs `git init`, which detects the file system's features (modes, links, case). */
function init({ gitDir, setting, objectFormat }: PrivateGitLocation): Promise<GitResult> {
  const { GIT_DIR: _, GIT_WORK_TREE: __, ...env } = setting.env
  const args = ['init', '--quiet', '--bare', '--template=', `--object-format=${objectFormat}`, '.']
  // `writeReference` writes references as files; a later git may change its default.
  const files = { ...env, GIT_DEFAULT_REF_FORMAT: 'files' }
  return runGit({ ...setting, directory: gitDir, env: files }, args)
}

/** @param fsync has objects be on the disk when the git ends that has written them */
async function writeConfig(gitDir: string, fsync: string): Promise<void> {
  const path = join(gitDir, 'config')
  const [probed = ''] = (await readFile(path, 'utf8')).split(OWN_CONFIG_MARK)
  const empty = JSON.stringify(join(gitDir, 'empty'))
  const own = `${OWN_CONFIG_MARK}
[core]
\tfsmonitor = false
\thooksPath = ${JSON.stringify(join(gitDir, 'no-hooks'))}
\tattributesFile = ${empty}
\texcludesFile = ${empty}
\tautocrlf = false
\tsplitIndex = false
\t${fsync}
\tlongpaths = true${sep === '/' ? ALLOW_NTFS_NAMES : ''}
[gc]
\tauto = 0
[maintenance]
\tauto = false
[repack]
\twriteBitmaps = false
`
  await writeIfDifferent(path, probed + own)
}

/** Writes atomically, because a truncated file would change git's behaviour. */
async function writeIfDifferent(path: string, content: string | Buffer): Promise<void> {
  const bytes = Buffer.from(content)
  const before = await readFile(path).catch(() => null)
  if (before === null || !before.equals(bytes)) await writeWholeFile(path, bytes)
}

/** Removes the index and its lock files. The caller holds the run lock. */
export async function removeIndex({ gitDir }: Pick<PrivateGitLocation, 'gitDir'>): Promise<void> {
  const names = await readdir(gitDir)
  const parts = names.filter(name => /^(?:index(?:\.lock)?$|sharedindex\.|(?:look|rewind)-.*\.index)/.test(name))
  for (const name of parts) await rm(join(gitDir, name), { force: true, recursive: true })
}

/** Makes git accept a folder called `git~1`, so that an agent's files in it count. */
const ALLOW_NTFS_NAMES = '\n\tprotectNTFS = false'
const OWN_CONFIG_MARK = '# What follows is codemachine’s.'
// Use a file's own bytes: no filter, line ending or encoding of a `.gitattributes` in the tree, and no converted text.
const NO_CONVERSION = '* -text -eol -ident -filter -working-tree-encoding !diff !merge !whitespace\n'

/**
 * Returns the person's ignore rules outside of `.gitignore` files: their global excludes file, then the repository's
 * `info/exclude`. Latin1 text of at most 2 MiB.
 */
export async function readPersonExcludes(
  program: string,
  directory: string,
  repository: PersonRepository | null,
  env: NodeJS.ProcessEnv,
): Promise<string> {
  const root = repository?.root ?? directory
  const files = [await globalExcludesFile({ program, directory: root, env: personEnvironment(env) })]
  if (repository !== null) files.push(join(repository.commonDir, 'info', 'exclude'))
  const texts = await Promise.all(files.map(file => readExcludes(resolve(root, file))))
  return texts.filter(text => text !== '').join('\n')
}

/** Returns the path of the person's global excludes file. Reading the configuration runs none of its programs. */
async function globalExcludesFile(setting: GitSetting): Promise<string> {
  const { ok, stdout } = await runGit(setting, ['config', '--null', '--type=path', '--get', 'core.excludesFile'])
  if (ok) return fromLatin1(stdout).replace(/\0$/, '')
  const { XDG_CONFIG_HOME, HOME } = setting.env
  return join(XDG_CONFIG_HOME || join(HOME || homedir(), '.config'), 'git', 'ignore')
}

/** Returns the environment with the variables for configuration files, and without those for the repository. */
function personEnvironment(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const kept = ['GIT_CONFIG_GLOBAL', 'GIT_CONFIG_SYSTEM', 'GIT_CONFIG_NOSYSTEM']
  const configuration = Object.entries(env).filter(([name]) => kept.includes(name))
  return { ...withoutGitVariables(env), ...Object.fromEntries(configuration) }
}

/** Reads rules of a regular file up to 1 MiB; follows links (dotfiles often are). Other entries exclude nothing. */
async function readExcludes(path: string): Promise<string> {
  try {
    const read = await readRegularFile(await realpath(path), EXCLUDES_BYTES)
    return read.kind === 'bytes' ? read.bytes.toString('latin1') : ''
  } catch {
    return ''
  }
}

const EXCLUDES_BYTES = 1024 * 1024
