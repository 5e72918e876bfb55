import { describe, expect, test } from 'vitest'
import { gatesAtResume, reviewAtResume } from '../../../src/project/session-terms.ts'
import type { Layer } from '../../../src/project/settings/settings-file.ts'
import { cpuMs } from '../../support/cpu-time.ts'
import { promise } from '../../support/promise.ts'
import { openSettings } from './settings-places.ts'

const MINUTE = 60_000
/** Those of a gate that runs make. */
const MAKEFILES = ['GNUmakefile', 'makefile', 'Makefile']
const byDefault = { timeoutMs: 10 * MINUTE, required: true, network: false, protect: [], everyRound: false }

describe('a gate is read', () => {
  test('with all that can be said of it', async () => {
    await using settings = await openSettings()
    await settings.project(`rounds = 3

[[gates]]
name = "tests"
run = "npm test"
timeout = "90s"
required = false
network = false
protect = ["tests/**", "*.config.{js,ts}", ".github/[a-z]*"]
every_round = true

[[gates]]
run = 'npm run build && echo "built"'

[logging]
level = "debug"
`)
    const { settings: read, gates, gatePlaces } = await settings.load()
    expect(read).toMatchObject({ rounds: 3, logging: { level: 'debug' } })
    expect(gates).toEqual([
      {
        name: 'tests',
        run: 'npm test',
        timeoutMs: 90_000,
        required: false,
        network: false,
        protect: ['tests/**', '*.config.{js,ts}', '.github/[a-z]*'],
        everyRound: true,
      },
      { ...byDefault, name: 'npm run build && echo "built"', run: 'npm run build && echo "built"' },
    ])
    expect([...gatePlaces]).toEqual([
      ['tests', 'codemachine.toml:3'],
      ['npm run build && echo "built"', 'codemachine.toml:12'],
    ])
  })

  test('from one line, too', async () => {
    await using settings = await openSettings()
    await settings.person('gates = [{ run = "a" }, { name = "b", run = "true" }]')
    expect((await settings.load()).gates.map(({ name, run }) => [name, run])).toEqual([
      ['a', 'a'],
      ['b', 'true'],
    ])
  })

  test('and there is none where nobody wrote one', async () => {
    await using settings = await openSettings()
    expect((await settings.load()).gates).toEqual([])
    await settings.project('gates = []')
    expect((await settings.load()).gates).toEqual([])
  })

  test.each([
    [{ sandbox: 'workspace-write', network: false }, false],
    [{ sandbox: 'workspace-write', network: true }, true],
    [{ sandbox: 'read-only', network: true }, false],
    [{ sandbox: 'danger-full-access' }, true],
  ])('and has the network if the rounds have it: %j', async (flags, network) => {
    await using settings = await openSettings()
    await settings.project('[[gates]]\nrun = "a"\n[[gates]]\nrun = "b"\nnetwork = false\n')
    const { gates } = await settings.load({ flags, verify: ['c'] })
    expect(gates.map(gate => [gate.run, gate.network])).toEqual([
      ['a', network],
      ['b', false],
      ['c', network],
    ])
  })
})

describe('the gates of all places count', () => {
  const person = '[[gates]]\nname = "tests"\nrun = "make check"\n'

  test('those of the person first, and --verify last', async () => {
    await using settings = await openSettings()
    await settings.person(person)
    await settings.project('[[gates]]\nrun = "npm run lint"\n')
    const { gates } = await settings.load({ verify: ['./smoke.sh', './smoke.sh'] })
    expect(gates.map(({ name }) => name)).toEqual(['tests', 'npm run lint', './smoke.sh'])
    expect(gates[2]).toEqual({ ...byDefault, name: './smoke.sh', run: './smoke.sh' })
  })

  test('and a project does not put its own in the place of the person’s', async () => {
    await using settings = await openSettings()
    await settings.person(person)
    await settings.project('[[gates]]\nname = "tests"\nrun = "true"\nrequired = false\n')
    const { gates, gatePlaces } = await settings.load()
    expect(gates).toEqual([{ ...byDefault, name: 'tests', run: 'make check', protect: MAKEFILES }])
    expect(gatePlaces.get('tests')).toBe(`${settings.ofPerson}:1`)
  })

  test('nor in the place of what is typed, be it by its name or its command', async () => {
    await using settings = await openSettings()
    await settings.project(
      '[[gates]]\nname = "npm test"\nrun = "true"\n[[gates]]\nname = "lint"\nrun = "npm run lint"\nrequired = false\nprotect = ["x"]\n',
    )
    const { gates, gatePlaces } = await settings.load({ verify: ['npm test', 'npm run lint'] })
    expect(gates).toEqual([
      { ...byDefault, name: 'lint', run: 'npm run lint', protect: ['x'] },
      { ...byDefault, name: 'npm test', run: 'npm test' },
    ])
    expect(gatePlaces.get('npm test')).toBe('--verify')
  })
})

describe('a gate that is wrong is told in one sentence with its place', () => {
  const TIME = 'use a time with its unit from 1 second to 24 hours, such as "90s", "10m" or "1h30m".'
  const GLOBS =
    'use a list of globs relative to the work directory, without ".." or an open bracket, such as ["tests/**", "package.json"].'
  const COMMAND = 'use a command on one line, such as "npm test".'
  const TABLES = 'begin each gate with a line [[gates]], and write run = "…" below it.'
  const ONE = 'begin it with a line [[gates]], and write run = "…" below it.'
  const LIST = 'gates is not a list; begin each of its tables with a line [[gates]].'
  test.each([
    ['requird = true', '3: gates.requird is an unknown key; did you mean "required"?'],
    ['everyRound = true', '3: gates.everyRound is an unknown key; did you mean "every_round"?'],
    ['max_time = "1h"', '3: gates.max_time is an unknown key; the known ones are name, run, timeout, '],
    ['name.x = 1', '3: gates.name is a table; use a name on one line'],
    ['timeout = 10', `3: gates.timeout is 10; ${TIME}`],
    ['timeout = "soon"', `3: gates.timeout is "soon"; ${TIME}`],
    ['timeout = "25h"', `3: gates.timeout is "25h"; ${TIME}`],
    ['timeout = "0s"', `3: gates.timeout is "0s"; ${TIME}`],
    ['required = "yes"', '3: gates.required is "yes"; use true or false.'],
    ['every_round = { a = 1 }', '3: gates.every_round is a table; use true or false.'],
    ['name = ""', '3: gates.name is ""; use a name on one line, of at most 100 characters.'],
    ['protect = "tests/**"', `3: gates.protect is "tests/**"; ${GLOBS}`],
    ['protect = ["/etc/**"]', `3: gates.protect is ["/etc/**"]; ${GLOBS}`],
    ['protect = ["a/../../b"]', `3: gates.protect is ["a/../../b"]; ${GLOBS}`],
    ['protect = [".."]', `3: gates.protect is [".."]; ${GLOBS}`],
    ['protect = ["!tests/**"]', `3: gates.protect is ["!tests/**"]; ${GLOBS}`],
    ['protect = ["./tests"]', `3: gates.protect is ["./tests"]; ${GLOBS}`],
    ['protect = ["tests/"]', `3: gates.protect is ["tests/"]; ${GLOBS}`],
    ["protect = ['tests\\x']", `3: gates.protect is ['tests\\x']; ${GLOBS}`],
    ['protect = [""]', `3: gates.protect is [""]; ${GLOBS}`],
    ['protect = ["a[/b"]', `3: gates.protect is ["a[/b"]; ${GLOBS}`],
    [
      '[[gates]]\nrun = "npm test"',
      '3: the gate at codemachine.toml:1 is also called "npm test"; give each gate its own name.',
    ],
    ['[gates.tests]\nrun = "a"', '3: gates.tests is an unknown key; the known ones are name, run'],
  ])('%s', async (text, said) => {
    await using settings = await openSettings()
    await settings.project(`[[gates]]\nrun = "npm test"\n${text}\n`)
    expect(await settings.sentence()).toContain(`UserError: codemachine.toml:${said}`)
  })

  test.each([
    ['[gates]\nrun = "npm test"', `1: ${LIST}`],
    ['gates = "npm test"', `1: ${LIST}`],
    ['gates = ["npm test"]', '1: gates is not a table; begin it with a line [[gates]].'],
    ['gates.run = "npm test"', `1: ${LIST}`],
    ['gates = { run = "npm test" }', `1: ${LIST}`],
    ['verify = "npm test"', `1: verify is "npm test"; use "auto" or "nothing"; a command is a gate: ${ONE}`],
    ['protect = ["tests/**"]', `1: protect is an unknown key; ${TABLES}`],
    ['[[gate]]\nrun = "npm test"', '1: gate is an unknown key; did you mean "gates"?'],
    ['\n[[gates]]\nname = "tests"', '2: gates.run is missing; write the command that has to pass: run = "npm test".'],
    ['[[gates]]\nrun = ["npm", "test"]', `2: gates.run is ["npm", "test"]; ${COMMAND}`],
    ['[[gates]]\nrun = "  "', `2: gates.run is " "; ${COMMAND}`],
    ['[[gates]]\nrun = """a\nb"""', `2: gates.run is """a b"""; ${COMMAND}`],
  ])('%j', async (text, said) => {
    await using settings = await openSettings()
    await settings.project(`${text}\n`)
    expect(await settings.sentence()).toBe(`UserError: codemachine.toml:${said}`)
  })

  test('in the person’s own file and on the command line', async () => {
    await using settings = await openSettings()
    expect(await settings.sentence({ verify: ['true', ' '] })).toBe(`UserError: --verify is " "; ${COMMAND}`)
    await settings.person('[[gates]]\n')
    expect(await settings.sentence()).toMatch(`UserError: ${settings.ofPerson}:1: gates.run is missing; `)
  })

  test('if there are too many', async () => {
    await using settings = await openSettings()
    await settings.project(Array.from({ length: 60 }, (_, n) => `[[gates]]\nrun = "${n}"\n`).join(''))
    expect(await settings.sentence()).toBe(
      'UserError: codemachine.toml:101: there are 60 gates; at most 50 are allowed.',
    )
  })
})

test.each([
  [
    {},
    'codemachine.toml:3: gates.network is true, but the rounds have no network. A gate never has more rights than the rounds. Allow it for both with --network, or remove it.',
  ],
  [{ network: true }, null],
  [{ sandbox: 'danger-full-access' }, null],
])(
  'a gate that wants the network stands in the way of rounds alone, and only if they have none: %j',
  async (flags, refusal) => {
    await using settings = await openSettings()
    await settings.project('[[gates]]\nrun = "npm test"\nnetwork = true\n')
    const { settings: loaded, gateRefusal } = await settings.load({ flags })
    expect(loaded.rounds).toBe(10)
    expect(gateRefusal).toBe(refusal)
  },
)

test('a project does not have a night wait longer for a gate than for a command; a person may', async () => {
  await using settings = await openSettings()
  const text = '[[gates]]\nrun = "a"\ntimeout = "90m"\n'
  await settings.project(text)
  expect(await settings.sentence()).toBe(
    "UserError: codemachine.toml:3: gates.timeout is longer than a command may take (command_minutes = 60). A project's own file cannot ask for that. Raise command_minutes in your own config.toml, or define the gate there.",
  )
  await settings.person('command_minutes = 90\n')
  expect((await settings.load()).gates).toMatchObject([{ timeoutMs: 90 * MINUTE }])
  await settings.project('')
  await settings.person(text)
  expect((await settings.load()).gates).toMatchObject([{ timeoutMs: 90 * MINUTE }])
})

describe('a session that goes on', () => {
  const gate = { ...byDefault, name: 'tests', run: 'npm test', required: false, network: true, protect: ['t/**'] }
  const online = { sandbox: 'workspace-write', network: true } as const
  const loaded = [{ ...gate, run: 'true', protect: [] }]
  const given = { journaled: [gate], loaded, verify: [], reread: false }

  test('has to pass what it began with, whatever the files say by now', () => {
    expect(gatesAtResume(given, online)).toEqual([gate])
    expect(gatesAtResume({ ...given, reread: true }, online)).toEqual(loaded)
  })

  test('has to pass what --verify adds, and keeps what else is said of a gate that has this command', () => {
    expect(gatesAtResume({ ...given, verify: ['npm test', 'make'] }, online)).toEqual([
      { ...gate, required: true },
      { ...byDefault, name: 'make', run: 'make', network: true, protect: MAKEFILES },
    ])
  })

  test('has gates without a network where its rounds have none any more', () => {
    for (const reread of [true, false]) {
      const gates = gatesAtResume({ ...given, reread }, { ...online, network: false })
      expect(gates.map(({ network }) => network)).toEqual([false])
    }
  })

  const reviewer = { model: 'strong', effort: null }
  const weak = { model: 'weak', effort: 'low' }
  const review = (at: Layer, isOn: boolean, reread = false, reviewerAt: Layer = 'project') =>
    reviewAtResume({
      journaled: reviewer,
      settings: { review: isOn, reviewer: { ...weak, engine: null } },
      sources: {
        review: { layer: at, place: '' },
        'reviewer.model': { layer: reviewerAt, place: '' },
        'reviewer.effort': { layer: reviewerAt, place: '' },
      },
      reread,
    })

  test('is reviewed as it was, by whom it was, whatever the project says by now; a person can say otherwise', () => {
    expect(review('defaults', false)).toEqual(reviewer)
    expect(review('project', true)).toEqual(reviewer)
    expect(review('person', false)).toEqual(reviewer)
    expect(review('flag', true)).toEqual(reviewer)
    expect(review('flag', false)).toBeNull()
    expect(review('environment', false)).toBeNull()
    expect(review('defaults', false, true)).toBeNull()
    expect(review('project', true, true)).toEqual(weak)
    expect(review('person', true, false, 'person')).toEqual(weak)
  })
})

promise('D76')
test('a long text that ends with what no line has takes no time', async () => {
  await using settings = await openSettings()
  await settings.project(`[[gates]]\nrun = "${'x'.repeat(99_000)}\\u0001"\n`)
  const before = cpuMs()
  expect(await settings.sentence()).toContain('gates.run is "xxx')
  expect(cpuMs() - before).toBeLessThan(2_000)
})
