import { mkdtempSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { loadPrompt } from '../../src/base/package.ts'
import { buildScript, planText } from '../../src/demo/build.ts'
import type { ModelRequest } from '../../src/demo/model/reply.ts'

/** A work directory whose plan has these tasks done. */
async function planWith(...done: readonly string[]): Promise<string> {
  const directory = mkdtempSync(join(tmpdir(), 'build-parts-'))
  const { tasks } = JSON.parse(planText(false))
  const plan = tasks.map((task: { id: string }) => ({ ...task, done: done.includes(task.id) }))
  await mkdir(join(directory, '.codemachine/plan'), { recursive: true })
  await writeFile(join(directory, '.codemachine/plan/tasks.json'), JSON.stringify({ tasks: plan }))
  return directory
}

/** All that a main agent is made to do in one conversation, as JSON. */
async function playedBy(prompt: string, directory: string, asked: string, conversation = 0): Promise<string> {
  const script = buildScript('instant', { impossibleTask: false })
  const request: ModelRequest = {
    kind: 'turn',
    thread: 't',
    conversation,
    isSubAgent: false,
    step: 0,
    attempt: 0,
    model: 'scripted',
    effort: null,
    developerTexts: [loadPrompt(prompt)],
    userTexts: [`<cwd>${directory}</cwd>`, asked],
    lastOutputs: [],
    tools: [],
    headers: {},
    body: {},
  }
  const steps: string[] = []
  for (let step = 0; step < 20; step++) steps.push(JSON.stringify(await script({ ...request, step })))
  return steps.join('\n')
}

const delegated = (played: string) => [...new Set([...played.matchAll(/"(T\d): /g)].map(([, id]) => id))]

test('a build that was broken off goes on with the tasks that are not done, in whichever conversation', async () => {
  const half = await planWith('T1', 'T2', 'T3')
  const played = await playedBy('agents/master-mind', half, 'Go on.', 3)
  expect(delegated(played.replaceAll('\\"', '"'))).toEqual(['T4', 'T6', 'T5'])
  const rest = await planWith('T1', 'T2', 'T3', 'T4', 'T5', 'T6', 'T7')
  expect(delegated((await playedBy('agents/master-mind', rest, 'Go on.')).replaceAll('\\"', '"'))).toEqual(['T8'])
})

test('a change of plan is written into the last task that is open', async () => {
  const played = await playedBy('replan', await planWith('T8'), "Change the plan:\n\nDo 'it'")
  expect(played).toContain("A person wants: Do 'it'")
})
