import { expect } from 'vitest'
import { reply, type ScriptStep, shell } from '../../../../src/demo/model/reply.ts'
import { type ChangeScene, openRealChangeScene, PROJECT } from '../../../support/change-scene.ts'
import { startNight } from '../../../support/night.ts'
import { promise } from '../../../support/promise.ts'
import { eventsOf } from '../../../support/scene.ts'
import { describe, test } from '../../../support/side-by-side.ts'
import { dies, limit, playing, start, whoDid } from './away-change.ts'

promise(
  'C65',
  'A local server that is away before a task, or dies in one, is waited for, done without, or ends the session, as its `when_away` says',
)
describe('a local server that is away before a task, and dies in the next one', () => {
  test('is waited for with when_away = "wait", and each task is done once it is back', async () => {
    await using scene: ChangeScene = await openRealChangeScene(playing([], [dies(() => scene)]), { files: PROJECT })
    await scene.local.goAway()
    const { run, hurryUntil } = start(scene)
    const isAway = ({ reason }: { reason: string }) => reason === 'provider-away'
    expect(await hurryUntil(run.event('waiting', isAway))).toMatchObject({ cause: { class: 'network' } })
    expect(eventsOf(run.events, 'state-entered').at(-1)?.state).toBe('EXECUTING_TASKS.info-gathering')
    await scene.local.comeBack()
    await hurryUntil(run.event('state-entered', ({ state }) => state === 'EXECUTING_TASKS.action'))
    const waited = run.events.length
    await hurryUntil(run.event('waiting', event => isAway(event) && run.events.indexOf(event) >= waited))
    await scene.local.comeBack()
    const { exitCode } = await hurryUntil(run.ended)
    expect([exitCode, await limit(scene)]).toEqual([0, '10\n'])
    expect(scene.asked('executor').every(({ at }) => at === 'local')).toBe(true)
    expect(await whoDid(scene)).toEqual([expect.stringContaining('qwen'), expect.stringContaining('qwen')])
  })

  test('is done without with when_away = "remote", and each task says who did it', async () => {
    const back: ScriptStep = async () => {
      await scene.local.comeBack()
      return reply(shell('true'))
    }
    await using scene: ChangeScene = await openRealChangeScene(playing([back]), {
      files: PROJECT,
      table: 'when_away = "remote"',
      // The second task is the first that begins there.
      localScript: { executor: [[dies(() => scene)]] },
    })
    await scene.local.goAway()
    const { run, hurryUntil } = start(scene)
    const { exitCode, events } = await hurryUntil(run.ended)
    expect([exitCode, await limit(scene)]).toEqual([0, '10\n'])
    expect(eventsOf(events, 'warning').map(({ message }) => message)).toContainEqual(
      expect.stringContaining("Codex's default model works in its place, as when_away of local says."),
    )
    expect(scene.begun('executor').map(({ at }) => at)).toEqual(['remote', 'remote', 'local'])
    expect(await whoDid(scene)).toEqual([expect.stringContaining('scripted'), expect.stringContaining('scripted')])
  })

  test('ends the session each time with when_away = "stop", which goes on once it is back', async () => {
    await using scene: ChangeScene = await openRealChangeScene(playing([], [dies(() => scene)]), {
      files: PROJECT,
      table: 'when_away = "stop"',
    })
    await scene.local.goAway()
    let { run, hurryUntil } = start(scene)
    const resume = async () => {
      const { exitCode, events } = await hurryUntil(run.ended)
      expect(exitCode).toBe(4)
      expect(eventsOf(events, 'session-ended')).toMatchObject([
        { outcome: { kind: 'needs-person', hint: { do: 'mend-provider', provider: 'local' } } },
      ])
      await scene.local.comeBack()
      ;({ run, hurryUntil } = startNight(scene, ['resume']))
    }
    await resume()
    expect(scene.begun('executor')).toEqual([])
    await resume()
    const { exitCode, events } = await hurryUntil(run.ended)
    expect([exitCode, await limit(scene)]).toEqual([0, '10\n'])
    expect(eventsOf(events, 'session-ended')).toMatchObject([{ outcome: { kind: 'done' } }])
    expect(scene.begun('planner')).toHaveLength(1)
    expect(scene.begun('decomposer')).toHaveLength(1)
  })
})
