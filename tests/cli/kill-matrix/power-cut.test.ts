import { appendFileSync, cpSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { openQueue } from '../../../src/records/queue.ts'
import { startWithKills } from '../../support/kill-points.ts'
import { processesOf } from '../../support/processes.ts'
import { eventsOf, type Scene } from '../../support/scene.ts'
import { openWork, treeOf } from './work.ts'

const SCENES = 3
vi.setConfig({ maxConcurrency: SCENES, testTimeout: 120_000, hookTimeout: 120_000 })

/** A session that was cut off in its third round, of which nothing is left but what lies on the disk. */
interface CutOff {
  scene: Scene
  /** What lay on the disk. */
  kept: string
  tree: string
}

const scenes: Scene[] = []
const free: CutOff[] = []
const waiting: ((scene: CutOff) => void)[] = []

beforeAll(async () => {
  free.push(...(await Promise.all(Array.from({ length: SCENES }, cutOff))))
})

afterAll(async () => {
  for (const scene of scenes) {
    rmSync(`${scene.place.root}-kept`, { recursive: true, force: true })
    await scene[Symbol.asyncDispose]()
  }
})

async function cutOff(): Promise<CutOff> {
  const scene = await openWork()
  scenes.push(scene)
  const { place } = scene
  const points = [{ victim: 'both', event: 'turn-started', when: 'after', n: 3 }] as const
  expect((await startWithKills(place, ['--no-keep-awake', 'build X'], points).ended).signal).toBe('SIGKILL')
  const kept = `${place.root}-kept`
  cpSync(place.root, kept, { recursive: true, preserveTimestamps: true })
  return { scene, kept, tree: treeOf(place) }
}

/** Each of these places has one test at a time. */
async function withCutOff(use: (cut: CutOff) => Promise<void>): Promise<void> {
  const cut = free.pop() ?? (await new Promise<CutOff>(resolve => waiting.push(resolve)))
  const { root } = cut.scene.place
  try {
    for (const name of readdirSync(root)) rmSync(join(root, name), { recursive: true, force: true })
    cpSync(cut.kept, root, { recursive: true, preserveTimestamps: true })
    await use(cut)
  } finally {
    const next = waiting.shift()
    if (next) next(cut)
    else free.push(cut)
  }
}

/** What a power cut makes of a file: not all of it is there, or there are zeros where it was to be written. */
const DAMAGES = {
  'is empty': () => Buffer.alloc(0),
  'is torn': bytes => bytes.subarray(0, bytes.length >> 1),
  'is all zeros': bytes => Buffer.alloc(bytes.length),
  'is gone': () => null,
} satisfies Record<string, (bytes: Buffer) => Buffer | null>

const damages = Object.entries(DAMAGES)

function damage(path: string, change: (bytes: Buffer) => Buffer | null): void {
  const changed = change(readFileSync(path))
  if (changed === null) rmSync(path)
  else writeFileSync(path, changed)
}

function sessionFile({ scene }: CutOff, name: string): string {
  const sessions = join(scene.records(), 'sessions')
  return join(sessions, readdirSync(sessions)[0] ?? '', name)
}

function memoryFile({ scene }: CutOff, name: string): string {
  const projects = join(scene.place.directory, '.codemachine', 'projects')
  return join(projects, readdirSync(projects)[0] ?? '', name)
}

/** Resumes, and expects that the session then is done, and as it was to be. Answers its warnings. */
async function expectDone({ scene, tree }: CutOff): Promise<string[]> {
  const { exitCode, stderr, events } = await scene.run('resume', '--json', '--no-keep-awake')
  expect([exitCode, stderr]).toEqual([0, ''])
  expect(treeOf(scene.place)).toBe(tree)
  expect(processesOf(scene.place)).toEqual([])
  return eventsOf(events, 'warning')
    .filter(({ round }) => round === null)
    .map(({ message }) => message)
    .filter(message => !message.includes('temporary directory'))
}

/** Resumes, and expects one sentence with a hint at the most. */
async function expectSentence({ scene }: CutOff, exitCode: number, sentence: RegExp): Promise<void> {
  const ended = await scene.run('resume', '--json', '--no-keep-awake')
  expect(ended).toMatchObject({ exitCode, stdout: '' })
  expect(ended.stderr).toMatch(sentence)
  expect(ended.stderr).toMatch(/^codemachine: [^\n]+\.\n( {2}[^\n]+\n)?$/)
}

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
      expect(warnings.join()).toMatch(how === 'is gone' ? /^$/ : /guard\.json cannot be used, so look for yourself/)
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
      const lost = /^An earlier fingerprint of the work directory is gone: what has changed since cannot be listed\.$/
      const broken = /^The savepoint \d+_1\/(start|\d) is broken, and left out: its commit cannot be read\.$/
      const notKept =
        /^There is no savepoint of round \d, for git failed: fatal: (loose object \w+ .* is corrupt|\w+ is not a valid object)$/
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
          /^codemachine: There is no session in \S+ that could be gone on with\.\n {2}Start one: codemachine "…"\n$/,
        )
      })
    },
  )

  test('is whole, but neither MAIN.md nor its last good copy: the sentence names the file', async () => {
    await withCutOff(async cut => {
      writeFileSync(memoryFile(cut, 'MAIN.md'), '')
      writeFileSync(sessionFile(cut, 'last-good/MAIN.md'), '')
      const { exitCode, stderr } = await cut.scene.run('resume', '--json', '--no-keep-awake')
      expect([exitCode, stderr]).toEqual([
        4,
        expect.stringMatching(
          /^codemachine: \S+MAIN\.md: .+ There is no good copy of it to put back\.\n {2}Mend it, or start a new session\.\n/,
        ),
      ])
    })
  })
})
