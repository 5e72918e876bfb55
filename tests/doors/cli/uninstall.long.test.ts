import { existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { git } from '../../support/place.ts'
import { promise } from '../../support/promise.ts'
import { test } from '../../support/side-by-side.ts'
import { used, worktree } from './used-machine.ts'

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

promise('B120', '`uninstall` removes no work that is not landed, follows no link, and nothing while a session runs')
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
