import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import { type ItemsReply, message, type Reply, reply, shell } from '../../../src/demo/model/reply.ts'
import { codemachine } from '../../support/codemachine.ts'
import { roundsOf, startNight } from '../../support/night.ts'
import { endProcessesOf } from '../../support/processes.ts'
import { promise } from '../../support/promise.ts'
import { IMPATIENT, openRealScene } from '../../support/real-scene.ts'
import { claimDone, held, round, says } from '../../support/rounds.ts'
import { eventsOf, type OpenScene, openScene } from '../../support/scene.ts'
import { attempts, hold } from '../../support/scripted-model.ts'
import { writePeer } from '../../support/scripted-peer.ts'
import { describe, test } from '../../support/side-by-side.ts'

const status = (status: number, body: unknown = { error: { message: `It is a ${status}.` } }): Reply => ({
  kind: 'status',
  status,
  body,
})
const failed = (code: string, message: string): Reply => ({ ...reply(), end: { kind: 'failed', code, message } })
const cut = (afterEvents: number, how: 'reset' | 'end'): ItemsReply => ({
  ...reply(message('Half an answer.')),
  end: { kind: 'cut', afterEvents, how },
})
const never = new Promise<never>(() => {})

// What codex makes of each fault of a server, and as what that ends a round, is in tests/demo/faults.test.ts: here stands what a
// session makes of the end of a round.

describe('a round that fails in a way that a fresh one may mend uses up one, and the next one works', () => {
  test.each<[string, Reply, string]>([
    ['a request that is refused', status(400), 'refused'],
    ['a context that is full', failed('context_length_exceeded', 'too long'), 'context-full'],
  ])('%s', async (_what, fault, end) => {
    await using scene = await openScene([[fault], round(claimDone)])
    const { exitCode, events } = await startNight(scene, ['--rounds', '2', 'build X']).run.ended
    expect(roundsOf(events)).toEqual([
      [1, end, true],
      [2, 'worked', true],
    ])
    expect([exitCode, eventsOf(events, 'waiting')]).toEqual([0, []])
  })
})

describe('a server that has too much to do is given time, and the same round starts again', () => {
  test.each<[string, Reply]>([
    ['too many requests', status(429)],
    ['an error of the server', status(500)],
  ])('%s', async (_what, fault) => {
    await using scene = await openScene([[fault], [fault], round(claimDone)])
    const night = startNight(scene, ['--rounds', '1', 'build X'])
    expect(await night.passWait(1)).toMatchObject({ round: 1, cause: { class: 'throttle' } })
    await night.passWait(2)
    const { exitCode, events } = await night.run.ended
    expect(roundsOf(events)).toEqual([
      [1, 'throttle', false],
      [1, 'throttle', false],
      [1, 'worked', true],
    ])
    expect(eventsOf(events, 'wait-ended').map(({ reason }) => reason)).toEqual(['over', 'over'])
    expect(exitCode).toBe(0)
  })
})

test('a server that says for how long is given as long', async () => {
  const fault = failed('rate_limit_exceeded', 'Rate limit reached. Please try again in 90s.')
  await using scene = await openScene([[fault], round(claimDone)])
  const night = startNight(scene, ['--rounds', '1', 'build X'])
  const { at, until } = await night.passWait()
  const [told] = eventsOf(night.run.events, 'error')
  // It is 90 s and at most one more from when codex said so; the wait begins later, on a busy machine by seconds.
  expect(Date.parse(until) - Date.parse(told?.at ?? '')).toBeGreaterThan(89_000)
  expect(Date.parse(until) - Date.parse(at)).toBeLessThan(92_000)
  expect(await night.run.ended).toMatchObject({ exitCode: 0 })
})

describe('a connection that breaks costs nothing: another turn goes on in the same thread', () => {
  const stillStream = { ...reply(message('Half an'), hold(never)) }
  test.each<[string, Reply, OpenScene]>([
    ['a gateway without a server', status(502), openScene],
    ['a stream that breaks off in the middle', cut(3, 'reset'), openScene],
    [
      'a stream that stands still, with the real codex',
      stillStream,
      rounds => openRealScene(rounds, { provider: { ...IMPATIENT, stream_idle_timeout_ms: 3000 } }),
    ],
  ])('%s', async (_what, fault, open) => {
    await using scene = await open([[reply(shell('true')), attempts(fault, reply(shell(claimDone))), says('Done.')]])
    const night = startNight(scene, ['--rounds', '1', 'build X'])
    await night.run.event('error', ({ willRetry }) => !willRetry)
    await night.hurryUntil(night.run.event('turn-continued'))
    const { exitCode, events } = await night.run.ended
    expect(eventsOf(events, 'turn-continued')).toMatchObject([{ round: 1, cause: { class: 'network' } }])
    expect(eventsOf(events, 'turn-started')).toHaveLength(2)
    expect(new Set(eventsOf(events, 'turn-started').map(({ thread }) => thread)).size).toBe(1)
    expect([exitCode, roundsOf(events)]).toEqual([0, [[1, 'worked', true]]])
  })

  test('what codex itself gets over is only told', async () => {
    await using scene = await openRealScene([[attempts(cut(1, 'reset'), reply(shell(claimDone))), says('Done.')]], {
      provider: { ...IMPATIENT, stream_max_retries: 1 },
    })
    const { exitCode, events } = await startNight(scene, ['--rounds', '1', 'build X']).run.ended
    expect(eventsOf(events, 'error')).toMatchObject([{ round: 1, willRetry: true, waitsForNetwork: false }])
    expect([exitCode, eventsOf(events, 'turn-continued'), roundsOf(events)]).toEqual([0, [], [[1, 'worked', true]]])
  })

  test('and where the thread breaks again and again, a new process, and no end to the patience', async () => {
    const broken = Array.from({ length: 5 }, () => [cut(1, 'reset')])
    await using scene = await openScene([...broken, round(claimDone)])
    const night = startNight(scene, ['--rounds', '1', 'build X'])
    for (let n = 1; n <= broken.length; n++) await night.passWait(n)
    const { exitCode, events } = await night.run.ended
    expect(roundsOf(events)).toEqual([...broken.map(() => [1, 'network', false]), [1, 'worked', true]])
    expect(eventsOf(events, 'turn-continued').length).toBeGreaterThanOrEqual(broken.length)
    const waits = eventsOf(events, 'waiting').map(({ at, until }) => Date.parse(until) - Date.parse(at))
    expect(waits.at(-1)).toBeGreaterThan(10_000)
    expect(exitCode).toBe(0)
  })

  test('but not longer than the person allows', async () => {
    await using scene = await openScene(Array(20).fill([cut(1, 'reset')]))
    const night = startNight(scene, ['--max-wait', '10s', 'build X'])
    const passing = (async () => {
      for (let n = 1; ; n++) await night.passWait(n)
    })()
    await Promise.race([passing.catch(() => {}), night.run.ended])
    const { exitCode, events } = await night.run.ended
    expect(exitCode).toBe(4)
    expect(eventsOf(events, 'session-ended')).toMatchObject([
      { rounds: 0, outcome: { kind: 'needs-person', hint: { do: 'mend-cause' } } },
    ])
  })
})

describe('what only a person can mend ends the session at once with exit code 4, in codex’s own words; what waits is kept', () => {
  test.each<[string, Reply, string, string]>([
    [
      'no credit',
      status(429, {
        error: {
          code: 'insufficient_quota',
          type: 'insufficient_quota',
          message: 'You exceeded your current quota.',
        },
      }),
      'Quota exceeded',
      'add-credit',
    ],
    [
      'an unknown model',
      status(404, { error: { code: 'model_not_found', message: 'The model `scripted` does not exist' } }),
      'The model `scripted` does not exist',
      'mend-codex-configuration',
    ],
    ['a key that is not taken', status(401), '401 Unauthorized', 'log-in'],
  ])('%s', async (_what, fault, words, mend) => {
    await using scene = await openScene([[fault], round(claimDone), round(claimDone)])
    const night = startNight(scene, ['--rounds', '2', 'build X'])
    await night.run.event('session-created')
    expect(await night.meanwhile('queue', 'add', 'then Y').ended).toMatchObject({ exitCode: 0 })
    const { exitCode, events, stderr } = await night.run.ended
    expect(exitCode).toBe(4)
    expect(roundsOf(events).map(([, , counts]) => counts)).toEqual([false])
    expect(eventsOf(events, 'session-ended')).toMatchObject([
      {
        rounds: 0,
        outcome: {
          kind: 'needs-person',
          reason: expect.stringContaining(words),
          hint: { do: mend },
        },
      },
    ])
    expect(stderr).toContain('To continue: codemachine resume')
    expect((await night.meanwhile('queue', 'list').ended).stdout).toContain('then Y')

    // Mended: the session goes on to done, and then what waited.
    const resumed = await startNight(scene, ['resume']).run.ended
    expect(resumed.exitCode).toBe(0)
    expect(eventsOf(resumed.events, 'session-ended').map(({ outcome }) => outcome.kind)).toEqual(['done', 'done'])
  })

  promise('W20', 'A server that refuses access (403) three times in a row needs a person')
  test('a server that refuses access (403) three times in a row, which may be a guard on the way the first time', async () => {
    await using scene = await openScene([[status(403)], [status(403)], [status(403)], round(claimDone)])
    const night = startNight(scene, ['--rounds', '1', 'build X'])
    await night.passWait(1)
    await night.passWait(2)
    const { exitCode, events } = await night.run.ended
    expect(roundsOf(events)).toEqual([1, 2, 3].map(() => [1, 'network', false]))
    expect(eventsOf(events, 'waiting')).toHaveLength(2)
    expect(eventsOf(events, 'session-ended')).toMatchObject([
      { outcome: { kind: 'needs-person', reason: expect.stringContaining('403'), hint: { do: 'mend-access' } } },
    ])
    expect(exitCode).toBe(4)
    // Nothing is the matter with the network.
    const { stdout } = await night.meanwhile('logs').ended
    expect(stdout).toMatch(/turn failed: the server refused access \(403\); continuing in the same thread/)
    expect(stdout).toMatch(/round 1 ended: the server refused access \(403\), /)
    expect(stdout).toMatch(/waiting until .* \(the server refused access \(403\): .*403 Forbidden.*\)/)
    expect(stdout).not.toMatch(/network/)
    const report = (await night.meanwhile('report', '--md').ended).stdout
    expect(report).toMatch(/the server refused access \\?\(403\\?\): .*\(tried again/)
    expect(report).not.toMatch(/\bnetwork: /)
    expect((await startNight(scene, ['resume']).run.ended).exitCode).toBe(0)
  })

  promise('W6', 'A person who is needed is not waited for: login, credit and configuration end the session at once')
  test('a login that has run out', async () => {
    await using scene = await openRealScene([])
    const peer = await writePeer(
      scene.place.root,
      `if (process.argv.includes('--version')) { console.log('codex-cli 0.169.0'); process.exit(0) }
       on['account/rateLimits/read'] = id => send({ id, error: { code: -32600, message: 'not here' } })
       on['turn/start'] = id => {
         send({ id, result: { turn: { id: TURN } } })
         started()
         const error = { message: 'Your access token could not be refreshed. Please sign in again.', codexErrorInfo: 'unauthorized', additionalDetails: null }
         say('error', { threadId: THREAD, turnId: TURN, willRetry: false, error })
         completed('failed', error)
       }`,
    )
    const { exitCode, events } = await startNight(scene, ['--codex-bin', peer, 'build X']).run.ended
    expect(exitCode).toBe(4)
    expect(roundsOf(events)).toEqual([[1, 'auth', false]])
    expect(eventsOf(events, 'session-ended')).toMatchObject([
      {
        outcome: {
          reason: expect.stringContaining('sign in again'),
          hint: { do: 'log-in' },
        },
      },
    ])
  })

  test('nobody logged in', async () => {
    await using scene = await openRealScene([])
    await writeFile(join(scene.place.codexHome, 'config.toml'), 'check_for_update_on_startup = false\n')
    const { exitCode, stdout } = await scene.run('build X')
    expect(exitCode).toBe(4)
    expect(stdout).toContain('needs a person: Codex is not logged in')
    expect(stdout).toContain('Log in with codemachine login')
  })

  test('a config.toml that is broken', async () => {
    await using scene = await openRealScene([])
    await writeFile(join(scene.place.codexHome, 'config.toml'), 'model = "x\n[[[\n')
    const { exitCode, stdout } = await scene.run('build X')
    expect(exitCode).toBe(4)
    expect(stdout).toMatch(/needs a person: .*config\.toml:1:\d+/)
    expect(stdout).toContain('Fix the codex configuration')
  })

  test('a -c that codex does not take', async () => {
    await using scene = await openRealScene([])
    const env = { RUST_BACKTRACE: '1' }
    const { exitCode, stdout } = await codemachine(scene.place, ['-c', 'model_provider="nobody"', 'build X'], { env })
    expect(exitCode).toBe(4)
    expect(stdout).toMatch(/needs a person: .*Error: Model provider `nobody` not found {2}\(/)
  })

  test('a goal that is refused three times in a row', async () => {
    await using scene = await openScene([[status(400)], [status(400)], [status(400)], round(claimDone)])
    const { exitCode, events } = await startNight(scene, ['build X']).run.ended
    expect(exitCode).toBe(4)
    expect(roundsOf(events)).toEqual([1, 2, 3].map(n => [n, 'refused', true]))
  })
})

describe('a required MCP server', () => {
  const required = (script: string) => ({
    config: `[mcp_servers.helper]\ncommand = ${JSON.stringify(process.execPath)}\nargs = ["-e", ${JSON.stringify(script)}]\nrequired = true\n`,
  })

  test('that does not come up the first time costs no round', async () => {
    await using scene = await openRealScene([round(claimDone)], required(FAILS_ONCE))
    const night = startNight(scene, ['--rounds', '1', 'build X'])
    await night.passWait(1)
    const { exitCode, events } = await night.run.ended
    expect(roundsOf(events)).toEqual([
      [1, 'crashed', false],
      [1, 'worked', true],
    ])
    expect(exitCode).toBe(0)
  })

  test('that never comes up is a matter for a person, in codex’s own words', async () => {
    await using scene = await openRealScene([], required('process.exit(1)'))
    const night = startNight(scene, ['build X'])
    await night.passWait(1)
    await night.passWait(2)
    const { exitCode, events } = await night.run.ended
    expect(roundsOf(events)).toEqual(Array(3).fill([1, 'crashed', false]))
    expect(exitCode).toBe(4)
    expect(eventsOf(events, 'session-ended')).toMatchObject([
      { outcome: { kind: 'needs-person', reason: expect.stringContaining('required MCP servers failed') } },
    ])
  })
})

/** An MCP server without tools, which ends at once the first time that it is started in a home. */
const FAILS_ONCE = `
const fs = require('node:fs'), seen = process.env.HOME + '/started'
if (!fs.existsSync(seen)) { fs.writeFileSync(seen, ''); process.exit(1) }
require('node:readline').createInterface({ input: process.stdin }).on('line', line => {
  const { id, method, params } = JSON.parse(line)
  const result = method === 'initialize'
    ? { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'helper', version: '1' } }
    : { tools: [] }
  if (id !== undefined) console.log(JSON.stringify({ jsonrpc: '2.0', id, result }))
})`

describe('a codex that dies', () => {
  promise('E13', 'A codex that crashes costs no round')
  test('in the middle of a round costs no round: a new one goes on', async () => {
    await using scene = await openRealScene([[reply(shell('echo one > work.txt')), held(never)], round(claimDone)])
    const night = startNight(scene, ['--rounds', '1', 'build X'])
    await night.run.event('item-completed', ({ item }) => item.kind === 'agent-message')
    endProcessesOf(scene.place)
    await night.passWait(1)
    const { exitCode, events } = await night.run.ended
    expect(roundsOf(events)).toEqual([
      [1, 'crashed', false],
      [1, 'worked', true],
    ])
    expect(exitCode).toBe(0)
  })

  test('three times in a row before it has done anything is a matter for a person', async () => {
    await using scene = await openRealScene([])
    const peer = await writePeer(
      scene.place.root,
      `if (process.argv.includes('--version')) { console.log('codex-cli 0.169.0'); process.exit(0) }
       on['account/rateLimits/read'] = id => send({ id, error: { code: -32600, message: 'not here' } })
       on['turn/start'] = id => { send({ id, result: { turn: { id: TURN } } }); started(); console.error('out of luck'); process.exit(101) }`,
    )
    const night = startNight(scene, ['--codex-bin', peer, 'build X'])
    await night.passWait(1)
    await night.passWait(2)
    const { exitCode, events } = await night.run.ended
    expect(roundsOf(events)).toEqual(Array(3).fill([1, 'crashed', false]))
    expect(exitCode).toBe(4)
    expect(eventsOf(events, 'session-ended')).toMatchObject([
      { outcome: { reason: expect.stringContaining('out of luck'), hint: { do: 'check-codex' } } },
    ])
  })
})
