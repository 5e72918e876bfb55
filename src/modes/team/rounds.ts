import { clipEnd, clipStart } from '../../base/text.ts'
import type { ThreadSpec } from '../../core/engine.ts'
import type { SessionState } from '../../core/state/state.ts'
import type { RoundSpec, RoundStep } from '../../core/template.ts'
import { fenced, joined } from '../../session/round-input.ts'
import { MOST_STEPS, PLAN_ANSWER, REVIEW_ANSWER, TEST_ANSWER, workAnswer } from './answers.ts'
import { executionSummary } from './execution-summary.ts'
import type { StepWork, TeamWork } from './work.ts'

/** Roles in a team: each has its prompt and rights. */
export type TeamRole = 'planner' | 'worker' | 'stepwise' | 'tester' | 'reviewer'

/** Means of a team. */
export interface TeamParts {
  thread(role: TeamRole): ThreadSpec
}

/** Most commands of a step without tools. */
const MOST_COMMANDS = 60
const MOST_GOAL = 200_000
const MOST_SAID = 60_000

/** Returns the round that makes the plan, or a person's new one. Pure. */
export function planRound(own: TeamWork, session: SessionState, parts: TeamParts): RoundStep {
  const done = own.steps.filter(({ status }) => status === 'done')
  const input = joined([
    own.plan === null ? 'Make the plan.' : 'Make the plan anew, as the person wants it.',
    `The goal, in the words of the person:\n\n${fenced(clipEnd(own.goal, MOST_GOAL))}`,
    own.hasNetwork
      ? 'Commands reach the network.'
      : 'Commands do not reach the network, not even ports of this machine. So they cannot install packages, or ask a server that they started. Mark each step that needs the network; prefer steps that do not.',
    own.plan === null ? null : `The plan so far:\n${fenced(JSON.stringify(own.plan, null, 2))}`,
    done.length === 0
      ? null
      : `These steps are done, and stay as they are. Do not give them again; other steps may need them. The ids of yours begin with ${Math.max(...own.steps.map(({ id }) => id)) + 1}:\n${fenced(clipStart(done.map(lineOf).join('\n'), MOST_SAID))}`,
    own.wanted === null ? null : `What the person wants otherwise:\n\n${fenced(clipStart(own.wanted, MOST_SAID))}`,
    `At most ${MOST_STEPS} steps.`,
  ])
  return round('plan', input, { answer: PLAN_ANSWER, thread: parts.thread('planner') }, session)
}

/** Returns the round that works on a step. Pure. */
export function workRound(step: StepWork, own: TeamWork, session: SessionState, parts: TeamParts): RoundStep {
  const { stepwise } = own.options
  const before = own.steps.filter(each => each !== step && each.status !== 'to-do')
  const input = joined([
    `Do step ${step.id}, and no other.`,
    `The goal, in the words of the person:\n\n${fenced(clipEnd(own.goal, MOST_GOAL))}`,
    `Step ${step.id}:\n\n${fenced(step.description)}`,
    before.length === 0
      ? null
      : `Results of other steps:\n${fenced(clipStart(before.map(lineOf).join('\n'), MOST_SAID))}`,
    own.hasNetwork
      ? 'Commands reach the network.'
      : 'Commands do not reach the network, not even a server on this machine.',
    wordsForSecrets(own),
    step.told.length === 0 ? null : `Commands already run for this step:\n${fenced(historyOf(step))}`,
    step.missing === null ? null : `An earlier attempt did not finish it. What was missing:\n${fenced(step.missing)}`,
  ])
  const thread = parts.thread(stepwise ? 'stepwise' : 'worker')
  const answer = workAnswer(step.id, stepwise)
  return round(
    'work',
    input,
    { answer, thread, ...(stepwise ? { stepwise: { mostCommands: MOST_COMMANDS } } : {}) },
    session,
  )
}

/** Returns the round that names the test commands. Pure. */
export function testRound(own: TeamWork, session: SessionState, parts: TeamParts): RoundStep {
  const files = own.found?.files ?? []
  const input = joined([
    'Say how a person starts and tests what was made.',
    `The goal, in the words of the person:\n\n${fenced(clipEnd(own.goal, MOST_GOAL))}`,
    `What was done:\n${fenced(clipStart(own.steps.map(lineOf).join('\n'), MOST_SAID))}`,
    files.length === 0
      ? 'No file of those was found that usually say so (README, start scripts, Makefile, package.json).'
      : `What files of the project say of it:\n${fenced(clipEnd(files.map(({ path, text }) => `## ${path}\n${text}`).join('\n\n'), MOST_SAID))}`,
    own.hasNetwork ? null : 'Commands that are run here do not reach the network, not even a server on this machine.',
  ])
  return round('test', input, { answer: TEST_ANSWER, thread: parts.thread('tester') }, session)
}

/** Returns the round that reviews the result. Pure. */
export function reviewRound(own: TeamWork, session: SessionState, parts: TeamParts): RoundStep {
  // In the mode `review`, it also hears of commands before its session.
  const { howToTest, options } = own
  const steps = options.mode === 'review' ? (options.earlier?.steps ?? []) : own.steps
  const given = {
    goal: clipEnd(own.goal, MOST_GOAL),
    planner_json: own.plan,
    execution_summary: executionSummary({ steps, howToTest }, session.directory),
  }
  const input = `Review the project, which lies in your directory.\n\n${fenced(JSON.stringify(given, null, 2))}`
  return round('review', input, { answer: REVIEW_ANSWER, thread: parts.thread('reviewer') }, session)
}

function round(
  part: string,
  input: string,
  { thread, answer, ...more }: Pick<RoundSpec, 'thread' | 'stepwise'> & Required<Pick<RoundSpec, 'answer'>>,
  session: SessionState,
): RoundStep {
  return {
    kind: 'round',
    round: { part, input: joined([input, saidByPerson(session)]), tellsGoal: true, thread, answer, ...more },
  }
}

function lineOf({ id, description, status, thoughts, missing, files }: StepWork): string {
  const came = status === 'done' ? thoughts : (missing ?? thoughts)
  const changed = files.length === 0 ? '' : ` Files: ${files.slice(0, 20).join(', ')}.`
  return `- ${id} (${status}): ${clipEnd(description, 400)}${came === null ? '' : ` → ${clipEnd(came, 600)}`}${changed}`
}

function historyOf({ told, commands }: StepWork): string {
  const left = commands - told.length
  const lines = told.map(
    ({ command, exitCode, output }) =>
      `COMMAND: ${command}\nRETURN CODE: ${exitCode ?? 'none'}${output === '' ? '' : `\n${output}`}`,
  )
  return [...(left > 0 ? [`(${left} commands before these)`] : []), ...lines].join('\n\n')
}

function wordsForSecrets({ secrets }: TeamWork): string | null {
  const there = secrets.filter(({ ok }) => ok).map(({ key }) => key)
  return there.length === 0 ? null : `These secrets are there, by name: ${there.join(', ')}.`
}

function saidByPerson({ notices }: SessionState): string | null {
  const said = notices.filter(({ from }) => from === 'person').map(({ text }) => `- ${text}`)
  return said.length === 0 ? null : `What the person has said meanwhile:\n${clipStart(said.join('\n'), MOST_SAID)}`
}
