import { EventEmitter } from 'node:events'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { suspendSelf } from '../../src/platform/terminal.ts'
import { startInEmulator } from '../support/emulator.ts'
import { makePlace } from '../support/place.ts'
import { isLinux, unless } from '../support/skipped.ts'
import { VirtualClock } from '../support/virtual-clock.ts'

const source = (path: string) => JSON.stringify(fileURLToPath(new URL(`../../src/${path}`, import.meta.url)))

const PROGRAM = `
  import { suspendSelf } from ${source('platform/terminal.ts')}
  import { systemClock } from ${source('base/clock.ts')}
  const { platform } = process
  const was = await suspendSelf({ platform, clock: systemClock, signals: process })
  console.log('suspended:', was, process.stdout.columns)
`

test('the shell goes on until fg, after which the program knows how wide the window has become', async () => {
  await using place = await makePlace('', { git: false })
  const command = [process.execPath, '--input-type=module', '-e', PROGRAM]
  await using terminal = startInEmulator(place, [], { command })
  await terminal.stopped()
  terminal.resize(61, 20)
  terminal.foreground()
  await terminal.until('suspended: true 61')
})

test.runIf(isLinux)(
  `where no shell could bring it back, the program goes on${unless(isLinux, 'it takes setsid')}`,
  async () => {
    await using place = await makePlace('', { git: false })
    // A new session: its only process group has no parent in it, and no terminal stops such a group.
    const command = ['setsid', '--wait', process.execPath, '--input-type=module', '-e', PROGRAM]
    await using terminal = startInEmulator(place, [], { command })
    await terminal.until('suspended: false')
  },
)

test('on Windows there is nothing to suspend for', async () => {
  expect(await suspendSelf({ platform: 'win32', clock: new VirtualClock(0), signals: new EventEmitter() })).toBe(false)
})
