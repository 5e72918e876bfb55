import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import { settingsOf } from '../../src/app/open-run.ts'
import { limitsAtResume, optionsAtResume, optionsOf, runOverridesOf, termsAtStart } from '../../src/app/resume-terms.ts'
import { nothingSecret } from '../../src/base/redactor.ts'
import { openSettings } from '../settings/settings-places.ts'
import { created, ended, foldAll, started, worked } from '../support/session-events.ts'

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
      { files: Array(7000).fill('ü'.repeat(5)) },
      'The options of the template flow are larger than 64 KiB.',
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
