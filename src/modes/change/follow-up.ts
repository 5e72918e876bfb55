import { clipEnd, clipStart, truncate } from '../../base/text.ts'
import { formatCount } from '../../tell/words/numbers.ts'
import { formatTimes } from './execution/rounds.ts'
import { planMarkdown } from './plan-text.ts'
import { STATUS } from './summary.ts'
import { nameOfTask } from './tasks.ts'
import type { ChangeWork, TaskRecord } from './work.ts'

// Together less than a session may receive about an earlier one.
const PLAN_CHARS = 14_000
const WORDS_CHARS = 10_000
const WHY_CHARS = 1_200
const NAME_CHARS = 150
const REMARK_CHARS = 4_000
const MOST_FAILURES = 6

/**
 * Returns a change's part for its follow-up session: the accepted plan, each task's result, open failures, and the planner's
 * last words. Request, end and changed files come from elsewhere. Pure.
 */
export function changeFollowUp(own: ChangeWork): string {
  const { execution, words } = own
  const failed = execution.tasks.filter(({ status }) => status === 'FAILED')
  return [
    planSection(own),
    ...(execution.tasks.length === 0
      ? []
      : [`## What became of its tasks\n\n${execution.tasks.map(record => `- ${taskLine(record)}`).join('\n')}`]),
    ...(execution.limit === null ? [] : [`The limit of ${execution.limit} ended the work on the tasks.`]),
    ...failed.slice(0, MOST_FAILURES).map(failureSection),
    ...(execution.claim.refused === null
      ? []
      : [`## Why it was not taken for done\n\n${clipEnd(execution.claim.refused, WHY_CHARS)}`]),
    ...(words === null || words.trim() === ''
      ? []
      : [`## What its planner said at the end (a claim, and no proof)\n\n${clipEnd(words.trim(), WORDS_CHARS)}`]),
  ].join('\n\n')
}

function planSection({ planning: { accepted, versions } }: ChangeWork): string {
  const version = versions.find(each => each.version === accepted?.version)
  if (accepted === null || version === undefined) {
    const last = versions.at(-1)
    if (last === undefined) return '## Its plan\n\nThere was none.'
    return `## Its plan, version ${last.version}, which was not accepted\n\n${textOf(last.plan)}`
  }
  const how = {
    person: 'which a person accepted',
    auto: 'which was accepted automatically',
    go: 'which a person had changed, and which was then accepted automatically',
  }
  const remark = accepted.remark === null ? '' : `\n\nWith the remark: ${clipEnd(accepted.remark, REMARK_CHARS)}`
  return `## Its plan, version ${version.version}, ${how[accepted.by]}\n\n${textOf(version.plan)}${remark}`
}

/** Its headings are one level below those of this text. */
function textOf(plan: Parameters<typeof planMarkdown>[0]): string {
  const text = planMarkdown(plan).replace(/^(#+) /gm, '##$1 ')
  return clipEnd(text.trim(), PLAN_CHARS)
}

function taskLine({ spec, status, why, attempts, changed }: TaskRecord): string {
  const facts = [
    STATUS[status],
    ...(attempts > 0 && spec.type === 'VERIFICATION' ? [`fixed ${formatTimes(attempts)}`] : []),
    ...(changed.length === 0 ? [] : [`changed ${formatCount(changed.length, 'file')}`]),
    ...(status === 'COMPLETED' || why === null ? [] : [truncate(why.replace(/\s+/g, ' '), NAME_CHARS)]),
  ]
  return `${spec.id} ${spec.type}: ${truncate(nameOfTask(spec), NAME_CHARS)}: ${facts.join('; ')}`
}

/** Describes an open failure, with the end of its command's output. */
function failureSection({ spec, why, results }: TaskRecord): string {
  const last = results.at(-1)
  const lines = [
    `## What failed: ${spec.id}`,
    ...(why === null ? [] : [clipEnd(why, WHY_CHARS)]),
    ...(spec.run === null ? [] : [`Its command: ${truncate(spec.run.replace(/\s+/g, ' '), NAME_CHARS)}`]),
    ...(last === undefined || last.tail.trim() === '' ? [] : [`What that printed last:\n\n${indented(last.tail)}`]),
  ]
  return lines.join('\n\n')
}

/** Formats any text as a code block. */
function indented(text: string): string {
  const lines = clipStart(text.trimEnd(), WHY_CHARS).split('\n')
  return lines.map(line => `    ${line}`).join('\n')
}
