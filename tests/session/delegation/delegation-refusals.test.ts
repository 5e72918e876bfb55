import { existsSync } from 'node:fs'
import { symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { SessionEvent } from '../../../src/core/events/events.ts'
import { readRunAgent } from '../../../src/core/shapes/tools.ts'
import { ofType } from '../../support/played-session.ts'
import { promise } from '../../support/promise.ts'
import { created, FIRST_AT } from '../../support/session-events.ts'
import { forever, openScene, until } from './delegation-scene.ts'

describe('nothing is started, and whoever asked is told why, for paths', () => {
  test.each([
    ['that are absolute', '/etc', 'absolute'],
    ['of another drive', 'C:\\work', 'absolute'],
    ['that lead out', 'src/../../x', 'leads out'],
    ['that lead through a link', 'link/deep', 'through a link (link)'],
    ['of git', 'src/.GIT', 'a folder of git or codemachine'],
    ['of codemachine', '.codemachine/plan', 'a folder of git or codemachine'],
    ['that are patterns', 'src/**', 'a pattern'],
    ['that are files', 'README.md', 'is a file'],
    ['that would be files', 'src/index.ts', 'looks like a file'],
    ['with characters that no path has', 'src/\u0000', 'characters'],
    ['that are empty', ' ', 'is empty'],
  ])('%s', async (_which, path, expected) => {
    await using scene = await openScene()
    await symlink('/tmp', join(scene.directory, 'link'))
    await writeFile(join(scene.directory, 'README.md'), '')
    const answer = await scene.ask('a', 'T1: Go.', { paths: ['docs', path] })
    expect(answer).toMatchObject({ success: false, status: 'refused' })
    expect(answer.text).toContain(expected)
    expect(scene.events()).toEqual([])
    expect(existsSync(join(scene.directory, 'docs'))).toBe(false)
  })
})

describe('nothing is started, and whoever asked is told why', () => {
  test.each([
    ['for an agent that there is not', 'nobody', 'T1: Go.', 'There is no agent "nobody".'],
    ['for a task that says nothing', 'a', ' \n', 'The task is empty; say what to do.'],
    ['for a task of 300 KB', 'a', 'ä'.repeat(150_000), 'larger than 256 KiB'],
  ])('%s', async (_when, agent, task, expected) => {
    await using scene = await openScene()
    expect((await scene.ask(agent, task)).text).toContain(expected)
    expect([scene.events(), scene.prepared]).toEqual([[], []])
  })

  test('when twenty requests wait already', async () => {
    await using scene = await openScene({ plays: { a: until(forever) } })
    const asked = Array.from({ length: 21 }, () => scene.ask('a', 'Go.'))
    await scene.journaled('agent-started')
    expect((await scene.ask('a', 'Go.')).text).toContain('20 requests wait already')
    await scene.delegation.end()
    expect((await Promise.all(asked)).filter(({ status }) => status === 'refused')).toHaveLength(20)
  })

  test.each([null, 'thread-7'])(
    'for whoever asks from the sandbox and is none of those that work: %s',
    async thread => {
      await using scene = await openScene({ plays: { a: until(forever) } })
      const asked = scene.ask('a', 'T1: Go.', { paths: ['src'] })
      await scene.journaled('agent-started')
      const from = { door: 'command-line', thread, paths: ['server'] } as const
      expect(await scene.ask('b', 'T2: Go.', from)).toMatchObject({
        status: 'refused',
        text: expect.stringContaining('does not know who asks'),
      })
      expect(await scene.ask('b', 'T2: Go.', { ...from, isOutside: true })).toMatchObject({ success: true })
      expect(await scene.ask('b', 'T2: Go.', { ...from, thread: 'main' })).toMatchObject({ success: true })
      await scene.delegation.end()
      await asked
    },
  )

  test('while no round runs, and while it comes to its end', async () => {
    await using between = await openScene({ before: [] })
    expect((await between.ask('a', 'T1: Go.')).text).toContain('No round of the session runs just now')
    await using paused = await openScene({ before: [{ type: 'paused' }] })
    expect((await paused.ask('a', 'T1: Go.')).text).toContain(
      'is paused, so no agent is started. To let it go on: codemachine unpause',
    )
    const shown: SessionEvent[] = [
      { ...created(), template: 'build', asksPlan: true },
      { type: 'plan-ready', round: 1, tasks: [{ id: 'T1', name: 'Do T1', phase: 'Building' }], agents: [] },
      {
        type: 'decision-asked',
        id: 'plan',
        title: 'Start?',
        body: '',
        choices: [{ id: 'accept', label: 'Start' }],
        default: null,
        until: new Date(FIRST_AT).toISOString(),
      },
    ]
    await using plan = await openScene({ before: shown })
    expect((await plan.ask('a', 'T1: Go.')).text).toContain('To have it carried out: codemachine decide')
    await using scene = await openScene()
    scene.log.emit({ type: 'winding-down', round: 1, limit: 'time', graceMs: 1 })
    expect((await scene.ask('a', 'T1: Go.')).text).toContain('comes to its end')
  })
})

test('a request counts for the tasks of the plan that it names at its beginning, and not for those that it mentions', async () => {
  await using scene = await openScene()
  const named = async (task: string) => {
    const before = scene.events().length
    const { text } = await scene.ask('a', task)
    const begun = ofType(scene.events().slice(before), 'agent-started')[0]
    return [begun?.tasks, text.includes('this counts for none')]
  }
  expect(await named('T1, T31.2 and T2.: Go.\nT9')).toEqual([['T1', 'T31.2', 'T2'], false])
  expect(await named('\n  T31: Go.')).toEqual([['T31'], false])
  expect(await named('XT1 T1-b t1 T3 T10\nT1')).toEqual([[], true])
})

promise('M8', 'An agent gets a task no more often than it may fail')
test('an agent that is given a task once more than may fail is not started, and the task is parked', async () => {
  await using scene = await openScene({ atOnce: 1 })
  for (let attempt = 1; attempt <= 5; attempt++)
    expect(await scene.ask('a', 'T1: Go.')).toMatchObject({ success: true })
  expect(scene.log.state.taskPlan?.tasks[0]).toMatchObject({ failures: 4, parked: null })
  const sixth = await scene.ask('a', 'T1: Go.')
  expect(sixth).toMatchObject({
    status: 'refused',
    text: 'T1 is parked now: it failed 5 times. Continue with the others.',
  })
  expect(scene.events().at(-1)).toMatchObject({ type: 'task-judged', task: 'T1', name: 'Do T1', verdict: 'parked' })
  expect(scene.log.state.taskPlan?.tasks[0]).toMatchObject({ failures: 5 })
  const other = await scene.ask('b', 'T2 and T1: Go.')
  expect(other.text).toMatch(/^T1 is parked, and nobody works on it any more: It was worked on 5 times/)
  expect(ofType(scene.events(), 'agent-started')).toHaveLength(5)
  expect(ofType(scene.events(), 'task-judged')).toHaveLength(1)
})

test('a task that is done can be looked at again, however often it was given', async () => {
  await using scene = await openScene()
  for (let attempt = 1; attempt <= 5; attempt++) await scene.ask('a', 'T1: Go.')
  const judged = { type: 'task-judged', round: 1, task: 'T1', name: 'Do T1', phase: null, detail: null } as const
  scene.log.emit({ ...judged, verdict: 'done' })
  expect(await scene.ask('a', 'T1: Test it once more.')).toMatchObject({ success: true })
})

describe('a call of run_agent', () => {
  test.each([
    [
      { agent: ' a ', task: 'T1' },
      { agent: 'a', task: 'T1', paths: null },
    ],
    [
      { agent: 'a', task: 'T1', paths: [] },
      { agent: 'a', task: 'T1', paths: null },
    ],
    [
      { agent: 'a', task: 'T1', paths: ['src'], more: 1 },
      { agent: 'a', task: 'T1', paths: ['src'] },
    ],
    [{ agent: 'a' }, { problem: '`task` is missing. No agent was started; call it again.' }],
    [{ agent: 1, task: 'T1' }, { problem: expect.stringContaining('`agent` is wrong: use the name of an agent.') }],
    [{ agent: 'a', task: 'T1', paths: 'src' }, { problem: expect.stringContaining('`paths` is wrong: use a list') }],
    ['a', { problem: expect.stringContaining('an object of `agent`') }],
  ])('%j', (args, expected) => {
    expect(readRunAgent(args)).toEqual(expected)
  })
})
