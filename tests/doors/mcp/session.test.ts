import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { functionCall, message, reply } from '../../../src/demo/model/reply.ts'
import { promise } from '../../support/promise.ts'
import { openRealScene } from '../../support/real-scene.ts'
import { claimDone, held, round, says } from '../../support/rounds.ts'
import { eventsOf } from '../../support/scene.ts'
import { hold } from '../../support/scripted-model.ts'
import { describe, test } from '../../support/side-by-side.ts'
import { openClient, PROTOCOLS } from './mcp-client.ts'

const database = { question: 'Which database?', options: ['SQLite', 'Postgres'], assumption: 'SQLite' }

describe.each(PROTOCOLS)('in the protocol of %s', protocol => {
  promise(
    'O120',
    'Another agent starts a session over MCP, waits for it, and reads and verifies what it has done, in both versions of the protocol; codex itself does',
  )
  promise('E34', 'Another agent runs a session over MCP')
  test('another agent starts a session, waits for its end, and reads, verifies and compares what it has done', async () => {
    const gate = Promise.withResolvers<void>()
    await using scene = await openRealScene([[held(gate.promise), ...round('echo good > app.txt')], round(claimDone)])
    await using client = await openClient(scene.place, { protocol })
    const { tools } = await client.client.listTools()
    expect(tools.map(({ name }) => name)).toEqual([
      ...['start_session', 'queue_add', 'queue_list', 'queue_remove', 'status', 'wait_for', 'steer', 'replan', 'pause'],
      ...['unpause', 'retry', 'stop', 'answer', 'questions', 'report', 'diff', 'savepoints', 'verify'],
    ])
    for (const { description = '', inputSchema, outputSchema } of tools) {
      expect(description).toMatch(/^[A-Z][^\n]+\.$/)
      expect([inputSchema.type, outputSchema?.type]).toEqual(['object', 'object'])
    }
    const started = await client.call('start_session', {
      goal: 'build X',
      gates: ['grep -q good app.txt'],
      limits: { rounds: 4, time: '1h' },
      template: null,
    })
    expect(started).toEqual({
      value: { session: expect.stringMatching(/^\d{8}_1$/), directory: scene.place.directory, pid: expect.any(Number) },
      problem: null,
      code: null,
      hint: null,
    })
    const { session } = started.value
    const { value: running } = await client.call('status')
    expect(running).toMatchObject({ runs: true, session: { id: session, goal: 'build X', standing: 'running' } })
    // A second one has no place there.
    const second = await client.call('start_session', { goal: 'build Y' })
    expect(second).toEqual({
      value: {},
      problem: `Session ${session} runs in ${scene.place.directory} already.`,
      code: 'CM0601',
      hint: expect.stringContaining('queue_add'),
    })
    gate.resolve()
    const afterRound = await client.until({ session, until: ['round'] })
    expect(afterRound).toMatchObject({ happened: 'round', words: expect.stringContaining('round 1') })
    const ended = await client.until({ session, seen: afterRound.seen })
    expect(ended).toMatchObject({ happened: 'ended', session: { outcome: 'done', standing: 'ended', rounds_used: 2 } })
    const report = await client.call('report', { session })
    expect(report.value).toMatchObject({ session, next: null, text: expect.stringContaining('build X') })
    const verified = await client.call('verify', { session })
    expect(verified.value).toMatchObject({ state: 'ended', verdict: 'still-true' })
    const list = await client.call('diff', { session })
    expect(list.value).toMatchObject({ count: 1, files: [{ path: 'app.txt', added: 1, removed: 0 }], text: '' })
    const lines = await client.call('diff', { session, path: 'app.txt' })
    expect(lines.value.text).toContain('+good')
    const { value: kept } = await client.call('savepoints', { session })
    expect(kept.savepoints.map(({ id }) => id)).toEqual([`${session}/start`, `${session}/1`, `${session}/2`])

    const { resources } = await client.client.listResources()
    const uris = resources.map(({ uri }) => uri)
    expect(uris.map(uri => uri.replace(/^.*\//, ''))).toEqual(['report', 'certificate', 'journal'])
    const [inMarkdown, certificate, journal] = await Promise.all(
      uris.map(async uri =>
        (await client.client.readResource({ uri })).contents.map(each => ('text' in each ? each.text : '')),
      ),
    )
    expect(inMarkdown).toEqual([expect.stringContaining('build X')])
    expect(JSON.parse(certificate?.[0] ?? '')).toMatchObject({ session, goal: 'build X' })
    const types = journal?.[0]
      ?.trimEnd()
      .split('\n')
      .map(line => JSON.parse(line).type)
    expect([types?.[0], types?.at(-1)]).toEqual(['session-created', 'session-ended'])
  })
})

promise(
  'O121',
  'What an agent asks, and a session needs, is told and answered over MCP, and what runs is steered, paused and stopped',
)
test('a question of an agent ends the wait, and its answer reaches the round; the session is steered, paused and stopped', async () => {
  const answered = Promise.withResolvers<void>()
  const over = Promise.withResolvers<void>()
  await using scene = await openRealScene([
    [reply(functionCall('ask_person', database)), reply(message('Working.'), hold(answered.promise)), says('Went on.')],
    [held(over.promise), says('Here again.')],
  ])
  await using client = await openClient(scene.place)
  const { value: started } = await client.call('start_session', { goal: 'build a shop' })
  const asked = await client.until({})
  expect(asked).toMatchObject({ happened: 'needs-person', words: expect.stringContaining('Which database?') })
  const { value: listed } = await client.call('questions')
  const id = `${started.session}/Q1`
  expect(listed).toMatchObject({
    count: 1,
    questions: [{ id, kind: 'question', options: [{ id: '1', text: 'SQLite' }, { id: '2' }], assumes: 'SQLite' }],
  })
  expect((await client.call('answer', { question: id, answer: '7' })).problem).toContain('has no option 7')
  expect((await client.call('answer', { question: id, answer: '2' })).value.message).toContain(
    'The agent of round 1 reads it',
  )
  expect((await client.call('answer', { question: id, answer: '1' })).problem).toMatch(/^You answered .* at .*Postgres/)
  expect((await client.call('questions')).value.count).toBe(0)
  expect((await client.call('steer', { text: 'Use tabs.' })).value.message).toContain('The agent of round 1 reads it')
  expect((await client.call('pause')).value.message).toContain('pauses when round 1 has ended')
  answered.resolve()
  const held1 = await client.until({ until: ['round'], seen: asked.seen })
  expect(held1.happened).toBe('round')
  expect((await client.call('unpause')).value.message).toContain('continues')
  expect((await client.call('stop', { now: true, session: started.session })).value.message).toContain('stops now')
  over.resolve()
  expect(await client.until({ session: started.session })).toMatchObject({ happened: 'ended' })
  expect(await client.call('steer', { text: 'Too late.' })).toMatchObject({
    problem: `No codemachine runs in ${scene.place.directory}, so nobody can receive this.`,
  })
  const { events } = await scene.run('logs', '--json')
  expect(eventsOf(events, 'steered').map(({ text }) => text.split('\n')[0])).toEqual([
    `"Which database?" – Postgres (${id})`,
    'Use tabs.',
  ])
})

promise('O122', 'Over MCP a secret of the environment is shown nowhere')
test('prompts wait in the queue, and are taken out of it; the secrets of the environment are shown nowhere', async () => {
  await using scene = await openRealScene([])
  const secret = 'tok-4f9a8b7c6d5e4f3a2b1c'
  await using client = await openClient(scene.place, { env: { SHOP_API_TOKEN: secret } })
  const { value: added } = await client.call('queue_add', { prompt: `log in with ${secret}`, gates: ['npm test'] })
  expect(added).toEqual({ id: '000001', runs: false })
  await client.call('queue_add', { prompt: 'another thing', limits: { rounds: 2 } })
  // One that lies across the end of what is shown is not shown in halves.
  await client.call('queue_add', { prompt: `${'x'.repeat(1_990)}${secret}` })
  const { value: list } = await client.call('queue_list')
  expect(list.prompts.map(({ id, terms }) => [id, terms])).toEqual([
    ['000001', expect.stringContaining('npm test')],
    ['000002', expect.stringContaining('2 rounds')],
    ['000003', expect.anything()],
  ])
  expect(JSON.stringify(list)).not.toContain(secret.slice(0, 8))
  expect((await client.call('queue_remove', { id: '000001' })).value).toEqual({ removed: '000001' })
  const gone = await client.call('queue_remove', { id: secret })
  expect(gone.problem).not.toBeNull()
  expect(JSON.stringify(gone)).not.toContain(secret)
  expect((await client.call('queue_list')).value.count).toBe(2)
  const file = readFileSync(join(scene.records(), 'queue', '000002.json'), 'utf8')
  expect(file).toContain('another thing')
})
