import { expect } from 'vitest'
import type { ScriptStep } from '../../../src/demo/model/reply.ts'
import { reply, shell } from '../../../src/demo/model/reply.ts'
import { processesOf, untilRuns } from '../../support/processes.ts'
import { promise } from '../../support/promise.ts'
import { openRealScene } from '../../support/real-scene.ts'
import { claimDone, held, round, says } from '../../support/rounds.ts'
import { eventsOf } from '../../support/scene.ts'
import { describe, test } from '../../support/side-by-side.ts'

const never = new Promise<never>(() => {})
/** A round that runs until it is ended. */
const endless: ScriptStep[] = [held(never)]
const isMessage = ({ item }: { item: { kind: string } }) => item.kind === 'agent-message'

describe('a person ends a run', () => {
  promise('R15', 'A run without a terminal on its streams is not ended by a log-off')
  test('but not by closing a terminal that none of its streams is on, as after nohup', async () => {
    const gate = Promise.withResolvers<void>()
    await using scene = await openRealScene([[held(gate.promise), ...round(claimDone)]])
    await using running = scene.start('--json', 'build X')
    await running.event('turn-started')
    running.process.kill('SIGHUP')
    // What is answered has been done after the signal.
    expect(await scene.run('steer', 'mind the gap')).toMatchObject({ exitCode: 0 })
    gate.resolve()
    const { exitCode, events } = await running.ended
    expect(exitCode).toBe(0)
    expect(eventsOf(events, 'session-ended')).toMatchObject([{ outcome: { kind: 'done' } }])
  })

  test('while it waits for a server that is busy', async () => {
    await using scene = await openRealScene([
      [{ kind: 'status', status: 429, body: { error: { message: 'slow down' } } }],
    ])
    await using running = scene.start('--json', 'build X')
    await running.event('waiting')
    running.process.kill('SIGTERM')
    expect(await running.ended).toMatchObject({ exitCode: 143 })
  })
})

test('a second codemachine in the same directory is refused with exit code 6, and leaves the first alone', async () => {
  const gate = Promise.withResolvers<void>()
  await using scene = await openRealScene([[held(gate.promise), ...round(claimDone)]])
  await using running = scene.start('--json', 'build X')
  await running.event('turn-started')
  const second = await scene.run('build Y')
  expect(second.exitCode).toBe(6)
  expect(second.stderr).toMatch(
    new RegExp(
      `^codemachine: Another codemachine \\(pid ${running.pid}\\) is running here since .* \\(CM0601\\)\n {2}codemachine status .*\\n$`,
    ),
  )
  gate.resolve()
  expect(await running.ended).toMatchObject({ exitCode: 0 })
})

describe('what a round leaves running', () => {
  promise('R8', 'What a killed run left running is ended by the next start')
  test('when codemachine is killed is ended by the next start, which says so', async () => {
    await using scene = await openRealScene([
      // Codex ends the process group of a command with it, so the shell waits until this has left the group.
      [reply(shell('up=$(setsid sh -c "echo up; exec sleep 302 >/dev/null 2>&1 < /dev/null" &)')), ...endless],
      round(claimDone),
    ])
    await using running = scene.start('--json', '--sandbox', 'danger-full-access', 'build X')
    await running.event('item-completed', isMessage)
    await untilRuns(scene.place, 'sleep 302')
    running.process.kill('SIGKILL')
    await running.ended
    expect(processesOf(scene.place)).toContain('sleep 302')
    const { exitCode, events } = await scene.run('resume', '--json')
    expect(exitCode).toBe(0)
    expect(eventsOf(events, 'warning').map(each => each.message)).toContainEqual(
      expect.stringMatching(/^Ended what an earlier run had left running: sleep 302 \(\d+\)\.$/),
    )
    expect(processesOf(scene.place)).toEqual([])
  })

  test('between the rounds does not stop them', async () => {
    await using scene = await openRealScene([round('sleep 303 & disown'), [says('Nothing to do.')], round(claimDone)])
    expect(await scene.run('--rounds', '3', 'build X')).toMatchObject({ exitCode: 0 })
    expect(processesOf(scene.place)).toEqual([])
  })
})

describe('what a round leaves running', () => {
  test.each(['sleep 301 &', 'nohup sleep 301 >/dev/null 2>&1 &'])(
    '%s is gone when codemachine has ended',
    async command => {
      await using scene = await openRealScene([round(command, claimDone)])
      expect((await scene.run('--sandbox', 'danger-full-access', 'build X')).exitCode).toBe(0)
      expect(processesOf(scene.place)).toEqual([])
    },
  )
})
