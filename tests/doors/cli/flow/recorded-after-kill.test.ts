import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openRealScene } from '../../../support/real-scene.ts'
import { held, says } from '../../../support/rounds.ts'

const FLOW = `name = "two"
[agents.writer]
prompt = "writer.md"
[workflow]
  [[workflow.steps]]
  agent = "writer"
  description = "First"
  [[workflow.steps]]
  agent = "writer"
  description = "Second"
  [workflow.steps.input]
  template = "After {{steps.first.output}}"
`

test('a run that is killed in a step and goes on leaves whole recordings, which are replayed', async () => {
  const never = Promise.withResolvers<void>()
  await using scene = await openRealScene([[says('One.')], [held(never.promise)], [says('Two.')]])
  const { directory } = scene.place
  const debug = (name: string) => readFile(join(directory, '.codex-flow/runtime/debug', name), 'utf8')
  await mkdir(join(directory, 'sub'))
  await writeFile(join(directory, 'two.workflow.toml'), FLOW)
  await writeFile(join(directory, 'writer.md'), 'You write plainly.\n')
  const typed = ['flow', 'run', 'two.workflow.toml', '--no-keep-awake']
  await using run = scene.start(...typed, '--no-mock', '--json')
  await run.event('item-completed', ({ item }) => item.kind === 'agent-message' && item.text === 'Working.')
  await expect.poll(() => debug('2-second.json').catch(() => ''), { timeout: 30_000 }).toContain('Working.')
  run.process.kill('SIGKILL')
  await run.ended
  never.resolve()
  const [first] = await Promise.all([debug('1-first.json')])
  const resumed = await scene.run('resume', '--plain')
  expect({ ...resumed, stdout: '' }).toMatchObject({ exitCode: 0, stderr: '' })
  expect(await debug('1-first.json')).toBe(first)
  const second = (await debug('2-second.json')).trimEnd().split('\n')
  expect(second.filter(line => line.includes('codemachine.recording'))).toHaveLength(1)
  expect(second.at(-1)).toContain('codemachine.result')
  const replayed = await scene.run(...typed, '--mock', '--pace', '0', '--strict', '--plain')
  expect({ ...replayed, stdout: '' }).toMatchObject({ exitCode: 0, stderr: '' })
  expect(replayed.stdout).toMatch(/One\.[\s\S]*Working\.[\s\S]*Two\./)
  expect(await readFile(join(directory, '.codex-flow/runtime/memory/2-second-agent-result.md'), 'utf8')).toBe('Two.\n')
})
