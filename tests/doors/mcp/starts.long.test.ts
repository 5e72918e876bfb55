import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, vi } from 'vitest'
import { writeAt } from '../../support/build-scene.ts'
import { openRealChangeScene, PROJECT, TWO_TASKS } from '../../support/change-scene.ts'
import { git, type TestPlace } from '../../support/place.ts'
import { sandboxesOf } from '../../support/processes.ts'
import { promise } from '../../support/promise.ts'
import { openRealScene } from '../../support/real-scene.ts'
import { claimDone, held, round, says } from '../../support/rounds.ts'
import { eventsOf } from '../../support/scene.ts'
import { test } from '../../support/side-by-side.ts'
import { callBare, openClient } from './mcp-client.ts'

promise(
  'O129',
  'Over MCP a session begins in a worktree beside one that runs, by the specification alone, and with what is said of its plan; what could not be kept of what is said is refused',
)
test('beside what runs in a directory another session begins in a worktree of its own, and is followed and told there', async () => {
  const [own, beside] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  await using scene = await openRealScene([
    [held(own.promise), says('Over.')],
    [held(beside.promise), ...round('echo shop > shop.txt')],
    round(claimDone),
  ])
  const { place } = scene
  await using client = await openClient(place)
  const { value: first } = await client.call('start_session', { goal: 'build X', limits: { rounds: 1 } })
  await using following = scene.start('logs', '-f', '--json', first.session)
  await following.event('turn-started')
  const busy = await client.call('start_session', { goal: 'build a shop', worktree: false })
  expect(busy.hint).toContain('worktree: true')
  const directory = join(place.root, 'work.worktrees', 'shop')
  const { value: second } = await client.call('start_session', {
    goal: 'build a shop',
    worktree: 'shop',
    limits: { rounds: 3 },
  })
  expect(second).toEqual({ session: expect.stringMatching(/^\d{8}_1$/), directory, pid: expect.any(Number) })
  expect(second.pid).not.toBe(first.pid)
  expect((await client.call('status')).value).toMatchObject({
    directory: place.directory,
    session: { goal: 'build X' },
    beside: [{ directory, worktree: 'shop', session: { goal: 'build a shop', standing: 'running' } }],
  })
  await using there = scene.start('logs', '-f', '--json', '-C', directory)
  await there.event('turn-started')
  expect(await client.call('steer', { directory, text: 'Sell books.' })).toMatchObject({
    value: { directory },
    problem: null,
  })
  beside.resolve()
  expect(await client.until({ directory })).toMatchObject({
    happened: 'ended',
    directory,
    session: { id: second.session, goal: 'build a shop', outcome: 'done' },
  })
  expect((await client.call('diff', { directory, path: 'shop.txt' })).value.text).toContain('+shop')
  expect(readFileSync(join(directory, 'shop.txt'), 'utf8')).toBe('shop\n')
  expect(existsSync(join(place.directory, 'shop.txt'))).toBe(false)
  expect(git(place, 'branch', '--list', 'codemachine/*')).toContain('codemachine/shop')
  own.resolve()
  const steered = [await following.ended, await there.ended].map(({ events }) => eventsOf(events, 'steered'))
  expect(steered).toMatchObject([[], [{ text: 'Sell books.' }]])
})

/** A gate that passes where the work is good, and not before that file has gone. */
const untilOpen = (shut: string) => `grep -q good app.txt && until [ ! -e '${shut}' ]; do sleep 0.1; done`

promise(
  'O130',
  'Gates that take longer than a call over MCP go on, and the next call takes them up; other calls are answered meanwhile',
)
test('gates that take longer than a call waits go on, also where the call is taken back; the next call takes them up, and their end is told once', async () => {
  await using scene = await openRealScene([round('echo good > app.txt', claimDone)])
  const { place } = scene
  const shut = join(place.root, 'shut')
  const gate = untilOpen(shut)
  await using client = await openClient(place)
  const { session } = (await client.call('start_session', { goal: 'build X', gates: [gate], limits: { rounds: 2 } }))
    .value
  expect(await client.until({ session })).toMatchObject({ happened: 'ended', session: { outcome: 'done' } })

  writeFileSync(shut, '')
  const taken = new AbortController()
  const said: string[] = []
  const call = client.client.callTool(
    { name: 'verify', arguments: { session } },
    {
      signal: taken.signal,
      onprogress({ message = '' }) {
        said.push(message)
        if (message.includes(gate.slice(0, 20))) taken.abort()
      },
    },
  )
  await expect(call).rejects.toThrow()
  const going = await client.call('verify', { session, seconds: 1 })
  expect(going).toEqual({
    value: { session, directory: place.directory, state: 'running', verdict: null, words: said },
    problem: null,
    code: null,
    hint: null,
  })
  expect((await client.call('status')).value).toMatchObject({ session: { id: session, outcome: 'done' } })
  rmSync(shut)
  expect((await client.call('verify', { session })).value).toEqual({
    session,
    directory: place.directory,
    state: 'ended',
    verdict: 'still-true',
    words: expect.arrayContaining([expect.stringContaining('still true')]),
  })

  // It is verified anew: what has become of the files since then counts.
  writeFileSync(join(place.directory, 'app.txt'), 'bad\n')
  const { value: anew } = await client.call('verify', { session })
  expect(anew).toMatchObject({ state: 'ended', verdict: expect.stringMatching(/^broken/) })
})

promise('O129')
test('a worktree without a name gets one, but not for what continues from another session', async () => {
  await using scene = await openRealScene([round(claimDone)])
  await using client = await openClient(scene.place)
  const begun = await client.call('start_session', { goal: 'build X', worktree: true, limits: { rounds: 2 } })
  expect(begun.problem).toBeNull()
  const { session, directory } = begun.value
  const more = { directory, goal: 'build Y', worktree: true, follows: session }
  expect(directory).toMatch(/^.*\/work\.worktrees\/[^/]+$/)
  expect(await client.until({ directory })).toMatchObject({
    happened: 'ended',
    session: { id: session, outcome: 'done' },
  })
  expect((await client.call('start_session', more)).problem).toBe(
    `A follow-up of ${session} works in the same directory, so it gets no worktree of its own.`,
  )
  expect(git(scene.place, 'worktree', 'list').split('\n')).toHaveLength(2)
})

promise('O129')
test('a template that works by the specification of the directory needs no goal; without one it is said what is missing', async () => {
  await using scene = await openRealScene([round(claimDone)])
  await using client = await openClient(scene.place)
  const without = await client.call('start_session', { template: 'goal' })
  expect(without.problem).toContain('specifications.md')
  await writeAt(scene, '.codemachine/inputs/specifications.md', '# A list of books\n\nPrints the books, a line each.\n')
  const { value: started } = await client.call('start_session', { template: 'goal', limits: { rounds: 2 } })
  expect(started).toMatchObject({ session: expect.stringMatching(/^\d{8}_1$/), directory: scene.place.directory })
  expect(await client.until({})).toMatchObject({ happened: 'ended', session: { id: started.session, outcome: 'done' } })
  expect((await client.call('report')).value.text).toContain('A list of books')
  const follows = started.session
  expect((await client.call('start_session', { template: 'goal', follows })).problem).toBe(
    `What works by the specification follows no session; say what to do after ${follows}.`,
  )
})

promise('O129')
test('whether a person decides on the plan of a change is said as it is begun; a build with a goal never asks, so that is refused', async () => {
  await using scene = await openRealChangeScene(TWO_TASKS, { files: PROJECT })
  await using client = await openClient(scene.place)
  const build = await client.call('start_session', { goal: 'build X', template: 'build', accept_plan: false })
  expect(build.problem).toBe(
    'The plan of a build from a prompt is accepted automatically; to decide on it, begin from a specification.',
  )
  expect((await client.call('queue_list')).value.count).toBe(0)
  const change = { goal: 'Write the limit.', template: 'change', gates: ['sh check.sh'], accept_plan: true }
  const { value: started } = await client.call('start_session', change)
  // Nothing was asked before its end.
  expect(await client.until({})).toMatchObject({ happened: 'ended', session: { id: started.session, outcome: 'done' } })
})

const gatesOf = (place: TestPlace) => sandboxesOf(place).filter(line => line.includes('until [ ! -e'))

promise('O127')
test('a server whose input ends in the middle of verifying leaves neither a gate that runs nor a directory that is taken', async () => {
  await using scene = await openRealScene([round('echo good > app.txt', claimDone)])
  const { place } = scene
  const shut = join(place.root, 'shut')
  const gate = untilOpen(shut)
  await using client = await openClient(place)
  await client.call('start_session', { goal: 'build X', gates: [gate], limits: { rounds: 2 } })
  await client.until({})
  writeFileSync(shut, '')
  const verify = { name: 'verify', arguments: { seconds: 1 } }
  const { process: server, closed } = await callBare(place, verify, line => line.includes('"id":2'))
  await vi.waitFor(() => expect(gatesOf(place)).not.toEqual([]), { timeout: 60_000, interval: 100 })
  expect((await client.call('verify')).problem).toContain('is running here since')
  server.stdin.end()
  expect(await closed).toEqual([0, null])
  expect(gatesOf(place)).toEqual([])
  rmSync(shut)
  expect((await client.call('verify')).value).toMatchObject({ state: 'ended', verdict: 'still-true' })
})
