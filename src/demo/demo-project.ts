import { execFile } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { findMemory } from './demo-memory.ts'
import { type DemoStep, demoRounds } from './demo-rounds.ts'
import { ideaText } from './demo-sources.ts'
import { reply } from './reply.ts'
import { roundsScript, type Script, type ScriptStep } from './script.ts'

/** The goal that the demo's script works towards. */
export const demoGoal = `Build linkcheck, a command that finds the links in Markdown files that lead nowhere: to missing files, and to missing headings.
It prints the file and line of each, and its exit code tells whether there are any. Plain JavaScript, no dependencies,
with tests for node --test and a short README.`

/**
 * Plays the demo in five rounds: plan, core, rest, a review that claims too much, and a second look that may. The
 * developer instructions of each conversation have to name the session's `MAIN.md`. `watchable` lets text flow at
 * reading speed.
 */
export function demoScript(pace: 'instant' | 'watchable'): Script {
  const deltaMs = pace === 'watchable' ? 40 : 0
  return roundsScript(demoRounds.map(round => round.map(step => scriptStep(step, deltaMs))))
}

function scriptStep(step: DemoStep, deltaMs: number): ScriptStep {
  return request => {
    const memory = findMemory(request.developerTexts)
    if (memory === null) throw new Error('the developer instructions name no .codemachine/projects/<id>/MAIN.md')
    return { ...reply(...step(memory)), deltaMs }
  }
}

/**
 * Makes the git repository of the demo in `directory`, which has to be empty or missing: an idea in one commit, and an
 * identity of its own, so that commits need nothing of the person's. `env` is what git runs with.
 */
export async function createDemoRepository(
  directory: string,
  env: Readonly<Record<string, string | undefined>>,
): Promise<void> {
  const git = async (...args: readonly string[]) => {
    await promisify(execFile)('git', [...args], { cwd: directory, env })
  }
  await mkdir(directory, { recursive: true })
  await writeFile(join(directory, 'IDEA.md'), ideaText)
  await git('init', '--quiet', '--initial-branch=main', '--template=')
  for (const [key, value] of Object.entries(ownSettings)) await git('config', '--local', key, value)
  await git('add', '--all')
  await git('commit', '--quiet', '--message', 'Write down the idea')
}

/** What a person's own git configuration could otherwise change about the demo's commits. */
const ownSettings = {
  'user.name': 'codemachine demo',
  'user.email': 'demo@localhost',
  'commit.gpgSign': 'false',
  'core.hooksPath': '.git/hooks',
  'core.autocrlf': 'false',
}
