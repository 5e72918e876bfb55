import { truncate } from '../../base/text.ts'
import { refusedAnswer } from '../../core/rules/answer.ts'
import { PLAN_DECISION } from '../../core/state/plan.ts'
import type { SessionState, TemplateView } from '../../core/state/state.ts'
import type { BoardMark, BoardRow, CardFact, RoundTitle, StepName } from '../../core/view.ts'
import { capital } from '../../tell/report/words.ts'
import { formatCount } from '../../tell/words/numbers.ts'
import { PLAN_ANSWER } from './answers.ts'
import { currentStep, DECISIONS } from './fold.ts'
import { waysToTest, whatIsMissing } from './project-info.ts'
import { stepsOf, teamData, teamReport } from './report.ts'
import { phaseOf, type StepWork, type TeamReview, type TeamWork, uncheckedSteps } from './work.ts'

/** View of a team: its steps with results, the current work, and its waits. */
export const teamView: TemplateView<TeamWork> = {
  step: wordsForStep,
  round: titleOf,
  status: statusOf,
  board: (own, session) => own.steps.map(step => rowOf(step, session)),
  card: cardOf,
  report: (own, { directory }) => teamReport(own, directory),
  data: (own, { directory }) => teamData(own, directory),
}

/** Names commands by their line, and other steps like codemachine. */
function wordsForStep({ kind, name }: StepName, own: TeamWork): string | null {
  switch (kind) {
    case 'command':
      return name
    case 'look':
      return wordsForFound(own)
    case 'write':
      return `writing ${name}`
    case 'claim':
      return 'claiming that the project is done'
    case 'confirm-secret':
      return `checking whether the secret ${name} is stored`
    default:
      return null
  }
}

const MOST_NAMED = 6

function wordsForFound({ found }: TeamWork): string {
  if (found === null) return 'finding out how to start and test the project'
  const paths = found.files.map(({ path }) => path)
  if (paths.length === 0) return 'no file says how to start and test the project'
  const rest = paths.length > MOST_NAMED ? ` and ${paths.length - MOST_NAMED} more` : ''
  return `files that say how to start and test the project: ${paths.slice(0, MOST_NAMED).join(', ')}${rest}`
}

const MOST_LINES = 12

/** Returns the purpose of the running or next round; null: none comes. */
function titleOf(own: TeamWork, session: SessionState): RoundTitle | null {
  switch (phaseOf(own)) {
    case 'planning': {
      if (own.plan !== null && own.wanted === null) return null
      const title = own.plan === null ? 'Plan' : 'Plan, changed as you asked'
      const refusals = refusedAnswer(session, PLAN_ANSWER.name)?.refusals ?? 0
      return { title: `${title}${tryOf(refusals)}`, lines: linesOf(own.wanted) }
    }
    case 'steps': {
      const step = waitingStep(own, session) ?? currentStep(own)
      if (step === null) return null
      const [first = '', ...more] = step.description.trim().split('\n')
      const title = `${capital(placeOf(step, own))}${tryOf(step.tries)}: ${first}`
      return { title, lines: [...more, ...(step.tries === 0 ? [] : linesOf(step.missing))].slice(0, MOST_LINES) }
    }
    case 'testing':
      return { title: 'How to test it', lines: [] }
    case 'reviewing':
      return { title: own.repairs === 0 ? 'Review' : `Review after repair ${own.repairs}`, lines: [] }
    case 'ending':
      return null
  }
}

/** Returns the step whose secret a person is asked for. */
function waitingStep({ steps }: TeamWork, { decision }: SessionState): StepWork | undefined {
  const key = decision?.secret?.key
  return steps.find(({ status, waitsFor }) => status === 'needs-secret' && waitsFor?.key === key)
}

function tryOf(before: number): string {
  return before === 0 ? '' : `, try ${before + 1}`
}

function linesOf(text: string | null): string[] {
  return text === null ? [] : text.trim().split('\n').slice(0, MOST_LINES)
}

/** Returns `step 2 of 5`, by position, because ids may have gaps. */
function placeOf(step: StepWork, { steps }: TeamWork): string {
  return `step ${steps.indexOf(step) + 1} of ${steps.length}`
}

/** Describes its progress or wait in a few words, apart from the round's title; null: no plan yet. */
function statusOf(own: TeamWork, session: SessionState): string | null {
  const { decision, ended } = session
  if (ended === null && decision !== null) {
    if (decision.secret !== undefined) return `waits for a secret: ${decision.secret.key}`
    if (decision.id === PLAN_DECISION) return 'asks about its plan'
    if (decision.id === DECISIONS.network) return 'asks about the network'
    if (decision.id === DECISIONS.secretNetwork) return 'asks about secrets and the network'
  }
  const done = doneOf(own, ended !== null)
  const unchecked = ended === null ? 0 : uncheckedSteps(own).length
  const notChecked = unchecked === 0 ? [] : [`${unchecked} not checked`]
  return done === null ? null : [done, ...notChecked, ...lacksOf(own)].join(', ')
}

function doneOf({ steps, plan, review, options, isReviewed }: TeamWork, hasEnded: boolean): string | null {
  const done = steps.filter(({ status }) => status === 'done').length
  if (steps.length > 0) return `${done} of ${formatCount(steps.length, 'step')} done`
  if (options.mode === 'review' && isReviewed && review !== null) return 'reviewed'
  if (!hasEnded) return null
  return options.mode === 'review' ? 'not reviewed' : plan === null ? 'no plan' : 'planned'
}

/** Lists failures, and names of missing secrets. */
function lacksOf({ steps }: TeamWork): string[] {
  const failed = steps.filter(({ status }) => status === 'failed').length
  const keys = new Set(
    steps.flatMap(({ status, waitsFor }) => (status === 'needs-secret' && waitsFor !== null ? [waitsFor.key] : [])),
  )
  return [...(failed === 0 ? [] : [`${failed} failed`]), ...(keys.size === 0 ? [] : [`needs ${[...keys].join(', ')}`])]
}

const MARKS = {
  'to-do': 'to-do',
  running: 'now',
  checking: 'now',
  done: 'done',
  failed: 'failed',
  skipped: 'parked',
  'needs-secret': 'parked',
} as const satisfies Record<StepWork['status'], BoardMark>

function markOf({ status }: StepWork, { ended }: Pick<SessionState, 'ended'>): BoardMark {
  const mark = MARKS[status]
  return mark === 'now' && ended !== null ? 'to-do' : mark
}

function rowOf(step: StepWork, session: SessionState): BoardRow {
  const mark = markOf(step, session)
  const isNow = mark === 'now'
  const facts = factsOf(step)
  return {
    mark,
    id: String(step.id),
    text: `${nameOf(step)}${facts.length === 0 ? '' : ` (${facts.join('; ')})`}`,
    who: isNow && session.running !== null ? (session.modelInUse ?? session.model) : null,
    since: isNow ? (session.running?.startedAt ?? session.step?.since ?? null) : null,
  }
}

const MOST_NAME = 200
const MOST_WHY = 120

/** Returns the first line of its description. */
function nameOf({ description, kind }: StepWork): string {
  const [first = ''] = description.trim().split('\n', 1)
  return `${kind === 'repair' ? 'repair: ' : ''}${truncate(first, MOST_NAME)}`
}

/** Lists facts of a step, apart from its mark. */
function factsOf({ status, waitsFor, missing, tries, checks, passed }: StepWork): string[] {
  const [why = ''] = (missing ?? '').trim().split('\n', 1)
  switch (status) {
    case 'needs-secret':
      return [`needs the secret ${waitsFor?.key ?? ''}`.trim()]
    case 'failed':
      return [`failed${tries > 1 ? ` ${tries} times` : ''}`, ...(why === '' ? [] : [truncate(why, MOST_WHY)])]
    case 'skipped':
      return ['skipped', ...(why === '' ? [] : [truncate(why, MOST_WHY)])]
    case 'checking':
      return [`check ${Math.min(passed + 1, checks.length)} of ${checks.length}`]
    case 'to-do':
    case 'running':
      return tries === 0 ? [] : [`try ${tries + 1}`]
    case 'done':
      return []
  }
}

/** Most steps on the card in order; with more, open steps come first. */
const MOST_IN_ORDER = 6

/** Returns the first facts of the final card: steps, review findings, project, tests, missing things. */
function cardOf(own: TeamWork, session: SessionState): CardFact[] {
  const { steps, review } = own
  const { directory } = session
  const open = steps.filter(({ status }) => status !== 'done')
  const shown = steps.length <= MOST_IN_ORDER ? steps : [...open, ...steps.filter(({ status }) => status === 'done')]
  const ways = waysToTest(own, directory)
  const missing = wordsForMissing(own, directory)
  return [
    ...(shown.length === 0 ? [] : [{ label: 'steps', text: '', rows: shown.map(step => cardRow(step, session)) }]),
    ...(review === null ? [] : [{ label: 'issues', text: wordsForIssues(review) }]),
    { label: 'project', text: directory, isToCopy: true as const },
    ...(ways.length === 0
      ? []
      : [{ label: 'to test', text: '', rows: ways.map(({ run, ran }) => ({ text: `${run} (${ran})` })) }]),
    ...(missing.length === 0 ? [] : [{ label: 'missing', text: missing.join('; ') }]),
  ]
}

function cardRow(step: StepWork, session: SessionState) {
  const isUnchecked = uncheckedSteps({ steps: [step] }).length > 0
  const facts = isUnchecked ? ['not checked'] : factsOf(step)
  return {
    mark: markOf(step, session),
    text: `${step.id}  ${nameOf(step)}${facts.length === 0 ? '' : ` (${facts.join('; ')})`}`,
  }
}

function wordsForIssues({ issues }: TeamReview): string {
  if (issues.length === 0) return 'none'
  const of = (wanted: string) => issues.filter(({ severity }) => severity === wanted)
  const counts = (['high', 'medium', 'low'] as const).flatMap(each =>
    of(each).length === 0 ? [] : [`${of(each).length} ${each}`],
  )
  const [first] = [...of('high'), ...of('medium'), ...of('low')]
  return `${counts.join(', ')}: ${first?.description ?? ''}`
}

function wordsForMissing(own: TeamWork, directory: string): string[] {
  const { secrets, network } = whatIsMissing(own, directory)
  return [
    ...secrets.map(({ key, steps }) => `the secret ${key}, for ${stepsOf(steps)}`),
    ...(network === null ? [] : [`the network, for ${stepsOf(network.steps)}`]),
  ]
}
