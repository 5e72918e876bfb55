import { expect, test } from 'vitest'
import { loadPrompt } from '../../src/base/package.ts'
import { buildScript } from '../../src/demo/build.ts'
import type { ModelRequest, Script } from '../../src/demo/model/reply.ts'
import { demoGoal, demoScript } from '../../src/demo/project.ts'

/** A request of a round of this session. */
function requestOf(conversation: number, step: number, { session = '1', goal = demoGoal, prompt = 'goal' } = {}) {
  const request: ModelRequest = {
    kind: 'turn',
    thread: 't',
    conversation,
    isSubAgent: false,
    step,
    attempt: 0,
    model: 'scripted',
    effort: null,
    developerTexts: [`${loadPrompt(prompt)} .codemachine/projects/${session}/MAIN.md`],
    userTexts: [`[begin abc]\n${goal}\n[end abc]`],
    lastOutputs: [],
    tools: [],
    headers: {},
    body: { text: '"sentences"' },
  }
  return request
}

/** The replies to the first steps of a conversation, as JSON. */
async function played(script: Script, steps: number, conversation: number, of: Parameters<typeof requestOf>[2] = {}) {
  const replies: string[] = []
  for (let step = 0; step < steps; step += 1)
    replies.push(JSON.stringify(await script(requestOf(conversation, step, of))))
  return replies
}

const ROUND_1 = 5
const ROUND_2 = 12

test('an interrupted round of the demo looks again, and goes on with the step that was interrupted', async () => {
  const script = demoScript('instant')
  await played(script, ROUND_1, 0)
  const [look, tests, run] = await played(script, 3, 1)
  expect(tests).toContain('test/links.test.js')
  expect(await played(script, 1, 2), 'interrupted again at its look').toEqual([look])
  const rest = await played(script, ROUND_2 - 1, 3)
  expect(rest.slice(0, 2)).toEqual([look, run])
  expect(rest.at(-1)).toContain('T1 and T2 are done')
  expect((await played(script, 2, 4))[1]).toContain('cat src/*.js')
})

test.each([
  ['goal', demoScript('instant'), true],
  ['build', buildScript('instant', { impossibleTask: false }), false],
])(
  'a prompt that was queued in the demo of a %s is noted and claimed, and nothing else is said',
  async (_, script, hasOwn) => {
    if (hasOwn) await played(script, 2, 0)
    const of = { session: '2', goal: 'Make it\nblue' }
    const [said, noted, plan, end] = await played(script, 4, 1, of)
    expect(said).toContain('no model reads your prompt')
    expect(noted).toContain(JSON.stringify(JSON.stringify('> Make it\n> blue').slice(1, -1)).slice(1, -1))
    expect([plan, end]).toEqual([expect.stringContaining('projects/2/tasks.json'), expect.stringContaining('NOTES.md')])
    expect((await played(script, 3, 2, of))[1]).toContain('+finite_incantatem: true')
    if (hasOwn) expect((await played(script, 2, 3))[1], 'its own round goes on').toContain('git log --oneline')
  },
)

test('the contract of a queued prompt quotes it whole, and says that a script writes no check', async () => {
  const [answer = ''] = await played(demoScript('instant'), 1, 0, { goal: 'Make it blue', prompt: 'contract' })
  expect(answer).toContain('Make it blue')
  expect(answer).toContain('not-checkable')
})

test('the demo says that its plan stays as it is', async () => {
  expect((await played(demoScript('instant'), 1, 0, { prompt: 'replan' }))[0]).toContain('the plan stays as it is')
})
