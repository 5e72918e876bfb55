import { existsSync } from 'node:fs'
import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { CliContext } from '../../../src/doors/screen/cli-context.ts'
import { NO_FACTS, type StartFacts } from '../../../src/project/login.ts'
import { gatherStartFacts } from '../../../src/project/start/start-facts.ts'
import { openQueue } from '../../../src/session/records/queue.ts'
import { openRecords } from '../../../src/session/records/records.ts'
import { cliContext } from '../../support/cli-context.ts'
import { HandClock } from '../../support/hand-clock.ts'
import { makePlace, type TestPlace } from '../../support/place.ts'
import { processesOf } from '../../support/processes.ts'
import { writePeer } from '../../support/scripted-peer.ts'
import { untilInFolder } from '../../support/until-in-folder.ts'

/** Lets a scripted peer pass for a codex. */
const VERSION = `if (process.argv.includes('--version')) { console.log('codex-cli 0.169.0'); process.exit(0) }`

const answering = (result: object) =>
  `${VERSION}\non['account/read'] = id => send({ id, result: ${JSON.stringify(result)} })`

function contextOf(place: TestPlace, env: Record<string, string> = {}): CliContext {
  return cliContext(place, { env: { ...place.env, ...env }, home: place.root })
}

async function gather(place: TestPlace, env: Record<string, string> = {}): Promise<StartFacts[]> {
  const { told, onFacts } = startScreen()
  await gatherStartFacts(contextOf(place, env), {}, onFacts, new AbortController().signal)
  expect(processesOf(place)).toEqual([])
  return told
}

/** What a start screen has shown, one after the other. */
function startScreen() {
  const told: StartFacts[] = []
  const onFacts = (change: (shown: StartFacts) => StartFacts) => void told.push(change(told.at(-1) ?? NO_FACTS))
  return { told, onFacts }
}

test('the real codex is found and asked, and each thing is told as soon as it is known', async () => {
  await using place = await makePlace('')
  const told = await gather(place, { CODEMACHINE_MODEL: 'some-model' })
  expect(told[0]).toMatchObject({ directory: '~/work', codex: null, login: null })
  expect(told.at(-1)).toMatchObject({
    mode: 'build',
    directory: '~/work',
    git: { kind: 'repository', branch: 'main' },
    model: { model: 'some-model', effort: null },
    codex: { kind: 'found', version: expect.stringMatching(/^\d+\.\d+\.\d+/) },
    login: { kind: 'out' },
    wouldProve: '--prove checks each sentence',
    resumable: [],
    queue: [],
    missing: ['Codex is not logged in.'],
  })
})

test.each([
  [
    { account: { type: 'chatgpt', planType: 'pro' }, requiresOpenaiAuth: true },
    { kind: 'in', by: 'ChatGPT (pro)' },
  ],
  [
    { account: { type: 'apiKey' }, requiresOpenaiAuth: true },
    { kind: 'in', by: 'an API key' },
  ],
  [{ account: null, requiresOpenaiAuth: false }, { kind: 'not-needed' }],
  [{ strange: true }, { kind: 'unknown', why: 'codex gave an unknown answer' }],
])('what codex says of the login is told: %j', async (answer, login) => {
  await using place = await makePlace('')
  const last = (await gather(place, { CODEX_BIN: await writePeer(place.root, answering(answer)) })).at(-1)
  expect(last).toMatchObject({ login, missing: [] })
})

test('who logs in while codex is still asked stays logged in', async () => {
  await using place = await makePlace('')
  const bin = await writePeer(place.root, answering({ account: null, requiresOpenaiAuth: true }))
  const login = { kind: 'in', by: 'ChatGPT' } as const
  const { told, onFacts } = startScreen()
  await gatherStartFacts(
    contextOf(place, { CODEX_BIN: bin }),
    {},
    change => {
      onFacts(change)
      const shown = told.at(-1)
      if (shown?.codex && !shown.login) told.push({ ...shown, login })
    },
    new AbortController().signal,
  )
  expect(told.at(-1)).toMatchObject({ login, missing: [] })
})

test('a codex that ends at once is told in its own words', async () => {
  await using place = await makePlace('')
  const bin = await writePeer(place.root, `${VERSION}\nconsole.error('no luck today'); process.exit(3)`)
  const last = (await gather(place, { CODEX_BIN: bin })).at(-1)
  expect(last?.login).toMatchObject({ kind: 'unknown', why: expect.stringContaining('no luck today') })
})

test('a person who leaves waits for no answer, and nothing runs on', async () => {
  await using place = await makePlace('')
  const asked = join(place.root, 'asked')
  const silent = `import { writeFileSync } from 'node:fs'
    on.initialize = () => writeFileSync(${JSON.stringify(asked)}, '')`
  const bin = await writePeer(place.root, `${VERSION}\n${silent}`)
  const leaving = new AbortController()
  const { told, onFacts } = startScreen()
  // A clock on which no answer is ever late.
  const context = { ...contextOf(place, { CODEX_BIN: bin }), clock: new HandClock() }
  const gathered = gatherStartFacts(context, {}, onFacts, leaving.signal)
  await untilInFolder(place.root, 'a codex that was asked', () => existsSync(asked) || null)
  leaving.abort()
  await gathered
  expect(told.at(-1)?.login).toBeNull()
  expect(processesOf(place)).toEqual([])
})

test('no git, no codex and broken settings are missing, and the rest is told', async () => {
  await using place = await makePlace('', { git: false })
  const bare = { PATH: join(place.root, 'none'), CODEX_BIN: join(place.root, 'no-codex') }
  const last = (await gather(place, bare)).at(-1)
  expect(last).toMatchObject({
    git: { kind: 'none' },
    mode: 'build',
    codex: { kind: 'missing' },
    login: null,
    queue: [],
  })
  expect(last?.missing.join(' ')).toMatch(/git was not found/)
  expect(last?.missing.join(' ')).toMatch(/no such file/)
  await writeFile(join(place.directory, 'codemachine.toml'), 'rounds = "many"\n')
  expect((await gather(place, bare)).at(-1)?.missing.join(' ')).toContain('codemachine.toml')
})

test('where codex has no home yet none is made', async () => {
  await using place = await makePlace('')
  const context = contextOf(place)
  delete context.env.CODEX_HOME
  const { told, onFacts } = startScreen()
  await gatherStartFacts(context, {}, onFacts, new AbortController().signal)
  expect(told.at(-1)).toMatchObject({ login: { kind: 'out' } })
  expect(await readdir(place.root)).not.toContain('.codex')
})

test('what waits, and what can be gone on with, is told', async () => {
  await using place = await makePlace('')
  const records = await openRecords({ ...contextOf(place), directory: place.directory })
  await openQueue(records.queue).add('do this next', new Date())
  const at = '2026-11-20T10:00:00.000Z'
  const created = (id: string, goal: string) => ({
    type: 'session-created',
    at,
    session: id,
    goal,
    template: 'goal',
    directory: place.directory,
    limits: { rounds: 10, timeMs: null, tokens: null },
    sandbox: 'workspace-write',
    network: false,
    model: null,
    effort: null,
    overrides: [],
    said: {},
    queued: null,
    host: 'here',
    codemachine: '0.1.0',
  })
  const ended = (id: string, outcome: object) => ({
    type: 'session-ended',
    at,
    session: id,
    outcome,
    exitCode: 0,
    rounds: 0,
    tokens: 0,
    durationMs: 5,
  })
  const journals: Record<string, object[]> = {
    '20261120_1': [created('20261120_1', 'cut off')],
    '20261120_2': [created('20261120_2', 'is done'), ended('20261120_2', { kind: 'done', verified: false })],
    '20261120_3': [created('20261120_3', 'used up'), ended('20261120_3', { kind: 'limit', limit: 'rounds' })],
  }
  for (const [id, events] of Object.entries(journals)) {
    await mkdir(records.sessionFolder(id))
    await writeFile(records.journal(id), events.map(event => `${JSON.stringify({ v: 1, ...event })}\n`).join(''))
  }
  const bin = await writePeer(place.root, answering({ account: null, requiresOpenaiAuth: false }))
  const last = (await gather(place, { CODEX_BIN: bin })).at(-1)
  expect(last?.queue).toEqual(['do this next'])
  expect(last?.resumable).toMatchObject([
    { id: '20261120_3', goal: 'used up', rounds: 0, stopped: 'limit reached' },
    { id: '20261120_1', goal: 'cut off', rounds: 0, stopped: 'cut off', at: Date.parse(at) },
  ])
})
