import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { reply, type ScriptStep, shell } from '../../src/demo/model/reply.ts'
import { status } from '../../src/doors/cli/commands/look.ts'
import { openProject, processWorld, type Recorded } from '../../src/index.ts'
import { OWN_TEMPLATES } from '../../src/modes/registry.ts'
import { cliContext } from '../support/cli-context.ts'
import { promise } from '../support/promise.ts'
import { openRealScene } from '../support/real-scene.ts'
import { folder, round, says } from '../support/rounds.ts'
import { eventsOf, openScene, type Scene } from '../support/scene.ts'
import { type ScopedOptions, scopedTemplate } from '../support/scoped-template.ts'
import { hold } from '../support/scripted-model.ts'

const openIn = async ({ place, engines }: Pick<Scene, 'place' | 'engines'>, options: ScopedOptions = {}) => {
  const world = processWorld({ engines, env: place.env, home: place.home, cwd: place.directory })
  return await openProject(world, { keepAwake: false, verify: ['test -f whole'], templates: [scopedTemplate(options)] })
}

const fix = `${folder}/steps/fix`
const flag = (main: string) => `sed -i 's/^finite_incantatem: false/finite_incantatem: true/' ${main}/MAIN.md`
const tasks = (...done: boolean[]) =>
  `echo '${JSON.stringify({ tasks: done.map((each, at) => ({ id: `T${at + 1}`, name: `part ${at + 1}`, done: each })) })}' > ${fix}/tasks.json`

/**
 * The rounds of a scope that is done at its fourth round, while the agent says of the session that it is done, too. In the
 * second one it does nothing until the promise resolves.
 */
const roundsOf = (second: Promise<unknown>): readonly (readonly ScriptStep[])[] => [
  round(`${tasks(true, false)}; touch started; ${flag(folder)}`),
  [reply(hold(second), shell(`${tasks(true, true)}; ${flag(fix)}`)), says('This is as far as it goes.')],
  round('touch fixed whole'),
  round(flag(fix)),
]
const ROUNDS = roundsOf(Promise.resolve())

/** What `codemachine status` says while it runs. */
async function statusOf({ place }: Scene, flags: { json?: true }): Promise<string> {
  const stdout = new PassThrough()
  const kind = scopedTemplate()
  const templates = new Map([...OWN_TEMPLATES, [kind.name, kind]])
  const said = text(stdout)
  await status(cliContext(place, { templates, stdout }), flags)
  stdout.end()
  return await said
}

promise('D26')
promise('D28')
test('with the real codex: a scope has memory files, gates and a claim of its own, and the session is done by its own alone', async () => {
  const looked = Promise.withResolvers<void>()
  await using scene = await openRealScene(roundsOf(looked.promise))
  await using project = await openIn(scene)
  const events: Recorded[] = []
  let seen: Promise<string[]> = Promise.resolve([])
  const { outcome, id } = await project.run('Have it fixed.', {
    template: 'scoped',
    onEvent(event) {
      events.push(event)
      if (event.type !== 'round-started' || event.round !== 2) return
      seen = Promise.all([statusOf(scene, {}), statusOf(scene, { json: true })]).finally(looked.resolve)
      seen.catch(() => {})
    },
  })
  expect(outcome).toEqual({ kind: 'done', verified: true })
  expect(eventsOf(events, 'done-refused').map(({ round, reason, scope }) => [round, reason, scope])).toEqual([
    [2, 'gate-failed', 'fix'],
    [3, 'tree-changed', 'fix'],
  ])
  expect(eventsOf(events, 'gate-ended').map(({ gate, status: how, scope = null }) => [gate, how, scope])).toEqual([
    ['test -f whole', 'failed', null],
    ['check', 'failed', 'fix'],
    ['check', 'passed', 'fix'],
    ['test -f whole', 'passed', null],
  ])
  // The next round of the scope is told what its gate said.
  expect(scene.input(3)).toContain('The check `check` fails')
  // Its files begin with its own goal, and those of the session claim nothing, whatever an agent wrote there.
  expect(scene.memory('steps/fix/MAIN.md')).toContain('Do fix.')
  expect(scene.memory('steps/fix/MAIN.md')).toContain('finite_incantatem: true')
  expect(scene.memory('MAIN.md')).toContain('Have it fixed.')
  expect(scene.memory('MAIN.md')).toContain('finite_incantatem: false')
  expect(eventsOf(events, 'round-ended').map(({ tasks: counted }) => [counted?.done, counted?.total])).toEqual([
    [1, 2],
    [2, 2],
    [2, 2],
    [2, 2],
  ])
  const [lines = '', json = '{}'] = await seen
  expect(lines).toMatch(/^ {2}step {5}fix, runs until it is done, 1 round; check not run yet$/m)
  expect(lines).toMatch(/^ {2}tasks {4}1 of 2 done; T2 part 2$/m)
  expect(lines).toContain('test -f whole failed')
  expect(JSON.parse(json).session).toMatchObject({
    scope: { name: 'fix', rounds: 1, gates: [{ name: 'check', last: null }] },
    gates: [{ name: 'test -f whole' }],
    tasks: { done: 1, total: 2 },
  })
  const report = await project.report()
  expect(report.proof.gates.map(({ name, last }) => [name, last?.status])).toEqual([['test -f whole', 'passed']])
  expect(report).toMatchObject({ session: id, tasks: null, proof: { claim: 'accepted', verified: true } })
  const done = JSON.parse(scene.recorded('done.json'))
  expect(done.gates.map(({ name }: { name: string }) => name)).toEqual(['test -f whole'])
})

promise('D27')
test.each([
  ['its files are there', 'scope-entered'],
  ['its claim was accepted', 'done-accepted'],
])('a session that is cut off in a scope once %s continues from there, to the same end', async (_, type) => {
  await using scene = await openScene([...ROUNDS, ...Array.from({ length: 4 }, () => round(flag(fix)))])
  const before: Recorded[] = []
  const id = await runToEnd(scene, before)
  const end = before.findIndex(event => event.type === type)
  cutJournal(scene, end + 1)
  const after: Recorded[] = []
  await using project = await openIn(scene)
  const resumed = await project.resume(id, { onEvent: event => void after.push(event) })
  expect(resumed.outcome).toEqual({ kind: 'done', verified: true })
  const all = [...before.slice(0, end + 1), ...after]
  expect(eventsOf(all, 'scope-entered')).toHaveLength(1)
  expect(eventsOf(all, 'scope-left')).toMatchObject([{ name: 'fix', outcome: 'done' }])
  expect(eventsOf(all, 'done-accepted').at(-1)?.scope).toBe(undefined)
  expect(eventsOf(all, 'memory-broken')).toEqual([])
  expect(scene.memory('steps/fix/MAIN.md')).toContain('Do fix.')
})

promise('D31')
test('what a scope changed of its own check is looked at in the next session as well, where that scope was given up', async () => {
  await using scene = await openScene([round('printf "check:\\n\\ttrue\\n" > Makefile'), round('true')])
  await using project = await openIn(scene, { gate: 'make check', mostRounds: 1 })
  const events: Recorded[] = []
  const onEvent = (event: Recorded) => void events.push(event)
  const first = await project.run('Have it fixed.', { template: 'scoped', onEvent })
  const second = await project.run('Have it fixed.', { template: 'scoped', onEvent })
  expect([first.outcome.kind, second.outcome.kind]).toEqual(['needs-person', 'needs-person'])
  const [before] = eventsOf(events, 'scope-entered')
  expect(eventsOf(events, 'session-created').map(({ protectFrom = null }) => protectFrom)).toEqual([null, before?.tree])
  expect(eventsOf(events, 'scope-entered').map(({ protectFrom = null }) => protectFrom)).toEqual([null, before?.tree])
  expect(eventsOf(events, 'protected-changed').map(({ scope, files }) => [scope, files[0]?.path])).toEqual([
    ['fix', 'Makefile'],
    ['fix', 'Makefile'],
  ])
})

async function runToEnd(scene: Scene, events: Recorded[]): Promise<string> {
  await using project = await openIn(scene)
  const { id } = await project.run('Have it fixed.', { template: 'scoped', onEvent: event => void events.push(event) })
  return id
}

/** Leaves no more than the first lines of the journal, as though codemachine had been killed then. */
function cutJournal(scene: Scene, events: number): void {
  const path = join(scene.records(), 'sessions', sessionIn(scene), 'journal.ndjson')
  const [head = '', ...lines] = readFileSync(path, 'utf8').trimEnd().split('\n')
  writeFileSync(path, `${[head, ...lines.slice(0, events)].join('\n')}\n`)
}

function sessionIn(scene: Scene): string {
  return JSON.parse(scene.recorded('journal.ndjson').split('\n')[1] ?? '{}').session
}
