import { randomUUID } from 'node:crypto'
import { copyFile, readFile, rm } from 'node:fs/promises'
import { join, relative, sep } from 'node:path'
import { systemErrorCode } from '../base/errors.ts'
import { borrowing, withoutBorrowed } from './borrowed-objects.ts'
import { findGit, type GitSetting, hardenedEnvironment, runGit } from './git-command.ts'
import { readPersonExcludes } from './person-excludes.ts'
import type { PersonRepository } from './person-repository.ts'
import { type GitPlace, isUsable, layOutPrivateGit, removeLeftovers } from './private-git-layout.ts'
import { readTextFile } from './read-text-file.ts'
import { writingGit } from './writing-git.ts'

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
export interface PrivateGit extends GitPlace {
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
  const git = await describe({ gitDir, directory, repository, env })
  const excludes = await readPersonExcludes(git.setting.program, directory, repository, env)
  await writingGit(gitDir, () => layOutPrivateGit(git, excludes))
  await removeLeftovers(gitDir)
  return (await isLeftOut(git)) ? startAt(git, directory) : git
}

/**
 * The private git directory as somebody may look at it who does not hold the lock of the run: nothing of it is made,
 * mended or taken away, and the index is a copy, which `forget` removes. Null if there is none yet.
 */
export async function lookAtPrivateGit(
  options: PrivateGitOptions,
): Promise<{ git: PrivateGit; forget(): Promise<void> } | null> {
  const { gitDir, directory } = options
  const described = await describe(options)
  if (!(await isUsable(described))) return null
  const { setting } = described
  const index = join(gitDir, `look-${randomUUID()}.index`)
  await writingGit(gitDir, () => copyFile(join(gitDir, 'index'), index).catch(unlessMissing))
  const git = { ...described, setting: { ...setting, env: { ...setting.env, GIT_INDEX_FILE: index } } }
  return {
    git: (await isLeftOut(git)) ? startAt(git, directory) : git,
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
export function onOwnObjects(git: PrivateGit): GitSetting {
  return withoutBorrowed(withoutIndex(git))
}

/** Makes a git directory that has become unusable anew; leaves a good one alone. */
export async function mendPrivateGit(git: PrivateGit): Promise<void> {
  const excludes = await readFile(join(git.gitDir, 'info', 'exclude'), 'latin1').catch(() => '')
  await layOutPrivateGit(git, excludes)
}

async function describe({ gitDir, directory, repository, env }: PrivateGitOptions): Promise<PrivateGit> {
  const top = repository?.root ?? directory
  const program = await findGit(env, top)
  const variables = {
    ...hardenedEnvironment(env, join(gitDir, 'empty')),
    GIT_DIR: gitDir,
    GIT_WORK_TREE: top,
    ...borrowing(repository),
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

async function objectFormatOf({ commonDir }: PersonRepository): Promise<GitPlace['objectFormat']> {
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

function unlessMissing(error: unknown): void {
  if (systemErrorCode(error) !== 'ENOENT') throw error
}

const configLimit = 1024 * 1024
