import { createHash } from 'node:crypto'
import { dirname, join } from 'node:path'
import { parsedOrNull } from '../../base/json.ts'
import { loadPrompt } from '../../base/package.ts'
import type { ThreadSpec } from '../../core/engine.ts'
import type { Output } from '../../core/rules/outputs.ts'
import { askPersonTool } from '../../core/shapes/tools.ts'
import type { SessionState } from '../../core/state/state.ts'
import type { Template, TemplateSetup } from '../../core/template.ts'
import { withPaths } from '../../session/round-input.ts'
import { findObstacle, readRegularFile } from '../../workspace/files/inside-directory.ts'
import { type MockScript, SCRIPT_NAME } from './file/mock-script.ts'
import {
  type AgentWork,
  comparedFields,
  type FlowPlan,
  type FlowStep,
  filesOf,
  type Items,
  listIn,
  MOST_ITEMS,
  PLAN_NAME,
  type Reference,
  runsAsExec,
  runsElsewhere,
  textAt,
} from './file/plan.ts'
import { keptRecording } from './file/recording.ts'
import { itemsOf, lookOf, nextOfFlow, recordOf } from './next.ts'
import { nextOfReplay } from './replay.ts'
import { COLLECTED, type FlowWork, ITEMS, workOf } from './work.ts'

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
  // A step of an item has its own memory.
  const threadFor = (step: FlowStep) =>
    threads.get(step.id) ?? (step.work.kind === 'agent' ? threadOf(step, step.work, setup) : undefined)
  return {
    threads: [...threads.values()].map(thread => ({ part: 'step', thread })),
    looks: looksOf(plan, setup),
    ...(script === null ? nextOfFlow({ plan, threadFor }) : nextOfReplay({ plan, script, threads })),
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
function looksOf(plan: FlowPlan, { directory, readOutput }: TemplateSetup): NonNullable<Template['looks']> {
  const files = plan.steps.flatMap(step =>
    filesOf(step)
      .filter(({ append }) => append)
      .map(({ path }, at) => [lookOf(step, at), async () => await lookAt(directory, path)] as const),
  )
  const read = async (output: Output) => (await readOutput?.(output)) ?? null
  const loops = plan.steps.flatMap(step => {
    const items = async (_: AbortSignal, session: SessionState) => await listOf(step, workOf(session), plan, read)
    const outputs = async (_: AbortSignal, session: SessionState) => await outputsOf(step, workOf(session), read)
    return step.forEach === undefined
      ? []
      : ([
          [`${ITEMS}${step.index}`, items],
          [`${COLLECTED}${step.index}`, outputs],
        ] as const)
  })
  return Object.fromEntries([...files, ...loops])
}

/** Null: it is missing, unreadable or changed. */
type ReadOutput = (output: Output) => Promise<string | null>

/** Of the items as JSON; the journal has no longer result of a look. */
const MOST_ITEM_BYTES = 50_000

/** Returns the items of a loop, or why there are none: a sentence. */
async function listOf(
  { forEach = [] }: FlowStep,
  own: FlowWork,
  { values }: FlowPlan,
  read: ReadOutput,
): Promise<Items | { problem: string }> {
  const text = 'length' in forEach ? '' : await textOf(forEach)
  if (text === null) return { problem: 'The result that has its items cannot be read any more.' }
  const texts = 'length' in forEach ? forEach : listIn(text)
  if (texts.length > MOST_ITEMS) return { problem: `It has ${texts.length} items; at most ${MOST_ITEMS} are allowed.` }
  const bytes = Buffer.byteLength(JSON.stringify(texts))
  if (bytes > MOST_ITEM_BYTES)
    return { problem: `Its items have ${bytes} bytes as JSON; at most ${MOST_ITEM_BYTES} are allowed.` }
  return { texts, count: texts.length }

  async function textOf(reference: Reference): Promise<string | null> {
    if ('variable' in reference) return values[reference.variable]?.text ?? ''
    const record = recordOf(own, reference.step)
    const output = reference.part === 'output' ? record?.output : record?.answer
    // A skipped step has none.
    if (output == null) return ''
    const text = await read(output)
    if (text === null || reference.part === 'output') return text
    const answer = parsedOrNull(text)
    return answer === null ? null : textAt(answer, reference.field)
  }
}

/** Characters of all outputs as JSON; a session keeps no longer text. */
const MOST_COLLECTED = 1_000_000

/** Returns the outputs of a loop's items as a JSON list, or why there is none: a sentence. */
async function outputsOf(step: FlowStep, own: FlowWork, read: ReadOutput) {
  const done = itemsOf(step, own).filter(({ mark }) => mark === 'done')
  const list: unknown[] = []
  for (const { answer, output } of done) {
    const from = answer ?? output
    const text = from === null ? '' : await read(from)
    if (text === null) return { text: '', problem: 'The output of an item cannot be read any more.' }
    list.push(answer === null ? text : parsedOrNull(text))
  }
  const text = `[\n${list.map(each => `  ${JSON.stringify(each)}`).join(',\n')}\n]`
  if (text.length > MOST_COLLECTED) {
    const most = `at most ${MOST_COLLECTED} are allowed`
    return { text: '', problem: `The outputs of its items have ${text.length} characters as JSON; ${most}.` }
  }
  return { text, fields: comparedFields(list, step.id, own.options) }
}

const MOST_BYTES = 16 * 1024 * 1024

/** Null: missing, or unreadable; the append reports why. */
async function lookAt(directory: string, path: string): Promise<{ bytes: number; sha256: string } | null> {
  if ((await findObstacle(directory, dirname(path))) !== null) return null
  const read = await readRegularFile(join(directory, path), MOST_BYTES)
  if (read.kind !== 'bytes') return null
  return { bytes: read.bytes.length, sha256: createHash('sha256').update(read.bytes).digest('hex') }
}
