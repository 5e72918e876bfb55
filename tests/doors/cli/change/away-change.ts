import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { reply, type ScriptStep, shell } from '../../../../src/demo/model/reply.ts'
import { type ChangeScene, type ChangeScript, outputs, THREE_TASKS, writes } from '../../../support/change-scene.ts'
import { codemachineHere } from '../../../support/in-process.ts'
import { startNight } from '../../../support/night.ts'

/** A change whose first task goes so; the second writes the limit, after what else the model plays in it. */
export const playing = (first: ScriptStep[], second: ScriptStep[] = []): ChangeScript => ({
  ...THREE_TASKS,
  executor: [
    [...first, outputs({ limit: 'It is 10.' })],
    [...second, ...writes('10')],
  ],
})

/** The local server dies in this step, the first time that it comes to it. */
export function dies(scene: () => ChangeScene): ScriptStep {
  let isDead = false
  return async () => {
    if (!isDead) await scene().local.goAway()
    isDead = true
    return reply(shell('true'))
  }
}

export const start = (scene: ChangeScene) => startNight(scene, ['change', '--auto', 'write the limit'])

export const limit = ({ place }: ChangeScene) => readFile(join(place.directory, 'limit.txt'), 'utf8')

/** Who did the tasks that a model does. */
export async function whoDid({ place }: ChangeScene): Promise<unknown[]> {
  const { stdout } = await codemachineHere(place, ['status', '--json'])
  const { tasks } = JSON.parse(stdout).session.work
  return tasks.slice(0, 2).map(({ who }: { who: unknown }) => who)
}
