import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import { loadAgents } from '../../src/agents/agent.ts'
import type { Agent } from '../../src/core/shapes/agent.ts'
import { settingsOf } from '../../src/project/open-run.ts'
import {
  limitsAtResume,
  optionsAtResume,
  optionsOf,
  refuseUnpriced,
  runOverridesOf,
  termsAtStart,
} from '../../src/project/session-terms.ts'
import { nothingSecret } from '../../src/secrets/redactor.ts'
import { promise } from '../support/promise.ts'
import { created, ended, foldAll, started, usage, worked } from '../support/session-events.ts'
import { openSettings } from './settings/settings-places.ts'

const loaded = async (options: Parameters<typeof settingsOf>[2]) => {
  await using places = await openSettings()
  return await settingsOf({ env: {}, configHome: places.configHome }, places.directory, options)
}

test('a prompt begins with what it says itself, then with what the run says, then with what its template needs', async () => {
  const { settings, sources } = await loaded({ maxTimeMs: 60_000, verify: ['make'] })
  const run = { settings, sources, gates: [], said: { verify: ['make'] }, redactor: nothingSecret }
  const kind = { name: 'flow', defaultRounds: () => 7 }
  expect(termsAtStart(run, kind).limits).toEqual({ rounds: null, timeMs: 60_000, tokens: null })
  const { limits, said, gates } = termsAtStart(run, kind, { limits: { rounds: 3, timeMs: 5000 }, gates: ['npm test'] })
  expect(limits).toEqual({ rounds: 3, timeMs: 5000, tokens: null })
  expect([said.verify, gates.map(gate => gate.run)]).toEqual([['make', 'npm test'], ['npm test']])
  const unlimited = { ...run, ...(await loaded({})) }
  expect(termsAtStart({ ...unlimited, gates: [] }, kind).limits).toEqual({ rounds: 7, timeMs: null, tokens: null })
})

describe('the options of a template', () => {
  const options = v.object({ review: v.optional(v.picklist(['auto', 'none'])), files: v.optional(v.array(v.string())) })
  const flow = { name: 'flow', options }

  test('are checked by its schema, and kept as the journal can hold them', () => {
    expect(optionsOf(flow, { review: 'auto', files: undefined })).toStrictEqual({ review: 'auto' })
    expect(optionsOf(flow, undefined)).toEqual({})
    expect(optionsOf({ name: 'goal' }, undefined)).toBeUndefined()
  })

  test.each([
    [
      'for a template that has none',
      { name: 'goal' },
      { review: 'auto' },
      'The template goal has no options; leave them out.',
    ],
    [
      'of another kind',
      flow,
      { files: ['a', 7] },
      'options.files.1 of the template flow: Invalid type: Expected string but received 7.',
    ],
    [
      'that are many',
      flow,
      { files: Array(100_000).fill('ü'.repeat(5)) },
      'The options of the template flow are larger than 1 MiB.',
    ],
  ])('are refused %s', (_, kind, told, sentence) => {
    expect(() => optionsOf(kind, told)).toThrow(sentence)
  })
})

test('the provider that was typed is kept for the session that goes on', async () => {
  const { settings, sources } = await loaded({ provider: 'ollama', model: 'qwen' })
  expect(runOverridesOf(settings, sources)).toEqual({ provider: 'ollama', model: 'qwen' })
})

test('another sandbox is meant as it is by itself, and not with the network of the one before', () => {
  const said = { sandbox: 'workspace-write', network: true }
  expect(optionsAtResume(said, [], {})).toMatchObject(said)
  expect(optionsAtResume(said, [], { sandbox: 'read-only' })).toEqual({ sandbox: 'read-only', config: [] })
})

test('a session that lacks nothing but its end goes on, though its rounds are used up', async () => {
  const { settings } = await loaded({})
  const used = [created({ rounds: 1 }), started(1), ended(1, worked)]
  expect(() => limitsAtResume(foldAll(used), {}, settings)).toThrow('has used 1 of its 1 rounds')
  const accepted = foldAll([...used, { type: 'done-accepted', round: 1, tree: 'b' }])
  expect(limitsAtResume(accepted, {}, settings)).toMatchObject({ rounds: 1 })
})

describe('a limit of cost', () => {
  const prices = [{ model: 'small', in: 1, cached: 1, out: 1 }]
  const roster = loadAgents()
  const limits = { rounds: 3, timeMs: null, tokens: null, cost: 5 }
  /** A run in which the agents with these names have a model. */
  const runWith = async (models: Record<string, string>) => {
    const { settings } = await loaded({})
    const withModel = (agent: Agent) => ({ ...agent, model: models[agent.name] ?? null })
    const agents = { main: roster.main.map(withModel), sub: roster.sub.map(withModel), goal: roster.goal }
    const profiles = { usable: new Set<string>(), byHand: new Map(), unreadable: new Map(), remarks: [] }
    const askForModels = async () => ({ agents, profiles, offered: null, remarks: [] })
    return { settings, prices, providers: { byName: new Map(), usual: 'codex' }, askForModels }
  }
  const part = (delegates: boolean) => ({
    parts: { a: { words: '', claims: false, free: false, countsForStall: true, delegates, keepsWords: 0 } },
  })

  promise(
    'M15',
    '`--max-cost` is refused at the start for a build whose agents, or a session whose reviewer, have a model without a price, and for a session that has used tokens of which nobody knows the price',
  )
  test('is refused at the start where an agent of a build, or the reviewer, has a model without a price', async () => {
    const [name = ''] = roster.sub.map(agent => agent.name)
    const run = await runWith({ [name]: 'large' })
    await expect(refuseUnpriced(run, part(true), limits)).rejects.toThrow('The model large has no price')
    await refuseUnpriced(run, part(false), limits)
    await refuseUnpriced(await runWith({ [name]: 'small' }), part(true), limits)
    const unreviewed = await runWith({})
    const reviewed = {
      ...unreviewed,
      settings: { ...unreviewed.settings, reviewer: { engine: null, model: 'large', effort: null } },
    }
    await expect(refuseUnpriced(reviewed, part(false), limits)).rejects.toThrow('The model large has no price')
  })

  promise('M15')
  test('is refused for a session that has used tokens of which nobody knows the price', async () => {
    const { settings } = await loaded({ maxCost: 5 })
    const priced = (model: string) =>
      foldAll([
        { ...created({ rounds: 9 }), prices },
        started(1),
        { ...usage(1, 'main', 2000), model },
        ended(1, worked),
      ])
    expect(() => limitsAtResume(priced('large'), { maxCost: 5 }, settings)).toThrow(
      'has used 2k tokens without a known price, so --max-cost cannot be enforced. Use --max-tokens.',
    )
    expect(limitsAtResume(priced('large'), {}, settings).cost).toBeUndefined()
    expect(limitsAtResume(priced('small'), { maxCost: 5 }, settings)).toMatchObject({ cost: 5 })
  })
})
