import { spawn } from 'node:child_process'
import { appendFileSync } from 'node:fs'
import { expect } from 'vitest'
import { functionCall, message, reply, shell } from '../../../src/demo/model/reply.ts'
import { findRealCodex } from '../../support/find-real-codex.ts'
import { promise } from '../../support/promise.ts'
import { openRealScene, type RealScene } from '../../support/real-scene.ts'
import { claimDone, held, round, says } from '../../support/rounds.ts'
import { eventsOf } from '../../support/scene.ts'
import { describe, test } from '../../support/side-by-side.ts'
import { openClient, serverInConfig, shellCall } from './mcp-client.ts'

/** Runs codex itself, as a person has it work on one thing, and resolves with what it prints. */
async function runCodex({ place }: RealScene, prompt: string): Promise<string> {
  const { path } = await findRealCodex()
  const args = ['exec', '--json', '--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox', prompt]
  const child = spawn(path, args, { cwd: place.directory, env: place.env, stdio: ['ignore', 'pipe', 'ignore'] })
  let printed = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    printed += text
  })
  const { promise, resolve } = Promise.withResolvers<string>()
  child.once('close', () => resolve(printed))
  return await promise
}

const call = (name: string, args: object) => reply(functionCall(name, args, 'mcp__codemachine'))

promise('O120')
promise('O125')
test('codex itself is the client: it starts a session, waits for it and reads its report; the rounds of that see no such tool', async () => {
  await using scene = await openRealScene([
    [
      call('start_session', { goal: 'build X', limits: { rounds: 3 } }),
      call('wait_for', { until: ['ended'] }),
      call('report', {}),
      reply(message('It is done.')),
    ],
    [call('steer', { text: 'Done already.' }), ...round(claimDone)],
    round(claimDone),
  ])
  appendFileSync(`${scene.place.codexHome}/config.toml`, `\n${serverInConfig(scene.place)}`)
  const printed = await runCodex(scene, 'Have it built.')
  const results = printed
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line).item)
    .filter(item => item?.type === 'mcp_tool_call' && item.status !== 'in_progress')
  expect(results.map(({ tool, status }) => [tool, status])).toEqual([
    ['start_session', 'completed'],
    ['wait_for', 'completed'],
    ['report', 'completed'],
  ])
  const [started, waited, report] = results.map(({ result }) => result.structured_content)
  expect(started.session).toMatch(/^\d{8}_1$/)
  expect(waited).toMatchObject({ happened: 'ended', session: { id: started.session, outcome: 'done' } })
  expect(report.text).toContain('build X')
  const toolsOf = (conversation: number) =>
    scene.model.requests.find(each => each.conversation === conversation)?.tools.filter(name => /^mcp__/.test(name))
  expect(toolsOf(0)).toContain('mcp__codemachine.start_session')
  expect(toolsOf(1)).toEqual([])
  const outputs = scene.model.requests.filter(each => each.conversation === 1).flatMap(each => each.lastOutputs)
  expect(outputs[0]).toContain('unsupported call')
  const { events } = await scene.run('logs', '--json')
  expect(eventsOf(events, 'steered')).toEqual([])
})

promise(
  'O125',
  'An agent inside a round can do nothing over MCP, with its mark and without, in the sandbox and below a round without one',
)
describe('an agent inside a round that starts the server is refused in one sentence, with its mark and without', () => {
  const REFUSED = 'This codemachine serves no agent inside a round of a session, and counts as one: '
  const marked = /bears the mark of the codemachine \(pid \d+\)|was started below the codemachine/
  const cases = {
    'workspace-write': [
      { through: '', why: marked },
      { through: 'env -u CODEMACHINE_MARK', why: marked },
      // Other records, in which nothing runs: it cannot write there.
      { through: 'env -u CODEMACHINE_MARK CODEMACHINE_HOME=/var/tmp', why: /cannot write into/ },
    ],
    'danger-full-access': [
      { through: 'env -u CODEMACHINE_MARK', why: /was started below the codemachine \(pid \d+\)/ },
    ],
  }
  for (const [sandbox, started] of Object.entries(cases)) {
    test(`in ${sandbox}`, async () => {
      const asks = started.map(({ through }) => shellCall('queue_add', { prompt: 'Something else.' }, through))
      await using scene = await openRealScene([
        [...asks.map(asked => reply(shell(asked, { yieldMs: 60_000 }))), says('Asked.')],
      ])
      const { exitCode } = await scene.run('--rounds', '1', '--sandbox', sandbox, 'build X')
      expect(exitCode).toBe(3)
      const outputs = scene.model.requests.flatMap(each => each.lastOutputs).filter(text => text.includes('"id":3'))
      expect(outputs).toHaveLength(started.length)
      for (const [index, { why }] of started.entries()) {
        expect(outputs[index]).toContain(REFUSED)
        expect(outputs[index]).toMatch(why)
        expect(outputs[index]).toContain('"isError":true')
      }
      expect((await scene.run('queue', 'list')).stdout).toContain('The queue is empty')
    })
  }
})

promise('O125')
test('a process that was let go of is known by the mark of who started it', async () => {
  const gate = Promise.withResolvers<void>()
  await using scene = await openRealScene([[held(gate.promise), says('Over.')]])
  await using running = scene.start('--json', '--rounds', '1', 'build X')
  await running.event('turn-started')
  await using outside = await openClient(scene.place)
  expect((await outside.call('status')).value).toMatchObject({ runs: true })
  const key = scene.records().split('/').at(-1)
  const mark = `${key}/${running.pid}/-/1`
  await using inside = await openClient(scene.place, { env: { CODEMACHINE_MARK: mark } })
  expect((await inside.client.listTools()).tools).toEqual([])
  expect((await inside.call('status')).problem).toContain(`bears the mark of the codemachine (pid ${running.pid})`)
  expect((await inside.call('stop', { now: true })).problem).toContain('serves no agent inside a round')
  await expect(inside.client.listResources()).rejects.toThrow('serves no agent inside a round')
  gate.resolve()
  await running.ended
  // The run is over: what it had started is nobody's any more.
  expect((await inside.call('status')).value).toMatchObject({ runs: false })
})
