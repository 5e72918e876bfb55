import { closeSync, openSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type Clock, systemClock } from '../../../src/base/clock.ts'
import type { EngineEvent, EngineSetup, PreparedRound } from '../../../src/core/engine.ts'
import type { LiveEvent } from '../../../src/core/events/events.ts'
import type { RoundOutcome } from '../../../src/core/events/outcome.ts'
import { CodexEngine } from '../../../src/engines/codex/engine.ts'
import { isAlive } from '../../../src/platform/processes.ts'
import { promise } from '../../support/promise.ts'
import { writePeer } from '../../support/scripted-peer.ts'
import { TestClock } from '../../support/test-clock.ts'
import { setupIn } from '../contract.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'codemachine-engine-'))
})
afterAll(() => rm(folder, { recursive: true }))

const thread = { agent: 'a', developerInstructions: 'Do it.', model: null, effort: null }

interface Played {
  outcome: RoundOutcome
  events: EngineEvent[]
  live: LiveEvent[]
  records: string[]
  logged: string[]
}

interface Playing {
  engine: CodexEngine
  event(type: EngineEvent['type']): Promise<EngineEvent>
  /** Resolves once something has been logged that holds this. */
  log(text: string): Promise<void>
  interrupt(): Promise<void>
  steer(text: string): Promise<boolean>
}

/** Plays one round on a peer; `before` runs before it, `meanwhile` once it has begun. */
async function play(
  changes: string,
  meanwhile: (playing: Playing) => Promise<void> = async () => {},
  limits: { requestMs?: number; endMs?: number; clock?: Clock } = {},
  before: (prepared: PreparedRound) => Promise<unknown> = async () => {},
): Promise<Played> {
  const path = await writePeer(folder, changes)
  const logged: string[] = []
  const waiters: (() => void)[] = []
  const wake = () => {
    for (const each of waiters.splice(0)) each()
  }
  const onLog = (message: string) => {
    logged.push(message)
    wake()
  }
  const engine = await engineOn(path, onLog, limits)
  const events: EngineEvent[] = []
  const live: LiveEvent[] = []
  const records: string[] = []
  const prepared = engine.prepare(thread)
  await before(prepared)
  const running = prepared.run({
    round: 1,
    input: 'Go on.',
    onEvent: event => {
      events.push(event)
      wake()
    },
    onLive: event => live.push(event),
    onRecord: line => records.push(line),
  })
  const first = async <T>(find: () => T | undefined): Promise<T> => {
    for (;;) {
      const found = find()
      if (found !== undefined) return found
      await new Promise<void>(resolve => waiters.push(resolve))
    }
  }
  const event = (type: EngineEvent['type']) => first(() => events.find(each => each.type === type))
  const log = async (text: string) => void (await first(() => logged.find(each => each.includes(text))))
  await meanwhile({ engine, event, log, interrupt: () => prepared.interrupt(), steer: text => prepared.steer(text) })
  const outcome = await running
  await engine.close()
  return { outcome, events, live, records, logged }
}

test('a turn tells which model works, as far as this version of codex says it', async () => {
  const turnOf = async (inUse: string) => {
    const changes = `on['thread/start'] = id => send({ id, result: { thread: { id: THREAD }, ${inUse} } })`
    return (await play(changes)).events[0]
  }
  const turn = { type: 'turn-started', round: 1, thread: 'thread-1', turn: 'turn-1' }
  expect(await turnOf('')).toEqual(turn)
  expect(await turnOf(`model: 'gpt-6', reasoningEffort: 'high'`)).toEqual({ ...turn, model: 'gpt-6', effort: 'high' })
  expect(await turnOf(`model: ['gpt-6'], reasoningEffort: null`)).toEqual({ ...turn, effort: null })
  const long = await turnOf(`model: 'm'.repeat(5_000_000)`)
  expect(JSON.stringify(long).length).toBeLessThan(500)
})

describe('a codex that dies ends the round, with its last words', () => {
  test.each([
    ['at once', `process.stderr.write('no home\\n'); process.exit(1)`, 'config', /no home/],
    [
      'and closes its end of the pipe before',
      `on.initialize = async id => {
         const { closeSync } = await import('node:fs')
         closeSync(0)
         send({ id, result: { userAgent: 'peer/0.169.0' } })
         // It lives until the next request could not be written.
         setTimeout(() => process.stderr.write('no home\\n', () => process.exit(1)), 100)
       }`,
      'config',
      /no home/,
    ],
    ['at initialize', `on.initialize = () => process.exit(101)`, 'crashed', /exit code 101/],
    ['at thread/start', `on['thread/start'] = () => process.kill(process.pid, 'SIGKILL')`, 'crashed', /SIGKILL/],
    ['at turn/start', `on['turn/start'] = () => process.kill(process.pid, 'SIGSEGV')`, 'crashed', /SIGSEGV/],
    [
      'in the turn',
      `on['turn/start'] = id => { send({ id, result: {} }); started(); process.stderr.write('panicked\\n', () => process.exit(101)) }`,
      'crashed',
      /panicked/,
    ],
  ])('%s', async (_when, changes, kind, words) => {
    const { outcome } = await play(changes)
    expect(outcome.class).toBe(kind)
    expect(outcome.message).toMatch(words)
  })
})

test('a codex that cannot be started at all is a matter of configuration', async () => {
  const path = join(folder, 'missing')
  const engine = await engineOn(path)
  const outcome = await engine.prepare(thread).run({ round: 1, input: 'x', onEvent() {}, onLive() {}, onRecord() {} })
  await engine.close()
  expect(outcome).toMatchObject({ class: 'config', message: expect.stringContaining('could not be started') })
})

test.each(['initialize', 'thread/start', 'turn/start'])(
  'a codex that never answers %s is given up after the deadline',
  async method => {
    const clock = new TestClock()
    const { outcome } = await play(
      `on['${method}'] = () => say('was/asked', {})`,
      async ({ log }) => {
        await log('was/asked')
        await clock.advance(60_000)
      },
      { requestMs: 60_000, clock },
    )
    expect(outcome).toEqual({ class: 'silent', message: `codex did not answer ${method} within 60 s.` })
  },
)

test('a refused thread/start is told in codex’s own words', async () => {
  const refuse = `on['thread/start'] = id => send({ id, error: { code: -32600, message: 'failed to load configuration: bad model' } })`
  expect((await play(refuse)).outcome).toEqual({ class: 'config', message: 'failed to load configuration: bad model' })
})

test('nobody logged in ends the round before the turn', async () => {
  const { outcome } = await play(
    `on['account/read'] = id => send({ id, result: { account: null, requiresOpenaiAuth: true } })`,
  )
  expect(outcome.class).toBe('auth')
})

promise('L8', 'A line, an answer or rubbish of codex of any size harms nothing')
test('rubbish, blank lines, foreign answers and unknown notifications harm nothing, and are logged once', async () => {
  const { outcome, logged } = await play(`
    raw('not json\\n\\n[1,2]\\n42\\nnull\\n{"id":99,"result":{}}\\n{"foo":1}\\n')
    on['turn/start'] = id => { send({ id, result: {} }); started(); say('new/thing', {}); say('new/thing', {}); say('item/completed', null); message('hi'); completed() }
  `)
  expect(outcome.class).toBe('worked')
  expect(logged.filter(line => line.includes('new/thing'))).toHaveLength(1)
  expect(logged.some(line => line.includes('not json'))).toBe(true)
})

test.each(['warning', 'mcpServer/startupStatus/updated', 'item/started', 'error'])(
  '%s without params, which comes before the round is run, harms nothing and is logged',
  async method => {
    const { outcome, logged } = await play(
      `on['thread/start'] = id => { say('${method}'); send({ id, result: { thread: { id: THREAD } } }) }`,
      undefined,
      {},
      prepared => prepared.limits(),
    )
    expect(outcome).toEqual({ class: 'worked', message: null })
    expect(logged).toContainEqual(expect.stringContaining(`${method} from codex was not understood: `))
  },
)

test('a character cut in two by the pipe arrives whole, and an item of an unknown kind is shown as such', async () => {
  const { events } = await play(`
    on['turn/start'] = async id => {
      send({ id, result: {} }); started()
      const line = Buffer.from(JSON.stringify({ method: 'item/completed', params: { threadId: THREAD, turnId: TURN, item: { type: 'agentMessage', id: 'm', text: 'é😀', phase: null } } }) + '\\n')
      const cut = line.indexOf(0xf0) + 2
      await new Promise(done => process.stdout.write(line.subarray(0, cut), () => setImmediate(done)))
      raw(line.subarray(cut))
      say('item/completed', { threadId: THREAD, turnId: TURN, item: { type: 'hologram', id: 'h' } })
      completed()
    }`)
  const items = events.flatMap(event => (event.type === 'item-completed' ? [event.item] : []))
  expect(items).toEqual([
    { kind: 'agent-message', id: 'm', text: 'é😀', phase: null },
    { kind: 'unknown', id: 'h', codexType: 'hologram' },
  ])
})

promise('L8')
test('a line of 50 MB is survived, and its text is bounded', async () => {
  const { outcome, events } = await play(
    `on['turn/start'] = id => { send({ id, result: {} }); started(); message('x'.repeat(50_000_000)); completed() }`,
  )
  expect(outcome.class).toBe('worked')
  const item = events.flatMap(event => (event.type === 'item-completed' ? [event.item] : []))[0]
  expect(item?.kind === 'agent-message' && item.text.length).toBeLessThan(70_000)
})

test('ten megabytes on stderr do not stop the round, and the last of them are kept', async () => {
  const { outcome } = await play(
    `on['turn/start'] = () => { process.stderr.write('y'.repeat(10_000_000) + '\\nthe end\\n', () => process.exit(3)) }`,
  )
  expect(outcome.message).toMatch(/exit code 3\. [\s\S]*the end$/)
  expect(outcome.message?.length).toBeLessThan(33 * 1024)
})

test('text with half a surrogate pair reaches codex as well-formed Unicode', async () => {
  const { events } = await play(
    `on['turn/start'] = id => { send({ id, result: {} }); started() }
     on['turn/steer'] = (id, params) => { send({ id, result: {} }); message(params.input[0].text); completed() }`,
    async playing => {
      await playing.event('turn-started')
      expect(await playing.steer('half \ud83d pair')).toBe(true)
    },
  )
  expect(events.at(-1)).toMatchObject({ item: { text: 'half \ufffd pair' } })
})

test("only our own thread's end ends our turn; a sub-agent's tokens are counted", async () => {
  const counts = `{ totalTokens: 5, inputTokens: 4, cachedInputTokens: 0, outputTokens: 1, reasoningOutputTokens: 0 }`
  const { outcome, events } = await play(`
    on['turn/start'] = id => {
      send({ id, result: {} }); started()
      say('turn/started', { threadId: 'other', turn: { id: 'o' } })
      say('item/completed', { threadId: 'other', turnId: 'o', item: { type: 'agentMessage', id: 'x', text: 'not ours', phase: null } })
      say('thread/tokenUsage/updated', { threadId: 'other', turnId: 'o', tokenUsage: { total: ${counts}, last: ${counts}, modelContextWindow: null } })
      say('turn/completed', { threadId: 'other', turn: { id: 'o', status: 'failed', error: { message: 'theirs' } } })
      message('ours'); completed()
    }`)
  expect(outcome.class).toBe('worked')
  expect(JSON.stringify(events)).not.toContain('not ours')
  expect(events).toContainEqual(expect.objectContaining({ type: 'usage', thread: 'other' }))
})

test('every request of codex is answered: what is asked under the rules is accepted, a way out is not, the unknown gets an error', async () => {
  const { events } = await play(`
    const ask = [
      ['item/commandExecution/requestApproval', { command: 'rm -rf build' }],
      ['item/commandExecution/requestApproval', { command: 'curl x', networkApprovalContext: { host: 'x' } }],
      ['item/fileChange/requestApproval', { reason: 'outside' }],
      ['item/permissions/requestApproval', { reason: 'more' }],
      ['item/tool/requestUserInput', { questions: [{ id: 'q', question: 'A or B?' }] }],
      ['mcpServer/elicitation/request', { serverName: 's', message: 'may I?' }],
      ['item/tool/call', { tool: 'nope', arguments: {} }],
      ['something/new', {}],
    ]
    const answers = []
    on['turn/start'] = id => { send({ id, result: {} }); started(); ask.forEach(([method, params], i) => send({ id: i, method, params: { threadId: THREAD, turnId: TURN, ...params } })) }
    on.answer = answer => { answers.push(answer); if (answers.length === ask.length) { message(JSON.stringify(answers.sort((a, b) => a.id - b.id).map(a => a.result ?? a.error))); completed() } }
  `)
  const last = events.at(-1)
  const answers =
    last?.type === 'item-completed' && last.item.kind === 'agent-message' ? JSON.parse(last.item.text) : null
  expect(answers).toEqual([
    { decision: 'accept' },
    { decision: 'decline' },
    { decision: 'decline' },
    { permissions: {}, scope: 'turn' },
    { answers: { q: { answers: [expect.stringContaining('best judgement')] } } },
    { action: 'decline', content: null, _meta: null },
    { contentItems: [expect.objectContaining({ type: 'inputText' })], success: false },
    expect.objectContaining({ code: -32601 }),
  ])
  expect(events.filter(event => event.type === 'request-answered')).toHaveLength(7)
})

test('an interrupt asked for before the turn has started waits for it, and ends it', async () => {
  const { outcome } = await play(
    `on['turn/start'] = id => { send({ id, result: {} }); setImmediate(started) }`,
    playing => playing.interrupt(),
  )
  expect(outcome).toEqual({ class: 'interrupted', message: null })
})

test('a codex that takes no interrupt is ended all the same, within its time', async () => {
  const { outcome } = await play(
    `on['turn/start'] = id => { send({ id, result: {} }); started() }
     on['turn/interrupt'] = () => {}
     on.end = () => {}
     process.on('SIGTERM', () => {})`,
    async playing => {
      await playing.event('turn-started')
      await playing.interrupt()
    },
    { endMs: 200 },
  )
  expect(outcome.class).toBe('interrupted')
})

test('a peer that ignores its end is killed, with what it left running in a session of its own', async () => {
  const { events } = await play(
    `const { spawn } = await import('node:child_process')
     const child = spawn('sleep', ['300'], { stdio: 'ignore', detached: true })
     on.end = () => {}
     process.on('SIGTERM', () => {})
     on['turn/start'] = id => { send({ id, result: {} }); started(); message(process.pid + ' ' + child.pid); completed() }`,
    undefined,
    { endMs: 200 },
  )
  const item = events.flatMap(event => (event.type === 'item-completed' ? [event.item] : []))[0]
  const pids = item?.kind === 'agent-message' ? item.text.split(' ').map(Number) : []
  expect(pids).toHaveLength(2)
  for (const pid of pids) expect(await isAlive(pid, 'linux')).toBe(false)
})

test('a codex that no signal ends is waited for no longer than seconds, and that is logged', async () => {
  const logged: string[] = []
  const log = (message: string) => logged.push(message)
  // There is no `taskkill` here: the signals of a Windows reach nobody, as if the kernel held the process.
  const peer = await writePeer(folder, `${TAKES_NO_END}; on['turn/start'] = ${LEAVES_A_COMMAND}`)
  const engine = await engineOn(peer, log, { endMs: 200, platform: 'win32', clock: fastClock(10) })
  const { pids, ended } = startRound(engine.prepare(thread))
  const [pid = 0] = await pids
  try {
    expect(await ended).toEqual({ class: 'worked', message: null })
    await engine.settle()
    await engine.close()
    expect(logged).toContainEqual(`codex (${pid}) has not ended 5 s after it was killed; codemachine gives up on it.`)
    expect(await alive([pid])).toEqual([true])
  } finally {
    process.kill(pid, 'SIGKILL')
  }
})

test('a thread that was prepared and not needed leaves no process', async () => {
  const engine = await engineOn(await writePeer(folder, ''))
  const prepared = engine.prepare(thread)
  prepared.discard()
  await engine.close()
  expect(await prepared.run({ round: 1, input: 'x', onEvent() {}, onLive() {}, onRecord() {} })).toMatchObject({
    class: expect.stringMatching(/interrupted|crashed/),
  })
})

describe('an app-server that was started before its thread is known', () => {
  /** Writes its pid into a file when it begins, and says it in its turn. */
  const peer = (file: string) =>
    writePeer(
      folder,
      `const { appendFileSync } = await import('node:fs')
       appendFileSync(${JSON.stringify(file)}, process.pid + '\\n')
       on['turn/start'] = id => { send({ id, result: {} }); started(); message(String(process.pid)); completed() }`,
    )
  const begun = async (file: string) =>
    (await readFile(file, 'utf8').catch(() => '')).split('\n').filter(Boolean).map(Number)

  test('plays the next round, and the one after it has another', async () => {
    const file = join(folder, 'taken')
    const engine = await engineOn(await peer(file))
    engine.warm()
    engine.warm()
    await vi.waitUntil(async () => (await begun(file)).length === 1, 30_000)
    const [first] = [await pidsOfRound(engine.prepare(thread)), await pidsOfRound(engine.prepare(thread))]
    await engine.close()
    expect(await begun(file)).toHaveLength(2)
    expect((await begun(file))[0]).toBe(first[0])
  })

  test('has shaken hands by then, and what it said meanwhile is in the record of the round', async () => {
    const file = join(folder, 'hands')
    const engine = await engineOn(
      await writePeer(
        folder,
        `const { appendFileSync } = await import('node:fs')
         on.initialize = id => { appendFileSync(${JSON.stringify(file)}, 'hands '); send({ id, result: {} }); say('early/word', {}) }
         on['turn/start'] = id => { send({ id, result: {} }); started(); completed() }`,
      ),
    )
    engine.warm()
    const shaken = async () => await readFile(file, 'utf8').catch(() => '')
    await vi.waitUntil(async () => (await shaken()) !== '', 30_000)
    const records: string[] = []
    const told = { round: 1, input: 'x', onEvent() {}, onLive() {}, onRecord: (line: string) => records.push(line) }
    const outcome = await engine.prepare(thread).run(told)
    await engine.close()
    expect([await shaken(), outcome.class]).toEqual(['hands ', 'worked'])
    expect(records.filter(line => line.includes('early/word'))).toHaveLength(1)
  })

  test('is ended where no round takes it', async () => {
    const file = join(folder, 'not-taken')
    const engine = await engineOn(await peer(file))
    engine.warm()
    await vi.waitUntil(async () => (await begun(file)).length === 1, 30_000)
    engine.cool()
    await vi.waitUntil(async () => !(await alive(await begun(file)))[0], 30_000)
    await engine.close()
  })
})

const TAKES_NO_END = `on.end = () => {}; process.on('SIGTERM', () => {}); setInterval(() => {}, 1000)`
/** A turn that ends while a command of it still runs. */
const LEAVES_A_COMMAND = `id => {
  send({ id, result: {} }); started(); message(String(process.pid))
  say('item/started', { threadId: THREAD, turnId: TURN, item: { type: 'commandExecution', id: 'c', command: 'sleep 1' } })
  completed()
}`

/** A peer that leaves a process in a session of its own, deaf to SIGTERM, and says its pid and its own. */
const LEAVES_SOMETHING = `
  const { spawn } = await import('node:child_process')
  on['turn/start'] = (id, { input }) => {
    send({ id, result: {} }); started()
    const child = spawn('sh', ['-c', 'trap "" TERM; while :; do sleep 0.1; done'], { stdio: 'ignore', detached: true })
    message(child.pid + ' ' + process.pid)
    if (input[0].text !== 'Go on and on.') completed()
  }`

/** Starts one round; `pids` are those that its message names. */
function startRound(prepared: PreparedRound, input = 'Go on.'): { pids: Promise<number[]>; ended: Promise<unknown> } {
  const pids = Promise.withResolvers<number[]>()
  const onEvent = (event: EngineEvent) => {
    if (event.type !== 'item-completed' || event.item.kind !== 'agent-message') return
    pids.resolve(event.item.text.split(' ').map(Number))
  }
  const ended = prepared.run({ round: 1, input, onEvent, onLive() {}, onRecord() {} })
  return { pids: pids.promise, ended }
}

/** Runs one round to its end; answers the pids that its message names. */
async function pidsOfRound(prepared: PreparedRound): Promise<number[]> {
  const { pids, ended } = startRound(prepared)
  expect(await ended).toMatchObject({ class: 'worked' })
  return await pids
}

const alive = (pids: readonly number[]) => Promise.all(pids.map(pid => isAlive(pid, 'linux')))

describe('what ended rounds left', () => {
  promise('B8')
  test('is gone once the engine has settled; a running turn and what is prepared are left alone', async () => {
    const engine = await engineOn(await writePeer(folder, LEAVES_SOMETHING), () => {}, { endMs: 200 })
    const ahead = engine.prepare(thread)
    const lasting = startRound(engine.prepare(thread), 'Go on and on.')
    const running = await lasting.pids
    for (let round = 1; round <= 2; round++) {
      const pids = await pidsOfRound(engine.prepare(thread))
      await engine.settle()
      expect(await alive(pids)).toEqual([false, false])
    }
    expect(await alive(running)).toEqual([true, true])
    const last = await pidsOfRound(ahead)
    await engine.close()
    await lasting.ended
    expect(await alive([...last, ...running])).toEqual([false, false, false, false])
  })

  test('is gone once the engine has settled, though codex itself takes its time to end', async () => {
    const peer = await writePeer(folder, `${LEAVES_SOMETHING}\non.end = () => {}; process.on('SIGTERM', () => {})`)
    const engine = await engineOn(peer, () => {}, { endMs: 200 })
    const pids = await pidsOfRound(engine.prepare(thread))
    await engine.settle()
    expect(await alive(pids)).toEqual([false, false])
    await engine.close()
  })

  test('ends within seconds of each round, from the first second on, however soon the rounds follow', async () => {
    const engine = await engineOn(await writePeer(folder, LEAVES_SOMETHING), () => {}, {
      endMs: 2_000,
      clock: fastClock(10),
    })
    const pids: number[] = []
    for (let round = 1; round <= 3; round++) pids.push(...(await pidsOfRound(engine.prepare(thread))))
    await expect.poll(() => alive(pids), { timeout: 30_000, interval: 50 }).toEqual(pids.map(() => false))
    await engine.close()
  })

  test('and cannot be looked for is logged, and looked for again; rounds go on and the end is clean', async () => {
    const logged: string[] = []
    // There is no `ps -E` on Linux: the search fails as it may on a macOS.
    const engine = await engineOn(await writePeer(folder, ''), message => logged.push(message), { platform: 'darwin' })
    for (let round = 1; round <= 2; round++) {
      await pidsOfRound(engine.prepare(thread))
      await engine.settle()
      expect(logged).toContainEqual(expect.stringMatching(/^Could not look for what rounds left running: /))
      logged.length = 0
    }
    await engine.close()
    expect(logged).toContainEqual(expect.stringMatching(/^Could not look for what rounds left running: /))
  })
})

describe('a codex that the system refuses to start is the outcome of the round, not an exception', () => {
  // What passes by itself (no more files, memory or processes) is not the person's to mend.
  const run = { round: 1, input: 'x', onEvent() {}, onLive() {}, onRecord() {} }

  test('where the directory is a file', async () => {
    const file = join(folder, 'a-file')
    await writeFile(file, '')
    const engine = await engineOn(await writePeer(folder, ''), () => {}, { directory: file })
    expect(await engine.prepare(thread).run(run)).toMatchObject({
      class: 'config',
      message: expect.stringContaining('ENOTDIR'),
    })
    await engine.settle()
    await engine.close()
  })

  test('where no file can be opened any more', async () => {
    const engine = await engineOn(await writePeer(folder, ''))
    const held: number[] = []
    try {
      for (;;) held.push(openSync('/dev/null', 'r'))
    } catch {}
    let prepared: PreparedRound
    try {
      prepared = engine.prepare(thread)
    } finally {
      for (const descriptor of held) closeSync(descriptor)
    }
    expect(await prepared.run(run)).toMatchObject({ class: 'crashed', message: expect.stringContaining('EMFILE') })
    await engine.close()
  })
})

/** A clock that starts at nought and runs so many times as fast as the machine's. */
function fastClock(factor: number): Clock {
  const start = performance.now()
  return {
    now: () => Date.now(),
    monotonic: () => (performance.now() - start) * factor,
    wait: (ms, signal) => systemClock.wait(ms / factor, signal),
  }
}

async function engineOn(
  path: string,
  log: (message: string) => void = () => {},
  changes: Partial<EngineSetup> = {},
): Promise<CodexEngine> {
  const binary = { path, version: '0.169.0' }
  const place = { env: { ...process.env }, directory: folder }
  return new CodexEngine(await setupIn(place, { binary, requestMs: 10_000, endMs: 2_000, log, ...changes }))
}
