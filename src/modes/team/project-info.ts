import type { SessionState } from '../../core/state/state.ts'
import { here, shellWord } from '../../tell/words/commands.ts'
import { formatSpan } from '../../tell/words/numbers.ts'
import { type HowToTest, type StepStatus, type StepWork, type TeamWork, workOf } from './work.ts'

/**
 * The text of PROJECT_INFO.json: the goal as typed, the absolute path of the project, and the parsed plan and review (null:
 * none). Then how to test it, the result of each step, and what is missing.
 * The same work gives the same text,
 * however and whenever the session ends. Pure.
 */
export function projectInfo(session: Pick<SessionState, 'directory' | 'work'>): string {
  const own = workOf(session)
  const { directory } = session
  const info = {
    goal: own.goal,
    project_dir: directory,
    plan: own.plan,
    review: own.review,
    how_to_test: waysToTest(own, directory),
    steps: own.steps.map(({ id, description, kind, status, thoughts, missing, checks, commands, files }) => ({
      id,
      description,
      kind,
      status: WORDS_FOR_STATUS[status],
      thoughts,
      missing: status === 'done' ? null : missing,
      checks: checks.length,
      commands,
      files,
    })),
    missing: whatIsMissing(own, directory),
  }
  return `${JSON.stringify(info, null, 2)}\n`
}

/** How a step stands, in a word or two. */
export const WORDS_FOR_STATUS: Readonly<Record<StepStatus, string>> = {
  'to-do': 'to do',
  running: 'running',
  checking: 'being checked',
  done: 'done',
  failed: 'failed',
  skipped: 'skipped',
  'needs-secret': 'needs a secret',
}

/** A way to test the project, as PROJECT_INFO.json has it. */
export interface WayToTest {
  /** What it is for. */
  for: string
  /** The line to type, from anywhere: it goes into the project first. */
  command: string
  /** The same as it is run in the project. */
  run: string
  /** `ran here: exit 0, 3 s`, or `not run here: needs the network`. */
  ran: string
  /** Null: it was not run, or has not ended by itself. */
  exit_code: number | null
  /** Null: it was not run. */
  duration_ms: number | null
}

/** How the project is tested, and what came of it here. Pure. */
export function waysToTest({ howToTest }: Pick<TeamWork, 'howToTest'>, directory: string): WayToTest[] {
  return (howToTest ?? []).map(way => ({
    for: way.for,
    command: `cd ${shellWord(directory)} && ${way.command}`,
    run: way.command,
    ran: wordsForTest(way),
    exit_code: way.ran?.exitCode ?? null,
    duration_ms: way.ran?.durationMs ?? null,
  }))
}

function wordsForTest({ ran, why }: HowToTest): string {
  if (ran === null) return `not run here: ${why ?? 'the session has not reached it'}`
  const { status, exitCode, durationMs } = ran
  switch (status) {
    case 'passed':
    case 'failed':
      return `ran here: exit ${exitCode ?? 'code unknown'}, ${formatSpan(durationMs)}`
    case 'timed-out':
      return `ran here: did not end by itself; codemachine ended it after ${formatSpan(durationMs)}`
    case 'not-started':
      return 'not run here: it could not be started'
    case 'broken-off':
      return `ran here: interrupted after ${formatSpan(durationMs)}`
  }
}

/** What a person has to give before the rest can be done. */
interface Missing {
  secrets: readonly MissingSecret[]
  /** Steps that are not done and need the network, where commands do not have it, and what a person types; null: there are none. */
  network: { steps: readonly number[]; command: string } | null
}

/** A secret that steps wait for. */
export interface MissingSecret {
  key: string
  /** What it is for, in the words of the worker. */
  question: string
  /** Why the one that is there does not work, in the words of the worker; null: none is there. */
  reason: string | null
  /** Why what a person gave does not work, a sentence; null: nothing was given. */
  problem: string | null
  /** The steps that wait for it. */
  steps: readonly number[]
  /** The steps that cannot be done before these. */
  after: readonly number[]
  /** What a person types. */
  command: string
}

/** What a person has to give, and what is done then. Pure. */
export function whatIsMissing(own: Pick<TeamWork, 'steps' | 'hasNetwork'>, directory: string): Missing {
  const there = here(directory)
  const { steps } = own
  const keys = [...new Set(steps.flatMap(step => wantedBy(step)?.key ?? []))]
  const network = own.hasNetwork ? [] : steps.filter(step => step.network && step.status !== 'done')
  return {
    secrets: keys.flatMap(key => {
      const waiting = steps.filter(step => wantedBy(step)?.key === key)
      const wanted = waiting[0]?.waitsFor
      if (wanted == null) return []
      const { question, reason, problem } = wanted
      return {
        key,
        question,
        reason,
        problem,
        steps: waiting.map(({ id }) => id),
        after: needing(waiting, steps),
        command: `codemachine secret set ${key}${there}; codemachine resume${there}`,
      }
    }),
    network:
      network.length === 0
        ? null
        : { steps: network.map(({ id }) => id), command: `codemachine resume --network${there}` },
  }
}

function wantedBy({ status, waitsFor }: StepWork): StepWork['waitsFor'] {
  return status === 'needs-secret' ? waitsFor : null
}

/** Ids of the steps that cannot be done before these, in their order. */
function needing(first: readonly StepWork[], steps: readonly StepWork[]): number[] {
  const found = new Set(first.map(({ id }) => id))
  const after: number[] = []
  // What a step needs stands before it.
  for (const { id, needs, status } of steps) {
    if (found.has(id) || status === 'done' || !needs.some(each => found.has(each))) continue
    found.add(id)
    after.push(id)
  }
  return after
}
