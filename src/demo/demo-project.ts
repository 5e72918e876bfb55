import { findMemory } from './demo-memory.ts'
import { createRepository } from './demo-repository.ts'
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
 * Makes the git repository of the demo in `directory`, which has to be empty or missing: an idea in one commit. `env` is
 * what git runs with.
 */
export async function createDemoRepository(
  directory: string,
  env: Readonly<Record<string, string | undefined>>,
): Promise<void> {
  await createRepository(directory, { files: { 'IDEA.md': ideaText }, message: 'Write down the idea' }, env)
}
