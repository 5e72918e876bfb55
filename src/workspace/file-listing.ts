import { lstat } from 'node:fs/promises'
import { join } from 'node:path'
import { runProcess } from '../platform/run-process.ts'
import type { GitSetting } from './git-command.ts'
import type { PrivateGit } from './private-git.ts'

/**
 * The files of a directory that are not ignored, and those that are ignored and tracked all the same: relative to it, each
 * with a NUL after it, in git's order. Of a listing that is too long or takes too long, what came in bounds. Reads the
 * person's index and writes none; names that are not UTF-8 are left out, as nobody could say them.
 */
export async function listFiles(git: PrivateGit, directory: string): Promise<string> {
  const setting = { ...git.setting, directory }
  const [present, kept] = await Promise.all([
    untracked(setting),
    git.repository === null ? '' : trackedThoughIgnored(setting, join(git.repository.gitDir, 'index')),
  ])
  const nested = present.includes('/\0') ? pathsOf(present).filter(isFolder).slice(0, MOST_NESTED) : []
  const inNested = await Promise.all(nested.map(folder => filesOfNested(setting, folder)))
  const all = [present, ...inNested, kept].join('')
  if (!UNWANTED.test(all)) return all
  return textOf(pathsOf(all).filter(path => !UNWANTED.test(`${path}\0`)))
}

/** Nested repositories as such, what codemachine keeps there itself, and what is not UTF-8. */
const UNWANTED = /\/\0|(?:^|\0)\.codemachine\/|\uFFFD/

/** Without an index of its own git takes every file for untracked; nested repositories are named with a `/` at the end. */
function untracked(setting: GitSetting): Promise<string> {
  return listed(setting, ['-o'])
}

/** A repository in the repository is looked into as if it were a plain directory, but no deeper. */
async function filesOfNested(setting: GitSetting, folder: string): Promise<string> {
  const directory = join(setting.directory, folder)
  const inside = await untracked({ ...setting, directory, env: { ...setting.env, GIT_WORK_TREE: directory } })
  return textOf(pathsOf(inside).map(path => folder + path))
}

async function trackedThoughIgnored(setting: GitSetting, index: string): Promise<string> {
  const env = { ...setting.env, GIT_INDEX_FILE: index, GIT_OPTIONAL_LOCKS: '0' }
  const paths = pathsOf(await listed({ ...setting, env }, ['-c', '-i'])).slice(0, MOST_KEPT)
  const there = await Promise.all(paths.map(path => isFile(join(setting.directory, path))))
  return textOf(paths.filter((_, index) => there[index]))
}

async function isFile(path: string): Promise<boolean> {
  const found = await lstat(path).catch(() => null)
  return found !== null && !found.isDirectory()
}

/** Nothing where git fails: an index that it cannot read, a directory that is gone. */
async function listed({ program, directory, env }: GitSetting, which: readonly string[]): Promise<string> {
  const { stdout, failure, exitCode } = await runProcess(program, ['ls-files', '-z', '--exclude-standard', ...which], {
    directory,
    env,
    encoding: 'utf8',
    outputLimit: MOST_BYTES,
    timeoutMs: LISTING_MS,
  })
  if (exitCode !== 0 && failure === null) return ''
  // What comes after the last NUL was cut off.
  return stdout.slice(0, stdout.lastIndexOf('\0') + 1)
}

function pathsOf(text: string): string[] {
  return text.split('\0').slice(0, -1)
}

function textOf(paths: readonly string[]): string {
  return paths.map(path => `${path}\0`).join('')
}

function isFolder(path: string): boolean {
  return path.endsWith('/')
}

const MOST_BYTES = 32 * 1024 * 1024
const LISTING_MS = 15_000
const MOST_NESTED = 20
const MOST_KEPT = 1_000
