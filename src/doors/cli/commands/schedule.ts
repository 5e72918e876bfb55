import { UserError } from '../../../base/errors.ts'
import { checkPrompt, type OpenProject } from '../../../project/open-project.ts'
import { nextTime, timeOf } from '../../../project/service/schedules.ts'
import { serviceLock } from '../../../project/service/service.ts'
import { readRunner } from '../../../session/records/run-lock.ts'
import { addSchedule, listSchedules, removeSchedule, type Schedule } from '../../../session/records/schedules.ts'
import { termsInWords } from '../../../tell/words/commands.ts'
import { formatDayAndTime, formatMoment } from '../../../tell/words/numbers.ts'
import { oneLine, titleLine } from '../../../tell/words/safe-text.ts'
import type { CliContext } from '../../screen/cli-context.ts'
import { type LookFlags, printDone } from '../flags.ts'
import { warnOn } from '../warn-on.ts'
import { openHere, promptTyped, type QueueAddFlags } from './ask.ts'

/** `codemachine schedule add`. */
export async function scheduleAdd(
  context: CliContext,
  cron: string,
  words: readonly string[],
  flags: QueueAddFlags,
): Promise<number> {
  const { clock } = context
  const next = nextTime(cron, clock.now())
  if (next === null)
    throw new UserError('CM0103', `No date ever matches "${cron}"; use other fields, such as "0 1 * * 1-5".`)
  const project = await openHere(context, flags)
  const typed = await promptTyped(context, project, { words, flags, command: 'schedule add "0 1 * * *"' })
  if (typed === null) return 0
  const { text: prompt, terms } = typed
  await checkPrompt(project.records, context, prompt, terms)
  const added = await addSchedule(project.records.schedules, { ...terms, cron, prompt }, new Date(clock.now()))
  await remarkWithoutService(context, project)
  const when = formatMoment(next, clock.now())
  return printDone(context, flags, `Added schedule ${added.id}, next ${when}: ${oneLine(prompt, 80)}`, {
    id: added.id,
    next: new Date(next).toISOString(),
  })
}

/** `codemachine schedule list`. */
export async function scheduleList(context: CliContext, flags: LookFlags): Promise<number> {
  const { stdout } = context
  const project = await openHere(context, flags)
  const { schedules, problems } = await listSchedules(project.records.schedules)
  for (const problem of problems) warnOn(context)(problem)
  const rows = schedules.map(schedule => ({ ...schedule, next: nextOf(schedule) }))
  if (flags.json) stdout.write(`${JSON.stringify(rows)}\n`)
  else if (rows.length === 0)
    stdout.write('There is no schedule. Add one with: codemachine schedule add "0 1 * * 1-5" "…"\n')
  else for (const row of rows) stdout.write(`${lineOf(row)}\n`)
  if (rows.length > 0) await remarkWithoutService(context, project)
  return 0
}

/** `codemachine schedule rm`. */
export async function scheduleRemove(context: CliContext, id: string, flags: LookFlags): Promise<number> {
  const { records } = await openHere(context, flags)
  if (!(await removeSchedule(records.schedules, id)))
    throw new UserError('CM0626', `There is no schedule ${oneLine(id, 60)} here.`, {
      hint: 'All schedules of this directory: codemachine schedule list',
    })
  return printDone(context, flags, `Removed schedule ${id}.`, { id })
}

/** Null: never, or its `cron` is damaged. ISO 8601 in UTC. */
function nextOf(schedule: Schedule): string | null {
  try {
    const next = timeOf(schedule)
    return next === null ? null : new Date(next).toISOString()
  } catch (error) {
    if (!(error instanceof UserError)) throw error
    return null
  }
}

function lineOf({ id, cron, prompt, next, ...terms }: Schedule & { next: string | null }): string {
  const when = next === null ? 'never' : formatDayAndTime(Date.parse(next))
  const words = termsInWords(terms)
  return `${id}  ${cron}  next ${when}  ${titleLine(prompt, 100)}${words === '' ? '' : ` (${words})`}`
}

/** Says that nobody queues the prompts. */
async function remarkWithoutService({ stderr, platform }: CliContext, { records }: OpenProject): Promise<void> {
  if ((await readRunner(serviceLock(records.root), platform)) !== null) return
  stderr.write('codemachine: The service does not run, so nothing is queued: codemachine service install\n')
}
