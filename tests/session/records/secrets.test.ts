import { mkdir, mkdtemp, readdir, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { UserError } from '../../../src/base/errors.ts'
import { openSecrets } from '../../../src/secrets/store.ts'
import { promise } from '../../support/promise.ts'

let place: string
let folder: string
const at = new Date('2026-11-20T23:00:00.000Z')
const VALUE = 'sk-live-0123456789'
const secret = { key: 'API_KEY', value: VALUE, check: null }

beforeEach(async () => {
  place = await mkdtemp(join(tmpdir(), 'secrets-'))
  folder = join(place, 'secrets')
})
afterEach(() => rm(place, { recursive: true }))

promise('B97', 'The secrets of a project lie in files for this user alone, and no error text has a value')
describe('the secrets of a project', () => {
  test('are kept as they were typed, and listed without their values', async () => {
    const secrets = openSecrets(folder)
    expect([await secrets.get('API_KEY'), await secrets.list(), await secrets.remove('API_KEY')]).toEqual([
      null,
      { secrets: [], broken: [] },
      false,
    ])
    const value = ' a"b\\c\r\nü\u2028\t'
    await secrets.set({ key: 'OTHER', value, check: 'curl -f "$URL"' }, at)
    await secrets.set(secret, at)
    expect(await openSecrets(folder).get('OTHER')).toEqual({ key: 'OTHER', value, check: 'curl -f "$URL"' })
    expect((await secrets.list()).secrets).toEqual([
      { key: 'API_KEY', check: null, at: at.toISOString() },
      { key: 'OTHER', check: 'curl -f "$URL"', at: at.toISOString() },
    ])
    await secrets.set({ ...secret, value: 'another-one' }, at)
    expect((await secrets.get('API_KEY'))?.value).toBe('another-one')
    expect([await secrets.remove('API_KEY'), await secrets.get('API_KEY')]).toEqual([true, null])
  })

  promise(
    'T30',
    'A secret is a file that only this user may read, outside of the project, under a name that changes nothing that programs do',
  )
  test('are files that only this user may read, in a folder of theirs alone, and nothing else lies about', async () => {
    await openSecrets(folder).set(secret, at)
    expect((await stat(folder)).mode & 0o777).toBe(0o700)
    expect(await readdir(folder)).toEqual(['API_KEY.json'])
    expect((await stat(join(folder, 'API_KEY.json'))).mode & 0o777).toBe(0o600)
  })

  test('have a name, a value and a check that can be one, and not more than 100 are kept', async () => {
    const secrets = openSecrets(folder)
    const refused = { PATH: VALUE, 'A/B': VALUE, EMPTY: '', LONG: 'x'.repeat(70_000) }
    for (const [key, value] of Object.entries(refused)) {
      await expect(secrets.set({ key, value, check: null }, at)).rejects.toThrow(UserError)
    }
    await expect(secrets.set({ ...secret, check: ' ' }, at)).rejects.toThrow('The check is empty')
    await expect(secrets.get('../API_KEY')).rejects.toThrow(UserError)
    for (let n = 0; n < 100; n++) await secrets.set({ ...secret, key: `KEY_${n}` }, at)
    await expect(secrets.set(secret, at)).rejects.toThrow('A project has at most 100 secrets; remove one first.')
    await secrets.set({ ...secret, key: 'KEY_7' }, at)
  })

  const broken: Record<string, (path: string) => Promise<unknown>> = {
    'no JSON': path => writeFile(path, `{"v":1,"value":"${VALUE}`),
    'another shape': path => writeFile(path, JSON.stringify({ v: 1, key: 'API_KEY', value: { text: VALUE } })),
    'another name': path => writeFile(path, JSON.stringify({ v: 1, ...secret, key: 'OTHER', at: '' })),
    'a value that none can have': path => writeFile(path, JSON.stringify({ v: 1, ...secret, value: '', at: '' })),
    'too long': path => writeFile(path, ' '.repeat(2_000_000)),
    'no file': path => mkdir(path),
    'a link in a circle': path => symlink('API_KEY.json', path),
  }
  test.each(Object.entries(broken))('say which file is broken, and nothing of what is in it: %s', async (_, breaks) => {
    await mkdir(folder)
    await breaks(join(folder, 'API_KEY.json'))
    const secrets = openSecrets(folder)
    const { secrets: listed, broken } = await secrets.list()
    const problems = broken.map(({ problem }) => problem)
    expect(listed).toEqual([])
    expect(problems).toEqual([expect.stringMatching(/^\S*API_KEY\.json [^\n]{5,90}\.$/)])
    expect(problems.join()).not.toContain('sk-live')
    await expect(secrets.get('API_KEY')).rejects.toThrow(problems[0] ?? '')
    expect(await secrets.remove('API_KEY')).toBe(true)
    expect((await secrets.list()).broken).toEqual([])
  })
})

describe('files that hold a secret', () => {
  test('outside of the work directory are remembered apart, and no savepoint is asked to leave them out', async () => {
    const secrets = openSecrets(folder)
    await secrets.hide(['a', '/repo/.git/objects/ab/cd', '/repo/../etc/passwd', '../up', '/repo//x'])
    await secrets.hide(['b'])
    expect([secrets.hidden(), secrets.hiddenOutside()]).toEqual([['a', 'b'], ['/repo/.git/objects/ab/cd']])
  })

  test('are remembered, also by those who have looked before', async () => {
    const [one, other] = [openSecrets(folder), openSecrets(folder)]
    expect(other.hidden()).toEqual([])
    await one.hide(['config/a.json', 'b'])
    await one.hide(['b', 'ü "c"'])
    expect(other.hidden()).toEqual(['config/a.json', 'b', 'ü "c"'])
    expect((await one.list()).secrets).toEqual([])
  })

  test('are at most 200: what is gone makes room, and of more the first are hidden, and a sentence says so', async () => {
    const secrets = openSecrets(folder)
    const files = Array.from({ length: 201 }, (_, n) => `file-${n}`)
    await expect(secrets.hide(files)).rejects.toThrow('More than 200 files contain a secret')
    expect(secrets.hidden()).toEqual(files.slice(0, 200))
    await secrets.hide(['another'], path => path !== 'file-7')
    expect(secrets.hidden()).toEqual([...files.slice(0, 200).filter(path => path !== 'file-7'), 'another'])
  })

  test('stay hidden however long their names are', async () => {
    const files = Array.from({ length: 200 }, (_, n) => `${'deep/'.repeat(500)}${n}`)
    await openSecrets(folder).hide(files)
    expect(openSecrets(folder).hidden()).toEqual(files)
  })

  test('lie in the work directory, whatever the list says, and a broken list hides nothing', async () => {
    const secrets = openSecrets(folder)
    await secrets.hide(['/etc/passwd', '../a', 'a/../../b', 'x\0y', ''])
    expect(secrets.hidden()).toEqual([])
    await secrets.hide(['a'])
    await writeFile(join(folder, 'files.json'), JSON.stringify({ v: 1, files: ['../x', 'a'] }))
    expect(secrets.hidden()).toEqual(['a'])
    await writeFile(join(folder, 'files.json'), '{"v":1,"files":[3')
    expect(secrets.hidden()).toEqual([])
  })
})
