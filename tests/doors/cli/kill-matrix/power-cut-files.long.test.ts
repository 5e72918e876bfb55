import { appendFileSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { openQueue } from '../../../../src/session/records/queue.ts'
import { promise } from '../../../support/promise.ts'
import { damage, damages, expectDone, expectSentence, keepCutOffs, memoryFile, sessionFile } from './cut-off.ts'

const withCutOff = keepCutOffs()

promise('R6')
describe.concurrent('after a power cut a session goes on to done although', () => {
  test.each(damages)('the lock %s, or the sentence says what to delete', async (how, change) => {
    await withCutOff(async cut => {
      damage(join(cut.scene.records(), 'lock'), change)
      if (how === 'is gone') await expectDone(cut)
      else await expectSentence(cut, 6, /lock is not a lock of codemachine; if no codemachine runs here, delete it\./)
    })
  })

  test.each(damages)('the record of the guard %s', async (how, change) => {
    await withCutOff(async cut => {
      damage(join(cut.scene.records(), 'guard.json'), change)
      const warnings = await expectDone(cut)
      expect(warnings.join()).toMatch(how === 'is gone' ? /^$/ : /guard\.json cannot be used, so check yourself/)
    })
  })

  test.each(damages)('the record of what the sandbox leaves %s', async (_, change) => {
    await withCutOff(async cut => {
      damage(join(cut.scene.records(), 'traces.json'), change)
      expect(await expectDone(cut)).toEqual([])
    })
  })

  test.each(damages)('the record of the last round %s', async (_, change) => {
    await withCutOff(async cut => {
      const path = sessionFile(cut, 'rounds/003.ndjson')
      appendFileSync(path, '{"method":"turn/started","params":{"threadId":"01a1')
      damage(path, change)
      expect(await expectDone(cut)).toEqual([])
    })
  })

  const copies = ['MAIN.md', 'tasks.json'].flatMap(name => damages.map(([how, change]) => [name, how, change] as const))

  test.each(copies)('the last good copy of %s %s', async (name, _, change) => {
    await withCutOff(async cut => {
      damage(sessionFile(cut, `last-good/${name}`), change)
      expect(await expectDone(cut)).toEqual([])
    })
  })

  test.each(copies)('%s %s, for its last good copy is put back', async (name, _, change) => {
    await withCutOff(async cut => {
      damage(memoryFile(cut, name), change)
      expect(await expectDone(cut)).toEqual([])
      expect(cut.scene.memory('MAIN.md')).toContain('build X')
    })
  })

  test.each(damages)('a prompt in the queue %s, and one behind it is whole', async (how, change) => {
    await withCutOff(async cut => {
      const folder = join(cut.scene.records(), 'queue')
      const queue = openQueue(folder)
      await queue.add('build Y', new Date(0))
      await queue.add('build Z', new Date(0))
      damage(join(folder, '000001.json'), change)
      await expectDone(cut)
      const { prompts, problems } = await queue.list()
      expect([prompts.length, problems.length]).toEqual([0, how === 'is gone' ? 0 : 1])
    })
  })

  test.each(damages)('a command of another terminal %s', async (_, change) => {
    await withCutOff(async cut => {
      const path = join(cut.scene.records(), 'control', '000000000000001-a.json')
      writeFileSync(path, JSON.stringify({ type: 'stop', now: true, at: '2026-11-20T23:00:00.000Z' }))
      damage(path, change)
      expect(await expectDone(cut)).toEqual([])
      expect(readdirSync(join(cut.scene.records(), 'control')).filter(name => !name.endsWith('.reply.json'))).toEqual(
        [],
      )
    })
  })
})

describe.concurrent('after a power cut a session goes on to done although of the private git directory', () => {
  // What is broken is made anew in the same way, whichever it is and however it broke.
  const files = { index: damages, config: damages, HEAD: damages.slice(0, 1), 'info/exclude': damages.slice(1, 2) }
  const broken = Object.entries(files).flatMap(([name, ways]) =>
    ways.map(([how, change]) => [name, how, change] as const),
  )

  test.each(broken)('%s %s', async (name, _, change) => {
    await withCutOff(async cut => {
      damage(join(cut.scene.records(), 'git', name), change)
      expect(await expectDone(cut)).toEqual([])
    })
  })

  test.each(damages)('every object %s', async (_, change) => {
    await withCutOff(async cut => {
      const objects = join(cut.scene.records(), 'git', 'objects')
      const names = readdirSync(objects, { recursive: true, encoding: 'utf8' }).filter(name =>
        /^..\/[0-9a-f]{38}$/.test(name),
      )
      expect(names.length).toBeGreaterThan(3)
      for (const name of names) {
        const path = join(objects, name)
        const bytes = change(readFileSync(path))
        rmSync(path)
        if (bytes !== null) writeFileSync(path, bytes, { mode: 0o444 })
      }
      // So there is something to compare with what was before, which may have been in an object that is lost.
      rmSync(join(cut.scene.place.directory, 'parts', '2.txt'))
      const lost = /^An earlier fingerprint of the work directory is gone: later changes cannot be listed\.$/
      const broken = /^The savepoint \d+_1\/(start|\d) is broken, and left out: its commit cannot be read\.$/
      const notKept =
        /^There is no savepoint of round \d, because git failed: fatal: (loose object \w+ .* is corrupt|\w+ is not a valid object|bad object \w+)$/
      for (const warning of await expectDone(cut)) {
        expect(
          [lost, broken, notKept].some(known => known.test(warning)),
          warning,
        ).toBe(true)
      }
    })
  })

  test('the locks are left, and the shared index is empty', async () => {
    await withCutOff(async cut => {
      const git = join(cut.scene.records(), 'git')
      for (const name of ['index.lock', 'config.lock', 'HEAD.lock']) writeFileSync(join(git, name), '')
      for (const name of readdirSync(git)) if (name.startsWith('sharedindex.')) writeFileSync(join(git, name), '')
      expect(await expectDone(cut)).toEqual([])
    })
  })
})
