import type { TeamScene } from '../../../support/team-scene.ts'

export const KEY = 'SERVICE_API_KEY'

export const VALUE = 'sk-live+4711/"quoted" ä€-end'

const GOAL = 'Ask the service.'

export const team = (scene: TeamScene, ...more: string[]) =>
  scene.run('team', GOAL, '--yes', '--json', '--no-keep-awake', ...more)
