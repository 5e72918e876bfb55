import { UserError } from '../../../base/errors.ts'
import type { Recorded } from '../../../core/events/events.ts'
import type { Published } from '../../../core/shapes/published.ts'
import { holdWorkDirectory, settingsOf, WAIT_FOR_ITS_END } from '../../../project/open-run.ts'
import { publish } from '../../../project/publish/publish.ts'
import { redactorOfProject } from '../../../project/secrets/redactor.ts'
import { findSessionAround } from '../../../project/worktrees/find.ts'
import { placesOf } from '../../../project/world.ts'
import type { Redactor } from '../../../secrets/redactor.ts'
import { openJournal } from '../../../session/records/journal.ts'
import { openRecords, type Records } from '../../../session/records/records.ts'
import { readReport } from '../../../tell/report/write.ts'
import { wordsForPublished } from '../../../tell/words/published.ts'
import { oneLine } from '../../../tell/words/safe-text.ts'
import type { CliContext } from '../../screen/cli-context.ts'
import { directoryOf, type LookFlags } from '../flags.ts'
import { askWhich, askYesOrNo, isAsked, sayWorktree } from '../output.ts'
import { warnOn } from '../warn-on.ts'

interface PublishFlags extends LookFlags {
  draft?: true
  ready?: true
  remote?: string
  title?: string
  note?: true
  /** Whether remote and title are said to be right. */
  yes?: true
}

/** `codemachine publish`: pushes the result of a session, and opens or updates its pull or merge request. */
export async function publishSession(
  context: CliContext,
  session: string | undefined,
  flags: PublishFlags,
): Promise<number> {
  const { stdout } = context
  const { draft, ready, remote, title, note = false, json } = flags
  if (title?.trim() === '') throw new UserError('CM0103', '--title is empty; give a title for the request.')
  const say = warnOn(context)
  const own = await openRecords(placesOf(context, directoryOf(context, flags)))
  const found = await findSessionAround(own, session ?? null, { platform: context.platform, onProblem: say })
  const { records, id } = found
  sayWorktree(context, found)
  const { settings } = await settingsOf(context, records.directory, {})
  const redactor = redactorOfProject(context, records)
  await using _held = await holdWorkDirectory(context, records, say, WAIT_FOR_ITS_END)
  const data = await readReport(records, id, null)
  if (data === null) throw new UserError('CM0607', `${records.journal(id)} has no session.`)
  const canAsk = isAsked(context, flags)
  const isSaid = flags.yes || settings.publish !== 'no'
  const published = await publish(context, records, {
    data,
    redactor,
    remote: remote ?? settings.publishRemote,
    state: draft ? 'draft' : ready ? 'ready' : null,
    title: title ?? null,
    note,
    alone: false,
    choose: async names => (canAsk ? await chooseOnTerminal(context, names) : null),
    confirm: async lines => {
      const write = json || !canAsk ? say : (text: string) => void stdout.write(`${text}\n`)
      for (const line of lines) write(oneLine(line, 1000))
      if (isSaid) return true
      if (!canAsk)
        throw new UserError('CM0105', 'Without a terminal, you cannot confirm this; use --yes to publish the result.')
      return (await askYesOrNo(context, 'Publish it?')) === true
    },
    say,
    keep: each => journal(context, records, { id, redactor, published: each }),
  })
  if (published === null) stdout.write('Nothing is published.\n')
  else
    stdout.write(
      json ? `${JSON.stringify({ v: 1, session: id, ...published })}\n` : `${wordsForPublished(published)}\n`,
    )
  return 0
}

/** Asks which of these remotes is meant; null: none. */
export async function chooseOnTerminal(context: CliContext, names: readonly string[]): Promise<string | null> {
  context.stdout.write(names.map((name, at) => `${String(at + 1).padStart(2)}  ${oneLine(name, 100)}\n`).join(''))
  const chosen = await askWhich(context, names.length)
  return chosen === null ? null : (names[chosen - 1] ?? null)
}

/** Journals it behind the end of the session; the caller holds the work directory. */
async function journal(
  { clock }: CliContext,
  records: Records,
  { id, redactor, published }: { id: string; redactor: Redactor; published: Published },
): Promise<void> {
  const at = new Date(clock.now()).toISOString()
  const event: Recorded = { v: 1, at, session: id, type: 'published', ...redactor.event(published) }
  await using opened = openJournal(records.journal(id))
  opened.append(event)
}
