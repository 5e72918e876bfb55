import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { type AgentPart, agentsScript } from './agents-script.ts'
import { taskedAgents, workOn } from './build-agents.ts'
import { lastLook, replanning, summary } from './build-looks.ts'
import { type BuildPlace, type BuildStep, buildPlaceOf } from './build-place.ts'
import { specificationText } from './build-plan.ts'
import { orchestration } from './build-rounds.ts'
import { booksText } from './build-sources.ts'
import { teamBuilding } from './build-team.ts'
import { createRepository } from './demo-repository.ts'
import { reply } from './reply.ts'
import type { Script, ScriptStep } from './script.ts'

/**
 * Plays the build of a small program by four agents: eight tasks, three of them at once, one of which falls short of its
 * criterion at first. `parks`: one more can never be done, and is tried five times. `watchable` lets text flow at
 * reading speed. A round that was broken off is played again from what the plan says.
 */
export function buildScript(pace: 'instant' | 'watchable', { parks }: { parks: boolean }): Script {
  const deltaMs = pace === 'watchable' ? 40 : 0
  const part = (stepsFor: (place: BuildPlace) => readonly BuildStep[]): AgentPart => {
    const begun = new Map<number, readonly ScriptStep[]>()
    return (_, request) => {
      const known = begun.get(request.conversation)
      if (known !== undefined) return known
      const steps = stepsFor(buildPlaceOf(request)).map(step => scriptStep(step, deltaMs))
      begun.set(request.conversation, steps)
      return steps
    }
  }
  return agentsScript({
    'agents-builder': part(() => teamBuilding(parks)),
    'master-mind': part(place => orchestration(parks, place)),
    'project-summarizer': part(() => summary),
    'last-look': part(() => lastLook),
    replan: part(() => replanning),
    ...Object.fromEntries(taskedAgents.map(name => [name, part(({ asked }) => workOn(asked))])),
  })
}

function scriptStep(step: BuildStep, deltaMs: number): ScriptStep {
  return request => ({ ...reply(...step(buildPlaceOf(request))), deltaMs })
}

/**
 * Makes the git repository of the build in `directory`, which has to be empty or missing: a list of books in one commit,
 * and the specification where `codemachine start` looks for it. `env` is what git runs with.
 */
export async function createBuildRepository(
  directory: string,
  env: Readonly<Record<string, string | undefined>>,
): Promise<void> {
  await createRepository(directory, { files: { 'books.json': booksText }, message: 'Begin with a list' }, env)
  const specification = join(directory, '.codemachine', 'inputs', 'specifications.md')
  await mkdir(dirname(specification), { recursive: true })
  await writeFile(specification, specificationText)
}
