import { execFile } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type Action, findSessionPaths, play, projectSources } from './actions.ts'
import { reply, roundsScript, type Script, type ScriptStep } from './model/reply.ts'

const sources = projectSources('linkcheck')

/** The goal of the demo's session. */
export const demoGoal = `Build linkcheck, a command that finds the links in Markdown files that lead nowhere: to missing files, and to missing headings.
It prints the file and line of each, and its exit code tells whether there are any. Plain JavaScript, no dependencies,
with tests for node --test and a short README.`

/** A round, with the items of each reply. */
interface Round {
  steps: readonly (readonly Action[])[]
}

/**
 * The script of the demo in five rounds: plan, core, rest, a review whose done claim is refused, and a second look
 * whose claim is accepted. The developer instructions of each conversation have to name the session's `MAIN.md`.
 * `watchable` sends text at reading speed.
 */
export function demoScript(pace: 'instant' | 'watchable'): Script {
  const deltaMs = pace === 'watchable' ? 40 : 0
  const rounds = sources.json<readonly Round[]>('rounds.json')
  return roundsScript(rounds.map(({ steps }) => steps.map(step => scriptStep(step, deltaMs))))
}

function scriptStep(step: readonly Action[], deltaMs: number): ScriptStep {
  return request => {
    const session = findSessionPaths(request.developerTexts)
    if (session === null) throw new Error('the developer instructions name no .codemachine/projects/<id>/MAIN.md')
    const scene = { sources, session, plan: sources.text('codemachine/session/tasks.json') }
    return { ...reply(...step.map(action => play(action, scene))), deltaMs }
  }
}

/**
 * Creates the git repository of the demo in `directory`, which has to be empty or missing: an idea in one commit.
 * `env`: the environment of git.
 */
export async function createDemoRepository(
  directory: string,
  env: Readonly<Record<string, string | undefined>>,
): Promise<void> {
  await createRepository(
    directory,
    { files: { 'IDEA.md': sources.text('IDEA.md') }, message: 'Write down the idea' },
    env,
  )
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
