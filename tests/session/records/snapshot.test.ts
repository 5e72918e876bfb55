import { execFileSync } from 'node:child_process'
import { globSync } from 'node:fs'
import { appendFile, mkdtemp, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import fc from 'fast-check'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Recorded, SessionEvent } from '../../../src/core/events/events.ts'
import { emptyState } from '../../../src/core/state/state.ts'
import type { TemplateKind, TemplateKinds } from '../../../src/core/template.ts'
import { OWN_TEMPLATES } from '../../../src/modes/registry.ts'
import { foldAndCount, foldJournal } from '../../../src/session/records/journal.ts'
import { readSnapshot, snapshotPath } from '../../../src/session/records/snapshot.ts'
import { ReportFold } from '../../../src/tell/report/fold-report.ts'
import { SnapshotWriter } from '../../../src/tell/report/snapshot-writer.ts'
import { readReport, renewSnapshot } from '../../../src/tell/report/write.ts'
import { moreSamples, sampleEvents, sampleItems } from '../../doors/screen/samples.ts'
import { answering, planOf as changePlan, playChange } from '../../support/change-session.ts'
import { planOf as flowPlan, playFlow } from '../../support/flow-session.ts'
import { saying } from '../../support/played-session.ts'
import { promise } from '../../support/promise.ts'
import { type RelayWork, relayTemplate } from '../../support/relay-template.ts'
import {
  created,
  fold,
  recorded,
  recordsWith,
  ended as roundEnded,
  SESSION,
  says,
  started,
  worked,
} from '../../support/session-events.ts'
import { fallsShort, playTeam, planOf as teamPlan, worksOut } from '../../support/team-session.ts'
import { hostileNight } from '../../tell/report/hostile-night.ts'
import { badNight, eventfulNight, goodNight } from '../../tell/report/made-up-night.ts'

const HEADER = '{"format":"codemachine-journal","v":1}'
const DATA = fileURLToPath(new URL('../../data/records-0.1', import.meta.url))

let folder: string
let path: string
let records: ReturnType<typeof recordsWith>
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'codemachine-snapshot-'))
})
afterAll(() => rm(folder, { recursive: true }))
beforeEach(async () => {
  path = join(await mkdtemp(join(folder, 'session-')), 'journal.ndjson')
  records = recordsWith(path)
})

const lineOf = (event: Recorded) => JSON.stringify(event)
const linesOf = (events: readonly Recorded[]) => [HEADER, ...events.map(lineOf)].map(line => `${line}\n`)
const renew = () => renewSnapshot(records, SESSION, 1)
const ended = { at: '2026-11-21T10:00:00.000Z' }

/** Expects that a snapshot made at each of these cuts comes, with the rest of the journal, to what all of it comes to. */
async function expectSame(lines: readonly string[], cuts: readonly number[]): Promise<void> {
  await writeFile(path, lines.join(''))
  const state = await foldJournal(records, SESSION)
  const report = await readReport(records, SESSION, ended)
  for (const cut of cuts) {
    await rm(snapshotPath(path), { force: true })
    await writeFile(path, lines.slice(0, cut).join(''))
    const isKept = await renew()
    if (cut < 2) continue
    expect([cut, isKept]).toEqual([cut, true])
    await appendFile(path, lines.slice(cut).join(''))
    const bytes = Buffer.byteLength(lines.slice(0, cut).join(''))
    expect((await readSnapshot(records, SESSION, 'whole'))?.read.bytes).toBe(bytes)
    expect(await foldJournal(records, SESSION)).toEqual(state)
    expect(await readReport(records, SESSION, ended)).toEqual(report)
  }
}

const everyCut = (lines: readonly string[]) => lines.map((_, cut) => cut + 1)

async function playedChange(): Promise<Recorded[]> {
  const place = await mkdtemp(join(folder, 'change-'))
  const plan = answering(changePlan())
  return (await playChange([plan], { folder: place, says: [['change', 'only for GET'], ['accept']] })).events
}

async function playedFlow(): Promise<Recorded[]> {
  const place = await mkdtemp(join(folder, 'flow-'))
  const plan = flowPlan([{ id: 'draft' }, { id: 'count', run: 'wc -w DRAFT.md' }, { id: 'review' }])
  return (await playFlow(plan, [saying('Trees.'), saying('Good.')], { folder: place })).events
}

async function playedTeam(): Promise<Recorded[]> {
  const work = (step: number, n: number) => (step === 2 && n === 1 ? fallsShort() : worksOut())
  return (await playTeam({ plan: () => teamPlan(3), work })).play.events
}

promise(
  'J42',
  'A snapshot and the rest of the journal come to what the whole journal comes to; one that is broken, stale or gone changes nothing',
)
describe('a snapshot made after any event comes, with what was journaled since, to what the whole journal comes to', () => {
  const journals = globSync('*/records/sessions/*/journal.ndjson', { cwd: DATA })
  test.each(journals)('of version 0.1: %s', async name => {
    const lines = (await readFile(join(DATA, name), 'utf8')).split(/(?<=\n)/)
    // Half of them in the long ones.
    await expectSame(
      lines,
      everyCut(lines).filter(cut => lines.length < 100 || cut % 2 === 0),
    )
  })

  test.each([
    ['an eventful night', () => eventfulNight().events],
    ['a bad night', () => badNight().events],
    ['a good night', () => goodNight().events],
    ['a hostile night', () => hostileNight().events],
    ['a change', playedChange],
    ['a workflow', playedFlow],
    ['a team', playedTeam],
  ])('of %s', async (_, events) => {
    const lines = linesOf(await events())
    await expectSame(lines, everyCut(lines))
  })

  test('of any events in any order', async () => {
    const items = Object.values(sampleItems).map(item => ({ ...sampleEvents['item-completed'], item }))
    const samples: SessionEvent[] = [...Object.values(sampleEvents), ...Object.values(moreSamples), ...items]
    // The others refuse what does not come of themselves.
    const template = fc.constantFrom('goal', 'build', 'agent')
    await fc.assert(
      fc.asyncProperty(fc.shuffledSubarray([...samples, ...samples]), template, fc.nat(), async (events, name, at) => {
        const lines = linesOf(recorded([{ ...created(), template: name, asksPlan: true }, ...events]))
        await expectSame(lines, [2 + (at % (events.length + 1))])
      }),
    )
  })

  test('of one snapshot after the other, each made from the one before', async () => {
    const { events } = eventfulNight()
    await writeFile(path, '')
    const report = new ReportFold(SESSION, OWN_TEMPLATES)
    for (const [at, line] of linesOf(events).entries()) {
      await appendFile(path, line)
      const event = events[at - 1]
      if (event === undefined) continue
      report.add(event)
      expect(await renew()).toBe(true)
      const snapshot = await readSnapshot(records, SESSION, 'whole')
      expect(snapshot?.state).toEqual(report.state)
      expect(snapshot?.earlier()).toBeNull()
    }
    expect(await readReport(records, SESSION, ended)).toEqual(report.data(() => 'cut-off'))
  })
})

promise('J42')
describe('a snapshot that cannot be believed changes nothing, and neither does one that is gone', () => {
  const events = recorded([created(), started(1), says(1, 'first')])
  const more = recorded([created(), started(1), says(1, 'first'), says(1, 'second'), started(2)]).slice(3)
  const whole = [...events, ...more].reduce(fold, emptyState(SESSION))

  beforeEach(async () => {
    await writeFile(path, linesOf(events).join(''))
    expect(await renew()).toBe(true)
    await appendFile(path, more.map(event => `${lineOf(event)}\n`).join(''))
  })

  async function expectIgnored(): Promise<void> {
    expect(await readSnapshot(records, SESSION, 'ends')).toBeNull()
    expect(await foldJournal(records, SESSION)).toEqual(whole)
    expect(await renew()).toBe(true)
    expect((await readSnapshot(records, SESSION, 'whole'))?.state).toEqual(whole)
  }

  test('it is one file beside the journal, for this user alone', async () => {
    expect((await stat(snapshotPath(path))).mode & 0o777).toBe(0o600)
    await rm(snapshotPath(path))
    await expectIgnored()
  })

  test('torn after any byte, or with a byte that is another', async () => {
    const bytes = await readFile(snapshotPath(path))
    for (let length = 0; length < bytes.length; length += 97) {
      await writeFile(snapshotPath(path), bytes.subarray(0, length))
      expect(await readSnapshot(records, SESSION, 'ends')).toBeNull()
      const other = Buffer.from(bytes)
      other[length] = (other[length] ?? 0) ^ 1
      await writeFile(snapshotPath(path), other)
      expect(await readSnapshot(records, SESSION, 'ends')).toBeNull()
    }
    await expectIgnored()
  })

  test.each(['', '\0\0\0', '{}', '[]\n[]', 'null\nnull'])('that holds %j', async content => {
    await writeFile(snapshotPath(path), content)
    await expectIgnored()
  })

  promise('J43')
  test('that is a pipe, and so is the one that is being written', async () => {
    await rm(snapshotPath(path))
    for (const each of [snapshotPath(path), `${snapshotPath(path)}.tmp`]) execFileSync('mkfifo', [each])
    await expectIgnored()
  })

  test('of another code', async () => {
    const text = await readFile(snapshotPath(path), 'utf8')
    const [, head = '', ...rest] = text.split('\n')
    const content = [head.replace(/"code":"[^"]+"/, '"code":"0.0.9 another"'), ...rest].join('\n')
    const { createHash } = await import('node:crypto')
    const sha256 = createHash('sha256').update(content).digest('hex')
    await writeFile(
      snapshotPath(path),
      `${JSON.stringify({ format: 'codemachine-snapshot', v: 1, sha256 })}\n${content}`,
    )
    await expectIgnored()
  })

  test('of a journal that has become shorter, and of another one in its place', async () => {
    const kept = await readFile(path)
    await truncate(path, linesOf(events.slice(0, 2)).join('').length)
    expect(await foldJournal(records, SESSION)).toEqual(events.slice(0, 2).reduce(fold, emptyState(SESSION)))
    await writeFile(path, kept.toString().replace('first', 'other'))
    expect(await readSnapshot(records, SESSION, 'ends')).toBeNull()
    await writeFile(path, kept)
    expect(await readSnapshot(records, SESSION, 'ends')).not.toBeNull()
  })

  test('of a template that this version does not know, or that has the name of one of ours', async () => {
    const goal = OWN_TEMPLATES.get('goal')
    if (goal === undefined) throw new Error('There is no template goal.')
    const { hasPlainState: _, ...other } = goal
    for (const templates of [new Map(), new Map([['goal', other]])] satisfies TemplateKinds[]) {
      expect(await readSnapshot({ ...records, templates }, SESSION, 'ends')).toBeNull()
    }
  })
})

promise('J42')
test('a byte in the middle of a long journal that is another since is seen by whoever goes on with the session', async () => {
  const long = 'x'.repeat(60_000)
  const events = recorded([created(), started(1), ...Array.from({ length: 60 }, (_, n) => says(1, `${n} ${long}`))])
  await writeFile(path, linesOf(events).join(''))
  await renew()
  const text = await readFile(path, 'utf8')
  await writeFile(path, text.replace('"text":"58 x', '"text":}58 x'))
  await appendFile(path, `${lineOf({ ...events[1], round: 2 } as Recorded)}\n`)
  // Nothing is made of what is another before its hash is known to be right.
  await expect(renew()).rejects.toThrow('not what was folded')
  await writeFile(path, text.replace('"text":"20 x', '"text":}20 x'))
  expect(await readSnapshot(records, SESSION, 'whole')).toBeNull()
  expect(await foldAndCount(records, SESSION)).toMatchObject({ state: { events: 61 }, rubbish: 1 })
  // What is only shown goes by its ends.
  expect(await foldAndCount(records, SESSION, 'ends')).toMatchObject({ state: { events: 62 }, rubbish: 0 })
})

test('lines that cannot be read count whichever part of the journal they stand in, a torn last one does not', async () => {
  const [header = '', first = '', ...rest] = linesOf(recorded([created(), started(1), says(1, 'hello')]))
  await writeFile(path, [header, first, 'rubbish\n', '\n'].join(''))
  expect((await foldAndCount(records, SESSION)).rubbish).toBe(0)
  await renew()
  expect((await foldAndCount(records, SESSION)).rubbish).toBe(0)
  await appendFile(path, [...rest, '{"v":1', ''].join(''))
  expect((await foldAndCount(records, SESSION)).rubbish).toBe(1)
  await renew()
  expect((await foldAndCount(records, SESSION)).rubbish).toBe(1)
  await appendFile(path, '\n{"v":1\n')
  expect((await foldAndCount(records, SESSION)).rubbish).toBe(2)
})

test('a line that was being written when a snapshot was made counts once it is whole', async () => {
  const [last = ''] = linesOf(recorded([created(), started(1), says(1, 'hello')])).slice(-1)
  await writeFile(path, linesOf(recorded([created(), started(1)])).join('') + last.slice(0, 40))
  await renew()
  await appendFile(path, last.slice(40))
  expect(await foldJournal(records, SESSION)).toMatchObject({ events: 3, running: { lastWords: 'hello' } })
})

test('a template of a program has none: what it keeps may be no data, and its fold another the next time', async () => {
  const relay = relayTemplate()
  records = { ...records, templates: new Map<string, TemplateKind>([[relay.name, relay as TemplateKind]]) }
  await writeFile(path, linesOf(recorded([{ ...created(), template: relay.name }, started(1)])).join(''))
  expect(await renew()).toBe(false)
  await expect(stat(snapshotPath(path))).rejects.toThrow('ENOENT')
})

test('a long journal of a template of a program is not read after each round for a snapshot that there will not be', async () => {
  const relay = relayTemplate()
  let folded = 0
  const counting: TemplateKind<RelayWork> = {
    ...relay,
    fold: (...given) => {
      folded += 1
      return relay.fold(...given)
    },
  }
  records = { ...records, templates: new Map<string, TemplateKind>([[relay.name, counting as TemplateKind]]) }
  const long = Array.from({ length: 60 }, (_, n) => says(1, `${n} ${'x'.repeat(60_000)}`))
  const events = recorded([{ ...created(), template: relay.name }, started(1), ...long, roundEnded(1, worked)])
  await writeFile(path, linesOf(events).join(''))
  const state = await foldJournal(records, SESSION)
  const last = events.at(-1)
  if (state === null || last === undefined) throw new Error('There is no session.')
  folded = 0
  {
    await using writer = new SnapshotWriter(records, SESSION)
    writer.event(last, state)
  }
  expect(folded).toBe(0)
})
