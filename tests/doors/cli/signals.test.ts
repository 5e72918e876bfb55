import { expect } from 'vitest'
import type { ScriptStep } from '../../../src/demo/model/reply.ts'
import { reply, shell } from '../../../src/demo/model/reply.ts'
import { type Ended, type RunningCodemachine, startCodemachine } from '../../support/codemachine.ts'
import { processesOf, untilRuns } from '../../support/processes.ts'
import { promise } from '../../support/promise.ts'
import { openRealScene } from '../../support/real-scene.ts'
import { claimDone, held, round } from '../../support/rounds.ts'
import { eventsOf } from '../../support/scene.ts'
import { writePeer } from '../../support/scripted-peer.ts'
import { describe, test } from '../../support/side-by-side.ts'

const never = new Promise<never>(() => {})
/** A round that runs until it is ended. */
const endless: ScriptStep[] = [held(never)]
const isMessage = ({ item }: { item: { kind: string } }) => item.kind === 'agent-message'

/** Ctrl+C again and again: two that are sent at once may arrive as one. */
async function endImpatiently(running: RunningCodemachine): Promise<Ended> {
  while (running.process.exitCode === null) {
    running.process.kill('SIGINT')
    await running.alive().catch(() => {})
  }
  return await running.ended
}

promise('O5', 'A signal ends a run and all that it started, and resume continues from there')
describe('a person ends a run', () => {
  test.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)(
    'with %s: it is journaled, nothing is left running, and resume finishes the job',
    async (signal, code) => {
      await using scene = await openRealScene([endless, round(claimDone)])
      await using running = scene.start('--json', 'build X')
      await running.event('item-completed', isMessage)
      running.process.kill(signal)
      const { exitCode, events, stderr } = await running.ended
      expect(exitCode).toBe(code)
      expect(events.at(-1)).toMatchObject({
        type: 'session-ended',
        outcome: { kind: 'interrupted', by: signal },
        exitCode: code,
      })
      expect(stderr).toMatch(/^To continue: codemachine resume \d{8}_1\n$/)
      expect(processesOf(scene.place)).toEqual([])

      const resumed = await scene.run(...(/resume \S+/.exec(stderr)?.[0] ?? '').split(' '), '--json')
      expect(resumed.exitCode).toBe(0)
      expect(resumed.events.map(({ session }) => session)).toContain(events[0]?.session)
      expect(eventsOf(resumed.events, 'session-ended')).toMatchObject([{ outcome: { kind: 'done' } }])
    },
  )

  test('by ending, if it is theirs: it does not outlive whoever holds its stdin', async () => {
    await using scene = await openRealScene([endless, round(claimDone)])
    await scene.run('queue', 'add', 'build X')
    await using running = startCodemachine(scene.place, ['queue', 'run', '--json'], {
      env: { CODEMACHINE_OWNED: '1' },
      holdsInput: true,
    })
    await running.event('item-completed', isMessage)
    running.process.stdin?.end()
    const { exitCode, events } = await running.ended
    expect(exitCode).toBe(143)
    expect(events.at(-1)).toMatchObject({ type: 'session-ended', outcome: { kind: 'interrupted', by: 'SIGTERM' } })
    expect(processesOf(scene.place)).toEqual([])
  })

  test('while a command runs, and the command ends too', async () => {
    await using scene = await openRealScene([[reply(shell('echo begun; sleep 300; echo over'))]])
    await using running = scene.start('--json', 'build X')
    await running.event('turn-started')
    await untilRuns(scene.place, 'sleep 300')
    running.process.kill('SIGINT')
    expect(await running.ended).toMatchObject({ exitCode: 130 })
    expect(processesOf(scene.place)).toEqual([])
  })

  promise('E24', 'A signal ends a run, and nothing is left')
  test('impatiently, and nothing is left: neither codex, nor its command, nor what that sent into the background', async () => {
    await using scene = await openRealScene([
      [reply(shell('setsid sleep 304 >/dev/null 2>&1 < /dev/null & sleep 305'))],
    ])
    await using running = scene.start('--json', '--sandbox', 'danger-full-access', 'build X')
    for (const command of ['sleep 304', 'sleep 305']) await untilRuns(scene.place, command)
    expect(await endImpatiently(running)).toMatchObject({ exitCode: 130 })
    expect(processesOf(scene.place)).toEqual([])
  })

  test('impatiently, and it does not wait for a codex that takes neither an interrupt nor a SIGTERM, and leaves none', async () => {
    await using scene = await openRealScene([])
    const peer = await writePeer(
      scene.place.root,
      `if (process.argv.includes('--version')) { console.log('codex-cli 0.169.0'); process.exit(0) }
       on['turn/start'] = id => { send({ id, result: { turn: { id: TURN } } }); started(); message('Working.') }
       on['turn/interrupt'] = () => {}
       on.end = () => {}
       process.on('SIGTERM', () => {})
       setInterval(() => {}, 1000)`,
    )
    await using running = scene.start('--json', '--codex-bin', peer, 'build X')
    await running.event('item-completed', isMessage)
    const { exitCode, events } = await endImpatiently(running)
    expect(exitCode).toBe(130)
    expect(eventsOf(events, 'session-ended')).toEqual([])
    expect(processesOf(scene.place)).toEqual([])
  })
})

test('what a round leaves running in a session of its own is gone when codemachine has ended', async () => {
  await using scene = await openRealScene([round('setsid sleep 301 >/dev/null 2>&1 < /dev/null &', claimDone)])
  expect((await scene.run('--sandbox', 'danger-full-access', 'build X')).exitCode).toBe(0)
  expect(processesOf(scene.place)).toEqual([])
})
