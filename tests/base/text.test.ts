import { describe, expect, test } from 'vitest'
import { wholeCharacters } from '../../src/base/text.ts'
import { promise } from '../support/promise.ts'

describe('characters that were cut between their bytes', () => {
  const text = 'sk-ü-€-😀-пароль-end'
  const bytes = Buffer.from(text)
  const cut = (width: number, gap: string) => {
    const pieces: Buffer[] = []
    for (let at = 0; at < bytes.length; at += width) pieces.push(bytes.subarray(at, at + width), Buffer.from(gap))
    return Buffer.concat(pieces)
  }
  promise('T56')
  test.each([1, 2, 3, 4, 5, 7])('are whole again, and all that stood between them is there, every %i bytes', width => {
    for (const gap of ['\n', '\r\n', ' ', '\n  ', '\n+', '\t']) {
      const mended = wholeCharacters(cut(width, gap))
      expect(mended.toString('utf8')).not.toContain('\ufffd')
      expect(mended.length).toBe(cut(width, gap).length)
      // A sign of a diff is one only behind a line end: `-` is in the text, too.
      if (gap !== '\n+') expect(mended.toString('utf8').replace(/\s/g, '')).toBe(text)
    }
  })

  test('are left as they are where nothing cuts them, or where they are none', () => {
    for (const some of [
      bytes,
      Buffer.from([0xc3, 0x0a, 0x61]),
      Buffer.from([0xff, 0xfe, 0xc3]),
      Buffer.from([0xe2, 0x82]),
      Buffer.alloc(0),
    ])
      expect(wholeCharacters(some)).toBe(some)
    const far = Buffer.concat([Buffer.from([0xc3]), Buffer.alloc(500, 0x20), Buffer.from([0xbc])])
    expect(wholeCharacters(far)).toBe(far)
  })
})
