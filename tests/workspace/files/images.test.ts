import { mkdir, mkdtemp, realpath, rm, symlink, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it, test } from 'vitest'
import { findImages, mentionsImage } from '../../../src/workspace/files/images.ts'
import { promise } from '../../support/promise.ts'

const PNG = Buffer.from('89504e470d0a1a0a0000000d', 'hex')

let home: string
let root: string

beforeEach(async () => {
  home = await realpath(await mkdtemp(join(tmpdir(), 'images-')))
  root = join(home, 'work')
  await mkdir(join(root, 'shots'), { recursive: true })
})

afterEach(async () => {
  await rm(home, { recursive: true, force: true })
})

const find = (text: string, closed: readonly string[] = []) => findImages(root, text, closed)

it.each([
  ['As in @shot.png', 'shot.png'],
  ['@shot.png, please', 'shot.png'],
  ['see (this):\n@shots/a.JPEG.', 'shots/a.JPEG'],
  ['like @"my shot.webp" here', 'my shot.webp'],
  ['@./shots/../shot.gif', 'shot.gif'],
  ['@Bild–für→dich.png!', 'Bild–für→dich.png'],
])('a picture is named as the field writes a file: %s', async (text, file) => {
  await writeFile(join(root, file), file.endsWith('webp') ? 'RIFF\n\0\0\0WEBPVP8 ' : PNG)
  expect(await find(text)).toEqual({ paths: [join(root, file)], problem: null })
})

it.each(['mail me@shot.png', '@shot.txt', '@ shot.png', 'shot.png', '@"shot.png', ''])(
  'no picture is named: %s',
  async text => {
    await writeFile(join(root, 'shot.png'), PNG)
    expect(mentionsImage(text)).toBe(false)
    expect(await find(text)).toEqual({ paths: [], problem: null })
  },
)

promise('O104')
test('a picture that is too large, missing, none, behind a link, outside or hidden is left out, in one sentence', async () => {
  await writeFile(join(home, 'theirs.png'), PNG)
  await writeFile(join(root, 'large.png'), PNG)
  await truncate(join(root, 'large.png'), 50 * 1024 * 1024)
  await symlink(join(home, 'theirs.png'), join(root, 'link.png'))
  await symlink(home, join(root, 'out'))
  await writeFile(join(root, 'text.png'), 'PNG')
  await writeFile(join(root, 'hidden.png'), PNG)
  await mkdir(join(root, 'folder.png'))
  await writeFile(join(root, 'good.png'), PNG)
  const before = process.memoryUsage().arrayBuffers
  const first = await find('@large.png @link.png @out/theirs.png @../theirs.png @good.png')
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(10_000_000)
  expect(first).toEqual({
    paths: [join(root, 'good.png')],
    problem:
      'Not sent as a picture, only named in the text: large.png (larger than 20 MiB), link.png (a link, or no readable file), out/theirs.png (not in a real folder), ../theirs.png (not in the work directory).',
  })
  const second = await find(
    `@text.png @none.png @no/none.png @hidden.png @folder.png @${'x'.repeat(900)}.png @${join(home, 'theirs.png')}`,
    [join(root, 'hidden.png')],
  )
  expect(second).toEqual({
    paths: [],
    problem:
      'Not sent as a picture, only named in the text: text.png (no PNG, JPEG, GIF or WebP), none.png (not there), no/none.png (not there), hidden.png (agents may not read it), folder.png (a link, or no readable file) and 2 more.',
  })
})

test('ten pictures are sent of a text that names more', async () => {
  const names = Array.from({ length: 12 }, (_, index) => `${index}.png`)
  await Promise.all(names.map(name => writeFile(join(root, name), PNG)))
  const { paths, problem } = await find(names.map(name => `@${name}`).join(' '))
  expect(paths).toEqual(names.slice(0, 10).map(name => join(root, name)))
  expect(problem).toContain('10.png (more than 10 are named), 11.png')
})
