import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { startInEmulator } from '../../support/emulator.ts'
import { promise } from '../../support/promise.ts'
import { openRealScene } from '../../support/real-scene.ts'
import { held } from '../../support/rounds.ts'
import { test } from '../../support/side-by-side.ts'
import { used, worktree } from './used-machine.ts'

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

promise('B120')
promise('E28', '`uninstall` removes nothing while a session runs')
test('while a session runs nothing is removed', async () => {
  await using scene = await openRealScene([[held(new Promise<never>(() => {}))]])
  await using running = scene.start('--json', 'build X')
  await running.event('turn-started')
  expect(await scene.run('uninstall', '--yes')).toMatchObject({
    exitCode: 6,
    stderr: expect.stringMatching(
      /^codemachine: A codemachine runs in .*, so nothing can be removed now\. \(CM0601\)\n {2}End it first: codemachine stop\n$/,
    ),
  })
  expect(existsSync(join(scene.place.directory, '.codemachine'))).toBe(true)
})
