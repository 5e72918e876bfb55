import { expect } from 'vitest'
import type { Recorded } from '../../../src/core/events/events.ts'
import { roundsScript, type ScriptStep } from '../../../src/demo/model/reply.ts'
import { agentCommand } from '../../engines/acp/acp-agent.ts'
import { makePart, openSmallBuild, planOf, UNATTENDED } from '../../support/build-scene.ts'
import { cuts, openRealChangeScene, PROJECT, plans, TASKS, TWO_TASKS, writes } from '../../support/change-scene.ts'
import { processesOf } from '../../support/processes.ts'
import { promise } from '../../support/promise.ts'
import { openRealScene } from '../../support/real-scene.ts'
import { says } from '../../support/rounds.ts'
import { eventsOf, findIn, type Scene, writePersonSettings } from '../../support/scene.ts'
import { startScriptedModel } from '../../support/scripted-model.ts'
import { test } from '../../support/side-by-side.ts'
import { GREETING, openRealTeamScene, tests } from '../../support/team-scene.ts'

// Codex does the rest, with a scripted model of its own.

const otherModel = (...conversations: readonly (readonly ScriptStep[])[]) =>
  startScriptedModel({ script: roundsScript(conversations.map(each => [...each])) })

const mine = (url: string) =>
  `[engines.mine]\ncommand = ${JSON.stringify(agentCommand(url))}\nnetwork = ["127.0.0.1"]\n`

/** Which engine ran each kind of round, in the order of their beginnings. */
const enginesOf = (events: readonly Recorded[]) =>
  eventsOf(events, 'round-started').map(({ part, engine }) => `${part} ${engine}`)

const certificateOf = ({ place }: Scene) => JSON.parse(findIn(place, []).recorded('done.json'))

promise('E42', 'A change, a team and a build end done where another engine has one of their roles')
test('a change whose executor is another engine ends done, and the rest of it runs on codex', async () => {
  await using other = await otherModel(writes('10'))
  await using scene = await openRealChangeScene(TWO_TASKS, {
    files: PROJECT,
    executor: false,
    settings: () => `[change]\nexecutor_engine = "mine"\n${mine(other.url)}`,
  })
  const typed = ['change', '--auto', '--verify', 'sh check.sh', '--json', 'write', 'the', 'limit']
  const { exitCode, stderr, events } = await scene.run(...typed)
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
  expect(eventsOf(events, 'session-ended')[0]?.outcome).toMatchObject({ kind: 'done' })
  expect(enginesOf(events)).toEqual(['plan codex', 'decompose codex', 'act mine', 'summary codex'])
  expect(certificateOf(scene).engines).toMatchObject({ rounds: { codex: 3, mine: 1 } })
  expect(processesOf(scene.place)).toEqual([])
})

promise('E42')
test('a change whose planner is another engine ends done, and codex carries it out', async () => {
  const tasks = TASKS.slice(1).map(each => ({ ...each, inputs: {} }))
  await using other = await otherModel([plans()], [cuts(...tasks)], [says('The limit is 10 now.')])
  await using scene = await openRealChangeScene(TWO_TASKS, {
    files: PROJECT,
    executor: false,
    settings: () => mine(other.url),
  })
  const typed = ['change', '--auto', '--planner-engine', 'mine', '--json', 'write', 'the', 'limit']
  const { exitCode, stderr, events } = await scene.run(...typed)
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
  expect(eventsOf(events, 'session-ended')[0]?.outcome).toMatchObject({ kind: 'done' })
  expect(enginesOf(events)).toEqual(['plan mine', 'decompose mine', 'act codex', 'summary mine'])
})

promise('E42')
test('a team whose worker is another engine ends done, with a start script that has run', async () => {
  const { 1: first = [], 2: second = [], 3: third = [] } = GREETING.worker
  await using other = await otherModel(...first, ...second, ...third, [tests('./start.sh')])
  await using scene = await openRealTeamScene(GREETING, { person: mine(other.url) })
  const { exitCode, stderr, events } = await scene.run(
    ...['team', 'A greeting!', '--yes', '--json', '--no-keep-awake', '--worker-engine', 'mine'],
  )
  expect({ exitCode, stderr }).toMatchObject({ exitCode: 0 })
  expect(eventsOf(events, 'session-ended')[0]?.outcome).toMatchObject({ kind: 'done' })
  expect(enginesOf(events)).toEqual(['plan codex', ...Array(3).fill('work mine'), 'test mine', 'review codex'])
  expect(JSON.parse(scene.file('PROJECT_INFO.json')).how_to_test[0].ran).toMatch(/^ran here: exit 0/)
})

promise('E42')
test('a build one of whose agents has another engine ends done, and its certificate says so', async () => {
  await using other = await otherModel([makePart('back'), says('The back is made.')])
  await using scene = await openSmallBuild(() => ({}), openRealScene)
  await writePersonSettings(scene.place, `[agents.backend-dev]\nengine = "mine"\n${mine(other.url)}`)
  const { exitCode, stderr, events } = await scene.run('start', ...UNATTENDED)
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
  expect(planOf(scene).map(({ done }) => done)).toEqual([true, true])
  const calls = eventsOf(events, 'agent-started').map(({ agent, engine = 'codex' }) => `${agent} ${engine}`)
  expect(calls.toSorted()).toEqual(['backend-dev mine', 'frontend-dev codex'])
  expect(certificateOf(scene).engines).toMatchObject({ agents: { mine: 1 }, reached: { mine: ['127.0.0.1'] } })
})
