import { UserError } from '../../../base/errors.ts'
import { isTaken } from '../../../core/shapes/reply.ts'
import { PLAN_CHOICES, PLAN_DECISION } from '../../../core/state/plan.ts'
import type { SessionState } from '../../../core/state/state.ts'
import type { ShownPlan } from '../../../core/view.ts'
import { findSession, newestSessions, readableState } from '../../../project/find.ts'
import type { Records } from '../../../session/records/records.ts'
import { here, resumeCommand } from '../../../tell/words/commands.ts'
import { decisionLines } from '../../../tell/words/decision.ts'
import { wordsForVersion } from '../../../tell/words/plan.ts'
import { oneLine, safeText } from '../../../tell/words/safe-text.ts'
import { plansOf } from '../../../tell/words/work.ts'
import type { CliContext } from '../../screen/cli-context.ts'
import { openRunning } from '../commands/ask.ts'
import { type Asked, editFirst, readAsked, versionOf as versionEdited, withEdited } from '../commands/decide.ts'
import { diffOn, markdownOn } from '../decision-prompt.ts'
import { type LookFlags, readText } from '../flags.ts'
import { warnOn } from '../warn-on.ts'

/** What may be said of `codemachine plan`. */
export interface PlanFlags extends LookFlags {
  /** Of `show`: the version, as typed. Of `accept` and `reject`: the one that is meant. */
  version?: string
  /** Of `show`: what has changed in it, and not all of it. */
  diff?: true
}

const EDIT = 'edit'
const ACTIONS = ['show', 'accept', 'reject', EDIT] as const
type Action = (typeof ACTIONS)[number]

const SESSION = /^\d/
const WHOLE_SESSION = /^\d{8}_\d+$/
const WORD_CHARS = 80
/** How many sessions are looked through for one that has a plan. */
const MOST_LOOKED_AT = 20

/**
 * `codemachine plan`: shows the versions of a session's plan, which are read from its records, and answers the session
 * that waits with one of them, as `codemachine decide` does. A `UserError` if there is none, or none waits.
 * @param words `[session] [action] [text …]`, or `action [session]`; an id of a session begins with a digit
 */
export async function plan(context: CliContext, words: readonly string[], flags: PlanFlags): Promise<number> {
  const { action, wanted, said } = readWords(words)
  refuseFlags(action, flags)
  const version = action === 'show' || flags.version === undefined ? null : versionIn(flags.version)
  const { project, inPlace } = await openRunning(context, flags)
  const { records } = project
  const session = wanted === null ? null : await findSession(records, wanted, warnOn(context))
  if (action === 'show') return await show(context, records, session, flags)
  const text = said === null ? null : await readText(context, said)
  if (action === 'reject' && text === null)
    throw new UserError('CM0104', 'Say what to change: codemachine plan reject "what to change"')
  const edited = action === EDIT ? await editFirst(context, records, { session, choice: EDIT }) : null
  const reply = await project.ask({
    type: 'decide',
    decision: PLAN_DECISION,
    choice: action === 'accept' ? PLAN_CHOICES.accept : action === 'reject' ? PLAN_CHOICES.change : EDIT,
    ...(text === null ? {} : { text }),
    ...(session === null ? {} : { session }),
    ...(version === null ? versionEdited(edited) : { version }),
  })
  const about = (problem: UserError) => withEdited(problem, edited)
  if (reply === null) throw about(await nobodyWaits(context, records, session, flags))
  if (reply.code === 'not-asked') throw about(await notWaiting(context, records, session, reply.message))
  if (!isTaken(reply))
    throw about(new UserError('CM0617', reply.message, { hint: `The waiting plan: codemachine plan${at(flags)}` }))
  context.stdout.write(flags.json ? `${JSON.stringify(reply)}\n` : `${inPlace(reply.message)}\n`)
  return 0
}

function readWords(words: readonly string[]): { action: Action; wanted: string | null; said: string | null } {
  const [first = ''] = words
  const isFirst = SESSION.test(first)
  const [typed = 'show', ...rest] = isFirst ? words.slice(1) : words
  const action = ACTIONS.find(each => each === typed)
  if (action === undefined) {
    const shown = oneLine(typed, WORD_CHARS)
    throw new UserError('CM0101', `"plan ${shown}" is not a command; after plan, use one of ${ACTIONS.join(', ')}.`)
  }
  const takesText = action === 'accept' || action === 'reject'
  const [next = ''] = rest
  const isNext = !isFirst && (takesText ? WHOLE_SESSION : SESSION).test(next)
  const said = isNext ? rest.slice(1) : rest
  if (!takesText && said.length > 0) {
    throw new UserError('CM0102', `"plan ${action}" takes no text: "${oneLine(said.join(' '), WORD_CHARS)}".`, {
      hint: action === EDIT ? 'To say what to change: codemachine plan reject "…"' : 'A version: --version <n>',
    })
  }
  return {
    action,
    wanted: isFirst ? first : isNext ? next : null,
    said: said.length === 0 ? null : said.join(' '),
  }
}

function refuseFlags(action: Action, { version, diff }: PlanFlags): void {
  if (diff && action !== 'show') throw new UserError('CM0102', '--diff works only with: codemachine plan show')
  if (version !== undefined && action === EDIT)
    throw new UserError('CM0102', '--version works only with: codemachine plan show, accept, reject')
}

/** The number of a version as it was typed, such as `2` or `v2`. A `UserError` if it is none. */
function versionIn(typed: string): number {
  const [, digits] = /^v?(\d{1,9})$/.exec(typed.trim()) ?? []
  if (digits === undefined)
    throw new UserError('CM0103', `--version takes the number of a version, not "${oneLine(typed, WORD_CHARS)}".`)
  return Number(digits)
}

async function show(context: CliContext, records: Records, session: string | null, flags: PlanFlags): Promise<number> {
  const { stdout, clock } = context
  const asked = await withPlan(context, records, session)
  const { state, standing, decision } = asked
  const waits = decision?.id === PLAN_DECISION ? decision : null
  const plans = plansOf(state)
  const shown = plans.length === 0 ? null : versionOf(plans, flags, state.id)
  if (flags.diff && shown !== null && shown.diff === null) {
    throw new UserError(
      'CM0616',
      `Version ${shown.version} is the first plan of ${state.id}, so codemachine cannot compare it with an earlier one.`,
    )
  }
  if (flags.json) {
    const versions = plans.map(({ text: _, diff: __, ...facts }) => facts)
    const json = { session: state.id, standing, waits: waits !== null, versions, plan: shown }
    stdout.write(`${JSON.stringify(json)}\n`)
    return 0
  }
  if (shown === null) {
    // A template that asks about a plan which it shows in files.
    const about = waits === null ? [] : await markdownOn(context, waits.body)
    const now = { now: clock.now(), directory: flags.cd ?? null, about }
    stdout.write(`${(waits === null ? [] : decisionLines(state.id, waits, now)).join('\n')}\n`)
    return 0
  }
  const isLast = shown === plans.at(-1)
  const heading = headingOf(state.id, shown, { last: plans.at(-1)?.version ?? 0, waits: waits !== null && isLast })
  // What is asked says beside the plan what proves it, and why a file that was edited is no plan.
  const text = waits !== null && isLast && flags.version === undefined && waits.body !== '' ? waits.body : shown.text
  const lines = flags.diff ? await diffOn(context, shown.diff ?? '') : await markdownOn(context, text)
  const how = waits === null || !isLast ? [] : ['', ...howToAnswer(waits, shown.version, flags)]
  stdout.write(`${[heading, '', ...lines, ...how].join('\n')}\n`)
  return 0
}

/** `20261123_1: plan version 2 of 2, by the planner; waits for you`, and below it why there was another version. */
function headingOf(id: string, plan: ShownPlan, { last, waits }: { last: number; waits: boolean }): string {
  const { version, feedback } = plan
  const why = feedback === null ? '' : `\nasked for: ${safeText(feedback)}`
  return `${id}: plan version ${version} of ${last}, ${wordsForVersion(plan, waits)}${why}`
}

function howToAnswer(
  { choices }: NonNullable<Asked['decision']>,
  version: ShownPlan['version'],
  flags: PlanFlags,
): string[] {
  const has = (id: string) => choices.some(choice => choice.id === id)
  const remark = choices.find(({ id }) => id === PLAN_CHOICES.accept)?.text === undefined ? '' : ' ["remark"]'
  // Another version may wait by the time that it is typed.
  const meant = ` --version ${version}`
  const own = new Set<string>([PLAN_CHOICES.accept, PLAN_CHOICES.change, EDIT])
  return [
    'To answer:',
    ...(has(PLAN_CHOICES.accept) ? [`  codemachine plan accept${meant}${remark}${at(flags)}`] : []),
    ...(has(PLAN_CHOICES.change) ? [`  codemachine plan reject${meant} "what to change"${at(flags)}`] : []),
    ...(has(EDIT) ? [`  codemachine plan edit${at(flags)}`] : []),
    ...choices.filter(({ id }) => !own.has(id)).map(({ id }) => `  codemachine decide ${id}${at(flags)}`),
  ]
}

function versionOf(plans: readonly ShownPlan[], { version }: PlanFlags, id: string): ShownPlan {
  const last = plans.at(-1)
  const wanted = version === undefined ? last?.version : versionIn(version)
  const found = plans.find(each => each.version === wanted)
  if (found !== undefined) return found
  const [from, to] = [plans[0]?.version, last?.version]
  const there = from === to ? `there is only version ${to}` : `there are ${from} to ${to}`
  throw new UserError('CM0616', `${id} has no version ${wanted} of its plan; ${there}.`)
}

/** The session that is named, or the newest that has a plan. A `UserError` if there is none. */
async function withPlan(context: CliContext, records: Records, session: string | null): Promise<Asked> {
  const ids = session === null ? (await newestSessions(records, MOST_LOOKED_AT)).reverse() : [session]
  for (const id of ids) {
    const state = session === null ? await readableState(records, id) : null
    if (session === null && (state === null || !hasPlan(state))) continue
    const asked = await readAsked(context, records, id, warnOn(context))
    if (asked !== null && hasPlan(asked.state)) return asked
  }
  throw new UserError(
    'CM0616',
    session === null ? `There is no plan in ${records.directory} yet.` : `${session} has no plan yet.`,
    { hint: `Its progress: codemachine ${session === null ? 'list' : 'status'}` },
  )
}

function hasPlan(state: SessionState): boolean {
  return plansOf(state).length > 0 || state.decision?.id === PLAN_DECISION
}

/** Why an answer cannot be given where no codemachine runs, and what to type instead. */
async function nobodyWaits(
  { platform }: CliContext,
  records: Records,
  session: string | null,
  flags: PlanFlags,
): Promise<UserError> {
  const asked = await readAsked({ platform }, records, session, () => {})
  const elsewhere = 'If it runs in another directory: codemachine plan -C <dir>'
  if (asked === null || !hasPlan(asked.state)) {
    return new UserError('CM0616', `No codemachine runs in ${records.directory}, so no plan waits there.`, {
      hint: elsewhere,
    })
  }
  const { state } = asked
  const { id } = state
  const accepted = plansOf(state).findLast(each => each.accepted !== null)
  const isOver = state.ended !== null && state.ended.outcome.kind === 'done'
  const hint = isOver ? elsewhere : `To continue: ${resumeCommand(id, flags.cd ?? null)}`
  return new UserError(
    'CM0616',
    accepted === undefined
      ? `${id} is not running, so you cannot answer its plan now; it asks you again when you resume it.`
      : `Version ${accepted.version} of the plan of ${id} is already accepted, and ${id} is ${isOver ? 'done' : 'not running'}.`,
    { hint },
  )
}

/** Why the session that runs has no plan that waits. @param message what it has answered */
async function notWaiting(
  { platform }: CliContext,
  records: Records,
  session: string | null,
  message: string,
): Promise<UserError> {
  const asked = await readAsked({ platform }, records, session, () => {})
  if (asked === null || asked.standing !== 'running') return new UserError('CM0616', message)
  const { state } = asked
  const { id, decided } = state
  const hint = 'Its current work: codemachine status'
  const accepted = plansOf(state).findLast(each => each.accepted !== null)
  if (accepted !== undefined) {
    return new UserError('CM0616', `Version ${accepted.version} of the plan of ${id} has been accepted already.`, {
      hint: 'To change it: codemachine replan "…"',
    })
  }
  if (decided?.id === PLAN_DECISION) {
    const why = `it was answered with "${oneLine(decided.choice, WORD_CHARS)}"`
    return new UserError('CM0616', `No plan of ${id} waits now: ${why}, and the result is not there yet.`, { hint })
  }
  return new UserError('CM0616', `No plan of ${id} waits for an answer now.`, { hint })
}

function at({ cd }: PlanFlags): string {
  return here(cd ?? null)
}
