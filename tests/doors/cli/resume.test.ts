import { existsSync } from 'node:fs'
import { appendFile, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { expect } from 'vitest'
import { message, reply, shell } from '../../../src/demo/model/reply.ts'
import { cutOffHere } from '../../support/cut-off-here.ts'
import { promise } from '../../support/promise.ts'
import { openRealScene } from '../../support/real-scene.ts'
import { claimDone, round } from '../../support/rounds.ts'
import { eventsOf, openScene, type Scene } from '../../support/scene.ts'
import { hold } from '../../support/scripted-model.ts'
import { test } from '../../support/side-by-side.ts'
import { replaceFirstLine } from './journaled.ts'

const never = new Promise<never>(() => {})

async function cutOffInMidRound(scene: Scene): Promise<void> {
  await using running = scene.start('--json', '--rounds', '5', 'build X')
  await running.event('round-started', ({ round }) => round === 2)
  await running.event('item-completed', ({ item }) => item.kind === 'agent-message' && item.text === 'In the middle.')
  await cutOffHere(scene, running)
}

const midRound = [round('touch a'), [reply(message('In the middle.'), hold(never))], round(claimDone)]

test('a session whose codemachine was killed in mid-round goes on, and the next round is told of the cut', async () => {
  await using scene = await openScene(midRound)
  await cutOffInMidRound(scene)
  expect((await scene.run('list')).stdout).toContain('cut off')
  const { exitCode, events } = await scene.run('resume', '--json')
  expect(exitCode).toBe(0)
  expect(events[0]).toMatchObject({ type: 'session-resumed', limits: { rounds: 5 } })
  expect(eventsOf(events, 'round-started')).toMatchObject([{ round: 2, input: expect.stringContaining('cut off') }])
  expect(
    (await scene.run('logs', '--json')).stdout
      .trimEnd()
      .split('\n')
      .map(line => JSON.parse(line).type),
  ).toContain('session-resumed')
})

test('a torn last line and a line of rubbish in the journal do not make it unresumable', async () => {
  await using scene = await openScene(midRound)
  await cutOffInMidRound(scene)
  const [id = ''] = await readdir(join(scene.records(), 'sessions'))
  await appendFile(join(scene.records(), 'sessions', id, 'journal.ndjson'), '\n\u0000rubbish\n\n{"v":1,"at":"2026-')
  expect(await scene.run('resume', '--json')).toMatchObject({ exitCode: 0 })
  const lines = (await readFile(join(scene.records(), 'sessions', id, 'journal.ndjson'), 'utf8')).trimEnd().split('\n')
  expect(lines.at(-1)).toContain('session-ended')
})

test('a session whose memory folder was deleted meanwhile gets its last good copy back', async () => {
  await using scene = await openScene(midRound)
  await cutOffInMidRound(scene)
  await rm(join(scene.place.directory, '.codemachine'), { recursive: true })
  const { exitCode, events } = await scene.run('resume', '--json')
  expect(exitCode).toBe(0)
  expect(eventsOf(events, 'memory-broken').map(({ problem }) => problem.file)).toEqual(['MAIN.md', 'tasks.json'])
  expect(scene.memory('MAIN.md')).toContain('build X')
})

test('there is nothing to resume in a new directory, after a session that is done, or with no rounds left', async () => {
  await using scene = await openScene([round('true'), round(claimDone)])
  const none = `codemachine: No session in ${scene.place.directory} can be resumed. (CM0605)\n  Start one: codemachine "…"\n`
  expect(await scene.run('resume')).toMatchObject({ exitCode: 2, stderr: none })
  await scene.run('--rounds', '1', 'build X')
  const { exitCode, stderr } = await scene.run('resume')
  expect([exitCode, stderr]).toEqual([
    2,
    expect.stringMatching(/_1 has used 1 of its 1 rounds; raise the total with --rounds\. \(CM0401\)\n$/),
  ])
  await scene.run('resume', '--rounds', '2')
  expect(await scene.run('resume')).toMatchObject({ exitCode: 2, stderr: none })
  expect((await scene.run('resume', '1')).stderr).toMatch(
    /^codemachine: \d{8}_1 is done, so there is nothing to resume\. \(CM0605\)\n$/,
  )
})

promise('E8', 'A resumed session keeps its sandbox, model and effort')
test('what the person chose when the session began counts when it goes on: sandbox, model, effort, what codex is handed', async () => {
  await using scene = await openRealScene([
    [reply(message('In the middle.'), hold(never))],
    round('touch leak.txt', claimDone),
  ])
  {
    const args = [
      '--sandbox',
      'read-only',
      '-m',
      'chosen',
      '--effort',
      'high',
      '-c',
      'web_search="disabled"',
      'build X',
    ]
    await using running = scene.start('--json', '--rounds', '2', ...args)
    await running.event('item-completed', ({ item }) => item.kind === 'agent-message')
    running.signal('SIGINT')
    expect((await running.ended).exitCode).toBe(130)
  }
  const { exitCode, events } = await scene.run('resume', '--json')
  expect(exitCode).toBe(0)
  expect(eventsOf(events, 'round-started')).toMatchObject([{ round: 1, model: 'chosen' }])
  expect(existsSync(join(scene.place.directory, 'leak.txt'))).toBe(false)
  const last = scene.model.requests.at(-1)
  expect([last?.model, last?.effort]).toEqual(['chosen', 'high'])
  expect(JSON.stringify(last?.body.tools)).not.toContain('web_search')
})

test('a round that a signal cut off uses up none of the rounds', async () => {
  await using scene = await openScene([[reply(message('In the middle.'), hold(never))], round(claimDone)])
  {
    await using running = scene.start('--json', '--rounds', '1', 'build X')
    await running.event('item-completed', ({ item }) => item.kind === 'agent-message')
    running.signal('SIGINT')
    await running.ended
  }
  expect(await scene.run('resume', '--json')).toMatchObject({ exitCode: 0 })
})

const HOUR = 3_600_000

promise('M4', 'The limits of a session hold when it goes on; a flag gives a new total')
test('the limits of a session hold when it goes on, whatever is set meanwhile; a flag gives a new total', async () => {
  await using scene = await openScene([round('true'), round('true'), round(claimDone)])
  await scene.run('--rounds', '1', '--max-time', '8h', 'build X')
  await writeFile(join(scene.place.directory, 'codemachine.toml'), 'rounds = 7\nmax_tokens = "1M"\n')
  expect((await scene.run('resume')).stderr).toMatch(
    /_1 has used 1 of its 1 rounds; raise the total with --rounds\. \(CM0401\)\n$/,
  )
  const second = await scene.run('resume', '--json', '--rounds', '2')
  expect(second.exitCode).toBe(3)
  expect(eventsOf(second.events, 'session-resumed')).toMatchObject([
    { limits: { rounds: 2, timeMs: 8 * HOUR, tokens: null } },
  ])
  const third = await scene.run('resume', '--json', '--rounds', '5', '--max-tokens', '5M', '--max-time', '16h')
  expect(third.exitCode).toBe(0)
  expect(eventsOf(third.events, 'session-resumed')).toMatchObject([
    { limits: { rounds: 5, timeMs: 16 * HOUR, tokens: 5_000_000 } },
  ])
  expect(eventsOf(third.events, 'round-started').map(({ round }) => round)).toEqual([3])
})

test('a limit that was reached is named with what to type to go on, twice as much of it', async () => {
  const usage = { input: 20_000, cachedInput: 0, output: 100, reasoning: 0 }
  await using scene = await openScene([[{ ...reply(shell('true')), usage }]])
  const { exitCode, stdout } = await scene.run('--max-tokens', '1k', 'build X')
  const [, more = ''] = /\nTo continue: codemachine resume \d{8}_1 --max-tokens (\d+)k\n$/.exec(stdout) ?? []
  const [session] = JSON.parse((await scene.run('list', '--json')).stdout)
  expect(exitCode).toBe(3)
  // To two digits, upwards.
  expect(Number(more) * 1000).toBeGreaterThanOrEqual(2 * session.tokens)
  expect(Number(more) * 1000).toBeLessThan(2 * session.tokens + 1000)
})

test('a session that ran on another machine goes on here, with a word on it', async () => {
  await using scene = await openScene(midRound)
  await cutOffInMidRound(scene)
  const [id = ''] = await readdir(join(scene.records(), 'sessions'))
  const path = join(scene.records(), 'sessions', id, 'journal.ndjson')
  const text = await readFile(path, 'utf8')
  await writeFile(path, text.replace(`"host":"${hostname()}"`, '"host":"laptop"'))
  const { exitCode, events } = await scene.run('resume', '--json')
  expect(exitCode).toBe(0)
  const said = `This session ran on another machine (laptop); it continues here, on ${hostname()}.`
  expect(eventsOf(events, 'warning').map(({ message }) => message)).toContain(said)
})

test('a journal whose first line is rubbish goes on, which is said', async () => {
  await using scene = await openScene(midRound)
  await cutOffInMidRound(scene)
  const [id = ''] = await readdir(join(scene.records(), 'sessions'))
  await replaceFirstLine(join(scene.records(), 'sessions', id, 'journal.ndjson'), '\0\0{"format":')
  const { exitCode, events } = await scene.run('resume', '--json')
  expect(exitCode).toBe(0)
  const warnings = eventsOf(events, 'warning').map(({ message }) => message)
  expect(warnings.filter(message => message.includes('another machine'))).toEqual([])
  expect(warnings.filter(message => /^1 line of .+journal\.ndjson cannot be read/.test(message))).toHaveLength(1)
})
