import { execFileSync } from 'node:child_process'
import { mkdir, mkdtemp, realpath, rm, symlink, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, test } from 'vitest'
import { UserError } from '../../../src/base/errors.ts'
import { specificationFile, specificationGuide } from '../../../src/workspace/memory/plan-files.ts'
import { readSpecification } from '../../../src/workspace/memory/specification.ts'

let directory: string
let path: string

beforeEach(async () => {
  directory = await realpath(await mkdtemp(join(tmpdir(), 'specification-')))
  path = join(directory, specificationFile)
  await mkdir(dirname(path), { recursive: true })
})

afterEach(async () => {
  await rm(directory, { recursive: true, force: true })
})

async function refused(): Promise<string> {
  const error: unknown = await readSpecification(directory).catch((thrown: unknown) => thrown)
  if (!(error instanceof UserError)) throw new Error(`not refused: ${JSON.stringify(error)}`)
  expect(error.exitCode).toBe(2)
  expect(error.message).toContain(directory)
  return error.message.replaceAll(directory, '')
}

const WRITE = 'write a description of the thing to build into it.'
const UNTOUCHED = `/${specificationFile} says nothing yet: it is still the guide, or has headings only; ${WRITE}`

describe('a specification is refused', () => {
  it.each([
    ['empty', ' \n\n', `/${specificationFile} is empty; ${WRITE}`],
    ['the untouched guide', specificationGuide(), UNTOUCHED],
    ['the guide with other line ends and spaces', specificationGuide().replaceAll('\n', '\r\n  \r\n\t'), UNTOUCHED],
    ['the headings of the guide', specificationGuide().replace(/<!--[\s\S]*?-->/g, ''), UNTOUCHED],
    ['other headings with nothing under them', '# My game\n\n## Rules\n-\n1.\n- [ ]\n', UNTOUCHED],
    [
      'a NUL',
      'Build a game.\0',
      `/${specificationFile} is no text: byte 14 is a NUL; write it as plain text or Markdown.`,
    ],
    [
      'not UTF-8',
      Buffer.from('Ein gr\u00fcnes Spiel', 'latin1'),
      `/${specificationFile} is no text: byte 7 is not UTF-8; save it as UTF-8 text.`,
    ],
    [
      'not UTF-8 behind letters of two bytes',
      Buffer.concat([Buffer.from('\u00e9'.repeat(50)), Buffer.from([0xff]), Buffer.from('\u00e9'.repeat(60))]),
      `/${specificationFile} is no text: byte 101 is not UTF-8; save it as UTF-8 text.`,
    ],
    [
      'cut in the middle of a character',
      Buffer.from('Build a caf\u00e9').subarray(0, -1),
      `/${specificationFile} is no text: byte 12 is not UTF-8; save it as UTF-8 text.`,
    ],
  ])('that is %s', async (_, text, sentence) => {
    await writeFile(path, text)
    expect(await refused()).toBe(sentence)
  })

  it('that is missing, with its folder or without', async () => {
    const sentence = `/${specificationFile} does not exist; ${WRITE}`
    expect(await refused()).toBe(sentence)
    await rm(join(directory, '.codemachine'), { recursive: true })
    expect(await refused()).toBe(sentence)
  })

  it('that has 5 MB, with what to do instead', async () => {
    await writeFile(path, 'Build a game.')
    await truncate(path, 5_000_000)
    expect(await refused()).toBe(
      `/${specificationFile} has 5000000 bytes, but at most 524288 (512 KiB) are allowed; move details into other files, and name these files in it.`,
    )
  })

  it('that is a link, a folder or a pipe', async () => {
    await symlink('/etc/hostname', path)
    expect(await refused()).toBe(`/${specificationFile}: it is a link; write a file in its place.`)
    await rm(path)
    await mkdir(path)
    expect(await refused()).toBe(`/${specificationFile}: it is not a regular file; write a file in its place.`)
    await rm(path, { recursive: true })
    execFileSync('mkfifo', [path])
    expect(await refused()).toBe(`/${specificationFile}: it is not a regular file; write a file in its place.`)
  })

  it('whose folder leads out of the directory', async () => {
    await rm(dirname(path), { recursive: true })
    await symlink('/etc', dirname(path))
    expect(await refused()).toBe(
      '/.codemachine/inputs is a link; replace it with a folder that contains specifications.md.',
    )
  })
})

test.each([
  ['a first line', 'A terminal game.\nTwo players.', 'A terminal game.'],
  ['a heading', 'Draft 3\n\n# The  game\n\nTwo players.', 'The game'],
  ['what stands under the headings of the guide', `${specificationGuide()}\n- A terminal game\n`, 'A terminal game'],
  ['a first line that is long', 'x'.repeat(400), 'x'.repeat(100)],
  ['a remark that is never closed', '<!-- a game', '<!-- a game'],
])('the title of a specification is taken from %s', async (_, text, title) => {
  await writeFile(path, text)
  expect(await readSpecification(directory)).toMatchObject({ text, path, title, size: Buffer.byteLength(text) })
})

test('the files beside it are listed with their sizes; links and hidden files are not', async () => {
  await writeFile(path, 'A game.')
  const inputs = dirname(path)
  await mkdir(join(inputs, 'pictures'))
  await writeFile(join(inputs, 'pictures/board.png'), Buffer.alloc(300))
  await writeFile(join(inputs, 'api.md'), '# API')
  await writeFile(join(inputs, '.hidden'), '')
  await symlink('/etc', join(inputs, 'etc'))
  expect(await readSpecification(directory)).toMatchObject({
    others: [
      { name: 'api.md', size: 5 },
      { name: 'pictures/board.png', size: 300 },
    ],
    hasMore: false,
  })
  for (let number = 0; number < 60; number += 1) await writeFile(join(inputs, `${number}.txt`), '')
  const { others, hasMore } = await readSpecification(directory)
  expect([others.length, hasMore]).toEqual([50, true])
})

test('half a megabyte of remarks that are never closed is read at once', async () => {
  const text = '<!-'.padEnd(512 * 1024, '<!--')
  await writeFile(path, text)
  expect((await readSpecification(directory)).size).toBe(512 * 1024)
})
