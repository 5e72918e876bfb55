import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { claimDone, round } from '../../support/rounds.ts'
import { openScene, type Scene } from '../../support/scene.ts'

/** A machine on which codemachine was used: a session, settings, a unit, a worktree with work that is not landed and one without. */
export async function used(): Promise<Scene> {
  const scene = await openScene([round(claimDone), round(claimDone), round('echo new > new.txt', claimDone)])
  await scene.run('build X')
  await scene.run('build Y', '--worktree', 'empty')
  await scene.run('build Z', '--worktree', 'full')
  const { home } = scene.place
  for (const folder of ['codemachine', 'systemd/user']) mkdirSync(join(home, '.config', folder), { recursive: true })
  writeFileSync(join(home, '.config', 'codemachine', 'config.toml'), 'rounds = 3\n')
  writeFileSync(join(home, '.config', 'systemd', 'user', 'codemachine.service'), '[Unit]\n')
  return scene
}

export const worktree = ({ place }: Scene, name: string) => join(`${place.directory}.worktrees`, name)
