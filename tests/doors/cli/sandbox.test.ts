import { existsSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { delimiter, join } from 'node:path'
import { expect } from 'vitest'
import type { ScriptStep } from '../../../src/demo/model/reply.ts'
import { functionCall, reply } from '../../../src/demo/model/reply.ts'
import { git } from '../../support/place.ts'
import { promise } from '../../support/promise.ts'
import { openRealScene } from '../../support/real-scene.ts'
import { claimDone, round, says } from '../../support/rounds.ts'
import { eventsOf } from '../../support/scene.ts'
import { describe, test } from '../../support/side-by-side.ts'

describe('a round can remove a folder by force and commit', () => {
  test.each(['workspace-write', 'danger-full-access'])('in %s', async sandbox => {
    await using scene = await openRealScene([
      round(
        'mkdir -p build/deep && touch build/deep/x',
        'rm -rf build',
        'echo hi > a.txt && git add a.txt && git commit -qm "Add a"',
      ),
      round(claimDone),
    ])
    const { exitCode, events } = await scene.run('--json', '--sandbox', sandbox, 'build X')
    expect(exitCode).toBe(0)
    expect(existsSync(join(scene.place.directory, 'build'))).toBe(false)
    expect(git(scene.place, 'log', '-1', '--format=%s')).toBe('Add a')
    expect(eventsOf(events, 'request-answered')).toMatchObject([
      { subject: expect.stringContaining('rm -rf build'), answer: 'accepted' },
    ])
  })
})

test('in read-only the work tree cannot be written, but the memory can, so that done can be claimed', async () => {
  await using scene = await openRealScene([
    round('echo hi > a.txt', 'echo hi > README.md', 'git commit --allow-empty -qm No', claimDone),
  ])
  expect(await scene.run('--sandbox', 'read-only', 'look at X')).toMatchObject({ exitCode: 0 })
  // Codex reports no item for a command that its sandbox has stopped.
  const outputs = scene.model.requests.slice(1, 4).map(({ lastOutputs }) => lastOutputs.join())
  expect(outputs).toEqual(Array(3).fill(expect.stringContaining('Read-only file system')))
  expect(git(scene.place, 'status', '--porcelain')).toBe('')
})

promise('D72')
test('a gate writes where the person lets the commands of codex write, and verify does, too', async () => {
  const cache = await mkdtemp('/var/tmp/codemachine-cache-')
  await using _ = { [Symbol.asyncDispose]: () => rm(cache, { recursive: true }) }
  await using scene = await openRealScene([round(`touch ${cache}/round`, claimDone)])
  const roots = `sandbox_workspace_write.writable_roots=["${cache}"]`
  const gate = `touch ${cache}/gate .git/gate`
  expect(await scene.run('-c', roots, '--verify', gate, 'build X')).toMatchObject({ exitCode: 0 })
  expect(['round', 'gate'].map(name => existsSync(join(cache, name)))).toEqual([true, true])
  expect(await scene.run('verify')).toMatchObject({ exitCode: 0 })
})

promise('B1', 'Nothing outside of the sandbox is touched by a round')
promise('E17', 'Commands stay in the sandbox, and off the network')
test('nothing outside is touched, whether it is asked for plainly, as an escalation, or by a sub-agent', async () => {
  // Not below /tmp: the sandbox leaves that writable.
  const outside = await mkdtemp('/var/tmp/codemachine-outside-')
  await using _ = { [Symbol.asyncDispose]: () => rm(outside, { recursive: true }) }
  await writeFile(join(outside, 'kept'), '')
  const run = (cmd: string, more: object = {}) => reply(functionCall('exec_command', { cmd, ...more }))
  const escalated = { sandbox_permissions: 'require_escalated' }
  const tries = [`touch ${outside}/new`, `rm -rf ${outside}`]
  await using scene = await openRealScene(
    [
      [
        ...tries.map(cmd => run(cmd)),
        ...tries.map(cmd => run(cmd, escalated)),
        ...tries.map(cmd => run(cmd, { ...escalated, justification: 'It has to be.', prefix_rule: ['rm'] })),
        reply(functionCall('spawn_agent', { message: 'touch it' }, 'multi_agent_v1')),
        request => {
          const target: string = JSON.parse(request.lastOutputs[0] ?? '{}').agent_id
          return reply(functionCall('wait_agent', { targets: [target], timeout_ms: 10_000 }, 'multi_agent_v1'))
        },
        says('That was all.'),
      ] satisfies ScriptStep[],
    ],
    {
      subAgent: request => {
        const step = [...tries.map(cmd => run(cmd)), ...tries.map(cmd => run(cmd, escalated))][request.step]
        return step ?? reply()
      },
    },
  )
  const { exitCode, events } = await scene.run('--json', '--rounds', '1', 'build X')
  expect(exitCode).toBe(3)
  expect(eventsOf(events, 'round-ended')).toMatchObject([{ outcome: { class: 'worked' } }])
  expect(scene.model.requests.filter(({ isSubAgent }) => isSubAgent)).toHaveLength(5)
  expect([existsSync(join(outside, 'kept')), existsSync(join(outside, 'new'))]).toEqual([true, false])
})

test('codex never asks lsb_release, and commands of agents and gates find the person’s own on their PATH', async () => {
  // Not below /tmp: where agents can write codex finds no program anyway.
  const outside = await mkdtemp('/var/tmp/codemachine-bin-')
  await using _ = { [Symbol.asyncDispose]: () => rm(outside, { recursive: true }) }
  const asked = join(outside, 'asked')
  // In the sandbox the file cannot be written.
  const program = `#!/bin/sh\necho asked >> ${asked} || echo 'in the sandbox'\n`
  await writeFile(join(outside, 'lsb_release'), program, { mode: 0o755 })
  await using scene = await openRealScene([round('true', 'lsb_release; echo "$PATH" > path.txt'), round(claimDone)])
  const PATH = [outside, scene.place.env.PATH].join(delimiter)
  // Codex puts a folder of its own before it.
  const gate = 'lsb_release | grep -q sandbox && [[ $PATH = *":$WANTED" ]] && [ "$PATH" = "$(cat path.txt)" ]'
  const run = scene.command(['--json', '--verify', gate, 'build X'], { env: { PATH, WANTED: PATH } })
  expect((await run.ended).events.at(-1)).toMatchObject({ outcome: { kind: 'done', verified: true } })
  expect(existsSync(asked)).toBe(false)
})

promise('E17')
describe('a command reaches the network', () => {
  test.each([
    ['not by itself', [], false],
    ['with --network', ['--network'], true],
    ['with --yolo', ['--yolo'], true],
  ] as const)('%s', async (_how, flags, reaches) => {
    let connections = 0
    const server = createServer(socket => {
      connections++
      socket.end()
    })
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    const address = server.address()
    const port = typeof address === 'object' ? address?.port : 0
    await using scene = await openRealScene([round(`exec 3<>/dev/tcp/127.0.0.1/${port}`)])
    await scene.run('--rounds', '1', ...flags, 'build X')
    server.close()
    expect(connections).toBe(reaches ? 1 : 0)
  })
})

test('what a project’s file may not ask for is had with the flag that it names', async () => {
  const settings = 'sandbox = "danger-full-access"\n[[gates]]\nrun = "true"\nnetwork = true\n'
  await using scene = await openRealScene([round(claimDone)])
  await writeFile(join(scene.place.directory, 'codemachine.toml'), settings)
  expect(await scene.run('build X')).toMatchObject({
    exitCode: 2,
    stderr: expect.stringMatching(
      /^codemachine: codemachine\.toml:1: sandbox cannot be .*--sandbox or your own config\.toml\. \(CM0203\)\n$/,
    ),
  })
  expect(await scene.run('--sandbox', 'workspace-write', 'build X')).toMatchObject({
    exitCode: 2,
    stderr: expect.stringMatching(/^codemachine: codemachine\.toml:4: gates\.network is true, .*\n$/),
  })
  const { exitCode, events } = await scene.run('--json', '--sandbox', 'danger-full-access', 'build X')
  expect(exitCode).toBe(0)
  expect(eventsOf(events, 'session-created')).toMatchObject([
    { sandbox: 'danger-full-access', gates: [{ network: true }] },
  ])
})
