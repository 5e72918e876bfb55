import { appendFileSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { TemplateKind, TemplateSetup } from '../../src/core/template.ts'
import { processWorld, type Recorded } from '../../src/index.ts'
import { OpenProject } from '../../src/project/open-project.ts'
import { promise } from '../support/promise.ts'
import { openRealScene } from '../support/real-scene.ts'
import { round, says } from '../support/rounds.ts'
import { eventsOf, openScene, type Scene } from '../support/scene.ts'
import { weaveTemplate } from '../support/weave-template.ts'

const openIn = async (
  { place, engines }: Pick<Scene, 'place' | 'engines'>,
  verify: readonly string[],
  onSetup: (setup: TemplateSetup) => void = () => {},
) => {
  const world = processWorld({ engines, env: place.env, home: place.home, cwd: place.directory })
  const kind = weaveTemplate({ gate: 'make check' })
  const open = async (setup: TemplateSetup) => {
    onSetup(setup)
    return await kind.open(setup)
  }
  const templates = [{ ...kind, open } as TemplateKind]
  return await OpenProject.open(world, { keepAwake: false, verify, templates })
}

const PLAN = [says(JSON.stringify({ plan: 'plain' }))]
const MAKEFILE = 'check:\n\t@grep -q woven cloth\n'
const AGREES = [says(JSON.stringify({ verdict: 'agreed', summary: 'It is woven.', findings: [] }))]
const SUMMARY = [says('It is woven.')]

/** Weaves, and accepts the plan that it is asked about, after `asked`; resolves with what happened. */
async function weave(
  scene: Scene,
  verify: readonly string[],
  asked: () => void,
): Promise<{ events: Recorded[]; lines: unknown }> {
  const events: Recorded[] = []
  let setup: TemplateSetup | null = null
  let lines: unknown = null
  await using project = await openIn(scene, verify, given => {
    setup = given
  })
  const { outcome } = await project.run('Weave it.', {
    template: 'weave',
    canAsk: true,
    onEvent(event) {
      events.push(event)
      if (event.type === 'round-ended' && event.round === 2)
        lines = setup?.linesChanged?.(event.treeBefore, event.treeAfter, new AbortController().signal)
      if (event.type !== 'decision-asked') return
      asked()
      void project.ask({ type: 'decide', choice: 'accept' })
    },
  })
  expect(outcome).toEqual({ kind: 'done', verified: true })
  return { events, lines: await lines }
}

/** Begins to weave, and is cut off right after gates were added; resolves with the id of the session. */
async function weaveUntilAdded(scene: Scene, verify: readonly string[]): Promise<string> {
  const ending = new AbortController()
  await using project = await openIn(scene, verify)
  const { id } = await project.run('Weave it.', {
    template: 'weave',
    canAsk: true,
    signal: ending.signal,
    onEvent(event) {
      if (event.type === 'decision-asked') void project.ask({ type: 'decide', choice: 'accept' })
      if (event.type === 'gates-added') ending.abort('SIGTERM')
    },
  })
  const path = join(scene.records(), 'sessions', id, 'journal.ndjson')
  const lines = readFileSync(path, 'utf8').trimEnd().split('\n')
  const added = lines.findIndex(line => line.includes('"type":"gates-added"'))
  expect(added).toBeGreaterThan(0)
  writeFileSync(path, `${lines.slice(0, added + 1).join('\n')}\n`)
  return id
}

const gatesOf = (events: readonly Recorded[]) =>
  eventsOf(events, 'gate-ended').map(({ gate, when, status }) => [gate, when, status])
const certified = (scene: Scene) =>
  (JSON.parse(scene.recorded('done.json')).gates as { name: string; run: string; status: string }[]).map(
    ({ name, run, status }) => [name, run, status],
  )

promise(
  'C91',
  'Commands that a template makes gates have to pass, protect what they run, are in the certificate, and stay when the session is resumed, with `--reread-gates` too',
)
test('with the real codex: what a template adds runs once, has to pass, protects what it runs, and is certified', async () => {
  await using scene = await openRealScene([PLAN, round('printf "check:\\n\\t@true\\n" > Makefile'), AGREES, SUMMARY])
  const makefile = join(scene.place.directory, 'Makefile')
  writeFileSync(makefile, MAKEFILE)
  const { events, lines } = await weave(scene, ['true'], () => appendFileSync(makefile, '# Mind the cloth.\n'))
  expect(gatesOf(events)).toEqual([
    ['true', 'before', 'passed'],
    ['woven', 'before', 'failed'],
    ['true', 'claim', 'passed'],
    ['woven', 'claim', 'passed'],
  ])
  // What had become of the file before the gate was there is told when it is added.
  expect(eventsOf(events, 'protected-changed')).toMatchObject([
    { round: 1, files: [{ path: 'Makefile', gates: ['woven'] }] },
    { round: 2, files: [{ path: 'Makefile', gates: ['woven'] }] },
  ])
  // It passes because a round has made it pass: somebody has to look at that.
  expect(eventsOf(events, 'review-started')).toMatchObject([{ causes: ['protected', 'counter-proof'] }])
  expect(eventsOf(events, 'round-started').at(-1)).toMatchObject({ part: 'summary', keepsClaim: true })
  expect(certified(scene)).toEqual([
    ['true', 'true', 'passed'],
    ['woven', 'make check', 'passed'],
  ])
  expect(lines).toEqual([{ path: 'Makefile', added: 1, removed: 2 }])
})

promise('C91')
test('cut off after that, and gone on with by --reread-gates, those that were added stay beside the others', async () => {
  await using scene = await openScene([PLAN, round('echo woven > cloth'), SUMMARY])
  writeFileSync(join(scene.place.directory, 'Makefile'), MAKEFILE)
  const id = await weaveUntilAdded(scene, ['test -f Makefile'])

  await using project = await openIn(scene, ['test -d .', 'make check'])
  const after: Recorded[] = []
  const view = { event: (event: Recorded) => void after.push(event), live: () => {} }
  await project.resumeWork({ session: id, rereadsGates: true, alone: true }, { view, canAsk: false })
  expect(eventsOf(after, 'session-resumed')[0]?.gates?.map(({ run }) => run)).toEqual([
    'test -f Makefile',
    'test -d .',
    'make check',
  ])
  expect(after.at(-1)).toMatchObject({ type: 'session-ended', outcome: { kind: 'done', verified: true } })
  // The person has the same command now, so that it runs once.
  expect(certified(scene).map(([, run]) => run)).toEqual(['test -f Makefile', 'test -d .', 'make check'])
})

test('cut off before they had run, they run when the session goes on, and with no others they prove it', async () => {
  await using scene = await openScene([PLAN, round('echo woven > cloth'), SUMMARY])
  writeFileSync(join(scene.place.directory, 'Makefile'), MAKEFILE)
  const id = await weaveUntilAdded(scene, [])

  await using project = await openIn(scene, [])
  const after: Recorded[] = []
  const { outcome } = await project.resume(id, { onEvent: event => void after.push(event) })
  expect(outcome).toEqual({ kind: 'done', verified: true })
  expect(eventsOf(after, 'session-resumed')[0]?.gates).toEqual([])
  expect(gatesOf(after)).toEqual([
    ['woven', 'before', 'failed'],
    ['woven', 'claim', 'passed'],
  ])
  expect(eventsOf(after, 'decision-asked')).toEqual([])
})
