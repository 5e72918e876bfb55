import { appendFileSync, statSync, writeFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { promise } from '../../../support/promise.ts'
import { damage, expectDone, expectSentence, keepCutOffs, memoryFile, resume, sessionFile } from './cut-off.ts'

// What else lies on the disk: power-cut-files.long.test.ts
const withCutOff = keepCutOffs()

promise('R6', 'Whatever a power cut leaves on the disk, a session goes on, or one sentence says what to do')
describe.concurrent('after a power cut the journal', () => {
  test.each([1, 0.9, 0.6, 0.3])('is cut to %d of its length, and the session goes on to done', async part => {
    await withCutOff(async cut => {
      damage(sessionFile(cut, 'journal.ndjson'), bytes =>
        bytes.subarray(0, Math.floor(bytes.length * part) - (part === 1 ? 1 : 0)),
      )
      await expectDone(cut)
    })
  })

  test('ends in zeros, and the session goes on to done', async () => {
    await withCutOff(async cut => {
      const path = sessionFile(cut, 'journal.ndjson')
      damage(path, bytes => bytes.subarray(0, bytes.length - 100))
      appendFileSync(path, Buffer.alloc(4096))
      await expectDone(cut)
    })
  })

  test('has zeros in its middle, and the session goes on to done', async () => {
    await withCutOff(async cut => {
      damage(sessionFile(cut, 'journal.ndjson'), bytes => bytes.fill(0, bytes.length >> 1, (bytes.length >> 1) + 512))
      await expectDone(cut)
    })
  })

  test.each([0, 10, 40, 200])(
    'is cut to %d bytes, before it says what the session is about: there is none to go on with',
    async length => {
      await withCutOff(async cut => {
        damage(sessionFile(cut, 'journal.ndjson'), bytes => bytes.subarray(0, length))
        expect(statSync(sessionFile(cut, 'journal.ndjson')).size).toBe(length)
        await expectSentence(
          cut,
          2,
          /^codemachine: No session in \S+ can be resumed\. \(CM0605\)\n {2}Start one: codemachine "…"\n$/,
        )
      })
    },
  )

  test('is whole, but neither MAIN.md nor its last good copy: the sentence names the file', async () => {
    await withCutOff(async cut => {
      writeFileSync(memoryFile(cut, 'MAIN.md'), '')
      writeFileSync(sessionFile(cut, 'last-good/MAIN.md'), '')
      const { exitCode, stderr } = await resume(cut)
      expect([exitCode, stderr]).toEqual([
        4,
        expect.stringMatching(
          /^codemachine: \S+MAIN\.md: .+ There is no good copy to restore\. \(CM0619\)\n {2}Correct it, or start a new session\.\n/,
        ),
      ])
    })
  })
})
