import { describe, expect, test } from 'vitest'
import { executionSummary } from '../../../src/modes/team/execution-summary.ts'
import { projectInfo, waysToTest, whatIsMissing } from '../../../src/modes/team/project-info.ts'
import type { HowToTest, ToldCommand } from '../../../src/modes/team/work.ts'
import { promise } from '../../support/promise.ts'
import { atWork, NOT_RUN, PASSED, REVIEW, step, teamWith, waiting } from '../../support/team-work.ts'

const PROJECT = '/home/person/projects/hello-20261124-020000'

describe('PROJECT_INFO.json', () => {
  promise('T3')
  test('has the goal as typed, the directory, plan and review as they were answered, and how to test it', () => {
    const work = atWork(
      [step(1, { status: 'done', thoughts: 'It is there.', missing: 'An old try.', files: ['app.py'] })],
      {
        review: REVIEW,
        howToTest: [PASSED, NOT_RUN],
      },
    )
    const info = JSON.parse(projectInfo({ directory: PROJECT, work }))
    expect(info).toEqual({
      goal: 'a service that says hello',
      project_dir: PROJECT,
      plan: { goal: 'Say hello.', steps: [{ id: 1, description: 'Do 1.' }] },
      review: REVIEW,
      how_to_test: [
        {
          for: 'the tests',
          command: `cd ${PROJECT} && npm test`,
          run: 'npm test',
          ran: 'ran here: exit 0, 3.2 s',
          exit_code: 0,
          duration_ms: 3_200,
        },
        {
          for: 'starts it',
          command: `cd ${PROJECT} && ./start.sh`,
          run: './start.sh',
          ran: 'not run here: needs the network',
          exit_code: null,
          duration_ms: null,
        },
      ],
      steps: [
        {
          id: 1,
          description: 'Do 1.',
          kind: 'planned',
          status: 'done',
          thoughts: 'It is there.',
          missing: null,
          checks: 0,
          commands: 0,
          files: ['app.py'],
        },
      ],
      missing: { secrets: [], network: null },
    })
  })

  test('of a session that came to nothing has null for plan and review', () => {
    const info = JSON.parse(projectInfo({ directory: PROJECT, work: teamWith() }))
    expect(info).toMatchObject({ plan: null, review: null, how_to_test: [], steps: [] })
  })

  test.each<[NonNullable<HowToTest['ran']> | null, string]>([
    [{ status: 'failed', exitCode: 1, durationMs: 61_400 }, 'ran here: exit 1, 1 min 1 s'],
    [
      { status: 'timed-out', exitCode: null, durationMs: 600_000 },
      'ran here: did not end by itself; codemachine ended it after 10 min',
    ],
    [{ status: 'not-started', exitCode: null, durationMs: 0 }, 'not run here: it could not be started'],
    [{ status: 'broken-off', exitCode: null, durationMs: 2_000 }, 'ran here: interrupted after 2 s'],
    [null, 'not run here: the session has not reached it'],
  ])('says of %j: %s', (ran, words) => {
    expect(waysToTest({ howToTest: [{ ...PASSED, ran }] }, PROJECT)[0]?.ran).toBe(words)
  })

  test('a directory with blanks and quotes is one word of the line to type', () => {
    const [way] = waysToTest({ howToTest: [PASSED] }, "/home/it's me/hello")
    expect(way?.command).toBe("cd '/home/it'\\''s me/hello' && npm test")
  })
})

describe('what is missing', () => {
  test('names each secret once, with all steps that wait for it, those that come after, and what to type', () => {
    const steps = [
      step(1, { status: 'done' }),
      waiting(2, 'API_KEY'),
      step(3, { needs: [2] }),
      step(4, { needs: [1] }),
      waiting(5, 'API_KEY'),
      step(6, { needs: [3] }),
      waiting(7, 'OTHER_KEY', { needs: [1] }),
    ]
    const there = `-C ${PROJECT}`
    expect(whatIsMissing(atWork(steps), PROJECT).secrets).toEqual([
      {
        key: 'API_KEY',
        question: 'What is API_KEY?',
        reason: null,
        problem: null,
        steps: [2, 5],
        after: [3, 6],
        command: `codemachine secret set API_KEY ${there}; codemachine resume ${there}`,
      },
      expect.objectContaining({ key: 'OTHER_KEY', steps: [7], after: [] }),
    ])
  })

  test('names the network only where commands do not have it and a step that needs it is not done', () => {
    const steps = [step(1, { network: true, status: 'done' }), step(2, { network: true, status: 'failed' }), step(3)]
    const missing = whatIsMissing(atWork(steps, { hasNetwork: false }), PROJECT)
    expect(missing.network).toEqual({ steps: [2], command: `codemachine resume --network -C ${PROJECT}` })
    expect(whatIsMissing(atWork(steps, { hasNetwork: true }), PROJECT).network).toBeNull()
    expect(whatIsMissing(atWork(steps.slice(0, 1), { hasNetwork: false }), PROJECT).network).toBeNull()
  })
})

describe('what the reviewer is told of what was run', () => {
  const told = (n: number, more: Partial<ToldCommand> = {}): ToldCommand => ({
    command: `command ${n}`,
    exitCode: 0,
    output: `output ${n}`,
    ...more,
  })

  test('has the commands of each step in their order, with return codes and ends of output, and the tests', () => {
    const work = atWork(
      [
        step(1, {
          status: 'done',
          commands: 30,
          told: [told(1), told(2, { exitCode: 2 })],
          files: ['a.py'],
          thoughts: 'Fine.',
        }),
        step(2, { status: 'failed', missing: 'No server.' }),
      ],
      { howToTest: [PASSED] },
    )
    expect(executionSummary(work, PROJECT)).toEqual({
      steps: [
        {
          step: 1,
          description: 'Do 1.',
          status: 'done',
          thoughts: 'Fine.',
          missing: null,
          commands_run: 30,
          files: ['a.py'],
          last_commands: [
            { command: 'command 1', returncode: 0, output: 'output 1' },
            { command: 'command 2', returncode: 2, output: 'output 2' },
          ],
        },
        expect.objectContaining({ step: 2, status: 'failed', missing: 'No server.', last_commands: [] }),
      ],
      tests: [{ for: 'the tests', run: 'npm test', ran: 'ran here: exit 0, 3.2 s' }],
    })
  })

  test('keeps to 60,000 characters: what has failed is told first, and then the newest', () => {
    const long = 'x'.repeat(390)
    const steps = Array.from({ length: 30 }, (_, n) =>
      step(n + 1, {
        status: n === 3 ? 'failed' : 'done',
        commands: 20,
        told: Array.from({ length: 20 }, (_, at) => told(at, { output: long, exitCode: n === 0 && at === 0 ? 1 : 0 })),
      }),
    )
    const { steps: summed } = executionSummary(atWork(steps), PROJECT)
    const count = summed.map(({ last_commands }) => last_commands.length)
    // The one that failed in step 1, all of the step that has failed, and those of the last steps.
    expect(count.slice(0, 5)).toEqual([1, 0, 0, 20, 0])
    expect(summed[0]?.last_commands[0]?.returncode).toBe(1)
    expect(count.at(-1)).toBe(20)
    const size = JSON.stringify(executionSummary(atWork(steps), PROJECT)).length
    expect(size).toBeLessThanOrEqual(60_000)
    expect(size).toBeGreaterThan(55_000)
  })

  test('keeps to that bound however much agents have said, and whatever it is made of', () => {
    for (const letter of ['x', '\u0001', '語', '"', '\n']) {
      const huge = letter.repeat(4_000)
      const steps = Array.from({ length: 200 }, (_, n) =>
        step(n + 1, {
          status: 'failed',
          description: huge,
          thoughts: huge,
          missing: huge,
          files: Array.from({ length: 50 }, () => huge),
          told: Array.from({ length: 20 }, (_, at) =>
            told(at, { command: huge.slice(0, 400), output: huge.slice(0, 400) }),
          ),
        }),
      )
      const way = { for: huge, command: huge, ran: null, why: huge }
      const summary = executionSummary(atWork(steps, { howToTest: Array.from({ length: 10 }, () => way) }), PROJECT)
      expect(JSON.stringify(summary).length).toBeLessThanOrEqual(60_000)
      expect(summary.steps).toHaveLength(200)
    }
  })
})
