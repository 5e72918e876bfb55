import { expect } from 'vitest'
import { message, type Reply, reply, turnsScript } from '../../../../src/demo/model/reply.ts'
import { at, FILE, HEAD, lay, PROMPT } from '../../../support/flow-scene.ts'
import { promise } from '../../../support/promise.ts'
import { openRealScene, type RealScene } from '../../../support/real-scene.ts'
import { eventsOf } from '../../../support/scene.ts'
import { test } from '../../../support/side-by-side.ts'

const step = (id: string, needs: string, more = '') => `
[[workflow.steps]]
agent = "writer"
id = "${id}"
needs = ${needs}
input.template = "Do ${id}.${more}"
output = { kind = "file", path = "${id}.md" }
`
const FAN = [
  HEAD,
  step('left', '[]'),
  step('right', '[]'),
  step('both', '["left", "right"]', ' {{steps.left.output}} {{steps.right.output}}'),
].join('')

/** The step that a request is for. */
const stepOf = (texts: readonly string[]) => /^Do (\w+)\./.exec(texts.at(-1) ?? '')?.[1] ?? ''

/** A scene whose model answers each step by this function; `nth`: how often it was asked for the step, from 1. */
async function sceneOf(answer: (id: string, nth: number) => Reply | Promise<Reply>): Promise<RealScene> {
  const asked = new Map<string, number>()
  const scene = await openRealScene(
    turnsScript(({ userTexts }) => () => {
      const id = stepOf(userTexts)
      asked.set(id, (asked.get(id) ?? 0) + 1)
      return answer(id, asked.get(id) ?? 0)
    }),
  )
  await lay(scene, { [FILE]: FAN, ...PROMPT })
  return scene
}

const inputs = (scene: RealScene) => scene.model.requests.map(({ userTexts }) => userTexts.at(-1) ?? '')
const RUN = ['flow', 'run', FILE, '--no-keep-awake']

promise('F36')
test.each(['SIGKILL', 'SIGINT'] as const)(
  'ended by %s while one of two steps works, the run resumes with that one alone',
  async signal => {
    const never = Promise.withResolvers<Reply>()
    await using scene = await sceneOf((id, nth) =>
      id === 'left' && nth === 1 ? never.promise : reply(message(`Said ${id}.`)),
    )
    await using run = scene.start(...RUN, '--no-mock', '--json')
    await run.event('agent-ended', ({ instance }) => instance === 'right')
    run.process.kill(signal)
    if (signal === 'SIGINT') run.process.kill(signal)
    await run.ended
    never.resolve(reply(message('Too late.')))
    const resumed = await scene.run('resume', '--json', '--no-keep-awake')
    expect({ ...resumed, stdout: '' }).toMatchObject({ exitCode: 0, stderr: '' })
    expect(inputs(scene).map(each => each.slice(0, 8))).toEqual(
      expect.arrayContaining(['Do left.', 'Do left.', 'Do right', 'Do both.']),
    )
    expect(inputs(scene).filter(each => each.startsWith('Do right'))).toHaveLength(1)
    expect(await at(scene, 'both.md')).toBe('Said both.\n')
  },
)

promise('F36')
test('a step that fails beside another ends the run, and the other one is not asked for again', async () => {
  let isDown = true
  await using scene = await sceneOf(async id => {
    if (id === 'right' && isDown) throw new Error('The model refuses this.')
    return reply(message(`Said ${id}.`))
  })
  const ran = await scene.run(...RUN, '--no-mock', '--json')
  expect(ran.exitCode).toBe(4)
  isDown = false
  const resumed = await scene.run('resume', '--json', '--no-keep-awake')
  expect({ ...resumed, stdout: '' }).toMatchObject({ exitCode: 0, stderr: '' })
  expect(inputs(scene).filter(each => each.startsWith('Do left'))).toHaveLength(1)
  expect(eventsOf(resumed.events, 'session-ended')).toMatchObject([{ outcome: { kind: 'done' } }])
})
