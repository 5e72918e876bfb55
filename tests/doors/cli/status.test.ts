import { mkdir, symlink, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { SessionEvent } from '../../../src/core/events/events.ts'
import { status } from '../../../src/doors/cli/commands/look.ts'
import { openQueue } from '../../../src/session/records/queue.ts'
import { takeRunLock } from '../../../src/session/records/run-lock.ts'
import { local, moreSamples, recorded, sampleEvents } from '../screen/samples.ts'
import { makePlace, type Place } from './place.ts'

const created = moreSamples['every limit']
const started = sampleEvents['round-started']
const at = Date.parse(recorded([created])[0]?.at ?? '')

/** The context of someone who looks so long after the first event, ten seconds if not said. */
function looking({ context }: Place, ms = 10_000): Place['context'] {
  return { ...context, clock: { ...context.clock, now: () => at + ms } }
}

/** What is said of a session that somebody runs and in which this has happened, line by line by their labels. */
async function said(
  events: readonly SessionEvent[],
  { ms = 10_000, runs = true } = {},
): Promise<Record<string, string>> {
  await using place = await makePlace()
  await using _lock = runs
    ? await takeRunLock(place.records.lock, { ...place.context, now: new Date(at - 1000) })
    : { [Symbol.asyncDispose]: async () => {} }
  await place.journal('20261120_1', events)
  await status(looking(place, ms), { cd: place.directory, json: false })
  const lines = place.written().trimEnd().split('\n').slice(1)
  return Object.fromEntries(lines.map(line => [line.slice(2, 9).trim(), line.slice(11)]))
}

async function writeTasks(place: Place, text: string): Promise<void> {
  const folder = join(place.records.directory, '.codemachine', 'projects', '20261120_1')
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, 'tasks.json'), text)
}

test('where nothing has run yet, it says so', async () => {
  await using place = await makePlace()
  expect(await status(place.context, { cd: place.directory, json: false })).toBe(0)
  expect(place.written()).toMatch(/^Nothing runs in .+\.\nNo sessions yet\.\n {2}queue {4}empty\n$/)
})

test('of a running session: the round, what it does, what it has used, and what waits', async () => {
  await using place = await makePlace()
  await using _lock = await takeRunLock(place.records.lock, { ...place.context, now: new Date(at - 1000) })
  await place.journal('20261120_1', [
    created,
    started,
    sampleEvents['turn-started'],
    sampleEvents['plan-updated'],
    sampleEvents['item-completed'],
    sampleEvents.usage,
    sampleEvents.limits,
  ])
  await writeTasks(place, '{"tasks":[{"id":"T1","name":"a","done":true},{"id":"T2","name":"b","done":false}]}')
  await openQueue(place.records.queue).add('then the docs', new Date(at))
  await status(looking(place), { cd: place.directory, json: false })
  const [who, ...lines] = place.written().trimEnd().split('\n')
  expect(who).toMatch(new RegExp(`^codemachine runs in .+ \\(pid ${process.pid} on .+, since 22:41\\)\\.$`))
  expect(lines).toEqual([
    '  session  20261120_1  build X',
    '  state    running',
    '  so far   round 1 of 20 for 9 s, 10 s of 8 h, 45.2k of 5M tokens, cost 0.06',
    '  model    gpt-6 high',
    '  last     22:41  All is well.',
    '  plan     [x] a  [>] b  [ ] c',
    '  tasks    1 of 2 done; T2 b',
    '  usage    40 % of the window of 5 h',
    '  queue    1 prompt waiting',
  ])
})

test('of a session that is over: how it ended, and why its last claim was refused', async () => {
  await using place = await makePlace()
  await place.journal('20261120_1', [
    created,
    sampleEvents['done-refused'],
    {
      ...sampleEvents['session-ended'],
      outcome: { kind: 'needs-person', reason: 'You are logged out', hint: { do: 'say', text: 'Log in.' } },
    },
  ])
  await status(place.context, { cd: place.directory, json: false })
  expect(place.written()).toContain('  state    needs a person: You are logged out.  Log in.\n')
  expect(place.written()).toContain('  claim    not accepted: tasks.json still has 1 task.\n')
})

test('tasks that are half-written are not counted', async () => {
  await using place = await makePlace()
  await place.journal('20261120_1', [created])
  await writeTasks(place, '{"tasks":[')
  await status(place.context, { cd: place.directory, json: true })
  expect(JSON.parse(place.written())).toMatchObject({ session: { tasks: null } })
})

test('a memory folder that is a link is not followed', async () => {
  await using place = await makePlace()
  await place.journal('20261120_1', [created])
  const outside = join(place.records.directory, '..', 'outside')
  await mkdir(join(outside, 'projects', '20261120_1'), { recursive: true })
  await writeFile(
    join(outside, 'projects', '20261120_1', 'tasks.json'),
    '{"tasks":[{"id":"T1","name":"a","done":true}]}',
  )
  await symlink(outside, join(place.records.directory, '.codemachine'))
  await status(place.context, { cd: place.directory, json: true })
  expect(JSON.parse(place.written())).toMatchObject({ session: { tasks: null } })
})

test('the session that was written to last is the one it tells of, whatever its number', async () => {
  await using place = await makePlace()
  const other = await place.journal('20261120_2', [created, sampleEvents['session-ended']])
  await utimes(other, 1, 1)
  await place.journal('20261120_1', [created, sampleEvents['session-ended'], sampleEvents['session-resumed']])
  await status(place.context, { cd: place.directory, json: true })
  expect(JSON.parse(place.written())).toMatchObject({
    runner: null,
    session: {
      id: '20261120_1',
      standing: 'cut-off',
      activity: null,
      limits: { rounds: 30, timeMs: null, tokens: null },
    },
  })
})

describe('what it is doing', () => {
  const {
    'round-ended': ended,
    'stop-asked': stopAsked,
    'winding-down': windingDown,
    'wait-ended': waitEnded,
    'session-ended': over,
    waiting,
    paused,
    unpaused,
  } = sampleEvents
  const offline = moreSamples['no network']

  test.each<[string, string, SessionEvent[]]>([
    ['running', 'running', [started]],
    ['running', 'running', [started, offline, sampleEvents.usage]],
    ['stopping', 'stopping after this round', [started, stopAsked]],
    ['paused', 'paused since 22:41; codemachine unpause continues', [started, ended, paused]],
    ['paused', 'paused since 22:41; codemachine unpause continues; stopping', [started, ended, paused, stopAsked]],
    ['running', 'running; pausing after this round', [started, paused]],
    ['running', 'running', [started, paused, unpaused]],
    [
      'running',
      'running; the plan is being changed; pausing after this round',
      [started, sampleEvents['replan-asked']],
    ],
    ['paused', 'paused since 22:41; codemachine unpause continues', [started, sampleEvents['interrupt-asked'], ended]],
    ['waiting-for-network', 'waiting for the network since 22:41; codex keeps trying', [started, offline, offline]],
    [
      'waiting-for-network',
      'waiting for the network since 22:41; codex keeps trying; stopping after this round',
      [started, offline, stopAsked],
    ],
    ['winding-down', 'winding down: 8 h of time are used up', [started, windingDown]],
    ['winding-down', 'winding down: the time of this round is used up', [started, moreSamples['out of its own time']]],
    ['winding-down', 'winding down: 5M tokens are used up', [started, moreSamples['out of tokens']]],
    [
      'waiting',
      'waiting until 2026-11-21 05:02, 6 h 21 min from now (usage limit: You have hit your usage limit); codemachine retry ends the wait',
      [started, ended, waiting],
    ],
    ['running', 'running', [started, ended, waiting, waitEnded]],
  ])('%s: %s', async (activity, words, events) => {
    expect((await said([created, ...events])).state).toBe(words)
    await using place = await makePlace()
    await using _lock = await takeRunLock(place.records.lock, { ...place.context, now: new Date(at - 1000) })
    await place.journal('20261120_1', [created, ...events])
    await status(looking(place), { cd: place.directory, json: true })
    expect(JSON.parse(place.written())).toMatchObject({ session: { standing: 'running', activity } })
  })

  test('a wait counts down', async () => {
    const lines = await said([created, started, ended, waiting], { ms: local(21, 5, 1) - at })
    expect(lines.state).toContain('waiting until 05:02, 1 min from now (')
    expect(lines.waits).toBe(undefined)
    // Its state has said it.
    expect(lines.last).toBe(undefined)
  })

  test('a wait that was interrupted is told of, until it is over', async () => {
    const stopped = { ...over, outcome: { kind: 'interrupted', by: 'stop' } } as const
    const events = [created, started, ended, waiting, { ...waitEnded, reason: 'stopped' }, stopped] as const
    const lines = await said(events, { runs: false })
    expect(lines.state).toBe('stopped by a person')
    expect(lines.waits).toBe(
      'until 2026-11-21 05:02, 6 h 21 min from now (usage limit: You have hit your usage limit), once it continues',
    )
    expect(await said(events, { runs: false, ms: local(21, 5, 3) - at })).not.toHaveProperty('waits')
  })

  test('of one that was cut off, nothing is said that only a run does', async () => {
    await using place = await makePlace()
    const events = [created, sampleEvents['keep-awake'], started, offline, paused, stopAsked, windingDown]
    await place.journal('20261120_1', events)
    await status(looking(place), { cd: place.directory, json: true })
    expect(JSON.parse(place.written())).toMatchObject({
      session: {
        standing: 'cut-off',
        activity: null,
        round: null,
        pausedAt: null,
        stopAsked: false,
        offlineSince: null,
        windingDown: null,
        keptAwake: null,
      },
    })
  })
})

test('without limits, it says only what is used', async () => {
  const unlimited = moreSamples['no limit']
  expect(await said([unlimited, started, sampleEvents.usage])).toMatchObject({
    'so far': 'round 1 for 9 s, 10 s, 45.2k tokens, cost 0.06',
  })
  expect(await said([unlimited, started, sampleEvents['round-ended']], { ms: 3_720_000 })).toMatchObject({
    'so far': '1 round, 1 h 2 min, 0 tokens, cost 0.00',
  })
})

test('that it has got stuck, what was done about it, when usage is renewed, and what keeps the machine awake', async () => {
  const limits = {
    type: 'limits',
    primary: { usedPercent: 92.4, windowMinutes: 300, resetsAt: local(20, 23, 51) },
    secondary: { usedPercent: 12, windowMinutes: null, resetsAt: local(20, 22, 0) },
  } as const
  const { 'round-started': start, 'round-ended': end, stuck } = sampleEvents
  const idle = [1, 2, 3].flatMap(round => [
    { ...start, round },
    { ...end, round, treeAfter: 'aaaa', changed: [], changedCount: 0 },
  ])
  const lines = await said([created, sampleEvents['keep-awake'], ...idle, stuck, limits])
  expect(lines).toMatchObject({
    'so far': '3 of 20 rounds, 10 s of 8 h, 0 of 5M tokens, cost 0.00',
    stuck: 'no progress in 3 rounds: told to try another approach',
    // Two lines have this label: the last one counts here.
    usage: '12 % of the window until 22:00',
    awake: 'by systemd-inhibit',
  })
  await using place = await makePlace()
  await place.journal('20261120_1', [created, limits])
  await status(looking(place), { cd: place.directory, json: false })
  expect(place.written()).toContain('  usage    92 % of the window of 5 h, resets 23:51, 1 h 10 min from now\n')
})
