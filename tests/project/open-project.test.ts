import { getEventListeners } from 'node:events'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { functionCall, reply } from '../../src/demo/model/reply.ts'
import type { Project, Recorded, RunOptions, WatchUpdate, World } from '../../src/index.ts'
import { openProject, processWorld, UserError } from '../../src/index.ts'
import { processesOf } from '../support/processes.ts'
import { promise } from '../support/promise.ts'
import { openRealScene } from '../support/real-scene.ts'
import { claimDone, held, round } from '../support/rounds.ts'
import { type OpenScene, openScene, type Scene } from '../support/scene.ts'

/** The project of a scene, as a program opens it. */
async function openIn(
  { place, engines }: Scene,
  options: RunOptions = {},
  changes: Partial<World> = {},
): Promise<Project> {
  const world = processWorld({ engines, env: place.env, home: place.home, cwd: place.directory, ...changes })
  return await openProject(world, { keepAwake: false, ...options })
}

/** A session whose first round is at work until `go` is called; `atWork` resolves once it is. */
async function openHeld<S extends Scene = Scene>(open: OpenScene<S> = openScene as OpenScene<S>) {
  const { promise, resolve: go } = Promise.withResolvers<void>()
  const scene = await open([[held(promise), ...round('true')], round(claimDone), round(claimDone)])
  const { promise: atWork, resolve: isAtWork } = Promise.withResolvers<void>()
  const events: Recorded[] = []
  const onEvent = (event: Recorded) => {
    events.push(event)
    if (event.type === 'item-completed') isAtWork()
  }
  return { scene, go, atWork, events, onEvent }
}

const failure = (promise: Promise<unknown>) => promise.then(() => null).catch((error: unknown) => error)

test('what a program is told is what the journal holds, and the report is of the same session', async () => {
  await using scene = await openScene([round('echo hello > hello.txt', claimDone), round(claimDone)])
  await using project = await openIn(scene)
  const events: Recorded[] = []
  const rounds: number[] = []
  const listeners = process.listenerCount('SIGINT') + process.listenerCount('SIGTERM') + process.listenerCount('exit')
  const ended = await project.run('Say hello.', {
    onEvent(event, state) {
      events.push(event)
      rounds.push(state.roundsUsed)
    },
  })
  expect(ended.outcome).toEqual({ kind: 'done', verified: false })
  expect(ended.used.rounds).toBe(2)
  const journal = (await readFile(join(scene.records(), 'sessions', ended.id, 'journal.ndjson'), 'utf8'))
    .trim()
    .split('\n')
    .slice(1)
  expect(events.map(event => JSON.stringify(event))).toEqual(journal)
  expect(rounds.at(-1)).toBe(2)
  expect(await project.report()).toMatchObject({ session: ended.id, goal: 'Say hello.' })
  expect(process.listenerCount('SIGINT') + process.listenerCount('SIGTERM') + process.listenerCount('exit')).toBe(
    listeners,
  )
  // Nobody runs any more.
  expect(await project.ask({ type: 'pause' })).toBeNull()
})

test('a second run in the directory is refused while the first is at work, which can be asked and watched', async () => {
  const { scene, go, atWork, onEvent } = await openHeld()
  await using _scene = scene
  await using project = await openIn(scene)
  const running = project.run('Say hello.', { onEvent })
  await atWork
  const refused = await failure((await openIn(scene)).run('Say it, too.'))
  expect(refused).toBeInstanceOf(UserError)
  expect(refused).toMatchObject({ exitCode: 6, hint: expect.stringContaining('codemachine status') })
  expect(await project.ask({ type: 'stop', now: false })).toMatchObject({ code: 'done' })
  await expect(project.ask({ type: 'steer', text: ' ' })).rejects.toThrow(UserError)
  const watched: WatchUpdate[] = []
  const watching = (async () => {
    for await (const update of (await openIn(scene)).watch()) watched.push(update)
  })()
  go()
  expect((await running).outcome).toEqual({ kind: 'interrupted', by: 'stop' })
  await watching
  const kinds = watched.map(update => (update.kind === 'event' ? update.event.type : update.kind))
  expect(kinds).toEqual(expect.arrayContaining(['session-created', 'attached', 'session-ended']))
})

promise('O133', 'A program reads the questions of agents and answers them, while their session runs and after it')
test('a program answers what agents ask, while the session runs and after it', async () => {
  const { promise, resolve: go } = Promise.withResolvers<void>()
  const asks = (question: string, options: string[] = []) =>
    reply(functionCall('ask_person', { question, options, assumption: 'the first' }))
  const rounds = [
    [asks('Which database?', ['SQLite', 'Postgres']), asks('What name?'), held(promise), ...round(claimDone)],
  ]
  await using scene = await openScene([...rounds, round(claimDone)])
  await using project = await openIn(scene)
  expect(await project.questions()).toEqual([])
  const { promise: atWork, resolve: isAtWork } = Promise.withResolvers<void>()
  const events: Recorded[] = []
  const running = project.run('build a shop', {
    onEvent(event) {
      events.push(event)
      if (event.type === 'item-completed' && event.item.kind === 'agent-message') isAtWork()
    },
  })
  await atWork
  const [first, second] = await project.questions()
  expect(first).toMatchObject({ id: expect.stringMatching(/_1\/Q1$/), options: ['SQLite', 'Postgres'], answer: null })
  expect(await failure(project.answer('Q1', '7'))).toMatchObject({ name: 'UserError', code: 'CM0615' })
  expect(await project.answer(first?.id ?? '', '2')).toMatchObject({ told: 'round', queued: null })
  expect(await failure(project.answer('Q1', 'neither'))).toBeInstanceOf(UserError)
  go()
  await running
  expect(events.find(event => event.type === 'steered')).toMatchObject({ answers: 'Q1', delivered: true })
  expect(await project.answer(second?.id ?? '', 'shop')).toMatchObject({ told: null, queued: '000001' })
  expect((await project.queue.list()).prompts).toMatchObject([{ prompt: expect.stringContaining('shop') }])
  expect(await project.questions()).toEqual([])
  expect(await project.questions(null, { all: true })).toMatchObject([
    { answer: { text: 'Postgres' } },
    { answer: { text: 'shop' } },
  ])
})

test('a signal ends a session so that it can be gone on with, whatever it was aborted with', async () => {
  const { scene, go, atWork, events, onEvent } = await openHeld()
  await using _scene = scene
  await using project = await openIn(scene)
  const ending = new AbortController()
  const running = project.run('Say hello.', { onEvent, signal: ending.signal })
  await atWork
  ending.abort()
  const { id, outcome } = await running
  expect(outcome).toEqual({ kind: 'interrupted', by: 'SIGTERM' })
  expect(events.at(-1)?.type).toBe('session-ended')
  go()
  expect(await project.resume(null)).toMatchObject({ id, outcome: { kind: 'done' } })
})

test('a program that lives on keeps nothing that listens for sessions that have ended', async () => {
  await using scene = await openScene([round(claimDone), round(claimDone)])
  const { signal } = new AbortController()
  await using project = await openIn(scene, {}, { signal })
  const before = getEventListeners(signal, 'abort').length
  await project.run('Say hello.')
  await Array.fromAsync(project.watch())
  expect(getEventListeners(signal, 'abort').length).toBe(before)
})

test('disposing of a project ends what it runs, and leaves no process', async () => {
  const { scene, atWork, onEvent } = await openHeld(openRealScene)
  await using _scene = scene
  const project = await openIn(scene)
  const running = project.run('Say hello.', { onEvent })
  await atWork
  expect(processesOf(scene.place)).not.toEqual([])
  await project[Symbol.asyncDispose]()
  expect((await running).outcome).toEqual({ kind: 'interrupted', by: 'SIGTERM' })
  expect(processesOf(scene.place)).toEqual([])
  await expect(project.run('Once more.')).rejects.toThrow('is closed')
})

test('what a program throws while it is told of an event ends the session, and is what the run rejects with', async () => {
  await using scene = await openScene([round(claimDone), round(claimDone)])
  await using project = await openIn(scene)
  const bug = new Error('of the program')
  const onEvent = (event: Recorded) => {
    if (event.type === 'round-started') throw bug
  }
  expect(await failure(project.run('Say hello.', { onEvent }))).toBe(bug)
  expect(await project.report()).toMatchObject({ standing: 'ended', outcome: { kind: 'interrupted', by: 'SIGTERM' } })
})

test('the queue is kept for the command line, and what cannot be is a sentence', async () => {
  await using scene = await openScene([round(claimDone)])
  await using project = await openIn(scene, { rounds: 1 })
  const { id } = await project.queue.add('then the docs')
  expect(await project.queue.list()).toMatchObject({ prompts: [{ id, prompt: 'then the docs' }], problems: [] })
  await project.run('Say hello.')
  await project.queue.edit(id, 'then the tests')
  expect((await scene.run('queue', 'list')).stdout).toBe(`${id}  then the tests\n`)
  await project.queue.remove(id)
  await expect(project.queue.remove(id)).rejects.toThrow(UserError)
  await expect(project.queue.add('')).rejects.toThrow(UserError)
  await expect(project.run('  ')).rejects.toThrow(UserError)
  await expect(project.report('20200101_1')).rejects.toThrow(UserError)
  const wrong = await failure((await openIn(scene, { rounds: 0 })).run('Say hello.'))
  expect(wrong).toMatchObject({ message: expect.stringMatching(/^--rounds is "0"; use a whole number/), exitCode: 2 })
})
