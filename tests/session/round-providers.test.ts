import { describe, expect, test } from 'vitest'
import type { ThreadSpec } from '../../src/core/engine.ts'
import type { SessionEvent } from '../../src/core/events/events.ts'
import type { RoundClass } from '../../src/core/events/outcome.ts'
import type { Provider, ProviderProblem, Providers } from '../../src/core/shapes/provider.ts'
import { emptyState } from '../../src/core/state/state.ts'
import { OWN_TEMPLATES } from '../../src/modes/registry.ts'
import { nothingSecret } from '../../src/secrets/redactor.ts'
import { namedModel, RoundProviders } from '../../src/session/providers/round-providers.ts'
import { SessionLog } from '../../src/session/session-log.ts'
import { promise } from '../support/promise.ts'
import { created, ended, SESSION, started } from '../support/session-events.ts'
import { VirtualClock } from '../support/virtual-clock.ts'

const HOUR = 3_600_000
const THREAD: ThreadSpec = { agent: 'a', developerInstructions: 'Do it.', model: null, effort: null }
const never = new AbortController().signal

const provider = (name: string, whenAway: Provider['whenAway'] = 'wait'): Provider => ({
  name,
  baseUrl: `http://${name}/v1`,
  model: `${name}-model`,
  keyEnv: null,
  contextWindow: null,
  whenAway,
})
const away: ProviderProblem = { kind: 'away', message: 'The provider local is away.' }

promise('D89', '`prove.author` and `prove.control` name a model, or a provider and its model')
test.each([
  ['gpt-5.5', { model: 'gpt-5.5' }],
  ['openai/gpt-5.5', { model: 'openai/gpt-5.5' }],
  ['local', { provider: 'local', model: null }],
  ['local/org/qwen3', { provider: 'local', model: 'org/qwen3' }],
  ['codex/gpt-5.5', { provider: 'codex', model: 'gpt-5.5' }],
])('%s is whose model it names', (name, named) => {
  expect(namedModel(name, new Map([['local', provider('local')]]))).toEqual(named)
})

/** A session whose usual provider is "local", which answers so when it is asked, the last answer again and again. */
function session({
  usual = 'local',
  whenAway = 'wait' as Provider['whenAway'],
  answers = [null] as (ProviderProblem | null)[],
  before = [] as SessionEvent[],
} = {}) {
  const clock = new VirtualClock(1_000_000)
  const warnings: string[] = []
  const append = (event: SessionEvent) => {
    if (event.type === 'warning') warnings.push(event.message)
  }
  const journal = { append, sync: async () => {}, [Symbol.asyncDispose]: async () => {} }
  const log = new SessionLog(emptyState(SESSION), {
    journal,
    views: [],
    templates: OWN_TEMPLATES,
    clock,
    redactor: nothingSecret,
  })
  for (const event of [created(), ...before]) log.emit(event)
  const asked: (string | null)[] = []
  const providers: Providers = {
    byName: new Map([provider('local', whenAway), provider('other')].map(each => [each.name, each])),
    usual,
    remoteModel: 'remote-model',
    ask: async (_, model) => {
      asked.push(model)
      return (answers.length > 1 ? answers.shift() : answers[0]) ?? null
    },
  }
  return { clock, warnings, asked, of: new RoundProviders({ log, clock, providers, policy: { maxWaitMs: 3 * HOUR } }) }
}

describe('a thread', () => {
  test('is of the provider of the session unless it names one, with the model of that', () => {
    const { of } = session()
    expect(of.complete(THREAD)).toEqual({ ...THREAD, provider: 'local', model: 'local-model' })
    expect(of.complete({ ...THREAD, model: 'own' })).toMatchObject({ provider: 'local', model: 'own' })
    expect(of.complete({ ...THREAD, provider: 'other' })).toMatchObject({ provider: 'other', model: 'other-model' })
  })

  test('of codex itself has no provider, and never the model of another one', () => {
    const { of } = session()
    const own = of.complete({ ...THREAD, provider: 'codex', model: 'local-model' })
    expect(own).toEqual({ ...THREAD, model: 'remote-model' })
    expect(of.complete({ ...THREAD, provider: 'codex', model: 'gpt-9' })).toEqual({ ...THREAD, model: 'gpt-9' })
  })

  test('that is replayed asks no model, so that it has no provider', () => {
    const recording = { path: 'a', pace: 'at-once' } as const
    expect(session().of.complete({ ...THREAD, recording })).toEqual({ ...THREAD, recording })
  })

  test('of an agent goes the way of the round that it works for', () => {
    const { of } = session()
    const agent = { ...THREAD, agent: 'b', model: 'gpt-9' }
    const other = of.completeFor({ ...THREAD, provider: 'other' }, agent)
    expect(other).toEqual({ ...agent, provider: 'other', model: 'other-model' })
    expect(of.completeFor({ ...THREAD, provider: 'local' }, agent)).toEqual({ ...agent, provider: 'local' })
    expect(of.completeFor(THREAD, agent)).toEqual(agent)
    expect(of.completeFor(THREAD, { ...agent, model: 'local-model' })).toMatchObject({ model: 'remote-model' })
  })

  test('of a reviewer leaves the model that is set for reviews where that is none of its provider', () => {
    const reviewer = { ...THREAD, model: 'gpt-9' }
    expect(session().of.completeReviewer(reviewer)).toMatchObject({ provider: 'local', model: 'local-model' })
    expect(session({ usual: 'codex' }).of.completeReviewer(reviewer)).toEqual(reviewer)
    const named = { ...reviewer, provider: 'other', model: 'm' }
    expect(session().of.completeReviewer(named)).toEqual(named)
  })
})

test('a look is good for one round, on the thread that it was for', async () => {
  const { of, asked } = session()
  const thread = of.complete(THREAD)
  expect(of.take(thread)).toBeNull()
  expect(await of.look(thread, never)).toEqual({ kind: 'ready' })
  expect([of.take(thread), of.take(thread)]).toEqual(['own', null])
  await of.look(thread, never)
  expect(of.take({ ...thread, model: 'another' })).toBeNull()
  expect(asked).toEqual(['local-model', 'local-model'])
  expect(of.take(THREAD)).toBe('own')
})

describe('a provider that is away', () => {
  test('is waited for from when it went, over several looks, and once it was back from when it went again', async () => {
    const { of, clock } = session({ answers: [away, away, null, away] })
    const thread = of.complete(THREAD)
    const until = 1_000_000 + 3 * HOUR
    expect(await of.look(thread, never)).toMatchObject({ kind: 'wait', cause: { class: 'network' }, until })
    await clock.wait(HOUR)
    expect(await of.look(thread, never)).toMatchObject({ kind: 'wait', until })
    expect(await of.look(thread, never)).toMatchObject({ kind: 'ready' })
    expect(await of.look(thread, never)).toMatchObject({ kind: 'wait', until: until + HOUR })
  })

  test('is waited for from when rounds on it began to fail, and then needs a person', async () => {
    const { of, clock } = session({
      answers: [away],
      before: [started(1), ended(1, { class: 'network', message: null })],
    })
    const thread = of.complete(THREAD)
    await clock.wait(2 * HOUR)
    expect(await of.look(thread, never)).toMatchObject({ kind: 'wait', until: 1_000_000 + 3 * HOUR })
    await clock.wait(HOUR)
    const hint = { do: 'mend-cause', since: new Date(1_000_000).toISOString() }
    expect(await of.look(thread, never)).toEqual({
      kind: 'end',
      outcome: { kind: 'needs-person', reason: away.message, hint },
    })
  })

  test('is back when it answers, and not before', async () => {
    const { of } = session({ answers: [away, away, null] })
    const look = await of.look(of.complete(THREAD), never)
    const isBack = look.kind === 'wait' ? look.isBack : null
    expect([await isBack?.(never), await isBack?.(never)]).toEqual([false, true])
  })

  test('is done without where the person says so, which is told once for each time', async () => {
    const { of, warnings } = session({ whenAway: 'remote', answers: [away, away, null, away] })
    const thread = of.complete(THREAD)
    const ways = []
    for (let n = 0; n < 4; n++) {
      await of.look(thread, never)
      ways.push(of.take(thread))
    }
    expect(ways).toEqual(['remote', 'remote', 'own', 'remote'])
    const said = `${away.message} Codex's default model works in its place, as when_away of local says.`
    expect(warnings).toEqual([said, said])
    expect(of.follow(thread, 'remote')).toEqual({ ...THREAD, model: 'remote-model' })
    expect(of.follow(thread, 'own')).toBe(thread)
  })
})

test.each(['stop', 'wait'] as const)(
  'what does not pass by itself needs a person, with when_away = "%s"',
  async whenAway => {
    const { of } = session({ whenAway, answers: [{ kind: 'no-model', message: 'It has no such model.' }] })
    const hint = { do: 'mend-provider', provider: 'local' }
    const end = (reason: string) => ({ kind: 'end', outcome: { kind: 'needs-person', reason, hint } })
    expect(await of.look(of.complete(THREAD), never)).toEqual(end('It has no such model.'))
    for (const name of ['config', 'auth', 'quota'] satisfies RoundClass[])
      expect(of.after({ class: name, message: 'No.' }, of.complete(THREAD))).toEqual(end('No.'))
    expect(await of.look({ ...THREAD, provider: 'gone' }, never)).toMatchObject({
      outcome: { reason: 'There is no provider "gone".' },
    })
  },
)

test('one that cannot be used is not asked again where it is done without; other ends are those of any round', async () => {
  const { of, asked, warnings } = session({ whenAway: 'remote' })
  const thread = of.complete(THREAD)
  expect(of.after({ class: 'network', message: 'No.' }, thread)).toBeNull()
  expect(of.after({ class: 'config', message: 'No.' }, THREAD)).toBeNull()
  expect(of.after({ class: 'quota', message: 'No.' }, thread)).toEqual({ kind: 'ask-template' })
  await of.look(thread, never)
  expect([of.take(thread), asked, warnings.length]).toEqual(['remote', [], 1])
})
