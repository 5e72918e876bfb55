import { join } from 'node:path'
import { expect } from 'vitest'
import {
  applyPatch,
  functionCall,
  message,
  reasoning,
  reply,
  shell,
  updatePlan,
} from '../../../src/demo/model/reply.ts'
import { promise } from '../../support/promise.ts'
import { openRealScene, type RealScene } from '../../support/real-scene.ts'
import { round, says } from '../../support/rounds.ts'
import { eventsOf } from '../../support/scene.ts'
import { rawItem, webSearch } from '../../support/scripted-model.ts'
import { test } from '../../support/side-by-side.ts'

/** The items of a session of one round, and its lines as a person sees them, without the time. */
async function shown(scene: RealScene, rounds = 1): Promise<{ items: object[]; lines: string[] }> {
  const { events } = await scene.run('--json', '--rounds', String(rounds), 'build X')
  expect(eventsOf(events, 'round-ended')).toMatchObject(Array(rounds).fill({ outcome: { class: 'worked' } }))
  const { stdout } = await scene.run('logs')
  return {
    items: eventsOf(events, 'item-completed').map(({ item }) => item),
    lines: stdout.split('\n').map(line => line.slice('22:41:07  '.length)),
  }
}

test('each thing that codex does is an event, and a line for a person', async () => {
  const update =
    '*** Begin Patch\n*** Add File: more.txt\n+three\n*** Update File: README.md\n@@\n-# A project\n+# The project\n*** End Patch'
  await using scene = await openRealScene([
    [
      reply(
        reasoning('**Looking around**\n\nand further'),
        message('I look.', { phase: 'commentary' }),
        shell('echo hello'),
      ),
      reply(shell('echo bad >&2; exit 3')),
      reply(applyPatch('*** Begin Patch\n*** Add File: new.txt\n+one\n+two\n*** End Patch')),
      reply(shell(`apply_patch <<'EOF'\n${update}\nEOF`)),
      reply(
        updatePlan(
          [
            { step: 'Look', status: 'completed' },
            { step: 'Build', status: 'in_progress' },
          ],
          'so far',
        ),
      ),
      reply(webSearch('how to build'), functionCall('no_such_tool', { a: 1 }), functionCall('exec_command', '{broken')),
      reply(rawItem({ type: 'from_the_future', id: 'x_1' }), shell('true')),
      reply(message('All 🚀 is done.\nReally.', { phase: 'final_answer' })),
    ],
  ])
  const { items, lines } = await shown(scene)
  const path = (name: string) => join(scene.place.directory, name)
  expect(items).toMatchObject([
    { kind: 'user-message', text: expect.stringContaining('Continue with the goal.') },
    { kind: 'reasoning', text: '**Looking around**\n\nand further' },
    { kind: 'agent-message', text: 'I look.', phase: 'commentary' },
    { kind: 'command', status: 'completed', exitCode: 0, output: 'hello\n' },
    { kind: 'command', status: 'failed', exitCode: 3, output: 'bad\n' },
    {
      kind: 'file-change',
      status: 'completed',
      changes: [{ path: path('new.txt'), change: 'add', diff: 'one\ntwo\n' }],
    },
    {
      kind: 'file-change',
      changes: [
        { path: path('README.md'), change: 'update' },
        { path: path('more.txt'), change: 'add' },
      ],
    },
    { kind: 'web-search', query: 'how to build' },
    { kind: 'command', exitCode: 0 },
    { kind: 'agent-message', text: 'All 🚀 is done.\nReally.', phase: 'final-answer' },
  ])
  expect(lines.map(line => line.replace(/ in [\d.]+ m?s$/, ''))).toEqual(
    expect.arrayContaining([
      'thinks  Looking around',
      'I look.',
      '$ echo hello  → exit 0',
      '$ echo bad >&2; exit 3  → exit 3',
      '✎ new new.txt (+2)',
      '✎ README.md (+1 −1)',
      'plan  [x] Look  [>] Build',
      'web search  how to build',
      'All 🚀 is done.',
      'Really.',
    ]),
  )
})

test('a tool of an MCP server is shown with its server and how it ended', async () => {
  const server = `
    import { createInterface } from 'node:readline'
    const answer = (id, result) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, result }) + '\\n')
    const tools = ['look', 'fail'].map(name => ({ name, inputSchema: { type: 'object' }, annotations: { readOnlyHint: true } }))
    const serverInfo = { name: 'probe', version: '1' }
    createInterface({ input: process.stdin }).on('line', line => {
      const { id, method, params } = JSON.parse(line)
      if (method === 'initialize') answer(id, { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo })
      else if (method === 'tools/list') answer(id, { tools })
      else if (method === 'tools/call') answer(id, { content: [{ type: 'text', text: 'seen' }], isError: params.name === 'fail' })
      else if (id !== undefined) answer(id, {})
    })`
  const call = (tool: string) => functionCall(tool, {}, 'mcp__probe')
  const servers = `[mcp_servers.probe]\ncommand = "${process.execPath}"\nargs = ["--input-type=module", "-e", ${JSON.stringify(server)}]\n`
  await using scene = await openRealScene([[reply(call('look')), reply(call('fail')), says('Seen.')]], {
    config: servers,
  })
  const { items, lines } = await shown(scene)
  expect(items.slice(1, 3)).toMatchObject([
    { kind: 'mcp-tool-call', server: 'probe', tool: 'look', status: 'completed' },
    { kind: 'mcp-tool-call', server: 'probe', tool: 'fail', status: 'failed' },
  ])
  // One that took no whole millisecond names no time.
  expect(lines).toContainEqual(expect.stringMatching(/^tool probe\/look {2}→ completed(?: in \d.*)?$/))
  expect(lines).toContainEqual(expect.stringMatching(/^tool probe\/fail {2}→ failed/))
})

test('a sub-agent is shown, counts, and does not end the round when it ends', async () => {
  await using scene = await openRealScene(
    [
      [
        reply(functionCall('spawn_agent', { message: 'count the files' }, 'multi_agent_v1')),
        request => {
          const target: string = JSON.parse(request.lastOutputs[0] ?? '{}').agent_id
          return reply(functionCall('wait_agent', { targets: [target], timeout_ms: 10_000 }, 'multi_agent_v1'))
        },
        reply(shell('echo after')),
        says('Two files.'),
      ],
    ],
    { subAgent: says('There are two.') },
  )
  const { items, lines } = await shown(scene)
  expect(items).toMatchObject([
    { kind: 'user-message' },
    { kind: 'sub-agent', action: 'spawnAgent', prompt: 'count the files' },
    { kind: 'sub-agent', action: 'wait', status: 'completed' },
    { kind: 'command', output: 'after\n' },
    { kind: 'agent-message', text: 'Two files.' },
  ])
  expect(lines).toContain('sub-agent spawnAgent: count the files')
})

test('codex makes room in its context in mid-turn, and the round goes on', async () => {
  const usage = { input: 256_000, cachedInput: 0, output: 100, reasoning: 0 }
  await using scene = await openRealScene([[{ ...reply(shell('echo long')), usage }, ...round('echo after')]])
  const { items, lines } = await shown(scene)
  expect(items).toMatchObject([
    { kind: 'user-message' },
    { kind: 'command', output: 'long\n' },
    { kind: 'compaction' },
    { kind: 'command', output: 'after\n' },
    { kind: 'agent-message' },
  ])
  expect(lines).toContain('codex compacted its context')
})

promise('L15', 'A command that still runs when its round ends is told as one that ended with it')
promise(
  'L16',
  'The next round is told of each command that ended with its round, and of what the round had left running; the report says so, too',
)
test('a command that still runs when the round ends is an item, a line and a remark of the report, and the next round is told', async () => {
  await using scene = await openRealScene([
    [reply(shell('echo begun; exec sleep 300', { yieldMs: 250 })), reply(message('It goes on by itself.'))],
    round('true'),
  ])
  const { items, lines } = await shown(scene, 2)
  const told =
    'When the last round ended, this command was still running, so codemachine ended it: `echo begun; exec sleep 300`.'
  expect(scene.input(2)).toContain(told)
  expect(items.find(item => 'cutOffMs' in item)).toMatchObject({
    kind: 'command',
    status: 'running',
    exitCode: null,
    durationMs: null,
    output: '',
    cutOffMs: expect.any(Number),
  })
  expect(lines).toContainEqual(
    expect.stringMatching(/^\$ echo begun; exec sleep 300 {2}→ still running after .+, ended with the round$/),
  )
  expect(scene.memory('report.md')).toContain('Round 1 ended while this command still ran: echo begun; exec sleep 300')
})

promise('L16')
test('what a round has left running without a sandbox is ended with it, and the next round and the report say so', async () => {
  // Until it has left the group of the command, it ends with that.
  const leaves = `setsid sh -c 'touch left; sleep 307' > /dev/null 2>&1 < /dev/null & until [ -e left ]; do sleep 0.1; done`
  await using scene = await openRealScene([round(leaves), round('true')])
  const { events } = await scene.run('--json', '--sandbox', 'danger-full-access', '--rounds', '2', 'build X')
  expect(eventsOf(events, 'warning').filter(({ ended }) => ended !== undefined)).toMatchObject([
    { round: 1, ended: expect.arrayContaining([expect.stringContaining('sleep 307')]) },
  ])
  expect(scene.input(2)).toMatch(/The last round left this running, and codemachine ended it: `.*sleep 307/)
  expect(scene.memory('report.md')).toMatch(/Round 1 left this running, and codemachine ended it: .*sleep 307/)
})
