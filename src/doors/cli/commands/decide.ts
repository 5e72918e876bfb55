import { UserError } from '../../../base/errors.ts'
import type { OpenDecision } from '../../../core/rules/decision.ts'
import { isTaken } from '../../../core/shapes/reply.ts'
import { PLAN_DECISION } from '../../../core/state/plan.ts'
import { type SessionState, type SessionStatus, sessionStatusOf } from '../../../core/state/state.ts'
import { findSession, newestSessions } from '../../../project/find.ts'
import { openSecrets } from '../../../secrets/store.ts'
import { foldJournal, lockOfSession } from '../../../session/records/journal.ts'
import type { Records } from '../../../session/records/records.ts'
import { askWhoRuns } from '../../../session/records/run-lock.ts'
import { here, resumeCommand } from '../../../tell/words/commands.ts'
import { decisionLines, keptEdit } from '../../../tell/words/decision.ts'
import { oneLine } from '../../../tell/words/safe-text.ts'
import { decisionReport } from '../../../tell/words/status.ts'
import { plansOf } from '../../../tell/words/work.ts'
import type { CliContext } from '../../screen/cli-context.ts'
import { editOnTerminal, givesSecret, markdownOn, problemOfSecretAnswer } from '../decision-prompt.ts'
import { type LookFlags, readText } from '../flags.ts'
import { warnOn } from '../warn-on.ts'
import { openRunning } from './ask.ts'

const TITLE_CHARS = 200

/**
 * `codemachine decide`: without a choice what is asked, and the lines that answer it; with one, makes the decision in the
 * run that asks for it. A `UserError` if nobody runs there, or the run does not take it.
 * @param words `[session] <choice> ["text"]`; an id of a session begins with a digit, and that of a choice never does
 */
export async function decide(context: CliContext, words: readonly string[], flags: LookFlags): Promise<number> {
  const { stdout } = context
  const { project, inPlace } = await openRunning(context, flags)
  const { records } = project
  const say = warnOn(context)
  const [first = '', ...others] = words
  const isSession = /^\d/.test(first)
  const session = isSession ? await findSession(records, first, say) : null
  const [choice, ...said] = isSession ? others : words
  if (choice === undefined) return await showAsked(context, records, session, flags)
  await refuseSecretAnswer(context, records, { session, choice, said, directory: flags.cd ?? null })
  const text = said.length === 0 ? null : await readText(context, said.join(' '))
  const edited = await editFirst(context, records, { session, choice })
  const reply = await project.ask({
    type: 'decide',
    choice,
    ...(text === null ? {} : { text }),
    ...(session === null ? {} : { session }),
    ...versionOf(edited),
  })
  const about = (problem: UserError) => withEdited(problem, edited)
  if (reply === null) throw about(await nobodyAsks(records, session, flags))
  if (!isTaken(reply)) throw about(new UserError('CM0617', reply.message, { hint: 'The question: codemachine decide' }))
  stdout.write(flags.json ? `${JSON.stringify(reply)}\n` : `${inPlace(reply.message)}\n`)
  return 0
}

/**
 * Refuses what answers a decision about a secret and may have its value in it, and that the secret is given before it was
 * stored: `secret set` stores it, and answers.
 */
async function refuseSecretAnswer(
  context: CliContext,
  records: Records,
  answer: { session: string | null; choice: string; said: readonly string[]; directory: string | null },
): Promise<void> {
  const { choice, said, session, directory } = answer
  const decision = (await readAsked(context, records, session, () => {}))?.decision ?? null
  if (decision?.secret === undefined) return
  const { key } = decision.secret
  const toSet = `To give it: codemachine secret set ${key}${here(directory)}`
  const problem = problemOfSecretAnswer({ choice, ...(said.length > 0 ? { text: '' } : {}) }, decision)
  if (problem !== null) throw new UserError('CM0903', problem, { hint: toSet })
  if (!givesSecret({ choice }, decision)) return
  if ((await openSecrets(records.secrets).get(key)) !== null) return
  throw new UserError('CM0902', `The secret ${key} is not stored yet, so the session cannot get it.`, { hint: toSet })
}

/** What a session asks, as it stands in its journal. */
export interface Asked {
  state: SessionState
  standing: SessionStatus
  /** Null if it asks nothing now. */
  decision: OpenDecision | null
}

/** What a session asks, without one the newest; null if there is no such session, or none at all. */
export async function readAsked(
  { platform }: Pick<CliContext, 'platform'>,
  records: Records,
  session: string | null,
  say: (problem: string) => void,
): Promise<Asked | null> {
  // Before the journal: a session that ends while it is read must not look cut off.
  const id = session ?? (await newestSessions(records, 1))[0]
  if (id === undefined) return null
  const runner = await askWhoRuns(await lockOfSession(records, id), platform, say)
  const state = await foldJournal(records, id, 'ends')
  if (state === null) return null
  const standing = sessionStatusOf(state, runner)
  return { state, standing, decision: standing === 'running' ? state.decision : null }
}

async function showAsked(
  context: CliContext,
  records: Records,
  session: string | null,
  { cd, json }: LookFlags,
): Promise<number> {
  const { stdout, clock } = context
  const say = warnOn(context)
  const asked = await readAsked(context, records, session, say)
  if (json) {
    stdout.write(`${JSON.stringify(asked && asJson(asked))}\n`)
    return 0
  }
  const { decision, state, standing } = asked ?? { decision: null, state: null, standing: null }
  if (state !== null && decision !== null) {
    const about = decision.body.trim() === '' ? [] : await markdownOn(context, decision.body)
    const lines = decisionLines(state.id, decision, { now: clock.now(), directory: cd ?? null, about })
    stdout.write(`${lines.join('\n')}\n`)
  } else if (state !== null && state.decision !== null && standing !== 'unknown') {
    stdout.write(
      `Nobody runs ${state.id}, which asked: ${oneLine(state.decision.title, TITLE_CHARS)}\nIt asks again when you resume it: ${resumeCommand(state.id, cd ?? null)}\n`,
    )
  } else stdout.write('No decision is waiting here.\n')
  return 0
}

function asJson({ state, standing, decision }: Asked) {
  return { session: state.id, standing, decision: decision && decisionReport(decision) }
}

/** A file that a person has edited for an answer, and the version of the plan that it is; null: it is none. */
export interface EditedFirst {
  file: string
  version: number | null
}

/** The version that is answered with what was edited: by then another one may wait. */
export function versionOf(edited: EditedFirst | null): { version?: number } {
  return edited === null || edited.version === null ? {} : { version: edited.version }
}

/** Why an answer was not taken, with where that lies which was edited for it. */
export function withEdited({ code, message, hint, exitCode }: UserError, edited: EditedFirst | null): UserError {
  const said = edited === null ? message : `${message} ${keptEdit(edited.file)}`
  return new UserError(code, said, { ...(hint === null ? {} : { hint }), exitCode })
}

/** Lets the person edit the file that the choice opens, where they sit at a terminal; null: there was nothing to edit. */
export async function editFirst(
  context: CliContext,
  records: Records,
  { session, choice }: { session: string | null; choice: string },
): Promise<EditedFirst | null> {
  const { stdin, stdout } = context
  if (stdin.isTTY !== true || stdout.isTTY !== true) return null
  const asked = await readAsked(context, records, session, () => {})
  const { id, file, choices = [] } = asked?.decision ?? {}
  if (asked === null || file === undefined || !choices.some(each => each.id === choice && each.opensFile)) return null
  const problem = await editOnTerminal(context, records.directory, file)
  if (problem !== null) throw new UserError('CM0111', problem)
  return { file, version: id === PLAN_DECISION ? (plansOf(asked.state).at(-1)?.version ?? null) : null }
}

async function nobodyAsks(records: Records, session: string | null, { cd }: LookFlags): Promise<UserError> {
  const id = session ?? (await newestSessions(records, 1))[0]
  return new UserError('CM0613', `No codemachine runs in ${records.directory}, so there is nothing to decide.`, {
    hint: id === undefined ? 'All sessions: codemachine list' : `To resume a session: ${resumeCommand(id, cd ?? null)}`,
  })
}
