import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import { reply, type ScriptStep, shell } from '../../../src/demo/model/reply.ts'
import {
  type ChangeScene,
  type ChangeScript,
  openChangeScene,
  PROJECT,
  TWO_TASKS,
  writes,
} from '../../support/change-scene.ts'
import { codemachineHere } from '../../support/in-process.ts'
import { startNight } from '../../support/night.ts'
import { eventsOf } from '../../support/scene.ts'
import { describe, test } from '../../support/side-by-side.ts'

/** What the executor plays before it writes the limit. */
const playing = (...executor: ScriptStep[]): ChangeScript => ({
  ...TWO_TASKS,
  executor: [[...executor, ...writes('10')]],
})

const start = (scene: ChangeScene) => startNight(scene, ['change', '--auto', 'write the limit'])

const limit = ({ place }: ChangeScene) => readFile(join(place.directory, 'limit.txt'), 'utf8')

/** Who did the task that a model does. */
async function whoDid({ place }: ChangeScene): Promise<unknown> {
  const { stdout } = await codemachineHere(place, ['status', '--json'])
  const { tasks } = JSON.parse(stdout).session.work
  return tasks.find(({ type }: { type: string }) => type === 'ACTION').who
}

describe('a local server that is away before a task', () => {
  test('is waited for with when_away = "wait", and the task is done once it is back', async () => {
    await using scene = await openChangeScene(playing(), { files: PROJECT })
    await scene.local.goAway()
    const { run, hurryUntil } = start(scene)
    const waiting = await hurryUntil(run.event('waiting'))
    expect(waiting).toMatchObject({ reason: 'provider-away', cause: { class: 'network' } })
    expect(eventsOf(run.events, 'state-entered').at(-1)?.state).toBe('EXECUTING_TASKS.action')
    await scene.local.comeBack()
    const { exitCode } = await hurryUntil(run.ended)
    expect([exitCode, await limit(scene)]).toEqual([0, '10\n'])
    expect(scene.begun('executor').map(({ at }) => at)).toEqual(['local'])
    expect(await whoDid(scene)).toContain('qwen')
  })

  test('is done without with when_away = "remote", and the task says who did it', async () => {
    await using scene = await openChangeScene(playing(), { files: PROJECT, table: 'when_away = "remote"' })
    await scene.local.goAway()
    const { run, hurryUntil } = start(scene)
    const { exitCode, events } = await hurryUntil(run.ended)
    expect([exitCode, await limit(scene)]).toEqual([0, '10\n'])
    expect(eventsOf(events, 'warning').map(({ message }) => message)).toContainEqual(
      expect.stringContaining("Codex's default model works in its place, as when_away of local says."),
    )
    expect(scene.begun('executor').map(({ at }) => at)).toEqual(['remote'])
    expect(await whoDid(scene)).toContain('scripted')
  })

  test('ends the session with when_away = "stop", which goes on once it is back', async () => {
    await using scene = await openChangeScene(playing(), { files: PROJECT, table: 'when_away = "stop"' })
    await scene.local.goAway()
    const { run, hurryUntil } = start(scene)
    const first = await hurryUntil(run.ended)
    expect(first.exitCode).toBe(4)
    expect(eventsOf(first.events, 'session-ended')).toMatchObject([
      { outcome: { kind: 'needs-person', hint: { do: 'mend-provider', provider: 'local' } } },
    ])
    await scene.local.comeBack()
    const again = startNight(scene, ['resume'])
    const { exitCode, events } = await again.hurryUntil(again.run.ended)
    expect([exitCode, await limit(scene)]).toEqual([0, '10\n'])
    expect(eventsOf(events, 'session-ended')).toMatchObject([{ outcome: { kind: 'done' } }])
    expect(scene.begun('planner')).toHaveLength(1)
    expect(scene.begun('decomposer')).toHaveLength(1)
  })
})

describe('a local server that dies in a task', () => {
  const diesIn = (scene: () => ChangeScene): ScriptStep => {
    let isDead = false
    return async ({ headers: _ }) => {
      if (!isDead) await scene().local.goAway()
      isDead = true
      return reply(shell('true'))
    }
  }

  test('is waited for with when_away = "wait", and the task begins anew', async () => {
    await using scene = await openChangeScene(playing(diesIn(() => scene)), { files: PROJECT })
    const { run, hurryUntil } = start(scene)
    await hurryUntil(run.event('waiting', ({ reason }) => reason === 'provider-away'))
    await scene.local.comeBack()
    const { exitCode } = await hurryUntil(run.ended)
    expect([exitCode, await limit(scene)]).toEqual([0, '10\n'])
    expect(scene.asked('executor').every(({ at }) => at === 'local')).toBe(true)
  })

  test('is done without with when_away = "remote"', async () => {
    const options = { files: PROJECT, table: 'when_away = "remote"', localScript: playing(diesIn(() => scene)) }
    await using scene: ChangeScene = await openChangeScene(playing(), options)
    const { run, hurryUntil } = start(scene)
    const { exitCode } = await hurryUntil(run.ended)
    expect([exitCode, await limit(scene)]).toEqual([0, '10\n'])
    expect(scene.begun('executor').map(({ at }) => at)).toEqual(['remote', 'local'])
  })

  test('ends the session with when_away = "stop", which goes on once it is back', async () => {
    await using scene = await openChangeScene(playing(diesIn(() => scene)), {
      files: PROJECT,
      table: 'when_away = "stop"',
    })
    const { run, hurryUntil } = start(scene)
    expect((await hurryUntil(run.ended)).exitCode).toBe(4)
    await scene.local.comeBack()
    const again = startNight(scene, ['resume'])
    expect((await again.hurryUntil(again.run.ended)).exitCode).toBe(0)
    expect(await limit(scene)).toBe('10\n')
  })
})
