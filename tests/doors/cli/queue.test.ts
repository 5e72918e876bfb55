import { readdirSync } from 'node:fs'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import { openSmallBuild } from '../../support/build-scene.ts'
import { promise } from '../../support/promise.ts'
import { openRealScene } from '../../support/real-scene.ts'
import { claimDone, held, readMain, round } from '../../support/rounds.ts'
import { eventsOf, openScene, type Scene } from '../../support/scene.ts'
import { test } from '../../support/side-by-side.ts'

const waiting = async (scene: Scene) => JSON.parse((await scene.run('queue', 'list', '--json')).stdout)
const promptsOf = async (scene: Scene) => (await waiting(scene)).map(({ prompt }: { prompt: string }) => prompt)

promise('L12', 'What waits in the queue becomes sessions of its own, in order')
test('prompts queued while a session runs become sessions of their own, in order, and share nothing but the files', async () => {
  const gate = Promise.withResolvers<void>()
  await using scene = await openScene([
    [held(gate.promise), ...round('echo one > one.txt')],
    round(claimDone),
    round(readMain.command, claimDone),
    round(readMain.command, claimDone),
  ])
  await using running = scene.start('--json', 'goal one')
  await running.event('turn-started')
  expect((await scene.run('queue', 'add', 'goal two')).stdout).toBe('Queued as 000001: goal two\n')
  await scene.run('queue', 'add', 'goal', 'three')
  gate.resolve()
  const { exitCode, events } = await running.ended
  expect(exitCode).toBe(0)
  const created = eventsOf(events, 'session-created')
  expect(created.map(({ goal, queued }) => [goal, queued])).toEqual([
    ['goal one', null],
    ['goal two', '000001'],
    ['goal three', '000002'],
  ])
  expect(new Set(created.map(({ session }) => session)).size).toBe(3)
  expect(readdirSync(join(scene.place.directory, '.codemachine/projects'))).toHaveLength(3)
  expect(scene.memory('MAIN.md', 2)).toContain('goal two')
  const later = scene.model.requests.filter(({ conversation }) => conversation === 3)
  expect(later.at(-1)?.lastOutputs.join()).not.toContain('goal two')
  expect(JSON.stringify(later.map(({ body }) => body.input))).not.toContain('goal two')
  expect(await waiting(scene)).toEqual([])
})

test('what waits can be listed, changed and taken out, and the next start works on it', async () => {
  await using scene = await openScene([round(claimDone)])
  for (const prompt of ['first', 'second\nline', 'third 🚀']) await scene.run('queue', 'add', prompt)
  expect((await scene.run('queue', 'list')).stdout).toBe('000001  first\n000002  second\n000003  third 🚀\n')
  expect((await scene.run('queue', 'rm', '1')).exitCode).toBe(0)
  expect((await scene.run('queue', 'edit', '2', 'second, changed')).stdout).toBe('000002 is now: second, changed\n')
  await scene.run('queue', 'rm', '3')
  const { exitCode, stderr } = await scene.run('queue', 'rm', '3')
  expect([exitCode, stderr]).toEqual([
    2,
    'codemachine: The queue has no prompt 000003; it was started or removed. (CM0618)\n',
  ])
  const { events } = await scene.run('--json')
  expect(eventsOf(events, 'session-created').map(({ goal }) => goal)).toEqual(['second, changed'])
})

test('a prompt that is too long to become a session is refused when it is queued, not when its turn comes', async () => {
  await using scene = await openScene([])
  const { exitCode, stderr } = await scene.command(['queue', 'add', '-'], {
    input: '漢'.repeat(600_000),
  }).ended
  expect([exitCode, stderr]).toEqual([
    2,
    'codemachine: The prompt has 1800000 bytes, and may have at most 1048576 (1 MiB). Put the text into a file, and name that file. (CM0107)\n',
  ])
  expect(await waiting(scene)).toEqual([])
})

promise('E7', 'The queue survives a kill, and its prompts run')
test('a codemachine that is killed keeps the queue, and resume works on it after the session', async () => {
  const never = Promise.withResolvers<void>()
  await using scene = await openRealScene([[held(never.promise), ...round('true')], round(claimDone), round(claimDone)])
  await using running = scene.start('--json', 'goal one')
  // Killed before that, it would leave the round's conversation to the next one.
  await expect.poll(() => scene.model.requests.length, { timeout: 60_000 }).toBeGreaterThan(0)
  await scene.run('queue', 'add', 'goal two')
  running.process.kill('SIGKILL')
  await running.ended
  expect(await promptsOf(scene)).toEqual(['goal two'])
  const { exitCode, events } = await scene.run('resume', '--json')
  expect(exitCode).toBe(0)
  expect(eventsOf(events, 'session-created').map(({ goal }) => goal)).toEqual(['goal two'])
  expect(eventsOf(events, 'session-ended')).toHaveLength(2)
})

promise('R9', 'A prompt whose session was created just before a crash is not run twice')
test('a prompt whose session was created just before a crash is not run a second time', async () => {
  await using scene = await openScene([round(claimDone), round(claimDone)])
  await scene.run('queue', 'add', 'goal one')
  await scene.run('--json')
  const at = new Date(0).toISOString()
  await writeFile(join(scene.records(), 'queue', '000001.json'), JSON.stringify({ prompt: 'goal one', at }))
  const again = await scene.run('--json', 'goal two')
  expect(eventsOf(again.events, 'session-created').map(({ goal }) => goal)).toEqual(['goal two'])
  expect(await waiting(scene)).toEqual([])
})

test('after a session that needs a person, what waits is kept for when that is mended', async () => {
  await using scene = await openScene([
    [{ kind: 'status', status: 404, body: { error: { code: 'model_not_found', message: 'No such model' } } }],
  ])
  await scene.run('queue', 'add', 'goal two')
  const { exitCode, stdout } = await scene.run('goal one')
  expect(exitCode).toBe(4)
  expect(stdout).toMatch(/\nTo continue: codemachine resume \d{8}_1\nThe queue \(1\) is kept\.\n$/)
  expect(await promptsOf(scene)).toEqual(['goal two'])
})

test('a session that is skipped on the way does not pass for an end of the run: the first exit code is kept', async () => {
  const idle = round('true')
  await using scene = await openScene([idle, idle, idle, idle, [held(new Promise<never>(() => {}))], round(claimDone)])
  for (const prompt of ['goal two', 'goal three']) await scene.run('queue', 'add', prompt)
  const options = { env: { CODEMACHINE_STALL_ROUNDS: '2' } }
  await using running = scene.command(['--json', 'goal one'], options)
  await running.event('turn-started', ({ session }) => session.endsWith('_2'))
  await scene.run('skip')
  const { exitCode, events } = await running.ended
  expect(eventsOf(events, 'session-ended').map(ended => ended.exitCode)).toEqual([5, 130, 0])
  expect(exitCode).toBe(5)
})

test('a session that does not get on does not hold up what waits, and its exit code is kept', async () => {
  const idle = round('true')
  await using scene = await openScene([idle, idle, idle, idle, round(claimDone)])
  await scene.run('queue', 'add', 'goal two')
  const options = { env: { CODEMACHINE_STALL_ROUNDS: '2' } }
  const { exitCode, events } = await scene.command(['--json', 'goal one'], options).ended
  expect(exitCode).toBe(5)
  expect(eventsOf(events, 'session-ended').map(({ outcome }) => outcome.kind)).toEqual(['stalled', 'done'])
})

promise('M7', 'A queued prompt begins with the limits that it was given, and the next one without them')
test('a queued prompt begins with the limits and gates that it was given, and the next one without them', async () => {
  await using scene = await openScene([round(claimDone), round(claimDone), round(claimDone)])
  const added = await scene.run('queue', 'add', '--max-time', '2h', '--rounds', '3', '--verify', 'true', 'first')
  expect(added.stdout).toBe('Queued as 000001 (3 rounds, 2h, verified by true): first\n')
  await scene.run('queue', 'add', '--max-tokens', '5M', 'second')
  await scene.run('queue', 'add', 'third')
  expect((await scene.run('queue', 'list')).stdout).toBe(
    '000001  first (3 rounds, 2h, verified by true)\n000002  second (5M tokens)\n000003  third\n',
  )
  expect(await waiting(scene)).toMatchObject([
    { prompt: 'first', gates: ['true'], limits: { rounds: 3, timeMs: 7_200_000 } },
    { prompt: 'second', limits: { tokens: 5_000_000 } },
    { prompt: 'third' },
  ])
  const { events, exitCode } = await scene.run('--json', '--verify', 'test -d .')
  expect(exitCode).toBe(0)
  const created = eventsOf(events, 'session-created').map(({ goal, limits, gates = [], said }) => {
    return [goal, limits, gates.map(({ run }) => run), said.verify]
  })
  expect(created).toEqual([
    ['first', { rounds: 3, timeMs: 7_200_000, tokens: null }, ['test -d .', 'true'], ['test -d .', 'true']],
    ['second', { rounds: null, timeMs: null, tokens: 5_000_000 }, ['test -d .'], ['test -d .']],
    ['third', { rounds: 10, timeMs: null, tokens: null }, ['test -d .'], ['test -d .']],
  ])
  expect(eventsOf(events, 'done-accepted').map(({ verified }) => verified)).toEqual([true, true, true])
})

test('a build waits in the queue with its specification as the prompt, and is carried out when its turn comes', async () => {
  await using scene = await openSmallBuild()
  const added = await scene.run('queue', 'add', '--template', 'build')
  expect(added.stdout).toMatch(/^Queued as 000001 \(build\): Build /)
  const { events, exitCode } = await scene.run('--json', '--no-keep-awake')
  expect([exitCode, eventsOf(events, 'paused')]).toEqual([0, []])
  expect(eventsOf(events, 'session-created')).toMatchObject([
    { template: 'build', queued: '000001', limits: { rounds: 50 } },
  ])
})

test.each([
  ['a template that is none', ['--template', 'bild', 'x'], 'did you mean "build"?'],
  ['a limit that is none', ['--rounds', '0', 'x'], '--rounds'],
  ['a gate that is none', ['--verify', ' ', 'x'], '--verify is " "'],
  ['a gate that holds a secret', ['--verify', 'curl -H hunter2hunter2 x', 'x'], 'write "$API_TOKEN" instead'],
  ['nothing to be done', [], 'The prompt is missing'],
])('a prompt with %s is not queued', async (_, words, problem) => {
  await using scene = await openScene([])
  const env = { API_TOKEN: 'hunter2hunter2' }
  const { exitCode, stderr } = await scene.command(['queue', 'add', ...words], { env }).ended
  expect(exitCode).toBe(2)
  expect(stderr).toContain(problem)
  expect(stderr).not.toContain('hunter2')
  expect(await waiting(scene)).toEqual([])
})

test('a prompt of a template that this codemachine does not have is named, and waits for one that has it', async () => {
  await using scene = await openScene([])
  await scene.run('queue', 'add', 'x')
  const [folder = ''] = readdirSync(join(scene.place.home, '.codemachine/state'))
  const file = join(scene.place.home, '.codemachine/state', folder, 'queue/000001.json')
  await writeFile(file, JSON.stringify({ prompt: 'x', at: '2026-11-20T23:00:00.000Z', template: 'orchestra' }))
  const { exitCode, stderr } = await scene.run('--json')
  expect(exitCode).toBe(2)
  expect(stderr).toContain('This version of codemachine has no template "orchestra"')
  expect(await waiting(scene)).toMatchObject([{ prompt: 'x', template: 'orchestra' }])
})

test('a session that continues from another is given what that came to, in its first round alone', async () => {
  await using scene = await openScene([round(claimDone), round('echo two > two.txt'), round(claimDone)])
  await scene.run('--json', '--verify', 'true', 'Make the first part')
  const added = await scene.run('queue', 'add', '--follow-up', '1', 'Make the second part')
  expect(added.stdout).toMatch(/^Queued as 000001 \(after \d{8}_1\): Make the second part\n$/)
  const { events, exitCode } = await scene.run('--json')
  expect(exitCode).toBe(0)
  const [created] = eventsOf(events, 'session-created')
  expect(created?.follows).toMatch(/_1$/)
  expect(eventsOf(events, 'output-kept').map(({ output }) => output.file)).toEqual(['1-follows.md'])
  const inputs = eventsOf(events, 'round-started').map(({ input }) => input)
  expect(inputs.map(input => input.includes('## What was asked for\n\nMake the first part\n'))).toEqual([true, false])
})

test('a session that is to go on from one that there is not is refused', async () => {
  await using scene = await openScene([])
  for (const words of [
    ['--follow-up', '7', 'x'],
    ['queue', 'add', '--follow-up', '7', 'x'],
  ]) {
    const { exitCode, stderr } = await scene.run(...words)
    expect(exitCode).toBe(2)
    expect(stderr).toContain('No sessions in')
  }
  expect(await waiting(scene)).toEqual([])
})

test('a prompt of which no session can begin waits on, and those behind it have their turn', async () => {
  await using scene = await openScene([round(claimDone)])
  await scene.run('queue', 'add', 'first')
  await scene.run('queue', 'add', 'second')
  const file = join(scene.records(), 'queue/000001.json')
  const gone = { prompt: 'first', at: '2026-11-20T23:00:00.000Z', follows: '20250101_1' }
  await writeFile(file, JSON.stringify(gone))
  const { events, exitCode, stderr } = await scene.run('--json')
  expect(eventsOf(events, 'session-ended').map(({ outcome }) => outcome.kind)).toEqual(['done'])
  expect([exitCode, stderr]).toEqual([2, expect.stringContaining('000001 is still queued. No sessions in')])
  expect(await promptsOf(scene)).toEqual(['first'])
})

test('a session that was cut off before what it continues from was kept is given that when it is resumed', async () => {
  await using scene = await openScene([round(claimDone), round(claimDone), round(claimDone)])
  await scene.run('--json', 'Make the first part')
  const { events } = await scene.run('--json', '--follow-up', '1', 'Make the second part')
  const id = events[0]?.session ?? ''
  const journal = join(scene.records(), 'sessions', id, 'journal.ndjson')
  const lines = (await readFile(journal, 'utf8')).split('\n')
  await writeFile(journal, `${lines.slice(0, 2).join('\n')}\n`)
  const resumed = await scene.run('resume', id, '--json')
  expect(eventsOf(resumed.events, 'output-kept').map(({ output }) => output.name)).toEqual(['follows'])
  const [started] = eventsOf(resumed.events, 'round-started')
  expect(started?.input).toContain('## What was asked for\n\nMake the first part\n')
})

test('a prompt with a limit of cost is not queued where there are no prices, for it would be refused in the night', async () => {
  await using scene = await openScene([])
  expect(await scene.run('queue', 'add', '--max-cost', '2', 'first')).toMatchObject({
    exitCode: 2,
    stdout: '',
    stderr: expect.stringMatching(
      /^codemachine: Your settings have no prices, so --max-cost cannot be enforced\. .*\n$/,
    ),
  })
  expect(await waiting(scene)).toEqual([])
  const folder = join(scene.place.home, '.config', 'codemachine')
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, 'config.toml'), '[prices."scripted"]\nin = 1\nout = 2\n')
  expect((await scene.run('queue', 'add', '--max-cost', '2', 'first')).exitCode).toBe(0)
})
