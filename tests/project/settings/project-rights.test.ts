import { describe, expect, test } from 'vitest'
import { promise } from '../../support/promise.ts'
import { openSettings } from './settings-places.ts'

const HOUR = 60 * 60 * 1000

describe('the file of a project, which an agent can write and a clone brings along', () => {
  promise(
    'C69',
    "A project's file does not have its own plans carried out unseen, and does not say who carries them out or plans",
  )
  test.each([
    ['sandbox = "danger-full-access"', 'sandbox cannot be "danger-full-access"', '--sandbox'],
    ['network = true', 'network cannot be true', '--network'],
    ['codex_bin = "./evil"', 'codex_bin cannot be "./evil"', '--codex-bin'],
    ['codex_home = "own"', 'codex_home cannot be "own"', 'CODEMACHINE_CODEX_HOME'],
    ['notify.command = ["sh", "-c", "id"]', 'notify.command cannot be set', 'CODEMACHINE_NOTIFY_COMMAND'],
    ['notify.webhook = "https://evil.example"', 'notify.webhook cannot be set', 'CODEMACHINE_NOTIFY_WEBHOOK'],
    ['notify.bell = true', 'notify.bell cannot be set', 'CODEMACHINE_NOTIFY_BELL'],
    ['notify.events = []', 'notify.events cannot be set', 'CODEMACHINE_NOTIFY_EVENTS'],
    ['change.review = "auto"', 'change.review cannot be "auto"', '--auto'],
    ['change.executor = "ollama"', 'change.executor cannot be set', '--executor'],
    ['change.planner_model = "cheap"', 'change.planner_model cannot be set', '--planner-model'],
    ['change.planner_effort = "low"', 'change.planner_effort cannot be set', '--planner-effort'],
  ])('does not give more than the person gave: %s', async (text, subject, instead) => {
    await using settings = await openSettings()
    await settings.project(text)
    expect(await settings.sentence()).toBe(
      `UserError: codemachine.toml:1: ${subject} by a project's own file; if you want that, use ${instead} or your own config.toml.`,
    )
  })

  promise('M6', "A project's own file may narrow what the person has settled, never widen it")
  test('may be stricter, may repeat what the person says, and yields to a flag', async () => {
    await using settings = await openSettings()
    await settings.person('network = true')
    await settings.project('sandbox = "read-only"\nnetwork = true\n')
    expect((await settings.load()).settings).toMatchObject({ sandbox: 'read-only', network: true })
    await settings.project('sandbox = "danger-full-access"\n')
    expect((await settings.load({ flags: { sandbox: 'danger-full-access' } })).settings.sandbox).toBe(
      'danger-full-access',
    )
  })

  test('tells nobody: not even to the webhook that the person wrote too', async () => {
    await using settings = await openSettings()
    const text = 'notify.webhook = "https://hooks.example/secret"\n'
    await settings.person(text)
    await settings.project(text)
    expect(await settings.sentence()).toMatch(/^UserError: codemachine.toml:1: notify.webhook cannot be set by/)
    expect(await settings.sentence()).not.toContain('secret')
  })

  test.each([
    ['rounds = 20', 'rounds = 40', 'rounds = 19', { rounds: 20 }, { rounds: 19 }],
    ['max_time = "8h"', 'max_time = "481m"', 'max_time = "90m"', { maxTime: 8 * HOUR }, { maxTime: 1.5 * HOUR }],
    ['max_tokens = "5M"', 'max_tokens = 5000001', 'max_tokens = "500k"', { maxTokens: 5e6 }, { maxTokens: 5e5 }],
    ['max_usage = 80', 'max_usage = "90%"', 'max_usage = "9%"', { maxUsage: 80 }, { maxUsage: 9 }],
    ['max_wait = "2h"', 'max_wait = "3d"', 'max_wait = "30s"', { maxWait: 2 * HOUR }, { maxWait: 30_000 }],
    [
      'max_file_size = "1G"',
      'max_file_size = "2G"',
      'max_file_size = "500M"',
      { maxFileSize: 2 ** 30 },
      { maxFileSize: 500 * 2 ** 20 },
    ],
    ['keep_awake = false', 'keep_awake = true', 'keep_awake = false', { keepAwake: false }, { keepAwake: false }],
  ])('lowers a limit that the person wrote, and does not lift it: %s', async (own, higher, lower, kept, lowered) => {
    await using settings = await openSettings()
    await settings.person(`\n${own}\n`)
    await settings.project(higher)
    const { settings: read, sources } = await settings.load()
    expect(read).toMatchObject(kept)
    expect(Object.values(sources).filter(({ layer }) => layer !== 'defaults')).toEqual([
      { layer: 'person', place: `${settings.ofPerson}:2` },
    ])
    await settings.project(lower)
    expect((await settings.load()).settings).toMatchObject(lowered)
  })

  test('says how far a session may go where the person said nothing', async () => {
    await using settings = await openSettings()
    await settings.project('rounds = 40\nmax_time = "2d"\nmax_wait = "2d"\nmax_usage = 100\nkeep_awake = false\n')
    expect((await settings.load()).settings).toMatchObject({
      rounds: 40,
      maxTime: 48 * HOUR,
      maxWait: 48 * HOUR,
      maxUsage: 100,
      keepAwake: false,
    })
  })

  test('has a review made, and does not have it left out or made by another than the person says', async () => {
    await using settings = await openSettings()
    await settings.project('review = true\n[reviewer]\nmodel = "theirs"\neffort = "low"\n')
    const theirs = { review: true, reviewer: { model: 'theirs', effort: 'low' } }
    expect((await settings.load()).settings).toMatchObject(theirs)
    await settings.person('review = true\nreviewer = { model = "mine" }\n')
    await settings.project('review = false\n[reviewer]\nmodel = "theirs"\n')
    expect((await settings.load()).settings).toMatchObject({ review: true, reviewer: { model: 'mine', effort: null } })
    expect((await settings.load({ flags: { review: false } })).settings.review).toBe(false)
  })

  promise('C69')
  test('has a person look at each plan, and says how often is mended', async () => {
    await using settings = await openSettings()
    await settings.person('[change]\nreview = "auto"\nfix_attempts = 3\n')
    await settings.project('[change]\nreview = "manual"\nfix_attempts = 8\n')
    expect((await settings.load()).settings.change).toMatchObject({ review: 'manual', fixAttempts: 8 })
    await settings.project('[change]\nreview = "auto"\n')
    expect((await settings.load()).settings.change).toMatchObject({ review: 'auto', fixAttempts: 3 })
  })

  test('has a person asked for longer, and never for less time', async () => {
    const inForce = async (person: string, project: string) => {
      await using settings = await openSettings()
      await settings.person(person)
      await settings.project(`decide_after = "${project}"\n`)
      return (await settings.load()).settings.decideAfter
    }
    expect(await inForce('', '1s')).toBe(1_800_000)
    expect(await inForce('', '1h')).toBe(3_600_000)
    expect(await inForce('decide_after = "1m"\n', '30s')).toBe(60_000)
    expect(await inForce('decide_after = "1m"\n', '2m')).toBe(120_000)
  })

  describe('says of a silence, a command, a safe stop and a stall only what is stricter', () => {
    const inForce = async (person: string, project: string) => {
      await using settings = await openSettings()
      await settings.person(person)
      await settings.project(project)
      const { silenceMinutes, commandMinutes, graceMinutes, stallRounds } = (await settings.load()).settings
      return [silenceMinutes, commandMinutes, graceMinutes, stallRounds]
    }
    const all = (silence: number, command: number, grace: number, stall: number) =>
      `silence_minutes = ${silence}\ncommand_minutes = ${command}\ngrace_minutes = ${grace}\nstall_rounds = ${stall}\n`

    test('than the person has it', async () => {
      const own = all(30, 240, 20, 9)
      expect(await inForce(own, all(1440, 1440, 1440, 100_000))).toEqual([30, 240, 20, 9])
      expect(await inForce(own, all(29, 239, 19, 8))).toEqual([29, 239, 19, 8])
      expect(await inForce(all(1, 1, 0.1, 2), all(1.5, 2, 0.2, 3))).toEqual([1, 1, 0.1, 2])
    })

    test('than the default where the person wrote nothing', async () => {
      const byDefault = await inForce('', '')
      expect(await inForce('', all(1440, 1440, 1440, 100_000))).toEqual(byDefault)
      expect(await inForce('', all(1, 2, 0.5, 2))).toEqual([1, 2, 0.5, 2])
    })

    test('and is named as the place only of what counts', async () => {
      await using settings = await openSettings()
      await settings.project('grace_minutes = 1440\nstall_rounds = 2\n')
      const { sources } = await settings.load()
      expect(sources.graceMinutes).toEqual({ layer: 'defaults', place: 'settings.js' })
      expect(sources.stallRounds).toEqual({ layer: 'project', place: 'codemachine.toml:2' })
    })
  })
})
