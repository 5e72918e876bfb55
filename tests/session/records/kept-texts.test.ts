import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { UserError } from '../../../src/base/errors.ts'
import { openKeptTexts, refuseTexts } from '../../../src/session/records/kept-texts.ts'
import { promise } from '../../support/promise.ts'

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'codemachine-kept-'))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

test('a text that is kept is read again as it was, without a byte order mark and half characters', async () => {
  const texts = openKeptTexts(folder)
  const kept = await texts.keep([
    { name: 'plan.json', text: '{"steps":[]}\r\n' },
    { name: '1-prompt.md', text: '\uFEFFSchreib es: „grün“ 🌱 \uD83C' },
  ])
  expect(kept.map(({ name, bytes }) => [name, bytes])).toEqual([
    ['plan.json', 14],
    ['1-prompt.md', 32],
  ])
  expect(await texts.read('plan.json', kept)).toBe('{"steps":[]}\r\n')
  expect(await openKeptTexts(folder).read('1-prompt.md', kept)).toBe('Schreib es: „grün“ 🌱 \uFFFD')
  if (process.platform !== 'win32') {
    expect((await stat(join(folder, 'kept'))).mode & 0o777).toBe(0o700)
    expect((await stat(join(folder, 'kept', 'plan.json'))).mode & 0o777).toBe(0o600)
  }
})

promise('J40', 'The texts that a session begins with are the same for as long as it goes on, or it does not go on')
test('a text that is gone, changed, unreadable or was never kept is refused with the name of its file', async () => {
  const texts = openKeptTexts(folder)
  const kept = await texts.keep([{ name: 'plan.json', text: '{}' }])
  const path = join(folder, 'kept', 'plan.json')
  const refusal = async (name = 'plan.json') => {
    const error = await texts.read(name, kept).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(UserError)
    return error instanceof Error ? error.message : ''
  }
  await writeFile(path, '{ }')
  expect(await refusal()).toBe(`${path} was changed since the session began; restore it, or begin a new session.`)
  await writeFile(path, Buffer.from([0xff, 0xfe, 0xfd]))
  expect(await refusal()).toContain(`${path} is not UTF-8 text`)
  await rm(path)
  expect(await refusal()).toContain(`${path}, which the session needs, was deleted; restore it`)
  expect(await refusal('other.md')).toBe(`The session has no stored text named ${join(folder, 'kept', 'other.md')}.`)
})

const same = (text: string) => text

test('a text of more than 16 MiB is refused before anything is made of it', () => {
  expect(() => refuseTexts([{ name: 'a', text: 'x'.repeat(16 * 1024 * 1024) }], same)).not.toThrow()
  expect(() => refuseTexts([{ name: 'big.md', text: 'ü'.repeat(8 * 1024 * 1024 + 1) }], same)).toThrow(
    new UserError('CM0107', 'big.md has 17 MiB, but at most 16 MiB are allowed; use a shorter text.'),
  )
})

test.each(['', '../a', 'a/b', '.hidden', 'grün', 'x'.repeat(101), 'a\n'])('no text has the name %j', name => {
  expect(() => refuseTexts([{ name, text: '' }], same)).toThrow('A text cannot be stored')
})

test('no two texts have names that are one on some system', () => {
  expect(() =>
    refuseTexts(
      [
        { name: 'A', text: '' },
        { name: 'a', text: '' },
      ],
      same,
    ),
  ).toThrow('A text cannot be stored')
})
