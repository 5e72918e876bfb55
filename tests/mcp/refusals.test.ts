import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import { isAlive } from '../../src/platform/processes.ts'
import { startCodemachine } from '../support/codemachine.ts'
import { git, makePlace } from '../support/place.ts'
import { held, round, says } from '../support/rounds.ts'
import { openScene } from '../support/scene.ts'
import { test } from '../support/side-by-side.ts'
import { callBare, openClient } from './mcp-client.ts'

test('what is wrong in a call, and how to mend it, is said in a sentence', async () => {
  await using place = await makePlace('')
  await using client = await openClient(place)
  const said = async (name: string, args: object) => {
    const { problem, hint } = await client.call(name, args)
    return hint === null ? problem : [problem, hint]
  }
  expect(await said('start_session', { goals: 'x' })).toBe('start_session takes no "goals"; did you mean "goal"?')
  expect(await said('queue_list', { what: 'x' })).toBe('queue_list takes no "what"; it takes directory.')
  expect(await said('start_session', { goal: ' ' })).toContain('use a text that says what is to be done')
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
    `There are no sessions in ${place.directory} yet.`,
    expect.any(String),
  ])
  expect(await said('answer', { question: 'Q1', answer: 'x' })).toEqual([
    expect.stringContaining('There is no question "Q1"'),
    expect.any(String),
  ])
  expect(await said('diff', {})).toEqual([expect.stringContaining('There are no sessions'), expect.any(String)])
  expect(await said('fly', {})).toBe('There is no tool fly.')
  await expect(client.client.readResource({ uri: 'codemachine://session/x/y/z' })).rejects.toThrow(
    'There is no resource',
  )
})

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
    expect(await refused(directory)).toContain('is not named for this server, so nothing is done there.')
  expect(await refused('gone')).toBe(`There is no directory ${join(place.directory, 'gone')}.`)

  await using two = await openClient(place, { args: ['--dir', other, '--dir', below] })
  expect((await two.call('status')).problem).toBe('Say which directory: more than one is named for this server.')
  expect((await two.call('status', { directory: other })).problem).toBeNull()
  expect((await two.call('status', { directory: place.directory })).problem).toContain('is not named')
})

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
  expect((await client.call('status', { directory: place.directory })).problem).toContain('is not named')
  const gone = await startCodemachine(place, ['mcp', '--dir', 'gone']).ended
  expect([gone.exitCode, gone.stderr]).toEqual([
    2,
    'codemachine: There is no directory gone; name one that is there.\n',
  ])
})

test('files are rewound and worktrees landed only where the server was started with --allow-write', async () => {
  await using scene = await openScene([round('echo one > app.txt')])
  const { place } = scene
  await scene.run('--rounds', '1', 'build X')
  const worktree = join(place.root, 'work.worktrees', 'x')
  git(place, 'worktree', 'add', '-q', '-b', 'codemachine/x', worktree)
  writeFileSync(join(worktree, 'new.txt'), 'new\n')
  await using careful = await openClient(place)
  expect((await careful.call('rewind', { to: 'start' })).problem).toBe(
    'rewind changes files, and this server was started without --allow-write.',
  )
  expect((await careful.call('land')).hint).toBe('A person starts it with codemachine mcp --allow-write.')
  await using client = await openClient(place, { args: ['--allow-write'] })
  const { value: kept } = await client.call('savepoints')
  const [first] = kept.savepoints
  const dry = await client.call('rewind', { to: first?.id, dry_run: true })
  expect(dry.value).toMatchObject({ to: first?.id, files: 1, undo: null })
  expect(readFileSync(join(place.directory, 'app.txt'), 'utf8')).toBe('one\n')
  expect((await client.call('rewind', { to: first?.id })).value).toMatchObject({ files: 1, undo: 'before-rewind-1' })
  expect(() => readFileSync(join(place.directory, 'app.txt'))).toThrow('ENOENT')
  expect((await client.call('land')).problem).toContain('there are changes that are not committed')
  const landed = await client.call('land', { commit: 'New', message: 'Take it' })
  expect(landed.value.words[0]).toMatch(/^codemachine\/x is merged into main as/)
  expect(readFileSync(join(place.directory, 'new.txt'), 'utf8')).toBe('new\n')
})

test('the end of its input ends the server, in the middle of a wait too, and so does SIGTERM; what runs goes on', async () => {
  const gate = Promise.withResolvers<void>()
  await using scene = await openScene([[held(gate.promise), says('Over.')]])
  await using client = await openClient(scene.place)
  const { value: started } = await client.call('start_session', { goal: 'build X', limits: { rounds: 1 } })
  for (const end of ['input', 'SIGTERM'] as const) {
    const wait = { name: 'wait_for', arguments: {}, _meta: { progressToken: 'waits' } }
    const { process: server, closed } = await callBare(scene.place, wait, line => line.includes('"waits"'))
    if (end === 'input') server.stdin.end()
    else server.kill(end)
    expect(await closed).toEqual([0, null])
  }
  expect(await isAlive(started.pid, process.platform)).toBe(true)
  gate.resolve()
  expect((await client.until({ session: started.session })).happened).toBe('ended')
})
