import { PassThrough } from 'node:stream'
import { expect, test } from 'vitest'
import { ScreenHome } from '../../../../src/doors/screen/host/screen-home.ts'
import { cliContext } from '../../../support/cli-context.ts'
import { makePlace } from '../../../support/place.ts'

/** Both ends of a terminal. */
function openTerminal() {
  const stdin = Object.assign(new PassThrough(), { isTTY: true, setRawMode() {}, ref() {}, unref() {} })
  const stdout = Object.assign(new PassThrough(), { isTTY: true, columns: 80, rows: 24 })
  stdout.resume()
  return { stdin, stdout }
}

test('a run is ended by a closed terminal as by SIGHUP, whichever of the two is noticed first', async () => {
  await using place = await makePlace('')
  const { stdin, stdout } = openTerminal()
  await using home = await ScreenHome.open(cliContext(place, { stdin, stdout }), {})
  const { signal } = home.contextOfRun()
  stdout.destroy()
  await expect.poll(() => signal.aborted, { timeout: 10_000, interval: 5 }).toBe(true)
  expect(signal.reason).toBe('SIGHUP')
})

test('a run is ended by a person who leaves as by SIGINT', async () => {
  await using place = await makePlace('')
  await using home = await ScreenHome.open(cliContext(place, openTerminal()), {})
  home.person.leave()
  expect(home.contextOfRun().signal.reason).toBe('SIGINT')
})
