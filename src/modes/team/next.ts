import { inlineCode } from '../../base/markdown.ts'
import { truncate } from '../../base/text.ts'
import type { ThreadSpec } from '../../core/engine.ts'
import type { OutcomeHint, SessionOutcome } from '../../core/events/outcome.ts'
import { type Decision, GIVE_SECRET } from '../../core/rules/decision.ts'
import { PLAN_CHOICES, PLAN_DECISION } from '../../core/state/plan.ts'
import type { SessionState } from '../../core/state/state.ts'
import type { Step } from '../../core/template.ts'
import { here } from '../../tell/words/commands.ts'
import { MOST_ALL_STEPS } from './answers.ts'
import {
  CHOICES,
  currentStep,
  DECISIONS,
  FILES_LOOK,
  INFO_FILE,
  MOST_REPLANS,
  NETWORK_NOTE,
  refusesSecrets,
} from './fold.ts'
import { projectInfo } from './project-info.ts'
import { planRound, reviewRound, type TeamParts, testRound, workRound } from './rounds.ts'
import {
  failedTests,
  type HowToTest,
  pendingTest,
  phaseOf,
  type StepWork,
  TESTS_NOTE,
  type TeamReview,
  type TeamWork,
  workOf,
} from './work.ts'

/** Time bound of a step's or the project's test command, ms. */
const COMMAND_MS = 10 * 60_000

/** Returns the next step of a team. Pure. */
export function nextOfTeam(session: SessionState, parts: TeamParts): Step {
  const own = workOf(session)
  switch (phaseOf(own)) {
    case 'planning':
      return planning(own, session, parts)
    case 'steps':
      return withoutNetwork(own, session) ?? secretStep(own, session) ?? working(own, session, parts)
    case 'testing':
      return testing(own, session, parts)
    case 'reviewing':
      return repairOfTests(own) ?? reviewRound(own, session, parts)
    case 'ending':
      return ending(own, session)
  }
}

/** Returns the thread of the next round, as far as it is known. Pure. */
export function aheadOfTeam(session: SessionState, parts: TeamParts): ThreadSpec | null {
  const own = workOf(session)
  const worker = parts.thread(own.options.stepwise ? 'stepwise' : 'worker')
  switch (phaseOf(own)) {
    case 'planning':
      return own.plan === null ? parts.thread('planner') : worker
    case 'steps':
      return worker
    default:
      return null
  }
}

function planning(own: TeamWork, session: SessionState, parts: TeamParts): Step {
  if (own.plan === null || own.wanted !== null) return planRound(own, session, parts)
  if (own.isOnlyPlanned) return own.isWritten ? { kind: 'end', outcome: { kind: 'planned' } } : writeInfo(session)
  const { decided } = session
  const isStopped = decided?.id === PLAN_DECISION && decided.choice === PLAN_CHOICES.stop
  if (isStopped) return { kind: 'end', outcome: notDecided(session) }
  return { kind: 'decide', decision: planDecision(own) }
}

function notDecided({ id }: SessionState): SessionOutcome {
  const title = 'Carry out the plan?'
  return {
    kind: 'needs-person',
    reason: 'Nobody accepted the plan.',
    hint: { do: 'decide', session: id, title },
    goalOnly: true,
  }
}

function planDecision({ plan, steps, replans }: TeamWork): Decision {
  const done = steps.filter(({ status }) => status === 'done').length
  const lines = steps.filter(({ status }) => status !== 'done').map(wordsForPlanned)
  return {
    id: PLAN_DECISION,
    title: `The plan has ${lines.length} ${lines.length === 1 ? 'step' : 'steps'}${done === 0 ? '' : ` left, and ${done} done`}. Carry it out?`,
    body: [truncate(plan?.goal ?? '', 2_000), lines.join('\n')].join('\n\n'),
    choices: [
      { id: PLAN_CHOICES.accept, label: 'Carry it out' },
      ...(replans < MOST_REPLANS
        ? [
            {
              id: PLAN_CHOICES.change,
              label: 'Change it',
              hint: 'say what to change; then you see the new plan',
              text: 'must' as const,
            },
          ]
        : []),
      { id: PLAN_CHOICES.stop, label: 'Stop', hint: 'codemachine resume asks again' },
    ],
    default: PLAN_CHOICES.accept,
  }
}

function wordsForPlanned({ id, description, network, needs }: StepWork): string {
  const facts = [
    ...(network ? ['needs the network'] : []),
    ...(needs.length === 0 ? [] : [`after ${needs.join(', ')}`]),
  ]
  const text = truncate(description.replace(/\s+/g, ' '), 300)
  return `${id}. ${inlineCode(text)}${facts.length === 0 ? '' : ` (${facts.join(', ')})`}`
}

/** Handles steps that need the network in a run without it: it asks a person once, and notes them. */
function withoutNetwork(own: TeamWork, session: SessionState): Step | null {
  if (own.hasNetwork) return null
  const lost = own.steps.filter(({ network, status }) => network && status !== 'done')
  if (lost.length === 0) return null
  const { directory } = session
  if (own.network === 'allow')
    return {
      kind: 'end',
      outcome: {
        kind: 'needs-person',
        reason: 'The session needs the network to continue.',
        hint: { do: 'network', directory },
        goalOnly: true,
      },
    }
  if (!own.isNetworkTold) return { kind: 'note', name: NETWORK_NOTE, text: wordsForLost(lost, directory) }
  if (own.network !== null || own.options.accept === 'auto') return null
  return { kind: 'decide', decision: networkDecision(lost) }
}

function wordsForLost(lost: readonly StepWork[], directory: string): string {
  const ids = lost.map(({ id }) => id).join(', ')
  const which = lost.length === 1 ? `Step ${ids} needs` : `Steps ${ids} need`
  return `${which} the network and will probably fail, because commands have no network. To allow it: codemachine resume --network${here(directory)}`
}

function networkDecision(lost: readonly StepWork[]): Decision {
  return {
    id: DECISIONS.network,
    title:
      lost.length === 1
        ? 'A step needs the network. May commands use it?'
        : `${lost.length} steps need the network. May commands use it?`,
    body: lost.map(wordsForPlanned).join('\n'),
    choices: [
      { id: CHOICES.goOn, label: 'Continue without it', hint: 'these steps will probably fail' },
      { id: CHOICES.allow, label: 'Let commands use the network', hint: 'of all steps of this session' },
    ],
    default: CHOICES.goOn,
  }
}

/** Returns the next step for a secret that a step waits for; null: none now. */
function secretStep(own: TeamWork, session: SessionState): Step | null {
  const step = own.steps.find(({ status, waitsFor }) => status === 'needs-secret' && waitsFor?.state !== 'later')
  const wanted = step?.waitsFor
  if (step === undefined || wanted == null) return null
  if (refusesSecrets(own) !== null) return { kind: 'decide', decision: secretNetworkDecision(wanted.key) }
  if (wanted.state === 'given') return { kind: 'confirm-secret', key: wanted.key }
  return { kind: 'decide', decision: secretDecision(step, wanted, session) }
}

const CAN_STILL =
  'A command that has a secret can send it over the network, or write it in a form that codemachine does not recognise.'

function secretDecision(step: StepWork, wanted: NonNullable<StepWork['waitsFor']>, session: SessionState): Decision {
  const { key, question, reason, problem } = wanted
  const said = (text: string) => inlineCode(truncate(text.replace(/\s+/g, ' '), 2_000))
  return {
    id: DECISIONS.secret,
    title: `Step ${step.id} needs the secret ${key}.`,
    // An agent's text comes last: it may be long.
    body: [
      ...(problem === null ? [] : [`**The value that was given does not work:** ${truncate(problem, 500)}`]),
      `Project: ${inlineCode(session.directory)}`,
      `The model never sees it; commands get it as a variable. ${CAN_STILL}`,
      `Step ${step.id}: ${said(step.description)}`,
      ...(reason === null ? [] : [`Why the stored value does not work: ${said(reason)}`]),
      `What it is for: ${said(question)}`,
    ].join('\n\n'),
    choices: [
      { id: GIVE_SECRET, label: 'Give it', hint: 'nothing is shown while you type' },
      { id: CHOICES.later, label: 'Later', hint: 'the other steps continue' },
    ],
    default: CHOICES.later,
    secret: { key },
  }
}

function secretNetworkDecision(key: string): Decision {
  return {
    id: DECISIONS.secretNetwork,
    title: `May commands with network access use ${key}?`,
    body: `${CAN_STILL} Your answer counts for all secrets of this session.`,
    choices: [
      { id: CHOICES.later, label: 'Not now', hint: 'steps that need secrets wait' },
      { id: CHOICES.allow, label: 'Allow secrets with the network' },
    ],
    default: CHOICES.later,
  }
}

function working(own: TeamWork, session: SessionState, parts: TeamParts): Step {
  const step = currentStep(own)
  if (step === null) throw new Error('No step can be worked on.')
  if (step.status !== 'checking') return workRound(step, own, session, parts)
  return command(`step ${step.id}, check ${step.passed + 1}`, step.checks[step.passed] ?? '', own)
}

function testing(own: TeamWork, session: SessionState, parts: TeamParts): Step {
  if (own.found === null) return { kind: 'look', what: FILES_LOOK }
  if (own.howToTest === null) return testRound(own, session, parts)
  return command('test', pendingTest(own) ?? '', own)
}

/** Returns the note that starts a repair of failed tests; null: none failed, or too many repairs. */
function repairOfTests(own: TeamWork): Step | null {
  const { options, steps, testRepairs = 0 } = own
  const failed = failedTests(own)
  const isWhole = options.mode === 'all' || options.mode === 'plan'
  const isOver = testRepairs >= options.repair || steps.length >= MOST_ALL_STEPS
  if (!isWhole || failed.length === 0 || isOver) return null
  return { kind: 'note', name: TESTS_NOTE, text: `${wordsForTests(failed)} The team fixes it and tests again.` }
}

function wordsForTests(failed: readonly HowToTest[]): string {
  const named = failed.slice(0, 3).map(({ command }) => inlineCode(truncate(command.replace(/\s+/g, ' '), MOST_NAME)))
  const more = failed.length > named.length ? ` and ${failed.length - named.length} more` : ''
  return `${failed.length === 1 ? 'A command that tests it did' : `${failed.length} commands that test it did`} not pass: ${named.join(', ')}${more}.`
}

/** Most characters of a line in its step's name. */
const MOST_NAME = 80

function command(name: string, run: string, { hasNetwork }: TeamWork): Step {
  const called = `${name}: ${truncate(run.replace(/\s+/g, ' '), MOST_NAME)}`
  return { kind: 'command', name: called, run, timeoutMs: COMMAND_MS, network: hasNetwork }
}

function ending(own: TeamWork, session: SessionState): Step {
  if (!own.isWritten) return writeInfo(session)
  if (session.claim.state === 'accepted')
    return { kind: 'end', outcome: { kind: 'done', verified: session.claim.verified } }
  if (own.options.mode === 'review') return { kind: 'end', outcome: { kind: 'answered' } }
  const lack = outcomeOfLack(own, session)
  return lack === null ? { kind: 'claim' } : { kind: 'end', outcome: lack }
}

function writeInfo(session: SessionState): Step {
  return { kind: 'write', files: [{ path: INFO_FILE, text: projectInfo(session) }] }
}

/** Returns the outcome of unfinished work; null: nothing is missing. */
function outcomeOfLack(own: TeamWork, { directory, claim }: SessionState): SessionOutcome | null {
  const { steps } = own
  const where = here(directory)
  const needs = (reason: string, hint: OutcomeHint): SessionOutcome => ({
    kind: 'needs-person',
    reason,
    hint,
    goalOnly: true,
  })
  const keys = [
    ...new Set(steps.flatMap(({ status, waitsFor }) => (status === 'needs-secret' && waitsFor ? [waitsFor.key] : []))),
  ]
  if (keys.length > 0) {
    const network =
      own.secretsMeetNetwork === false
        ? ' Nobody has yet allowed secrets with the network; codemachine resume asks you in a terminal.'
        : ''
    const reason = `${wordsForWaiting(steps)} ${keys.join(', ')}.${wordsForWrong(steps, keys)}${network}`
    return needs(reason, { do: 'secret', keys, directory })
  }
  const unfinished = hintOfUnfinished(own, where)
  if (unfinished !== null) {
    const { which, hint } = unfinished
    return needs(`${which.length === 1 ? 'Step' : 'Steps'} ${which.join(', ')} of ${steps.length} failed.`, hint)
  }
  const failed = own.options.mode === 'work' ? [] : failedTests(own)
  if (failed.length > 0) {
    const text = `See how they ended (codemachine report${where}) and fix the cause. To test again: codemachine resume${where}`
    return needs(wordsForTests(failed), { do: 'say', text })
  }
  const high = highIssues(own)
  if (high.length > 0) {
    const text = `Read the review (codemachine report${where}). To have it fixed: codemachine team --project${where.slice(' -C'.length)} "…"`
    const count = high.length === 1 ? 'an issue' : `${high.length} issues`
    return needs(`The reviewer found ${count} of high severity.`, { do: 'say', text })
  }
  if (claim.state === 'refused') {
    const text = `See why (codemachine report${where}) and fix the cause. To try again: codemachine resume${where}`
    return needs('codemachine does not accept the result as done.', { do: 'say', text })
  }
  return null
}

/** Lists failed steps by id, and how to retry them; null: all are done. `where`: the flag that names the project. */
function hintOfUnfinished(
  { steps, hasNetwork }: TeamWork,
  where: string,
): { which: number[]; hint: OutcomeHint } | null {
  const open = steps.filter(({ status }) => status !== 'done')
  if (open.length === 0) return null
  const failed = open.filter(({ status }) => status === 'failed')
  const lost = hasNetwork ? [] : failed.filter(({ network }) => network).map(({ id }) => id)
  const retry =
    lost.length === 0
      ? `To try these steps again: codemachine resume${where}`
      : `To try these steps again, with the network for ${lost.join(', ')}: codemachine resume --network${where}`
  const text = `See what was missing (codemachine report${where}) and fix the cause. ${retry}`
  return {
    which: (failed.length === 0 ? open : failed).map(({ id }) => id),
    hint: { do: 'say', text, ...(lost.length === 0 ? {} : { network: true as const }) },
  }
}

/** Returns the high issues of the current files; a review before this session is of older files. */
function highIssues({ review, isReviewed }: TeamWork): TeamReview['issues'] {
  return isReviewed && review !== null ? review.issues.filter(({ severity }) => severity === 'high') : []
}

/** Says why a person's secrets do not work. */
function wordsForWrong(steps: readonly StepWork[], keys: readonly string[]): string {
  const wrong = keys.flatMap(key => {
    const step = steps.find(({ status, waitsFor }) => status === 'needs-secret' && waitsFor?.key === key)
    const problem = step?.waitsFor?.problem
    return problem == null
      ? []
      : [`The value that was given${keys.length === 1 ? '' : ` for ${key}`} does not work: ${truncate(problem, 500)}`]
  })
  return wrong.map(text => ` ${text}`).join('')
}

function wordsForWaiting(steps: readonly StepWork[]): string {
  const ids = steps.filter(({ status }) => status === 'needs-secret').map(({ id }) => id)
  return ids.length === 1 ? `Step ${ids[0]} needs the secret` : `Steps ${ids.join(', ')} need the secrets`
}
