import { execFileSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdir, mkdtemp, readdir, readFile, realpath, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import {
  formatReply,
  formatRequest,
  InboxFolder,
  inboxFiles,
  inboxFolder,
  parseInboxFileName,
  parseReply,
  parseRequest,
  StreamReader,
  StreamWriter,
  sweepInbox,
} from '../../src/agents/inbox.ts'

const ID = `000001795310000000-${randomUUID()}`.slice(3)
const request = { agent: 'frontend-dev', task: 'T1: a page', paths: ['web'], thread: 'thread-1', stream: true }

describe('what is asked', () => {
  test('is read as it was written', () => {
    const written = formatRequest(request)
    expect('text' in written && parseRequest(written.text)).toEqual({ request })
  })

  test('may say less, and more than is known', () => {
    expect(parseRequest('{"v":1,"agent":"qa-engineer","task":"Test it","priority":"high"}')).toEqual({
      request: { agent: 'qa-engineer', task: 'Test it', paths: null, thread: null, stream: false },
    })
  })

  test.each([
    ['', 'the file is no JSON'],
    ['{"v":1,', 'the file is no JSON'],
    ['[]', 'agent'],
    ['null', 'the file is no object'],
    ['{"v":2,"agent":"a","task":"b"}', 'v is not 1, so another version of codemachine wrote it'],
    ['{"v":1,"agent":["a"],"task":"b"}', 'agent is no text'],
    ['{"v":1,"agent":"a","task":"b","paths":"web"}', 'paths is no list of paths'],
    ['{"v":1,"agent":"a","task":"b","paths":[1]}', 'paths.0 is no text'],
    ['{"v":1,"agent":"a","task":" \\n"}', 'The task is empty'],
    [JSON.stringify({ v: 1, agent: 'a', task: 'é'.repeat(131_073) }), 'The task is larger than 256 KiB'],
  ])('is refused with the place of what is wrong: %.60s', (text, problem) => {
    expect(parseRequest(text)).toEqual({ problem: expect.stringContaining(problem) })
  })

  test('is not sent if the session would not read it', () => {
    expect(formatRequest({ ...request, task: 'x'.repeat(262_145) })).toEqual({
      problem: expect.stringContaining('256 KiB'),
    })
    expect(formatRequest({ ...request, task: '\u0001'.repeat(200_000) })).toEqual({
      problem: expect.stringContaining('512 KiB'),
    })
  })

  test('lies in files that nothing else in the folder is taken for', () => {
    expect(parseInboxFileName(inboxFiles.request(ID))).toEqual({ id: ID, file: 'request' })
    expect(parseInboxFileName(inboxFiles.reply(ID))).toEqual({ id: ID, file: 'reply' })
    for (const name of [`${ID}.json`, ID, 'notes.request.json', `x/${ID}.taken`, `${ID}.constructor`, `.${ID}.taken`]) {
      expect(parseInboxFileName(name), name).toBeNull()
    }
  })
})

describe('what is answered', () => {
  test('is read as it was written, but for what is too much of it', () => {
    const reply = { state: 'completed', instance: 'frontend-dev-20261122T004530123', text: 'Done.' } as const
    expect(parseReply(formatReply(reply))).toEqual(reply)
    const long = parseReply(formatReply({ ...reply, text: '\u0001'.repeat(300_000) }))
    expect(long?.text).toMatch(/\[… \d+ more characters\]$/)
  })

  test('says to other programs with which exit code the command ends', () => {
    const exitCode = (state: 'started' | 'completed' | 'refused' | 'error' | 'terminated') =>
      JSON.parse(formatReply({ state, instance: null, text: '' })).exitCode
    expect([exitCode('started'), exitCode('completed'), exitCode('refused')]).toEqual([null, 0, 4])
    expect([exitCode('error'), exitCode('terminated')]).toEqual([4, 143])
  })

  test('is nothing else', () => {
    for (const text of ['', '{}', '{"v":1,"state":"done","instance":null,"text":""}'])
      expect(parseReply(text)).toBeNull()
  })
})

describe('in a folder where agents can write', () => {
  let root: string
  let folder: InboxFolder
  beforeEach(async () => {
    root = await realpath(await mkdtemp(join(tmpdir(), 'codemachine-inbox-')))
    folder = new InboxFolder(join(root, 'work'))
    await mkdir(join(root, 'work'))
    await mkdir(join(root, 'outside'))
    await writeFile(join(root, 'outside', inboxFiles.taken(ID)), 'of the person')
  })
  afterEach(() => rm(root, { recursive: true }))

  test('a link in place of the inbox is told, and nothing behind it is read, written or removed', async () => {
    await mkdir(join(root, 'work', '.codemachine'))
    await symlink(join(root, 'outside'), join(root, 'work', inboxFolder))
    expect(await folder.make()).toMatch(/inbox is a link, so no agent can be asked through it; move it away\.$/)
    expect(await folder.names()).toEqual([])
    expect(await folder.remove(inboxFiles.taken(ID))).toBe(false)
    expect(await folder.rename(inboxFiles.taken(ID), inboxFiles.reply(ID))).toBe(false)
    await expect(folder.write(inboxFiles.reply(ID), '{}')).rejects.toThrow('is not a real folder')
    await using stream = new StreamWriter(folder, ID)
    stream.push('secret')
    await stream[Symbol.asyncDispose]()
    expect(await readdir(join(root, 'outside'))).toEqual([inboxFiles.taken(ID)])
  })

  test('links, pipes, folders and what is too long are no text, and are removed without what is behind or in them', async () => {
    expect(await folder.make()).toBeNull()
    const names = ['link', 'pipe', 'empty', 'full', 'long']
    await symlink(join(root, 'outside', inboxFiles.taken(ID)), join(folder.path, 'link'))
    execFileSync('mkfifo', [join(folder.path, 'pipe')])
    await mkdir(join(folder.path, 'empty'))
    await mkdir(join(folder.path, 'full', 'of', 'folders'), { recursive: true })
    await writeFile(join(folder.path, 'long'), Buffer.alloc(10 * 1024 * 1024, 'x'))
    for (const name of names) expect(await folder.read(name, 512 * 1024), name).toHaveProperty('problem')
    for (const name of names) expect(await folder.remove(name), name).toBe(name !== 'full')
    expect(await readFile(join(root, 'outside', inboxFiles.taken(ID)), 'utf8')).toBe('of the person')
  })

  test('what came just now is not swept, whatever it is; after its time it is, but for folders that are not empty', async () => {
    expect(await folder.make()).toBeNull()
    const id = (digit: number) => inboxFiles.request(`00179531000000${digit}-${randomUUID()}`)
    const [text, link, pipe, empty, full] = [id(1), id(2), id(3), id(4), id(5)]
    await writeFile(join(folder.path, text), '{}')
    await symlink(join(root, 'outside'), join(folder.path, link))
    execFileSync('mkfifo', [join(folder.path, pipe)])
    await mkdir(join(folder.path, empty))
    await mkdir(join(folder.path, full, 'with', 'more'), { recursive: true })
    const sweep = (now: number) => sweepInbox(folder, { now, mostAge: () => 60_000, stays: () => false })
    await sweep(Date.now())
    expect(await folder.names()).toEqual([text, link, pipe, empty, full])
    await sweep(Date.now() + 61_000)
    expect(await folder.names()).toEqual([full])
  })

  test('what is streamed is heard as it comes, in whole characters, and up to a mebibyte', async () => {
    await folder.make()
    await symlink(join(root, 'outside', inboxFiles.taken(ID)), join(folder.path, inboxFiles.stream(ID)))
    const writer = new StreamWriter(folder, ID)
    await using reader = new StreamReader(folder, ID)
    expect(await reader.next()).toBe('')
    writer.push('One')
    writer.push(', zwei: äöü')
    for (let n = 0; n < 20; n++) writer.push('é'.repeat(50_000))
    await writer[Symbol.asyncDispose]()
    const text = await reader.next()
    expect(text.startsWith('One, zwei: äöüéé')).toBe(true)
    expect(Buffer.byteLength(text)).toBeGreaterThan(1024 * 1024 - 4)
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(1024 * 1024)
    expect(reader.isCut).toBe(true)
    expect(await readFile(join(root, 'outside', inboxFiles.taken(ID)), 'utf8')).toBe('of the person')
  })

  test('what is streamed in many pieces is no longer than a mebibyte on the disk', async () => {
    await folder.make()
    const file = join(folder.path, inboxFiles.stream(ID))
    const writer = new StreamWriter(folder, ID)
    for (let n = 1; n <= 5; n++) {
      writer.push('x'.repeat(300_000))
      const written = Math.min(n * 300_000, 1024 * 1024)
      await expect.poll(async () => (await stat(file).catch(() => null))?.size, { interval: 5 }).toBe(written)
    }
    await writer[Symbol.asyncDispose]()
    expect((await stat(file)).size).toBe(1024 * 1024)
  })

  test('a pipe in place of the stream is nothing to wait for', async () => {
    await folder.make()
    execFileSync('mkfifo', [join(folder.path, inboxFiles.stream(ID))])
    await using reader = new StreamReader(folder, ID)
    expect(await reader.next()).toBe('')
    expect(reader.hasBegun).toBe(false)
  })
})
