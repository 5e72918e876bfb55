import { inlineCode } from '../../base/markdown.ts'
import { cleanText, clipEnd, truncate } from '../../base/text.ts'
import type { SessionOutcome } from '../../core/events/outcome.ts'
import { hasPassed as hasGatePassed } from '../../core/events/outcome.ts'
import type { SessionState } from '../../core/state/state.ts'
import { formatSpan } from '../../tell/words/numbers.ts'
import { acceptedPlan, statusBefore } from './execution/before.ts'
import { hasPassed, outcomeOf, worksOf } from './execution/queue.ts'
import { formatTimes, howItEnded } from './execution/rounds.ts'
import { nameOfTask } from './tasks.ts'
import type { ChangeWork, TaskRecord } from './work.ts'

/** Most characters of the whole, and of each text in it. */
const MOST_CHARACTERS = 200_000
const MOST_REQUEST = 8_000
const MOST_WHY = 600
const MOST_FILES = 200
const MOST_WORDS = 15_000

/** Returns `summary.md`: codemachine's facts, and the planner's words below them, if any. Pure. */
export function summaryText(own: ChangeWork, session: SessionState): string {
  const facts = summaryFacts(own, session)
  const words = cleanText(own.words ?? '')
  if (words === '') return facts
  return `${facts}\n## In the words of the model that planned it\n\n${clipEnd(words, MOST_WORDS)}\n`
}

/** Returns codemachine's own facts about a change, as Markdown. Only the names of tasks are an agent's words. Pure. */
export function summaryFacts(own: ChangeWork, session: SessionState): string {
  const sections = [
    `# ${title(own)}`,
    `**${wordsForOutcome(outcomeNow(own, session))}**`,
    section('Request', quoted(clipEnd(own.request.trim(), MOST_REQUEST))),
    section('Plan', planFacts(own)),
    section('Tasks', taskFacts(own)),
    section('Checks', checkParts(own, session).join('\n\n')),
    section('Files', fileFacts(own)),
    section('What is open', bullets(openPoints(own, session).map(inline))),
    section('How to look, and how to undo', bullets(commands(session))),
  ]
  return clipEnd(`${cleanText(sections.filter(text => text !== '').join('\n\n'))}\n`, MOST_CHARACTERS)
}

/** Returns the outcome, or the one if it ended now. */
function outcomeNow(own: ChangeWork, session: SessionState): SessionOutcome {
  return session.ended?.outcome ?? own.outcome ?? outcomeOf(own, session)
}

function title({ request }: ChangeWork): string {
  const [first = ''] = request.trim().split('\n', 1)
  return inline(truncate(first, 100))
}

/** Describes an outcome in a sentence. */
function wordsForOutcome(outcome: SessionOutcome): string {
  switch (outcome.kind) {
    case 'done':
      return outcome.verified
        ? 'Done, and verified: commands of the project, or accepted by a person, passed on the final files.'
        : 'Done, not verified: only commands of the model itself checked it.'
    case 'limit':
      return `Not done: the limit of ${LIMITS[outcome.limit] ?? outcome.limit} is reached.`
    case 'needs-person':
      return `Not done, a person is needed: ${inline(clipEnd(outcome.reason, MOST_WHY))}`
    case 'interrupted':
      return 'Not done: a person ended it.'
    default:
      return `It ended: ${outcome.kind}.`
  }
}

const LIMITS: Readonly<Record<string, string>> = { time: 'time', tokens: 'tokens', rounds: 'rounds', cost: 'cost' }

/** Words for who accepted the plan. */
export const ACCEPTED_BY = {
  person: 'a person accepted it',
  auto: 'it was accepted automatically (`--auto`); nobody looked at it',
  go: 'a person had it changed, and accepted the result in advance',
} as const

function planFacts(own: ChangeWork): string {
  const { accepted, versions } = own.planning
  if (accepted === null) {
    const last = versions.at(-1)
    return last === undefined ? 'There is none.' : `Version ${last.version} was not accepted.`
  }
  const remark =
    accepted.remark === null ? '' : `, with the remark:\n\n${quoted(clipEnd(accepted.remark, MOST_REQUEST))}`
  return `Version ${accepted.version} (\`${accepted.sha256.slice(0, 12)}\`): ${ACCEPTED_BY[accepted.by]}${remark === '' ? '.' : remark}`
}

/** Words for the state of a task. */
export const STATUS = {
  PENDING: 'not begun',
  IN_PROGRESS: 'not finished',
  COMPLETED: 'done',
  FAILED: 'failed',
} as const

function taskFacts({ execution: { tasks } }: ChangeWork): string {
  return tasks.length === 0 ? 'There are none.' : table(TASK_HEAD, tasks.map(taskRow))
}

/** Head cells of `taskRow`. */
export const TASK_HEAD: readonly string[] = ['task', 'kind', 'what', 'state', 'attempts', 'who', 'time']

/** Returns a table row for a task: state, attempts and model. Pure. */
export function taskRow(record: TaskRecord): readonly string[] {
  const { spec, status, who, ms } = record
  return [
    spec.id,
    spec.type,
    nameOfTask(spec),
    STATUS[status],
    attemptsIn(record),
    who ?? (spec.type === 'VERIFICATION' ? 'codemachine' : ''),
    formatSpan(ms),
  ]
}

/** Says how often a task was fixed or tried; empty for a verification that passed at once. */
function attemptsIn({ spec, attempts, rounds }: TaskRecord): string {
  if (spec.type === 'VERIFICATION') return attempts === 0 ? '' : `fixed ${formatTimes(attempts)}`
  return rounds <= 1 ? '' : `${rounds} rounds`
}

/** A command that ran to check the work. */
interface Check {
  /** Task of the command, which is no proof; null: a gate. */
  task: string | null
  run: string
  /** Its last result: `passed`, `ended with exit code 1`; null: it has not run since the last change. */
  came: string | null
  /** Whether it proves the end: a gate that passed on the accepted files. */
  isProof: boolean
  /** Whether it passed, but files were changed afterwards. */
  isStale: boolean
  failedBefore: boolean
}

/** Returns the checks that ran: gates, which are proof, then tasks' commands, which are not. Pure. */
function checksOf(own: ChangeWork, session: SessionState): readonly Check[] {
  const results = session.claim.state === 'accepted' ? session.claim.results : []
  const failedBefore = (run: string) => statusBefore(own, session, run) === 'failed'
  const ofGates = session.gates.map(({ name, run }): Check => {
    const last = session.gateRuns.findLast(each => each.gate === name)
    return {
      task: null,
      run,
      came: last === undefined || last.when === 'before' ? null : howItEnded(last),
      isProof: results.some(each => each.gate === name && hasGatePassed(each.status)),
      isStale: false,
      failedBefore: failedBefore(run),
    }
  })
  const ofTasks = own.execution.tasks.flatMap(({ spec: { id, run }, results: ran }): Check[] => {
    const last = ran.at(-1)
    if (run === null || last === undefined) return []
    const isStale = isChangedSince(last, session)
    return [{ task: id, run, came: howItEnded(last), isProof: false, isStale, failedBefore: failedBefore(run) }]
  })
  return [...ofGates, ...ofTasks]
}

/** Lists the checks as Markdown: proof first, then the rest. Pure. */
export function checkParts(own: ChangeWork, session: SessionState): string[] {
  const checks = checksOf(own, session)
  const proof = checks.filter(({ task }) => task === null)
  const ofTasks = checks.filter(({ task }) => task !== null)
  return [
    proof.length === 0
      ? 'Nothing proved it: no command of the project ran, and none that a person accepted as proof.'
      : listed('Commands that count as proof', proof.map(checkLine)),
    ...(ofTasks.length === 0
      ? []
      : [listed("Checked by the agent's own commands, which are no proof", ofTasks.map(checkLine))]),
  ]
}

const MOST_LISTED = 60
const RUN_CHARS = 200

/** Lists lines below a heading, at most 60. */
export function listed(heading: string, lines: readonly string[]): string {
  const shown = lines.slice(0, MOST_LISTED)
  const more = lines.length > shown.length ? [`- and ${lines.length - shown.length} more`] : []
  return [`${heading}:`, ...shown.map(line => `- ${line.replace(/\s+/g, ' ')}`), ...more].join('\n')
}

function checkLine({ task, run, came, isProof, isStale, failedBefore }: Check): string {
  const how = `${came ?? 'did not run after the changes'}${isProof ? ' on the final files' : ''}`
  const since = isStale ? ', and files were changed after that' : ''
  const before = failedBefore ? '; it failed before anything was changed' : ''
  return `${task === null ? '' : `${task}: `}${code(truncate(run, RUN_CHARS))} ${how}${since}${before}`
}

/** Returns whether it passed, but files were changed afterwards. */
function isChangedSince(last: TaskRecord['results'][number], { claim, last: round }: SessionState): boolean {
  const final = claim.state === 'accepted' ? claim.tree : (round?.treeAfter ?? null)
  return hasPassed(last) && final !== null && final !== last.tree
}

function fileFacts({ execution }: ChangeWork): string {
  const rows = worksOf(execution).flatMap(([id, { lines, changed }]) => {
    const task = id === '' ? 'the claim' : id
    if (lines === null) return changed.map(path => [task, path, ''])
    return lines.map(({ path, added, removed }) => [task, path, added === null ? 'no text' : `+${added} −${removed}`])
  })
  if (rows.length === 0) return 'None was changed.'
  const more = rows.length - MOST_FILES
  const shown = table(['task', 'file', 'lines'], rows.slice(0, MOST_FILES))
  return more > 0 ? `${shown}\n\nAnd ${more} more.` : shown
}

const LEFT = { PENDING: 'is not begun', IN_PROGRESS: 'is not finished', FAILED: 'failed' } as const

/** Returns the open points for a person, a sentence each; empty: none. */
export function openPoints(own: ChangeWork, session: SessionState): readonly string[] {
  const { tasks, limit, claim } = own.execution
  const left = tasks.flatMap(({ spec, status, why }) =>
    status === 'COMPLETED' ? [] : [`${spec.id} ${LEFT[status]}: ${nameOfTask(spec)}${why === null ? '' : `. ${why}`}`],
  )
  return [
    ...left,
    ...(limit === null ? [] : [`The work on the tasks reached the limit of ${limit}.`]),
    ...(claim.refused === null ? [] : [`codemachine refused the claim that everything is done: ${claim.refused}`]),
    ...(session.questions === 0
      ? []
      : [
          `${session.questions === 1 ? 'One question was' : `${session.questions} questions were`} asked: see the report.`,
        ]),
    ...(acceptedPlan(own)?.questions ?? []).map(question => `A question of the plan: ${question}`),
  ].map(text => clipEnd(text, MOST_WHY))
}

function commands({ id, savepoint }: SessionState): readonly string[] {
  return [
    `See what changed: \`codemachine diff ${id}/start\``,
    ...(savepoint === null ? [] : [`Undo all of it: \`codemachine rewind ${id}/start\``]),
  ]
}

// Markdown of foreign texts: it must stay in its place.

function section(heading: string, text: string): string {
  return text === '' ? '' : `## ${heading}\n\n${text}`
}

function bullets(entries: readonly string[]): string {
  return entries.map(each => `- ${each}`).join('\n')
}

function quoted(text: string): string {
  return text
    .split('\n')
    .map(line => `> ${line}`)
    .join('\n')
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map(inline).join(' | ')} |`
  return [line(head), `|${' --- |'.repeat(head.length)}`, ...rows.map(line)].join('\n')
}

const SPECIAL = /[\\`*_{}[\]<>#|~]/g

/** Escapes a text on one line so that nothing is markup; codemachine's own code spans in it are lost too. */
function inline(text: string): string {
  return text.replace(/\s+/g, ' ').trim().replace(SPECIAL, '\\$&')
}

/** Formats any text as inline code on one line of Markdown. */
export function code(text: string): string {
  return inlineCode(text.replace(/\s+/g, ' '))
}
