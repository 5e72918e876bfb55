import { mkdir, readdir, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { codemachineHere } from '../../../support/in-process.ts'
import { makePlace, type TestPlace } from '../../../support/place.ts'
import { promise } from '../../../support/promise.ts'

let place: TestPlace
beforeAll(async () => {
  place = await makePlace('')
})
afterAll(() => place[Symbol.asyncDispose]())

const typed = (args: readonly string[], options: Parameters<typeof codemachineHere>[2] = {}) =>
  codemachineHere(place, ['team', ...args], options)

const NO_GOAL = 'There is no goal; say what the project should be.'

promise('T2')
describe('a team that cannot begin is refused in a sentence, and nothing is made', () => {
  test.each<[string, string[], string]>([
    ['without a goal', [], NO_GOAL],
    ['with an empty one', ['  '], NO_GOAL],
    ['with nothing behind the dashes', ['--'], NO_GOAL],
    ['where the input has none', ['-'], 'The prompt is empty; say what to do.'],
    ['with more repairs than there can be', ['--repair', '4', 'x'], '--repair is "4"; use a whole number from 0 to 3.'],
    ['with repairs in letters', ['--repair', 'few', 'x'], '--repair is "few"; use a whole number from 0 to 3.'],
    [
      'in a worktree',
      ['--worktree', 'a', 'x'],
      '--worktree does not apply to a team, which has its own project directory',
    ],
    ['with a project of no name', ['--project', '', 'x'], '--project is empty; name an existing directory.'],
    ['with a plan of nothing', ['plan'], 'There is no goal; say what to plan.'],
    ['with a step and no project', ['work', 'x'], 'Name the project: codemachine team work "…" --project <dir>'],
    ['with no step', ['work', '--project', '.'], 'There is no step; say what to do.'],
    ['with a review of nothing', ['review'], 'Name the project: codemachine team review --project <dir>'],
    [
      'with a flag that stands too early',
      ['--yes', 'work', 'x'],
      'Write --yes after team work: codemachine team work --yes …',
    ],
    [
      'with a flag that means nothing there',
      ['--repair', '2', 'plan', 'x'],
      '--repair does not apply to team plan; leave it out.',
    ],
    [
      'as a command that there is not',
      ['reviw'],
      'There is no command "reviw"; did you mean "codemachine team review"?',
    ],
    ['as the single word of one', ['help'], 'There is no command "help"; codemachine team --help lists them.'],
    ['with rounds in letters', ['--rounds', 'many', 'x'], '--rounds is "many"; use a whole number'],
  ])('%s', async (_which, args, sentence) => {
    const before = await readdir(place.directory)
    const { exitCode, stdout, stderr } = await typed(args)
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' })
    expect(stderr).toContain(`codemachine: ${sentence}`)
    expect(await readdir(place.directory)).toEqual(before)
  })

  test('with what it is to say where a person sits at a terminal, and where none does', async () => {
    expect((await typed([], { tty: true })).stderr).toContain('Such as: codemachine team "a FastAPI service')
    expect((await typed([])).stderr).toContain('To read it from standard input: codemachine team -')
    expect((await typed(['plan'], { tty: true })).stderr).toContain(
      'If the goal itself is the word plan: codemachine team -- plan',
    )
  })
})

test.each<[string, string, string]>([
  ['is too long', 'x'.repeat(2 * 1024 * 1024), 'The prompt '],
  ['has control characters', 'say \x1b[2J hello', 'The goal contains control characters; leave them out.'],
])('a goal that %s is refused, and nothing is made', async (_what, input, sentence) => {
  const before = await readdir(place.directory)
  const { exitCode, stdout, stderr } = await typed(['-'], { input })
  expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' })
  expect(stderr).toContain(`codemachine: ${sentence}`)
  expect(stderr.length).toBeLessThan(500)
  expect(await readdir(place.directory)).toEqual(before)
})

test('a workspace in which projects is a file or a link is refused, and so is a project that is none', async () => {
  await using other = await makePlace('')
  const there = (...args: string[]) => codemachineHere(other, ['team', ...args])
  const projects = join(other.directory, 'projects')
  await writeFile(projects, '')
  expect(await there('greet somebody')).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining(`${projects} is`),
  })
  await rm(projects)
  await symlink(other.home, projects)
  expect(await there('greet somebody')).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining(`${projects} is`),
  })
  expect((await readdir(other.home)).filter(name => !name.startsWith('.'))).toEqual([])
  expect(await there('--project', 'nowhere', 'greet somebody')).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining('nowhere'),
  })
  expect((await there('list')).exitCode).toBe(0)
  for (const command of ['show', 'rm']) {
    expect(await there(command, '../work')).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining('"../work" is not a project of a team.'),
    })
  }
})

test('a workspace or a project whose path codex would take for a pattern is refused, and nothing is made', async () => {
  await using other = await makePlace('')
  const folder = join(other.directory, 'app[1]')
  await mkdir(folder)
  const before = await readdir(other.directory)
  for (const args of [
    ['-C', folder],
    ['-C', other.directory, '--project', 'app[1]'],
  ]) {
    expect(await codemachineHere(other, ['team', ...args, 'greet somebody'])).toMatchObject({
      exitCode: 2,
      stderr: `codemachine: ${folder} contains "[", which codex's sandbox would read as a pattern. (CM0209)\n  Rename the folder, or work in another one.\n`,
    })
  }
  expect([await readdir(folder), await readdir(other.directory)]).toEqual([[], before])
})

test('a goal behind dashes is a goal, though it begins as a command does', async () => {
  const { stderr } = await typed(['--repair', '9', '--', 'plan', 'a', 'garden'])
  expect(stderr).toContain('--repair is "9"')
  expect((await typed(['--help'])).stdout).toContain('codemachine team -- plan a garden')
})
