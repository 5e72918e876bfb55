import { mkdir, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { expect } from 'vitest'
import type { SessionEvent } from '../../../src/core/events/events.ts'
import type { SessionLimits } from '../../../src/core/events/outcome.ts'
import { resumableSessions } from '../../../src/project/start/start-facts.ts'
import { codemachineHere } from '../../support/in-process.ts'
import { makePlace, type TestPlace } from '../../support/place.ts'
import { describe, test } from '../../support/side-by-side.ts'
import { sampleEvents } from '../screen/samples.ts'
import { journalSession, recordsOf, replaceFirstLine } from './journaled.ts'

const MINUTE = 60_000
const NO_LIMITS: SessionLimits = { rounds: null, timeMs: null, tokens: null }
const ended = sampleEvents['session-ended']

/** A session that was interrupted after five rounds, 2 h 3 min of work and 45,210 tokens. */
function interrupted(place: TestPlace, limits: Partial<SessionLimits>): SessionEvent[] {
  const round = sampleEvents['round-ended']
  return [
    { ...sampleEvents['session-created'], directory: place.directory, limits: { ...NO_LIMITS, ...limits } },
    sampleEvents['round-started'],
    sampleEvents['turn-started'],
    sampleEvents.usage,
    ...Array.from({ length: 5 }, (_, n): SessionEvent => ({ ...round, round: n + 1 })),
    { ...ended, outcome: { kind: 'interrupted', by: 'SIGINT' }, exitCode: 130, durationMs: 123 * MINUTE },
  ]
}

/** What resume says, with its exit code; fails if it changed anything of the session. */
async function refusal(place: TestPlace, ...args: string[]): Promise<[number | null, string]> {
  const { folder } = await recordsOf(place)
  const state = async () => {
    const names = (await readdir(join(folder, 'sessions'), { recursive: true })).sort()
    const texts = names.map(name => readFile(join(folder, 'sessions', name), 'utf8').catch(() => 'unreadable'))
    return { names, texts: await Promise.all(texts), work: await readdir(place.directory) }
  }
  const before = await state()
  const { exitCode, stdout, stderr } = await codemachineHere(place, ['resume', ...args])
  expect(stdout).toBe('')
  expect(await state()).toEqual(before)
  return [exitCode, stderr]
}

describe('a limit that is used up already is refused, and nothing is begun', () => {
  test.each<[string, Partial<SessionLimits>, string[], string]>([
    ['the rounds of the journal', { rounds: 5 }, [], 'has used 5 of its 5 rounds; raise the total with --rounds.'],
    [
      'fewer rounds than were used',
      { rounds: 20 },
      ['--rounds', '3'],
      'has used 5 of its 3 rounds; raise the total with --rounds.',
    ],
    [
      'the time of the journal',
      { timeMs: 120 * MINUTE },
      [],
      'has worked for 2 h 3 min, which is all of its --max-time 2h; raise the total with --max-time.',
    ],
    [
      'less time than was used',
      { rounds: 20 },
      ['--max-time', '1h30m'],
      'has worked for 2 h 3 min, which is all of its --max-time 1h30m; raise the total with --max-time.',
    ],
    [
      'the tokens of the journal',
      { tokens: 45_210 },
      [],
      'has used 45.2k tokens, which is all of its --max-tokens 45210; raise the total with --max-tokens.',
    ],
    [
      'fewer tokens than were used',
      { tokens: 5_000_000 },
      ['--max-tokens', '40k'],
      'has used 45.2k tokens, which is all of its --max-tokens 40k; raise the total with --max-tokens.',
    ],
    [
      'one limit, while another has been given more',
      { rounds: 5, timeMs: 120 * MINUTE },
      ['--rounds', '50'],
      'has worked for 2 h 3 min, which is all of its --max-time 2h; raise the total with --max-time.',
    ],
  ])('%s', async (_what, limits, args, said) => {
    await using place = await makePlace('')
    await journalSession(place, '20261120_1', interrupted(place, limits))
    expect(await refusal(place, ...args)).toEqual([2, `codemachine: 20261120_1 ${said} (CM0401)\n`])
  })
})

test('a limit that cannot be read is named, with what it may be', async () => {
  await using place = await makePlace('')
  await journalSession(place, '20261120_1', interrupted(place, {}))
  const [exitCode, said] = await refusal(place, '--max-time', 'banana')
  expect([exitCode, said]).toEqual([2, expect.stringMatching(/^codemachine: --max-time is "banana"; use a time .*\n$/)])
})

test('a session that there is not, and a word that may mean two, are refused with those that there are', async () => {
  await using place = await makePlace('')
  for (const id of ['20261120_1', '20261121_1']) await journalSession(place, id, interrupted(place, {}))
  expect(await refusal(place, '7')).toEqual([
    2,
    `codemachine: There is no session "7" in ${place.directory}. (CM0603)\n  There are: 20261120_1, 20261121_1\n`,
  ])
  expect(await refusal(place, '1')).toEqual([
    2,
    'codemachine: "1" may mean 2 sessions; give more of the id. (CM0604)\n  20261120_1, 20261121_1\n',
  ])
})

test('a journal of a newer codemachine is left for that one', async () => {
  await using place = await makePlace('')
  await journalSession(place, '20261120_1', interrupted(place, {}))
  const path = await journalSession(place, '20261121_1', interrupted(place, {}))
  await replaceFirstLine(path, '{"format":"codemachine-journal","v":2}')
  const said = `codemachine: ${path} was written by a newer codemachine (journal format 2); use that version. (CM0606)\n`
  expect(await refusal(place, '20261121_1')).toEqual([2, said])
  expect(await refusal(place), 'it is the newest').toEqual([
    2,
    `${said.replace('CM0606', 'CM0607')}  To resume another session, name it; codemachine list shows them.\n`,
  ])
})

test('a session of another work directory is gone on with there', async () => {
  await using place = await makePlace('')
  const [created, ...rest] = interrupted(place, {})
  if (created?.type !== 'session-created') throw new Error('The first event creates the session')
  await journalSession(place, '20261120_1', [{ ...created, directory: '/srv/other work' }, ...rest])
  expect(await refusal(place)).toEqual([
    2,
    `codemachine: 20261120_1 belongs to /srv/other work, but you are in ${place.directory}. (CM0608)\n  To resume it there: codemachine resume 20261120_1 -C '/srv/other work'\n`,
  ])
})

test('a journal of which nothing can be read any more is named', async () => {
  await using place = await makePlace('')
  const path = await journalSession(place, '20261120_1', [])
  await writeFile(path, '\0\0\0rubbish\n{"v":1,"at":"2026-')
  expect(await refusal(place, '20261120_1')).toEqual([
    2,
    `codemachine: ${path} does not name the goal of 20261120_1, so it cannot be resumed. (CM0607)\n`,
  ])
})

test('a directory, or a link to nowhere, in the place of a journal is named', async () => {
  await using place = await makePlace('')
  const path = await journalSession(place, '20261120_1', [])
  await rm(path)
  await mkdir(path)
  expect(await refusal(place, '20261120_1')).toEqual([
    2,
    `codemachine: ${path} cannot be read: it is a directory; restore the journal. (CM0607)\n`,
  ])
  await rm(path, { recursive: true })
  await symlink(join(dirname(path), 'journal.ndjson'), path)
  expect(await refusal(place, '20261120_1')).toEqual([
    2,
    `codemachine: ${path} cannot be read: ELOOP; make it readable. (CM0607)\n`,
  ])
})

test('an older build is left alone once a newer one has its own plan, and bare resume takes what is not such', async () => {
  await using place = await makePlace('')
  const [created, ...rest] = interrupted(place, {})
  if (created?.type !== 'session-created') throw new Error('The first event creates the session')
  const build = { ...created, template: 'build' as const }
  const done = { ...ended, outcome: { kind: 'done' as const, verified: true } }
  await journalSession(place, '20261120_1', [build, ...rest])
  await journalSession(place, '20261121_1', [build, ...rest.slice(0, -1), done])
  const records = await recordsOf(place)
  expect(await resumableSessions(records, process.platform)).toEqual([])
  expect((await refusal(place))[1]).toContain('No session in')
  expect(await refusal(place, '20261120_1')).toEqual([
    2,
    'codemachine: 20261120_1 cannot be resumed, because the newer build 20261121_1 has made its own plan. codemachine start plans what is missing. (CM0605)\n',
  ])
})
