import { UserError } from '../../../base/errors.ts'
import type { IssueRef } from '../../../core/shapes/published.ts'
import { settingsOf } from '../../../project/open-run.ts'
import { goalFromIssue } from '../../../project/publish/issue.ts'
import { redactorOfProject } from '../../../project/secrets/redactor.ts'
import { placesOf } from '../../../project/world.ts'
import { openRecords } from '../../../session/records/records.ts'
import type { CliContext } from '../../screen/cli-context.ts'
import { confirmGoal } from '../confirm-goal.ts'
import { directoryOf, type LookFlags } from '../flags.ts'
import { isAsked } from '../output.ts'
import { chooseOnTerminal } from './publish.ts'

/** Flags of a command that takes its goal from an issue. */
export interface IssueFlags extends LookFlags {
  /** Its number or address, as typed. */
  issue?: string
  yes?: true
  /** The repository that a number is of, as typed; left out: that of the work directory. */
  repo?: string
}

/**
 * The goal that an issue makes, once the person has seen it or said `--yes`; null if they do not want it.
 * @param words what they say of the issue; null: nothing
 */
export async function goalOfIssue(
  context: CliContext,
  issue: string,
  words: string | null,
  flags: IssueFlags,
): Promise<{ issue: IssueRef; text: string } | null> {
  const records = await openRecords(placesOf(context, directoryOf(context, flags)))
  const { settings } = await settingsOf(context, records.directory, {})
  const canAsk = isAsked(context, flags)
  if (!flags.yes && !canAsk)
    throw new UserError('CM0105', 'Without a terminal, you cannot confirm the issue; use --yes to work on it.')
  const found = await goalFromIssue(context, records, {
    typed: issue,
    words,
    redactor: redactorOfProject(context, records),
    repo: flags.repo ?? null,
    remote: settings.publishRemote,
    choose: async names => (canAsk ? await chooseOnTerminal(context, names) : null),
  })
  const text = flags.yes ? found.goal : await confirmGoal(context, records, found.goal)
  return text === null ? null : { issue: found.issue, text }
}
