import { existsSync } from 'node:fs'
import { mkdir, rename, writeFile } from 'node:fs/promises'
import { delimiter, dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { codemachine } from '../../support/codemachine.ts'
import { codemachineHere } from '../../support/in-process.ts'
import { makePlace, type TestPlace } from '../../support/place.ts'
import { promise } from '../../support/promise.ts'
import { openRealScene } from '../../support/real-scene.ts'
import { eventsOf } from '../../support/scene.ts'
import { writePeer } from '../../support/scripted-peer.ts'
import { endSession, gate } from './verify/done-session.ts'

/** Writes a `codex` as an agent could, which leaves a trace when it is run; `hasRun`: whether it was. */
async function plant(place: TestPlace, path: string): Promise<{ path: string; hasRun: () => boolean }> {
  const trace = join(place.root, 'ran-outside')
  const planted = join(place.directory, path)
  await mkdir(dirname(planted), { recursive: true })
  await writeFile(planted, `#!/bin/sh\ntouch '${trace}'\necho codex-cli 0.200.0\n`, { mode: 0o755 })
  return { path: planted, hasRun: () => existsSync(trace) }
}

promise('B13', 'A codex that an agent can have written is passed over on PATH, named, and not run by any command')
test('no command runs a codex that an agent has put into node_modules/.bin, which npx puts first on PATH', async () => {
  await using place = await makePlace('')
  const planted = await plant(place, 'node_modules/.bin/codex')
  const env = { PATH: `${dirname(planted.path)}${delimiter}${place.env.PATH}` }
  await endSession(place, [gate('test -f README.md')])
  const doors = [
    ['verify'],
    ['doctor', '--json'],
    ['--dry-run', 'build X'],
    ['--rounds', '1', '--max-time', '1s', 'build X'],
  ]
  const said = new Map<string | undefined, string>()
  for (const door of doors) {
    const { stdout, stderr } = await codemachineHere(place, door, { env })
    expect(stderr).not.toContain('0.200.0')
    said.set(door[0], stdout + stderr)
  }
  expect(planted.hasRun()).toBe(false)
  expect(said.get('verify')).toContain(`does not use a codex that an agent can write: ${planted.path}`)
  expect(said.get('doctor')).toContain(`does not use a codex that an agent can write: ${planted.path}`)
})

promise('B14', 'A codex in the work directory that a person names is copied before round 1, and only the copy runs')
test('a codex in the work directory that a person names is copied before round 1, and what a round puts in its place is never run', async () => {
  await using scene = await openRealScene([])
  const { place } = scene
  const planted = await plant(place, 'later')
  const named = join(place.directory, 'codex')
  const peer = await writePeer(
    place.root,
    `import { copyFileSync, renameSync } from 'node:fs'
     if (process.argv.includes('--version')) { console.log('codex-cli 0.169.0'); process.exit(0) }
     on['turn/start'] = id => {
       copyFileSync('${planted.path}', '${named}.new')
       renameSync('${named}.new', '${named}')
       send({ id, result: { turn: { id: TURN } } }); started(); message('hello'); completed()
     }`,
  )
  await rename(peer, named)
  const run = await scene.run('--codex-bin', './codex', '--rounds', '2', '--json', 'build X')
  expect(run.exitCode).toBe(3)
  expect(eventsOf(run.events, 'round-ended').map(({ outcome }) => outcome.class)).toEqual(['worked', 'worked'])

  const again = await codemachine(place, ['resume', '--codex-bin', './codex', '--rounds', '3', '--json'])
  expect(again.exitCode).toBe(3)
  const warnings = eventsOf(again.events, 'warning').map(({ message }) => message)
  expect(warnings.join('\n')).toContain('has changed since codemachine copied it')
  expect(planted.hasRun()).toBe(false)
})
