import { readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import * as v from 'valibot'
import { clipEnd } from '../../base/text.ts'
import { readBoundedText, stageFile, writeWholeFile } from '../../platform/files.ts'
import { isStillRunning } from '../../platform/processes.ts'

const recordSchema = v.object({
  /** `frontend-dev-20261122T004530123`. */
  instance: v.string(),
  agent: v.string(),
  state: v.picklist(['running', 'completed', 'error', 'terminated']),
  /** The codemachine that runs it; `startTime` as of `startTimeOf`. */
  pid: v.number(),
  startTime: v.nullable(v.string()),
  request: v.string(),
  /** ISO 8601 in UTC; null: nobody knows when. */
  startedAt: v.string(),
  endedAt: v.nullable(v.string()),
  exitCode: v.nullable(v.number()),
  /** What the agent said last, or why it failed. */
  result: v.nullable(v.string()),
})

/** One call of an agent outside of a session, as the records keep it. */
export type AgentRecord = v.InferOutput<typeof recordSchema>

/** The most that is kept of a request and of a result, in characters. */
const MOST_CHARACTERS = 20_000
const MOST_BYTES = 512 * 1024
/** How many records of calls that have ended are kept. */
const MOST_RECORDS = 200

/** Begins the record of a call in `folder`, which is there; its instance is named after the agent and `now`, Unix time in ms. */
export async function beginAgentRecord(
  folder: string,
  now: number,
  call: Pick<AgentRecord, 'agent' | 'pid' | 'startTime' | 'request'>,
): Promise<AgentRecord> {
  for (let at = now; ; at++) {
    const startedAt = new Date(at).toISOString()
    const record: AgentRecord = {
      instance: `${call.agent}-${startedAt.replace(/[-:.Z]/g, '')}`,
      ...call,
      state: 'running',
      request: clipEnd(call.request, MOST_CHARACTERS),
      startedAt,
      endedAt: null,
      exitCode: null,
      result: null,
    }
    await using file = await stageFile(folder, textOf(record))
    if (await file.linkAs(`${record.instance}.json`)) return record
  }
}

/** Writes how the call ended. */
export async function endAgentRecord(
  folder: string,
  record: AgentRecord,
  end: Pick<AgentRecord, 'state' | 'endedAt' | 'exitCode' | 'result'>,
): Promise<void> {
  const result = end.result === null ? null : clipEnd(end.result, MOST_CHARACTERS)
  await writeWholeFile(join(folder, `${record.instance}.json`), textOf({ ...record, ...end, result }))
}

/**
 * Writes into the records of calls whose codemachine has died that they were terminated, and removes what these have left
 * beside them, and the oldest that are too many. `now`: Unix time, ms.
 */
export async function tidyAgentRecords(
  folder: string,
  { platform, now }: { platform: NodeJS.Platform; now: number },
): Promise<void> {
  const all = await readdir(folder)
  for (const name of all) if (await isLeft(folder, name, platform, now)) await rm(join(folder, name), { force: true })
  const names = all.filter(name => RECORD_NAME.test(name)).sort(byTime)
  for (const [index, name] of names.entries()) {
    const record = await readRecord(join(folder, name))
    const isRunning = record?.state === 'running' && (await isStillRunning(record, platform))
    if (isRunning) continue
    if (names.length - index > MOST_RECORDS) await rm(join(folder, name), { force: true })
    else if (record?.state === 'running') {
      await endAgentRecord(folder, record, { state: 'terminated', endedAt: null, exitCode: null, result: null })
    }
  }
}

const RECORD_NAME = /-\d{8}T\d{9}\.json$/

/** What an agent said last, which was never redacted, or a record that was never finished. */
async function isLeft(folder: string, name: string, platform: NodeJS.Platform, now: number): Promise<boolean> {
  if (name.endsWith('.tmp')) {
    const found = await stat(join(folder, name)).catch(() => null)
    return found !== null && now - found.mtimeMs > UNFINISHED_MS
  }
  if (!name.endsWith('.last')) return false
  const record = await readRecord(join(folder, name.replace(/\.last$/, '.json')))
  return record?.state !== 'running' || !(await isStillRunning(record, platform))
}

/** Nobody writes a record for so long. */
const UNFINISHED_MS = 60_000

function byTime(a: string, b: string): number {
  const timeOf = (name: string) => RECORD_NAME.exec(name)?.[0] ?? ''
  return timeOf(a).localeCompare(timeOf(b), 'en')
}

async function readRecord(path: string): Promise<AgentRecord | null> {
  const read = await readBoundedText(path, MOST_BYTES)
  if (typeof read !== 'object' || !('text' in read)) return null
  try {
    const parsed = v.safeParse(recordSchema, JSON.parse(read.text))
    return parsed.success ? parsed.output : null
  } catch {
    return null
  }
}

function textOf(record: AgentRecord): string {
  return `${JSON.stringify(record, null, 2)}\n`
}
