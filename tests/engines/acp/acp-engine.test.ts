import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { type AddressInfo, connect, createServer as createTcpServer } from 'node:net'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import type { EngineSetup, ThreadSpec } from '../../../src/core/engine.ts'
import type { RoundOutcome } from '../../../src/core/events/outcome.ts'
import type { ExternalEngine } from '../../../src/core/shapes/external-engine.ts'
import { reply, roundsScript, shell } from '../../../src/demo/model/reply.ts'
import { AcpEngine } from '../../../src/engines/acp/acp-engine.ts'
import { makePlace } from '../../support/place.ts'
import { processesOf } from '../../support/processes.ts'
import { says } from '../../support/rounds.ts'
import { startScriptedModel } from '../../support/scripted-model.ts'
import { endAfterEach } from '../codex/end-after-each.ts'
import { play, setupIn, THREAD, WEIGH } from '../contract.ts'
import { scriptedAgent } from './acp-agent.ts'

const atEnd = endAfterEach()
// The work directory lies below /tmp, where every sandbox may write.
const outside = await mkdtemp('/var/tmp/codemachine-outside-')
afterAll(() => rm(outside, { recursive: true }))

interface Opening {
  fault?: string
  commands?: readonly string[]
  thread?: Partial<ThreadSpec>
  external?: Partial<ExternalEngine>
  setup?: Partial<EngineSetup>
  /** All that it reaches, its model among them; left out: this machine. */
  hosts?: [string]
}

/** Opens an engine whose agent runs these commands, and prepares a round of it. */
async function open({ fault = '', commands = [], thread = {}, external = {}, setup = {}, hosts }: Opening) {
  const rounds = [[...commands.map(each => reply(shell(each))), says('Done.')]]
  const model = atEnd.use(await startScriptedModel({ script: roundsScript(rounds) }))
  const place = atEnd.use(await makePlace(''))
  const url = hosts === undefined ? model.url : await leadTo(model.url, hosts[0])
  const engine = new AcpEngine(
    scriptedAgent(url, fault, { ...external, ...(hosts && { network: hosts }) }),
    await setupIn(place, { endMs: 500, ...setup }),
  )
  atEnd.defer(() => engine.close())
  return { engine, place, model, prepared: engine.prepare({ ...THREAD, ...thread }) }
}

/** The URL of a server of 127.0.0.1, by another address of this machine. */
async function leadTo(url: string, host: string): Promise<string> {
  const { port } = new URL(url)
  const server = createTcpServer(socket => {
    const other = connect(Number(port), '127.0.0.1')
    for (const each of [socket, other]) each.on('error', () => {})
    socket.pipe(other).pipe(socket)
  }).listen(0, host)
  atEnd.defer(() => void server.close())
  await once(server, 'listening')
  return url.replace(`127.0.0.1:${port}`, `${host}:${(server.address() as AddressInfo).port}`)
}

const STARTS: readonly (readonly [fault: string, end: RoundOutcome['class'], says: RegExp])[] = [
  ['dies at once', 'crashed', /^mine ended with exit code 3\./],
  ['dies in initialize', 'crashed', /^mine ended with exit code 4\./],
  ['dies in session/new', 'crashed', /^mine ended with exit code 5\./],
  [
    'says nothing',
    'silent',
    /^mine did not answer initialize within 1\.5 s\. mine reaches only 127\.0\.0\.1; network in \[engines\.mine\]/,
  ],
  ['is newer', 'config', /speaks version 99 of the Agent Client Protocol; codemachine speaks 1/],
  ['has no login', 'auth', /auth/i],
  ['begins no session', 'config', /^mine began no session|invalid/i],
]

test.each(STARTS)('an agent that %s ends its round as "%s", in a sentence that names it', async (fault, end, words) => {
  const { engine, place, prepared } = await open({ fault, setup: fault === 'says nothing' ? { requestMs: 1_500 } : {} })
  const { outcome } = play(prepared)
  expect(await outcome).toEqual({ class: end, message: expect.stringMatching(words) })
  await engine.close()
  expect(processesOf(place)).toEqual([])
})

test('an agent that asks for permission for ever ends its round as refused', async () => {
  const { engine, place, prepared } = await open({ fault: 'asks for ever' })
  expect(await play(prepared).outcome).toEqual({
    class: 'refused',
    message: expect.stringMatching(/^mine asked for permission \d+ times in one round\.$/),
  })
  await engine.close()
  expect(processesOf(place)).toEqual([])
})

test('an agent that does not heed a cancel is ended all the same', async () => {
  const { engine, place, prepared } = await open({ fault: 'ignores cancel', commands: ['sleep 1000'] })
  const { outcome, commandBegun } = play(prepared)
  await commandBegun
  await prepared.interrupt()
  expect(await outcome).toEqual({ class: 'interrupted', message: null })
  await engine.close()
  expect(processesOf(place)).toEqual([])
})

test('an agent cannot have codemachine read a file for it', async () => {
  const { prepared } = await open({ fault: 'reads outside' })
  expect(await play(prepared).outcome).toMatchObject({ message: expect.stringMatching(/method not found/i) })
})

test('updates of a session that is not this one change nothing', async () => {
  const { prepared } = await open({ fault: 'sends wrong ids' })
  const { outcome, events } = play(prepared)
  expect(await outcome).toEqual({ class: 'worked', message: null })
  expect(JSON.stringify(events)).not.toContain('not mine')
})

test('an agent that takes no tools over HTTP works without them, and the round says so', async () => {
  const { prepared } = await open({ fault: 'takes no tools', thread: { tools: [WEIGH] } })
  const { outcome, events } = play(prepared)
  expect(await outcome).toEqual({ class: 'worked', message: null })
  expect(events).toContainEqual(
    expect.objectContaining({ type: 'warning', message: expect.stringContaining('works without weigh') }),
  )
})

test('the whole agent is held by the box: it writes the work directory and its own folder, and nothing else', async () => {
  const home = join(outside, 'home')
  await mkdir(join(outside, 'secrets'))
  await writeFile(join(outside, 'secrets', 'key'), 'hidden')
  const { place, prepared } = await open({
    commands: [
      `echo a > a; echo a > ${home}/a; echo a > ${outside}/a; mkdir -p .mine; echo a > .mine/settings.json`,
      `cat ${outside}/secrets/key > b; (echo a > ${outside}/later) & ln -s ${outside} out; echo a > out/linked; echo a > .git/hooks/post-commit || true`,
    ],
    external: { home: [home], configuration: ['.mine'] },
    thread: { unreadable: [join(outside, 'secrets')] },
  })
  expect(await play(prepared).outcome).toEqual({ class: 'worked', message: null })
  const inWork = (path: string) => existsSync(join(place.directory, path))
  expect(['a', '.mine/settings.json'].map(inWork)).toEqual([true, false])
  expect(existsSync(join(home, 'a'))).toBe(true)
  expect(['a', 'later', 'linked'].filter(name => existsSync(join(outside, name)))).toEqual([])
  expect(await readFile(join(place.directory, 'b'), 'utf8')).toBe('')
})

test('the agent reaches the hosts of its engine alone, and has a loopback of its own', async () => {
  const server = createServer((_, response) => void response.end('reached')).listen(0, '127.0.0.1')
  atEnd.defer(() => void server.close())
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const own = `const s = require('http').createServer((_, r) => r.end('own')).listen(0, '127.0.0.1', async () => { console.log(await (await fetch('http://127.0.0.1:' + s.address().port)).text()); s.close() })`
  const { place, prepared } = await open({
    hosts: ['127.0.0.2'],
    commands: [
      `curl -s -m 5 --noproxy '*' http://127.0.0.1:${port} > direct; curl -s -m 5 --noproxy '' -x "$http_proxy" http://127.0.0.1:${port} > proxied`,
      `node -e "${own}" > own 2>&1`,
    ],
  })
  expect(await play(prepared).outcome).toEqual({ class: 'worked', message: null })
  const written = async (name: string) => await readFile(join(place.directory, name), 'utf8')
  expect(await written('direct')).toBe('')
  expect(await written('proxied')).not.toContain('reached')
  expect(await written('own')).toBe('own\n')
})

test('a codex that keeps no agent to its hosts starts none', async () => {
  const place = atEnd.use(await makePlace(''))
  // It runs what it is given, as a version would that has dropped its proxy.
  const path = join(place.root, 'codex')
  await writeFile(path, '#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done\nshift\nexec "$@"\n', { mode: 0o755 })
  const setup = await setupIn(place, { binary: { path, version: '0.999.0' } })
  const engine = new AcpEngine(scriptedAgent('http://127.0.0.1:9'), setup)
  atEnd.defer(() => engine.close())
  expect(await engine.greet()).toMatchObject({
    message: expect.stringContaining('does not keep the agent to its hosts'),
  })
})

test('a thread that may only read changes nothing in the work directory', async () => {
  const { place, prepared } = await open({ commands: ['echo a > a'], thread: { readOnly: true } })
  expect(await play(prepared).outcome).toEqual({ class: 'worked', message: null })
  expect(existsSync(join(place.directory, 'a'))).toBe(false)
})

test('a program that is missing, or that an agent could have written, runs no round', async () => {
  const missing = await open({ external: { command: ['no-such-agent'] } })
  expect(await play(missing.prepared).outcome).toEqual({
    class: 'config',
    message: expect.stringMatching(/^mine: there is no program no-such-agent on PATH; install it/),
  })
  const place = atEnd.use(await makePlace(''))
  const planted = join(place.directory, 'agent')
  await writeFile(planted, '#!/bin/sh\n')
  await chmod(planted, 0o755)
  const engine = new AcpEngine(scriptedAgent('', '', { command: [planted] }), await setupIn(place))
  atEnd.defer(() => engine.close())
  expect(await play(engine.prepare(THREAD)).outcome).toEqual({
    class: 'config',
    message: `mine: the program ${planted} lies where an agent can write (${planted}); install it elsewhere.`,
  })
})

test('the agent says what it is when it is greeted, without asking its model', async () => {
  const { engine, model, place } = await open({})
  expect(await engine.greet()).toEqual({ agent: 'scripted 1.0.0' })
  expect(model.requests).toEqual([])
  await engine.close()
  expect(processesOf(place)).toEqual([])
})
