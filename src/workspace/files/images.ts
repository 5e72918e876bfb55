import { dirname, join, resolve } from 'node:path'
import { systemErrorCode } from '../../base/errors.ts'
import { clipEnd } from '../../base/text.ts'
import { liesIn, pathInside } from '../../platform/files.ts'
import { findObstacle, readBeginning } from './inside-directory.ts'

/** Most pictures of a text, and most MiB of one. */
const MOST_IMAGES = 10
const MOST_MIB = 20

/** Matches a file as the input field writes it: `@shot.png`, `@"my shot.png"`. */
const MENTION = /(?:^|\s)@(?:"([^"\n]{1,1000})"|([^\s"]{1,1000}))/g
/** Matches punctuation after a picture's name. */
const AFTER_NAME = /[^\p{L}\p{N}]{1,20}$/u
const IMAGE_NAME = /\.(?:png|jpe?g|gif|webp)$/i

/** First bytes of a PNG, JPEG, GIF or WebP file, as Latin-1; in WebP the size is between them. */
const BEGINNINGS = ['\x89PNG\r\n\x1a\n', '\xff\xd8\xff', 'GIF87a', 'GIF89a']
const RIFF = /^RIFF.{4}WEBP/s
const HEAD_BYTES = 12

/** Absolute paths of the pictures that a text names; `problem`: a sentence about the omitted ones, null: none. */
interface NamedImages {
  paths: readonly string[]
  problem: string | null
}

/** True if a text may name a picture. Fast without one. */
export function mentionsImage(text: string): boolean {
  return text.includes('@') && imagesNamedIn(text).length > 0
}

/**
 * Finds the pictures that a text names (`@shot.png`) in the work directory: at most 10 regular files of 20 MiB each, not
 * behind a link, with a picture's first bytes. Reads only these bytes.
 * @param root the work directory, a real path
 * @param closed absolute paths that agents may not read: no picture in these is found
 */
export async function findImages(root: string, text: string, closed: readonly string[]): Promise<NamedImages> {
  const paths: string[] = []
  const left: string[] = []
  for (const name of imagesNamedIn(text)) {
    const problem =
      paths.length < MOST_IMAGES ? await problemOf(root, name, closed) : `more than ${MOST_IMAGES} are named`
    if (problem === null) paths.push(resolve(root, name))
    else left.push(`${clipEnd(name, 100)} (${problem})`)
  }
  return { paths: [...new Set(paths)], problem: left.length === 0 ? null : wordsFor(left) }
}

function imagesNamedIn(text: string): string[] {
  const names = Array.from(text.matchAll(MENTION), ([, quoted, plain = '']) => quoted ?? plain.replace(AFTER_NAME, ''))
  return [...new Set(names.filter(name => IMAGE_NAME.test(name) && !name.includes('\0')))]
}

/** Returns why a file is not sent as a picture; null: it is. */
async function problemOf(root: string, name: string, closed: readonly string[]): Promise<string | null> {
  const path = pathInside(root, name)
  if (path === null) return 'not in the work directory'
  if (liesIn(join(root, path), closed)) return 'agents may not read it'
  try {
    const obstacle = await findObstacle(root, dirname(path))
    if (obstacle !== null) return obstacle.kind === 'missing' ? 'not there' : 'not in a real folder'
    const read = await readBeginning(join(root, path), HEAD_BYTES, MOST_MIB * 1024 * 1024)
    if (read.kind === 'gone') return 'not there'
    if (read.kind === 'too-large') return `larger than ${MOST_MIB} MiB`
    if (read.kind === 'broken') return 'a link, or no readable file'
    const head = read.bytes.toString('latin1')
    const isImage = RIFF.test(head) || BEGINNINGS.some(beginning => head.startsWith(beginning))
    return isImage ? null : 'no PNG, JPEG, GIF or WebP'
  } catch (error) {
    if (systemErrorCode(error) === null) throw error
    return 'it cannot be read'
  }
}

/** Most files that a sentence names. */
const MOST_NAMED = 5

function wordsFor(left: readonly string[]): string {
  const more = left.length > MOST_NAMED ? ` and ${left.length - MOST_NAMED} more` : ''
  return `Not sent as a picture, only named in the text: ${left.slice(0, MOST_NAMED).join(', ')}${more}.`
}
