import { mkdir, mkdtemp, readFile, rm, symlink, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { claudeConversations } from '../../../src/project/conversations/claude.ts'
import { promise } from '../../support/promise.ts'

const DATA = join(import.meta.dirname, '..', '..', 'data', 'conversations')
const ID = '290e3929-871e-41ee-aace-e69702d1825d'
const REQUEST = 'Give the cart a discount of 10 % above 100 €, with tests.'
const ANSWER = 'The cart is read. Next comes the discount; the tests are missing yet.'
const SHOP = '/home/me/shop'

const root = await mkdtemp(join(tmpdir(), 'conversations-'))
afterAll(() => rm(root, { recursive: true }))

let homes = 0

/** A home of Claude Code with this text as the file of a session of `SHOP`, or of the directory in that folder. */
async function homeWith(text: string | Buffer, folder = '-home-me-shop') {
  const home = join(root, String(homes++))
  const file = join(home, 'projects', folder, `${ID}.jsonl`)
  await mkdir(join(home, 'projects', folder), { recursive: true })
  await writeFile(file, text)
  return { home, file, source: claudeConversations([SHOP], home) }
}

async function recorded(name: string, directory = SHOP): Promise<string> {
  return (await readFile(join(DATA, name), 'utf8')).replaceAll('DIRECTORY', directory)
}

promise(
  'O150',
  'The conversations of a directory with Claude Code and opencode are read as these write them, and never changed',
)
test('a session that Claude Code wrote is listed, and read with its messages and its plan', async () => {
  const { source, file } = await homeWith(await recorded('claude-todos.jsonl'))
  const before = await readFile(file)
  expect(await source.list()).toMatchObject([{ maker: 'claude', id: ID, directory: SHOP, title: REQUEST }])
  expect(await source.read(ID)).toMatchObject({
    said: [
      { by: 'person', text: REQUEST },
      { by: 'agent', text: ANSWER },
    ],
    plan: [
      { text: 'Read the cart', state: 'completed' },
      { text: 'Add the discount', state: 'in_progress' },
      { text: 'Write the tests', state: 'pending' },
    ],
  })
  expect(await readFile(file)).toEqual(before)
})

test('the plan that newer versions keep as tasks is read, too', async () => {
  const { source } = await homeWith(await recorded('claude-tasks.jsonl'))
  expect((await source.read(ID))?.plan).toEqual([
    { text: 'Read the cart', state: 'completed' },
    { text: 'Add the discount', state: 'in_progress' },
  ])
})

test('a directory with a long name is found by the beginning of its folder and the directory in the file', async () => {
  const long = `/home/${'a'.repeat(120)}/${'b'.repeat(120)}_x`
  const folder = `${long.replace(/[^a-z0-9]/g, '-').slice(0, 200)}-wwnvq0`
  const { home } = await homeWith(await recorded('claude-todos.jsonl', long), folder)
  expect(await claudeConversations([long], home).list()).toMatchObject([{ directory: long }])
  expect(await claudeConversations([`${long}y`], home).list()).toEqual([])
})

test('another directory whose folder has the same name is not listed, and named when its id is asked for', async () => {
  const { source } = await homeWith(await recorded('claude-todos.jsonl', '/home/me-shop'))
  expect(await source.list()).toEqual([])
  expect(await source.read(ID)).toMatchObject({ directory: '/home/me-shop' })
})

test('what Claude Code wrote in the name of the person is no message of theirs', async () => {
  const line = (content: unknown, more = {}) =>
    JSON.stringify({ type: 'user', cwd: SHOP, message: { role: 'user', content }, ...more })
  const { source } = await homeWith(
    [
      line('mine'),
      line('<command-name>/model</command-name>'),
      line('caveat', { isMeta: true }),
      line('a summary', { isCompactSummary: true }),
      line('of a sub-agent', { isSidechain: true }),
      line([{ type: 'tool_result', content: 'output' }]),
    ].join('\n'),
  )
  expect((await source.read(ID))?.said).toEqual([{ by: 'person', text: 'mine' }])
})

promise(
  'O151',
  'A conversation whose file is cut, binary, huge, empty or a link out of its home is passed over or refused, never followed',
)
test.each([
  ['cut in the middle of a line', async () => `${await recorded('claude-todos.jsonl')}{"type":"user","mess`, 2],
  ['among wrong lines', async () => `[1]\n"x"\n{"type":7}\n\u0000\n${await recorded('claude-todos.jsonl')}`, 2],
  ['binary', async () => Buffer.from([0xff, 0xfe, 0, 10, 123, 0xff, 10]), 0],
  ['empty', async () => '', 0],
])('a file that is %s gives what can be read of it', async (_, text, messages) => {
  const { source } = await homeWith(await text())
  expect((await source.read(ID))?.said).toHaveLength(messages)
})

test('of a file of 200 MB both ends are read', async () => {
  const lines = (await recorded('claude-todos.jsonl')).trimEnd().split('\n')
  const { source, file } = await homeWith(`${lines.slice(0, 4).join('\n')}\n`)
  await truncate(file, 200 * 1024 * 1024)
  await writeFile(file, `\n${lines.slice(4).join('\n')}\n`, { flag: 'a' })
  expect(await source.read(ID)).toMatchObject({ directory: SHOP, said: [{ by: 'agent', text: ANSWER }] })
})

test('a file that is a link, or in a folder that leads elsewhere, is not read', async () => {
  const text = await recorded('claude-todos.jsonl')
  const { home, file, source } = await homeWith(text)
  const outside = join(root, 'outside')
  await mkdir(outside)
  await writeFile(join(outside, `${ID}.jsonl`), text)
  await rm(file)
  await symlink(join(outside, `${ID}.jsonl`), file)
  expect(await source.list()).toEqual([])
  await expect(source.read(ID)).rejects.toThrow('a link leads out of')
  await rm(join(outside, `${ID}.jsonl`))
  await expect(source.read(ID)).rejects.toThrow('is not read: it is a link')
  await writeFile(join(outside, `${ID}.jsonl`), text)
  await rm(join(home, 'projects', '-home-me-shop'), { recursive: true })
  await symlink(outside, join(home, 'projects', '-home-me-shop'))
  await expect(source.read(ID)).rejects.toThrow('a link leads out of')
})

test('where Claude Code was never used there is nothing', async () => {
  const source = claudeConversations([SHOP], join(root, 'nowhere'))
  expect(await source.list()).toEqual([])
  expect(await source.read(ID)).toBeNull()
})
