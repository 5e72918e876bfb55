import { randomUUID } from 'node:crypto'
import { copyFile, mkdir, readdir, readFile, rename, rm } from 'node:fs/promises'
import { join, relative, sep } from 'node:path'
import { systemErrorCode } from '../../base/errors.ts'
import { pathExists, writeWholeFile } from '../../platform/files.ts'
import { readTextFile } from '../files/inside-directory.ts'
import {
  borrowedObjectsEnvironment,
  findGit,
  GitError,
  type GitResult,
  type GitSetting,
  hardenedEnvironment,
  type PersonRepository,
  readPersonExcludes,
  removeUnfinishedObjects,
  runGit,
  withoutBorrowedObjects,
  writeToPrivateGit,
} from './git.ts'

/** Where codemachine's private git directory lies and what it looks at. */
export interface PrivateGitOptions {
  /** Outside of what agents can write. Made if it is not there. */
  gitDir: string
  /** Real path of the work directory. */
  directory: string
  /** The person's repository around the work directory: its objects are borrowed, its ignore rules honoured. */
  repository: PersonRepository | null
  env: NodeJS.ProcessEnv
}

/** codemachine's own git directory for a work directory. The person's index, references, config and hooks are no part of it. */
export interface PrivateGit extends PrivateGitLocation {
  repository: PersonRepository | null
  /** The work directory relative to git's top, with a `/` at its end; empty where they are the same. */
  prefix: string
  /** Whether many files at once can go into one pack instead of a file each: git 2.38 and newer. */
  packsInBulk: boolean
}

/**
 * Opens or makes the private git directory. A broken one is mended, its objects and references kept; one that cannot be
 * is put aside as `<gitDir>.broken`, replacing an older.
 */
export async function openPrivateGit({ gitDir, directory, repository, env }: PrivateGitOptions): Promise<PrivateGit> {
  const git = await locatePrivateGit({ gitDir, directory, repository, env })
  const excludes = await readPersonExcludes(git.setting.program, directory, repository, env)
  await writeToPrivateGit(gitDir, () => preparePrivateGit(git, excludes))
  await removeLeftovers(gitDir)
  return (await isIgnored(git)) ? withTopAt(git, directory) : git
}

/**
 * The private git directory as somebody may look at it who does not hold the lock of the run: nothing of it is made,
 * mended or taken away, and the index is a copy, which `forget` removes. Null if there is none yet.
 */
export async function openPrivateGitReadOnly(
  options: PrivateGitOptions,
): Promise<{ git: PrivateGit; forget(): Promise<void> } | null> {
  const { gitDir, directory } = options
  const described = await locatePrivateGit(options)
  if (!(await isUsable(described))) return null
  const { setting } = described
  const index = join(gitDir, `look-${randomUUID()}.index`)
  await writeToPrivateGit(gitDir, () => copyFile(join(gitDir, 'index'), index).catch(unlessMissing))
  const git = { ...described, setting: { ...setting, env: { ...setting.env, GIT_INDEX_FILE: index } } }
  return {
    git: (await isIgnored(git)) ? withTopAt(git, directory) : git,
    forget: async () => {
      for (const path of [index, `${index}.lock`]) await rm(path, { force: true })
    },
  }
}

/** How git is run without an index, so that nothing of it is read or locked. */
export function withoutIndex({ gitDir, setting }: PrivateGit): GitSetting {
  return { ...setting, env: { ...setting.env, GIT_INDEX_FILE: join(gitDir, 'no-index') } }
}

/** As `withoutIndex`, on what the private git directory itself holds: what it borrows is not there. */
export function withOwnObjectsOnly(git: PrivateGit): GitSetting {
  return withoutBorrowedObjects(withoutIndex(git))
}

/** Makes a git directory that has become unusable anew; leaves a good one alone. */
export async function repairPrivateGit(git: PrivateGit): Promise<void> {
  const excludes = await readFile(join(git.gitDir, 'info', 'exclude'), 'latin1').catch(() => '')
  await preparePrivateGit(git, excludes)
}

async function locatePrivateGit({ gitDir, directory, repository, env }: PrivateGitOptions): Promise<PrivateGit> {
  const top = repository?.root ?? directory
  const program = await findGit(env, top)
  const variables = {
    ...hardenedEnvironment(env, join(gitDir, 'empty')),
    GIT_DIR: gitDir,
    GIT_WORK_TREE: top,
    ...borrowedObjectsEnvironment(repository),
  }
  return {
    gitDir,
    repository,
    setting: { program, directory: top, env: variables },
    prefix: prefixOf(top, directory),
    objectFormat: repository === null ? 'sha1' : await objectFormatOf(repository),
    packsInBulk: await isAtLeast(program, directory, variables, [2, 38]),
  }
}

/** A work directory that the person's own rules ignore would have nothing in it: then those above it do not count. */
async function isIgnored({ prefix, setting }: PrivateGit): Promise<boolean> {
  if (prefix === '') return false
  const path = Buffer.from(prefix, 'utf8').toString('latin1')
  // `check-ignore` takes no literal paths from outside, and needs none.
  const plain = { ...setting, env: { ...setting.env, GIT_LITERAL_PATHSPECS: '0' } }
  return (await runGit(plain, ['check-ignore', '--quiet', '--no-index', '--stdin', '-z'], `${path}\0`)).ok
}

function withTopAt(git: PrivateGit, directory: string): PrivateGit {
  const env = { ...git.setting.env, GIT_WORK_TREE: directory }
  return { ...git, prefix: '', setting: { ...git.setting, directory, env } }
}

async function objectFormatOf({ commonDir }: PersonRepository): Promise<PrivateGitLocation['objectFormat']> {
  const config = await readTextFile(join(commonDir, 'config'), CONFIG_BYTES)
  return config.kind === 'text' && /^\s*objectformat\s*=\s*"?sha256/im.test(config.text) ? 'sha256' : 'sha1'
}

async function isAtLeast(
  program: string,
  directory: string,
  env: NodeJS.ProcessEnv,
  [major, minor]: readonly [number, number],
): Promise<boolean> {
  const { stdout } = await runGit({ program, directory, env }, ['version'])
  const [, x, y] = stdout.match(/(\d+)\.(\d+)/) ?? []
  return Number(x) > major || (Number(x) === major && Number(y) >= minor)
}

function prefixOf(top: string, directory: string): string {
  const path = relative(top, directory).split(sep).join('/')
  return path === '' ? '' : `${path}/`
}

function unlessMissing(error: unknown): void {
  if (systemErrorCode(error) !== 'ENOENT') throw error
}

const CONFIG_BYTES = 1024 * 1024

/** The private git directory, and how git is run on it. */
export interface PrivateGitLocation {
  gitDir: string
  /** `directory` is the top that all paths of the index are relative to. */
  setting: GitSetting
  objectFormat: 'sha1' | 'sha256'
}

/**
 * Makes a private git directory what it has to be, and takes away the locks that a killed git has left. A broken one is
 * mended, its objects and references kept; one that cannot be is put aside. The caller holds the lock of the run.
 */
async function preparePrivateGit(git: PrivateGitLocation, excludes: string): Promise<void> {
  const { gitDir } = git
  if (!(await isUsable(git))) await recreate(git)
  await mkdir(join(gitDir, 'info'), { recursive: true })
  await mkdir(join(gitDir, 'objects', 'info'), { recursive: true })
  await writeIfDifferent(join(gitDir, 'empty'), '')
  // What is borrowed is said by the environment, so that it can be left out.
  await writeIfDifferent(join(gitDir, 'objects', 'info', 'alternates'), '')
  await writeIfDifferent(join(gitDir, 'info', 'exclude'), Buffer.from(excludes, 'latin1'))
  await writeIfDifferent(join(gitDir, 'info', 'attributes'), NO_CONVERSION)
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
async function removeLeftovers(gitDir: string): Promise<void> {
  const names = await readdir(gitDir)
  for (const name of names.filter(each => each.startsWith('rewind-'))) {
    await rm(join(gitDir, name), { force: true, recursive: true })
  }
  // Somebody may look, who needs no lock, and write what the files are now.
  if (!names.some(name => name.startsWith('look-'))) await removeUnfinishedObjects(gitDir)
}

/** Whether git takes it for what it has to be. */
async function isUsable({ gitDir, setting, objectFormat }: PrivateGitLocation): Promise<boolean> {
  // Without its config git takes it for a repository all the same.
  if (!(await pathExists(join(gitDir, 'config')))) return false
  const { ok, stdout } = await runGit(setting, ['rev-parse', '--show-object-format'])
  return ok && stdout.trim() === objectFormat
}

/** What of it is good stays: the savepoints outlive a broken config or HEAD. */
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

/** `git init` finds out what the file system can do (modes, links, case). */
function init({ gitDir, setting, objectFormat }: PrivateGitLocation): Promise<GitResult> {
  const { GIT_DIR: _, GIT_WORK_TREE: __, ...env } = setting.env
  const format = `--object-format=${objectFormat}`
  return runGit({ ...setting, directory: gitDir, env }, ['init', '--quiet', '--bare', '--template=', format, '.'])
}

/** `splitIndex`: of 50,000 files, one change then costs 15 ms to write in place of 40. */
async function writeConfig(gitDir: string): Promise<void> {
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
\tsplitIndex = true${sep === '/' ? ALLOW_NTFS_NAMES : ''}
[splitIndex]
\tsharedIndexExpire = 1.day.ago
[gc]
\tauto = 0
[maintenance]
\tauto = false
`
  await writeIfDifferent(path, probed + own)
}

/** Whole or not at all: a cut-off file would change what git looks at. */
async function writeIfDifferent(path: string, content: string | Buffer): Promise<void> {
  const bytes = Buffer.from(content)
  const before = await readFile(path).catch(() => null)
  if (before === null || !before.equals(bytes)) await writeWholeFile(path, bytes)
}

/** Forgets what the index knows, together with the lock that a crash has left: the caller holds the lock of the run. */
export async function removeIndex({ gitDir }: Pick<PrivateGitLocation, 'gitDir'>): Promise<void> {
  const names = await readdir(gitDir)
  const parts = names.filter(name => /^(?:index(?:\.lock)?$|sharedindex\.|(?:look|rewind)-.*\.index)/.test(name))
  for (const name of parts) await rm(join(gitDir, name), { force: true, recursive: true })
}

/** A folder that an agent calls `git~1` is one as any other, and what is in it counts. */
const ALLOW_NTFS_NAMES = '\n\tprotectNTFS = false'
const OWN_CONFIG_MARK = '# What follows is codemachine’s.'
// A file's own bytes count: no filter, line ending or encoding that a `.gitattributes` in the tree asks for.
// Nor is a text not shown for it.
const NO_CONVERSION = '* -text -eol -ident -filter -working-tree-encoding !diff !merge !whitespace\n'
