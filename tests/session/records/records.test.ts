import { chmod, mkdir, mkdtemp, realpath, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { OWN_TEMPLATES } from '../../../src/modes/registry.ts'
import { openRecords, type RecordsPlaces } from '../../../src/session/records/records.ts'
import { promise } from '../../support/promise.ts'
import { isLinux, isWindows, unless } from '../../support/skipped.ts'

let root: string
let places: RecordsPlaces

beforeEach(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), 'records-')))
  places = {
    directory: join(root, 'my app'),
    env: {},
    home: join(root, 'home'),
    platform: process.platform,
    templates: OWN_TEMPLATES,
  }
  await mkdir(places.directory)
  await mkdir(places.home)
})
afterEach(() => rm(root, { recursive: true }))

const open = (more: Partial<RecordsPlaces> = {}) => openRecords({ ...places, ...more })
const modeOf = async (path: string) => ((await stat(path)).mode & 0o777).toString(8)
const evening = new Date(2026, 10, 20, 23, 59)

describe('where the records of a work directory are', () => {
  test('in ~/.codemachine, in a folder that is named after the directory', async () => {
    const records = await open()
    expect(records.root).toBe(join(places.home, '.codemachine'))
    expect(records.key).toMatch(/^my-app-[0-9a-f]{12}$/)
    expect(records.folder).toBe(join(records.root, 'state', records.key))
    expect((await open()).key).toBe(records.key)
  })

  test('the same ones when the directory is reached by a link, others for another directory of that name', async () => {
    await symlink(places.directory, join(root, 'link'))
    await mkdir(join(root, 'other', 'my app'), { recursive: true })
    const { key } = await open()
    expect((await open({ directory: join(root, 'link') })).key).toBe(key)
    expect((await open({ directory: join(root, 'other', 'my app') })).key).not.toBe(key)
  })

  test('in CODEMACHINE_HOME if it is set; it has to be absolute', async () => {
    const home = join(root, 'elsewhere', 'deep')
    expect((await open({ env: { CODEMACHINE_HOME: home } })).root).toBe(home)
    expect((await open({ env: { CODEMACHINE_HOME: '' } })).root).toBe(join(places.home, '.codemachine'))
    await expect(open({ env: { CODEMACHINE_HOME: 'x' } })).rejects.toThrow(
      'CODEMACHINE_HOME is "x"; use an absolute path.',
    )
  })

  test('in XDG_STATE_HOME for a new install; an earlier one stays where it is', async () => {
    const state = join(root, 'xdg')
    const usual = join(places.home, '.codemachine')
    const env = { XDG_STATE_HOME: state }
    expect((await open({ env: { XDG_STATE_HOME: 'relative' } })).root).toBe(usual)
    expect((await open({ env })).root).toBe(usual)
    await rm(usual, { recursive: true })
    expect((await open({ env })).root).toBe(join(state, 'codemachine'))
    await mkdir(usual)
    expect((await open({ env })).root).toBe(join(state, 'codemachine'))
    expect((await open({ env: { ...env, CODEMACHINE_HOME: usual } })).root).toBe(usual)
  })

  test('a name that no folder can have is made safe', async () => {
    const directory = join(root, `..ä\n${'x'.repeat(100)}`)
    await mkdir(directory)
    expect((await open({ directory })).key).toMatch(/^[A-Za-z0-9][\w.-]{0,39}-[0-9a-f]{12}$/)
  })
})

describe.skipIf(isWindows)(`who may look into them${unless(!isWindows, 'Windows has no such modes')}`, () => {
  promise('J8', 'Records are for this user alone')
  test('nobody else, also where they were open before', async () => {
    const home = join(places.home, '.codemachine')
    await mkdir(home)
    await chmod(home, 0o755)
    const records = await open()
    await chmod(records.folder, 0o777)
    await open()
    for (const path of [home, dirname(records.folder), records.folder, records.queue, records.control, records.git])
      expect(await modeOf(path)).toBe('700')
  })

  test('a directory that is shared for other things too is not closed, but the records in it are', async () => {
    const shared = join(root, 'shared')
    await mkdir(shared)
    await chmod(shared, 0o755)
    await writeFile(join(shared, 'something'), '')
    const records = await open({ env: { CODEMACHINE_HOME: shared } })
    expect(await modeOf(shared)).toBe('755')
    expect(await modeOf(dirname(records.folder))).toBe('700')
  })

  test('an empty or former home of codemachine is closed', async () => {
    const home = join(root, 'cm')
    await mkdir(home)
    await chmod(home, 0o755)
    await open({ env: { CODEMACHINE_HOME: home } })
    expect(await modeOf(home)).toBe('700')
    for (const name of ['codex', 'demo']) await mkdir(join(home, name))
    await chmod(home, 0o755)
    await open({ env: { CODEMACHINE_HOME: home } })
    expect(await modeOf(home)).toBe('700')
  })
})

test('records that cannot be written are told in one sentence', async () => {
  const file = join(root, 'file')
  await writeFile(file, '')
  for (const home of [file, join(file, 'in')])
    await expect(open({ env: { CODEMACHINE_HOME: home } })).rejects.toMatchObject({
      name: 'UserError',
      message: `codemachine cannot store its records in ${home}: a file is in the way.`,
    })
  await expect(open({ directory: file })).rejects.toThrow(
    `${file} is not a directory; codemachine needs one to work in.`,
  )
  await expect(open({ directory: join(root, 'none') })).rejects.toThrow(
    `${join(root, 'none')} cannot be used as the work directory: there is no such directory.`,
  )
})

test.runIf(isLinux)(
  `records where nothing can be made are refused at once${unless(isLinux, 'it takes /proc for such a place')}`,
  async () => {
    for (const home of ['/proc/nope', '/proc/nope/deep'])
      await expect(open({ env: { CODEMACHINE_HOME: home } })).rejects.toMatchObject({
        name: 'UserError',
        message: `codemachine cannot store its records in ${home}: nothing can be created there.`,
        exitCode: 2,
      })
  },
)

describe('the number of a session', () => {
  test('is the local day and a counter, with a folder of its own', async () => {
    const records = await open()
    expect(await records.nextSessionId(evening)).toBe('20261120_1')
    expect(await records.nextSessionId(evening)).toBe('20261120_2')
    expect(await records.nextSessionId(new Date(2026, 10, 21))).toBe('20261121_1')
    expect((await stat(records.sessionFolder('20261120_2'))).isDirectory()).toBe(true)
    expect(basename(dirname(records.sessionFolder('20261120_2')))).toBe('sessions')
  })

  test('is never one that a folder of the project has, and no folder there can use them up', async () => {
    const projects = join(places.directory, '.codemachine', 'projects')
    for (const id of ['20261120_1', '20261120_2', '20261120_999999999'])
      await mkdir(join(projects, id), { recursive: true })
    await symlink('nowhere', join(projects, '20261120_3'))
    const records = await open()
    expect(await records.nextSessionId(evening)).toBe('20261120_4')
    expect(await records.nextSessionId(evening)).toBe('20261120_5')
  })

  test('goes to one session only, if several start at once', async () => {
    const records = await open()
    const ids = await Promise.all(Array.from({ length: 20 }, () => records.nextSessionId(evening)))
    expect(new Set(ids).size).toBe(20)
  })

  test('may be one that somebody has given it, once', async () => {
    const records = await open()
    expect(await records.takeSessionId('20261120_77')).toBe('20261120_77')
    await expect(records.takeSessionId('20261120_77')).rejects.toThrow('The session 20261120_77 already exists')
    expect(await records.sessions()).toEqual(['20261120_77'])
  })

  test('is counted in the list: 2 before 10, yesterday before today, and no other file', async () => {
    const records = await open()
    for (const id of ['20261121_1', '20261120_10', '20261120_2', '20261120_0', 'x', '20261120_2.bak'])
      await mkdir(records.sessionFolder(id))
    expect(await records.sessions()).toEqual(['20261120_2', '20261120_10', '20261121_1'])
    expect(await records.nextSessionId(evening)).toBe('20261120_11')
  })
})
