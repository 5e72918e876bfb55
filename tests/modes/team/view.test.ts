import { describe, expect, test } from 'vitest'
import type { SessionState } from '../../../src/core/state/state.ts'
import { emptyState } from '../../../src/core/state/state.ts'
import { teamKind } from '../../../src/modes/team/team.ts'
import type { TeamWork } from '../../../src/modes/team/work.ts'
import {
  cardOfWork,
  ownBoard,
  sectionOfWork,
  statusOfWork,
  titleOfRound,
  wordsForStep,
  workReport,
} from '../../../src/tell/words/work.ts'
import { promise } from '../../support/promise.ts'
import { SESSION } from '../../support/session-events.ts'
import { atWork, NOT_RUN, PASSED, REVIEW, step, teamWith, waiting } from '../../support/team-work.ts'

const PROJECT = '/home/person/projects/hello-20261124-020000'
const ENDED = { outcome: { kind: 'done', verified: false }, exitCode: 0, durationMs: 1 } as const

function sessionWith(work: TeamWork, more: Partial<SessionState> = {}): SessionState {
  return { ...emptyState(SESSION), template: 'team', kind: teamKind, directory: PROJECT, work, ...more } as SessionState
}

const deciding = (id: string, secret?: { key: string }) =>
  ({
    decision: { id, title: '?', body: '', choices: [], default: '', since: 0, until: 0, secret },
  }) as unknown as Partial<SessionState>

describe('a team says where it is', () => {
  const steps = [
    step(1, { status: 'done' }),
    step(4, {
      status: 'running',
      description: 'Write the server.\nWith a port.',
      tries: 1,
      missing: 'It does not start.',
    }),
    step(5),
  ]
  const work = atWork(steps)

  test.each<[string, TeamWork, Partial<SessionState>, string | null]>([
    ['nothing is planned', teamWith(), {}, null],
    ['its plan is asked about', atWork(steps, { isAccepted: false }), deciding('plan'), 'asks about its plan'],
    ['a step is at work', work, {}, '1 of 3 steps done'],
    ['one has failed', atWork([step(1, { status: 'failed' }), step(2)]), {}, '0 of 2 steps done, 1 failed'],
    ['others go on', atWork([waiting(1, 'API_KEY'), step(2)]), {}, '0 of 2 steps done, needs API_KEY'],
    ['a secret is asked for', work, deciding('secret', { key: 'API_KEY' }), 'waits for a secret: API_KEY'],
    ['the network is asked about', work, deciding('network'), 'asks about the network'],
    ['all is done', atWork([step(1, { status: 'done' })]), {}, '1 of 1 step done'],
    ['it was tested', atWork([step(1, { status: 'done' })], { howToTest: [PASSED] }), {}, '1 of 1 step done'],
    ['it was stopped in a step', work, { ended: ENDED }, '1 of 3 steps done, 1 not checked'],
    [
      'it ended for a secret',
      atWork([step(1, { status: 'done' }), waiting(2, 'API_KEY')]),
      { ended: ENDED, ...deciding('secret', { key: 'API_KEY' }) },
      '1 of 2 steps done, 1 not checked, needs API_KEY',
    ],
    [
      'each step has passed its checks',
      atWork([step(1, { status: 'done', checks: ['npm test'], passed: 1 })]),
      { ended: ENDED },
      '1 of 1 step done',
    ],
    ['it was stopped before it had a plan', teamWith(), { ended: ENDED }, 'no plan'],
    ['a project was reviewed', teamWith({ review: REVIEW, isReviewed: true }, { mode: 'review' }), {}, 'reviewed'],
  ])('in a few words, when %s', (_, own, more, words) => {
    expect(statusOfWork(sessionWith(own, more))).toBe(words)
  })

  test('and calls each round by what it is for', () => {
    const title = (own: TeamWork, more: Partial<SessionState> = {}) => titleOfRound(sessionWith(own, more))
    expect(title(teamWith())).toEqual({ title: 'Plan', lines: [] })
    const refusedAnswers = { plan: { refusals: 1, problem: 'No steps.' } }
    expect(title(teamWith(), { refusedAnswers })?.title).toBe('Plan, try 2')
    expect(title(atWork(steps, { wanted: 'Use Flask.' }))).toEqual({
      title: 'Plan, changed as you asked',
      lines: ['Use Flask.'],
    })
    expect(title(work)).toEqual({
      title: 'Step 2 of 3, try 2: Write the server.',
      lines: ['With a port.', 'It does not start.'],
    })
    expect(title(atWork([waiting(1, 'API_KEY'), step(2)]))?.title).toBe('Step 2 of 2: Do 2.')
    const asked = deciding('secret', { key: 'API_KEY' })
    expect(title(atWork([waiting(1, 'API_KEY'), step(2)]), asked)?.title).toBe('Step 1 of 2: Do 1.')
    expect(title(atWork([step(1, { status: 'done' })]))?.title).toBe('How to test it')
    const done = { howToTest: [PASSED], repairs: 1 }
    expect(title(atWork([step(1, { status: 'done' })], done))?.title).toBe('Review after repair 1')
    expect(title(atWork([step(1, { status: 'done' })], { ...done, isReviewed: true }))).toBeNull()
  })

  test('and its own steps', () => {
    const words = (kind: string, name: string, own = work) => wordsForStep(sessionWith(own), { kind, name }).words
    expect(words('command', 'step 2, check 1: pytest -q')).toBe('step 2, check 1: pytest -q')
    expect(words('write', 'PROJECT_INFO.json')).toBe('writing PROJECT_INFO.json')
    expect(words('confirm-secret', 'API_KEY')).toBe('checking whether the secret API_KEY is stored')
    expect(words('look', 'project-files')).toBe('finding out how to start and test the project')
    const files = ['README.md', 'start.sh'].map(path => ({ path, text: '' }))
    expect(words('look', 'project-files', atWork(steps, { found: { files } }))).toBe(
      'files that say how to start and test the project: README.md, start.sh',
    )
  })

  test('and has a board of its steps, with what runs since when', () => {
    const own = atWork([
      step(1, { status: 'done' }),
      step(2, { status: 'failed', missing: 'It does not start.\nSee below.', tries: 2 }),
      step(3, { status: 'skipped', missing: 'It needs step 2, which has failed.' }),
      waiting(4, 'API_KEY'),
      step(5, { status: 'running' }),
      step(6, { kind: 'repair' }),
    ])
    const running = { startedAt: 4711 } as SessionState['running']
    const board = ownBoard(sessionWith(own, { running, modelInUse: 'gpt-5' }))
    expect(board?.rows.map(({ mark, text }) => [mark, text])).toEqual([
      ['done', 'Do 1.'],
      ['failed', 'Do 2. (failed 2 times; It does not start.)'],
      ['parked', 'Do 3. (skipped; It needs step 2, which has failed.)'],
      ['parked', 'Do 4. (needs the secret API_KEY)'],
      ['now', 'Do 5.'],
      ['to-do', 'repair: Do 6.'],
    ])
    expect(board?.rows[4]).toMatchObject({ id: '5', who: 'gpt-5', since: 4711 })
    expect(ownBoard(sessionWith(own, { ended: ENDED }))?.rows[4]).toMatchObject({
      mark: 'to-do',
      who: null,
      since: null,
    })
  })
})

describe('what came of it', () => {
  const own = atWork(
    [
      step(1, { status: 'done', thoughts: 'The server is there.', commands: 3, files: ['app.py', 'a', 'b', 'c', 'd'] }),
      waiting(2, 'API_KEY', { description: 'Ask the `service`\n- forged item' }),
      step(3, { needs: [2] }),
      step(4, { network: true, status: 'failed', missing: 'No network.' }),
    ],
    { review: REVIEW, howToTest: [PASSED, NOT_RUN], hasNetwork: false },
  )

  promise('T6')
  test('stands on the card: the steps with their marks, issues, where it is, how it is tested, what is missing', () => {
    expect(cardOfWork(sessionWith(own, { ended: ENDED }))).toEqual([
      {
        label: 'steps',
        text: '',
        rows: [
          { mark: 'done', text: '1  Do 1. (not checked)' },
          { mark: 'parked', text: '2  Ask the `service` (needs the secret API_KEY)' },
          { mark: 'to-do', text: '3  Do 3.' },
          { mark: 'failed', text: '4  Do 4. (failed; No network.)' },
        ],
      },
      { label: 'issues', text: '1 high, 1 low: It does not start.' },
      { label: 'project', text: PROJECT, isToCopy: true },
      {
        label: 'to test',
        text: '',
        rows: [
          { text: 'npm test (ran here: exit 0, 3.2 s)' },
          { text: './start.sh (not run here: needs the network)' },
        ],
      },
      { label: 'missing', text: 'the secret API_KEY, for step 2; the network, for step 4' },
    ])
  })

  test('of many steps those come first on the card that are not done', () => {
    const many = Array.from({ length: 9 }, (_, n) => step(n + 1, { status: n === 7 ? 'failed' : 'done' }))
    expect(cardOfWork(sessionWith(atWork(many)))[0]?.rows?.[0]?.text).toBe('8  Do 8. (failed)')
  })

  test('stands in the report, with what a person has to give and what is done then', () => {
    const section = sectionOfWork(sessionWith(own, { ended: ENDED }))
    const there = `-C ${PROJECT}`
    expect(section?.text.split('\n')).toEqual([
      `Where it is: \`${PROJECT}\``,
      '',
      'The goal, as the planner understood it: Say hello.',
      '',
      'What is missing:',
      `- The secret \`API_KEY\`, for step 2: What is API_KEY? With it, the team works on step 2, then step 3; then it tests and reviews the project. To give it: \`codemachine secret set API_KEY ${there}; codemachine resume ${there}\``,
      `- The network: step 4 needs it, but commands have none. To continue with it: \`codemachine resume --network ${there}\``,
      '',
      'How to test it:',
      `- the tests: \`cd ${PROJECT} && npm test\` (ran here: exit 0, 3.2 s)`,
      `- starts it: \`cd ${PROJECT} && ./start.sh\` (not run here: needs the network)`,
      '',
      'Not checked: step 1. Its worker named no command that checks it.',
      '',
      'The review: It says hello.',
      '',
      'Issues:',
      '- high, bug: It does not start.',
      '- low, docs: No port is named.',
      '',
      'Suggestions:',
      '- Name the port.',
    ])
    expect(section?.table?.rows).toEqual([
      ['1', 'Do 1.', 'done, not checked', 'The server is there. (3 commands; app.py, a, b, c, and 1 more)'],
      ['2', "Ask the 'service' - forged item", 'needs a secret: API_KEY', ''],
      ['3', 'Do 3.', 'to do', ''],
      ['4', 'Do 4.', 'failed', 'No network.'],
    ])
    expect(section?.tellsBoard).toBe(true)
  })

  test('tells a person why a secret that they gave does not work', () => {
    const [, second] = own.steps
    const waitsFor = { ...(second?.waitsFor ?? never()), reason: 'The service says 401.', problem: 'Its check fails.' }
    const section = sectionOfWork(sessionWith(atWork([step(2, { status: 'needs-secret', waitsFor })])))
    expect(section?.text).toContain(
      'The stored value does not work: The service says 401. The value that was given does not work: Its check fails.',
    )
  })

  test('is data for programs', () => {
    const data = workReport(sessionWith(own), null, true) as unknown as Record<string, unknown>
    expect(data).toMatchObject({
      template: 'team',
      status: '1 of 4 steps done, 1 failed, needs API_KEY',
      mode: 'all',
      project: PROJECT,
      steps: [{ id: 1, status: 'done' }, { id: 2, secret: 'API_KEY' }, { id: 3 }, { id: 4, network: true }],
      howToTest: [{ run: 'npm test' }, { run: './start.sh' }],
      review: REVIEW,
    })
  })

  test('stays within the bounds of every view, however much was written', () => {
    const huge = '`語`'.repeat(1_300)
    const steps = Array.from({ length: 200 }, (_, n) =>
      waiting(n + 1, `KEY_${n}`, {
        description: huge,
        thoughts: huge,
        missing: huge,
        files: Array.from({ length: 50 }, () => huge),
      }),
    )
    const review = {
      ...REVIEW,
      issues: Array.from({ length: 50 }, () => ({ type: huge, description: huge, severity: 'high' as const })),
      suggestions: Array.from({ length: 50 }, () => huge),
    }
    const session = sessionWith(atWork(steps, { review, howToTest: [{ ...PASSED, command: huge }] }))
    const { problem } = workReport(session, null, true) as { problem?: string }
    expect(problem).toBeUndefined()
    expect(sectionOfWork(session)?.text).toContain('Suggestions:')
    expect(cardOfWork(session)).toHaveLength(5)
  })
})

function never(): never {
  throw new Error('There is no such step.')
}
