import { dirname, join, relative, sep } from 'node:path'
import { messageOf } from '../../base/errors.ts'
import { loadPrompt } from '../../base/package.ts'
import { fillPlaceholders } from '../../base/text.ts'
import type { ThreadSpec } from '../../core/engine.ts'
import type { SessionState } from '../../core/state/state.ts'
import type { AnswerProblem, RoundSpec, Template, TemplateSetup } from '../../core/template.ts'
import { hashFiles } from '../../workspace/context/project-file.ts'
import { findObstacle, readTextFile, writeFileInside } from '../../workspace/files/inside-directory.ts'
import { gatherContext } from './context/gather.ts'
import { projectCommands } from './execution/before.ts'
import { LINES_LOOK, NO_TASKS_LEFT, SUMMARY_FILE, TASKS_FILE, withLines } from './execution/fold.ts'
import { MOST_TASKS, worksOf } from './execution/queue.ts'
import { nextOfChange } from './machine.ts'
import { mistakesOf, planProblem, sizeProblem } from './plan-rules.ts'
import { readPlanText } from './plan-text.ts'
import { type EditedPlan, fileOf, LOOKS, lastVersion } from './states/planning.ts'
import { summaryText } from './summary.ts'
import { readTasks, tasksFile } from './tasks.ts'
import { tasksProblem } from './tasks-rules.ts'
import {
  type ChangeOptions,
  type ChangePart,
  type ChangeParts,
  type ChangeRole,
  type ChangeWork,
  type FileHashes,
  type Responsible,
  type Worked,
  workOf,
} from './work.ts'

/** Prompt and round kind of each role. Roles that only look can write nothing. */
const ROLES: Readonly<Record<ChangeRole, { prompt: string; part: ChangePart; readOnly: boolean }>> = {
  planner: { prompt: 'change/planner', part: 'plan', readOnly: true },
  decomposer: { prompt: 'change/decomposer', part: 'decompose', readOnly: true },
  gatherer: { prompt: 'change/executor', part: 'gather', readOnly: true },
  executor: { prompt: 'change/executor', part: 'act', readOnly: false },
  fixer: { prompt: 'change/fixer', part: 'fix', readOnly: false },
  summary: { prompt: 'change/summary', part: 'summary', readOnly: true },
}

/** Prepares a change. */
export async function openChange(setup: TemplateSetup): Promise<Template> {
  const { directory, memory } = setup
  const instructions = (role: ChangeRole) => fillPlaceholders(loadPrompt(ROLES[role].prompt), { directory })
  const roles = Object.keys(ROLES) as ChangeRole[]
  const texts = new Map(roles.map(role => [role, instructions(role)]))
  const folder = relative(directory, dirname(memory.main)).split(sep).join('/')
  const partsOf = ({ options }: Pick<ChangeWork, 'options'>): ChangeParts => ({
    folder,
    thread: (role, by) => ({
      agent: role,
      developerInstructions: texts.get(role) ?? '',
      ...modelOf(by, options, setup),
      ...(ROLES[role].readOnly ? { readOnly: true } : {}),
    }),
  })
  const usual = partsOf({ options: NOBODY_NAMED })
  return {
    threads: roles.map(role => ({ part: ROLES[role].part, thread: usual.thread(role, 'planner') })),
    looks: looksOf(setup, folder),
    answerProblem,
    // Before it is accepted, a person may edit it.
    personsFiles: session => {
      const { planning } = workOf(session)
      return planning.accepted === null ? [] : [`${folder}/${fileOf(planning.accepted)}`]
    },
    beforeEnd: async session => await writeSummary(setup, folder, session),
    ...nextOfChange(partsOf),
  }
}

const NOBODY_NAMED = { executor: null, planner: { model: null, effort: null } } as ChangeOptions

function modelOf(
  by: Responsible,
  { executor, executorEngine, planner }: ChangeOptions,
  { agents: { goal } }: TemplateSetup,
): Pick<ThreadSpec, 'model' | 'effort' | 'provider' | 'engine'> {
  if (by === 'planner')
    return planner.engine === undefined ? { ...planner, model: planner.model ?? goal.model } : planner
  if (executorEngine !== undefined) return { engine: executorEngine, model: null, effort: null }
  return executor === null
    ? { model: goal.model, effort: goal.modelReasoningEffort }
    : { provider: executor.provider, model: executor.model, effort: null }
}

/** Returns why an answer is no usable plan or list of tasks, as `Template.answerProblem`. */
function answerProblem({ part }: RoundSpec, value: unknown, session: SessionState): AnswerProblem | null {
  switch (part) {
    case 'plan':
      return planProblem(value) ?? sizeProblem(value)
    case 'decompose':
      return problemOfTasks(value, session) ?? sizeProblem(value)
    default:
      return null
  }
}

function problemOfTasks(value: unknown, session: SessionState): AnswerProblem | null {
  const own = workOf(session)
  const { tasks, made } = own.execution
  const read = readTasks(value)
  if (!read.ok) return read.problem
  const room = MOST_TASKS - made
  const problem = tasksProblem(read.value, {
    done: tasks.flatMap(({ spec, status }) => (status === 'COMPLETED' ? [spec] : [])),
    room,
    projectCommands: projectCommands(own, session),
  })
  return problem !== null && made > 0 && read.value.length > room ? { problem, kind: NO_TASKS_LEFT } : problem
}

/** Returns codemachine's own looks. */
function looksOf(setup: TemplateSetup, folder: string): NonNullable<Template['looks']> {
  const { directory, looks } = setup
  return {
    [LOOKS.context]: async (signal: AbortSignal, { goal }: SessionState) =>
      looks === undefined ? NOTHING_GATHERED : await gatherContext({ directory, ...looks, request: goal, signal }),
    [LOOKS.files]: async (signal: AbortSignal, session: SessionState): Promise<FileHashes> => {
      const { planning } = workOf(session)
      const plan = planning.draft?.plan ?? lastVersion(planning).plan
      return await hashFiles(
        directory,
        plan.files.map(({ path }) => path),
        signal,
      )
    },
    [LOOKS.edited]: async (_: AbortSignal, session: SessionState) =>
      await readEdited(directory, `${folder}/${fileOf(lastVersion(workOf(session).planning))}`),
    [LINES_LOOK]: async (signal: AbortSignal, session: SessionState) =>
      await countLines(setup, workOf(session), signal),
  }
}

const NOTHING_GATHERED = {
  text: '# The project\n\nNothing was gathered.\n',
  facts: { branch: null, dirty: 0, entries: 0, manifests: [], rules: [], commands: [], mentioned: [], notes: [] },
}

/** Most bytes of a plan that a person has edited: twice a plan's own limit. */
const MOST_EDITED = 128 * 1024

async function readEdited(directory: string, path: string): Promise<EditedPlan> {
  if ((await findObstacle(directory, dirname(path))) !== null) return { problem: 'It is gone.' }
  const read = await readTextFile(join(directory, path), MOST_EDITED)
  switch (read.kind) {
    case 'text':
      return editedPlan(read.text)
    case 'gone':
      return { problem: 'It is gone.' }
    default:
      return { problem: 'It is too large, or no plain text file.' }
  }
}

/** Reads a person's edit of a version's file; a problem names its line. Pure. */
export function editedPlan(text: string): EditedPlan {
  if (text.trim() === '') return { text: '' }
  const read = readPlanText(text, mistakesOf)
  return read.ok ? { plan: read.value } : { problem: read.problem }
}

/** Most files with counted lines, for all tasks together: the result stays in its event. */
const MOST_COUNTED = 300

/** Counts the lines that each task added and removed, by its id; fixes for the claim have an empty id. */
async function countLines(
  { linesChanged }: TemplateSetup,
  { execution }: ChangeWork,
  signal: AbortSignal,
): Promise<Readonly<Record<string, Worked['lines']>>> {
  const counted: Record<string, Worked['lines']> = {}
  let room = MOST_COUNTED
  for (const [id, { treeBefore, treeAfter }] of worksOf(execution)) {
    const isSame = treeBefore === null || treeAfter === null || treeBefore === treeAfter
    if (isSame || room === 0 || linesChanged === undefined) continue
    const lines = (await linesChanged(treeBefore, treeAfter, signal)).slice(0, room)
    counted[id] = lines
    room -= lines.length
  }
  return counted
}

/** Counts the lines if time or tokens ended the change before; unchanged if that fails. */
async function withLinesCounted(setup: TemplateSetup, own: ChangeWork): Promise<ChangeWork> {
  if (worksOf(own.execution).every(([, { lines, changed }]) => lines !== null || changed.length === 0)) return own
  try {
    const counted = await countLines(setup, own, new AbortController().signal)
    return { ...own, execution: withLines(own.execution, counted) }
  } catch {
    return own
  }
}

/** Returns a sentence if the write failed. A session without a plan writes nothing. */
async function writeSummary(setup: TemplateSetup, folder: string, session: SessionState): Promise<string | null> {
  const { directory } = setup
  const own = await withLinesCounted(setup, workOf(session))
  if (own.planning.versions.length === 0) return null
  try {
    await writeFileInside(directory, `${folder}/${SUMMARY_FILE}`, summaryText(own, session))
    const { isWritten, tasks } = own.execution
    if (!isWritten) await writeFileInside(directory, `${folder}/${TASKS_FILE}`, tasksFile(tasks))
    return null
  } catch (error) {
    return `${SUMMARY_FILE} could not be written: ${messageOf(error)}`
  }
}
