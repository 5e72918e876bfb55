import { UserError } from '../../../base/errors.ts'
import { isFinished } from '../../../core/events/outcome.ts'
import {
  type ListedTeam,
  listTeams,
  type RemovableTeam,
  type ShownTeam,
  showTeam,
} from '../../../modes/team/start/projects.ts'
import { realWorkDirectory } from '../../../platform/files.ts'
import { shellWord } from '../../../platform/shell-word.ts'
import { here, networkFlag } from '../../../tell/words/commands.ts'
import { formatDayAndTime, formatDuration } from '../../../tell/words/numbers.ts'
import { describeOutcome } from '../../../tell/words/outcome.ts'
import { oneLine, titleLine } from '../../../tell/words/safe-text.ts'
import { standingInWords } from '../../../tell/words/status.ts'
import type { CliContext } from '../../screen/cli-context.ts'
import { directoryOf, type LookFlags, printDone } from '../flags.ts'
import { askEach, inColumns } from '../output.ts'

const GOAL_CHARS = 80
const LINE_CHARS = 200

/** `codemachine team list`: the projects of a workspace, the newest last. */
export async function teamList(context: CliContext, flags: LookFlags): Promise<number> {
  const workspace = await realWorkDirectory(directoryOf(context, flags))
  const teams = await listTeams(context, workspace)
  const write = (text: string) => void context.stdout.write(text)
  if (flags.json) write(`${JSON.stringify(teams)}\n`)
  else if (teams.length === 0)
    write(`There are no projects in ${oneLine(workspace, 500)} yet. Start one with: codemachine team "…"\n`)
  else {
    const rows = inColumns(teams.map(rowOf))
    write(teams.map((team, at) => [rows[at] ?? '', ...belowRow(team), ''].join('\n')).join(''))
  }
  return 0
}

function rowOf(team: ListedTeam): string[] {
  const { name, createdAt, steps, goal } = team
  const none = team.outcome !== null && isFinished(team.outcome) ? '' : 'no steps yet'
  const done = steps.all === 0 ? none : `${steps.done} of ${steps.all} steps`
  return [name, formatDayAndTime(Date.parse(createdAt)), standingInWords(team), done, titleLine(goal, GOAL_CHARS)]
}

/** The first way to test it, and what it waits for. */
function belowRow(team: ListedTeam): string[] {
  const { howToTest, missing, directory, outcome } = team
  const [test] = howToTest
  return [
    ...(test === undefined ? [] : [`    to test it: ${lineOfTest(test)}`]),
    ...missing.map(key => `    it needs: codemachine secret set ${key}${here(directory)}`),
    ...(canGoOn(team) ? [`    to continue: codemachine resume${networkFlag(outcome)}${here(directory)}`] : []),
  ]
}

/** Whether it ended before it was done, and nothing is known that has to be given first. */
function canGoOn({ outcome, standing, missing }: ListedTeam): boolean {
  return standing !== 'running' && missing.length === 0 && (outcome === null || !isFinished(outcome))
}

function lineOfTest({ command, ran, why }: ListedTeam['howToTest'][number]): string {
  const line = oneLine(command, LINE_CHARS)
  if (ran === null) return why === null ? line : `${line} (not run here: ${oneLine(why, LINE_CHARS)})`
  const how = ran.exitCode === null ? ran.status : `exit ${ran.exitCode}`
  return `${line} (ran here: ${how}, ${formatDuration(ran.durationMs)})`
}

const MARKS: Readonly<Record<string, string>> = { done: '✓', failed: '✗', skipped: '–', running: '▸', checking: '▸' }

/** `codemachine team show`: one project, with all that came of it. */
export async function teamShow(context: CliContext, named: string, flags: LookFlags): Promise<number> {
  const workspace = await realWorkDirectory(directoryOf(context, flags))
  const team = await showTeam(context, workspace, named)
  context.stdout.write(flags.json ? `${JSON.stringify(team)}\n` : `${linesOf(team).join('\n')}\n`)
  return 0
}

function linesOf(team: ShownTeam): string[] {
  const { name, directory, goal, steps, standing, review, howToTest, missing, secrets, runs, outcome } = team
  const { text, hint } = outcome === null ? { text: standingInWords(team), hint: null } : describeOutcome(outcome)
  const issues = review?.issues ?? []
  return [
    `${name}: ${titleLine(goal, LINE_CHARS)}`,
    `  ${directory}`,
    `  ${oneLine(text, LINE_CHARS)}`,
    ...(hint === null ? [] : [`  ${oneLine(hint, 2 * LINE_CHARS)}`]),
    ...titled(
      'Steps',
      steps.map(step => lineOfStep(step, standing)),
    ),
    ...titled(
      'Issues',
      issues.map(({ severity, type, description }) => oneLine(`${severity}, ${type}: ${description}`, LINE_CHARS)),
    ),
    ...titled(
      'To test it',
      howToTest.map(test => `${oneLine(test.for, LINE_CHARS)}: ${lineOfTest(test)}`),
    ),
    ...titled(
      'Missing',
      missing.map(key => `codemachine secret set ${key}${here(directory)}`),
    ),
    ...titled('Secrets', secrets),
    ...titled(
      'Runs',
      runs.map(run =>
        [
          `${run.session}  ${formatDayAndTime(Date.parse(run.createdAt))}  ${run.mode}  ${standingInWords(run)}`,
          ...(run.file === null ? [] : [run.file]),
        ].join('  '),
      ),
    ),
  ]
}

const STATUS: Readonly<Record<string, string>> = {
  'to-do': 'to do',
  running: 'at work',
  checking: 'being checked',
  'needs-secret': 'needs a secret',
  'broken-off': 'broken off',
}

function lineOfStep(
  { id, description, status: kept, missing }: ShownTeam['steps'][number],
  standing: ShownTeam['standing'],
): string {
  const isOver = standing === 'ended' || standing === 'cut-off'
  const status = isOver && (kept === 'running' || kept === 'checking') ? 'broken-off' : kept
  const line = `${MARKS[status] ?? '·'} ${id} ${oneLine(description, LINE_CHARS)}`
  if (status === 'done') return line
  const why = missing === null ? '' : `: ${oneLine(missing, LINE_CHARS)}`
  return `${line} (${STATUS[status] ?? status}${why})`
}

function titled(title: string, lines: readonly string[]): string[] {
  return lines.length === 0 ? [] : ['', title, ...lines.map(line => `  ${line}`)]
}

/** `codemachine team rm`: removes a project, its records and its secrets, each asked for; nothing that is not said yes to. */
export async function teamRemove(
  context: CliContext,
  named: string,
  { yes, ...flags }: LookFlags & { yes?: true },
): Promise<number> {
  const { stdin, stdout, stderr } = context
  const workspace = await realWorkDirectory(directoryOf(context, flags))
  const { removableTeam } = await import('../../../modes/team/start/projects.ts')
  const team = await removableTeam(context, workspace, named)
  if (!yes && (flags.json || !(stdin.isTTY && stdout.isTTY)))
    throw new UserError(
      'CM0105',
      'Without a terminal, or with --json, codemachine cannot ask you; --yes removes the project, its records and its secrets.',
    )
  const questions = questionsAbout(team)
  const texts = questions.map(({ question }) => question)
  const answers = yes ? texts.map(() => true) : await askEach(context, texts, false)
  const gone = questions.flatMap(({ part }, at) => (answers[at] ? [part] : []))
  const parts = {
    project: gone.includes('project'),
    records: gone.includes('records'),
    secrets: gone.includes('secrets'),
  }
  await team.remove(parts)
  printDone(context, flags, gone.length === 0 ? 'Nothing is removed.' : `Removed: ${gone.join(', ')}.`, {
    removed: gone,
  })
  if (team.isThere && team.project === null)
    stderr.write(
      'codemachine: The directory stays, with .codemachine and PROJECT_INFO.json, because no team created it.\n',
    )
  const isGone = parts.project || !team.isThere
  const isKept = !parts.records || (team.secrets !== null && !parts.secrets)
  if (isGone && isKept)
    stderr.write(`codemachine: To remove the rest later: codemachine team rm ${shellWord(team.directory)}\n`)
  return 0
}

type Part = 'project' | 'records' | 'secrets'

function questionsAbout({ project, secrets }: RemovableTeam): { part: Part; question: string }[] {
  const all: { part: Part; question: string | null }[] = [
    { part: 'project', question: project && `Remove the project ${project} and everything in it?` },
    { part: 'records', question: 'Remove its records: sessions, savepoints, reports?' },
    { part: 'secrets', question: secrets && `Remove its secrets (${secrets.join(', ')})?` },
  ]
  return all.flatMap(({ part, question }) => (question === null ? [] : [{ part, question }]))
}
