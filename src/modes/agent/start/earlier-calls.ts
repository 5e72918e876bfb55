import { readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import * as v from 'valibot'
import { pathExists, readBoundedText, writeWholeFile } from '../../../platform/files.ts'
import { isStillRunning } from '../../../platform/processes.ts'
import type { World } from '../../../project/world.ts'
import { isCallSession } from '../../../session/records/journal.ts'
import type { Records } from '../../../session/records/records.ts'
import { readRunLock } from '../../../session/records/run-lock.ts'

const recordSchema = v.object({
  /** `frontend-dev-20261122T004530123`. */
  instance: v.string(),
  agent: v.string(),
  state: v.picklist(['running', 'completed', 'error', 'terminated']),
  /** The codemachine that runs it; `startTime` as of `startTimeOf`. */
  pid: v.number(),
  startTime: v.nullable(v.string()),
  request: v.string(),
  /** ISO 8601 in UTC; null: unknown. */
  startedAt: v.string(),
  endedAt: v.nullable(v.string()),
  exitCode: v.nullable(v.number()),
  /** Last message of the agent, or why it failed. */
  result: v.nullable(v.string()),
})

/** One agent call, as recorded before calls were sessions. */
type AgentRecord = v.InferOutput<typeof recordSchema>

const MOST_BYTES = 512 * 1024
/** Most ended calls to keep. */
const MOST_CALLS = 200

/**
 * Removes the sessions of the oldest surplus calls, and repairs records of calls from before they were sessions. Running
 * calls, and other sessions, stay.
 */
export async function tidyCalls(
  { platform, clock }: Pick<World, 'platform' | 'clock'>,
  records: Records,
): Promise<void> {
  const earlier = join(records.folder, 'agents')
  if (await pathExists(earlier)) await tidyAgentRecords(earlier, { platform, now: clock.now() })
  const ids = await records.sessions()
  if (ids.length <= MOST_CALLS) return
  const calls: string[] = []
  for (const id of ids) if (await isCallSession(records, id).catch(() => false)) calls.push(id)
  for (const id of calls.slice(0, -MOST_CALLS)) {
    const { state } = await readRunLock(records.callLock(id), platform)
    if (state === 'free' || state === 'stale') await rm(records.sessionFolder(id), { recursive: true, force: true })
  }
}

/**
 * Marks calls of dead codemachines as terminated in their records. Removes their other files, and the oldest surplus
 * records. `now`: Unix time, ms.
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
    if (names.length - index > MOST_CALLS) await rm(join(folder, name), { force: true })
    else if (record?.state === 'running') {
      await writeWholeFile(join(folder, name), `${JSON.stringify({ ...record, state: 'terminated' }, null, 2)}\n`)
    }
  }
}

const RECORD_NAME = /-\d{8}T\d{9}\.json$/

/** Returns whether a file is an agent's unredacted last message, or an unfinished record. */
async function isLeft(folder: string, name: string, platform: NodeJS.Platform, now: number): Promise<boolean> {
  if (name.endsWith('.tmp')) {
    const found = await stat(join(folder, name)).catch(() => null)
    return found !== null && now - found.mtimeMs > UNFINISHED_MS
  }
  if (!name.endsWith('.last')) return false
  const record = await readRecord(join(folder, name.replace(/\.last$/, '.json')))
  return record?.state !== 'running' || !(await isStillRunning(record, platform))
}

/** Writing a record never takes this long. */
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
