import { inlineCode } from '../../base/markdown.ts'
import { clipEnd, truncate } from '../../base/text.ts'
import type { ReportSection } from '../../core/view.ts'
import { type MissingSecret, WORDS_FOR_STATUS, waysToTest, whatIsMissing } from './project-info.ts'
import { type StepWork, type TeamReview, type TeamWork, uncheckedSteps } from './work.ts'

/** Most characters of a text in the report, and most list entries. */
const MOST_TEXT = 400
const MOST_GOAL = 1_000
const MOST_CODE = 1_000
const MOST_LINE = 300
const MOST_LISTED = 20
const MOST_FILES = 4
/** Most characters of each list: all must fit into the section. */
const MOST_OF = { missing: 4_500, tests: 3_000, issues: 4_000, suggestions: 1_500 }
const SEVERITIES = ['high', 'medium', 'low'] as const

/**
 * Returns a team's section of the report: the project's place, missing things, and the steps that follow. Then tests,
 * commands, review findings, and each step's result. Pure.
 */
export function teamReport(own: TeamWork, directory: string): ReportSection {
  const { plan, steps, review } = own
  const parts = [
    `Where it is: ${code(directory)}`,
    ...(plan === null
      ? []
      : [`The goal, as the planner understood it: ${plain(clipEnd(plan.goal, MOST_GOAL), MOST_GOAL)}`]),
    listed('What is missing', missingLines(own, directory), MOST_OF.missing),
    listed('How to test it', testLines(own, directory), MOST_OF.tests),
    ...uncheckedLine(own),
    ...(review === null
      ? []
      : [
          `The review: ${plain(review.overall_assessment, MOST_GOAL)}`,
          issueLines(review).length === 0 ? 'It found no issue.' : listed('Issues', issueLines(review), MOST_OF.issues),
          listed(
            'Suggestions',
            review.suggestions.map(each => plain(each, MOST_TEXT)),
            MOST_OF.suggestions,
          ),
        ]),
  ]
  return {
    title: 'The project',
    note: 'codemachine itself ran the commands or saw them run. Results of steps and the review are claims of models. PROJECT_INFO.json in the project has the same data for programs.',
    text: parts.filter(part => part !== '').join('\n\n'),
    ...(steps.length === 0
      ? {}
      : {
          table: {
            head: ['step', 'what', 'state', 'result'],
            rows: steps.map(stepRow),
          },
          tellsBoard: true as const,
        }),
  }
}

/** Returns a list of lines up to this many characters, and the number of others; empty if there are none. */
function listed(heading: string, lines: readonly string[], most: number): string {
  if (lines.length === 0) return ''
  let room = most
  const shown = lines.slice(0, MOST_LISTED).filter(line => {
    room -= line.length
    return room >= 0
  })
  const more = lines.length > shown.length ? [`- and ${lines.length - shown.length} more`] : []
  return [`${heading}:`, ...shown.map(line => `- ${line}`), ...more].join('\n')
}

function missingLines(own: TeamWork, directory: string): string[] {
  const { secrets, network } = whatIsMissing(own, directory)
  return [
    ...secrets.map(secret => secretLine(secret, own)),
    ...(network === null
      ? []
      : [
          `The network: ${stepsOf(network.steps)} ${network.steps.length === 1 ? 'needs' : 'need'} it, but commands have none. To continue with it: ${code(network.command)}`,
        ]),
  ]
}

/** Describes the steps without a secret, and what happens once it is stored. */
function secretLine(
  { key, question, reason, problem, steps, after, command }: MissingSecret,
  { options }: TeamWork,
): string {
  const later = after.length === 0 ? '' : `, then ${stepsOf(after)}`
  const rest = options.mode === 'work' ? '' : '; then it tests and reviews the project'
  return [
    `The secret ${code(key)}, for ${stepsOf(steps)}: ${plain(question, MOST_TEXT)}`,
    ...(reason === null ? [] : [`The stored value does not work: ${plain(reason, MOST_TEXT)}`]),
    ...(problem === null ? [] : [`The value that was given does not work: ${plain(problem, MOST_TEXT)}`]),
    `With it, the team works on ${stepsOf(steps)}${later}${rest}. To give it: ${code(command)}`,
  ].join(' ')
}

/** `step 2`, `steps 2, 3`. */
export function stepsOf(ids: readonly number[]): string {
  return `${ids.length === 1 ? 'step' : 'steps'} ${ids.join(', ')}`
}

function testLines(own: TeamWork, directory: string): string[] {
  return waysToTest(own, directory).map(({ for: purpose, command, ran }) => {
    const what = purpose === '' ? '' : `${plain(purpose, MOST_LINE)}: `
    return `${what}${code(command)} (${plain(ran, MOST_LINE)})`
  })
}

/** Names the steps that only their worker's word calls done. */
function uncheckedLine(own: TeamWork): string[] {
  const ids = uncheckedSteps(own).map(({ id }) => id)
  if (ids.length === 0) return []
  const which = `${stepsOf(ids.slice(0, MOST_LISTED))}${ids.length > MOST_LISTED ? ', …' : ''}`
  const why = `${ids.length === 1 ? 'Its worker named no command that checks it' : 'Their workers named no command that checks them'}.`
  return [`Not checked: ${which}. ${why}`]
}

function issueLines({ issues }: TeamReview): string[] {
  return SEVERITIES.flatMap(severity =>
    issues
      .filter(each => each.severity === severity)
      .map(({ type, description }) => `${severity}, ${plain(type, 60)}: ${plain(description, MOST_TEXT)}`),
  )
}

function stepRow(step: StepWork): string[] {
  const { id, description, status, kind, thoughts, missing, waitsFor } = step
  const key = status === 'needs-secret' && waitsFor !== null ? `: ${waitsFor.key}` : ''
  const came = (status === 'done' ? thoughts : (missing ?? thoughts)) ?? ''
  const facts = factsOf(step)
  const isUnchecked = status === 'done' && step.checks.length === 0
  return [
    String(id),
    `${kind === 'repair' ? 'repair: ' : ''}${plain(description, MOST_LINE)}`,
    `${WORDS_FOR_STATUS[status]}${isUnchecked ? ', not checked' : key}`,
    `${plain(came, MOST_LINE - facts.length)} ${facts}`.trim(),
  ]
}

/** Returns `(3 commands; app.py, start.sh)`; empty if there is nothing to say. */
function factsOf({ commands, files }: StepWork): string {
  const shown = files.slice(0, MOST_FILES).map(path => plain(path, 40))
  const list = [...shown, ...(files.length > shown.length ? [`and ${files.length - shown.length} more`] : [])].join(
    ', ',
  )
  const facts = [
    ...(commands === 0 ? [] : [`${commands} ${commands === 1 ? 'command' : 'commands'}`]),
    ...(list === '' ? [] : [list]),
  ]
  return facts.length === 0 ? '' : `(${facts.join('; ')})`
}

/** Returns a foreign text on one line in which no backtick begins code. */
function plain(text: string, most: number): string {
  return truncate(text.trim().replace(/\s+/g, ' ').replaceAll('`', "'"), most)
}

function code(text: string): string {
  return inlineCode(truncate(text.replace(/\s+/g, ' '), MOST_CODE))
}

/** Most characters for programs: of a text, of all steps' texts and files, and of a review's texts. */
const MOST_DATA_TEXT = 2_000
const MOST_DATA_STEPS = 200_000
const MOST_DATA_REVIEW = 100_000

/** Returns a team's own fields of `work` in `status --json`. Pure. */
export function teamData(own: TeamWork, directory: string): Record<string, unknown> {
  const { options, plan, steps, secrets, review, repairs } = own
  // A step has three texts, its files, and the three texts of its secret.
  const share = Math.min(MOST_DATA_TEXT, Math.floor(MOST_DATA_STEPS / Math.max(1, steps.length) / 7))
  const text = (each: string | null) => (each === null ? null : clipEnd(each, share))
  const missing = whatIsMissing(own, directory)
  return {
    mode: options.mode,
    stepwise: options.stepwise,
    project: directory,
    workspace: options.workspace,
    planGoal: text(plan?.goal ?? null),
    steps: steps.map(step => ({
      id: step.id,
      description: text(step.description),
      kind: step.kind,
      status: step.status,
      needs: step.needs,
      network: step.network,
      tries: step.tries,
      secret: step.status === 'needs-secret' ? (step.waitsFor?.key ?? null) : null,
      thoughts: text(step.thoughts),
      missing: text(step.missing),
      checks: step.checks.length,
      commands: step.commands,
      files: pathsWithin(step.files, share),
    })),
    secrets: secrets.map(({ key, ok }) => ({ key, ok })),
    missing: {
      ...missing,
      secrets: missing.secrets.map(each => ({
        ...each,
        question: text(each.question),
        reason: text(each.reason),
        problem: text(each.problem),
      })),
    },
    howToTest: waysToTest(own, directory),
    review: review === null ? null : shortReview(review),
    repairs,
  }
}

/** Returns as many paths as fit into this many characters. */
function pathsWithin(paths: readonly string[], most: number): string[] {
  let room = most
  return paths.filter(path => {
    room -= path.length
    return room >= 0
  })
}

function shortReview({ overall_assessment, issues, suggestions }: TeamReview): TeamReview {
  const most = Math.floor(MOST_DATA_REVIEW / (1 + issues.length + suggestions.length))
  const text = (each: string) => clipEnd(each, most)
  return {
    overall_assessment: text(overall_assessment),
    issues: issues.map(issue => ({ ...issue, description: text(issue.description) })),
    suggestions: suggestions.map(text),
  }
}
