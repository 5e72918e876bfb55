import { readdirSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { Recording, ThreadSpec } from '../../src/core/engine.ts'
import type { TemplateKind } from '../../src/core/template.ts'
import { defineEngine, type Engine, openProject, processWorld, type Recorded, UserError } from '../../src/index.ts'
import { OWN_TEMPLATES } from '../../src/modes/registry.ts'
import { codemachineHere } from '../support/in-process.ts'
import { incident, promise } from '../support/promise.ts'
import { openRealScene, type RealScene } from '../support/real-scene.ts'
import { claimDone, round } from '../support/rounds.ts'

/** A template whose every round is on this thread; it claims that all is done after `rounds` of them. */
function onThread(more: Partial<ThreadSpec>, rounds = 1): TemplateKind {
  const thread: ThreadSpec = { agent: 'player', developerInstructions: '', model: null, effort: null, ...more }
  return {
    name: 'player',
    description: 'plays',
    command: 'none',
    defaultRounds: () => 5,
    parts: {},
    hasPlan: false,
    memory: 'session',
    first: () => null,
    fold: own => own,
    open: async () => ({
      threads: [{ part: null, thread }],
      next: ({ roundsUsed }) =>
        roundsUsed < rounds ? { kind: 'round', round: { thread, input: 'Play.' } } : { kind: 'claim' },
      ahead: () => null,
    }),
  }
}

/** Runs a session of the template to its end, and tries to go on with one that was replayed. */
async function runOn(scene: RealScene, kind: TemplateKind, engines = new Map()) {
  const { place } = scene
  const templates = new Map([...OWN_TEMPLATES, [kind.name, kind]])
  const world = processWorld({ env: place.env, home: place.home, cwd: place.directory, templates, engines })
  await using project = await openProject(world, { keepAwake: false })
  const events: Recorded[] = []
  const ended = await project.run('Show it.', { template: kind.name, onEvent: event => void events.push(event) })
  const again =
    ended.outcome.kind === 'replayed' ? await project.resume(ended.id).catch((error: unknown) => error) : null
  return { ...ended, events, again }
}

const replayOf = (path: string, pace: Recording['pace'] = 'at-once') =>
  onThread({ engine: 'replay', recording: { path, pace } })

incident('false done', 'A session that had only shown a recording could end as done', {
  since: '2026-11-22',
  fixed: '2026-11-22',
  foundBy: 'a review of the code',
})
test('a session that replays a recorded round shows it again, and ends as replayed: nothing ran, no model was asked', async () => {
  await using scene = await openRealScene([round('echo hello > hello.txt', claimDone), round(claimDone)])
  await scene.run('--plain', 'Say hello.')
  const asked = scene.model.requests.length
  const [first = ''] = readdirSync(join(scene.records(), 'sessions'))
  const path = join(scene.records(), 'sessions', first, 'rounds', '001.ndjson')
  const live = scene.recorded('journal.ndjson')
  const { id, outcome, events, again } = await runOn(scene, replayOf(path))
  expect(outcome).toEqual({ kind: 'replayed' })
  expect(scene.model.requests).toHaveLength(asked)
  expect(events.find(({ type }) => type === 'round-started')).toMatchObject({ engine: 'replay', replayed: true })
  const commands = events.flatMap(event =>
    event.type === 'item-completed' && event.item.kind === 'command' ? [event.item.id] : [],
  )
  expect(commands.length).toBeGreaterThan(0)
  for (const command of commands) expect(live).toContain(command)
  expect(events.at(-1)).toMatchObject({ type: 'session-ended', exitCode: 0 })
  const said = 'replayed: a replay never counts as done'
  const place = scene.place
  expect((await codemachineHere(place, ['report', id])).stdout).toContain('replayed')
  expect((await codemachineHere(place, ['logs', id])).stdout).toContain(said)
  expect((await codemachineHere(place, ['list'])).stdout).toContain('replayed')
  expect(again).toMatchObject({ exitCode: 2, message: expect.stringContaining('was replayed, so there is nothing') })
})

promise('D61')
test('after a replay diff, rewind, report and resume mean the session before it, and logs and status the replay', async () => {
  await using scene = await openRealScene([round('echo hello > hello.txt'), round(claimDone), round(claimDone)])
  const { place } = scene
  await scene.run('--plain', '--rounds', '1', 'Say hello.')
  const [first = ''] = readdirSync(join(scene.records(), 'sessions'))
  const { id } = await runOn(scene, replayOf(join(scene.records(), 'sessions', first, 'rounds', '001.ndjson')))
  const said = async (...args: string[]) => (await codemachineHere(place, args)).stdout
  expect(await said('diff')).toContain('+hello')
  expect(await said('diff', `${id}/start`)).toBe('')
  expect(await said('rewind', 'start', '--dry-run')).toContain('hello.txt')
  expect(JSON.parse(await said('report', '--json'))).toMatchObject({ session: first })
  expect(JSON.parse(await said('status', '--json'))).toMatchObject({ session: { id } })
  expect(await said('logs')).toContain(id)
  const { events } = await scene.run('resume', '--json', '--rounds', '2')
  expect(events[0]).toMatchObject({ type: 'session-resumed', session: first })
})

test('a recording that is not there needs a person, who is told what to name', async () => {
  await using scene = await openRealScene([])
  const { outcome } = await runOn(scene, replayOf('nowhere.ndjson'))
  expect(outcome).toEqual({
    kind: 'needs-person',
    reason: expect.stringContaining('The recording nowhere.ndjson does not exist; name an existing file.'),
    hint: null,
  })
})

test('a program brings an engine of its own, which runs the rounds that name it', async () => {
  await using scene = await openRealScene([])
  const done: string[] = []
  const silent = defineEngine({
    name: 'silent',
    sandbox: 'none',
    can: { steer: false, tools: false, carryOn: false },
    open({ directory, log }) {
      log(`silent in ${directory}`)
      const engine: Engine = {
        name: 'silent',
        version: '7',
        hidesFiles: true,
        prepare: thread => ({
          thread,
          limits: async () => null,
          async run({ round, input, onEvent }) {
            done.push(input)
            onEvent({ type: 'turn-started', round, thread: 't', turn: 'u' })
            await writeFile(join(directory, 'made'), '')
            return { class: 'refused', message: 'No.' }
          },
          carryOn: async () => null,
          steer: async () => false,
          interrupt: async () => {},
          discard() {},
        }),
        settle: async () => void done.push('settled'),
        close: async () => void done.push('closed'),
      }
      return engine
    },
  })
  const { outcome, events } = await runOn(scene, onThread({ engine: 'silent' }, 9), new Map([[silent.name, silent]]))
  expect(outcome).toMatchObject({ kind: 'needs-person', hint: { do: 'reword-goal' } })
  expect(events.find(({ type }) => type === 'round-started')).toMatchObject({ engine: 'silent', codex: '7' })
  expect(done.filter(each => each.endsWith('\n\nPlay.'))).toHaveLength(3)
  expect(done.at(-1)).toBe('closed')
})

test('an engine needs a name that a thread can have', () => {
  const kind = {
    sandbox: 'none',
    can: { steer: false, tools: false, carryOn: false },
    open: () => null as never,
  } as const
  expect(() => defineEngine({ ...kind, name: 'My Engine' })).toThrow(UserError)
  expect(() => defineEngine({ ...kind, name: 'my-engine' })).not.toThrow()
})
