import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { env, execPath } from 'node:process'
import { execa } from 'execa'
import { expect, onTestFinished, test } from 'vitest'
import { findBrowser } from '../../src/platform/headless-browser.ts'
import { configHomeOf, homeOf } from '../../src/project/world.ts'
import { anyRootOf } from '../../src/session/records/records.ts'

const WINDOWS = 'C:\\Users\\me'

test.each([
  // platform, the variable of the home and of the settings, and the folders that come of them
  ['linux', '/home/me', undefined, '/home/me', '/home/me/.config'],
  ['linux', '/home/me', '', '/home/me', '/home/me/.config'],
  ['linux', '/home/me', 'conf', '/home/me', '/home/me/.config'],
  ['linux', '/home/me', '/conf', '/home/me', '/conf'],
  ['linux', '', undefined, '/account', '/account/.config'],
  ['linux', 'me', '/conf', '/account', '/conf'],
  ['darwin', '/Users/me', undefined, '/Users/me', '/Users/me/.config'],
  ['darwin', '/users/ME', '/Users/me/conf', '/users/ME', '/Users/me/conf'],
  ['darwin', './me', '', '/account', '/account/.config'],
  ['win32', WINDOWS, undefined, WINDOWS, `${WINDOWS}\\.config`],
  ['win32', 'c:/users/ME', 'D:\\conf', 'c:/users/ME', 'D:\\conf'],
  ['win32', WINDOWS, 'D:conf', WINDOWS, `${WINDOWS}\\.config`],
  ['win32', '', undefined, '/account', '\\account\\.config'],
  ['win32', 'me', 'conf', '/account', '\\account\\.config'],
] as const)('on %s with the home %j and XDG_CONFIG_HOME %j', (platform, named, xdg, home, configHome) => {
  const variable = platform === 'win32' ? 'USERPROFILE' : 'HOME'
  const given = { [variable]: named, PATH: '/bin' }
  const found = homeOf(given, named, () => '/account', platform)
  expect(found).toEqual({ home, env: { ...given, [variable]: home } })
  expect(configHomeOf(xdg, found.home, platform)).toBe(configHome)
})

test.each([
  [undefined, 'home/.codemachine'],
  ['', 'home/.codemachine'],
  ['state', 'home/.codemachine'],
  ['<root>/state', 'state/codemachine'],
])('the records with XDG_STATE_HOME %j, and those of an earlier install', async (given, expected) => {
  const root = await mkdtemp(join(tmpdir(), 'world-'))
  onTestFinished(() => rm(root, { recursive: true }))
  const state = given?.replace('<root>', root)
  const places = { home: join(root, 'home'), env: state === undefined ? {} : { XDG_STATE_HOME: state } }
  expect(anyRootOf(places)).toBe(join(root, expected))
  await mkdir(join(root, 'home/.codemachine'), { recursive: true })
  expect(anyRootOf(places)).toBe(join(root, 'home/.codemachine'))
})

test('an empty LOCALAPPDATA leads to no browser at the root of the drive', async () => {
  const where = { workDirectory: [], gitDirectories: [], elsewhere: [], temporary: [] }
  for (const LOCALAPPDATA of ['', 'local'])
    expect(await findBrowser({ platform: 'win32', env: { LOCALAPPDATA, PATH: '' }, home: WINDOWS, where })).toEqual({
      path: null,
      wrong: null,
    })
})

test.each(['', 'relative'])('with HOME=%j a command looks into the home of the account', async HOME => {
  const place = await mkdtemp(join(tmpdir(), 'world-'))
  onTestFinished(() => rm(place, { recursive: true }))
  const { CODEMACHINE_HOME: _, XDG_STATE_HOME: __, ...rest } = env
  const bin = join(import.meta.dirname, '../../dist/bin.js')
  const options = { cwd: place, env: { ...rest, HOME }, extendEnv: false, reject: false } as const
  const { exitCode, stderr } = await execa(execPath, [bin, 'list'], options)
  expect([exitCode, stderr]).toEqual([0, ''])
  expect(await readdir(place)).toEqual([])
})
