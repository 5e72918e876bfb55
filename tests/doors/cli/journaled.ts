import { mkdir, readFile, writeFile } from 'node:fs/promises'
import type { SessionEvent } from '../../../src/core/events/events.ts'
import { OWN_TEMPLATES } from '../../../src/modes/registry.ts'
import { openJournal } from '../../../src/session/records/journal.ts'
import { openRecords, type Records } from '../../../src/session/records/records.ts'
import type { TestPlace } from '../../support/place.ts'
import { recorded } from '../screen/samples.ts'

/** The records of the place's work directory. */
export function recordsOf(place: TestPlace): Promise<Records> {
  const { directory, env, home } = place
  return openRecords({ directory, env, home, platform: process.platform, templates: OWN_TEMPLATES })
}

/** Journals these events as a session of the place, and answers its journal's path. */
export async function journalSession(place: TestPlace, id: string, events: readonly SessionEvent[]): Promise<string> {
  const records = await recordsOf(place)
  await mkdir(records.sessionFolder(id), { recursive: true })
  const path = records.journal(id)
  await using journal = openJournal(path)
  for (const event of recorded(events, id)) journal.append(event)
  return path
}

/** Puts another first line into a journal. */
export async function replaceFirstLine(path: string, line: string): Promise<void> {
  const text = await readFile(path, 'utf8')
  await writeFile(path, text.replace(/^.*\n/, `${line}\n`))
}
