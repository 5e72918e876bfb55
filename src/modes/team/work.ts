import { truncate } from '../../base/text.ts'
import type { EventOf } from '../../core/events/events.ts'
import type { SessionState } from '../../core/state/state.ts'

/** A role that can have its own engine. */
export type TeamEngine = 'planner' | 'worker' | 'reviewer'

/** Options of a team, frozen at its session's start. */
export interface TeamOptions {
  /** `all`: plan, work and review; else only that part. */
  mode: 'all' | 'plan' | 'work' | 'review'
  /** Step of the mode `work`; null in the others. */
  step: string | null
  /** Whether workers work without tools: each answer is a command that codemachine runs. */
  stepwise: boolean
  /** Engines of roles; left out: that of the rounds. The worker's also finds out how to test. */
  engines?: Partial<Record<TeamEngine, string>>
  /** How often high issues become steps with a new review: 0 to 3. */
  repair: number
  /** `auto`: nobody is asked about the plan, or the use of a secret with network. */
  accept: 'ask' | 'auto'
  /**
   * Absolute path of the calling directory, the run's file and its log folder, relative to it, with `/`; null: nothing is
   * written there.
   */
  workspace: { directory: string; run: string; logs: string } | null
  /**
   * For `work` and `review`: the result of the project's last session, and for `review` the steps of the newest session with
   * steps; left out: unknown.
   */
  earlier?: Pick<TeamWork, 'plan' | 'review' | 'howToTest'> & Partial<Pick<TeamWork, 'steps'>>
}

/** A plan as the planner answers it. */
export interface TeamPlan {
  goal: string
  steps: readonly PlannedStep[]
}

export interface PlannedStep {
  id: number
  description: string
  /** Whether its commands need the network; left out: no. */
  network?: boolean
  /** Ids of earlier steps that it needs; left out: none. */
  needs?: readonly number[]
}

/**
 * `checking`: its worker reported it done, and its named commands run; `skipped`: a needed step failed; `needs-secret`: it
 * waits for a person's secret.
 */
export type StepStatus = 'to-do' | 'running' | 'checking' | 'done' | 'failed' | 'skipped' | 'needs-secret'

/** A step of the work, with its results so far. */
export interface StepWork {
  id: number
  description: string
  needs: readonly number[]
  network: boolean
  /** `planned`: by the planner; `repair`: from a review or a refused claim; `alone`: by a person, in the mode `work`. */
  kind: 'planned' | 'repair' | 'alone'
  status: StepStatus
  /** Number of its complete rounds that left it undone. */
  tries: number
  /** Number of its rounds interrupted because of a file with a secret. */
  leaks: number
  /** Number of its rounds that ended with a request for a secret. */
  asks: number
  /** Secret that it waits for; null: none. */
  waitsFor: WantedKey | null
  /** Whether its worker reported it done in this round; null: no usable answer. */
  said: boolean | null
  /** The worker's last words on it; null: none yet. */
  thoughts: string | null
  /** What was last missing, or why it failed or was skipped; null: nothing. */
  missing: string | null
  /** Commands named by its worker that must pass before it is done. */
  checks: readonly string[]
  /** How many of these passed. */
  passed: number
  /** Number of commands that ran for it. */
  commands: number
  /** The last 20 of them. */
  told: readonly ToldCommand[]
  /** Changed paths of its rounds, at most 50. */
  files: readonly string[]
  /** Start time; Unix time, ms; null: not begun. */
  since: number | null
}

/**
 * A secret that a step waits for. `given`: look for it; `asked`: ask a person; `later`: nobody gave it yet, and the other
 * steps continue.
 */
export interface WantedKey {
  key: string
  question: string
  /** Why the stored one does not work, in the worker's words; null: none is stored. */
  reason: string | null
  state: 'given' | 'asked' | 'later'
  /** A sentence why a person's value does not work; null: none was given. */
  problem: string | null
  /** Number of requests to a person. */
  asked: number
}

/** A command in short. */
export interface ToldCommand {
  /** At most 400 characters, like the end of its output. */
  command: string
  exitCode: number | null
  output: string
}

/** The reviewer's answer. */
export interface TeamReview {
  overall_assessment: string
  issues: readonly { type: string; description: string; severity: 'low' | 'medium' | 'high' }[]
  suggestions: readonly string[]
}

/** A way to test the result. */
export interface HowToTest {
  /** Its purpose. */
  for: string
  command: string
  /** Its result when codemachine ran it; null: not run. */
  ran: { status: EventOf<'command-ran'>['status']; exitCode: number | null; durationMs: number } | null
  /** Why it was not run, such as `needs the network`; null: it was, or will be. */
  why: string | null
}

/** Memory of a team. */
export interface TeamWork {
  options: TeamOptions
  /** As typed. */
  goal: string
  plan: TeamPlan | null
  /** Whether commands of the session have network. */
  hasNetwork: boolean
  /** Whether a person has accepted the plan. */
  isAccepted: boolean
  /** Whether in the mode `plan` the planner is done, and nobody wants more. */
  isOnlyPlanned: boolean
  /** A person's requested change of the plan that is not planned yet; null: none. */
  wanted: string | null
  /** How often a person requested a new plan. */
  replans: number
  /** A person's decision on a plan that needs the network in a run without it; null: not asked yet. */
  network: 'go-on' | 'allow' | null
  /** Whether the note on steps that will fail without network was written. */
  isNetworkTold: boolean
  /** Whether commands with network may use secrets; null: not asked yet; false: not now. */
  secretsMeetNetwork: boolean | null
  steps: readonly StepWork[]
  /** Secrets from the last look; `ok`: it exists, and its check passes. */
  secrets: readonly { key: string; ok: boolean; problem: string | null }[]
  /** Found ways to start and test it; null: not looked for yet. */
  found: ProjectFiles | null
  howToTest: readonly HowToTest[] | null
  review: TeamReview | null
  /** Whether the review is of the current files. */
  isReviewed: boolean
  /** How often issues became steps. */
  repairs: number
  /** How often a refused claim became a step. */
  mends: number
  /** How often failed test commands became steps; left out: never. */
  testRepairs?: number
  /** Whether PROJECT_INFO.json is up to date. */
  isWritten: boolean
  /** A sentence why it was not written; null: it was, or will be. */
  writeProblem: string | null
}

/** Files of the project for a person who starts and tests it. */
export interface ProjectFiles {
  /** Relative to the project, with `/`; `text`: their relevant part, at most 4,000 characters. */
  files: readonly { path: string; text: string }[]
}

/** Phases of a team. */
type TeamPhase = 'planning' | 'steps' | 'testing' | 'reviewing' | 'ending'

/** Returns the current phase. Pure. */
export function phaseOf(own: TeamWork): TeamPhase {
  const { options, plan, steps } = own
  const plans = options.mode === 'all' || options.mode === 'plan'
  if (plans && (plan === null || own.wanted !== null || !isPlanTaken(own))) return 'planning'
  if (options.mode !== 'review' && steps.some(step => isToBeDone(step, steps))) return 'steps'
  if (steps.some(({ status }) => status === 'needs-secret')) return 'ending'
  const isWhole = options.mode === 'all' || options.mode === 'plan'
  if (isWhole && steps.some(({ status }) => status === 'done') && !isTested(own)) return 'testing'
  if ((isWhole || options.mode === 'review') && !own.isReviewed) return 'reviewing'
  return 'ending'
}

/** Returns whether the plan may run, by a person's word or because nobody is asked. */
function isPlanTaken({ isAccepted, options, isOnlyPlanned }: TeamWork): boolean {
  return !isOnlyPlanned && (isAccepted || options.accept === 'auto')
}

/** Returns whether a step can be worked on now. */
function isToBeDone({ status, waitsFor, needs }: StepWork, steps: readonly StepWork[]): boolean {
  if (status === 'running' || status === 'checking') return true
  if (status === 'needs-secret') return waitsFor?.state !== 'later'
  return status === 'to-do' && needs.every(id => steps.find(step => step.id === id)?.status === 'done')
}

function isTested({ howToTest }: TeamWork): boolean {
  return howToTest?.every(({ ran, why }) => ran !== null || why !== null) ?? false
}

/** Returns the ways to test it that ran here and failed. */
export function failedTests({ howToTest }: Pick<TeamWork, 'howToTest'>): readonly HowToTest[] {
  return (howToTest ?? []).filter(({ ran }) => ran !== null && ran.status !== 'passed')
}

/** Note after which failed tests become a step. */
export const TESTS_NOTE = 'tests-failed'

/** Returns the step that fixes them. */
export function wordsForFailedTests(own: Pick<TeamWork, 'howToTest'>): string {
  const failed = failedTests(own).map(({ for: purpose, command, ran }) => {
    const how = ran?.status === 'failed' ? `exit code ${ran.exitCode ?? 'unknown'}` : ran?.status
    return `- \`${truncate(command, MOST_TOLD)}\` (${truncate(purpose, MOST_TOLD)}): ${how}`
  })
  return `The project does not pass its own test. Have these commands pass, or see to it that the project is tested in another way:\n${failed.join('\n')}`
}

const MOST_TOLD = 400

/** Returns the steps that are done only by their worker's word, without a check command. */
export function uncheckedSteps({ steps }: Pick<TeamWork, 'steps'>): readonly StepWork[] {
  return steps.filter(({ status, checks }) => status === 'done' && checks.length === 0)
}

/** Returns whether a test command must run now. */
export function pendingTest(own: TeamWork): string | null {
  if (phaseOf(own) !== 'testing') return null
  return own.howToTest?.find(({ ran, why }) => ran === null && why === null)?.command ?? null
}

/** Returns the memory of a session of this template. */
export function workOf({ work }: Pick<SessionState, 'work'>): TeamWork {
  return work as TeamWork
}
