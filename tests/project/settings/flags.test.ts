import { Command } from 'commander'
import { expect, test } from 'vitest'
import { withChangeFlags } from '../../../src/doors/cli/change/program.ts'
import { type RunFlags, withRunFlags } from '../../../src/doors/cli/flags.ts'
import { runOptionsOf } from '../../../src/doors/cli/run-options.ts'
import { withTeamFlags } from '../../../src/doors/cli/team/program.ts'
import { settingsOf } from '../../../src/project/open-run.ts'
import { optionsAtResume, runOverridesOf } from '../../../src/project/session-terms.ts'
import { settingInfos } from '../../../src/project/settings/schema.ts'
import { openSettings } from './settings-places.ts'

async function settingsFor(typed: readonly string[], ofPerson = '') {
  await using settings = await openSettings()
  await settings.person(ofPerson)
  const flags = withRunFlags(new Command()).parse(typed, { from: 'user' }).opts<RunFlags>()
  return await settingsOf({ env: {}, configHome: settings.configHome }, settings.directory, runOptionsOf(flags))
}

test('what is typed is what a run goes by', async () => {
  const typed = '--rounds 3 --max-time 1h30m --max-tokens 5M --max-usage 90% --max-wait 2h --no-keep-awake --network'
  const { settings } = await settingsFor(typed.split(' '), 'max_time = "8h"\nkeep_awake = true\n')
  expect(settings).toMatchObject({
    rounds: 3,
    maxTime: 90 * 60_000,
    maxTokens: 5_000_000,
    maxUsage: 90,
    maxWait: 120 * 60_000,
    keepAwake: false,
    network: true,
  })
})

test('what is not typed is left to the other places, the sleep of the machine too', async () => {
  const { settings, sources } = await settingsFor([], 'keep_awake = false\nmax_wait = "1h"\n')
  expect(settings).toMatchObject({ keepAwake: false, maxWait: 60 * 60_000, rounds: 10 })
  expect(Object.values(sources).filter(({ layer }) => layer === 'flag')).toEqual([])
})

test('what has to pass before done is typed as often as there is something, and a review is asked for or declined', async () => {
  const { gates, settings } = await settingsFor(['--verify', 'npm test', '--verify', 'npm run build', '--review'])
  expect(gates.map(({ name }) => name)).toEqual(['npm test', 'npm run build'])
  expect(settings.review).toBe(true)
  expect((await settingsFor(['--no-review'], 'review = true\n')).settings.review).toBe(false)
  expect((await settingsFor([], 'review = true\n')).settings.review).toBe(true)
})

test('what is typed of the proof is kept for the session that goes on, which adds to it', async () => {
  const { settings, sources } = await settingsFor(['--review', '--effort', 'high'])
  const said = runOverridesOf(settings, sources, ['npm test', 'npm test'])
  expect(said).toEqual({ effort: 'high', review: true, verify: ['npm test'] })
  expect(optionsAtResume(said, [], { verify: ['make'] })).toMatchObject({ review: true, verify: ['npm test', 'make'] })
  expect(optionsAtResume(said, [], { review: false })).toMatchObject({ review: false, verify: ['npm test'] })
  expect(optionsAtResume({}, [], {})).toEqual({ config: [] })
  // That it is kept awake is for the files to say; that it is not stays said.
  expect(optionsAtResume({ keepAwake: true }, [], {})).toEqual({ config: [] })
  expect(optionsAtResume({ keepAwake: false }, [], {})).toEqual({ config: [], keepAwake: false })
  expect(optionsAtResume({ keepAwake: true }, [], { keepAwake: false })).toEqual({ config: [], keepAwake: false })
})

test('a session that goes on with another provider leaves the model and the effort of the one before it', () => {
  const said = { provider: 'local', model: 'qwen', effort: 'low', maxUsage: 90 }
  expect(optionsAtResume(said, [], {})).toMatchObject({ provider: 'local', model: 'qwen', effort: 'low' })
  expect(optionsAtResume(said, [], { provider: 'local' })).toMatchObject({ model: 'qwen', effort: 'low' })
  expect(optionsAtResume(said, [], { provider: 'codex' })).toEqual({ provider: 'codex', maxUsage: 90, config: [] })
  expect(optionsAtResume(said, [], { provider: 'codex', model: 'gpt-9' })).toMatchObject({ model: 'gpt-9' })
  const onAccount = { model: 'gpt-9', effort: 'high' }
  expect(optionsAtResume(onAccount, [], { provider: 'codex' })).toMatchObject(onAccount)
  expect(optionsAtResume(onAccount, [], { provider: 'local' })).toEqual({ provider: 'local', config: [] })
})

test('every flag that a sentence names is there', () => {
  const options = [withChangeFlags(withRunFlags(new Command())), withTeamFlags(new Command())].flatMap(
    each => each.options,
  )
  const named = settingInfos.flatMap(({ flag }) => flag ?? [])
  expect(named.length).toBeGreaterThan(10)
  expect(options.map(({ long }) => long)).toEqual(expect.arrayContaining(named))
})
