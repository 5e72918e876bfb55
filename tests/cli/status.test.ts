import { mkdir, symlink, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { status } from '../../src/cli/commands/status.ts'
import { openQueue } from '../../src/session/queue.ts'
import { takeRunLock } from '../../src/session/run-lock.ts'
import { recorded, sampleEvents } from '../ui/samples.ts'
import { makePlace, type Place } from './place.ts'

const created = sampleEvents['session-created']
const started = sampleEvents['round-started']
const at = Date.parse(recorded([created])[0]?.at ?? '')

/** The context of someone who looks ten seconds after the first event. */
function looking({ context }: Place): Place['context'] {
  return { ...context, clock: { ...context.clock, now: () => at + 10_000 } }
}

async function writeTasks(place: Place, text: string): Promise<void> {
  const folder = join(place.records.directory, '.codemachine', 'projects', '20261120_1')
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, 'tasks.json'), text)
}

test('where nothing has run yet, it says so', async () => {
  await using place = await makePlace()
  expect(await status(place.context, { directory: place.directory, json: false })).toBe(0)
  expect(place.written()).toMatch(/^Nothing runs in .+\.\nThere are no sessions yet\.\n {2}queue {4}nothing waits\n$/)
})

test('of a running session: the round, what it does, what it has used, and what waits', async () => {
  await using place = await makePlace()
  await using _lock = await takeRunLock(place.records.lock, { ...place.context, now: new Date(at - 1000) })
  await place.journal('20261120_1', [
    created,
    started,
    sampleEvents['plan-updated'],
    sampleEvents['item-completed'],
    sampleEvents.usage,
    sampleEvents.limits,
  ])
  await writeTasks(place, '{"tasks":[{"id":"T1","name":"a","done":true},{"id":"T2","name":"b","done":false}]}')
  await openQueue(place.records.queue).add('then the docs', new Date(at))
  await status(looking(place), { directory: place.directory, json: false })
  const [who, ...lines] = place.written().trimEnd().split('\n')
  expect(who).toMatch(new RegExp(`^codemachine runs in .+ \\(pid ${process.pid} on .+, since 22:41\\)\\.$`))
  expect(lines).toEqual([
    '  session  20261120_1  build X',
    '  state    running',
    '  so far   round 1 of 20 for 9.0 s, 10.0 s, 45.2k tokens',
    '  last     22:41  All is well.',
    '  plan     [x] a  [>] b  [ ] c',
    '  tasks    1 of 2 done',
    '  usage    40 % of the window of 5h00m',
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
      outcome: { kind: 'needs-person', reason: 'You are logged out.', hint: 'Log in.' },
    },
  ])
  await status(place.context, { directory: place.directory, json: false })
  expect(place.written()).toContain('  state    needs a person: You are logged out.  Log in.\n')
  expect(place.written()).toContain('  claim    refused (tasks-left): tasks.json still has 1 task.\n')
})

test('tasks that are half-written are not counted', async () => {
  await using place = await makePlace()
  await place.journal('20261120_1', [created])
  await writeTasks(place, '{"tasks":[')
  await status(place.context, { directory: place.directory, json: true })
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
  await status(place.context, { directory: place.directory, json: true })
  expect(JSON.parse(place.written())).toMatchObject({ session: { tasks: null } })
})

test('the session that was written to last is the one it tells of, whatever its number', async () => {
  await using place = await makePlace()
  const other = await place.journal('20261120_2', [created, sampleEvents['session-ended']])
  await utimes(other, 1, 1)
  await place.journal('20261120_1', [created, sampleEvents['session-ended'], sampleEvents['session-resumed']])
  await status(place.context, { directory: place.directory, json: true })
  expect(JSON.parse(place.written())).toMatchObject({
    runner: null,
    session: { id: '20261120_1', standing: 'cut-off', maxRounds: 30 },
  })
})
