import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { link, readdir, readFile, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import type { SessionEvent } from '../../../src/core/events/events.ts'
import type { SessionOutcome } from '../../../src/core/events/outcome.ts'
import { message, reply } from '../../../src/demo/model/reply.ts'
import { findUnfinished } from '../../../src/project/resume.ts'
import { takeRunLock } from '../../../src/session/records/run-lock.ts'
import { codemachine } from '../../support/codemachine.ts'
import { startInEmulator } from '../../support/emulator.ts'
import { makePlace, type TestPlace } from '../../support/place.ts'
import { promise } from '../../support/promise.ts'
import { openRealScene, type RealScene } from '../../support/real-scene.ts'
import { claimDone, round } from '../../support/rounds.ts'
import { eventsOf, openScene } from '../../support/scene.ts'
import { hold } from '../../support/scripted-model.ts'
import { describe, test } from '../../support/side-by-side.ts'
import { recorded, sampleEvents } from '../screen/samples.ts'
import { journalSession, recordsOf } from './journaled.ts'
import { makePlace as makeContext } from './place.ts'

const created = sampleEvents['session-created']
const cutOff = [created, sampleEvents['round-ended'], { ...sampleEvents['round-started'], round: 2 }]
const endedAs = (outcome: SessionOutcome): SessionEvent[] => [...cutOff, { ...sampleEvents['session-ended'], outcome }]
const interrupted = endedAs({ kind: 'interrupted', by: 'SIGINT' })

/** Told of journals that cannot be read; here all can. */
const say = (problem: string) => expect(problem).toBeNull()

/** The whole of a session's journal. */
async function journalOf(place: TestPlace, id: string): Promise<string> {
  return await readFile((await recordsOf(place)).journal(id), 'utf8')
}

describe('the latest session is named as what became of it', () => {
  const MINUTE = 60_000
  test.each<[string, readonly SessionEvent[], number, string]>([
    ['one that was cut off', cutOff, 125 * MINUTE, 'was cut off 2 h ago'],
    ['one that was interrupted', interrupted, 59 * MINUTE, 'was interrupted 59 min ago'],
    ['one that was stopped', endedAs({ kind: 'interrupted', by: 'stop' }), 50 * 60 * MINUTE, 'was stopped 2 d ago'],
    ['one that was skipped', endedAs({ kind: 'interrupted', by: 'skip' }), MINUTE, 'was skipped 1 min ago'],
    ['one of this moment', cutOff, 900, 'was cut off just now'],
    ['one of a clock that was wrong', cutOff, -5 * MINUTE, 'was cut off just now'],
  ])('%s', async (_what, events, ms, said) => {
    await using place = await makeContext()
    await place.journal('20261120_1', events)
    const last = Date.parse(recorded(events).at(-1)?.at ?? '')
    const context = { ...place.context, clock: { ...place.context.clock, now: () => last + ms } }
    expect(await findUnfinished(context, place.records, say)).toEqual({
      id: '20261120_1',
      queued: null,
      what: `20261120_1 ${said}`,
      about: '"build X" (1 round)',
    })
  })

  test.each<[string, SessionOutcome]>([
    ['done', { kind: 'done', verified: false }],
    ['at its limit', { kind: 'limit', limit: 'rounds' }],
    ['stalled', { kind: 'stalled', rounds: 3, why: 'nothing-changed' }],
    ['in need of a person', { kind: 'needs-person', reason: 'x', hint: null }],
  ])('one that is %s has come to its end', async (_what, outcome) => {
    await using place = await makeContext()
    await place.journal('20261120_1', endedAs(outcome))
    expect(await findUnfinished(place.context, place.records, say)).toBeNull()
  })

  test('an older one is passed over, and so is the one at work', async () => {
    await using place = await makeContext()
    await place.journal('20261120_1', cutOff)
    {
      await using _lock = await takeRunLock(place.records.lock, { ...place.context, now: new Date(0) })
      expect(await findUnfinished(place.context, place.records, say)).toBeNull()
    }
    expect(await findUnfinished(place.context, place.records, say)).toMatchObject({ id: '20261120_1' })
    await place.journal('20261120_2', endedAs({ kind: 'done', verified: false }))
    expect(await findUnfinished(place.context, place.records, say)).toBeNull()
  })
})

describe('where nobody watches', () => {
  test('a session that was cut off is named, and how to go on with it, when nothing waits', async () => {
    await using place = await makePlace('')
    await journalSession(place, '20261120_1', cutOff)
    const before = await journalOf(place, '20261120_1')
    const { exitCode, stdout, stderr } = await codemachine(place, ['-C', '.'])
    expect([exitCode, stdout]).toEqual([2, ''])
    expect(stderr).toMatch(
      /^codemachine: 20261120_1 was cut off .+: "build X" \(1 round\); the queue is empty\. \(CM0104\)\n {2}To resume it: codemachine resume 20261120_1 -C \.\n$/,
    )
    expect(await journalOf(place, '20261120_1')).toBe(before)
  })

  test('a prompt that has become the session, and was not yet taken out of the queue, does not wait', async () => {
    await using place = await makePlace('')
    await codemachine(place, ['queue', 'add', 'build X'])
    await journalSession(place, '20261120_1', [{ ...created, queued: '000001' }])
    const { exitCode, stderr } = await codemachine(place, [])
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining('; the queue is empty. (CM0104)\n')])
  })

  test('what waits is worked on, after a word on the session that is not', async () => {
    await using scene = await openScene([round(claimDone)])
    await journalSession(scene.place, '20261120_1', interrupted)
    const before = await journalOf(scene.place, '20261120_1')
    await scene.run('queue', 'add', 'goal two')
    const { exitCode, events, stderr } = await scene.run('--json')
    expect(exitCode).toBe(0)
    expect(stderr).toMatch(
      /^20261120_1 was interrupted .+, and is not resumed now. To resume it: codemachine resume 20261120_1\n$/,
    )
    expect(eventsOf(events, 'session-created')).toMatchObject([{ goal: 'goal two' }])
    expect(await journalOf(scene.place, '20261120_1')).toBe(before)
  })
})

promise('R61')
test('of a set of files that a killed run has written half, nothing is left when the next goal begins, and it is said', async () => {
  await using scene = await openScene([round(claimDone)])
  const records = await recordsOf(scene.place)
  const beside = (path: string) => createHash('sha256').update(`20261120_1 3 ${path}`).digest('hex').slice(0, 24)
  const inside = (path: string) => join(scene.place.directory, path)
  const files = ['notes.md', 'made.md', 'left.md'].map(path => ({
    path,
    sha256: createHash('sha256').update('ours').digest('hex'),
  }))
  await writeFile(records.writing, JSON.stringify({ key: '20261120_1 3', files, folders: [] }))
  await writeFile(inside('notes.md'), 'ours')
  await writeFile(inside(`.${beside('notes.md')}.old.tmp`), 'theirs')
  await writeFile(inside('made.md'), 'ours')
  await link(inside('made.md'), inside(`.${beside('made.md')}.new.tmp`))
  await writeFile(inside(`.${beside('left.md')}.new.tmp`), 'ours')
  await writeFile(records.rewinding, JSON.stringify({ to: '20261120_1.2', undo: 'R1' }))
  const { exitCode, events } = await scene.run('--json', 'build X')
  expect(exitCode).toBe(0)
  const said = eventsOf(events, 'warning').map(({ message }) => message)
  expect(said).toContain(
    'An earlier run was cut off while it wrote 3 files (notes.md, …). The earlier files are restored.',
  )
  expect(said).toContainEqual(
    expect.stringMatching(/^A rewind to 20261120_1\.2 was cut off.*undo it: codemachine rewind R1$/),
  )
  expect(existsSync(records.rewinding)).toBe(false)
  expect(await readFile(inside('notes.md'), 'utf8')).toBe('theirs')
  const names = await readdir(scene.place.directory)
  expect(names.filter(name => name.endsWith('.tmp') || name === 'made.md')).toEqual([])
})

/** Leaves a session in its first round, and a prompt behind it. */
async function leaveInTheMiddle(scene: RealScene): Promise<void> {
  await using running = scene.start('--json', 'build X')
  await running.event('item-completed', ({ item }) => item.kind === 'agent-message')
  running.process.kill('SIGKILL')
  await running.ended
}

const inTheMiddle = [reply(message('Working.'), hold(new Promise<never>(() => {})))]

describe('in a terminal a person is asked', () => {
  const WIDE = { columns: 120, rows: 40 }
  const question = '(0 rounds). Resume it? [Y/n] '

  test('Enter goes on with it, in the same process, and then with what waits', async () => {
    await using scene = await openRealScene([inTheMiddle, round(claimDone), round(claimDone)])
    await leaveInTheMiddle(scene)
    await scene.run('queue', 'add', 'goal two')
    await using terminal = startInEmulator(scene.place, ['--plain'], WIDE)
    await terminal.until(`_1 was cut off just now: "build X" ${question}`)
    terminal.type('\r')
    const { exitCode } = await terminal.ended
    expect(exitCode).toBe(0)
    const listed = JSON.parse((await scene.run('list', '--json')).stdout)
    expect(listed).toMatchObject([
      { goal: 'build X', outcome: { kind: 'done' } },
      { goal: 'goal two', outcome: { kind: 'done' } },
    ])
  })

  test('n leaves it as it is, and what waits has its turn', async () => {
    await using scene = await openRealScene([inTheMiddle, round(claimDone)])
    await leaveInTheMiddle(scene)
    await scene.run('queue', 'add', 'goal two')
    await using terminal = startInEmulator(scene.place, ['--plain'], WIDE)
    await terminal.until(question)
    terminal.type('n\r')
    expect((await terminal.ended).exitCode).toBe(0)
    const listed = JSON.parse((await scene.run('list', '--json')).stdout)
    expect(listed).toMatchObject([{ standing: 'cut-off' }, { goal: 'goal two', outcome: { kind: 'done' } }])
  })

  test.each<[string, string[], number, string | RegExp]>([
    ['n, where nothing waits', ['n\r'], 0, /To resume the session later: codemachine resume \d{8}_1\n$/],
    ['what is no answer, and then No', ['what?\r', 'No\r'], 0, /\[Y\/n\] what\?\n.+\[Y\/n\] No\nThe queue is empty/],
    ['Ctrl-C', ['\x03'], 130, /\[Y\/n\] \^C\n$/],
    ['Ctrl-D', ['\x04'], 0, /\[Y\/n\] \n$/],
  ])('%s: nothing is done', async (_what, typed, code, said) => {
    await using place = await makePlace('')
    const path = await journalSession(place, '20261120_1', [{ ...created, directory: place.directory }])
    const before = await readFile(path, 'utf8')
    await using terminal = startInEmulator(place, ['--plain'], WIDE)
    await terminal.until(question)
    for (const [i, text] of typed.entries()) {
      const before = `${typed[i - 1]?.trim()}\n20261120_1`
      if (i > 0) await terminal.until(rows => rows.join('\n').includes(before))
      terminal.type(text)
    }
    const { exitCode } = await terminal.ended
    expect(terminal.bytes().replaceAll('\r\n', '\n')).toMatch(said)
    expect(exitCode).toBe(code)
    expect(await readFile(path, 'utf8')).toBe(before)
    expect(await readdir(place.directory)).toEqual(['.git', 'README.md'])
    expect(await readdir(join((await recordsOf(place)).folder))).not.toContain('lock')
  })
})

test('a build is not offered any more once a newer one has begun', async () => {
  await using place = await makeContext()
  const build: SessionEvent = { ...created, template: 'build' }
  for (const id of ['20261120_1', '20261121_1']) await place.journal(id, [build])
  const written = new Date(Date.now() + 60_000)
  await utimes(place.records.journal('20261120_1'), written, written)
  expect(await findUnfinished(place.context, place.records, say)).toBeNull()
})
