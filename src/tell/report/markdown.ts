import { inlineCode } from '../../base/markdown.ts'
import { formatBytes, truncate } from '../../base/text.ts'
import { refusalForPerson } from '../../core/rules/refusals.ts'
import type { ReportSection } from '../../core/view.ts'
import { wordsForAdopted } from '../words/adopted.ts'
import { formatDayAndTime, formatDuration, formatMoment, shortNumber } from '../words/numbers.ts'
import { wordsForIssue, wordsForPublished } from '../words/published.ts'
import { safeText, titleLine } from '../words/safe-text.ts'
import { type CommandContext, commandsOf } from './commands.ts'
import { contractSection } from './contract.ts'
import { FIRST_CHARS, lookAtFirst } from './look-first.ts'
import type { ReportBuild, ReportData, ReportRound, Shortened } from './report-data.ts'
import {
  beforeInWords,
  capital,
  codeIn,
  effortInWords,
  enginesInWords,
  findingInWords,
  forecastInWords,
  gateInWords,
  headlineOf,
  instancesInWords,
  noGateInWords,
  notesOnProof,
  numberOfRow,
  OUTPUTS,
  outcomeOfRow,
  protectedInWords,
  providersInWords,
  reviewInWords,
  rowInWords,
  rowsLeftOut,
  taskInWords,
  tasksInWords,
  tasksLeftOut,
} from './words.ts'
import { changesInWords, notLookedAtInWords } from './words-of-changes.ts'

/** The most of a goal, and of an outcome, above the first heading; both stand in full at the end. */
const GOAL_CHARS = 300
const GOAL_LINES = 4
const OUTCOME_CHARS = 500

/**
 * The report as Markdown (GFM). What came from outside is shown as it is: no link, image, heading or HTML comes of it.
 * What stands above the third heading fits a chat message.
 */
export function markdownOf(data: ReportData, place: CommandContext): string {
  const { text, hint } = headlineOf(data)
  const tasks = tasksInWords(data)
  const ahead = forecastInWords(data)
  const engines = enginesInWords(data)
  const sections = [
    `# ${escapeMarkdown(capital(truncate(text, OUTCOME_CHARS)))}`,
    quoted(isShort(data.goal) ? data.goal : titleLine(data.goal, GOAL_CHARS)),
    first(data),
    ...proven(data),
    ownSection(data.work.section),
    section('What changed', changes(data, place)),
    section('Board', boardTable(data)),
    section('Tasks', data.build === null ? '' : taskTable(data.build)),
    refused(data),
    section('Plans that could not be used', refusedPlans(data)),
    section(
      'Questions and assumptions',
      bullets(
        withGap(
          data.questions,
          ({ id, round, text, assumption, answered }) =>
            `**${escapeMarkdown(id)}** ${escapeMarkdown(`(round ${round}) ${text}`)} ${answered ? 'Assumed until you answered' : 'Assumed'}: ${escapeMarkdown(assumption)}`,
        ),
      ),
    ),
    section(
      'The session',
      bullets([
        `Session ${codeSpan(data.session)}, ${formatDayAndTime(Date.parse(data.createdAt))} to ${formatDayAndTime(Date.parse(data.updatedAt))}`,
        ...(data.adopted === null
          ? []
          : [escapeMarkdown(`Continues from ${wordsForAdopted(data.adopted, Date.parse(data.createdAt))}`)]),
        ...(data.issue === undefined ? [] : [escapeMarkdown(`Works on ${wordsForIssue(data.issue)}`)]),
        ...(data.published === undefined ? [] : [escapeMarkdown(capital(wordsForPublished(data.published)))]),
        escapeMarkdown(`It took ${effortInWords(data)}`),
        ...(engines === null ? [] : [escapeMarkdown(`Engines: ${engines}`)]),
        ...(ahead === null ? [] : [escapeMarkdown(`Ahead: ${ahead}`)]),
        ...(tasks === null ? [] : [escapeMarkdown(`Tasks: ${tasks}`)]),
      ]),
    ),
    section('Agents', data.build === null ? '' : agentTable(data.build)),
    section('Rounds', rounds(data)),
    section('Waits and failures', bullets(withGap(data.trouble, trouble => escapeMarkdown(troubleInWords(trouble))))),
    section(
      OUTPUTS,
      bullets(
        withGap(
          data.outputs,
          ({ name, file, bytes }) => `${codeSpan(file)} ${escapeMarkdown(`${name}, ${formatBytes(bytes)}`)}`,
        ),
      ),
    ),
    section('Notes', bullets(withGap(data.notes, ({ text }) => escapeMarkdown(text)))),
    section('Remarks', bullets(withGap(data.remarks, escapeMarkdown))),
    section(
      'Look closer, or undo',
      bullets(commandsOf(data, place).map(({ command, what }) => `${codeSpan(command)}: ${what}`)),
    ),
    section(
      'In full',
      [
        ...(isShort(data.goal) ? [] : [quoted(data.goal)]),
        ...(text.length > OUTCOME_CHARS ? [quoted(text)] : []),
        ...(hint !== null && hint.length > FIRST_CHARS ? [quoted(hint)] : []),
      ].join('\n\n'),
    ),
  ]
  return `${sections.filter(each => each !== '').join('\n\n')}\n`
}

function isShort(goal: string): boolean {
  return goal.length <= GOAL_CHARS && goal.split('\n').length <= GOAL_LINES
}

/** What a person has to know of a result before they take it: the sections of the report that say so, without what is empty. */
export function proofSections(data: ReportData): string[] {
  const all = [first(data), ...proven(data), refused(data)]
  return all.filter(each => each !== '')
}

function proven(data: ReportData): string[] {
  return [ownSection(contractSection(data.contract)), section('Proof', proof(data))]
}

function first(data: ReportData): string {
  return section('Look at this first', bullets(lookAtFirst(data).map(({ text }) => escapeMarkdown(text))))
}

function refused({ refusals }: ReportData): string {
  const lines = withGap(refusals, ({ round, reason, detail }) =>
    escapeMarkdown(`Round ${round} (${reason.replaceAll('-', ' ')}): ${refusalForPerson({ reason, detail }).fact}`),
  )
  return section('Claims that were not accepted', bullets(lines))
}

function proof(data: ReportData): string {
  const { gates, reviews, findings, findingsCount, protectedFiles, tree } = data.proof
  const none = noGateInWords(data, 'the work')
  return bullets([
    ...(none === null ? [] : [`${capital(none)}.`]),
    ...gates.map(gate => {
      const words = [gateInWords(gate), beforeInWords(gate)].filter(each => each !== null).join('; ')
      return `${codeSpan(gate.name)} ${escapeMarkdown(words)}`
    }),
    ...withGap(reviews, review => escapeMarkdown(`${capital(reviewInWords(review).text)}. ${review.summary}`)),
    ...findings.map(finding => escapeMarkdown(findingInWords(finding))),
    ...(findingsCount > findings.length ? [`and ${findingsCount - findings.length} more findings`] : []),
    ...notesOnProof(data).map(({ text }) => escapeMarkdown(capital(text))),
    ...(protectedFiles.length === 0
      ? []
      : [
          escapeMarkdown(
            `Protected, and changed: ${protectedFiles.map(file => `${file.path} (${protectedInWords(file)})`).join(', ')}`,
          ),
        ]),
    ...(tree === null ? [] : [`Accepted for the files with the git tree ${codeSpan(tree)}`]),
  ])
}

function refusedPlans({ build }: ReportData): string {
  if (build === null) return ''
  const lines = withGap(build.refusals, ({ round, problem }) => escapeMarkdown(`Round ${round}: ${problem}`))
  return bullets(lines)
}

function changes(data: ReportData, place: CommandContext): string {
  const { paths, files, commits, from } = data.changes
  const unseen = notLookedAtInWords(data.changes)
  const last = unseen === null ? '' : escapeMarkdown(unseen)
  const said = escapeMarkdown(`${capital(changesInWords(data, place))}.`)
  if (files === 0 && commits.count === 0) return [said, last].filter(part => part !== '').join('\n\n')
  const head = from === 'rounds' ? '| file |\n| --- |' : '| file | added | removed |\n| --- | ---: | ---: |'
  const rows = paths.map(({ path, added, removed }) =>
    from === 'rounds'
      ? `| ${escapeMarkdown(path)} |`
      : `| ${escapeMarkdown(path)} | ${added ?? 'not text'} | ${removed ?? 'not text'} |`,
  )
  const more = files > paths.length ? `\n\n… and ${files - paths.length} more files.` : ''
  const made = bullets(
    withGap(commits, ({ commit, subject }) => `${codeSpan(commit.slice(0, 12))} ${escapeMarkdown(subject)}`),
  )
  const table = paths.length === 0 ? '' : `${head}\n${rows.join('\n')}${more}`
  return [said, table, made.trim(), last].filter(part => part !== '').join('\n\n')
}

function rounds({ rounds, createdAt, totals }: ReportData): string {
  if (rounds.count === 0) return ''
  const providers = providersInWords(totals)
  const row = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  const rowOf = (each: ReportRound) =>
    row([
      numberOfRow(each),
      formatMoment(Date.parse(each.startedAt), Date.parse(createdAt)),
      formatDuration(each.durationMs),
      each.tokens === null ? '' : shortNumber(each.tokens),
      String(each.files),
      escapeMarkdown(outcomeOfRow(each, rounds)),
    ])
  const { leftOutSums } = rounds
  const gap = row([
    '…',
    '',
    formatDuration(leftOutSums.durationMs),
    shortNumber(leftOutSums.tokens),
    '',
    `${rounds.leftOut} rounds left out, ${leftOutSums.failed} of them failed`,
  ])
  const rows = rounds.entries.map(rowOf)
  if (rounds.leftOut > 0) rows.splice(rounds.leftOutAfter, 0, gap)
  return [
    row(['round', 'start', 'time', 'tokens', 'files', 'outcome']),
    '| ---: | --- | ---: | ---: | ---: | --- |',
    ...rows,
    ...(providers === null ? [] : ['', escapeMarkdown(providers)]),
  ].join('\n')
}

function troubleInWords({ from, to, cause }: ReportData['trouble']['entries'][number]): string {
  const start = Date.parse(from)
  const until =
    to === null || to === from
      ? ''
      : ` to ${formatMoment(Date.parse(to), start)} (${formatDuration(Date.parse(to) - start)})`
  return `${formatDayAndTime(start)}${until}: ${cause}`
}

/** A list with a note in the place of what was left out. */
function withGap<T>({ entries, leftOut, leftOutAfter }: Shortened<T>, lineOf: (entry: T) => string): string[] {
  const lines = entries.map(lineOf)
  if (leftOut > 0) lines.splice(leftOutAfter, 0, `… ${leftOut} left out …`)
  return lines
}

function section(title: string, body: string): string {
  return body === '' ? '' : `## ${title}\n\n${body}`
}

function bullets(lines: readonly string[]): string {
  return lines.map(line => `- ${line}`).join('\n')
}

function quoted(text: string): string {
  return text
    .split('\n')
    .map((line, at, lines) => quotedLine(escapeMarkdown(line), lines[at + 1]))
    .join('\n')
}

/** A line of a quotation, which ends there: two blanks keep what follows off it. */
function quotedLine(shown: string, next: string | undefined): string {
  if (shown === '') return '>'
  return next === undefined || next.trim() === '' ? `> ${shown}` : `> ${shown}  `
}

/** Lines as they are, in which what begins with `- ` is a list, and what stands between backticks is code. */
function quotedProse(text: string): string {
  return text
    .split('\n')
    .map((line, at, lines) => {
      const [mark, words] = line.startsWith('- ') ? ['- ', line.slice(2)] : ['', line]
      return quotedLine(`${mark}${withCode(words)}`.trim(), lines[at + 1])
    })
    .join('\n')
}

/** A line with its code as code spans. */
function withCode(line: string): string {
  const parts = codeIn(line).map(({ text, isCode }, at) => {
    if (isCode) return codeSpan(text)
    // The blanks beside a code span are those of the line.
    const [first = '', last = ''] = [at === 0 ? '' : /^\s*/.exec(text)?.[0], /\s*$/.exec(text)?.[0]]
    return text.trim() === '' ? text : `${first}${escapeMarkdown(text)}${last}`
  })
  return parts.join('')
}

/** What the template, or the contract, says of its own; empty if it says nothing. */
function ownSection(own: ReportSection | null): string {
  if (own === null) return ''
  const { title, note, text, table } = own
  const parts = [...(text === '' ? [] : [quotedProse(text)]), ...(table === undefined ? [] : [tableOf(table)])]
  if (parts.length === 0) return ''
  return section(escapeMarkdown(title), [...(note === null ? [] : [escapeMarkdown(note)]), ...parts].join('\n\n'))
}

function tableOf({ head, rows }: NonNullable<ReportSection['table']>): string {
  const line = (cells: readonly string[]) => `| ${cells.map(escapeMarkdown).join(' | ')} |`
  return [line(head), `|${' --- |'.repeat(head.length)}`, ...rows.map(line)].join('\n')
}

/** The template's own board as a table of Markdown; empty if it has none, or its section says it. */
function boardTable({ work: { board, section } }: ReportData): string {
  if (board === null || section?.tellsBoard === true || board.rows.length === 0) return ''
  const rows = board.rows.map(row => [row.id, row.text, row.who ?? '', rowInWords(row)].map(escapeMarkdown))
  const left = rowsLeftOut(board)
  const table = ['| id | what | who | status |', '| --- | --- | --- | --- |']
  return [...table, ...rows.map(cells => `| ${cells.join(' | ')} |`), ...(left === null ? [] : ['', `${left}.`])].join(
    '\n',
  )
}

/** The tasks of a build as a table of Markdown; empty if there are none. */
function taskTable(build: ReportBuild): string {
  if (build.tasks.length === 0) return ''
  const rows = build.tasks.map(task =>
    [task.id, task.name, task.phase ?? '', taskInWords(task)].map(escapeMarkdown).join(' | '),
  )
  const left = tasksLeftOut(build)
  const table = ['| id | task | phase | status |', '| --- | --- | --- | --- |', ...rows.map(row => `| ${row} |`)]
  return [...table, ...(left === null ? [] : ['', `${left}.`])].join('\n')
}

/** The agents of a build, likewise. */
function agentTable({ agents }: ReportBuild): string {
  if (agents.length === 0) return ''
  const rows = agents.map(each => {
    const cells = [escapeMarkdown(each.agent), instancesInWords(each), formatDuration(each.durationMs)]
    return `| ${[...cells, shortNumber(each.tokens)].join(' | ')} |`
  })
  return ['| agent | worked | time | tokens |', '| --- | --- | ---: | ---: |', ...rows].join('\n')
}

/** A text as it is shown in Markdown, on one line: nothing in it is a link, an image, a heading, HTML, or a table's edge. */
export function escapeMarkdown(text: string): string {
  return safeText(text)
    .trim()
    .replace(/\s*\n\s*/g, ' ')
    .replace(SPECIAL, '\\$&')
    .replace(/^(\d+)([.)])/, '$1\\$2')
}

// Also what begins a list, a heading's line or a table's at the beginning, and what would be made a link without asking.
const SPECIAL = /[\\`*[\]<>|~&$#@]|(?<![a-z0-9])_|_(?![a-z0-9])|:(?=\/\/)|(?<=\bwww)\.|^[-+=:]/gi

/** A code span. */
export function codeSpan(text: string): string {
  return inlineCode(safeText(text).replace(/\s*\n\s*/g, ' '))
}
