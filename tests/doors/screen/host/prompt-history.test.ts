import { execFile, execFileSync } from 'node:child_process'
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openPromptHistory } from '../../../../src/doors/screen/host/drafts-and-history.ts'
import { nothingSecret, redactorOf } from '../../../../src/secrets/redactor.ts'
import { VirtualClock } from '../../../support/virtual-clock.ts'

let root: string
let path: string
let problems: string[]

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'history-'))
  path = join(root, 'history.jsonl')
  problems = []
})

afterEach(async () => {
  await rm(root, { recursive: true, force: true })
})

function open(options: { redactor?: typeof nothingSecret; start?: number } = {}) {
  return openPromptHistory({
    root,
    clock: new VirtualClock(options.start ?? Date.parse('2026-11-21T10:00:00Z')),
    redactor: options.redactor ?? nothingSecret,
    onProblem: problem => void problems.push(problem),
  })
}

function line(n: number, year = 2020): string {
  const at = new Date(Date.UTC(year, 0, 1) + n * 1000).toISOString()
  return `${JSON.stringify({ id: `${year}-${n}`, at, text: `prompt ${n} of ${year}`, directory: '/w' })}\n`
}

function lines(count: number, year?: number): string {
  return Array.from({ length: count }, (_, n) => line(n, year)).join('')
}

test('what was typed comes back, the oldest first, the same text twice in a row only once', async () => {
  const history = open()
  expect(await history.list()).toEqual([])
  for (const text of ['one', 'two\nlines ü', 'two\nlines ü', 'one']) await history.add(text, '/work')
  expect(await open().list()).toEqual(['one', 'two\nlines ü', 'one'])
  expect((await stat(path)).mode & 0o777).toBe(0o600)
  const [entry] = (await readFile(path, 'utf8')).split('\n').filter(Boolean)
  expect(JSON.parse(entry ?? '')).toMatchObject({ text: 'one', directory: '/work', at: '2026-11-21T10:00:00.000Z' })
})

test('a file that others could read is closed to them', async () => {
  await writeFile(path, line(1))
  await chmod(path, 0o644)
  await open().add('new', '/work')
  expect((await stat(path)).mode & 0o777).toBe(0o600)
})

test('secrets are not kept', async () => {
  const history = open({ redactor: redactorOf([{ name: 'API_KEY', value: 'sesame-open-123' }]) })
  await history.add('use sesame-open-123 there', '/home/sesame-open-123')
  expect(await history.list()).toEqual(['use [secret API_KEY] there'])
  expect(await readFile(path, 'utf8')).not.toContain('sesame')
})

test('a prompt of more than 64 KiB is left out, an empty one too', async () => {
  const history = open()
  for (const text of ['x'.repeat(65_536), 'ü'.repeat(32_769), ' \n']) await history.add(text, '/work')
  expect((await history.list()).map(text => text.length)).toEqual([65_536])
})

test('torn, strange and endless lines are passed over, and swallow nothing that comes after them', async () => {
  const strange = [
    '{"id":"x"}',
    'null',
    '[]',
    '{',
    '\0\0\0',
    'x'.repeat(1_000_000),
    '{"id":1,"text":5}',
    '{"torn": "li',
  ]
  await writeFile(path, `${line(1)}${strange.join('\n')}`)
  await open().add('after', '/work')
  expect(await open().list()).toEqual(['prompt 1 of 2020', 'after'])
  expect(problems).toEqual([])
})

test('the last 500 are kept', async () => {
  await writeFile(path, lines(599))
  await open().add('the 600th', '/work')
  expect((await readFile(path, 'utf8')).split('\n').filter(Boolean)).toHaveLength(500)
  const texts = await open().list()
  expect(texts).toHaveLength(500)
  expect(texts[0]).toBe('prompt 100 of 2020')
  expect(texts.at(-1)).toBe('the 600th')
  expect(await readdir(root)).toEqual(['history.jsonl'])
})

test('what a crash has left while the file was made shorter is not lost', async () => {
  await writeFile(join(root, 'history.jsonl.1b671a64-40d5.old'), lines(3))
  const history = open()
  await history.add('new', '/work')
  expect(await history.list()).toEqual(['prompt 0 of 2020', 'prompt 1 of 2020', 'prompt 2 of 2020', 'new'])
  await writeFile(path, lines(600, 2021), { flag: 'a' })
  await history.add('newer', '/work')
  expect(await readdir(root)).toEqual(['history.jsonl'])
})

test('processes that append and shorten at once lose nothing', { timeout: 60_000 }, async () => {
  await writeFile(path, lines(599))
  const module = join(import.meta.dirname, '../../../../src/doors/screen/host/drafts-and-history.ts')
  const source = join(import.meta.dirname, '../../../../src')
  const work = `
    import { appendFileSync } from 'node:fs'
    import { open } from 'node:fs/promises'
    import { setTimeout as delay } from 'node:timers/promises'
    import { openPromptHistory } from ${JSON.stringify(module)}
    import { systemClock } from ${JSON.stringify(`${source}/base/clock.ts`)}
    import { nothingSecret } from ${JSON.stringify(`${source}/secrets/redactor.ts`)}
    const [root, name] = process.argv.slice(1)
    const options = { root, clock: systemClock, redactor: nothingSecret, onProblem: console.log }
    const history = openPromptHistory(options)
    // A slow disk: between the opening of the file and the writing of the line it is often made shorter.
    const probe = await open(root, 'r')
    const handle = Object.getPrototypeOf(probe)
    const { write } = handle
    handle.write = async function (...args) {
      await delay(Math.random() * 8)
      return write.apply(this, args)
    }
    await probe.close()
    for (let n = 0; n < 100; n++) {
      // What a full disk leaves makes the file long, so that it is made shorter all the time.
      appendFileSync(root + '/history.jsonl', '\\nrubbish'.repeat(20))
      await history.add(name + ' ' + n, '/work')
    }
  `
  const run = promisify(execFile)
  const names = ['a', 'b', 'c', 'd']
  const ended = await Promise.all(
    names.map(name => run(process.execPath, ['--no-warnings', '--input-type=module', '-e', work, root, name])),
  )
  expect(ended.map(({ stdout, stderr }) => stdout + stderr)).toEqual(['', '', '', ''])
  const texts = await open().list()
  const wanted = names.flatMap(name => Array.from({ length: 100 }, (_, n) => `${name} ${n}`))
  expect(wanted.filter(text => !texts.includes(text))).toEqual([])
  expect(texts.length).toBeLessThanOrEqual(500)
  expect(await readdir(root)).toEqual(['history.jsonl'])
})

test.each([
  ['a directory', () => mkdir(path)],
  ['a pipe', async () => void execFileSync('mkfifo', [path])],
])('%s in its place is one remark, and no crash', async (_, make) => {
  await make()
  const history = open()
  await history.add('one', '/work')
  await history.add('two', '/work')
  expect(await history.list()).toEqual([])
  expect(problems).toHaveLength(1)
  expect(problems[0]).toContain(path)
})

test('records that are gone are one remark', async () => {
  await rm(root, { recursive: true })
  const history = open()
  await history.add('one', '/work')
  expect(await history.list()).toEqual([])
  expect(problems).toHaveLength(1)
})
