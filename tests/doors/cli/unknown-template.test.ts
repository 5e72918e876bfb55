import { cp, mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { OWN_TEMPLATES } from '../../../src/modes/registry.ts'
import { openQueue } from '../../../src/session/records/queue.ts'
import { openRecords, type Records } from '../../../src/session/records/records.ts'
import { codemachineHere } from '../../support/in-process.ts'
import { makePlace, type TestPlace } from '../../support/place.ts'
import { round } from '../../support/rounds.ts'
import { eventsOf, openScene } from '../../support/scene.ts'

/** A build that came to its end, as version 0.1 journaled it. */
const JOURNAL = fileURLToPath(
  new URL('../../data/records-0.1/library/records/sessions/20261122_1/journal.ndjson', import.meta.url),
)
const ID = '20261122_1'

const recordsOf = ({ directory, env, home }: TestPlace) =>
  openRecords({ directory, env, home, platform: process.platform, templates: OWN_TEMPLATES })

/** Lays that session into the records of the place, changed as a later version may write it. */
async function lay(place: TestPlace, change: (journal: string) => string): Promise<Records> {
  const records = await recordsOf(place)
  const journal = await readFile(JOURNAL, 'utf8')
  await mkdir(dirname(records.journal(ID)), { recursive: true })
  await cp(JOURNAL, records.journal(ID))
  await writeFile(records.journal(ID), change(journal.replaceAll('/tmp/night/library', records.directory)))
  return records
}

const ofWeave = (journal: string) => journal.replace('"template":"build"', '"template":"weave"')
const withCarving = (journal: string) => journal.replaceAll('"part":"orchestration"', '"part":"carving"')
/** Without its last event. */
const cutOff = (journal: string) => journal.replace(/[^\n]*"type":"session-ended"[^\n]*\n/, '')

const NO_TEMPLATE = `codemachine: ${ID} uses the template "weave", which this codemachine does not have. Resume it with the codemachine that started it, or a newer one. (CM0606)\n`
const NO_PART = `codemachine: ${ID} has a round for "carving", which this codemachine does not know in the template "build". Resume it with the codemachine that ran it last, or a newer one. (CM0606)\n`

describe.each([
  ['a template', ofWeave, NO_TEMPLATE, 'weave'],
  ['a part of a round', withCarving, NO_PART, 'build'],
] as const)('a session with %s that this version does not have', (_, change, refusal, template) => {
  test('is listed, shown and reported', async () => {
    await using place = await makePlace('', { git: false })
    await lay(place, change)
    const shown = async (...args: string[]) => {
      const { exitCode, stdout, stderr } = await codemachineHere(place, args)
      expect([args, exitCode, stderr]).toEqual([args, 0, ''])
      return stdout
    }
    expect(JSON.parse(await shown('list', '--json'))).toMatchObject([{ id: ID, standing: 'ended', rounds: 4 }])
    expect(await shown('list')).toContain(ID)
    expect(JSON.parse(await shown('status', '--json'))).toMatchObject({
      session: { id: ID, outcome: { kind: 'done' } },
    })
    expect(await shown('status')).toContain(ID)
    const events = (await shown('logs', ID, '--json')).trimEnd().split('\n')
    expect(events).toHaveLength(263)
    expect(await shown('logs', ID)).toContain('ended: done')
    expect(await shown('watch', ID)).toContain('ended: done')
    expect(JSON.parse(await shown('report', ID, '--json'))).toMatchObject({ template, outcome: { kind: 'done' } })
    expect(await shown('report', ID)).toContain('done')
    expect(await shown('report', ID, '--md')).toContain('## Rounds')
    await shown('questions', '--all')
    await shown('queue', 'list')
  })

  test('is not said to go on here, where it was cut off', async () => {
    await using place = await makePlace('', { git: false })
    await lay(place, journal => cutOff(change(journal)))
    const { stdout } = await codemachineHere(place, ['status'])
    expect(stdout).toContain(`cut off; this codemachine does not know all of its template, ${template}\n`)
  })

  test.each([
    ['that was cut off, by its id', cutOff, [ID]],
    ['that was cut off, as the newest', cutOff, []],
    ['that has ended', (journal: string) => journal, [ID]],
  ])('is not gone on with, and nothing of it changes: one %s', async (_, cut, args) => {
    await using place = await makePlace('', { git: false })
    const records = await lay(place, journal => cut(change(journal)))
    const before = await readFile(records.journal(ID), 'utf8')
    expect(await codemachineHere(place, ['resume', ...args])).toMatchObject({
      exitCode: 2,
      stdout: '',
      stderr: refusal,
    })
    expect(await readFile(records.journal(ID), 'utf8')).toBe(before)
  })

  test('is not offered to be gone on with, and what it came from in the queue is not worked on again', async () => {
    await using scene = await openScene([], { git: false })
    const { place } = scene
    const records = await recordsOf(place)
    const queue = openQueue(records.queue)
    const { id } = await queue.add('Build it', new Date())
    await lay(place, journal => cutOff(change(journal)).replace('"queued":null', `"queued":"${id}"`))
    const { exitCode, stderr } = await scene.run('--plain', '--no-keep-awake', '--rounds', '1', '-C', place.directory)
    expect([exitCode, stderr]).toEqual([
      2,
      expect.stringMatching(/^codemachine: There is no goal, and the queue is empty/),
    ])
    expect((await queue.list()).prompts).toEqual([])
    expect(await records.sessions()).toEqual([ID])
  })
})

test('a session of a template that this version does not have cannot be begun', async () => {
  await using place = await makePlace('', { git: false })
  const { exitCode, stderr } = await codemachineHere(place, ['start', '--yes', '--template', 'weave'])
  expect([exitCode, stderr]).toEqual([2, expect.stringContaining('There is no template "weave"; use build or goal.')])
})

describe('a prompt that waits for a template that this version cannot start', () => {
  test.each([
    ['weave', 'This version of codemachine has no template "weave"; a newer one may have it.'],
    ['agent', 'The template "agent" is not started, but called: codemachine --agent <name> "…"'],
  ])('is named where nothing else waits, and stays: %s', async (template, problem) => {
    await using scene = await openScene([], { git: false })
    const queue = openQueue((await recordsOf(scene.place)).queue)
    await queue.add('Do it', new Date(), { template })
    const { exitCode, stderr } = await scene.run('--plain', '--no-keep-awake')
    expect([exitCode, stderr]).toEqual([
      2,
      `codemachine: 000001 is still queued. ${problem} (CM0618)\n  To remove it: codemachine queue rm 000001\n`,
    ])
    expect((await queue.list()).prompts).toMatchObject([{ id: '000001', template }])
    expect((await codemachineHere(scene.place, ['queue', 'list'])).stdout).toContain('Do it')
    const added = await codemachineHere(scene.place, ['queue', 'add', '--template', template, 'Do it'])
    expect([added.exitCode, added.stderr]).toEqual([2, expect.stringContaining(`"${template}"`)])
  })

  test('lets the next one have its turn', async () => {
    await using scene = await openScene([round('echo hello > a.txt')], { git: false })
    const queue = openQueue((await recordsOf(scene.place)).queue)
    await queue.add('Do it', new Date(), { template: 'weave' })
    // A run took it in hand, and was killed before it was a session.
    const { id } = await queue.add('Do that', new Date())
    expect(await queue.claim(id)).toBe(true)
    const { exitCode, events } = await scene.run('--json', '--no-keep-awake', '--rounds', '1')
    expect(exitCode).toBe(3)
    expect(eventsOf(events, 'session-created').map(({ goal }) => goal)).toEqual(['Do that'])
    expect(eventsOf(events, 'warning').map(({ message }) => message)).toContain(
      '000001 is still queued. This version of codemachine has no template "weave"; a newer one may have it.',
    )
    expect((await queue.list()).prompts.map(({ id }) => id)).toEqual(['000001'])
  })
})
