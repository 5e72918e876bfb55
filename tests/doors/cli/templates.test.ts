import { lstat, readFile, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Command } from 'commander'
import { expect, test } from 'vitest'
import { UserError } from '../../../src/base/errors.ts'
import { runCommandLine } from '../../../src/doors/cli/entry.ts'
import { buildProgram } from '../../../src/doors/cli/program.ts'
import { OWN_TEMPLATES } from '../../../src/modes/registry.ts'
import { makePlace, type Place } from './place.ts'

const file = ({ directory }: Place) => join(directory, 'codemachine.toml')

async function run(place: Place, ...args: string[]): Promise<string> {
  const before = place.written().length
  expect(await runCommandLine(place.context, args)).toBe(0)
  return place.written().slice(before)
}

async function refusal(place: Place, ...args: string[]): Promise<string> {
  const error: unknown = await runCommandLine(place.context, args).catch((thrown: unknown) => thrown)
  if (!(error instanceof UserError)) throw new Error(`not refused: ${String(error)}`)
  expect(error.exitCode).toBe(2)
  return error.message
}

test('the templates are listed with the one that is chosen, and another one can be chosen', async () => {
  await using place = await makePlace()
  const listed = `* build   a team of agents plans it, builds it task by task, and tests it  (chosen: settings.js)
          codemachine start --template build
  goal    one agent works on it, round after round, until it is done
          codemachine "…"
  change  one change: planned, accepted, carried out task by task, and proved
          codemachine change "…"
  agent   one agent does one thing, and its answer is printed
          codemachine --agent <name> "…"
  flow    the steps of a workflow file
          codemachine flow run <file>
  team    a new project: planned in steps, worked on, tested and reviewed, with secrets that no model sees
          codemachine team "…"
To choose another one: codemachine templates select <name>
`
  expect(await run(place, 'templates')).toBe(listed)
  expect(await run(place, 'templates', 'list')).toBe(listed)
  expect(await run(place, 'templates', 'select', 'build')).toBe('build is chosen already (settings.js).\n')
  expect(await run(place, 'templates', 'select', 'goal')).toBe(
    'codemachine.toml says so now: start starts a session of the template goal.\n',
  )
  const [address, ...lines] = (await readFile(file(place), 'utf8')).split('\n')
  expect(lines).toEqual(['mode = "goal"', ''])
  const schemas: { file: string; address: string }[] = JSON.parse(await run(place, 'settings', 'schema', '--json'))
  expect(address).toBe(`#:schema ${schemas.find(each => each.file === 'codemachine.toml')?.address}`)
  expect((await stat(file(place))).mode & 0o777).toBe(0o644)
  expect(await run(place, 'templates', 'list')).toContain('* goal    ')
  expect(JSON.parse(await run(place, 'templates', 'list', '--json'))).toMatchObject([
    { name: 'build', chosen: false },
    { name: 'goal', chosen: true },
    { name: 'change', chosen: false },
    { name: 'agent', chosen: false },
    { name: 'flow', chosen: false },
    { name: 'team', chosen: false },
  ])
  expect(await refusal(place, 'templates', 'select', 'agent')).toBe(
    'The template "agent" is not started, but called: codemachine --agent <name> "…"',
  )
  expect(await refusal(place, 'templates', 'select', 'change')).toBe(
    'A specification cannot start the template "change"; write a goal: codemachine change "…"',
  )
  expect(await refusal(place, 'start', '--yes', '--template', 'change')).toMatch(/^A specification cannot start/)
  expect(await refusal(place, 'queue', 'add', '--template', 'change')).toMatch(/^A specification cannot start/)
  expect(await run(place, 'templates', 'select', 'goal', '-C', place.directory)).toBe(
    'goal is chosen already (codemachine.toml:2).\n',
  )
})

test.each([
  [
    'a mode with its remark',
    '# Ours\nrounds = 20\nmode  =  \'build\' # for now\n\n[logging]\nlevel = "info"\n',
    '# Ours\nrounds = 20\nmode  =  "goal" # for now\n\n[logging]\nlevel = "info"\n',
  ],
  [
    'keys before a table',
    '# Ours\nrounds = 20 # enough\n\n# Talk\n[logging]\nlevel = "info"\n',
    '# Ours\nrounds = 20 # enough\nmode = "goal"\n\n# Talk\n[logging]\nlevel = "info"\n',
  ],
  [
    'a table alone',
    '[[gates]]\nname = "tests"\nrun = "npm test"\n',
    'mode = "goal"\n\n[[gates]]\nname = "tests"\nrun = "npm test"\n',
  ],
  ['no last line end', 'rounds = 20', 'rounds = 20\nmode = "goal"\n'],
  ['line ends of Windows', '\uFEFFrounds = 20\r\nport = 80\r\n', '\uFEFFrounds = 20\r\nport = 80\r\nmode = "goal"\r\n'],
  ['a quoted key', '"mode" = "build"', '"mode" = "goal"'],
])('all else in codemachine.toml stays as it is: %s', async (_, before, after) => {
  await using place = await makePlace()
  await writeFile(file(place), before, { mode: 0o600 })
  await run(place, 'templates', 'select', 'goal')
  expect(await readFile(file(place), 'utf8')).toBe(after)
  expect((await stat(file(place))).mode & 0o777).toBe(0o600)
})

test('a mode that is none is mended by choosing one; other mistakes are not written over', async () => {
  await using place = await makePlace()
  await writeFile(file(place), 'mode = "wrong"\nrounds = 20\n')
  await run(place, 'templates', 'select', 'goal')
  expect(await readFile(file(place), 'utf8')).toBe('mode = "goal"\nrounds = 20\n')
  await writeFile(file(place), 'rounds = "many"\n')
  expect(await refusal(place, 'templates', 'select', 'goal')).toContain('rounds')
  expect(await readFile(file(place), 'utf8')).toBe('rounds = "many"\n')
})

test('who types the template alone is told what chooses it', async () => {
  await using place = await makePlace()
  expect(await refusal(place, 'templates', 'goal')).toBe('To choose it: codemachine templates select goal')
  expect(await refusal(place, 'templates', 'goals')).toBe('There is no template "goals"; did you mean "goal"?')
})

test('what cannot be chosen is refused in a sentence, and nothing is written', async () => {
  await using place = await makePlace()
  expect(await refusal(place, 'templates', 'select', 'goals')).toBe(
    'There is no template "goals"; did you mean "goal"?',
  )
  expect(await refusal(place, 'templates', 'select', 'crew')).toBe('There is no template "crew"; use build or goal.')
  expect(await refusal(place, 'templates', 'select', 'team')).toBe(
    'A prompt cannot start the template "team"; use: codemachine team "…"',
  )
  expect(await refusal(place, 'templates', 'select', 'flow')).toBe(
    'A prompt cannot start the template "flow"; use: codemachine flow run <file>',
  )
  await writeFile(file(place), 'rounds = \n')
  expect(await refusal(place, 'templates', 'select', 'goal')).toBe(
    'codemachine.toml:1:9: not valid TOML: there is no value after "=".',
  )
  expect(await readFile(file(place), 'utf8')).toBe('rounds = \n')
})

test('a codemachine.toml that is a link is not written through', async () => {
  await using place = await makePlace()
  const target = join(place.directory, 'shared.toml')
  await writeFile(target, 'rounds = 20\n')
  await symlink(target, file(place))
  expect(await refusal(place, 'templates', 'select', 'goal')).toBe(
    'codemachine.toml: it is a link; write a file in its place.',
  )
  expect((await lstat(file(place))).isSymbolicLink()).toBe(true)
  expect(await readFile(target, 'utf8')).toBe('rounds = 20\n')
})

test('a variable that says otherwise is named', async () => {
  await using place = await makePlace()
  place.context.env.CODEMACHINE_MODE = 'build'
  expect(await run(place, 'templates', 'select', 'goal')).toBe(
    'codemachine.toml says goal now, but CODEMACHINE_MODE overrides it with build.\n',
  )
})

test('a help says of the commands that were not typed what it says where every command has all that it has', async () => {
  await using place = await makePlace()
  const program = (typed?: readonly string[]) => buildProgram(place.context, () => {}, typed)
  expect(program(['--help']).helpInformation()).toBe(program().helpInformation())
  const queueOf = (of: Command) => of.commands.find(each => each.name() === 'queue')
  expect(queueOf(program(['queue', '--help']))?.helpInformation()).toBe(queueOf(program())?.helpInformation())
  expect(queueOf(program(['--help']))?.commands).toEqual([])
})

test('the templates that the help names are those that there are', async () => {
  await using place = await makePlace()
  const choices = (path: readonly string[]) => {
    const program = buildProgram(place.context, () => {})
    const command = path.reduce<Command | undefined>(
      (above, name) => above?.commands.find(each => each.name() === name),
      program,
    )
    return command?.options.find(({ long }) => long === '--template')?.argChoices
  }
  const prompted = [...OWN_TEMPLATES.values()].filter(({ isCall, hasOwnCommand }) => !isCall && !hasOwnCommand)
  const named = [...OWN_TEMPLATES.values()].filter(({ promptNames }) => promptNames !== undefined)
  const started = prompted.filter(({ needsRequest }) => !needsRequest)
  expect(choices(['queue', 'add'])).toEqual([...prompted, ...named].map(({ name }) => name))
  expect(choices(['start'])).toEqual(started.map(({ name }) => name))
})
