import { execFile } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

/**
 * Makes a git repository for a demo in `directory`, which has to be empty or missing: these files (by their names) in
 * one commit, and an identity of its own, so that commits need nothing of the person's. `env` is what git runs with.
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
  for (const [key, value] of Object.entries(ownSettings)) await git('config', '--local', key, value)
  await git('add', '--all')
  await git('commit', '--quiet', '--message', commit.message)
}

/** What a person's own git configuration could otherwise change about the demo's commits. */
const ownSettings = {
  'user.name': 'codemachine demo',
  'user.email': 'demo@localhost',
  'commit.gpgSign': 'false',
  'core.hooksPath': '.git/hooks',
  'core.autocrlf': 'false',
}
