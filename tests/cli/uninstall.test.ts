import { existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { startInEmulator } from '../support/emulator.ts'
import { git } from '../support/place.ts'
import { claimDone, held, round } from '../support/rounds.ts'
import { openScene, type Scene } from '../support/scene.ts'
import { test } from '../support/side-by-side.ts'

/** A machine on which codemachine was used: a session, settings, a unit, a worktree with work that is not landed and one without. */
async function used(): Promise<Scene> {
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

const worktree = ({ place }: Scene, name: string) => join(`${place.directory}.worktrees`, name)

test('uninstall --dry-run names all that is left, by its kind, and removes nothing', async () => {
  await using scene = await used()
  const { place } = scene
  const { exitCode, stdout } = await scene.run('uninstall', '--dry-run')
  expect(exitCode).toBe(0)
  for (const path of [
    join(place.directory, '.codemachine'),
    join(worktree(scene, 'full'), '.codemachine'),
    join(place.home, '.config', 'codemachine'),
    join(place.home, '.config', 'systemd', 'user', 'codemachine.service'),
    join(place.home, '.codemachine', 'state'),
    worktree(scene, 'empty'),
  ]) {
    expect(stdout).toContain(path)
  }
  expect(stdout).toMatch(/worktrees\/full .*\(holds work that is not landed/)
  expect(stdout).toContain('The program itself: npm uninstall --global codemachine')
  const { leftovers } = JSON.parse((await scene.run('uninstall', '--dry-run', '--json')).stdout)
  expect(new Set(leftovers.map(({ kind }: { kind: string }) => kind))).toEqual(
    new Set(['services', 'worktrees', 'memory', 'settings', 'sessions']),
  )
  expect(existsSync(join(place.directory, '.codemachine'))).toBe(true)
})

test('uninstall asks for each kind, and removes what is agreed to; without a terminal it wants --yes', async () => {
  await using scene = await used()
  const { place } = scene
  expect(await scene.run('uninstall')).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('--dry-run') })
  await using terminal = startInEmulator(place, ['uninstall', '--keep', 'services'], { columns: 200, rows: 50 })
  await terminal.until('Remove worktrees of --worktree, and their branches? [y/N]')
  terminal.type('n\r')
  await terminal.until('Remove the memory in work directories? [y/N]')
  terminal.type('\r')
  await terminal.until('Remove your settings? [y/N]')
  terminal.type('y\r')
  await terminal.until('Remove the records of sessions? [y/N]')
  terminal.type('y\r')
  expect(await terminal.ended).toEqual({ exitCode: 0 })
  expect(existsSync(join(place.home, '.config', 'codemachine'))).toBe(false)
  expect(existsSync(join(place.home, '.codemachine', 'state'))).toBe(false)
  expect(existsSync(join(place.directory, '.codemachine'))).toBe(true)
  expect(existsSync(worktree(scene, 'empty'))).toBe(true)
})

test('what is not landed stays, also with --yes; what a link leads to is not touched', async () => {
  await using scene = await used()
  const { place } = scene
  const outside = join(place.root, 'outside')
  mkdirSync(outside)
  writeFileSync(join(outside, 'mine'), 'mine')
  symlinkSync(outside, join(place.directory, '.codemachine', 'link'))
  const { exitCode, stdout } = await scene.run('uninstall', '--yes', '--keep', 'services')
  expect([exitCode, stdout]).toEqual([0, expect.stringContaining('removed ')])
  expect(existsSync(join(outside, 'mine'))).toBe(true)
  expect(existsSync(join(place.directory, '.codemachine'))).toBe(false)
  expect(existsSync(join(worktree(scene, 'full'), 'new.txt'))).toBe(true)
  expect(git(place, 'branch', '--list', 'codemachine/*', '--format=%(refname:short)')).toBe('codemachine/full')
  expect(readdirSync(place.home)).not.toContain('.codemachine')
})

test('while a session runs nothing is removed', async () => {
  await using scene = await openScene([[held(new Promise<never>(() => {}))]])
  await using running = scene.start('--json', 'build X')
  await running.event('turn-started')
  expect(await scene.run('uninstall', '--yes')).toMatchObject({
    exitCode: 6,
    stderr: expect.stringMatching(
      /^codemachine: A codemachine runs in .*, and nothing is removed meanwhile\.\n {2}End it first: codemachine stop\n$/,
    ),
  })
  expect(existsSync(join(scene.place.directory, '.codemachine'))).toBe(true)
})
