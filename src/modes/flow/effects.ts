import { createHash } from 'node:crypto'
import { dirname, join } from 'node:path'
import { loadPrompt } from '../../base/package.ts'
import type { ThreadSpec } from '../../core/engine.ts'
import { askPersonTool } from '../../core/shapes/tools.ts'
import type { Template, TemplateSetup } from '../../core/template.ts'
import { withPaths } from '../../session/round-input.ts'
import { findObstacle, readRegularFile } from '../../workspace/files/inside-directory.ts'
import { type MockScript, SCRIPT_NAME } from './file/mock-script.ts'
import {
  type AgentWork,
  type FlowPlan,
  type FlowStep,
  filesOf,
  PLAN_NAME,
  runsAsExec,
  runsElsewhere,
} from './file/plan.ts'
import { keptRecording } from './file/recording.ts'
import { lookOf, nextOfFlow } from './next.ts'
import { nextOfReplay } from './replay.ts'

/** Prepares a workflow from its plan, as read at the session's start. */
export async function openFlow(setup: TemplateSetup): Promise<Template> {
  const plan = JSON.parse(await setup.kept.read(PLAN_NAME)) as FlowPlan
  const script = await scriptIn(setup)
  const threads = new Map<string, ThreadSpec>()
  for (const step of plan.steps) {
    if (step.work.kind !== 'agent') continue
    const thread = threadOf(step, step.work, setup)
    const isReplay = step.work.engine === 'mock' && script === null
    threads.set(step.id, isReplay ? { ...thread, ...(await replayOf(step, setup)) } : thread)
  }
  return {
    threads: [...threads.values()].map(thread => ({ part: 'step', thread })),
    looks: looksOf(plan, setup),
    ...(script === null ? nextOfFlow({ plan, threads }) : nextOfReplay({ plan, script, threads })),
  }
}

/** Returns the script of a replay; null: the session is none. */
async function scriptIn(setup: TemplateSetup): Promise<MockScript | null> {
  return setup.kept.has(SCRIPT_NAME) ? (JSON.parse(await setup.kept.read(SCRIPT_NAME)) as MockScript) : null
}

function threadOf(step: FlowStep, work: AgentWork, setup: TemplateSetup): ThreadSpec {
  const { goal } = setup.agents
  const isScope = work.engine === 'codemachine'
  const isOfOthers = runsElsewhere(work)
  const words = isScope ? withPaths(loadPrompt('goal'), { ...setup, memory: setup.scopeFolder(step.id) }) : null
  return {
    agent: work.agent,
    developerInstructions: words === null ? work.prompt.text : `${work.prompt.text.trimEnd()}\n\n${words}`,
    model: work.model ?? (isOfOthers ? null : goal.model),
    effort: work.model === null && !isOfOthers ? goal.modelReasoningEffort : null,
    ...(step.readOnly ? { readOnly: true } : {}),
    ...(isOfOthers ? { engine: work.engine } : {}),
    ...(runsAsExec(work) ? { engine: 'exec', args: work.args } : {}),
    ...(isScope ? { tools: [askPersonTool] } : {}),
  }
}

/** Returns the thread of a replayed step in a real run; its recording is from the session's start. */
async function replayOf(step: FlowStep, setup: TemplateSetup): Promise<Pick<ThreadSpec, 'engine' | 'recording'>> {
  const name = keptRecording(step)
  await setup.kept.read(name)
  return { engine: 'replay', recording: { path: setup.kept.path(name), pace: 'at-once' } }
}

/** Returns looks at the files that steps append to, each at the current time. */
function looksOf({ steps }: FlowPlan, { directory }: TemplateSetup): NonNullable<Template['looks']> {
  const looks = steps.flatMap(step =>
    filesOf(step)
      .filter(({ append }) => append)
      .map(({ path }, at) => [lookOf(step, at), async () => await lookAt(directory, path)] as const),
  )
  return Object.fromEntries(looks)
}

const MOST_BYTES = 16 * 1024 * 1024

/** Null: missing, or unreadable; the append reports why. */
async function lookAt(directory: string, path: string): Promise<{ bytes: number; sha256: string } | null> {
  if ((await findObstacle(directory, dirname(path))) !== null) return null
  const read = await readRegularFile(join(directory, path), MOST_BYTES)
  if (read.kind !== 'bytes') return null
  return { bytes: read.bytes.length, sha256: createHash('sha256').update(read.bytes).digest('hex') }
}
