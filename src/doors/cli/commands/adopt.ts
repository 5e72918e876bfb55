import { UserError } from '../../../base/errors.ts'
import {
  type Adopted,
  CONVERSATION_MAKERS,
  type Conversation,
  type ConversationText,
} from '../../../core/shapes/conversation.ts'
import { Conversations } from '../../../project/conversations/find.ts'
import { goalFrom } from '../../../project/conversations/goal.ts'
import { OpenProject } from '../../../project/open-project.ts'
import { directoryOf } from '../../../project/world.ts'
import type { Records } from '../../../session/records/records.ts'
import { wordsForAdopted } from '../../../tell/words/adopted.ts'
import { formatMoment } from '../../../tell/words/numbers.ts'
import { oneLine, safeText, titleLine } from '../../../tell/words/safe-text.ts'
import type { CliContext } from '../../screen/cli-context.ts'
import { confirmGoal, shownGoal } from '../confirm-goal.ts'
import { type RunFlags, readText } from '../flags.ts'
import { askEach, askWhich, askYesOrNo, inColumns, isAsked } from '../output.ts'
import { runOptionsOf } from '../run-options.ts'
import { warnOn } from '../warn-on.ts'
import { run } from './run.ts'

interface AdoptFlags extends RunFlags {
  /** The goal as typed; it replaces the person's last request. */
  goal?: string
  /** Whether the proposed goal is said to be right. */
  yes?: true
  list?: true
  dryRun?: true
}

/** Of one that was written to within this time an agent may still be at work, ms. */
const RECENT_MS = 60_000
const TITLE_CHARS = 60

/** `codemachine adopt`: continues a conversation of a person with an agent, with the goal that the person confirms. */
export async function adopt(context: CliContext, wanted: string | undefined, flags: AdoptFlags): Promise<number> {
  const { goal, yes, list, dryRun, ...runFlags } = flags
  const isSaid = yes || goal !== undefined
  if (wanted === undefined && isSaid) {
    const hint = 'codemachine adopt --list shows them.'
    throw new UserError('CM0104', 'Name the conversation: codemachine adopt <id>.', { hint })
  }
  const opened = await open(context, flags)
  if (list || (wanted === undefined && !isAsked(context, flags))) return await showList(context, opened, flags)
  const proposed = await propose(context, opened, wanted, goal)
  if (proposed === null) return 0
  const { adopted } = proposed
  if (dryRun) {
    const words = `A dry run: nothing is started. The goal, from ${wordsForAdopted(adopted, context.clock.now())}:`
    context.stdout.write(
      flags.json ? `${JSON.stringify({ adopted, goal: proposed.goal })}\n` : `${words}\n\n${safeText(proposed.goal)}\n`,
    )
    return 0
  }
  if (!isSaid && !isAsked(context, flags))
    throw new UserError(
      'CM0105',
      'Without a terminal, you cannot confirm the goal; use --yes, or give the goal with --goal "…".',
    )
  if (!(await isFree(context, proposed.found, !yes && isAsked(context, flags)))) return 0
  const text = isSaid ? proposed.goal : await confirmGoal(context, opened.records, proposed.goal)
  return text === null ? 0 : await run(context, text, runFlags, true, adopted)
}

/**
 * What `adopt --detach` asks on the terminal, before its runner begins. Resolves with the arguments of the runner; null: nothing is to
 * be started.
 */
export async function askBeforeAdopt(
  context: CliContext,
  wanted: string | undefined,
  flags: AdoptFlags,
): Promise<readonly string[] | null> {
  const { args } = context.own
  if (flags.list || flags.yes || flags.goal !== undefined || !isAsked(context, flags)) return args
  const proposed = await propose(context, await open(context, flags), wanted, undefined)
  if (proposed === null || !(await isFree(context, proposed.found, true))) return null
  const { found, goal } = proposed
  context.stdout.write(shownGoal(goal))
  if ((await askYesOrNo(context, 'Work on this?')) !== true) {
    context.stdout.write('Nothing starts.\n')
    return null
  }
  // The command is the first of them.
  return wanted === undefined ? ['adopt', found.id, ...args.slice(1), '--yes'] : [...args, '--yes']
}

interface Opened {
  records: Records
  conversations: Conversations
}

async function open(context: CliContext, flags: RunFlags): Promise<Opened> {
  const options = runOptionsOf(flags)
  const { records } = await OpenProject.open(context, options)
  const typed = directoryOf(context, options)
  return { records, conversations: await Conversations.open(context, { records, typed, options }, warnOn(context)) }
}

/** The conversation that is meant, or that the person chooses, and the goal from it; null: none. @param goal as typed */
async function propose(
  context: CliContext,
  { records, conversations }: Opened,
  wanted: string | undefined,
  goal: string | undefined,
): Promise<{ found: Conversation; goal: string; adopted: Adopted } | null> {
  const found = wanted === undefined ? await choose(context, conversations, records) : await conversations.find(wanted)
  if (found === null) return null
  const said = goal === undefined ? undefined : await readText(context, goal)
  const proposed = goalFrom(found, conversations.redactor, said)
  const { maker, id, at } = found
  if (proposed === null) {
    const problem = `The conversation ${oneLine(id, 60)} has no message of yours; say the goal with --goal "…".`
    throw new UserError('CM0107', problem)
  }
  return { found, goal: proposed, adopted: { maker, id, at: new Date(at).toISOString() } }
}

async function showList(
  context: CliContext,
  { conversations, records: { directory } }: Opened,
  { json }: RunFlags,
): Promise<number> {
  const found = await conversations.list()
  const { stdout } = context
  if (json) {
    const shown = found.map(({ at, title, ...each }) => ({
      ...each,
      title: conversations.redactor.text(title),
      at: new Date(at).toISOString(),
    }))
    stdout.write(`${JSON.stringify(shown)}\n`)
  } else if (found.length === 0) stdout.write(`${noneIn(directory)}\n`)
  else stdout.write(`${rowsOf(found, conversations, context).join('\n')}\nTo continue one: codemachine adopt <id>\n`)
  return 0
}

function noneIn(directory: string): string {
  return `No conversations with codex, Claude Code or opencode were found in ${directory}.`
}

function rowsOf(found: readonly Conversation[], { redactor }: Conversations, { clock }: CliContext): string[] {
  const now = clock.now()
  return inColumns(
    found.map(({ maker, id, title, at }) => [
      oneLine(id, 60),
      CONVERSATION_MAKERS[maker],
      formatMoment(at, now),
      titleLine(redactor.text(title), TITLE_CHARS),
    ]),
  )
}

/** Null: none. */
async function choose(
  context: CliContext,
  conversations: Conversations,
  { directory }: Records,
): Promise<(Conversation & ConversationText) | null> {
  const found = await conversations.list()
  if (found.length === 0) {
    context.stdout.write(`${noneIn(directory)}\n`)
    return null
  }
  const rows = rowsOf(found, conversations, context)
  context.stdout.write(`${rows.map((row, at) => `${String(at + 1).padStart(2)}  ${row}`).join('\n')}\n`)
  const chosen = await askWhich(context, found.length)
  const one = chosen === null ? undefined : found[chosen - 1]
  return one === undefined ? null : await conversations.read(one)
}

/** Warns where an agent may still be at work; whether to go on all the same. */
async function isFree(context: CliContext, { at, maker }: Conversation, asks: boolean): Promise<boolean> {
  if (context.clock.now() - at >= RECENT_MS) return true
  const name = CONVERSATION_MAKERS[maker]
  warnOn(context)(
    `The conversation changed within the last minute. If ${name} still works here, two agents change the same files; end it first.`,
  )
  if (!asks) return true
  const [answer = false] = await askEach(context, ['Start anyway?'], false)
  return answer
}
