import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { Recorded } from '../../src/core/events/events.ts'
import { reply, type ScriptStep, shell } from '../../src/demo/model/reply.ts'
import { openProject, processWorld } from '../../src/index.ts'
import { openRecords } from '../../src/records/records.ts'
import { openSecrets } from '../../src/records/secrets.ts'
import { errandTemplate } from '../support/errand-template.ts'
import { openRealScene, type RealScene } from '../support/real-scene.ts'
import { eventsOf } from '../support/scene.ts'
import { askHuman, leaksIn, runShell, works } from '../support/team-scene.ts'

const VALUE = 'sk-live-Zx81/+ab~49 Qq-2026'

async function secretsOf({ place }: RealScene) {
  const world = { env: place.env, home: place.home, platform: process.platform }
  const records = await openRecords({ ...processWorld({ ...world, cwd: place.directory }), directory: place.directory })
  const store = openSecrets(records.secrets)
  const give = (key: string, value: string, check: string | null = null) =>
    store.set({ key, value, check }, new Date(0))
  return { records, store, give }
}

/** Runs the errands of a scene to their end. */
async function runErrands(
  scene: RealScene,
  options: Parameters<typeof errandTemplate>[0],
  onEvent: (event: Recorded, ask: (key: string) => void) => void = () => {},
) {
  const { place } = scene
  const world = processWorld({ env: place.env, home: place.home, cwd: place.directory })
  await using project = await openProject(world, { keepAwake: false, templates: [errandTemplate(options)] })
  const events: Recorded[] = []
  const { outcome } = await project.run('Run errands.', {
    template: 'errand',
    onEvent(event) {
      events.push(event)
      onEvent(event, key => void project.ask({ type: 'secret', key }))
    },
  })
  const of = <T extends Recorded['type']>(type: T) => eventsOf(events, type)
  return { outcome, events, of }
}

const own = (line: string): ScriptStep => reply(shell(line, { login: false }))

/** What codex's own shell printed, command by command. */
function printedBy(events: readonly Recorded[]): string[] {
  return eventsOf(events, 'item-completed').flatMap(({ item }) => (item.kind === 'command' ? [item.output] : []))
}

test('an agent that asks for a secret ends its turn; once it is given, from elsewhere, and confirmed, the next one has it', async () => {
  await using scene = await openRealScene([
    [askHuman('SHOP_KEY', { question: 'The key of the shop?' }), works({ done: false })],
    [runShell('printf %s "$SHOP_KEY" | wc -c | grep -x 27', 'SHOP_KEY'), works()],
  ])
  const { give } = await secretsOf(scene)
  const { of } = await runErrands(scene, { rounds: 2 }, (event, ask) => {
    if (event.type !== 'decision-asked') return
    void give('SHOP_KEY', VALUE, 'test -n "$SHOP_KEY" && echo "$SHOP_KEY" && touch checked').then(() => ask('SHOP_KEY'))
  })
  expect(of('secret-asked')).toMatchObject([{ key: 'SHOP_KEY', question: 'The key of the shop?' }])
  expect(of('decision-asked')).toMatchObject([{ secret: { key: 'SHOP_KEY' } }])
  expect(of('decision-made')).toMatchObject([{ choice: 'give', by: 'person' }])
  expect(of('secret-confirmed')).toMatchObject([{ key: 'SHOP_KEY', ok: true }])
  expect(existsSync(join(scene.place.directory, 'checked'))).toBe(true)
  expect(of('shell-ran')).toMatchObject([{ status: 'passed', secrets: ['SHOP_KEY'] }])
  expect(leaksIn(scene, VALUE)).toEqual([])
})

test('a file in which a command has left a secret ends the turn, and no agent reads it any more', async () => {
  await using scene = await openRealScene([
    [runShell('mkdir -p out; printf %s "$SHOP_KEY" > out/debug.log', 'SHOP_KEY'), own('cat out/debug.log'), works()],
    [own('cat out/debug.log; ls out'), runShell('cat out/debug.log'), works()],
  ])
  const { give } = await secretsOf(scene)
  await give('SHOP_KEY', VALUE)
  const { of, events } = await runErrands(scene, { rounds: 2 })
  expect(of('shell-ran')).toMatchObject([{ leaked: ['out/debug.log'] }, { status: 'failed', stdout: '' }])
  expect(of('round-ended').map(({ outcome }) => outcome)).toMatchObject([
    { class: 'interrupted', message: expect.stringMatching(/left a secret in out\/debug\.log/) },
    { class: 'worked' },
  ])
  expect(printedBy(events).at(-1)).toMatch(/Permission denied\n+debug\.log/)
  expect(readFileSync(join(scene.place.directory, 'out/debug.log'), 'utf8')).toBe(VALUE)
  for (const leak of leaksIn(scene, VALUE)) expect(leak).toContain('/work/out/debug.log: ')
})
