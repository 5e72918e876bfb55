import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { Interrupted, UserError } from '../../base/errors.ts'
import { loadPrompt } from '../../base/package.ts'
import type { ThreadSpec } from '../../core/engine.ts'
import type { RoundOutcome } from '../../core/events/outcome.ts'
import { parseAnswer } from '../../core/rules/answer.ts'
import { globsLookedAt } from '../../core/rules/proof/gate-files.ts'
import { type Finding, REVIEW, type ReviewAnswer, type ReviewTerms, readReview } from '../../core/rules/review.ts'
import { withoutScope } from '../../core/state/scope.ts'
import type { View } from '../../core/state/state.ts'
import { emptyState, roundTokens, type SessionState } from '../../core/state/state.ts'
import { pathInside } from '../../platform/files.ts'
import { readAnswer } from '../../session/answers.ts'
import { playReview } from '../../session/proof/review.ts'
import { type ReviewMatter, reviewInput, reviewInstructions } from '../../session/proof/review-input.ts'
import { reviewerWithProvider } from '../../session/providers/round-providers.ts'
import { foldJournal } from '../../session/records/journal.ts'
import { SessionLog } from '../../session/session-log.ts'
import { followIgnoreRules } from '../../workspace/fingerprint/session-rules.ts'
import { treeOfCommit } from '../../workspace/git/commits.ts'
import { readHead, runGit } from '../../workspace/git/git.ts'
import { EMPTY_TREE } from '../../workspace/git/objects.ts'
import type { PrivateGit } from '../../workspace/git/private-git.ts'
import { protectedChanges } from '../../workspace/protected-files.ts'
import type { Run } from '../open-run.ts'
import type { Settings } from '../settings/schema.ts'
import type { World } from '../world.ts'

/** Result and cost of a separate review. `failed`: the reviewer could not work; `unusable`: its answer was unreadable. */
export type Reviewed = { durationMs: number; tokens: number | null } & (
  | { kind: 'answered'; answer: ReviewAnswer }
  | { kind: 'failed'; outcome: RoundOutcome }
  /** `problem`: a sentence. */
  | { kind: 'unusable'; problem: string }
)

/**
 * Asks a reviewer for a look at this work. The session's own journal is unchanged: events go only to `view`, except for the
 * answer. Throws `Interrupted` if the program must end.
 */
export async function reviewWork(
  { clock, signal }: Pick<World, 'clock' | 'signal'>,
  { engines, providers, records, redactor, settings }: Run,
  thread: ThreadSpec,
  { session, matter }: ReviewedWork,
  view: View | null,
): Promise<Reviewed> {
  const isAnswer = (text: string) => parseAnswer(text, REVIEW.schema).ok
  const shown: View | null = view && {
    ...view,
    event(event, state) {
      const answers =
        event.type === 'item-completed' && event.item.kind === 'agent-message' && isAnswer(event.item.text)
      if (!answers) view.event(event, state)
    },
  }
  const journal = { append() {}, sync: async () => {}, [Symbol.asyncDispose]: async () => {} }
  const log = new SessionLog(emptyState(session ?? ''), {
    journal,
    views: shown === null ? [] : [shown],
    templates: records.templates,
    clock,
    redactor,
  })
  const roundsDirectory = join(records.folder, 'review')
  // Leftovers of a killed review.
  await rm(roundsDirectory, { recursive: true, force: true })
  await mkdir(roundsDirectory, { mode: 0o700 })
  const startedAt = clock.monotonic()
  try {
    const { outcome, message } = await playReview(
      engines.prepare(reviewerWithProvider(thread, providers)),
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
        login: null,
        timeLeftMs: Number.POSITIVE_INFINITY,
      },
    )
    if (signal.aborted) throw new Interrupted(signal.reason)
    const durationMs = Math.round(clock.monotonic() - startedAt)
    const facts = { durationMs, tokens: roundTokens(log.state)?.total ?? null }
    if (outcome.class !== 'worked') return { ...facts, kind: 'failed', outcome }
    const parsed = await readAnswer(REVIEW, message, redactor)
    const read = parsed.ok ? readReview(parsed.value, path => pathInside(records.directory, path)) : parsed
    if (!read.ok)
      return { ...facts, kind: 'unusable', problem: `The reviewer gave no answer that can be used. ${read.problem}` }
    return { ...facts, kind: 'answered', answer: read.value }
  } finally {
    await rm(roundsDirectory, { recursive: true, force: true })
  }
}

/** Returns the thread of a reviewer for a work directory. Values that `terms` leaves open are those of the rounds. */
export function reviewThread(directory: string, terms: ReviewTerms | null, settings: ModelOfRounds): ThreadSpec {
  return {
    agent: 'reviewer',
    developerInstructions: reviewInstructions(loadPrompt('review'), directory),
    ...onEngine(terms?.engine, terms ?? { model: null, effort: null }, settings),
    readOnly: true,
  }
}

type ModelOfRounds = Pick<Settings, 'engine' | 'model' | 'effort'>

/** Returns what a thread outside of the rounds runs on: as the rounds, but another engine gets no model of theirs. */
export function onEngine(
  engine: string | null | undefined,
  own: Pick<ModelOfRounds, 'model' | 'effort'>,
  rounds: ModelOfRounds,
): Pick<ThreadSpec, 'engine' | 'model' | 'effort'> {
  const usual = engine == null || engine === rounds.engine ? rounds : { model: null, effort: null }
  return {
    ...(engine == null ? {} : { engine }),
    model: own.model ?? usual.model,
    effort: own.effort ?? usual.effort,
  }
}

/** Work for a separate review. */
export interface ReviewedWork {
  /** Null: uncommitted changes. */
  session: string | null
  /** Fingerprints of its start, and of the files now. */
  since: string
  tree: string
  matter: ReviewMatter
}

/** Enough for everything that a reviewer sees, and the names of the rest. */
const MOST_BYTES = 8 * 1024 * 1024

/** Returns the work of a session: all changes since it began, by anyone. */
export async function workOfSession(run: Run, id: string): Promise<ReviewedWork> {
  const folded = await foldJournal(run.records, id)
  const state = folded && withoutScope(folded)
  const since = state?.savepoint?.start ?? null
  if (state === null || since === null) {
    throw new UserError('CM0705', `${id} has no savepoint from its start, so codemachine does not know its changes.`, {
      hint: 'To review uncommitted changes: codemachine review --goal "…"',
    })
  }
  const { fingerprints } = run
  if (!(await fingerprints.mending(git => runGit(git.setting, ['cat-file', '-e', `${since}^{tree}`]))).ok) {
    throw new UserError(
      'CM0705',
      `The savepoint from the start of ${id} was deleted, so codemachine does not know its changes.`,
    )
  }
  // Files that counted in the session count now, even if git ignores them and no later session protects them.
  fingerprints.protect(globsLookedAt(state.gates, state.kind?.addsGates))
  await followIgnoreRules(fingerprints, run.records.ignoreRules(id))
  const { tree, diff, files } = await fingerprints.mending(async () => {
    const tree = await fingerprints.take()
    const [diff, { files }] = await Promise.all([
      run.savepoints.diff(since, tree, { mostBytes: MOST_BYTES }),
      protectedChanges({ gates: state.gates, before: since, after: tree, git: fingerprints.git }),
    ])
    return { tree, diff, files }
  })
  const gates = resultsOf(state).filter(result => result.tree === tree)
  const matter = {
    goal: state.goal,
    said: state.personSaid,
    gates,
    protectedFiles: files,
    configuration: state.gateConfiguration?.files ?? [],
    earlier: openFindings(state),
  }
  return { session: id, since, tree, matter: { ...matter, diff: diff.text, isCut: diff.isCut } }
}

/** Returns the uncommitted changes; without a repository or a commit, everything. */
export async function uncommittedWork(run: Run, goal: string): Promise<ReviewedWork> {
  const { git } = run.fingerprints
  const since = await treeOfHead(run, git)
  const tree = await run.fingerprints.take()
  if (since === tree) {
    const why = run.repository === null ? 'there is no file' : 'no file differs from the last commit'
    throw new UserError('CM0705', `There is nothing to review: ${why}.`)
  }
  const { text, isCut } = await run.savepoints.diff(since, tree, { mostBytes: MOST_BYTES })
  const matter = { goal, gates: [], protectedFiles: [], earlier: [], diff: text, isCut }
  return { session: null, since, tree, matter }
}

async function treeOfHead({ repository }: Run, git: PrivateGit): Promise<string> {
  const commit = repository === null ? null : (await readHead(repository)).commit
  const held = commit === null ? null : await treeOfCommit(git, commit)
  return held ?? EMPTY_TREE[git.objectFormat]
}

function resultsOf({ claim }: SessionState): ReviewMatter['gates'] {
  return claim.state === 'nominated' || claim.state === 'accepted' ? claim.results : []
}

function openFindings({ reviews }: SessionState): readonly Finding[] {
  return reviews.last?.verdict === 'findings' ? reviews.last.findings : []
}
