import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import type { EngineEvent } from '../../../src/core/engine.ts'
import type { Provider } from '../../../src/core/shapes/provider.ts'
import { message, reply, roundsScript, type ScriptStep, shell, updatePlan } from '../../../src/demo/model/reply.ts'
import { makePlace } from '../../support/place.ts'
import { type ScriptedModel, startScriptedModel, status, usageHeaders } from '../../support/scripted-model.ts'
import { endAfterEach } from './end-after-each.ts'
import { openEngine, THREAD } from './open-engine.ts'

const atEnd = endAfterEach()

const provider = (model: ScriptedModel, more: Partial<Provider> = {}): Provider => ({
  name: 'local',
  baseUrl: model.url,
  model: 'qwen3-coder:30b',
  keyEnv: null,
  contextWindow: null,
  whenAway: 'wait',
  ...more,
})

/** A codex whose own provider is one scripted model, and the other one a provider of the person's. */
async function twoModels(steps: readonly ScriptStep[], more: Partial<Provider> = {}, env: NodeJS.ProcessEnv = {}) {
  const own = atEnd.use(await startScriptedModel({ script: roundsScript([]) }))
  const other = atEnd.use(
    await startScriptedModel({ script: roundsScript([steps]), models: ['qwen3-coder:30b'], functionsOnly: true }),
  )
  const place = atEnd.use(await makePlace(own.codexConfig('scripted')))
  const opened = await openEngine({
    directory: place.directory,
    env: { ...place.env, ...env },
    providers: new Map([['local', provider(other, more)]]),
    networkMs: 100,
  })
  atEnd.defer(() => opened.engine.close())
  const play = (name: string, thread = {}) =>
    opened.play(opened.engine.prepare({ ...THREAD, provider: name, ...thread }))
  return { own, other, place, ...opened, playOn: play }
}

function warningsOf({ events }: { events: readonly EngineEvent[] }): string[] {
  return events.flatMap(event => (event.type === 'warning' ? [event.message] : []))
}

test('a thread on a provider has its model, its context window and its key, and is offered nothing but functions', async () => {
  const env = { LOCAL_KEY: 'sk-local-0123456789' }
  const more = { keyEnv: 'LOCAL_KEY', contextWindow: 32_000 }
  const steps = [reply(updatePlan([{ step: 'a', status: 'completed' }])), reply(shell('echo hi')), reply(message('ok'))]
  const { own, other, place, playOn } = await twoModels(steps, more, env)
  const tools = [{ name: 'ask_person', description: 'Asks.', inputSchema: { type: 'object', properties: {} } }]
  const round = playOn('local', { effort: 'high', tools })
  expect(await round.outcome).toEqual({ class: 'worked', message: null })
  const [first] = other.requests
  expect(first).toMatchObject({ model: 'qwen3-coder:30b', headers: { authorization: `Bearer ${env.LOCAL_KEY}` } })
  expect(first?.tools.toSorted()).toEqual(['ask_person', 'exec_command', 'update_plan', 'view_image', 'write_stdin'])
  expect(other.requests).toHaveLength(3)
  expect(own.requests).toEqual([])
  expect(warningsOf(round).filter(text => !text.includes('bubblewrap'))).toEqual([])
  expect(await round.event('turn-started')).toMatchObject({ model: 'qwen3-coder:30b' })
  expect(await round.event('usage')).toMatchObject({ contextWindow: 30_400 })
  expect(readFileSync(`${place.codexHome}/config.toml`, 'utf8')).toBe(own.codexConfig('scripted'))
})

test('two threads of one engine each have their own provider, and the name codex stands for its own', async () => {
  const { own, other, playOn } = await twoModels([])
  expect(await playOn('local').outcome).toMatchObject({ class: 'worked' })
  const round = playOn('codex')
  expect(await round.outcome).toMatchObject({ class: 'worked' })
  expect([own, other].map(({ requests }) => requests.map(({ model }) => model))).toEqual([
    ['scripted'],
    ['qwen3-coder:30b'],
  ])
  expect(warningsOf(round).join()).toContain('Model metadata for `scripted` not found')
})

test('what a provider says of limits is not taken for those of the account', async () => {
  const said = usageHeaders({ primary: { usedPercent: 100, windowMinutes: 300, resetsAt: 4_000_000_000 } })
  const { playOn } = await twoModels([{ ...reply(message('ok')), headers: said }])
  const round = playOn('local')
  expect(await round.outcome).toMatchObject({ class: 'worked' })
  expect(round.events.filter(({ type }) => type === 'limits')).toEqual([])
})

describe('a round on a provider ends with what is wrong with it', () => {
  test('without a Responses API', async () => {
    const { playOn, other } = await twoModels([status(404, { detail: 'Not Found' })])
    expect(await playOn('local').outcome).toEqual({
      class: 'config',
      message: `The provider local has no Responses API: ${other.url}/responses answered HTTP 404.`,
    })
  })

  test('without the variable of its key', async () => {
    const { playOn } = await twoModels([], { keyEnv: 'NOT_THERE' })
    expect(await playOn('local').outcome).toEqual({
      class: 'config',
      message: expect.stringMatching(/^Missing environment variable: `NOT_THERE`/),
    })
  })

  test('that nobody has named', async () => {
    const { playOn } = await twoModels([])
    expect(await playOn('elsewhere').outcome).toEqual({
      class: 'config',
      message: 'There is no provider "elsewhere"; use codex, local.',
    })
  })

  test('that goes away in the middle of it, for which codex would wait for ever', async () => {
    const leaves: ScriptStep = async () => {
      await other.goAway()
      return reply()
    }
    const { playOn, other } = await twoModels([reply(shell('echo hi')), leaves])
    const round = playOn('local')
    const outcome = await round.outcome
    expect(outcome).toEqual({
      class: 'network',
      message: `The provider local does not answer at ${other.url} (ECONNREFUSED).`,
    })
    expect(round.prepared.isOver).toBe(true)
    // The server that is left behind is ended with the test.
    await other.comeBack()
  })
  test('that is behind a proxy, where nobody can ask it, once codex has waited for it as long as it may', async () => {
    const env = { HTTP_PROXY: 'http://127.0.0.1:9', NO_PROXY: '' }
    const { playOn } = await twoModels([], { baseUrl: 'http://model.invalid/v1' }, env)
    expect(await playOn('local').outcome).toEqual({
      class: 'network',
      message: expect.stringMatching(
        /^No network: codex cannot reach the provider local at http:\/\/model\.invalid\/v1\b/,
      ),
    })
  })
})
