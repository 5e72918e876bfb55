import { readdirSync, readFileSync, statSync } from 'node:fs'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import { startWithKills } from '../../support/kill-points.ts'
import { promise } from '../../support/promise.ts'
import { openRealScene } from '../../support/real-scene.ts'
import { claimDone, round } from '../../support/rounds.ts'
import { eventsOf, type Scene } from '../../support/scene.ts'
import { test } from '../../support/side-by-side.ts'
import { folderOf, longSession, SNAPSHOT } from './long-session.ts'

async function shown(scene: Scene): Promise<string[]> {
  const commands = [['status'], ['list'], ['report']].map(line => scene.run(...line, '--json'))
  return (await Promise.all(commands)).map(({ stdout, stderr }) => stdout + stderr)
}

promise('J42')
test('of a long session a snapshot is kept, whose loss, tear or absence in mid-writing changes nothing', async () => {
  // Each does the same, for the kill may strike in any of the first ones.
  const work = round(`if [ $(cat x.txt | wc -l) -lt 3 ]; then echo x >> x.txt; else ${claimDone}; fi`)
  await using scene = await openRealScene(Array.from({ length: 12 }, () => work))
  await longSession(scene)
  const files = () => readdirSync(folderOf(scene)).filter(name => name.startsWith(SNAPSHOT))
  const snapshot = join(folderOf(scene), SNAPSHOT)

  const beforeItsName = { victim: 'codemachine', file: SNAPSHOT, n: 1 } as const
  const line = ['resume', '--json', '--rounds', '9']
  expect((await startWithKills(scene.place, line, [beforeItsName]).ended).signal).toBe('SIGKILL')
  expect(files()).toEqual([`${SNAPSHOT}.tmp`])
  const { exitCode, events } = await scene.run(...line)
  expect(exitCode).toBe(0)
  const [end] = eventsOf(events, 'session-ended')
  expect(files()).toEqual([SNAPSHOT])
  expect(statSync(snapshot).mode & 0o777).toBe(0o600)

  const kept = readFileSync(snapshot)
  const before = await shown(scene)
  expect(before[0]).toContain(`"roundsUsed":${end?.rounds}`)
  for (const broken of [kept.subarray(0, kept.length / 2), Buffer.alloc(kept.length), Buffer.from('')]) {
    await writeFile(snapshot, broken)
    expect(await shown(scene)).toEqual(before)
  }
  await rm(snapshot)
  expect(await shown(scene)).toEqual(before)
})
