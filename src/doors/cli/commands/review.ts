import { UserError, unreachable } from '../../../base/errors.ts'
import type { RoundClass, RoundOutcome } from '../../../core/events/outcome.ts'
import type { ReviewAnswer } from '../../../core/rules/review.ts'
import { findSession } from '../../../project/find.ts'
import { openRun } from '../../../project/open-run.ts'
import {
  type Reviewed,
  type ReviewedWork,
  reviewThread,
  reviewWork,
  uncommittedWork,
  workOfSession,
} from '../../../project/proof/review.ts'
import { openRecords } from '../../../session/records/records.ts'
import { wordsForCause } from '../../../tell/words/names.ts'
import { formatCount } from '../../../tell/words/numbers.ts'
import { findingLines } from '../../../tell/words/proof.ts'
import { safeText } from '../../../tell/words/safe-text.ts'
import type { CliContext } from '../../screen/cli-context.ts'
import { plainView } from '../../screen/plain-view.ts'
import { type DirectoryFlags, directoryOf, readText } from '../flags.ts'
import { listenersOn, runOptionsOf } from '../run-options.ts'
import { warnOn } from '../warn-on.ts'

/** What a reviewer answered, as `codemachine review` prints it. */
function answerLines({ verdict, summary, findings }: ReviewAnswer): string[] {
  const count = formatCount(findings.length, 'finding')
  const agreed = findings.length === 0 ? 'The reviewer agrees.' : `The reviewer agrees, with ${count}.`
  return [
    verdict === 'agreed' ? agreed : `The reviewer does not agree: ${count}.`,
    ...(summary === '' ? [] : safeText(summary).split('\n')),
    ...findings.flatMap(finding => findingLines(finding, false)),
  ]
}

interface ReviewFlags extends DirectoryFlags {
  /** By which what is not committed is judged, in place of a session's. */
  goal?: string
  model?: string
  effort?: string
  codexBin?: string
  json?: true
}

/** What is shown of it. `problem`: why there is no answer, a sentence. */
interface Shown {
  answer: ReviewAnswer | null
  problem: string | null
  hint: string | null
}

/**
 * `codemachine review`: has the work of a session looked at by a reviewer, who can change nothing. While it looks, no
 * session runs here. 0 if the reviewer agrees, 4 if not, or if there is no answer.
 */
export async function review(context: CliContext, wanted: string | undefined, flags: ReviewFlags): Promise<number> {
  if (wanted !== undefined && flags.goal !== undefined) {
    throw new UserError(
      'CM0102',
      'Name a session, or use --goal to review uncommitted changes; these two cannot be combined.',
    )
  }
  const goal = flags.goal === undefined ? null : await readText(context, flags.goal)
  const session = goal === null ? await sessionToReview(context, wanted, flags) : null
  const { cd, codexBin } = flags
  const options = runOptionsOf({ ...(cd === undefined ? {} : { cd }), ...(codexBin === undefined ? {} : { codexBin }) })
  await using run = await openRun(context, { ...options, keepAwake: false }, listenersOn(context, flags))
  const work = session === null ? await uncommittedWork(run, goal ?? '') : await workOfSession(run, session)
  for (const remark of run.remarks.splice(0)) warnOn(context)(remark)
  const terms = {
    model: flags.model ?? run.settings.reviewer.model,
    effort: flags.effort ?? run.settings.reviewer.effort,
  }
  const thread = reviewThread(run.records.directory, terms, run.settings)
  const view = flags.json ? null : plainView(text => void context.stderr.write(text), { colour: false })
  const reviewed = await reviewWork(context, run, thread, work, view)
  const shown = shownOf(reviewed)
  const { answer, problem, hint } = shown
  if (flags.json) context.stdout.write(`${JSON.stringify(asJson({ ...reviewed, ...shown }, work, thread))}\n`)
  else if (answer !== null) context.stdout.write(`${answerLines(answer).join('\n')}\n`)
  if (answer === null && !flags.json) {
    throw new UserError('CM0706', problem ?? '', { exitCode: 4, ...(hint === null ? {} : { hint }) })
  }
  return answer?.verdict === 'agreed' ? 0 : 4
}

async function sessionToReview(context: CliContext, wanted: string | undefined, flags: ReviewFlags): Promise<string> {
  const records = await openRecords({ ...context, directory: directoryOf(context, flags) })
  if (wanted === undefined && (await records.sessions()).length === 0) {
    throw new UserError('CM0603', `No sessions in ${records.directory} yet.`, {
      hint: 'To review uncommitted changes: codemachine review --goal "…"',
    })
  }
  return await findSession(records, wanted ?? null, warnOn(context))
}

function shownOf(reviewed: Reviewed): Shown {
  switch (reviewed.kind) {
    case 'answered':
      return { answer: reviewed.answer, problem: null, hint: null }
    case 'failed':
      return { answer: null, ...whyNone(reviewed.outcome) }
    case 'unusable':
      return { answer: null, problem: reviewed.problem, hint: null }
    default:
      return unreachable(reviewed)
  }
}

function whyNone(outcome: RoundOutcome): { problem: string; hint: string | null } {
  return { problem: `The review gave no answer: ${wordsForCause(outcome)}.`, hint: HINTS[outcome.class] ?? null }
}

const HINTS: Partial<Record<RoundClass, string>> = {
  auth: 'Log in with codemachine login, and review again.',
  quota: 'Add credit, or use another account, and review again.',
  config: 'Fix the codex configuration (codemachine doctor checks it), and review again.',
  window: 'Review again after the usage limit resets.',
  crashed: 'codemachine doctor checks codex.',
}

function asJson(
  { answer, problem, durationMs, tokens }: Shown & Pick<Reviewed, 'durationMs' | 'tokens'>,
  { session, since, tree }: ReviewedWork,
  { model, effort }: ReturnType<typeof reviewThread>,
): object {
  const { verdict = null, summary = null, findings = [] } = answer ?? {}
  return { session, since, tree, model, effort, verdict, summary, findings, problem, durationMs, tokens }
}
