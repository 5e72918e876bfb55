import { readdirSync } from 'node:fs'
import { appendFile, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import { claimDone, round } from '../support/rounds.ts'
import { eventsOf, openScene, type Scene } from '../support/scene.ts'
import { test } from '../support/side-by-side.ts'

const SNAPSHOT = 'journal.ndjson.snapshot'

const folderOf = (scene: Scene) => {
  const sessions = join(scene.records(), 'sessions')
  return join(sessions, readdirSync(sessions)[0] ?? '')
}

/** Ends a session at its limit of one round, and lets its journal grow by 3 MB of what says nothing. */
async function longSession(scene: Scene): Promise<string> {
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

test('where the journal was damaged since, whoever goes on is told so, and nothing but what stood there is lost', async () => {
  await using scene = await openScene([round('touch a'), round('touch b'), round(claimDone)])
  const journal = await longSession(scene)
  expect((await scene.run('resume', '--rounds', '2')).exitCode).toBe(3)
  expect(readdirSync(folderOf(scene))).toContain(SNAPSHOT)
  const text = await readFile(journal, 'utf8')
  await writeFile(journal, text.replace('"message":"700 ', '"message":}700 '))
  const { exitCode, events } = await scene.run('resume', '--json', '--rounds', '3')
  expect(exitCode).toBe(0)
  const warnings = eventsOf(events, 'warning').map(({ message }) => message)
  expect(warnings).toContainEqual(expect.stringContaining('1 line of'))
  // The next one is made of the journal as it is.
  const [, head = ''] = (await readFile(`${journal}.snapshot`, 'utf8')).split('\n')
  expect(JSON.parse(head).read.rubbish).toBe(1)
})
