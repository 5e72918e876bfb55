import { expect } from 'vitest'
import { message, type Reply, reply, turnsScript } from '../../../../src/demo/model/reply.ts'
import { at, FILE, HEAD, lay, PROMPT } from '../../../support/flow-scene.ts'
import { promise } from '../../../support/promise.ts'
import { openRealScene, type RealScene } from '../../../support/real-scene.ts'
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
  '[defaults]\nmax_parallel = 3\n',
  step('left', '[]'),
  step('right', '[]'),
  step('top', '[]'),
  step('all', '["left", "right"]', ' {{steps.left.output}} {{steps.right.output}} {{steps.top.output}}'),
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

promise('E5')
promise(
  'F36',
  'Steps that name what they need work side by side, at most as many as the file says; what has ended stays done when the others fail, are stopped or killed',
)
test('three steps ask the model at the same time, a fourth one after them, and a replay plays all of them', async () => {
  const open = new Set<string>()
  const together = Promise.withResolvers<void>()
  await using scene = await sceneOf(async id => {
    open.add(id)
    // None is answered before all three have been asked.
    if (open.size === 3) together.resolve()
    if (id !== 'all') await together.promise
    return reply(message(`Said ${id}.`))
  })
  expect((await scene.run('flow', 'show', FILE)).stdout).toContain('  needs     left, right\n')
  const dry = await scene.run(...RUN, '--dry-run')
  expect(dry.stdout).toContain('  needs no other step\n')
  const ran = await scene.run(...RUN, '--no-mock', '--plain')
  expect({ ...ran, stdout: '' }).toMatchObject({ exitCode: 0, stderr: '' })
  expect(ran.stdout).toMatch(/Step 1\/4: left[\s\S]*agent right starts: Do right\.[\s\S]*agent right completed/)
  expect(inputs(scene).sort()).toEqual([
    expect.stringMatching(/^Do all\. Said left\. Said right\. Said top\./),
    'Do left.',
    'Do right.',
    'Do top.',
  ])
  const files = ['left', 'right', 'top', 'all'].map(each => at(scene, `${each}.md`))
  expect(await Promise.all(files)).toEqual(['left', 'right', 'top', 'all'].map(each => `Said ${each}.\n`))
  expect(scene.recorded('rounds/001-right.ndjson')).toContain('Said right.')
  const replayed = await scene.run(...RUN, '--pace', '0', '--strict', '--plain')
  expect({ ...replayed, stdout: '' }).toMatchObject({ exitCode: 0, stderr: '' })
  expect(replayed.stdout).toMatch(/Said left\.[\s\S]*Said right\.[\s\S]*Said top\.[\s\S]*Said all\./)
  expect(scene.model.requests).toHaveLength(4)
})
