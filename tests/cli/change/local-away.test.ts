import { expect } from 'vitest'
import { type ChangeScene, openRealChangeScene, PROJECT } from '../../support/change-scene.ts'
import { eventsOf } from '../../support/scene.ts'
import { describe, test } from '../../support/side-by-side.ts'
import { dies, limit, playing, start, whoDid } from './away-change.ts'

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
})
