import { readdirSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { expect } from 'vitest'
import { promise } from '../../support/promise.ts'
import { claimDone, round } from '../../support/rounds.ts'
import { eventsOf, openScene } from '../../support/scene.ts'
import { test } from '../../support/side-by-side.ts'
import { folderOf, longSession, SNAPSHOT } from './long-session.ts'

promise('J42')
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
