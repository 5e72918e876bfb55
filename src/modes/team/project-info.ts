import type { SessionState } from '../../core/state/state.ts'
import { shellWord } from '../../platform/shell-word.ts'
import { here } from '../../tell/words/commands.ts'
import { formatSpan } from '../../tell/words/numbers.ts'
import { type HowToTest, type StepStatus, type StepWork, type TeamWork, workOf } from './work.ts'

/**
 * Returns the text of PROJECT_INFO.json: the goal as typed, the project's absolute path, and the parsed plan and review
 * (null: none). Then how to test it, each step's result, and what is missing. The same work always gives the same text.
 * Pure.
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

/** Words for the state of a step. */
export const WORDS_FOR_STATUS: Readonly<Record<StepStatus, string>> = {
  'to-do': 'to do',
  running: 'running',
  checking: 'being checked',
  done: 'done',
  failed: 'failed',
  skipped: 'skipped',
  'needs-secret': 'needs a secret',
}

/** A way to test the project, in PROJECT_INFO.json. */
export interface WayToTest {
  /** Its purpose. */
  for: string
  /** Line to type from any directory: it first enters the project. */
  command: string
  /** The same line inside the project. */
  run: string
  /** `ran here: exit 0, 3 s`, or `not run here: needs the network`. */
  ran: string
  /** Null: it did not run, or did not end by itself. */
  exit_code: number | null
  /** Null: it did not run. */
  duration_ms: number | null
}

/** Returns the ways to test the project, and their results here. Pure. */
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

/** Things that a person must give before the rest can be done. */
interface Missing {
  secrets: readonly MissingSecret[]
  /** Open steps that need the missing network, and the command to type; null: none. */
  network: { steps: readonly number[]; command: string } | null
}

/** A secret that steps wait for. */
export interface MissingSecret {
  key: string
  /** Its purpose, in the worker's words. */
  question: string
  /** Why the stored one does not work, in the worker's words; null: none is stored. */
  reason: string | null
  /** A sentence why a person's value does not work; null: none was given. */
  problem: string | null
  /** Steps that wait for it. */
  steps: readonly number[]
  /** Steps that cannot be done before these. */
  after: readonly number[]
  /** Command for the person. */
  command: string
}

/** Returns what a person must give, and the steps that follow. Pure. */
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

/** Returns the ids of the steps that need these, in order. */
function needing(first: readonly StepWork[], steps: readonly StepWork[]): number[] {
  const found = new Set(first.map(({ id }) => id))
  const after: number[] = []
  // Needed steps come earlier in the list.
  for (const { id, needs, status } of steps) {
    if (found.has(id) || status === 'done' || !needs.some(each => found.has(each))) continue
    found.add(id)
    after.push(id)
  }
  return after
}
