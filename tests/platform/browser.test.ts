import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { hasDesktop, openPage } from '../../src/platform/browser.ts'
import { NOWHERE } from '../../src/platform/files.ts'
import { untilInFolder } from '../support/until-in-folder.ts'

/** A machine with these programs alone; each writes its name and first argument into `opened`. */
async function machineWith(...programs: string[]) {
  const root = await mkdtemp(join(tmpdir(), 'browser-'))
  const bin = join(root, 'bin')
  await mkdir(bin)
  const opened = join(root, 'opened')
  const script = `#!/bin/sh\necho "\${0##*/} $1" > '${opened}.new' && /bin/mv '${opened}.new' '${opened}'\nexit 1\n`
  for (const name of programs) await writeFile(join(bin, name), script, { mode: 0o755 })
  return {
    bin,
    env: { PATH: bin },
    whatWasOpened: () => untilInFolder(root, 'what was opened', () => readFile(opened, 'utf8').catch(() => null)),
    [Symbol.asyncDispose]: () => rm(root, { recursive: true, maxRetries: 3 }),
  }
}

test.each([
  ['linux', 'xdg-open'],
  ['darwin', 'open'],
] as const)('on %s a page is opened with %s, whatever its exit code says', async (platform, program) => {
  await using machine = await machineWith('xdg-open', 'open', 'explorer.exe')
  expect(await openPage('/a page.html', { env: machine.env, platform, where: NOWHERE })).toBeNull()
  expect(await machine.whatWasOpened()).toBe(`${program} /a page.html\n`)
})

test('in WSL it is opened by Windows, with the path that Windows knows', async () => {
  await using machine = await machineWith('xdg-open', 'explorer.exe')
  await writeFile(join(machine.bin, 'wslpath'), '#!/bin/sh\necho "C:\\\\pages$2"\n', { mode: 0o755 })
  const env = { ...machine.env, WSL_DISTRO_NAME: 'Ubuntu' }
  expect(await openPage('/page.html', { env, platform: 'linux', where: NOWHERE })).toBeNull()
  expect(await machine.whatWasOpened()).toBe('explorer.exe C:\\pages/page.html\n')
})

test('in WSL that cannot reach Windows it is opened as on Linux', async () => {
  await using machine = await machineWith('xdg-open', 'explorer.exe')
  const env = { ...machine.env, WSL_DISTRO_NAME: 'Ubuntu' }
  expect(await openPage('/page.html', { env, platform: 'linux', where: NOWHERE })).toBeNull()
  expect(await machine.whatWasOpened()).toBe('xdg-open /page.html\n')
})

test('where nothing opens it, the reason is told', async () => {
  await using machine = await machineWith()
  expect(await openPage('/page.html', { env: machine.env, platform: 'linux', where: NOWHERE })).toBe(
    'xdg-open was not found on the PATH',
  )
})

test('a program that an agent can have written does not open it, and none that opens it finds one', async () => {
  await using planted = await machineWith('xdg-open')
  await using machine = await machineWith()
  await writeFile(join(machine.bin, 'xdg-open'), '#!/bin/sh\necho "$PATH" > "$1"\n', { mode: 0o755 })
  const where = { ...NOWHERE, elsewhere: [planted.bin] }
  const page = join(machine.bin, 'opened')
  const env = { PATH: `${planted.bin}:${machine.bin}` }
  expect(await openPage(page, { env: planted.env, platform: 'linux', where })).toBe(
    `xdg-open was found only where an agent can write, so codemachine does not use it: ${planted.bin}/xdg-open`,
  )
  expect(await openPage(page, { env, platform: 'linux', where })).toBeNull()
  const opened = () =>
    readFile(page, 'utf8').then(
      text => text || null,
      () => null,
    )
  expect(await untilInFolder(machine.bin, 'what was opened', opened)).toBe(`${machine.bin}\n`)
})

test('what opens it says to its children for whom it was started, so that no search for what agents left ends them', async () => {
  await using machine = await machineWith()
  const script = '#!/bin/sh\necho "$CODEMACHINE_FOR_PERSON" > "$1.new" && /bin/mv "$1.new" "$1"\n'
  await writeFile(join(machine.bin, 'xdg-open'), script, { mode: 0o755 })
  const page = join(machine.bin, '../opened')
  expect(await openPage(page, { env: machine.env, platform: 'linux', where: NOWHERE })).toBeNull()
  expect(await machine.whatWasOpened()).toBe(`${process.pid}\n`)
})

test.each([
  ['linux', {}, false],
  ['linux', { DISPLAY: ':0' }, true],
  ['linux', { WAYLAND_DISPLAY: 'wayland-0' }, true],
  ['linux', { WSL_DISTRO_NAME: 'Ubuntu' }, true],
  ['darwin', {}, true],
  ['darwin', { SSH_CONNECTION: '1' }, false],
] as const)('whether there is a desktop: %s %j', (platform, env, expected) => {
  expect(hasDesktop(env, platform)).toBe(expected)
})
