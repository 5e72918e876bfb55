import { mkdir, rm } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { findSession } from '../../app/find.ts'
import { openRun, type Run } from '../../app/project.ts'
import { type ReviewedWork, reviewThread, uncommittedWork, workOfSession } from '../../app/proof.ts'
import type { DirectoryFlags } from '../../app/run-flags.ts'
import type { CliContext } from '../../app/world.ts'
import { Interrupted, UserError } from '../../base/errors.ts'
import type { View } from '../../core/events/events.ts'
import type { RoundClass, RoundOutcome } from '../../core/events/outcome.ts'
import { type ReviewAnswer, readReview } from '../../core/rules/review.ts'
import { emptyState, roundTokens } from '../../core/state/state.ts'
import { pathInside } from '../../platform/files.ts'
import { openRecords } from '../../records/records.ts'
import { playReview } from '../../run/review.ts'
import { SessionLog } from '../../run/session-log.ts'
import { reviewInput } from '../../templates/round-input.ts'
import { oneLine, safeText } from '../../words/cells.ts'
import { wordsForCause } from '../../words/names.ts'
import { formatCount } from '../../words/numbers.ts'
import { findingLines } from '../../words/proof.ts'
import { readText } from '../flags.ts'
import { plainView } from '../output.ts'

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

export interface ReviewFlags extends DirectoryFlags {
  /** By which what is not committed is judged, in place of a session's. */
  goal?: string
  model?: string
  effort?: string
  codexBin?: string
  json?: true
}

/** What came of a review by itself. `problem`: why there is no answer, a sentence. */
interface Reviewed {
  answer: ReviewAnswer | null
  problem: string | null
  hint: string | null
  durationMs: number
  tokens: number | null
}

/**
 * `codemachine review`: has the work of a session looked at by a reviewer, who can change nothing. While it looks, no
 * session runs here. 0 if the reviewer agrees, 4 if not, or if there is no answer.
 */
export async function review(context: CliContext, wanted: string | null, flags: ReviewFlags): Promise<number> {
  if (wanted !== null && flags.goal !== undefined) {
    throw new UserError('Name a session, or say with --goal by what to judge what is not committed; not both.')
  }
  const goal = flags.goal === undefined ? null : await readText(context, flags.goal)
  const session = goal === null ? await sessionToReview(context, wanted, flags) : null
  await using run = await openRun(context, { ...runFlags(flags), keepAwake: false })
  const work = session === null ? await uncommittedWork(run, goal ?? '') : await workOfSession(run, session)
  for (const remark of run.remarks.splice(0)) context.stderr.write(`codemachine: ${oneLine(remark, 2_000)}\n`)
  const terms = {
    model: flags.model ?? run.settings.reviewer.model,
    effort: flags.effort ?? run.settings.reviewer.effort,
  }
  const thread = reviewThread(run.records.directory, terms, run.settings)
  const reviewed = await play(context, run, thread, work, flags.json ?? false)
  const { answer, problem, hint } = reviewed
  if (flags.json) context.stdout.write(`${JSON.stringify(asJson(reviewed, work, thread))}\n`)
  else if (answer !== null) context.stdout.write(`${answerLines(answer).join('\n')}\n`)
  if (answer === null && !flags.json) {
    throw new UserError(problem ?? '', { exitCode: 4, ...(hint === null ? {} : { hint }) })
  }
  return answer?.verdict === 'agreed' ? 0 : 4
}

async function sessionToReview(context: CliContext, wanted: string | null, flags: ReviewFlags): Promise<string> {
  const records = await openRecords({ ...context, directory: resolve(context.cwd, flags.cd ?? '.') })
  if (wanted === null && (await records.sessions()).length === 0) {
    throw new UserError(`There are no sessions in ${records.directory} yet.`, {
      hint: 'To review what is not committed: codemachine review --goal "…"',
    })
  }
  return await findSession(records, wanted, problem => context.stderr.write(`codemachine: ${problem}\n`))
}

function runFlags({ cd, codexBin, json }: ReviewFlags): Parameters<typeof openRun>[1] {
  return {
    ...(cd === undefined ? {} : { cd }),
    ...(codexBin === undefined ? {} : { codexBin }),
    ...(json === undefined ? {} : { json }),
  }
}

/** The session's own journal is left as it is: what happens here is shown on stderr, and not kept. */
async function play(
  context: CliContext,
  { engine, records, redactor, settings }: Run,
  thread: ReturnType<typeof reviewThread>,
  { session, matter }: ReviewedWork,
  isQuiet: boolean,
): Promise<Reviewed> {
  const { clock, signal, stderr } = context
  const isAnswer = (text: string) => !('problem' in readReview(text, path => pathInside(records.directory, path)))
  const shown = plainView(text => void stderr.write(text), { colour: false })
  const view: View = {
    ...shown,
    event(event, state) {
      // Which is printed in words.
      const answers =
        event.type === 'item-completed' && event.item.kind === 'agent-message' && isAnswer(event.item.text)
      if (!answers) shown.event(event, state)
    },
  }
  const journal = { append() {}, sync: async () => {}, [Symbol.asyncDispose]: async () => {} }
  const log = new SessionLog(emptyState(session ?? ''), journal, isQuiet ? [] : [view], clock, redactor)
  const roundsDirectory = join(records.folder, 'review')
  // What a review that was killed has left.
  await rm(roundsDirectory, { recursive: true, force: true })
  await mkdir(roundsDirectory, { mode: 0o700 })
  const startedAt = clock.monotonic()
  try {
    const { outcome, text } = await playReview(
      engine.prepare(thread),
      { round: 0, review: 1, input: reviewInput(matter) },
      {
        log,
        clock,
        roundsDirectory,
        redactLine: line => redactor.line(line),
        ending: signal,
        onEvent: event => log.emit(event),
        graceMs: settings.graceMinutes * 60_000,
        maxUsage: null,
        timeLeftMs: Number.POSITIVE_INFINITY,
      },
    )
    if (signal.aborted) throw new Interrupted(signal.reason)
    const durationMs = Math.round(clock.monotonic() - startedAt)
    const facts = { durationMs, tokens: roundTokens(log.state)?.total ?? null }
    if (outcome.class !== 'worked') return { ...facts, answer: null, ...whyNone(outcome) }
    const read = readReview(text, path => pathInside(records.directory, path))
    if ('problem' in read) return { ...facts, answer: null, problem: read.problem, hint: null }
    return { ...facts, answer: redactor.event(read), problem: null, hint: null }
  } finally {
    await rm(roundsDirectory, { recursive: true, force: true })
  }
}

function whyNone(outcome: RoundOutcome): { problem: string; hint: string | null } {
  return { problem: `The review gave no answer: ${wordsForCause(outcome)}.`, hint: HINTS[outcome.class] ?? null }
}

const HINTS: Partial<Record<RoundClass, string>> = {
  auth: 'Log in with `codemachine login`, and review again.',
  quota: 'Add credit, or use another account, and review again.',
  config: 'Mend the codex configuration (`codemachine doctor` looks at it), and review again.',
  window: 'Review again when it is renewed.',
  crashed: '`codemachine doctor` looks at codex.',
}

function asJson(
  { answer, problem, durationMs, tokens }: Reviewed,
  { session, since, tree }: ReviewedWork,
  { model, effort }: ReturnType<typeof reviewThread>,
): object {
  return {
    session,
    since,
    tree,
    model,
    effort,
    verdict: answer?.verdict ?? null,
    summary: answer?.summary ?? null,
    findings: answer?.findings ?? [],
    problem,
    durationMs,
    tokens,
  }
}
