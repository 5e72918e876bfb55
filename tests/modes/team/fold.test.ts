import { describe, expect, test } from 'vitest'
import type { SessionEvent } from '../../../src/core/events/events.ts'
import { emptyState, type SessionState } from '../../../src/core/state/state.ts'
import { foldTeam } from '../../../src/modes/team/fold.ts'
import { nextOfTeam } from '../../../src/modes/team/next.ts'
import type { TeamWork } from '../../../src/modes/team/work.ts'
import { SESSION } from '../../support/session-events.ts'
import { atWork, PASSED, REVIEW, step, waiting } from '../../support/team-work.ts'

/** The work after these events, of which only what the fold looks at is said. */
function after(work: TeamWork, ...events: readonly object[]): TeamWork {
  return events.reduce<TeamWork>((own, event) => foldTeam(own, event as SessionEvent, emptyState(SESSION)), work)
}

const REFUSED = {
  type: 'secret-confirmed',
  step: 1,
  key: 'API_KEY',
  ok: false,
  problem: 'Its check failed (exit code 22).',
}

test('a secret that was set from elsewhere and does not work: the person is told why', () => {
  const { waitsFor } = waiting(1, 'API_KEY')
  const begun = waiting(1, 'API_KEY', { waitsFor: waitsFor && { ...waitsFor, asked: 0 } })
  const work = after(atWork([begun]), { type: 'secret-set', key: 'API_KEY' }, REFUSED)
  expect(work.steps[0]).toMatchObject({
    status: 'needs-secret',
    waitsFor: { state: 'asked', problem: 'Its check failed (exit code 22).' },
    told: [{ command: 'CONFIRM_SECRET API_KEY', exitCode: 1, output: 'SECRET CONFIRMATION FAILED' }],
  })
})

test('one secret lets all steps go on that wait for it, and no other', () => {
  const work = atWork([waiting(1, 'API_KEY'), waiting(2, 'OTHER_KEY'), waiting(3, 'API_KEY')])
  const { steps } = after(work, { type: 'secret-set', key: 'API_KEY' }, { ...REFUSED, ok: true, problem: null })
  expect(steps.map(({ status }) => status)).toEqual(['to-do', 'needs-secret', 'to-do'])
})

test('with a new plan it is looked again how the project is tested', () => {
  const found = { files: [{ path: 'README.md', text: 'old' }] }
  const work = atWork([step(1, { status: 'done' })], { found, howToTest: [PASSED], isReviewed: true })
  const value = { goal: 'Say more.', steps: [{ id: 2, description: 'Say more.' }] }
  const planned = after(work, { type: 'answer-given', name: 'plan', value })
  expect(planned).toMatchObject({ found: null, howToTest: null, isReviewed: false, isWritten: false })
  expect(planned.steps.map(({ id }) => id)).toEqual([1, 2])
})

test('repairs make no more than 200 steps of a team, and a review of as many none', () => {
  const value = { ...REVIEW, issues: Array.from({ length: 5 }, () => ({ ...REVIEW.issues[1], severity: 'high' })) }
  const reviewed = (count: number) => {
    const steps = Array.from({ length: count }, (_, at) => step(at + 1, { status: 'done' }))
    return after(atWork(steps), { type: 'answer-given', name: 'assessment', value })
  }
  expect(reviewed(198).steps).toHaveLength(200)
  expect(reviewed(200)).toMatchObject({ steps: { length: 200 }, repairs: 0, isReviewed: true })
})

test('what the reviewer of a claim answers is not the answer of the reviewer of the team', () => {
  const work = atWork([step(1, { status: 'done' })], { isReviewed: true })
  const value = {
    agrees: false,
    findings: [{ severity: 'high', file: null, line: null, problem: 'No.', mend: 'Yes.' }],
  }
  expect(after(work, { type: 'answer-given', name: 'review', value })).toBe(work)
})

test('what needs a step that has failed is skipped, and what needs that', () => {
  const work = atWork([
    step(1, { status: 'running', tries: 1, said: false, thoughts: 'No.' }),
    step(2, { needs: [1] }),
    step(3, { needs: [2] }),
    step(4),
  ])
  const ended = { type: 'round-ended', outcome: { class: 'worked' }, counts: true, changed: [] }
  const session = { ...emptyState(SESSION), running: { part: 'work' } } as never
  const { steps } = foldTeam(work, ended as unknown as SessionEvent, session)
  expect(steps.map(({ status }) => status)).toEqual(['failed', 'skipped', 'skipped', 'to-do'])
  expect(steps[2]?.missing).toBe('It needs step 2, which has failed.')
})

const STOPPED = { ended: { outcome: { kind: 'interrupted', by: 'SIGINT' }, exitCode: 130, durationMs: 1 } }

/** The work after one event, in a session of which this is known. */
function within(session: object, work: TeamWork, event: object): TeamWork {
  return foldTeam(work, event as SessionEvent, { ...emptyState(SESSION), ...session } as SessionState)
}

test('gone on with, all that has to pass for a step is run again, and what was skipped is to be done', () => {
  const work = atWork([
    step(1, { status: 'checking', said: true, checks: ['a', 'b'], passed: 1 }),
    step(2, { status: 'failed', tries: 2, missing: 'It does not start.' }),
    step(3, { status: 'skipped', needs: [2], missing: 'It needs step 2, which has failed.' }),
  ])
  const { steps } = within(STOPPED, work, { type: 'session-resumed' })
  expect(steps.map(({ status, passed, tries, missing }) => [status, passed, tries, missing])).toEqual([
    ['checking', 0, 0, null],
    ['to-do', 0, 0, 'It does not start.'],
    ['to-do', 0, 0, null],
  ])
})

test('a claim that was refused becomes a step, and what was reviewed is not reviewed again for it', () => {
  const work = atWork([step(1, { status: 'done' })], { howToTest: [PASSED], isReviewed: true, isWritten: true })
  const next = after(work, { type: 'done-refused', detail: 'The gate "tests" failed.' })
  expect(next).toMatchObject({ isReviewed: true, howToTest: null, isWritten: false, mends: 1 })
  expect(next.steps[1]).toMatchObject({
    id: 2,
    kind: 'repair',
    description: 'The result was not accepted as done. Fix this: The gate "tests" failed.',
  })
})

test('a command that was broken off says nothing of a step or a test', () => {
  const event = { type: 'command-ran', status: 'broken-off', exitCode: null, durationMs: 1, output: '' }
  const checked = atWork([step(1, { status: 'checking', checks: ['a'] })])
  expect(after(checked, event)).toEqual(checked)
  const tested = atWork([step(1, { status: 'done' })], { howToTest: [{ ...PASSED, ran: null }] })
  expect(after(tested, event)).toEqual(tested)
})

test('a step keeps when it was begun, and forgets what was said in the round before', () => {
  const begin = { type: 'round-started', part: 'work', round: 1 }
  const first = within({ updatedAt: 1_000 }, atWork([step(1)]), begin)
  expect(first.steps[0]).toMatchObject({ status: 'running', since: 1_000 })
  const again = atWork(first.steps.map(each => ({ ...each, status: 'to-do' as const, tries: 1, said: true })))
  expect(within({ updatedAt: 2_000 }, again, begin).steps[0]).toMatchObject({ since: 1_000, said: null })
  const said = atWork([step(1, { status: 'running', said: true })])
  const refused = after(said, { type: 'answer-refused', name: 'step-1', problem: 'There is no `done`.' })
  expect(refused.steps[0]).toMatchObject({ said: null, missing: 'The answer could not be used: There is no `done`.' })
})

test('only commands of its own worker stand in the history of a step', () => {
  const item = { kind: 'command', command: 'ls', exitCode: 0, output: 'a.py\n' }
  const work = atWork([step(1, { status: 'running' })])
  expect(after(work, { type: 'item-completed', item }).steps[0]?.told).toEqual([
    { command: 'ls', exitCode: 0, output: 'a.py' },
  ])
  expect(after(work, { type: 'item-completed', item, instance: 'helper-1' })).toEqual(work)
})

describe('what comes next', () => {
  const next = (work: TeamWork) =>
    nextOfTeam({ ...emptyState(SESSION), directory: '/p', work } as SessionState, {
      thread: role => ({ agent: role, developerInstructions: '', model: null, effort: null }),
    })
  const lost = [step(1, { network: true }), step(2)]

  test('where nobody is to be asked, nobody is asked about the network', () => {
    const { options } = atWork([])
    const told = { isNetworkTold: true, hasNetwork: false }
    expect(next(atWork(lost, told)).kind).toBe('decide')
    expect(next(atWork(lost, { ...told, options: { ...options, accept: 'auto' } })).kind).toBe('round')
  })

  test('of a team that is not done the end names what has failed, not what was skipped for it', () => {
    const steps = [step(1, { status: 'failed' }), step(2, { status: 'skipped', needs: [1] })]
    const end = next(atWork(steps, { howToTest: [], isReviewed: true, isWritten: true }))
    expect(end).toMatchObject({ kind: 'end', outcome: { kind: 'needs-person', reason: 'Step 1 of 2 failed.' } })
  })

  test('while a secret is missing nothing is tested and reviewed', () => {
    const work = atWork([step(1, { status: 'done' }), waiting(2, 'API_KEY')], { isWritten: true })
    expect(next(work)).toMatchObject({ kind: 'end', outcome: { hint: { do: 'secret', keys: ['API_KEY'] } } })
  })
})
