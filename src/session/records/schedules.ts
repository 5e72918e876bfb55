import { mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import * as v from 'valibot'
import { systemErrorCode, UserError, writing } from '../../base/errors.ts'
import { parseJson } from '../../base/json.ts'
import type { PromptTerms } from '../../core/shapes/queue.ts'
import { readBoundedText, stageFile, writeWholeFile } from '../../platform/files.ts'
import { problemIn, promptEntries } from './queue.ts'

/** A prompt that the service queues at each of its times. */
export interface Schedule extends PromptTerms {
  /** A number from 1, unique in its work directory. */
  id: string
  /** Its times in the five fields of cron, in local time. */
  cron: string
  prompt: string
  /** Time when it was added; ISO 8601 in UTC. */
  at: string
  /** Time when it was last queued, or left out because the one before still waited; null: never. ISO 8601 in UTC. */
  last: string | null
}

/** The schedules in order, and one sentence for each unreadable file. */
interface ScheduleContents {
  schedules: Schedule[]
  problems: string[]
}

const MOST_BYTES = 8 * 1024 * 1024
const fileSchema = v.object({ ...promptEntries, cron: v.pipe(v.string('use a text'), v.maxLength(200, 'use less')) })

/** Returns the schedules in this directory, which may be missing. */
export async function listSchedules(directory: string): Promise<ScheduleContents> {
  const contents: ScheduleContents = { schedules: [], problems: [] }
  for (const id of await idsIn(directory)) {
    const read = await readSchedule(directory, id)
    if (typeof read === 'string') contents.problems.push(read)
    else if (read !== null) contents.schedules.push(read)
  }
  return contents
}

/** Adds a schedule; it is on disk when this resolves. */
export async function addSchedule(
  directory: string,
  schedule: Omit<Schedule, 'id' | 'at' | 'last'>,
  at: Date,
): Promise<Schedule> {
  const content = { ...schedule, at: at.toISOString() }
  const result = v.safeParse(fileSchema, content)
  if (!result.success) throw new UserError('CM0618', problemIn(result.issues[0]) ?? 'The prompt is not a text.')
  return await writing(directory, async () => {
    await mkdir(directory, { recursive: true, mode: 0o700 })
    await using staged = await stageFile(directory, `${JSON.stringify(content, null, 2)}\n`)
    for (let id = Number((await idsIn(directory)).at(-1) ?? 0) + 1; ; id++) {
      if (await staged.linkAs(`${id}.json`)) return { ...content, id: `${id}`, last: null }
    }
  })
}

/** Removes a schedule; false if there is none with this id. */
export async function removeSchedule(directory: string, id: string): Promise<boolean> {
  if (!(await idsIn(directory)).includes(id)) return false
  await writing(directory, async () => {
    await rm(fileOf(directory, id), { force: true })
    await rm(lastOf(directory, id), { force: true })
  })
  return true
}

/** Stores that a schedule was queued, or left out. */
export async function keepLast(directory: string, { id }: Pick<Schedule, 'id'>, at: Date): Promise<void> {
  await writeWholeFile(lastOf(directory, id), `${at.toISOString()}\n`)
}

async function idsIn(directory: string): Promise<string[]> {
  const names = await readdir(directory).catch(error => {
    if (systemErrorCode(error) === 'ENOENT') return []
    throw error
  })
  const ids = names.flatMap(name => /^([1-9]\d{0,8})\.json$/.exec(name)?.[1] ?? [])
  return ids.sort((a, b) => Number(a) - Number(b))
}

/** Returns a schedule, null if it is gone, or a sentence about a problem of its file. */
async function readSchedule(directory: string, id: string): Promise<Schedule | string | null> {
  const path = fileOf(directory, id)
  const read = await readBoundedText(path, MOST_BYTES)
  if (read === 'missing') return null
  if ('problem' in read) return `${path} ${read.problem}.`
  const parsed = parseJson(read.text)
  if (!parsed.ok) return `${path} is not JSON: ${parsed.problem}`
  const result = v.safeParse(fileSchema, parsed.value)
  if (!result.success) return `${path}: ${problemIn(result.issues[0]) ?? 'it contains no JSON object.'}`
  const last = await readBoundedText(lastOf(directory, id), MOST_LAST)
  const written = typeof last === 'object' && 'text' in last ? last.text.trim() : ''
  return { ...result.output, id, last: Number.isNaN(Date.parse(written)) ? null : written }
}

const MOST_LAST = 100

function fileOf(directory: string, id: string): string {
  return join(directory, `${id}.json`)
}

function lastOf(directory: string, id: string): string {
  return join(directory, `${id}.last`)
}
