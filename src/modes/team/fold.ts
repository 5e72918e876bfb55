import { clipStart, truncate } from '../../base/text.ts'
import type { EventOf, SessionEvent } from '../../core/events/events.ts'
import { GIVE_SECRET } from '../../core/rules/decision.ts'
import { PLAN_CHOICES, PLAN_DECISION } from '../../core/state/plan.ts'
import type { SessionState } from '../../core/state/state.ts'
import {
  MOST_ALL_STEPS,
  PLAN_ANSWER,
  REVIEW_ANSWER,
  readPlan,
  readReview,
  readTest,
  readWork,
  TEST_ANSWER,
} from './answers.ts'
import type { ProjectFiles, StepWork, TeamOptions, TeamWork, ToldCommand, WantedKey } from './work.ts'
import { failedTests, TESTS_NOTE, wordsForFailedTests } from './work.ts'

/** Decisions of a team apart from its plan, and their choices. */
export const DECISIONS = { network: 'network', secret: 'secret', secretNetwork: 'secret-network' } as const
export const CHOICES = { allow: 'allow', goOn: 'go-on', later: 'later', give: GIVE_SECRET } as const
/** Look at the files to start and test the project with. */
export const FILES_LOOK = 'project-files'
/** File in the project with the result. */
export const INFO_FILE = 'PROJECT_INFO.json'
/** Note on steps that will fail without network. */
export const NETWORK_NOTE = 'network'

/** Tries of a step, and restarts after a file with a secret was found, before it fails. */
const MOST_TRIES = 2
const MOST_LEAKS = 5
/** Most rounds of a step that may end with a request for a secret. */
const MOST_ASKS = 10
/** Most requests for the same secret of a step before the others continue. */
const MOST_ASKED = 5
const MOST_TOLD = 20
const MOST_SECRETS = 50
const MOST_FILES = 50
const MOST_PATH = 500
const TOLD_CHARACTERS = 400
const TEXT_CHARACTERS = 4_000

/** Returns a team's memory at its session's start. */
export function firstWork({ goal, network, sandbox }: EventOf<'session-created'>, options: TeamOptions): TeamWork {
  const { earlier } = options
  return {
    options,
    goal,
    plan: earlier?.plan ?? null,
    hasNetwork: network || sandbox === 'danger-full-access',
    isAccepted: false,
    isOnlyPlanned: false,
    wanted: null,
    replans: 0,
    network: null,
    isNetworkTold: false,
    secretsMeetNetwork: null,
    steps: options.mode === 'work' ? [stepOf({ id: 1, description: options.step ?? goal }, 'alone')] : [],
    secrets: [],
    found: null,
    howToTest: earlier?.howToTest ?? null,
    // A reviewer must not repeat another one's findings.
    review: options.mode === 'review' ? null : (earlier?.review ?? null),
    isReviewed: false,
    repairs: 0,
    mends: 0,
    isWritten: false,
    writeProblem: null,
  }
}

function stepOf(
  { id, description, needs = [], network = false }: Pick<StepWork, 'id' | 'description'> & Partial<StepWork>,
  kind: StepWork['kind'],
): StepWork {
  return {
    id,
    description,
    needs,
    network,
    kind,
    status: 'to-do',
    tries: 0,
    leaks: 0,
    asks: 0,
    waitsFor: null,
    said: null,
    thoughts: null,
    missing: null,
    checks: [],
    passed: 0,
    commands: 0,
    told: [],
    files: [],
    since: null,
  }
}

/** Returns a team's memory after one more event. Pure; judges nothing. */
export function foldTeam(own: TeamWork, event: SessionEvent, session: SessionState): TeamWork {
  switch (event.type) {
    case 'session-resumed':
      return resumed(own, event, session)
    case 'round-started':
      return event.part === 'work' ? begun(own, session) : own
    case 'item-completed':
      return event.item.kind === 'command' && event.instance === undefined
        ? told(own, { ...event.item, output: event.item.output })
        : own
    case 'shell-ran':
      return ran(own, event)
    case 'secret-asked':
      return onCurrent(own, step => ({ ...step, waitsFor: wantedBy(own, event) }))
    case 'answer-given':
      return answered(own, event)
    case 'answer-refused':
      return event.name.startsWith('step-')
        ? onCurrent(own, step => ({ ...step, said: null, missing: `The answer could not be used: ${event.problem}` }))
        : own
    case 'round-ended':
      return session.running?.part === 'work' ? endedRound(own, event, session) : own
    case 'command-ran':
      return commandRan(own, event)
    case 'looked':
      return event.what === FILES_LOOK ? { ...own, found: (event.result ?? { files: [] }) as ProjectFiles } : own
    case 'noted':
      if (event.name === TESTS_NOTE) return repairedTests(own)
      return event.name === NETWORK_NOTE ? { ...own, isNetworkTold: true } : own
    case 'wrote':
      return { ...own, isWritten: true, writeProblem: event.problem }
    case 'decision-made':
      return decided(own, event)
    case 'replan-asked':
      return { ...withWanted(own, event.text), isOnlyPlanned: false }
    case 'secret-set':
      return setElsewhere(askedAnew(own), event.key)
    case 'secret-confirmed':
      return confirmed(own, event)
    case 'done-refused':
      return event.scope === undefined ? refusedClaim(own, event) : own
    default:
      return own
  }
}

/** Returns the current or next step; null: none. Pure. */
export function currentStep({ steps }: Pick<TeamWork, 'steps'>): StepWork | null {
  const isNow = ({ status }: StepWork) => status === 'running' || status === 'checking'
  return steps.find(isNow) ?? steps.find(step => step.status === 'to-do' && isFree(step, steps)) ?? null
}

function isFree({ needs }: StepWork, steps: readonly StepWork[]): boolean {
  return needs.every(id => steps.find(step => step.id === id)?.status === 'done')
}

function onStep(own: TeamWork, wanted: StepWork, change: (step: StepWork) => StepWork): TeamWork {
  const steps = own.steps.map(step => (step.id === wanted.id ? change(step) : step))
  return { ...own, steps: withSkipped(steps), isWritten: false }
}

function onCurrent(own: TeamWork, change: (step: StepWork) => StepWork): TeamWork {
  const step = own.steps.find(({ status }) => status === 'running' || status === 'checking')
  return step === undefined ? own : onStep(own, step, change)
}

function onWaiting(own: TeamWork, key: string, change: (step: StepWork) => StepWork): TeamWork {
  const steps = own.steps.map(step =>
    step.status === 'needs-secret' && step.waitsFor?.key === key ? change(step) : step,
  )
  return { ...own, steps, isWritten: false }
}

/** Sets the secret as given, also in a running round. If it does not work, the person hears why. */
function setElsewhere(own: TeamWork, key: string): TeamWork {
  const steps = own.steps.map(step =>
    step.waitsFor?.key === key ? withWaiting(step, { state: 'given', asked: Math.max(1, step.waitsFor.asked) }) : step,
  )
  return { ...own, steps, isWritten: false }
}

function withWaiting(step: StepWork, more: Partial<NonNullable<StepWork['waitsFor']>>): StepWork {
  return step.waitsFor === null ? step : { ...step, waitsFor: { ...step.waitsFor, ...more } }
}

/** Skips steps that need a failed one. */
function withSkipped(steps: readonly StepWork[]): readonly StepWork[] {
  const status = new Map(steps.map(step => [step.id, step.status]))
  return steps.map(step => {
    const lost = step.needs.filter(id => status.get(id) === 'failed' || status.get(id) === 'skipped')
    if (step.status !== 'to-do' || lost.length === 0) return step
    status.set(step.id, 'skipped')
    return { ...step, status: 'skipped', missing: `It needs step ${lost.join(', ')}, which has failed.` }
  })
}

/** A person who resumes knows why it ended: retry failed steps, and look for secrets. */
function resumed(own: TeamWork, event: EventOf<'session-resumed'>, { ended }: SessionState): TeamWork {
  const hasNetwork = event.network ?? own.hasNetwork
  const secretsMeetNetwork = own.secretsMeetNetwork === false ? null : own.secretsMeetNetwork
  const looked = own.steps.map(
    (step): StepWork =>
      step.status === 'needs-secret' ? { ...withWaiting(step, { state: 'given', asked: 0 }), asks: 0 } : step,
  )
  // It was killed; a secret may have been given since, while nobody could hear of it.
  if (ended === null) return { ...own, hasNetwork, secretsMeetNetwork, steps: looked }
  const again = looked.map((step): StepWork => {
    if (step.status === 'running') return { ...step, status: 'to-do' }
    // Its worker reported it done: run all its checks again.
    if (step.status === 'checking') return { ...step, passed: 0 }
    if (step.status !== 'failed' && step.status !== 'skipped') return step
    return {
      ...step,
      status: 'to-do',
      tries: 0,
      leaks: 0,
      asks: 0,
      missing: step.status === 'failed' ? step.missing : null,
    }
  })
  const hasHigh = own.review?.issues.some(({ severity }) => severity === 'high') ?? false
  // The person who resumes has seen the failed checks too.
  const isOpen = hasHigh || (ended.outcome.kind === 'needs-person' && failedTests(own).length > 0)
  const isMore = again.some(({ status }, at) => status !== own.steps[at]?.status)
  return {
    ...own,
    hasNetwork,
    steps: again,
    // A plan from the mode `plan` is carried out now.
    isOnlyPlanned: false,
    isAccepted: own.isAccepted || own.isOnlyPlanned,
    network: hasNetwork ? own.network : own.network === 'allow' ? null : own.network,
    isNetworkTold: false,
    mends: 0,
    repairs: isMore || isOpen ? 0 : own.repairs,
    testRepairs: isMore || isOpen ? 0 : (own.testRepairs ?? 0),
    secretsMeetNetwork,
    // The person who resumes may have fixed the review's findings.
    ...(isMore || isOpen ? testedAnew(own) : {}),
    isWritten: false,
    writeProblem: null,
  }
}

/** Resets test and review if they are repeated; otherwise keeps the results of earlier sessions. */
function testedAnew({ options }: TeamWork): Partial<TeamWork> {
  const isTested = options.mode === 'all' || options.mode === 'plan'
  return { ...(isTested ? { found: null, howToTest: null } : {}), isReviewed: false, isWritten: false }
}

function begun(own: TeamWork, { updatedAt }: SessionState): TeamWork {
  const step = currentStep(own)
  if (step === null) return own
  return onStep(own, step, before => ({
    ...before,
    status: 'running',
    said: null,
    waitsFor: null,
    checks: [],
    passed: 0,
    since: before.since ?? updatedAt,
  }))
}

function told(own: TeamWork, { command, exitCode, output }: ToldCommand): TeamWork {
  const short = {
    command: truncate(command, TOLD_CHARACTERS),
    exitCode,
    output: output.trimEnd().slice(-TOLD_CHARACTERS),
  }
  return onCurrent(own, step => ({
    ...step,
    commands: step.commands + 1,
    told: [...step.told, short].slice(-MOST_TOLD),
  }))
}

function ran(own: TeamWork, event: EventOf<'shell-ran'>): TeamWork {
  const { command, exitCode, stdout, stderr, leaked = [] } = event
  const next = told(own, { command, exitCode, output: `${stdout}${stderr === '' ? '' : `\n${stderr}`}` })
  if (leaked.length === 0) return next
  const missing = `\`${truncate(command, TOLD_CHARACTERS)}\` left a secret in ${leaked.slice(0, 10).join(', ')}. Commands of agents can no longer read it. Write no secret into a file: programs read it from their environment.`
  return onCurrent(next, step => ({ ...step, leaks: step.leaks + 1, missing: truncate(missing, TEXT_CHARACTERS) }))
}

function wantedBy(own: TeamWork, { key, question, reason }: EventOf<'secret-asked'>): WantedKey {
  // It may already exist if only its use with network was open.
  const isRefused = refusesSecrets(own) !== null
  const state = !isRefused ? 'asked' : own.secretsMeetNetwork === false ? 'later' : reason === null ? 'given' : 'asked'
  return { key, question, reason, state, problem: null, asked: 0 }
}

/** Returns a sentence for the agent why commands may not have secrets yet; null: they may. Pure. */
export function refusesSecrets({ hasNetwork, options, secretsMeetNetwork }: TeamWork): string | null {
  if (!hasNetwork || options.accept === 'auto' || secretsMeetNetwork === true) return null
  return 'The person has not yet allowed commands with network access to use secrets.'
}

/** Asks a person again whether to use secrets with network. */
function askedAnew(own: TeamWork): TeamWork {
  return own.secretsMeetNetwork === false ? { ...own, secretsMeetNetwork: null } : own
}

function answered(own: TeamWork, { name, value }: EventOf<'answer-given'>): TeamWork {
  if (name === PLAN_ANSWER.name) return planned(own, value)
  if (name === TEST_ANSWER.name) return { ...own, howToTest: readTest(value, own.hasNetwork), isWritten: false }
  if (name === REVIEW_ANSWER.name) return value === undefined ? own : reviewed(own, value)
  if (!name.startsWith('step-')) return own
  const { done, thoughts, checks } = readWork(value)
  return onCurrent(own, step => ({ ...step, said: done, thoughts: truncate(thoughts, TEXT_CHARACTERS), checks }))
}

/** Finished steps stay; the others come from the new plan. */
function planned(own: TeamWork, value: unknown): TeamWork {
  const done = own.steps.filter(({ status }) => status === 'done')
  const read = readPlan(value, done)
  // Another version judged it differently: request it again.
  if (!read.ok) return own
  const plan = read.value
  const open = plan.steps.filter(({ id }) => done.every(step => step.id !== id))
  return {
    ...own,
    plan,
    wanted: null,
    isAccepted: false,
    isOnlyPlanned: own.options.mode === 'plan' && own.plan === null,
    network: null,
    isNetworkTold: false,
    steps: [...done, ...open.map(step => stepOf(step, 'planned'))],
    // Repair steps go with the old plan, and their problems are found again.
    repairs: 0,
    mends: 0,
    ...testedAnew(own),
  }
}

function endedRound(
  own: TeamWork,
  { outcome, counts, changed }: EventOf<'round-ended'>,
  { failures }: SessionState,
): TeamWork {
  const step = own.steps.find(({ status }) => status === 'running')
  if (step === undefined) return own
  const paths = changed.map(path => truncate(path, MOST_PATH))
  const files = [...new Set([...step.files, ...paths])].slice(0, MOST_FILES)
  const next = onStep(own, step, before => ({ ...before, files }))
  if (step.waitsFor !== null) {
    const asks = step.asks + 1
    return asks > MOST_ASKS
      ? undone(next, step, `Its worker asked for secrets ${asks} times. ${step.thoughts ?? ''}`.trim(), MOST_TRIES)
      : onStep(next, step, before => ({ ...before, status: 'needs-secret', asks }))
  }
  if (outcome.class === 'interrupted') {
    return step.leaks >= MOST_LEAKS
      ? undone(next, step, 'Its commands wrote a secret into files several times.', MOST_TRIES)
      : next
  }
  // Errors of codex itself usually happen once.
  const isFirst = failures.refusals === 0 && failures.silences === 0
  if ((outcome.class === 'refused' || outcome.class === 'silent') && isFirst) return next
  if (outcome.class !== 'worked')
    return counts ? undone(next, step, `Its round ended early: ${outcome.message ?? outcome.class}`) : next
  if (step.said !== true) return undone(next, step, step.said === null ? null : (step.thoughts ?? null))
  return onStep(next, step, before => ({ ...before, status: before.checks.length > 0 ? 'checking' : 'done' }))
}

/** Retries an unfinished step, or fails it. `missing` null: keep the known reason. */
function undone(own: TeamWork, step: StepWork, missing: string | null, after = step.tries + 1): TeamWork {
  return onStep(own, step, before => ({
    ...before,
    status: after >= MOST_TRIES ? 'failed' : 'to-do',
    tries: after,
    missing: truncate(missing ?? before.missing ?? 'Its worker said nothing about it.', TEXT_CHARACTERS),
  }))
}

function commandRan(own: TeamWork, event: EventOf<'command-ran'>): TeamWork {
  const { status, exitCode, durationMs, output } = event
  if (status === 'broken-off') return own
  const step = own.steps.find(each => each.status === 'checking')
  if (step !== undefined) {
    const passed = step.passed + 1
    if (status === 'passed')
      return onStep(own, step, before => ({
        ...before,
        passed,
        status: passed < before.checks.length ? 'checking' : 'done',
      }))
    const how = exitCode === null ? status : `exit code ${exitCode}`
    return undone(
      own,
      step,
      `\`${step.checks[step.passed]}\` did not pass (${how}):\n${output.trimEnd().slice(-2_000)}`,
    )
  }
  const at = own.howToTest?.findIndex(each => each.ran === null && each.why === null) ?? -1
  if (at === -1) return own
  const howToTest = own.howToTest?.map((each, n) =>
    n === at ? { ...each, ran: { status, exitCode, durationMs } } : each,
  )
  return { ...own, howToTest: howToTest ?? null, isWritten: false }
}

function reviewed(own: TeamWork, value: unknown): TeamWork {
  const review = readReview(value)
  const high = review.issues.filter(({ severity }) => severity === 'high')
  const next = { ...own, review, isReviewed: true, isWritten: false }
  if (own.options.mode !== 'all' && own.options.mode !== 'plan') return next
  const room = Math.max(0, MOST_ALL_STEPS - own.steps.length)
  if (high.length === 0 || own.repairs >= own.options.repair || room === 0) return next
  const steps = high
    .slice(0, room)
    .map(({ type, description }) => `Fix the findings of the review (${type}): ${description}`)
  return { ...withMore(next, steps), repairs: own.repairs + 1 }
}

/** Turns failed test commands into a step. */
function repairedTests(own: TeamWork): TeamWork {
  return { ...withMore(own, [wordsForFailedTests(own)]), testRepairs: (own.testRepairs ?? 0) + 1 }
}

/** Adds repair steps; tests and review follow again. */
function withMore(own: TeamWork, descriptions: readonly string[]): TeamWork {
  const last = Math.max(0, ...own.steps.map(({ id }) => id))
  const more = descriptions.map((description, at) => stepOf({ id: last + 1 + at, description }, 'repair'))
  return { ...own, steps: [...own.steps, ...more], ...testedAnew(own) }
}

/** Most refused claims that become steps. */
const MOST_MENDS = 3

function refusedClaim(own: TeamWork, { detail }: EventOf<'done-refused'>): TeamWork {
  if (own.mends >= MOST_MENDS) return own
  const next = withMore(own, [`The result was not accepted as done. Fix this: ${truncate(detail, TEXT_CHARACTERS)}`])
  // The review is complete.
  return { ...next, mends: own.mends + 1, isReviewed: own.isReviewed }
}

function decided(own: TeamWork, { id, choice, text }: EventOf<'decision-made'>): TeamWork {
  switch (id) {
    case PLAN_DECISION:
      if (choice === PLAN_CHOICES.accept) return { ...own, isAccepted: true, isWritten: false }
      return choice === PLAN_CHOICES.change ? withWanted(own, text ?? '') : own
    case DECISIONS.network:
      return { ...own, network: choice === CHOICES.allow ? 'allow' : 'go-on' }
    case DECISIONS.secretNetwork:
      return choice === CHOICES.allow
        ? { ...own, secretsMeetNetwork: true }
        : { ...allLater(own), secretsMeetNetwork: false }
    case DECISIONS.secret: {
      const step = own.steps.find(each => each.status === 'needs-secret' && each.waitsFor?.state === 'asked')
      if (step === undefined) return own
      const asked = (step.waitsFor?.asked ?? 0) + 1
      const state = choice === CHOICES.give ? ('given' as const) : ('later' as const)
      return onWaiting(own, step.waitsFor?.key ?? '', each => withWaiting(each, { state, asked }))
    }
    default:
      return own
  }
}

function allLater(own: TeamWork): TeamWork {
  const steps = own.steps.map(step => (step.status === 'needs-secret' ? withWaiting(step, { state: 'later' }) : step))
  return { ...own, steps, isWritten: false }
}

function confirmed(own: TeamWork, { key, ok, problem, missing }: EventOf<'secret-confirmed'>): TeamWork {
  const secrets = [...own.secrets.filter(each => each.key !== key), { key, ok, problem }].slice(-MOST_SECRETS)
  const asked = (step: StepWork) => step.waitsFor?.asked ?? 0
  const next = onWaiting({ ...own, secrets }, key, step => {
    if (ok) return { ...withTold(step, key, true), status: 'to-do' }
    // If no value was given yet, the question does not answer a wrong one.
    const isWrong = missing !== true || asked(step) > 0
    const state = asked(step) >= MOST_ASKED ? ('later' as const) : ('asked' as const)
    return withWaiting(isWrong ? withTold(step, key, false) : step, { state, problem: isWrong ? problem : null })
  })
  return next
}

/** Adds a line for its worker to the step's history. */
function withTold(step: StepWork, key: string, ok: boolean): StepWork {
  const line = {
    command: `CONFIRM_SECRET ${key}`,
    exitCode: ok ? 0 : 1,
    output: ok ? 'The secret is there.' : 'SECRET CONFIRMATION FAILED',
  }
  return { ...step, told: [...step.told, line].slice(-MOST_TOLD) }
}

function withWanted(own: TeamWork, text: string): TeamWork {
  const wanted = own.wanted === null ? text : `${own.wanted}\n${text}`
  return { ...own, wanted: clipStart(wanted, MOST_WANTED), replans: own.replans + 1 }
}

const MOST_WANTED = 60_000
/** Most new plans that a person may request. */
export const MOST_REPLANS = 20
