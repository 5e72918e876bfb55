import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { packageFile } from '../base/package.ts'
import { addFile, type PatchedFile, updateFile } from './actions.ts'

/** The source files of a demo project, in `demo/<project>`. `demo/README.md` says how they are named. */
interface ProjectSources {
  /** The content of one source file. */
  text(source: string): string
  /** Adds `path` to the project with the content of `source`, which is the same path if left out. */
  add(path: string, source?: string): PatchedFile
  /** Changes `path` in the project by a `.patch` file. */
  update(path: string, source: string): PatchedFile
}

/** The sources of a demo project. Each file is read when it is needed, so loading the demo reads none. */
export function projectSources(project: 'linkcheck' | 'reading-list'): ProjectSources {
  const text = (source: string) => readFileSync(packageFile(join('demo', project, source)), 'utf8')
  return {
    text,
    add: (path, source = path) => addFile(path, text(source)),
    update: (path, source) => updateFile(path, text(source)),
  }
}

/**
 * Creates a git repository in `directory`, which has to be empty or missing, with one commit of `files` (texts by file
 * name). The repository has its own identity, so committing needs none of the person's settings.
 * @param env the environment of git
 */
export async function createRepository(
  directory: string,
  commit: { files: Readonly<Record<string, string>>; message: string },
  env: Readonly<Record<string, string | undefined>>,
): Promise<void> {
  const git = async (...args: readonly string[]) => {
    await promisify(execFile)('git', [...args], { cwd: directory, env })
  }
  await mkdir(directory, { recursive: true })
  for (const [name, text] of Object.entries(commit.files)) await writeFile(join(directory, name), text)
  await git('init', '--quiet', '--initial-branch=main', '--template=')
  for (const [key, value] of Object.entries(GIT_CONFIG)) await git('config', '--local', key, value)
  await git('add', '--all')
  await git('commit', '--quiet', '--message', commit.message)
}

/** Settings with which the person's own git configuration could change the demo's commits. */
const GIT_CONFIG = {
  'user.name': 'codemachine demo',
  'user.email': 'demo@localhost',
  'commit.gpgSign': 'false',
  'core.hooksPath': '.git/hooks',
  'core.autocrlf': 'false',
}

/** Where the session that is played keeps its memory; paths as codex was told them. */
export interface SessionPaths {
  main: string
  tasks: string
  kb: string
}

/** Finds the session's folder in the developer messages of a request; `null` if they name none. */
export function findSessionPaths(developerTexts: readonly string[]): SessionPaths | null {
  const found = /([^\s`'"]*\.codemachine)\/projects\/[^\s`'"/]+(?=\/MAIN\.md)/.exec(developerTexts.join('\n'))
  if (found?.[1] === undefined) return null
  return { main: `${found[0]}/MAIN.md`, tasks: `${found[0]}/tasks.json`, kb: `${found[1]}/kb` }
}
