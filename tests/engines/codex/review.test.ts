import { existsSync, mkdtempSync } from 'node:fs'
import { mkdir, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { REVIEW_SCHEMA } from '../../../src/core/rules/review.ts'
import { functionCall, message, reply, roundsScript, type ScriptStep, shell } from '../../../src/demo/model/reply.ts'
import { makePlace } from '../../support/place.ts'
import { says } from '../../support/rounds.ts'
import { startScriptedModel } from '../../support/scripted-model.ts'
import { openEngine, THREAD } from './open-engine.ts'

const asksSubAgent: ScriptStep[] = [
  reply(functionCall('spawn_agent', { message: 'Help.' }, 'multi_agent_v1')),
  ({ lastOutputs }) =>
    reply(functionCall('wait_agent', { targets: [JSON.parse(lastOutputs[0] ?? '').agent_id] }, 'multi_agent_v1')),
]

describe.each(['workspace-write', 'danger-full-access', 'read-only'] as const)(
  'a reviewer of a session in %s',
  sandbox => {
    test('reads, and can write nowhere, not even its memory, and reach nothing', async () => {
      const outside = mkdtempSync(join(tmpdir(), 'codemachine-test-outside-'))
      await using listener = await listen()
      const tries = [
        'cat README.md',
        'touch x',
        'touch .codemachine/x',
        `touch ${outside}/x`,
        'mkdir build && rm -rf build',
        'rm -f README.md',
        `apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: patched.txt\n+b\n*** End Patch\nEOF`,
        `bash -c 'echo hello > /dev/tcp/127.0.0.1/${listener.port}'`,
      ]
      await using model = await startScriptedModel({
        script: roundsScript(
          [[...tries.map(each => reply(shell(each, { login: false }))), ...asksSubAgent, says('{}')]],
          {
            subAgent: ({ step }) => reply(step === 0 ? shell('touch sub') : message('Helped.')),
          },
        ),
      })
      await using place = await makePlace(model.codexConfig('scripted'))
      await mkdir(join(place.directory, '.codemachine'))
      const { engine, play } = await openEngine({ directory: place.directory, env: place.env, sandbox })
      try {
        const played = play(engine.prepare({ ...THREAD, readOnly: true }))
        expect(await played.outcome).toEqual({ class: 'worked', message: null })
      } finally {
        await engine.close()
      }
      const own = model.requests.filter(({ isSubAgent }) => !isSubAgent)
      const outputs = own.slice(1).map(request => request.lastOutputs[0] ?? '')
      expect(outputs[0]).toContain('# A project')
      for (const [at, attempt] of tries.entries()) {
        if (at > 0) expect(outputs[at], attempt).toMatch(/read-only|rejected|not permitted|Permission denied/i)
      }
      for (const file of ['x', '.codemachine/x', 'build', 'patched.txt', 'sub']) {
        expect(existsSync(join(place.directory, file)), file).toBe(false)
      }
      expect(existsSync(join(place.directory, 'README.md'))).toBe(true)
      expect(existsSync(join(outside, 'x'))).toBe(false)
      expect(listener.connections()).toBe(0)
      expect(model.requests.filter(({ isSubAgent }) => isSubAgent)).toHaveLength(2)
      await rm(outside, { recursive: true })
    })
  },
)

test('the model is asked for an answer in the shape of a review, in a turn that has one', async () => {
  await using model = await startScriptedModel({ script: roundsScript([[says('{}')], [says('Done.')]]) })
  await using place = await makePlace(model.codexConfig('scripted'))
  const { engine, play } = await openEngine({ directory: place.directory, env: place.env })
  const quiet = { round: 1, input: 'Review it.', onEvent() {}, onLive() {}, onRecord() {} }
  try {
    const reviewer = engine.prepare({ ...THREAD, readOnly: true })
    await reviewer.run({ ...quiet, outputSchema: REVIEW_SCHEMA })
    await play().outcome
  } finally {
    await engine.close()
  }
  const [asked, notAsked] = model.requests.map(({ body }) => body.text)
  expect(asked).toMatchObject({ format: { type: 'json_schema', strict: true, schema: REVIEW_SCHEMA } })
  expect(JSON.stringify(notAsked ?? null)).not.toContain('json_schema')
})

async function listen(): Promise<AsyncDisposable & { port: number; connections(): number }> {
  let connections = 0
  const server = createServer(socket => {
    connections += 1
    socket.destroy()
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  return {
    port,
    connections: () => connections,
    [Symbol.asyncDispose]: () => new Promise(resolve => server.close(() => resolve())),
  }
}
