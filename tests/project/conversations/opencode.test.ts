import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, expect, test } from 'vitest'
import { opencodeConversations } from '../../../src/project/conversations/opencode.ts'
import { promise } from '../../support/promise.ts'

const DATA = join(import.meta.dirname, '..', '..', 'data', 'conversations', 'opencode.sql')
const ID = 'ses_dd6c99489ffe6J0RlTAKpgXS59'
const SHOP = '/home/me/shop'

const root = await mkdtemp(join(tmpdir(), 'conversations-'))
afterAll(() => rm(root, { recursive: true }))

let homes = 0

/** A home of opencode with the recorded session, changed by this SQL. */
async function homeWith(sql = '') {
  const home = join(root, String(homes++))
  await mkdir(home)
  const path = join(home, 'opencode.db')
  const database = new DatabaseSync(path)
  // As opencode does: what was written last may lie beside the file.
  database.exec('PRAGMA journal_mode = WAL')
  database.exec(`${(await readFile(DATA, 'utf8')).replaceAll('DIRECTORY', SHOP)}\n${sql}`)
  database.close()
  return { home, path, source: opencodeConversations([SHOP], home) }
}

promise('O150')
test('a session that opencode wrote is listed, and read with its messages and its plan, and the database stays as it was', async () => {
  const { source, path } = await homeWith()
  const before = await readFile(path)
  expect(await source.list()).toMatchObject([{ maker: 'opencode', id: ID, directory: SHOP, at: 1795987777285 }])
  expect(await source.read(ID)).toMatchObject({
    said: [
      { by: 'person', text: expect.stringContaining('Give the cart a discount of 10 % above 100 €, with tests.') },
      { by: 'agent', text: 'The cart is read. Next comes the discount; the tests are missing yet.' },
    ],
    plan: [
      { text: 'Read the cart', state: 'completed' },
      { text: 'Add the discount', state: 'in_progress' },
      { text: 'Write the tests', state: 'pending' },
    ],
  })
  expect(await source.read('ses_other')).toBeNull()
  expect(await readFile(path)).toEqual(before)
})

promise('O151')
test('rows that are no JSON are passed over', async () => {
  const { source } = await homeWith("UPDATE part SET data = '{' WHERE json_extract(data, '$.text') LIKE 'The cart%'")
  expect((await source.read(ID))?.said).toMatchObject([{ by: 'person' }])
})

test.each([
  ['of an unknown version', 'DROP TABLE session'],
  ['without messages', 'DROP TABLE part'],
])('a database %s is refused with its path', async (_, sql) => {
  const { source, path } = await homeWith(sql)
  await expect(source.list().then(() => source.read(ID))).rejects.toThrow(`${path} cannot be read: `)
})

test('a file that is no database, and a link to one, are refused', async () => {
  const { home, path, source } = await homeWith()
  await writeFile(path, 'no database at all, but text '.repeat(100))
  await expect(source.list()).rejects.toThrow('cannot be read')
  const other = join(root, 'linked')
  await mkdir(other)
  await symlink(join(home, 'opencode.db'), join(other, 'opencode.db'))
  await expect(opencodeConversations([SHOP], other).list()).rejects.toThrow('it is a link')
  expect(await opencodeConversations([SHOP], join(root, 'nowhere')).list()).toEqual([])
})
