import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import { reply, roundsScript, type ScriptStep, shell } from '../../../../src/demo/model/reply.ts'
import { codemachineHere } from '../../../support/in-process.ts'
import { roundsOf, startNight } from '../../../support/night.ts'
import { promise } from '../../../support/promise.ts'
import { openRealScene } from '../../../support/real-scene.ts'
import { claimDone, round, says } from '../../../support/rounds.ts'
import { eventsOf, openPlayedScene, openScene, type Scene } from '../../../support/scene.ts'
import { type ScriptedModel, startScriptedModel, status } from '../../../support/scripted-model.ts'
import { describe, test } from '../../../support/side-by-side.ts'

const KEY = 'local-key-0123456789'
const HOUR = 60 * 60_000

/** A scene with a provider "local", beside codex's own. */
async function openProviderScene(
  rounds: readonly (readonly ScriptStep[])[],
  { table = '', remote = [] }: { table?: string; remote?: readonly (readonly ScriptStep[])[] } = {},
): Promise<Scene & { local: ScriptedModel }> {
  const local = await startScriptedModel({ script: roundsScript(rounds), models: ['qwen'], functionsOnly: true })
  const person = `[providers.local]\nbase_url = "${local.url}"\nmodel = "qwen"\n${table}\n`
  const scene = await openRealScene(remote, { person })
  return {
    ...scene,
    local,
    async [Symbol.asyncDispose]() {
      await scene[Symbol.asyncDispose]()
      await local[Symbol.asyncDispose]()
    },
  }
}

/** The same with rounds that are played in this process: "local" is asked only whether it is there, and what models it has. */
async function openPlayedProviderScene(
  rounds: readonly (readonly ScriptStep[])[],
  { table = '', remote = [] }: { table?: string; remote?: readonly (readonly ScriptStep[])[] } = {},
): Promise<Scene & { local: ScriptedModel; asked(): string[] }> {
  const local = await startScriptedModel({ script: roundsScript([]), models: ['qwen'] })
  const person = `[providers.local]\nbase_url = "${local.url}"\nmodel = "qwen"\n${table}\n`
  const scripts = { local: roundsScript(rounds), codex: roundsScript(remote) }
  const scene = await openPlayedScene(each => scripts[each.provider === 'local' ? 'local' : 'codex'](each), { person })
  return {
    ...scene,
    local,
    /** The provider and the model of each round. */
    asked: () => [...new Set(scene.model.requests.map(({ provider, model }) => `${provider} ${model}`))],
    async [Symbol.asyncDispose]() {
      await scene[Symbol.asyncDispose]()
      await local[Symbol.asyncDispose]()
    },
  }
}

const start = (scene: Scene, ...args: string[]) => startNight(scene, ['--provider', 'local', ...args, 'build X'])

test('a session on a provider asks it alone, with its key, which is kept nowhere, and leaves the codex config as it was', async () => {
  await using scene = await openProviderScene([round(`echo key $LOCAL; ${claimDone}`)], { table: 'key_env = "LOCAL"' })
  const config = join(scene.place.codexHome, 'config.toml')
  const before = readFileSync(config)
  const run = startNight(scene, ['--provider', 'local', 'build X'], { env: { LOCAL: KEY } }).run
  const { exitCode, events, stdout, stderr } = await run.ended
  expect(exitCode).toBe(0)
  expect(scene.model.requests).toEqual([])
  expect(new Set(scene.local.requests.map(({ model, headers }) => `${model} ${headers.authorization}`))).toEqual(
    new Set([`qwen Bearer ${KEY}`]),
  )
  expect(scene.local.modelsAsked[0]).toMatchObject({ authorization: `Bearer ${KEY}` })
  expect(eventsOf(events, 'round-started')).toMatchObject([{ engine: 'codex', provider: 'local', model: 'qwen' }])
  expect(eventsOf(events, 'warning').filter(({ message }) => message.includes('metadata'))).toEqual([])
  expect(readFileSync(config)).toEqual(before)
  expect(stdout + stderr).toContain('[secret LOCAL]')
  expect(stdout + stderr).not.toContain(KEY)
  const tokens = eventsOf(events, 'session-ended')[0]?.tokens
  const asked = async (...args: string[]) => (await codemachineHere(scene.place, args, { env: { LOCAL: KEY } })).stdout
  expect(JSON.parse(await asked('report', '--json'))).toMatchObject({
    totals: { tokens, providerTokens: { local: tokens } },
    rounds: { entries: [{ engine: 'codex', provider: 'local', model: 'qwen' }] },
  })
  expect(await asked('report', '--md')).toContain('Tokens by provider: local ')
  expect(JSON.parse(await asked('status', '--json')).session).toMatchObject({
    model: 'qwen',
    provider: 'local',
    providerTokens: { local: tokens },
  })
  expect(await asked('status')).toMatch(/model +qwen from local\n/)
  expect(await asked('logs')).toContain('goal-worker, codex 0.169.0, provider local, model qwen')
  expect(await asked('doctor')).toContain(`local answers at ${scene.local.url}, and has qwen`)
  // As grep says that it has found nothing.
  expect(() => execFileSync('grep', ['-r', KEY, join(scene.place.home, '.codemachine')])).toThrow(/status 1|failed/)
})

describe('a provider that is away at the start', () => {
  test('is waited for, and the session goes on as soon as it answers', async () => {
    await using scene = await openPlayedProviderScene([round(claimDone)])
    await scene.local.goAway()
    const { run, clock, hurryUntil } = start(scene, '--max-wait', '3h')
    const waiting = await run.event('waiting')
    expect(waiting).toMatchObject({ round: 1, reason: 'provider-away', cause: { class: 'network' } })
    expect(waiting.cause.message).toBe(`The provider local does not answer at ${scene.local.url} (ECONNREFUSED).`)
    expect((Date.parse(waiting.until) - Date.parse(waiting.at)) / HOUR).toBeCloseTo(3)
    await clock.advance(HOUR)
    expect(eventsOf(run.events, 'wait-ended')).toEqual([])
    await scene.local.comeBack()
    await hurryUntil(run.event('wait-ended'))
    const { exitCode, events } = await hurryUntil(run.ended)
    expect(exitCode).toBe(0)
    expect(eventsOf(events, 'waiting')).toHaveLength(1)
    expect(scene.asked()).toEqual(['local qwen'])
  })

  promise('W5')
  test('is waited for no longer than --max-wait', async () => {
    await using scene = await openPlayedProviderScene([])
    await scene.local.goAway()
    const { run, clock, hurryUntil } = start(scene, '--max-wait', '2h')
    const waiting = await run.event('waiting')
    await clock.advance(2 * HOUR)
    const { exitCode, events } = await hurryUntil(run.ended)
    expect(exitCode).toBe(4)
    const [ended] = eventsOf(events, 'session-ended')
    expect(ended?.rounds).toBe(0)
    expect(ended?.outcome).toMatchObject({ reason: waiting.cause.message, hint: { do: 'mend-cause' } })
  })

  test('ends the session with when_away = "stop", and the session goes on without it when a person says so', async () => {
    await using scene = await openPlayedProviderScene([], { table: 'when_away = "stop"', remote: [round(claimDone)] })
    await scene.local.goAway()
    const { exitCode, events } = await start(scene).run.ended
    expect(exitCode).toBe(4)
    expect(eventsOf(events, 'round-started')).toEqual([])
    expect(eventsOf(events, 'session-ended')).toMatchObject([
      { outcome: { kind: 'needs-person', hint: { do: 'mend-provider', provider: 'local' } } },
    ])
    const again = startNight(scene, ['resume', '--provider', 'codex'])
    expect((await again.run.ended).exitCode).toBe(0)
    expect(scene.asked()).toEqual(['codex scripted'])
  })

  test('is done without with when_away = "remote", which is said', async () => {
    await using scene = await openPlayedProviderScene([], { table: 'when_away = "remote"', remote: [round(claimDone)] })
    await scene.local.goAway()
    const { exitCode, events } = await start(scene).run.ended
    expect(exitCode).toBe(0)
    const said = eventsOf(events, 'warning').filter(({ message }) => message.includes('local'))
    expect(said.map(({ message }) => message)).toEqual([
      `The provider local does not answer at ${scene.local.url} (ECONNREFUSED). Codex's default model works in its place, as when_away of local says.`,
    ])
    expect(scene.asked()).toEqual(['codex scripted'])
  })
})

describe('a provider that cannot be used needs a person, in one sentence', () => {
  const reasonOf = async (scene: Scene, ...args: string[]) => {
    const { exitCode, events } = await start(scene, ...args).run.ended
    const [ended] = eventsOf(events, 'session-ended')
    expect(ended?.outcome).toMatchObject({ kind: 'needs-person', hint: { do: 'mend-provider', provider: 'local' } })
    expect(exitCode).toBe(4)
    return ended?.outcome.kind === 'needs-person' ? ended.outcome.reason : null
  }

  test('for a model that it does not have', async () => {
    await using scene = await openPlayedProviderScene([])
    expect(await reasonOf(scene, '--model', 'other')).toBe(
      'The provider local does not have the model other; it has qwen.',
    )
  })

  test('for the variable of its key', async () => {
    await using scene = await openPlayedProviderScene([], { table: 'key_env = "NOT_SET_ANYWHERE"' })
    expect(await reasonOf(scene)).toBe(
      'The provider local needs the environment variable NOT_SET_ANYWHERE, which is not set.',
    )
  })
})

test('one that turns out to have no Responses API is done without with when_away = "remote"', async () => {
  await using scene = await openProviderScene([[status(404, {})]], {
    table: 'when_away = "remote"',
    remote: [round(claimDone)],
  })
  const { exitCode, events } = await start(scene).run.ended
  expect(exitCode).toBe(0)
  expect(roundsOf(events)).toEqual([
    [1, 'config', false],
    [1, 'worked', true],
  ])
  expect(scene.local.modelsAsked).toHaveLength(1)
})

test('a provider that dies in the middle of a round is waited for, and the same round begins anew', async () => {
  const dies: ScriptStep = async ({ attempt }) => {
    if (attempt === 0) await scene.local.goAway()
    return reply(shell('true'))
  }
  await using scene = await openProviderScene([[reply(shell('echo on > work.txt')), dies], round(claimDone)])
  const { run, hurryUntil } = start(scene)
  const waiting = await hurryUntil(run.event('waiting', ({ reason }) => reason === 'provider-away'))
  expect(waiting.round).toBe(1)
  expect(roundsOf(run.events)).toEqual([[1, 'network', false]])
  expect(eventsOf(run.events, 'turn-continued')).toEqual([])
  await scene.local.comeBack()
  const { exitCode, events } = await hurryUntil(run.ended)
  expect(exitCode).toBe(0)
  expect(roundsOf(events).slice(1, 2)).toEqual([[1, 'worked', true]])
  expect(scene.model.requests).toEqual([])
})

test('a provider that cannot be asked, behind a proxy, is waited for no longer than --max-wait', async () => {
  await using scene = await openRealScene([], {
    person: '[providers.local]\nbase_url = "http://model.invalid/v1"\nmodel = "qwen"\n',
  })
  const env = { HTTP_PROXY: 'http://127.0.0.1:9', CODEMACHINE_SILENCE_MINUTES: '300' }
  const { run, clock, nothingAsked } = startNight(scene, ['--provider', 'local', '--max-wait', '2h', 'X'], { env })
  await run.event('error', ({ waitsForNetwork }) => waitsForNetwork)
  await nothingAsked()
  await clock.advance(HOUR)
  expect(roundsOf(run.events)).toEqual([])
  await clock.advance(HOUR)
  const { exitCode, events } = await run.ended
  expect([exitCode, roundsOf(events)]).toEqual([4, [[1, 'network', false]]])
  expect(eventsOf(events, 'session-ended')).toMatchObject([
    { rounds: 0, outcome: { reason: expect.stringContaining('codex cannot reach the provider local') } },
  ])
})

test('a review is done by the model of the provider, whatever model is set for reviews', async () => {
  const agrees = JSON.stringify({ verdict: 'agreed', summary: 'All of it is there.', findings: [] })
  await using scene = await openProviderScene([round(claimDone), [says(agrees)], [says(agrees)]], {
    table: '[reviewer]\nmodel = "gpt-9"',
  })
  const { exitCode, events } = await start(scene, '--review').run.ended
  expect(eventsOf(events, 'review-started')).toMatchObject([{ provider: 'local', model: 'qwen' }])
  expect(exitCode).toBe(0)
  await writeFile(join(scene.place.directory, 'a.txt'), 'hello\n')
  const env = { CODEMACHINE_PROVIDER: 'local' }
  const byItself = await codemachineHere(scene.place, ['review', '--goal', 'Say hello.'], { env })
  expect([byItself.exitCode, new Set(scene.local.requests.map(({ model }) => model))]).toEqual([0, new Set(['qwen'])])
})

test('the limits of the account hold up no round of another provider', async () => {
  const resetsAt = Math.floor(Date.now() / 1000) + 3600
  const local = await startScriptedModel({ script: roundsScript([round(claimDone)]), models: ['qwen'] })
  await using scene = await openRealScene([], {
    account: () => ({ primary: { usedPercent: 100, windowMinutes: 300, resetsAt } }),
    person: `[providers.local]\nbase_url = "${local.url}"\nmodel = "qwen"\n`,
  })
  const { exitCode, events } = await start(scene, '--max-usage', '50').run.ended
  await local[Symbol.asyncDispose]()
  expect([exitCode, eventsOf(events, 'waiting'), eventsOf(events, 'winding-down')]).toEqual([0, [], []])
})

test('a provider without a model is refused before anything starts', async () => {
  await using scene = await openScene([])
  const { exitCode, stderr } = await startNight(scene, ['--provider', 'ollama', 'build X']).run.ended
  expect(exitCode).toBe(2)
  expect(stderr).toContain(
    '--provider: the provider ollama has no model; name one with --model, or as model in a table [providers.ollama] of your own config.toml.',
  )
})
