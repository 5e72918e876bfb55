import { readdirSync } from 'node:fs'
import { appendFile, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import type { Scene } from '../../support/scene.ts'

export const SNAPSHOT = 'journal.ndjson.snapshot'

export const folderOf = (scene: Scene) => {
  const sessions = join(scene.records(), 'sessions')
  return join(sessions, readdirSync(sessions)[0] ?? '')
}

/** Ends a session at its limit of one round, and lets its journal grow by 3 MB of what says nothing. */
export async function longSession(scene: Scene): Promise<string> {
  expect((await scene.run('--rounds', '1', 'build X')).exitCode).toBe(3)
  const journal = join(folderOf(scene), 'journal.ndjson')
  const [, first = ''] = (await readFile(journal, 'utf8')).split('\n')
  const { v, at, session } = JSON.parse(first)
  const line = (n: number) =>
    JSON.stringify({ v, at, session, type: 'warning', round: 1, message: `${n} ${'.'.repeat(1000)}` })
  const lines = Array.from({ length: 3000 }, (_, n) => `${line(n)}\n`)
  await appendFile(journal, lines.join(''))
  return journal
}
