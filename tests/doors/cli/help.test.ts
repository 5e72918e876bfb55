import type { Command } from 'commander'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { buildFlowProgram, buildProgram } from '../../../src/doors/cli/program.ts'
import { cliContext } from '../../support/cli-context.ts'
import { codemachineHere } from '../../support/in-process.ts'
import { makePlace, type TestPlace } from '../../support/place.ts'
import { promise } from '../../support/promise.ts'

let place: TestPlace
beforeAll(async () => {
  place = await makePlace('', { git: false })
})
afterAll(() => place[Symbol.asyncDispose]())

const GROUPS = ['start', 'watch', 'steer', 'prove', 'undo', 'setup', 'fleet']

/** What `codemachine` says, typed without a terminal. */
async function said(...args: string[]): Promise<string> {
  const { exitCode, stdout, stderr } = await codemachineHere(place, args)
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
  return stdout
}

/** All commands below one, each with the words that name it. */
function commandsBelow(command: Command, path: readonly string[] = []): { words: string[]; command: Command }[] {
  return command.commands.flatMap(each => {
    const words = [...path, each.name()]
    return [{ words, command: each }, ...commandsBelow(each, words)]
  })
}

/** The help of a command as it is printed. */
function helpOf(command: Command): string {
  let text = ''
  command.configureOutput({
    writeOut: more => {
      text += more
    },
  })
  command.outputHelp()
  return text
}

/** The command lines below `Example:` of a help, without what they do. */
function examplesIn(help: string): string[] {
  const [, below = ''] = /^Examples?:\n((?: {2}.*\n?)+)/m.exec(help) ?? []
  return below.split('\n').flatMap(line => (/^ {2}\S/.test(line) ? [line.trim().split(/ {2,}/)[0] ?? ''] : []))
}

/** The words of a command line as a shell reads it, without what it redirects. */
function wordsIn(line: string): string[] {
  const [command = ''] = line.split(/ [<>|] /)
  return [...command.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(
    ([, double, single, bare]) => double ?? single ?? bare ?? '',
  )
}

promise(
  'O56',
  '`--help` has every command in groups, on at most 40 lines of 80 columns; `help <group>` says more, and the help of each command has an example that can be typed',
)
test('--help has the commands in groups, on at most 40 lines of 80 columns', async () => {
  const help = await said('--help')
  const lines = help.trimEnd().split('\n')
  expect(lines.length).toBeLessThanOrEqual(40)
  expect(Math.max(...lines.map(line => line.length))).toBeLessThanOrEqual(80)
  expect(lines.filter(line => /^[A-Z].*: +also /.test(line)).map(line => line.split(':')[0])).toEqual([
    'Start',
    'Watch',
    'Steer',
    'Prove',
    'Undo',
    'Set up',
    'Many machines',
  ])
  expect(await said('help')).toBe(help)
})

promise('O56')
test('--help names each command, and help of its group says what it does', async () => {
  const program = buildProgram(cliContext(place), () => {})
  const help = await said('--help')
  const groups = (await Promise.all(GROUPS.map(name => said('help', name)))).join('\n')
  expect(groups.split('\n').filter(line => line.length > 80)).toEqual([])
  for (const { name, description } of program.commands.map(each => ({
    name: each.name(),
    description: each.description(),
  }))) {
    if (name === 'help') continue
    expect(help).toMatch(new RegExp(`\\b${name}\\b`))
    expect(groups.replace(/\s+/g, ' ')).toContain(`codemachine ${name} ${description}`)
  }
})

test('a word that is a group and a command shows the help of both', async () => {
  for (const name of ['start', 'watch', 'steer']) {
    const help = await said('help', name)
    expect(help).toMatch(new RegExp(`^Usage: codemachine ${name} `))
    expect(help).toMatch(new RegExp(`^${name}:$`, 'im'))
    expect(await said(name, '--help')).not.toMatch(new RegExp(`^${name}:$`, 'im'))
  }
  expect(await said('help', 'set', 'up')).toBe(await said('help', 'setup'))
})

test('help options names each option of a run, and the exit codes', async () => {
  const help = await said('help', 'options')
  for (const { long } of buildProgram(cliContext(place), () => {}).options) expect(help).toContain(long)
  expect(help).toContain('130, 143 interrupted')
  expect(help.replace(/\s+/g, ' ')).toContain('10, or no limit if --max-time, --max-tokens or --max-cost is given')
})

test('the help of a command below another is found, and one that there is not is refused by its nearest', async () => {
  expect(await said('help', 'queue', 'add')).toMatch(/^Usage: codemachine queue add /)
  expect(await codemachineHere(place, ['help', 'undoo'])).toMatchObject({
    exitCode: 2,
    stderr: 'codemachine: There is no command and no group "undoo"; did you mean "codemachine help undo"? (CM0101)\n',
  })
})

promise('O139', 'Each error has a code of its kind, which every door shows with it, and `codemachine help` explains')
test('help with the code of an error says what it is, its cause, and what to do', async () => {
  const help = await said('help', 'CM0302')
  expect(help).toMatch(/^CM0302: codex is not logged in\n\n {2}Cause: .+\n {2}What to do: .*codemachine login/)
  expect(await said('help', 'cm0302')).toBe(help)
  expect(await codemachineHere(place, ['help', 'CM9999'])).toMatchObject({
    exitCode: 2,
    stderr: 'codemachine: There is no code CM9999; docs/troubleshooting.md lists them. (CM0101)\n',
  })
})

promise('O56')
describe('the help of each command has an example that can be typed', () => {
  const of = (build: typeof buildProgram | typeof buildFlowProgram) => {
    const program = build(cliContext({ env: {}, directory: '/work', home: '/home' }), () => {})
    return commandsBelow(program)
  }

  test.each([
    ...of(buildProgram).map(({ words }) => ['codemachine', words] as const),
    ...of(buildFlowProgram).map(({ words }) => ['codex-flow', words] as const),
  ])('%s %j', async (name, words) => {
    const build = name === 'codemachine' ? buildProgram : buildFlowProgram
    const open = () => build(cliContext(place, { program: name }), () => {})
    const find = (program: Command) => commandsBelow(program).find(each => each.words.join(' ') === words.join(' '))
    const help = helpOf(find(open())?.command as Command)
    expect(help.split('\n').filter(line => line.length > 80)).toEqual([])
    const examples = examplesIn(help)
    expect(examples.length).toBeGreaterThan(0)
    for (const example of examples) {
      const [typed, ...args] = wordsIn(example)
      expect(typed).toBe(name)
      const program = open()
      const called: string[] = []
      for (const each of commandsBelow(program)) each.command.action(() => void called.push(each.words.join(' ')))
      await program.parseAsync(args, { from: 'user' })
      // That of a command with others below it may be one of these, and that of `change` one that queues it.
      expect(called).toHaveLength(1)
      const own = words.join(' ')
      expect([own, ...(own === 'change' ? ['queue'] : [])].some(each => called[0]?.startsWith(each))).toBe(true)
    }
  })
})
