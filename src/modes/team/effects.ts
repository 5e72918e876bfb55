import { messageOf } from '../../base/errors.ts'
import { loadPrompt } from '../../base/package.ts'
import { fillPlaceholders } from '../../base/text.ts'
import { askHumanTool, runShellTool } from '../../core/shapes/shell.ts'
import type { SessionState } from '../../core/state/state.ts'
import type { AnswerProblem, RoundSpec, Template, TemplateSetup } from '../../core/template.ts'
import { findStartFiles } from '../../workspace/context/start-files.ts'
import { writeFileInside } from '../../workspace/files/inside-directory.ts'
import { readPlan, sizeProblem, workProblem } from './answers.ts'
import { FILES_LOOK, INFO_FILE, refusesSecrets } from './fold.ts'
import { aheadOfTeam, nextOfTeam } from './next.ts'
import { projectInfo } from './project-info.ts'
import type { TeamParts, TeamRole } from './rounds.ts'
import { type TeamEngine, type TeamOptions, workOf } from './work.ts'

/** Purpose and rights of each role's rounds. A role that only looks can write nothing; a stepwise one has no tools. */
const ROLES: Readonly<Record<TeamRole, { part: string; by: TeamEngine; rights: 'look' | 'work' | 'none' }>> = {
  planner: { part: 'plan', by: 'planner', rights: 'look' },
  worker: { part: 'work', by: 'worker', rights: 'work' },
  stepwise: { part: 'work', by: 'worker', rights: 'none' },
  tester: { part: 'test', by: 'worker', rights: 'look' },
  reviewer: { part: 'review', by: 'reviewer', rights: 'look' },
}

/** Prepares a team. */
export async function openTeam(setup: TemplateSetup): Promise<Template> {
  const { directory, agents, looks } = setup
  const roles = Object.keys(ROLES) as TeamRole[]
  const texts = new Map(roles.map(role => [role, fillPlaceholders(loadPrompt(`team/${role}`), { directory })]))
  const partsOf = ({ engines = {} }: Pick<TeamOptions, 'engines'>): TeamParts => ({
    thread: role => {
      const { rights, by } = ROLES[role]
      const engine = engines[by]
      const { model, modelReasoningEffort: effort } = agents.goal
      return {
        agent: role,
        developerInstructions: texts.get(role) ?? '',
        ...(engine === undefined ? { model, effort } : { engine, model: null, effort: null }),
        ...(rights === 'look' ? { readOnly: true } : {}),
        ...(rights === 'none' ? { noShell: true } : {}),
        ...(rights === 'work' ? { tools: [runShellTool, askHumanTool] } : {}),
      }
    },
  })
  const parts = (session: SessionState) => partsOf(workOf(session).options)
  return {
    threads: roles.map(role => ({ part: ROLES[role].part, thread: partsOf({}).thread(role) })),
    looks: {
      [FILES_LOOK]: async signal =>
        await findStartFiles({ root: directory, redact: looks?.redact ?? (text => text) }, signal),
    },
    answerProblem,
    refusesSecrets: session => refusesSecrets(workOf(session)),
    next: session => nextOfTeam(session, parts(session)),
    ahead: session => aheadOfTeam(session, parts(session)),
    beforeEnd: async session => await writeInfo(directory, session),
  }
}

function answerProblem({ part }: RoundSpec, value: unknown, session: SessionState): AnswerProblem | null {
  const size = sizeProblem(value)
  if (size !== null) return size
  if (part === 'work') return workProblem(value)
  if (part !== 'plan') return null
  const done = workOf(session).steps.filter(({ status }) => status === 'done')
  const read = readPlan(value, done)
  return read.ok ? null : read.problem
}

/** Writes the current result, even of a stopped or failed session. An accepted result stays unchanged. */
async function writeInfo(directory: string, session: SessionState): Promise<string | null> {
  const isDone = session.claim.state === 'accepted'
  if (isDone || workOf(session).isWritten) return null
  try {
    await writeFileInside(directory, INFO_FILE, projectInfo(session), 0o644)
    return null
  } catch (error) {
    return `${INFO_FILE} could not be written: ${messageOf(error)}`
  }
}
