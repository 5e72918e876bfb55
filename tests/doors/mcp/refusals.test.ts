import { mkdirSync, symlinkSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import { startCodemachine } from '../../support/codemachine.ts'
import { git, makePlace } from '../../support/place.ts'
import { promise } from '../../support/promise.ts'
import { test } from '../../support/side-by-side.ts'
import { openClient } from './mcp-client.ts'

promise('O126', 'What is wrong in a call over MCP is said in a sentence that names it, and how to mend it')
test('what is wrong in a call, and how to mend it, is said in a sentence', async () => {
  await using place = await makePlace('')
  await using client = await openClient(place)
  const said = async (name: string, args: object) => {
    const { problem, hint } = await client.call(name, args)
    return hint === null ? problem : [problem, hint]
  }
  expect(await said('start_session', { goals: 'x' })).toBe('start_session takes no "goals"; did you mean "goal"?')
  expect(await said('queue_list', { what: 'x' })).toBe('queue_list takes no "what"; it takes directory.')
  expect(await said('start_session', { goal: ' ' })).toContain('use a text that says what to do')
  expect(await said('start_session', { goal: 'x', limits: { rounds: 'ten' } })).toBe(
    '"limits.rounds" of start_session is "ten"; use a whole number from 1 on: how many rounds.',
  )
  expect(await said('start_session', { goal: 'x', limits: { time: 'long' } })).toBe(
    '"limits.time" of start_session is "long"; use a time with its unit from 1 second on, such as "8h", "90m" or "1h30m".',
  )
  expect(await said('start_session', { goal: 'x', template: 'biuld' })).toContain('biuld')
  expect(await said('start_session', {})).toContain('needs a "goal"')
  expect(await said('steer', {})).toBe('steer needs "text": a text for the agent.')
  for (const name of ['wait_for', 'verify'])
    expect(await said(name, { seconds: 51 })).toBe(
      `"seconds" of ${name} is 51; use a whole number from 1 to 50: how long this call waits.`,
    )
  expect(await said('report', { session: '20200101_1' })).toEqual([
    `No sessions in ${place.directory} yet.`,
    expect.any(String),
  ])
  expect(await said('answer', { question: 'Q1', answer: 'x' })).toEqual([
    expect.stringContaining('There is no question "Q1"'),
    expect.any(String),
  ])
  expect(await said('diff', {})).toEqual([expect.stringContaining('No sessions'), expect.any(String)])
  expect(await said('fly', {})).toBe('There is no tool fly.')
  expect(await client.call('fly', {})).toMatchObject({ code: 'CM0810' })
  await expect(client.client.readResource({ uri: 'codemachine://session/x/y/z' })).rejects.toThrow(
    /There is no resource .* \(CM0810\)/,
  )
})

promise(
  'O123',
  "Over MCP only directories are used that a person has named, by their real paths; a project's own file names none",
)
test('only the directories that a person has named are used, those below them, and worktrees of them', async () => {
  await using place = await makePlace('')
  const [other, below] = [join(place.root, 'other'), join(place.directory, 'below')]
  for (const folder of [other, below]) mkdirSync(folder)
  symlinkSync(other, join(place.directory, 'link'))
  const worktree = join(place.root, 'work.worktrees', 'x')
  git(place, 'worktree', 'add', '-q', '-b', 'codemachine/x', worktree)
  symlinkSync(other, join(place.root, 'work.worktrees', 'y'))
  await using client = await openClient(place)
  const refused = async (directory: string) => (await client.call('queue_add', { directory, prompt: 'x' })).problem
  for (const directory of [place.directory, below, 'below', worktree]) expect(await refused(directory)).toBeNull()
  for (const directory of [
    other,
    join(place.directory, 'link'),
    place.root,
    '/',
    '..',
    join(place.root, 'work.worktrees', 'y'),
  ])
    expect(await refused(directory)).toContain("is not one of this server's directories, so it does nothing there.")
  expect(await refused('gone')).toBe(`There is no directory ${join(place.directory, 'gone')}.`)

  await using two = await openClient(place, { args: ['--dir', other, '--dir', below] })
  expect((await two.call('status')).problem).toBe('Say which directory: this server has more than one.')
  expect((await two.call('status', { directory: other })).problem).toBeNull()
  expect((await two.call('status', { directory: place.directory })).problem).toContain('is not one of')
  // Of a worktree only the folder that is named of the checkout.
  for (const folder of ['below', 'beside']) mkdirSync(join(worktree, folder))
  expect((await two.call('status', { directory: join(worktree, 'below') })).problem).toBeNull()
  for (const directory of [worktree, join(worktree, 'beside')])
    expect((await two.call('status', { directory })).problem).toContain('is not one of')
})

promise('O123')
test('a person names the directories in their settings; a file of a project has no say', async () => {
  await using place = await makePlace('')
  const other = join(place.root, 'other')
  mkdirSync(other)
  const folder = join(place.home, '.config', 'codemachine')
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, 'config.toml'), `[mcp]\ndirs = [${JSON.stringify(other)}]\n`)
  await writeFile(join(place.directory, 'codemachine.toml'), `[mcp]\ndirs = ["/"]\n`)
  await using client = await openClient(place)
  expect((await client.call('status')).value).toMatchObject({ directory: other })
  expect((await client.call('status', { directory: place.directory })).problem).toContain('is not one of')
  const gone = await startCodemachine(place, ['mcp', '--dir', 'gone']).ended
  expect([gone.exitCode, gone.stderr]).toEqual([
    2,
    'codemachine: There is no directory gone; name an existing one. (CM0106)\n',
  ])
})
