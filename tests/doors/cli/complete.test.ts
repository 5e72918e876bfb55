import { spawnSync } from 'node:child_process'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { codemachine } from '../../support/codemachine.ts'
import { git, makePlace, type TestPlace } from '../../support/place.ts'

let place: TestPlace
beforeAll(async () => {
  place = await makePlace('', { git: false })
})
afterAll(() => place[Symbol.asyncDispose]())

/** What a shell is told when tab is pressed after these words: one suggestion a line. */
const suggestions = (...words: string[]) => suggestionsIn(place, ...words)

async function suggestionsIn(place: TestPlace, ...words: string[]): Promise<string[]> {
  const { exitCode, stdout, stderr } = await codemachine(place, ['complete', '--', ...words])
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
  const lines = stdout.split('\n').filter(line => line !== '' && !/^:\d+$/.test(line))
  return lines.map(line => line.split('\t')[0] ?? '')
}

test.each(['zsh', 'bash', 'fish', 'powershell'])('prints a script for %s that completes codemachine', async shell => {
  const { exitCode, stdout, stderr } = await codemachine(place, ['complete', shell])
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
  expect(stdout).toContain('codemachine')
  expect(stdout).toMatch(/complet/i)
})

test('a shell that it does not know is wrong usage', async () => {
  expect((await codemachine(place, ['complete', 'tcsh'])).exitCode).toBe(2)
})

test('the beginning of a command is completed', async () => {
  expect(await suggestions('qu')).toEqual(['queue', 'questions'])
})

test('the commands of a command are suggested', async () => {
  expect(await suggestions('queue', '')).toEqual(expect.arrayContaining(['add', 'list', 'edit', 'rm']))
})

test('what can be done with a plan is suggested', async () => {
  expect(await suggestions('plan', '')).toEqual(expect.arrayContaining(['show', 'accept', 'reject', 'edit']))
})

test('the beginning of a flag is completed', async () => {
  expect(await suggestions('--san')).toEqual(['--sandbox'])
})

test('the modes of the sandbox are suggested', async () => {
  expect(await suggestions('--sandbox', '')).toEqual(['read-only', 'workspace-write', 'danger-full-access'])
})

test('the templates are suggested', async () => {
  expect(await suggestions('templates', 'select', '')).toEqual(['build', 'goal'])
  expect(await suggestions('start', '--template', '')).toEqual(['build', 'goal'])
  expect(await suggestions('queue', 'add', '--template', '')).toEqual(['build', 'goal', 'change', 'flow'])
})

test('the values of this directory are suggested: queued prompts, agents, engines and providers', async () => {
  await codemachine(place, ['queue', 'add', 'build X'])
  expect(await suggestions('queue', 'rm', '')).toEqual(['000001'])
  expect(await suggestions('queue', 'move', '000001', '--before', '')).toEqual(['000001'])
  expect(await suggestions('agents', 'show', 'master')).toEqual(['master-mind'])
  expect(await suggestions('--engine', 'cl')).toEqual(['claude'])
  expect(await suggestions('--provider', 'ol')).toEqual(['ollama'])
  expect(await suggestions('resume', '')).toEqual([])
})

test('the branches of a repository are suggested to land on', async () => {
  await using repository = await makePlace('')
  git(repository, 'branch', 'main-two')
  expect(await suggestionsIn(repository, 'land', 'x', '--onto', 'main-')).toEqual(['main-two'])
})

test('bash loads its script twice without a word', async () => {
  const { stdout } = await codemachine(place, ['complete', 'bash'])
  const { stderr, status } = spawnSync('bash', ['-c', `${stdout}\n${stdout}`], { encoding: 'utf8', env: place.env })
  expect({ stderr, status }).toEqual({ stderr: '', status: 0 })
})

test('the flags of a change are suggested', async () => {
  expect(await suggestions('change', '--planner-')).toEqual(['--planner-model', '--planner-effort', '--planner-engine'])
  expect(await suggestions('change', '--ex')).toEqual(['--executor', '--executor-engine'])
})

test('the commands of a team and of secrets are suggested, with their flags', async () => {
  expect(await suggestions('team', '')).toEqual(
    expect.arrayContaining(['plan', 'work', 'review', 'rm', 'list', 'show']),
  )
  expect(await suggestions('team', '--step')).toEqual(['--stepwise'])
  expect(await suggestions('team', 'work', '--proj')).toEqual(['--project'])
  expect(await suggestions('secret', '')).toEqual(expect.arrayContaining(['set', 'list', 'rm', 'check', 'export']))
  expect(await suggestions('secret', 'set', '--ch')).toEqual(['--check'])
})

test('the groups and commands that help knows are suggested', async () => {
  expect(await suggestions('help', '')).toEqual(
    expect.arrayContaining(['start', 'watch', 'steer', 'prove', 'undo', 'setup', 'options', 'queue', 'complete']),
  )
})

test('the help of start names the rounds of a build', async () => {
  expect((await codemachine(place, ['start', '--help'])).stdout).toMatch(/--rounds <n>\s+most rounds \(50,/)
})

test('the help names the command', async () => {
  expect((await codemachine(place, ['--help'])).stdout).toMatch(/^ {2}complete /m)
})
