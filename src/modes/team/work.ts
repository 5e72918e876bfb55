import { truncate } from '../../base/text.ts'
import type { EventOf } from '../../core/events/events.ts'
import type { SessionState } from '../../core/state/state.ts'

/** A role that can have an engine of its own. */
export type TeamEngine = 'planner' | 'worker' | 'reviewer'

/** What a team is told beside its goal, frozen when its session begins. */
export interface TeamOptions {
  /** `all`: plan, work and review; else that alone. */
  mode: 'all' | 'plan' | 'work' | 'review'
  /** The step of the mode `work`; null in the others. */
  step: string | null
  /** Whether workers work without tools: each answer is a command that codemachine runs. */
  stepwise: boolean
  /** The engines of roles; left out: that of the rounds. The worker's says how to test, too. */
  engines?: Partial<Record<TeamEngine, string>>
  /** How often issues of high severity become steps, and the result is reviewed again: 0 to 3. */
  repair: number
  /** `auto`: nobody is asked about the plan, nor whether a secret may be used where there is the network. */
  accept: 'ask' | 'auto'
  /**
   * Where it was called: an absolute path, the file that says how the run went and the folder of its log, relative to that,
   * with `/`; null: nothing is written there.
   */
  workspace: { directory: string; run: string; logs: string } | null
  /**
   * Of the modes `work` and `review`: what the session before it in the project had come to, and of `review` the steps of the newest
   * session that had some; left out: nothing that is known.
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
  /** Ids of earlier steps without which it makes no sense; left out: none. */
  needs?: readonly number[]
}

/**
 * `checking`: its worker says that it is done, and the commands run that it has named; `skipped`: a step that it needs has failed;
 * `needs-secret`: it goes on once a person has given it.
 */
export type StepStatus = 'to-do' | 'running' | 'checking' | 'done' | 'failed' | 'skipped' | 'needs-secret'

/** A step of the work, and what came of it so far. */
export interface StepWork {
  id: number
  description: string
  needs: readonly number[]
  network: boolean
  /** `planned`: of the planner; `repair`: of a review or a refused claim; `alone`: of a person, in the mode `work`. */
  kind: 'planned' | 'repair' | 'alone'
  status: StepStatus
  /** How many of its rounds have come to their end and left it undone. */
  tries: number
  /** How many of its rounds were broken off because a file with a secret was found. */
  leaks: number
  /** How many of its rounds have ended with a person being asked for a secret. */
  asks: number
  /** The secret that it waits for; null: none. */
  waitsFor: WantedKey | null
  /** Whether its worker has said in the present round that it is done; null: it has said nothing that can be used. */
  said: boolean | null
  /** What the worker has said of it last; null: nothing yet. */
  thoughts: string | null
  /** What was missing the last time, or why it has failed or is skipped; null: nothing. */
  missing: string | null
  /** Commands that have to pass before it is done, as its worker named them. */
  checks: readonly string[]
  /** How many of these have passed. */
  passed: number
  /** How many commands were run for it. */
  commands: number
  /** The last 20 of them. */
  told: readonly ToldCommand[]
  /** What its rounds have changed, at most 50 paths. */
  files: readonly string[]
  /** When it was begun; Unix time, ms; null: not yet. */
  since: number | null
}

/**
 * A secret that a step waits for. `given`: it may be there, and is to be looked for; `asked`: a person is to be asked; `later`: nobody
 * has given it yet, and the other steps go on.
 */
export interface WantedKey {
  key: string
  question: string
  /** Why the one that is there does not work, in the words of the worker; null: none is there. */
  reason: string | null
  state: 'given' | 'asked' | 'later'
  /** Why what a person gave does not work, a sentence; null: nothing was given. */
  problem: string | null
  /** How often a person was asked. */
  asked: number
}

/** A command in short. */
export interface ToldCommand {
  /** At most 400 characters, as the end of what it printed. */
  command: string
  exitCode: number | null
  output: string
}

/** What the reviewer answers. */
export interface TeamReview {
  overall_assessment: string
  issues: readonly { type: string; description: string; severity: 'low' | 'medium' | 'high' }[]
  suggestions: readonly string[]
}

/** A way to see whether it works. */
export interface HowToTest {
  /** What it is for. */
  for: string
  command: string
  /** How it ended when codemachine ran it; null: it was not run. */
  ran: { status: EventOf<'command-ran'>['status']; exitCode: number | null; durationMs: number } | null
  /** Why it was not run, such as `needs the network`; null: it was, or is to be. */
  why: string | null
}

/** What a team keeps of what has happened. */
export interface TeamWork {
  options: TeamOptions
  /** As typed. */
  goal: string
  plan: TeamPlan | null
  /** Whether commands of the session reach the network. */
  hasNetwork: boolean
  /** Whether a person has accepted the plan. */
  isAccepted: boolean
  /** Whether the planner alone has done its part, in the mode `plan`, and nobody has wanted more. */
  isOnlyPlanned: boolean
  /** What a person wants otherwise in the plan, and has not been planned yet; null: nothing. */
  wanted: string | null
  /** How often a person has had it planned again. */
  replans: number
  /** What a person decided of a plan that needs the network, where the run has none; null: that was not asked yet. */
  network: 'go-on' | 'allow' | null
  /** Whether it was said which steps will fail without the network. */
  isNetworkTold: boolean
  /** Whether secrets may be used by commands that reach the network; null: that was not asked yet; false: not now. */
  secretsMeetNetwork: boolean | null
  steps: readonly StepWork[]
  /** Secrets that were looked for last; `ok`: it is there, and its check passes. */
  secrets: readonly { key: string; ok: boolean; problem: string | null }[]
  /** What was found of ways to start and test it; null: that was not looked for yet. */
  found: ProjectFiles | null
  howToTest: readonly HowToTest[] | null
  review: TeamReview | null
  /** Whether the review is of the project as it is. */
  isReviewed: boolean
  /** How often issues have become steps. */
  repairs: number
  /** How often a claim that was refused has become a step. */
  mends: number
  /** How often commands of the test that failed have become steps; left out: never. */
  testRepairs?: number
  /** Whether PROJECT_INFO.json says how it stands now. */
  isWritten: boolean
  /** Why it could not be written, a sentence; null: it was, or is to be. */
  writeProblem: string | null
}

/** What there is in the project by which a person starts and tests it. */
export interface ProjectFiles {
  /** Relative to the project, with `/`; `text`: what of it says that, at most 4,000 characters. */
  files: readonly { path: string; text: string }[]
}

/** What a team is at now. */
type TeamPhase = 'planning' | 'steps' | 'testing' | 'reviewing' | 'ending'

/** What is to be done next, by what was done. Pure. */
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

/** Whether the plan is carried out, by a person's word or because nobody is to be asked. */
function isPlanTaken({ isAccepted, options, isOnlyPlanned }: TeamWork): boolean {
  return !isOnlyPlanned && (isAccepted || options.accept === 'auto')
}

/** Whether something can be done for a step now. */
function isToBeDone({ status, waitsFor, needs }: StepWork, steps: readonly StepWork[]): boolean {
  if (status === 'running' || status === 'checking') return true
  if (status === 'needs-secret') return waitsFor?.state !== 'later'
  return status === 'to-do' && needs.every(id => steps.find(step => step.id === id)?.status === 'done')
}

function isTested({ howToTest }: TeamWork): boolean {
  return howToTest?.every(({ ran, why }) => ran !== null || why !== null) ?? false
}

/** The ways to test it that were run here and did not pass. */
export function failedTests({ howToTest }: Pick<TeamWork, 'howToTest'>): readonly HowToTest[] {
  return (howToTest ?? []).filter(({ ran }) => ran !== null && ran.status !== 'passed')
}

/** The note after which the ways to test it that did not pass become a step. */
export const TESTS_NOTE = 'tests-failed'

/** The step that mends them. */
export function wordsForFailedTests(own: Pick<TeamWork, 'howToTest'>): string {
  const failed = failedTests(own).map(({ for: purpose, command, ran }) => {
    const how = ran?.status === 'failed' ? `exit code ${ran.exitCode ?? 'unknown'}` : ran?.status
    return `- \`${truncate(command, MOST_TOLD)}\` (${truncate(purpose, MOST_TOLD)}): ${how}`
  })
  return `The project does not pass its own test. Have these commands pass, or see to it that the project is tested in another way:\n${failed.join('\n')}`
}

const MOST_TOLD = 400

/** The steps that are done because their worker says so: it has named no command that shows it. */
export function uncheckedSteps({ steps }: Pick<TeamWork, 'steps'>): readonly StepWork[] {
  return steps.filter(({ status, checks }) => status === 'done' && checks.length === 0)
}

/** Whether a command of the test is to be run now. */
export function pendingTest(own: TeamWork): string | null {
  if (phaseOf(own) !== 'testing') return null
  return own.howToTest?.find(({ ran, why }) => ran === null && why === null)?.command ?? null
}

/** The work of a session of this template. */
export function workOf({ work }: Pick<SessionState, 'work'>): TeamWork {
  return work as TeamWork
}
