import type { Recorded } from '../../src/core/events/events.ts'
import { reply, type ScriptStep, shell } from '../../src/demo/model/reply.ts'
import { openProject, processWorld } from '../../src/index.ts'
import { openSecrets } from '../../src/secrets/store.ts'
import { openRecords } from '../../src/session/records/records.ts'
import { errandTemplate } from '../support/errand-template.ts'
import type { RealScene } from '../support/real-scene.ts'
import { eventsOf } from '../support/scene.ts'

export const VALUE = 'sk-live-Zx81/+ab~49 Qq-2026'

export async function secretsOf({ place }: RealScene) {
  const world = { env: place.env, home: place.home, platform: process.platform }
  const records = await openRecords({ ...processWorld({ ...world, cwd: place.directory }), directory: place.directory })
  const store = openSecrets(records.secrets)
  const give = (key: string, value: string, check: string | null = null) =>
    store.set({ key, value, check }, new Date(0))
  return { records, store, give }
}

/** Runs the errands of a scene to their end. */
export async function runErrands(
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

export const own = (line: string): ScriptStep => reply(shell(line, { login: false }))

/** What codex's own shell printed, command by command. */
export function printedBy(events: readonly Recorded[]): string[] {
  return eventsOf(events, 'item-completed').flatMap(({ item }) => (item.kind === 'command' ? [item.output] : []))
}
