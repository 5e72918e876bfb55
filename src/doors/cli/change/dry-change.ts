import { UserError } from '../../../base/errors.ts'
import type { WantedChange } from '../../../modes/change/start/begin.ts'
import { type DryChange, dryChange } from '../../../modes/change/start/dry-run.ts'
import type { RunOptions } from '../../../project/library.ts'
import { recordsAround } from '../../../session/records/records.ts'
import { formatCount } from '../../../tell/words/numbers.ts'
import { safeText } from '../../../tell/words/safe-text.ts'
import type { CliContext } from '../../screen/cli-context.ts'
import { directoryOf, type RunFlags } from '../flags.ts'

/** `codemachine change --dry-run`: prints the context and what the planner would be told. Resolves with the exit code. */
export async function dryRun(
  context: CliContext,
  wanted: WantedChange,
  options: RunOptions,
  flags: Pick<RunFlags, 'cd' | 'json'>,
): Promise<number> {
  const directory = directoryOf(context, flags)
  const [records] = await recordsAround({ ...context, directory })
  if (records === undefined) throw new UserError('CM0106', `${directory} is not a directory; name an existing one.`)
  const dry = await dryChange(context, records, wanted, options)
  context.stdout.write(flags.json ? `${JSON.stringify(dry)}\n` : safeText(`${sectionsOf(dry).join('\n\n')}\n`))
  return 0
}

function sectionsOf({ directory, codex, options, follows, request, context, planner }: DryChange): string[] {
  const { fixAttempts, executor, executorEngine } = options
  const { model, effort, developerInstructions, input } = planner
  const who =
    executor === null
      ? (executorEngine ?? 'what the rounds use')
      : `${executor.model ?? 'its own model'} from ${executor.provider}`
  const head = [
    'A dry run: nothing is started, written or spent.',
    `It would be a change in ${directory}, with codex ${codex}.`,
    `Planned by ${model ?? "codex's own model"} (${effort === null ? 'its own effort' : `effort ${effort}`}); carried out by ${who}.`,
    `The plan would be ${options.review === 'auto' ? 'accepted automatically' : 'shown'}, and ${carriedOut(options)}.`,
    `A failed verification would be fixed at most ${formatCount(fixAttempts, 'time')}.`,
    ...(follows === null ? [] : [`It would continue from ${follows}.`]),
  ]
  return [
    head.join('\n'),
    section('The request', request),
    section(`The context, ${formatCount(Buffer.byteLength(context), 'byte')}`, context),
    section('The planner: developer instructions', developerInstructions),
    section('The planner: input of its first round, with the context as material', input),
  ]
}

/** What becomes of the plan. */
function carriedOut({ review, planOnly }: DryChange['options']): string {
  if (planOnly) return 'carried out only by codemachine resume'
  return review === 'auto' ? 'carried out' : 'carried out once it is accepted'
}

function section(title: string, text: string): string {
  return `─── ${title}\n${text.trimEnd()}`
}
