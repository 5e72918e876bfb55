import { expect, test } from 'vitest'
import type { SessionEvent } from '../../src/core/events/events.ts'
import { logs } from '../../src/doors/cli/commands/look.ts'
import { followSlash } from '../../src/doors/screen/host/slash-change.ts'
import { sessionToFollow } from '../../src/modes/change/start/begin.ts'
import { findSession, latestSession, newestAtWork } from '../../src/project/find.ts'
import { findUnfinished } from '../../src/project/resume.ts'
import { resumableSessions } from '../../src/project/start/start-facts.ts'
import { makePlace } from '../doors/cli/place.ts'
import { moreSamples, sampleEvents } from '../doors/screen/samples.ts'
import { promise } from '../support/promise.ts'

const created: SessionEvent = { ...sampleEvents['session-created'], directory: '/work' }
const began = sampleEvents['round-started']
const shown = moreSamples['a replay']
const interrupted: SessionEvent = {
  ...sampleEvents['session-ended'],
  outcome: { kind: 'interrupted', by: 'SIGINT' },
  exitCode: 130,
}
const REAL = '20261120_1'

/** What replays recordings, and nothing else. */
const REPLAYS: Record<string, readonly SessionEvent[]> = {
  'all of whose rounds were replayed': [created, shown, sampleEvents['round-ended'], shown, interrupted],
  'that was begun to replay, before its first round': [moreSamples['only replays']],
}

test('a change that only replays recordings is followed by no door where another one is', async () => {
  await using place = await makePlace()
  const { records } = place
  const change = { ...created, template: 'change', options: {} }
  await place.journal(REAL, [change, began, interrupted])
  await place.journal('20261120_2', [change, shown, sampleEvents['round-ended'], interrupted])
  expect(await sessionToFollow(records, null)).toBe(REAL)
  const added: unknown[] = []
  const screen = { notice: () => {}, model: { composer: { text: '' }, showsSession: false, pane: { state: null } } }
  const queue = {
    add: async (request: string, terms: unknown) => {
      added.push([request, terms])
      return ''
    },
  }
  const slash = { records, start: null, person: { screen, queue, remember: () => {} } }
  await followSlash(slash as never, 'And document it.')
  expect(added).toEqual([['And document it.', { template: 'change', follows: REAL }]])
})

promise(
  'D61',
  'A session that has only replayed recordings is never taken for the newest one with work: by `diff`, `rewind`, `report`, `resume`, and what is protected',
)
test.each(Object.entries(REPLAYS))(
  'a session %s is nowhere taken for the newest where another one is',
  async (_, events) => {
    await using place = await makePlace()
    const { records, context } = place
    await place.journal(REAL, [created, began, interrupted])
    await place.journal('20261120_2', events)
    const say = () => {}
    expect(await findSession(records, null)).toBe(REAL)
    expect(await newestAtWork(records)).toBe(REAL)
    expect(await findUnfinished(context, records, say)).toMatchObject({ id: REAL })
    expect((await resumableSessions(records, process.platform)).map(({ id }) => id)).toEqual([REAL])
    // It may be looked at, as what was run last.
    expect(await latestSession(records, say)).toBe('20261120_2')
    await logs(context, undefined, {})
    expect(place.written()).toContain('20261120_2')
  },
)

promise('D61')
test.each(Object.entries(REPLAYS))(
  'where there is but one %s, it is the latest, and not gone on with',
  async (_, events) => {
    await using place = await makePlace()
    const { records, context } = place
    await place.journal(REAL, events)
    expect(await findSession(records, null)).toBe(REAL)
    expect(await newestAtWork(records)).toBeNull()
    expect(await findUnfinished(context, records, () => {})).toBeNull()
    expect(await resumableSessions(records, process.platform)).toEqual([])
  },
)

test.each<[string, readonly SessionEvent[]]>([
  ['has a round of its own behind a replayed one', [created, shown, sampleEvents['round-ended'], began]],
  ['has run a command between replays', [created, shown, sampleEvents['round-ended'], sampleEvents['command-ran']]],
  ['has written files between replays', [created, shown, sampleEvents['round-ended'], sampleEvents.wrote]],
  ['has done nothing yet', [created]],
])('a session that %s counts as any other', async (_, events) => {
  await using place = await makePlace()
  const { records } = place
  await place.journal(REAL, [created, began, interrupted])
  await place.journal('20261120_2', events)
  expect(await findSession(records, null)).toBe('20261120_2')
  expect(await newestAtWork(records)).toBe('20261120_2')
})
