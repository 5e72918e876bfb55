import type { ContextFacts } from '../../core/shapes/context.ts'
import { fromSource, modelNow, type SessionState, sourceInUse, type TemplateView } from '../../core/state/state.ts'
import type { BoardMark, BoardRow, CardFact, StepName } from '../../core/view.ts'
import { formatCount, formatSpan } from '../../tell/words/numbers.ts'
import { formatTimes, howItEnded } from './execution/rounds.ts'
import { changeFollowUp } from './follow-up.ts'
import { planMarkdown } from './plan-text.ts'
import { changeReport } from './report.ts'
import { changeData, shownPlans } from './status-data.ts'
import { nameOfTask } from './tasks.ts'
import type { ChangeWork, TaskRecord, TaskStatus } from './work.ts'

/** View of a change: its state, its plan, and its tasks with their models. */
export const changeView: TemplateView<ChangeWork> = {
  step: (step, own) => {
    switch (step.kind) {
      case 'command':
        return `${own.execution.at === null ? 'before anything is changed' : placeOf(own)}: ${step.name}`
      case 'look':
        return step.name === 'context' ? wordsForContext(own) : ''
      case 'enter':
        return wordsForState(step, own)
      case 'keep':
        return wordsForKept(step)
      case 'claim':
        return 'claiming that the change is done'
      default:
        return null
    }
  },
  round: (own, session) => {
    const title = titleOfRound(own, session)
    return title === null ? null : { title, lines: linesOfRound(own) }
  },
  status: statusOf,
  board: (own, session) =>
    own.execution.tasks.map((record, at) => rowOf(record, own, at === own.execution.at ? session : null)),
  card: cardOf,
  report: changeReport,
  data: changeData,
  followUp: changeFollowUp,
  plans: shownPlans,
}

/** `EXECUTING_TASKS, plan v2, 3 of 9 tasks`. */
function statusOf({ state, planning, execution }: ChangeWork): string {
  const [name = state] = state.split('.')
  // While a version is being made, the round's title names it.
  const isMade = state === 'GENERATING_PLAN' || state === 'REVIEWING_PLAN.refinement'
  const version = isMade ? undefined : (planning.accepted?.version ?? planning.versions.at(-1)?.version)
  const { tasks } = execution
  const facts = [
    name,
    ...(version === undefined ? [] : [`plan v${version}`]),
    ...(tasks.length === 0
      ? []
      : [`${countOf(tasks, 'COMPLETED')} of ${tasks.length} task${tasks.length === 1 ? '' : 's'}`]),
    ...(countOf(tasks, 'FAILED') === 0 ? [] : [`${countOf(tasks, 'FAILED')} failed`]),
  ]
  return facts.join(', ')
}

function countOf(tasks: readonly TaskRecord[], status: TaskStatus): number {
  return tasks.filter(task => task.status === status).length
}

/** Returns the purpose of the running or next round; null: none yet. */
function titleOfRound(own: ChangeWork, session: SessionState): string | null {
  const { state, planning, execution } = own
  const next = planning.versions.length + 1
  const where = whereItRuns(own, session)
  switch (state) {
    case 'EXECUTING_TASKS.decomposition':
      return `Tasks of plan v${planning.accepted?.version ?? next - 1}${tryOf(execution.refusals)}${where}`
    case 'GENERATING_SUMMARY':
      return `Summary${where}`
    case 'WAITING_FOR_INPUT':
    case 'GATHERING_CONTEXT':
    case 'REVIEWING_PLAN.user-review':
    case 'REVIEWING_PLAN.manual-review':
    case 'REVIEWING_PLAN.accepted':
    case 'REVIEWING_PLAN.auto-accepted':
    case 'REVIEWING_PLAN.rejected':
      return null
    default:
      break
  }
  if (!state.startsWith('EXECUTING_TASKS')) return `Plan v${next}${tryOf(planning.refusals)}${where}`
  const record = inHand(own)
  if (record === null) return execution.fixing === null ? 'Tasks' : `The proof${attemptOf(own)}${where}`
  const tries = execution.fixing === null ? tryOf(record.refusals) : attemptOf(own)
  return `${placeOf(own)}${tries}${where}: ${nameOfTask(record.spec)}`
}

/** Returns `, try 2` after unusable answers. */
function tryOf(refusals: number): string {
  return refusals === 0 ? '' : `, try ${refusals + 1}`
}

/** Returns `, attempt 2/5` during a fix. */
function attemptOf({ execution: { fixing }, options }: ChangeWork): string {
  return fixing === null ? '' : `, attempt ${fixing.attempt}/${options.fixAttempts}`
}

/** Names of codex's providers for servers on this machine. */
const LOCAL: ReadonlySet<string> = new Set(['ollama', 'lmstudio'])

/** Returns ` (local)`, ` (remote)` or ` (of PROVIDER)` for a running round, if there is an executor besides the planner. */
function whereItRuns({ options: { executor } }: ChangeWork, { running, providerInUse }: SessionState): string {
  if (executor === null || running === null) return ''
  if (providerInUse === null) return ' (remote)'
  const isLocal = providerInUse === executor.provider && executor.isLocal === true
  return isLocal || LOCAL.has(providerInUse) ? ' (local)' : ` (of ${providerInUse})`
}

function inHand({ execution: { tasks, at } }: ChangeWork): TaskRecord | null {
  return at === null ? null : (tasks[at] ?? null)
}

/** `Task 3/9 ACTION`. */
function placeOf(own: ChangeWork): string {
  const { tasks, at } = own.execution
  const record = inHand(own)
  return record === null || at === null ? 'Task' : `Task ${at + 1}/${tasks.length} ${record.spec.type}`
}

const MOST_LINES = 12

/** Returns the lines below a round's title: the task, and the reason for a fix. */
function linesOfRound(own: ChangeWork): string[] {
  const { state, planning, execution } = own
  const record = state.startsWith('EXECUTING_TASKS') ? inHand(own) : null
  if (record === null) {
    const said = state.startsWith('EXECUTING_TASKS') ? execution.problem : (planning.problem ?? planning.feedback)
    return said === null ? [] : said.split('\n').slice(0, MOST_LINES)
  }
  const [, ...more] = record.spec.description.trim().split('\n')
  const failed = execution.fixing === null ? undefined : record.results.at(-1)
  return [
    ...more,
    ...(record.spec.files.length === 0 ? [] : [`files: ${record.spec.files.join(', ')}`]),
    ...(record.spec.run === null ? [] : [`$ ${record.spec.run}`]),
    ...(failed === undefined ? [] : [failed.exitCode === null ? howItEnded(failed) : `exit code ${failed.exitCode}`]),
  ].slice(0, MOST_LINES)
}

/** Describes the gathered context. */
function wordsForContext({ context }: ChangeWork): string {
  if (context === null) return 'gathering facts about the project'
  const { entries, branch, rules, commands, mentioned } = context.facts
  const facts = [
    formatCount(entries, 'file'),
    ...(branch === null ? [] : [`branch ${branch}`]),
    ...wordsForCommands(commands),
    ...listed('rules', rules),
    ...listed('named', mentioned),
  ]
  return `facts about the project: ${facts.join('; ')}`
}

const MOST_NAMED = 2

function listed(label: string, names: readonly string[]): string[] {
  if (names.length === 0) return []
  const rest = names.length > MOST_NAMED ? ` +${names.length - MOST_NAMED}` : ''
  return [`${label}: ${names.slice(0, MOST_NAMED).join(', ')}${rest}`]
}

function wordsForCommands(commands: ContextFacts['commands']): string[] {
  const proving = commands.filter(({ kind }) => kind !== 'lint' && kind !== 'run').map(({ run }) => run)
  return proving.length === 0 ? ['no test or build command'] : listed('commands', [...new Set(proving)])
}

/** Describes a new state; empty: the next step shows it. */
function wordsForState({ name }: StepName, own: ChangeWork): string {
  const { accepted, versions } = own.planning
  const { limit } = own.execution
  if (name === 'GENERATING_SUMMARY' && limit !== null)
    return `the limit of ${limit} is reached; the other tasks stay open`
  if (name !== 'REVIEWING_PLAN.auto-accepted') return ''
  const taken = versions.find(({ version }) => version === accepted?.version)
  const words = `plan v${taken?.version ?? 1} was accepted automatically`
  return taken === undefined ? words : `${words}\n${planMarkdown(taken.plan).trim()}`
}

/** Describes a file for people; hides those that are shown elsewhere, such as tasks and plans. */
function wordsForKept({ name }: StepName): string | null {
  return name.endsWith('summary.md') ? null : ''
}

function markOf({ status, why }: TaskRecord): BoardMark {
  if (status === 'COMPLETED') return 'done'
  if (status === 'FAILED') return 'failed'
  // It waits for a task that failed.
  return status === 'PENDING' && why !== null ? 'parked' : 'to-do'
}

/** @param session that of the current task; null: it is another one */
function rowOf(record: TaskRecord, own: ChangeWork, session: SessionState | null): BoardRow {
  const { spec, status, who } = record
  const isNow = session !== null && session.ended === null && status !== 'COMPLETED' && status !== 'FAILED'
  const facts = isNow ? [attemptOf(own).replace(/^, /, '')].filter(fact => fact !== '') : factsOf(record)
  return {
    mark: isNow ? 'now' : markOf(record),
    id: spec.id,
    text: `${spec.type}: ${nameOfTask(spec)}${facts.length === 0 ? '' : ` (${facts.join(', ')})`}`,
    who: isNow ? whoWorks(own, session) : who,
    since: isNow ? (session.running?.startedAt ?? session.step?.since ?? null) : null,
  }
}

/** Names the model at the current task; null: codemachine itself. */
function whoWorks(own: ChangeWork, session: SessionState): string | null {
  if (session.running === null) return null
  const name = modelNow(session)
  const provider = fromSource(name, sourceInUse(session))
  return [name, provider].filter(each => each !== null).join(' ') || (own.execution.fixing?.by ?? null)
}

/** Lists the result and cost of a task. */
function factsOf({ status, why, attempts, ms, tokens, changed }: TaskRecord): string[] {
  return [
    ...(status === 'COMPLETED' || why === null ? [] : [(why.split('\n', 1)[0] ?? '').replace(/\.$/, '')]),
    ...(ms === 0 ? [] : [formatSpan(ms)]),
    ...(tokens === 0 ? [] : [`${tokens.toLocaleString('en-US')} tokens`]),
    ...(changed.length === 0 ? [] : [formatCount(changed.length, 'file')]),
    ...(attempts === 0 ? [] : [`fixed ${formatTimes(attempts)}`]),
  ]
}

/** Returns the first facts of the card; the card itself counts finished tasks and lists open ones. */
function cardOf({ planning: { accepted, versions }, execution: { tasks } }: ChangeWork): CardFact[] {
  const mended = tasks.filter(({ attempts, spec }) => attempts > 0 && spec.type === 'VERIFICATION')
  return [
    ...(accepted === null
      ? versions.slice(-1).map(({ version }) => ({ label: 'plan', text: `v${version}, not accepted yet` }))
      : [{ label: 'plan', text: `v${accepted.version}, ${acceptedBy(accepted)}` }]),
    ...(mended.length === 0 ? [] : [{ label: 'mended', text: mended.map(mendedInWords).join('; ') }]),
  ]
}

function mendedInWords({ spec, status, attempts }: TaskRecord): string {
  return `${spec.id} ${formatCount(attempts, 'time')}${status === 'COMPLETED' ? '' : ', in vain'}`
}

function acceptedBy({ by, remark }: NonNullable<ChangeWork['planning']['accepted']>): string {
  const words = {
    person: 'accepted by you',
    auto: 'accepted automatically',
    go: 'changed as you asked, then accepted automatically',
  }
  return `${words[by]}${remark === null ? '' : `: ${remark}`}`
}
