import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { planFile } from './build-plan.ts'
import { type DemoMemory, findMemory } from './demo-memory.ts'
import type { ModelRequest } from './model-request.ts'
import type { ReplyItem } from './reply.ts'

/** A task as the plan's file has it. */
interface PlannedTask {
  id: string
  name: string
  details: string
  done: boolean
  parked?: string
}

/** How a build stands at a request, by its files: what is played cannot depend on where a round was broken off. */
export interface BuildPlace extends DemoMemory {
  /** In their order; none before there is a plan. */
  plan: readonly PlannedTask[]
  /** What the turn was asked for. */
  asked: string
}

/** What the model does in one step of a build. */
export type BuildStep = (place: BuildPlace) => readonly ReplyItem[]

/** Reads how the build of a request stands. */
export function buildPlaceOf({ developerTexts, userTexts }: ModelRequest): BuildPlace {
  // Only the main agents know of a MAIN.md; the plan is everybody's.
  const found = findMemory(developerTexts) ?? { main: 'MAIN.md', kb: '.codemachine/kb' }
  const directory = /<cwd>([^<]+)<\/cwd>/.exec(userTexts.join('\n'))?.[1]
  return {
    ...found,
    tasks: planFile,
    plan: directory === undefined ? [] : readPlan(join(directory, planFile)),
    asked: userTexts.at(-1) ?? '',
  }
}

/** The ids of those of these tasks that are not done. */
export function openOf({ plan }: BuildPlace, ...ids: readonly string[]): string[] {
  return ids.filter(id => plan.find(task => task.id === id)?.done !== true)
}

function readPlan(path: string): PlannedTask[] {
  try {
    return JSON.parse(readFileSync(path, 'utf8')).tasks
  } catch {
    // There is none yet, or a person is writing it.
    return []
  }
}
