import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import type { ScriptStep } from '../../../../src/demo/model/reply.ts'
import { reply, shell } from '../../../../src/demo/model/reply.ts'
import { roundsOf, startNight } from '../../../support/night.ts'
import { processesOf, untilRuns } from '../../../support/processes.ts'
import { promise } from '../../../support/promise.ts'
import { openRealScene } from '../../../support/real-scene.ts'
import { claimDone, held, round, says } from '../../../support/rounds.ts'
import { eventsOf, type Scene } from '../../../support/scene.ts'
import { writePeer } from '../../../support/scripted-peer.ts'
import { describe, test } from '../../../support/side-by-side.ts'
import { untilInFolder } from '../../../support/until-in-folder.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
/** A command of the agent's that runs for as long as codex waits for one. */
const slow = (command: string) => reply(shell(command, { yieldMs: 30_000 }))

/** Resolves once the run of this session knows that a command of the agent's is in progress. */
async function commandBegun(scene: Scene, session: string): Promise<void> {
  const record = () => (scene.hasRecorded('rounds/001.ndjson') ? scene.recorded('rounds/001.ndjson') : '')
  const folder = join(scene.records(), 'sessions', session, 'rounds')
  await untilInFolder(folder, 'a command that has begun', () => record().includes('"commandExecution"') || null)
}

/** A model that never answers, and what resolves once it was asked. */
function hangs() {
  const asked = Promise.withResolvers<void>()
  const step: ScriptStep = () => {
    asked.resolve()
    return { kind: 'hang-before-headers' }
  }
  return { step, asked: asked.promise }
}

const runs = (scene: Scene, command: string) => processesOf(scene.place).includes(command)

promise('W7', 'A codex that is silent, or a command that hangs, is ended, and the next round is told')
describe('a round that hangs', () => {
  test('before it has done anything, for want of an answer, is ended and costs nothing', async () => {
    const { step, asked } = hangs()
    await using scene = await openRealScene([[step], round(claimDone)])
    const night = startNight(scene, ['--rounds', '1', 'build X'])
    await night.run.event('turn-started')
    await asked
    await night.nothingAsked()
    await night.clock.advance(5 * MINUTE)
    expect(roundsOf(night.run.events)).toEqual([])
    await night.clock.advance(MINUTE + 15_000)
    await night.hurryUntil(night.run.event('round-ended'))
    // In a hurry the round that comes then could seem to hang too.
    await night.hurryUntil(
      night.run.event('round-started', event => eventsOf(night.run.events, 'round-started').indexOf(event) === 1),
    )
    const { exitCode, events } = await night.run.ended
    expect(roundsOf(events)).toEqual([
      [1, 'silent', false],
      [1, 'worked', true],
    ])
    expect(exitCode).toBe(0)
  })

  test('after it has worked uses up a round, and the next one is told', async () => {
    const { step, asked } = hangs()
    await using scene = await openRealScene([[reply(shell('echo one > work.txt')), step], round(claimDone)])
    const night = startNight(scene, ['--rounds', '2', 'build X'], { env: { CODEMACHINE_SILENCE_MINUTES: '0.5' } })
    await night.run.event('item-completed', ({ item }) => item.kind === 'command')
    await asked
    await night.nothingAsked()
    await night.clock.advance(MINUTE)
    const { exitCode, events } = await night.run.ended
    expect(roundsOf(events)).toEqual([
      [1, 'silent', true],
      [2, 'worked', true],
    ])
    expect(scene.input(2)).toContain('hung')
    expect(exitCode).toBe(0)
  })

  test('for a command that does not come to its end is ended with the command, which the next round is told by its name', async () => {
    await using scene = await openRealScene([[slow('sleep 4321')], round(claimDone)])
    const night = startNight(scene, ['--rounds', '2', 'build X'])
    await commandBegun(scene, (await night.run.event('turn-started')).session)
    await untilRuns(scene.place, 'sleep 4321')
    await night.nothingAsked()
    await night.clock.advance(59 * MINUTE)
    expect([roundsOf(night.run.events), runs(scene, 'sleep 4321')]).toEqual([[], true])
    await night.clock.advance(MINUTE + 15_000)
    const { exitCode, events } = await night.run.ended
    expect(roundsOf(events)).toMatchObject([
      [1, 'silent', expect.anything()],
      [expect.anything(), 'worked', true],
    ])
    expect(scene.input(2)).toContain('sleep 4321')
    expect([exitCode, runs(scene, 'sleep 4321')]).toEqual([0, false])
  })

  promise('E16', 'A round that hangs is ended')
  test('and takes neither an interrupt nor the end of its input is killed', async () => {
    await using scene = await openRealScene([])
    const peer = await writePeer(
      scene.place.root,
      `import { execSync } from 'node:child_process'
       import { existsSync, writeFileSync } from 'node:fs'
       if (process.argv.includes('--version')) { console.log('codex-cli 0.169.0'); process.exit(0) }
       on['account/rateLimits/read'] = id => send({ id, error: { code: -32600, message: 'not here' } })
       const hung = ${JSON.stringify(scene.place.root)} + '/hung'
       on['turn/start'] = id => {
         send({ id, result: { turn: { id: TURN } } }); started()
         if (existsSync(hung)) { execSync(${JSON.stringify(claimDone)}, { shell: '/bin/bash' }); message('Done.'); return completed() }
         writeFileSync(hung, '')
         message('Working.')
         on.end = () => {}
         on['turn/interrupt'] = () => {}
         process.on('SIGTERM', () => {})
         setInterval(() => {}, 1000)
       }`,
    )
    const night = startNight(scene, ['--rounds', '2', '--codex-bin', peer, 'build X'])
    await night.run.event('item-completed', ({ item }) => item.kind === 'agent-message')
    await night.nothingAsked()
    await night.clock.advance(6 * MINUTE + 15_000)
    await night.clock.advance(MINUTE)
    const { exitCode, events } = await night.run.ended
    expect(roundsOf(events).map(([, end]) => end)).toEqual(['silent', 'worked'])
    expect([exitCode, processesOf(scene.place)]).toEqual([0, []])
  })
})

test('a command that takes half an hour is no silence', async () => {
  await using scene = await openRealScene([
    [slow('while [ ! -e .go ]; do sleep 0.1; done'), says('So far.')],
    round(claimDone),
  ])
  const night = startNight(scene, ['build X'])
  await commandBegun(scene, (await night.run.event('turn-started')).session)
  await night.nothingAsked()
  await night.clock.advance(30 * MINUTE)
  await writeFile(join(scene.place.directory, '.go'), '')
  const { exitCode, events } = await night.run.ended
  expect(roundsOf(events)[0]).toEqual([1, 'worked', true])
  expect(exitCode).toBe(0)
})

promise('W8', 'A machine that slept is noticed, and is no silence')
test('a machine that slept in the middle of a round finds the round where it was', async () => {
  const morning = Promise.withResolvers<void>()
  await using scene = await openRealScene([[held(morning.promise), ...round(claimDone)]])
  const night = startNight(scene, ['--rounds', '1', 'build X'])
  await night.run.event('item-completed', ({ item }) => item.kind === 'agent-message')
  await night.nothingAsked()
  await night.clock.advance(5 * MINUTE)
  night.clock.sleepMachine(8 * HOUR)
  await night.clock.advance(2 * MINUTE)
  const slept = await night.run.event('machine-slept')
  expect(slept.round).toBe(1)
  expect(Math.abs(slept.ms - 8 * HOUR)).toBeLessThan(MINUTE)
  morning.resolve()
  const { exitCode, events } = await night.run.ended
  expect(roundsOf(events)).toEqual([[1, 'worked', true]])
  expect(exitCode).toBe(0)
})

test('a machine that slept through a wait does not wait the longer for it', async () => {
  await using scene = await openRealScene([
    [
      {
        kind: 'status',
        status: 429,
        body: { error: { type: 'usage_limit_reached', resets_at: Math.round(Date.now() / 1000) + 18_000 } },
      },
    ],
    round(claimDone),
  ])
  const night = startNight(scene, ['--rounds', '1', 'build X'])
  await night.run.event('waiting')
  night.clock.sleepMachine(6 * HOUR)
  await night.clock.advance(MINUTE + 1000)
  expect(await night.run.ended).toMatchObject({ exitCode: 0 })
  expect(eventsOf(night.run.events, 'wait-ended')).toMatchObject([{ reason: 'over' }])
})
