import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import { reply, type ScriptStep, shell } from '../../../src/demo/model/reply.ts'
import {
  type ChangeScene,
  type ChangeScript,
  openRealChangeScene,
  outputs,
  PROJECT,
  THREE_TASKS,
  writes,
} from '../../support/change-scene.ts'
import { codemachineHere } from '../../support/in-process.ts'
import { startNight } from '../../support/night.ts'
import { eventsOf } from '../../support/scene.ts'
import { describe, test } from '../../support/side-by-side.ts'

/** A change whose first task goes so; the second writes the limit, after what else the model plays in it. */
const playing = (first: ScriptStep[], second: ScriptStep[] = []): ChangeScript => ({
  ...THREE_TASKS,
  executor: [
    [...first, outputs({ limit: 'It is 10.' })],
    [...second, ...writes('10')],
  ],
})

/** The local server dies in this step, the first time that it comes to it. */
function dies(scene: () => ChangeScene): ScriptStep {
  let isDead = false
  return async () => {
    if (!isDead) await scene().local.goAway()
    isDead = true
    return reply(shell('true'))
  }
}

const start = (scene: ChangeScene) => startNight(scene, ['change', '--auto', 'write the limit'])

const limit = ({ place }: ChangeScene) => readFile(join(place.directory, 'limit.txt'), 'utf8')

/** Who did the tasks that a model does. */
async function whoDid({ place }: ChangeScene): Promise<unknown[]> {
  const { stdout } = await codemachineHere(place, ['status', '--json'])
  const { tasks } = JSON.parse(stdout).session.work
  return tasks.slice(0, 2).map(({ who }: { who: unknown }) => who)
}

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
