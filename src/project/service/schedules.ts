import { Cron } from 'croner'
import { messageOf, UserError } from '../../base/errors.ts'
import { openQueue } from '../../session/records/queue.ts'
import type { Records } from '../../session/records/records.ts'
import { keepLast, listSchedules, type Schedule } from '../../session/records/schedules.ts'
import { formatCount } from '../../tell/words/numbers.ts'
import { oneLine } from '../../tell/words/safe-text.ts'

/** Returns the first time of a schedule after `time`, in Unix ms; null: never. Throws a `UserError` for a wrong `cron`. */
export function nextTime(cron: string, time: number): number | null {
  const fields = cron.trim().split(/\s+/).length
  if (fields !== FIELDS && !cron.startsWith('@')) throw wrongTime(cron, `it has ${formatCount(fields, 'field')}`)
  try {
    return new Cron(cron, { mode: '5-part', paused: true }).nextRun(new Date(time))?.getTime() ?? null
  } catch (error) {
    throw wrongTime(cron, messageOf(error).replace(/^CronPattern: |\.$/g, ''))
  }
}

const FIELDS = 5

function wrongTime(cron: string, problem: string): UserError {
  return new UserError('CM0103', `"${oneLine(cron, 60)}" is not a time in the format of cron: ${problem}.`, {
    hint: 'Five fields: minute, hour, day, month, weekday; such as "0 1 * * 1-5" for each working day at 1:00.',
  })
}

/** Returns the time that a schedule waits for, in Unix ms; in the past if it was missed; null: never. */
export function timeOf({ cron, at, last }: Pick<Schedule, 'cron' | 'at' | 'last'>): number | null {
  return nextTime(cron, Math.max(Date.parse(at), last === null ? 0 : Date.parse(last)))
}

/**
 * Queues the prompts of a work directory whose time has come; several missed times count once. While the prompt of the time
 * before still waits, its schedule adds no other.
 * @returns a line for each action, and one for each schedule that cannot be read
 */
export async function queueScheduled(
  records: Pick<Records, 'queue' | 'schedules'>,
  now: number,
): Promise<{ done: string[]; problems: string[] }> {
  const { schedules, problems } = await listSchedules(records.schedules)
  const done: string[] = []
  for (const schedule of schedules) {
    const time = timeOrProblem(schedule)
    if (typeof time === 'string') problems.push(time)
    else if (time !== null && time <= now) done.push(await queueOne(records, schedule, now))
  }
  return { done, problems }
}

function timeOrProblem(schedule: Schedule): number | string | null {
  try {
    return timeOf(schedule)
  } catch (error) {
    if (!(error instanceof UserError)) throw error
    return `schedule ${schedule.id}: ${error.message}`
  }
}

async function queueOne(
  { queue: folder, schedules }: Pick<Records, 'queue' | 'schedules'>,
  schedule: Schedule,
  now: number,
): Promise<string> {
  const queue = openQueue(folder)
  const { id, cron: _, prompt, at: __, last: ___, ...terms } = schedule
  const waiting = (await queue.list()).prompts.find(each => each.schedule === id)
  const queued = waiting ?? (await queue.add(prompt, new Date(now), { ...terms, schedule: id }))
  // A crash before this queues a prompt again only if its session has begun meanwhile.
  await keepLast(schedules, schedule, new Date(now))
  if (waiting !== undefined) return `schedule ${id} adds no prompt, because ${queued.id} still waits`
  return `schedule ${id} queued ${queued.id}`
}
