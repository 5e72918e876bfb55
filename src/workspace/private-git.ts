import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join, relative, sep } from 'node:path'
import { findGit, type GitSetting, hardenedEnvironment, runGit, runGitOrThrow } from './git-command.ts'
import { readPersonExcludes } from './person-excludes.ts'
import type { PersonRepository } from './person-repository.ts'
import { readTextFile } from './read-text-file.ts'

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
export interface PrivateGit {
  gitDir: string
  repository: PersonRepository | null
  /** How git is run on it; `setting.directory` is the top that all paths of the index are relative to. */
  setting: GitSetting
  /** The work directory relative to that top, with a `/` at its end; empty where they are the same. */
  prefix: string
  objectFormat: ObjectFormat
  /** Whether many files at once can go into one pack instead of a file each: git 2.38 and newer. */
  packsInBulk: boolean
}

type ObjectFormat = 'sha1' | 'sha256'

/** Opens or makes the private git directory; a broken one is put aside as `<gitDir>.broken`, replacing an older. */
export async function openPrivateGit({ gitDir, directory, repository, env }: PrivateGitOptions): Promise<PrivateGit> {
  const top = repository?.root ?? directory
  const program = await findGit(env, top)
  const excludes = await readPersonExcludes(program, directory, repository, env)
  const variables = { ...hardenedEnvironment(env, join(gitDir, 'empty')), GIT_DIR: gitDir, GIT_WORK_TREE: top }
  const git: PrivateGit = {
    gitDir,
    repository,
    setting: { program, directory: top, env: variables },
    prefix: prefixOf(top, directory),
    objectFormat: repository === null ? 'sha1' : await objectFormatOf(repository),
    packsInBulk: await isAtLeast(program, directory, variables, [2, 38]),
  }
  await layOut(git, excludes)
  return (await isLeftOut(git)) ? startAt(git, directory) : git
}

/** Makes a git directory that has become unusable anew; leaves a good one alone. */
export async function mendPrivateGit(git: PrivateGit): Promise<void> {
  const excludes = await readFile(join(git.gitDir, 'info', 'exclude'), 'latin1').catch(() => '')
  await layOut(git, excludes)
}

/** Forgets what the index knows, together with the lock that a crash has left: the caller holds the lock of the run. */
export async function dropIndex({ gitDir }: PrivateGit): Promise<void> {
  const names = await readdir(gitDir)
  const parts = names.filter(name => name === 'index' || name === 'index.lock' || name.startsWith('sharedindex.'))
  for (const name of parts) await rm(join(gitDir, name), { force: true, recursive: true })
}

async function layOut(git: PrivateGit, excludes: string): Promise<void> {
  const { gitDir, repository } = git
  if (!(await isUsable(git))) await makeAnew(git)
  await mkdir(join(gitDir, 'info'), { recursive: true })
  await mkdir(join(gitDir, 'objects', 'info'), { recursive: true })
  const borrowed = repository === null ? '' : `${quoteAlternate(join(repository.commonDir, 'objects'))}\n`
  await writeFile(join(gitDir, 'empty'), '')
  await writeFile(join(gitDir, 'objects', 'info', 'alternates'), borrowed)
  await writeFile(join(gitDir, 'info', 'exclude'), excludes, 'latin1')
  await writeFile(join(gitDir, 'info', 'attributes'), bytesAsTheyAre)
  await writeConfig(gitDir)
  await rm(join(gitDir, 'index.lock'), { force: true, recursive: true })
}

async function isUsable({ setting, objectFormat }: PrivateGit): Promise<boolean> {
  const { ok, stdout } = await runGit(setting, ['rev-parse', '--show-object-format'])
  return ok && stdout.trim() === objectFormat
}

async function makeAnew({ gitDir, setting, objectFormat }: PrivateGit): Promise<void> {
  const broken = `${gitDir}.broken`
  await rm(broken, { recursive: true, force: true })
  await rename(gitDir, broken).catch(() => {})
  await mkdir(gitDir, { recursive: true, mode: 0o700 })
  const { GIT_DIR: _, GIT_WORK_TREE: __, ...env } = setting.env
  // `git init` finds out what the file system can do (modes, links, case).
  await runGitOrThrow({ ...setting, directory: gitDir, env }, [
    'init',
    '--quiet',
    '--bare',
    '--template=',
    `--object-format=${objectFormat}`,
    '.',
  ])
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
\tsplitIndex = true
[splitIndex]
\tsharedIndexExpire = 1.day.ago
[gc]
\tauto = 0
[maintenance]
\tauto = false
`
  await writeFile(path, probed + own)
}

/** A work directory that the person's own rules ignore would have nothing in it: then those above it do not count. */
async function isLeftOut({ prefix, setting }: PrivateGit): Promise<boolean> {
  if (prefix === '') return false
  const path = Buffer.from(prefix, 'utf8').toString('latin1')
  // `check-ignore` takes no literal paths from outside, and needs none.
  const plain = { ...setting, env: { ...setting.env, GIT_LITERAL_PATHSPECS: '0' } }
  return (await runGit(plain, ['check-ignore', '--quiet', '--no-index', '--stdin', '-z'], `${path}\0`)).ok
}

function startAt(git: PrivateGit, directory: string): PrivateGit {
  const env = { ...git.setting.env, GIT_WORK_TREE: directory }
  return { ...git, prefix: '', setting: { ...git.setting, directory, env } }
}

async function objectFormatOf({ commonDir }: PersonRepository): Promise<ObjectFormat> {
  const config = await readTextFile(join(commonDir, 'config'), configLimit)
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

/** As `objects/info/alternates` wants it: one path a line, quoted where it could be taken for something else. */
function quoteAlternate(path: string): string {
  return /^["#]|[\n\\]/.test(path) ? `"${path.replace(/["\\]/g, '\\$&').replaceAll('\n', '\\n')}"` : path
}

const ownConfigMark = '# What follows is codemachine’s.'
// A file's own bytes count: no filter, line ending or encoding that a `.gitattributes` in the tree asks for.
const bytesAsTheyAre = '* -text -eol -ident -filter -working-tree-encoding\n'
const configLimit = 1024 * 1024
