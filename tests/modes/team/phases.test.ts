import { describe, expect, test } from 'vitest'
import type { Step } from '../../../src/core/template.ts'
import type { TeamReview } from '../../../src/modes/team/work.ts'
import { incident, promise } from '../../support/promise.ts'
import {
  asksFor,
  fallsShort,
  PROJECT,
  planOf,
  playTeam,
  reviewOf,
  TeamPlay,
  worksOut,
} from '../../support/team-session.ts'
import { PASSED } from '../../support/team-work.ts'

const AUTO = { accept: 'auto' } as const
const DONE = { kind: 'done', verified: false }

/** What was done, a word or two each. */
function wordsOf(steps: readonly Step[]): string[] {
  return steps.map(step => {
    switch (step.kind) {
      case 'round':
        return step.round.part === 'work' ? (step.round.answer?.name ?? '') : (step.round.part ?? '')
      case 'decide':
        return `decide ${step.decision.id}`
      case 'command':
        return `run ${step.run}`
      case 'confirm-secret':
        return `confirm ${step.key}`
      default:
        return step.kind
    }
  })
}

promise(
  'T3',
  'A project is planned, done step by step, tested and reviewed; PROJECT_INFO.json says what came of it before it is claimed done',
)
test('it is planned, done step by step, tested and reviewed, and what came of it is written before it is claimed done', async () => {
  const { play, outcome } = await playTeam({
    options: AUTO,
    plan: () => planOf(2),
    work: step => worksOut(`Part ${step} is made.`, step === 1 ? ['node --check a.js'] : []),
    test: () => ({
      commands: [
        { for: 'runs its tests', command: 'node --test', ends_by_itself: true, needs_network: false },
        { for: 'starts it', command: './start.sh', ends_by_itself: false, needs_network: false },
        { for: 'asks it', command: 'curl localhost', ends_by_itself: true, needs_network: true },
      ],
    }),
  })
  expect(outcome).toEqual(DONE)
  expect(wordsOf(play.steps)).toEqual([
    'plan',
    'step-1',
    'run node --check a.js',
    'step-2',
    'look',
    'test',
    'run node --test',
    'review',
    'write',
    'claim',
    'end',
  ])
  expect(play.work.howToTest).toMatchObject([
    { command: 'node --test', ran: { status: 'passed', exitCode: 0, durationMs: 3_000 }, why: null },
    { command: './start.sh', ran: null, why: 'does not end by itself' },
    { command: 'curl localhost', ran: null, why: 'needs the network' },
  ])
})

promise('T8')
describe('a command of how to test it that fails', () => {
  const TESTED = { commands: [{ for: 'its tests', command: 'npm test', ends_by_itself: true, needs_network: false }] }
  const fails = { status: 'failed', output: 'not ok 1' } as const

  test('becomes a step, and is run again after it', async () => {
    const { play, outcome } = await playTeam({
      options: AUTO,
      test: () => TESTED,
      command: (_, n) => (n === 1 ? fails : {}),
    })
    expect(outcome).toEqual(DONE)
    expect(play.statuses).toEqual(['1 done', '2 done'])
    expect(play.inputs('work')[1]).toContain('- `npm test` (its tests): exit code 1')
    expect(wordsOf(play.steps).filter(word => word === 'run npm test')).toHaveLength(2)
  })

  incident('false done', 'A team was done although a command that tests its work failed', {
    since: '2026-11-24',
    fixed: '2026-11-29',
    foundBy: 'a trial',
  })
  test.each([0, 1, 2] as const)('stands in the way of done after %i repairs, until it passes', async repair => {
    let isMended = false
    const play = await TeamPlay.begin({
      options: { ...AUTO, repair },
      test: () => TESTED,
      command: () => (isMended ? {} : fails),
    })
    const outcome = await play.run()
    expect(outcome).toMatchObject({
      kind: 'needs-person',
      reason: 'A command that tests it did not pass: `npm test`.',
      hint: { text: expect.stringContaining('To test again: ') },
    })
    expect(play.work.steps).toHaveLength(1 + repair)
    isMended = true
    expect(await play.resume()).toEqual(DONE)
  })
})

test('a worker is told the goal, its step, and what the steps before it came to', async () => {
  const { play } = await playTeam({
    options: AUTO,
    plan: () => planOf(2),
    work: step => worksOut(`Made number ${step}.`),
  })
  const [, second = ''] = play.inputs('work')
  expect(second).toContain('a service that says hello')
  expect(second).toContain('Do part 2.')
  expect(second).toContain('Made number 1.')
})

test.each(['plan', 'work', 'test', 'review'])(
  'what a person says between two rounds is told the next one, of the part %s too',
  async part => {
    let isSaid = false
    const { play } = await playTeam({
      options: AUTO,
      before: step => {
        if (isSaid || step.kind !== 'round' || step.round.part !== part) return []
        isSaid = true
        return [{ type: 'steered', round: null, text: 'In Italian, please.', delivered: false }]
      },
    })
    expect(play.inputs(part)[0]).toContain('In Italian, please.')
  },
)

test('who only looks can write nothing, and a worker without tools has no shell', async () => {
  const usual = await playTeam({ options: AUTO })
  const threads = usual.play.steps.flatMap(step =>
    step.kind === 'round' ? [[step.round.part, step.round.thread]] : [],
  )
  expect(threads).toMatchObject([
    ['plan', { readOnly: true }],
    ['work', { tools: [{ name: 'run_shell' }, { name: 'ask_human' }] }],
    ['test', { readOnly: true }],
    ['review', { readOnly: true }],
  ])
  const { play } = await playTeam({
    options: { ...AUTO, stepwise: true },
    work: () => ({ says: { command: '', done: true, thoughts: 'Made.' } }),
  })
  const round = play.steps.flatMap(step => (step.kind === 'round' && step.round.part === 'work' ? [step.round] : []))[0]
  expect(round).toMatchObject({ thread: { noShell: true }, stepwise: { mostCommands: 60 } })
  expect(round?.thread.tools).toBeUndefined()
})

describe('the plan', () => {
  promise(
    'T5',
    'The plan is shown to a person, who may change it; where nobody is there it is carried out; what is done stays when it is changed',
  )
  test('is shown to a person, who changes it and accepts it', async () => {
    const { play, outcome } = await playTeam({
      plan: n => planOf(n),
      decide: ({ id }, n) => (id === 'plan' ? (n === 1 ? ['change', 'Two parts, please.'] : ['accept']) : null),
    })
    expect(outcome).toEqual(DONE)
    expect(wordsOf(play.steps).slice(0, 6)).toEqual(['plan', 'decide plan', 'plan', 'decide plan', 'step-1', 'step-2'])
    expect(play.inputs('plan')[1]).toContain('Two parts, please.')
  })

  test('is carried out as it comes where nobody is there', async () => {
    const { outcome } = await playTeam({})
    expect(outcome).toEqual(DONE)
  })

  test('is not carried out where a person stops there, and is asked about again later', async () => {
    const play = await TeamPlay.begin({ decide: (_, n) => [n === 1 ? 'stop' : 'accept'] })
    expect(await play.run()).toMatchObject({ kind: 'needs-person', hint: { do: 'decide' } })
    expect(await play.resume()).toEqual(DONE)
    expect(wordsOf(play.steps)).toEqual([
      'plan',
      'decide plan',
      'end',
      'decide plan',
      'step-1',
      'look',
      'test',
      'review',
      'write',
      'claim',
      'end',
    ])
  })

  promise('T5')
  test('that a person changes in the middle keeps what is done, and drops the rest', async () => {
    let isSaid = false
    const { play, outcome } = await playTeam({
      options: AUTO,
      plan: n =>
        n === 1 ? planOf(3) : { goal: 'Hello, in Italian.', steps: [{ id: 7, description: 'Say ciao.', needs: [1] }] },
      before: step => {
        if (isSaid || step.kind !== 'round' || step.round.answer?.name !== 'step-2') return []
        isSaid = true
        return [{ type: 'replan-asked', text: 'In Italian.' }]
      },
    })
    expect(outcome).toEqual(DONE)
    expect(play.statuses).toEqual(['1 done', '7 done'])
    expect(play.inputs('plan')[1]).toContain('In Italian.')
  })

  test('that is to be changed in two ways, one after the other, is changed in both', async () => {
    let isSaid = false
    const { play } = await playTeam({
      options: AUTO,
      before: step => {
        if (isSaid || step.kind !== 'round' || step.round.part !== 'work') return []
        isSaid = true
        return [
          { type: 'replan-asked', text: 'In Italian.' },
          { type: 'replan-asked', text: 'And in capitals.' },
        ]
      },
    })
    expect(play.inputs('plan')[1]).toContain('In Italian.\nAnd in capitals.')
  })

  test('that is changed may name the steps that are done once more, and none of these is done again', async () => {
    let isSaid = false
    const { play, outcome } = await playTeam({
      options: AUTO,
      plan: n => planOf(n === 1 ? 3 : 2),
      before: step => {
        if (isSaid || step.kind !== 'round' || step.round.answer?.name !== 'step-2') return []
        isSaid = true
        return [{ type: 'replan-asked', text: 'Two are enough.' }]
      },
    })
    expect(outcome).toEqual(DONE)
    expect(play.inputs('work')).toHaveLength(2)
    expect(play.statuses).toEqual(['1 done', '2 done'])
  })

  test('that is changed while an issue is mended has the issue mended all the same', async () => {
    let isSaid = false
    const { play, outcome } = await playTeam({
      options: AUTO,
      plan: n => planOf(n),
      review: n => (n <= 2 ? reviewOf('high') : reviewOf()),
      before: step => {
        if (isSaid || step.kind !== 'round' || step.round.answer?.name !== 'step-2') return []
        isSaid = true
        return [{ type: 'replan-asked', text: 'In Italian, too.' }]
      },
    })
    expect(outcome).toEqual(DONE)
    expect(play.work.steps.map(({ kind, status }) => [kind, status])).toEqual([
      ['planned', 'done'],
      ['planned', 'done'],
      ['repair', 'done'],
    ])
  })

  test('alone ends the session, and going on carries it out', async () => {
    const play = await TeamPlay.begin({ options: { mode: 'plan' } })
    expect(await play.run()).toEqual({ kind: 'planned' })
    expect(wordsOf(play.steps)).toEqual(['plan', 'write', 'end'])
    expect(await play.resume()).toEqual(DONE)
    expect(play.statuses).toEqual(['1 done'])
  })
})

describe('a step', () => {
  promise(
    'T6',
    'A step is done only if its worker says so and its commands pass; one that is not is tried once more, then the session cannot end as done, and the other steps continue; one without such commands is told as not checked',
  )
  test('that is not done is done once more with what was missing, then it has failed, and the other steps continue', async () => {
    const { play, outcome } = await playTeam({
      options: AUTO,
      plan: () => planOf(3, { 3: { needs: [1] } }),
      work: (step, n) => (step === 1 ? fallsShort(`Try ${n} does not start.`) : worksOut()),
    })
    expect(play.statuses).toEqual(['1 failed', '2 done', '3 skipped'])
    expect(play.inputs('work')[1]).toContain('Try 1 does not start.')
    expect(wordsOf(play.steps)).toEqual([
      'plan',
      'step-1',
      'step-1',
      'step-2',
      'look',
      'test',
      'review',
      'write',
      'end',
    ])
    expect(outcome).toMatchObject({ kind: 'needs-person', hint: { do: 'say' } })
  })

  promise('T6')
  test('is not done while a command that has to pass fails', async () => {
    const { play, outcome } = await playTeam({
      options: AUTO,
      work: () => worksOut('Made.', ['true', 'node --test']),
      command: (run, n) => (run === 'node --test' && n === 1 ? { status: 'failed', output: 'not ok 1' } : {}),
    })
    expect(outcome).toEqual(DONE)
    expect(wordsOf(play.steps).slice(1, 7)).toEqual([
      'step-1',
      'run true',
      'run node --test',
      'step-1',
      'run true',
      'run node --test',
    ])
    expect(play.inputs('work')[1]).toMatch(/`node --test` did not pass \(exit code 1\):\nnot ok 1/)
  })

  test('that a person breaks into, or a usage limit, is begun again, which is no try', async () => {
    const { play, outcome } = await playTeam({
      options: AUTO,
      work: (_, n) =>
        n <= 3
          ? { ends: { class: n === 1 ? 'window' : 'interrupted', message: null } }
          : n === 4
            ? fallsShort()
            : worksOut(),
    })
    expect(outcome).toEqual(DONE)
    expect(play.work.steps[0]).toMatchObject({ status: 'done', tries: 1 })
  })

  test('whose round the server refuses once is begun again, which is no try, and a second time in a row one', async () => {
    const { play } = await playTeam({
      options: AUTO,
      plan: () => planOf(2),
      work: (step, n) =>
        n === 1 || (step === 2 && n === 2) ? { ends: { class: 'refused', message: 'No.' } } : worksOut(),
    })
    expect(play.work.steps.map(({ status, tries }) => [status, tries])).toEqual([
      ['done', 0],
      ['done', 1],
    ])
    expect(play.work.steps[1]?.missing).toBe('Its round ended early: No.')
  })

  test('whose answers cannot be read has failed, and the session goes on', async () => {
    const { play, outcome } = await playTeam({
      options: AUTO,
      plan: () => planOf(2),
      work: step => (step === 1 ? { says: 'It is made.' } : worksOut()),
    })
    expect(play.statuses).toEqual(['1 failed', '2 done'])
    expect(outcome).toMatchObject({ kind: 'needs-person' })
  })

  test.each([false, true])(
    'whose rounds ask for secrets and end with prose each is not given up for that, stepwise: %s',
    async stepwise => {
      const { play, outcome } = await playTeam({
        options: { ...AUTO, stepwise },
        plan: () => planOf(2),
        work: (step, n) => {
          if (step === 1 && n <= 3) return { ...asksFor(`KEY_${n}`), says: 'I have asked for it.' }
          return stepwise ? { says: { command: '', done: true, thoughts: 'Made.' } } : worksOut()
        },
        decide: ({ id }) => (id === 'secret' ? ['give'] : null),
      })
      expect(outcome).toEqual(DONE)
      expect(play.statuses).toEqual(['1 done', '2 done'])
    },
  )

  test('that has failed is tried again once a person goes on, with those that needed it', async () => {
    let isMended = false
    const play = await TeamPlay.begin({
      options: AUTO,
      plan: () => planOf(2, { 2: { needs: [1] } }),
      work: () => (isMended ? worksOut() : fallsShort()),
    })
    expect(await play.run()).toMatchObject({ kind: 'needs-person' })
    isMended = true
    expect(await play.resume()).toEqual(DONE)
    expect(play.statuses).toEqual(['1 done', '2 done'])
  })

  test('in which a secret was found in a file is begun again and told of it, and fails after a few of these', async () => {
    const { play } = await playTeam({
      options: AUTO,
      work: () => ({
        during: [
          {
            type: 'shell-ran',
            round: 1,
            command: './save.sh',
            secrets: ['KEY'],
            status: 'passed',
            exitCode: 0,
            stdout: '',
            stderr: '',
            durationMs: 1,
            problem: null,
            leaked: ['config.json'],
          },
        ],
        ends: { class: 'interrupted', message: null },
      }),
    })
    expect(play.statuses).toEqual(['1 failed'])
    expect(play.inputs('work').length).toBeLessThanOrEqual(6)
    expect(play.inputs('work')[1]).toContain('config.json')
  })
})

describe('one step alone', () => {
  test('has neither plan nor review', async () => {
    const { play, outcome } = await playTeam({ options: { mode: 'work', step: 'Add a licence.' } })
    expect(outcome).toEqual(DONE)
    expect(wordsOf(play.steps)).toEqual(['step-1', 'write', 'claim', 'end'])
    expect(play.inputs('work')[0]).toContain('Add a licence.')
  })

  test('is done though a review before it has found what is bad: it may be what mends that', async () => {
    const review = reviewOf('high') as TeamReview
    const earlier = { plan: null, review, howToTest: null }
    const { outcome } = await playTeam({ options: { mode: 'work', step: 'Mend it.', earlier } })
    expect(outcome).toEqual(DONE)
  })

  test('that is tried again, or mended, leaves what the session before it knew of testing', async () => {
    const howToTest = [PASSED]
    let tries = 0
    const play = await TeamPlay.begin({
      options: { mode: 'work', step: 'Add a licence.', earlier: { plan: null, review: null, howToTest } },
      work: () => (++tries <= 2 ? fallsShort() : worksOut()),
      claim: n => (n === 1 ? 'The gate fails.' : null),
    })
    expect(await play.run()).toMatchObject({ kind: 'needs-person' })
    expect(await play.resume()).toEqual(DONE)
    expect(play.statuses).toEqual(['1 done', '2 done'])
    expect(play.work.howToTest).toEqual(howToTest)
  })

  test('is not done if it fails', async () => {
    const { outcome } = await playTeam({ options: { mode: 'work', step: 'Add a licence.' }, work: () => fallsShort() })
    expect(outcome).toMatchObject({ kind: 'needs-person' })
  })
})

describe('a review', () => {
  test('alone answers, whatever it finds', async () => {
    const { play, outcome } = await playTeam({ options: { mode: 'review' }, review: () => reviewOf('high') })
    expect(outcome).toEqual({ kind: 'answered' })
    expect(wordsOf(play.steps)).toEqual(['review', 'write', 'end'])
    expect(play.work.review?.issues).toHaveLength(1)
  })

  test('is told the goal, the plan and what was run', async () => {
    const { play } = await playTeam({
      options: AUTO,
      work: () => ({
        ...worksOut(),
        changed: ['start.sh'],
        during: [
          {
            type: 'shell-ran',
            round: 1,
            command: 'sh start.sh',
            secrets: [],
            status: 'failed',
            exitCode: 3,
            stdout: 'hello out',
            stderr: 'hello err',
            durationMs: 1,
            problem: null,
          },
        ],
      }),
    })
    const [input = ''] = play.inputs('review')
    for (const told of [
      '"goal"',
      '"planner_json"',
      '"execution_summary"',
      'sh start.sh',
      'hello out',
      'hello err',
      'start.sh',
    ])
      expect(input).toContain(told)
  })

  promise(
    'T8',
    'What a review finds of high severity, and what fails of how to test it, is mended as often as is said, and stands in the way of done',
  )
  test('with an issue of high severity has it mended, and the project is tested and reviewed again', async () => {
    const { play, outcome } = await playTeam({
      options: AUTO,
      review: n => (n === 1 ? reviewOf('high', 'low', 'high') : reviewOf('medium')),
    })
    expect(outcome).toEqual(DONE)
    expect(play.statuses).toEqual(['1 done', '2 done', '3 done'])
    expect(wordsOf(play.steps)).toEqual([
      'plan',
      'step-1',
      'look',
      'test',
      'review',
      'step-2',
      'step-3',
      'look',
      'test',
      'review',
      'write',
      'claim',
      'end',
    ])
    expect(play.inputs('work')[1]).toContain('Issue 1.')
  })

  promise('T8')
  test.each([0, 1, 2, 3])('has issues mended at most %i times, and then a person is needed', async repair => {
    const { play, outcome } = await playTeam({ options: { ...AUTO, repair }, review: () => reviewOf('high') })
    expect(outcome).toMatchObject({ kind: 'needs-person' })
    expect(play.inputs('review')).toHaveLength(repair + 1)
    expect(play.work.steps).toHaveLength(repair + 1)
  })

  test('is made again once a person goes on who has looked at what it found', async () => {
    const play = await TeamPlay.begin({
      options: { ...AUTO, repair: 0 },
      review: n => (n === 1 ? reviewOf('high') : reviewOf()),
    })
    expect(await play.run()).toMatchObject({ kind: 'needs-person' })
    expect(await play.resume()).toEqual(DONE)
  })

  test('has issues mended anew once a person goes on', async () => {
    const play = await TeamPlay.begin({ options: AUTO, review: n => (n <= 3 ? reviewOf('high') : reviewOf()) })
    expect(await play.run()).toMatchObject({ kind: 'needs-person' })
    expect(await play.resume()).toEqual(DONE)
    expect(play.statuses).toEqual(['1 done', '2 done', '3 done'])
  })
})

describe('a claim that is refused', () => {
  test('becomes a step that mends it', async () => {
    const { play, outcome } = await playTeam({ options: AUTO, claim: n => (n === 1 ? 'The gate `lint` fails.' : null) })
    expect(outcome).toEqual(DONE)
    expect(play.inputs('work')[1]).toContain('The gate `lint` fails.')
    expect(play.work.steps.map(({ kind }) => kind)).toEqual(['planned', 'repair'])
  })

  test('three times needs a person, and once that goes on it becomes a step again', async () => {
    const play = await TeamPlay.begin({ options: AUTO, claim: n => (n <= 5 ? 'The gate fails.' : null) })
    expect(await play.run()).toMatchObject({ kind: 'needs-person' })
    expect(play.work.steps).toHaveLength(4)
    expect(await play.resume()).toEqual(DONE)
    expect(play.work.steps).toHaveLength(5)
  })
})

describe('without the network', () => {
  const NEEDY = () => planOf(2, { 2: { network: true } })

  promise(
    'T9',
    'Without the network a person is asked once, and it is said which steps will fail; one who allows it has the session go on with it at once',
  )
  test('a plan that needs it is asked about once, and it is said which steps will fail', async () => {
    const { play } = await playTeam({ plan: NEEDY })
    const asked = play.steps.filter(step => step.kind === 'decide' && step.decision.id === 'network')
    expect(asked).toHaveLength(1)
    const notes = play.steps.flatMap(step => (step.kind === 'note' ? [step.text] : []))
    expect(notes).toHaveLength(1)
    expect(notes[0]).toMatch(/^Step 2 needs the network/)
    expect(notes[0]).toContain(`--network -C ${PROJECT}`)
  })

  promise('T9')
  test('a person who allows it has the session go on with it', async () => {
    const play = await TeamPlay.begin({ plan: NEEDY, decide: ({ id }) => (id === 'network' ? ['allow'] : null) })
    expect(await play.run()).toMatchObject({ kind: 'needs-person', hint: { do: 'network', directory: PROJECT } })
    expect(await play.resume({ network: true })).toEqual(DONE)
    const commands = play.inputs('work')
    expect(commands.at(-1)).toContain('Commands reach the network.')
  })

  test('a person who has allowed it, and goes on without it, is told and asked again', async () => {
    const play = await TeamPlay.begin({
      plan: NEEDY,
      decide: ({ id }, n) => (id === 'network' ? [n === 1 ? 'allow' : 'go-on'] : null),
    })
    expect(await play.run()).toMatchObject({ hint: { do: 'network' } })
    expect(await play.resume()).toEqual(DONE)
    expect(wordsOf(play.steps).slice(2, 7)).toEqual(['note', 'decide network', 'end', 'note', 'decide network'])
  })

  test('a step that needs it and has failed is tried again with it, which the end says', async () => {
    const { outcome } = await playTeam({ plan: NEEDY, work: step => (step === 2 ? fallsShort() : worksOut()) })
    expect(outcome).toMatchObject({
      reason: 'Step 2 of 2 failed.',
      hint: {
        text: expect.stringContaining(`with the network for 2: codemachine resume --network -C ${PROJECT}`),
        network: true,
      },
    })
    const { outcome: other } = await playTeam({ plan: NEEDY, work: step => (step === 1 ? fallsShort() : worksOut()) })
    expect(other).toMatchObject({ hint: { do: 'say', text: expect.not.stringContaining('--network') } })
    expect(other).not.toMatchObject({ hint: { network: true } })
  })

  test('it is asked and said again of a plan that a person has changed', async () => {
    let isSaid = false
    const { play } = await playTeam({
      plan: NEEDY,
      before: step => {
        if (isSaid || step.kind !== 'round' || step.round.answer?.name !== 'step-2') return []
        isSaid = true
        return [{ type: 'replan-asked', text: 'In Italian.' }]
      },
    })
    const said = wordsOf(play.steps).filter(word => word === 'note' || word === 'decide network')
    expect(said).toEqual(['note', 'decide network', 'note', 'decide network'])
  })

  test.each([false, true])('checks and tests have it only if the run has it: %s', async network => {
    const { play } = await playTeam({
      options: AUTO,
      network,
      work: () => worksOut('Made.', ['node --check a.js']),
      test: () => ({
        commands: [{ for: 'its tests', command: 'node --test', ends_by_itself: true, needs_network: false }],
      }),
    })
    const commands = play.steps.flatMap(step => (step.kind === 'command' ? [step.network] : []))
    expect(commands).toEqual([network, network])
  })

  test('nobody is asked where the run has it', async () => {
    const { play } = await playTeam({ plan: NEEDY, network: true })
    expect(play.steps.some(step => step.kind === 'decide' && step.decision.id === 'network')).toBe(false)
  })
})

describe('a secret', () => {
  test('that is set before its round is over is confirmed, and the step goes on without anybody being asked', async () => {
    const asks = asksFor('API_KEY')
    const during = [...(asks.during ?? []), { type: 'secret-set', key: 'API_KEY' } as const]
    const { play, outcome } = await playTeam({
      options: AUTO,
      work: (_, n) => (n === 1 ? { ...asks, during } : worksOut()),
    })
    expect(outcome).toEqual(DONE)
    expect(wordsOf(play.steps).slice(1, 4)).toEqual(['step-1', 'confirm API_KEY', 'step-1'])
    expect(play.inputs('work')[1]).toMatch(/COMMAND: CONFIRM_SECRET API_KEY\nRETURN CODE: 0/)
    expect(play.work.steps[0]?.tries).toBe(0)
  })

  test('that is not there is asked for, with project, step, question and what can still happen to it', async () => {
    const { play, outcome } = await playTeam({
      work: (_, n) => (n === 1 ? asksFor('API_KEY') : worksOut()),
      decide: ({ id }) => (id === 'secret' ? ['give'] : null),
    })
    expect(outcome).toEqual(DONE)
    expect(wordsOf(play.steps).slice(2, 6)).toEqual(['step-1', 'decide secret', 'confirm API_KEY', 'step-1'])
    const decision = play.steps.flatMap(step =>
      step.kind === 'decide' && step.decision.secret ? [step.decision] : [],
    )[0]
    expect(decision).toMatchObject({ id: 'secret', secret: { key: 'API_KEY' }, default: 'later' })
    for (const told of [PROJECT, 'Do part 1.', 'What is API_KEY?', 'send it over the network', 'does not recognise'])
      expect(decision?.body).toContain(told)
    expect(decision?.body).not.toContain('does not work')
  })

  promise(
    'T36',
    'A secret that nobody gives leaves its step waiting, the other steps continue, and the session ends with the line to type',
  )
  test('that nobody gives leaves its step waiting, the other steps continue, and the session ends with what to type', async () => {
    const play = await TeamPlay.begin({
      plan: () => planOf(3, { 3: { needs: [1] } }),
      work: (step, n) => (step === 1 && n === 1 ? asksFor('API_KEY') : worksOut()),
    })
    expect(await play.run()).toEqual({
      kind: 'needs-person',
      reason: 'Step 1 needs the secret API_KEY.',
      hint: { do: 'secret', keys: ['API_KEY'], directory: PROJECT },
      goalOnly: true,
    })
    expect(play.statuses).toEqual(['1 needs-secret', '2 done', '3 to-do'])
    const steps = play.steps.length
    expect(await play.resume()).toEqual(DONE)
    expect(wordsOf(play.steps.slice(steps)).slice(0, 3)).toEqual(['confirm API_KEY', 'step-1', 'step-3'])
  })

  test('that was given after a session was killed is found when it goes on', async () => {
    const world = {
      plan: () => planOf(2),
      work: (step: number, n: number) => (step === 1 && n === 1 ? asksFor('API_KEY') : worksOut()),
    }
    const { play: whole } = await playTeam(world)
    const later = whole.events.findIndex(event => event.type === 'decision-made' && event.id === 'secret')
    const play = await TeamPlay.begin(world)
    await play.run(later)
    expect(play.statuses).toEqual(['1 needs-secret', '2 to-do'])
    expect(play.work.steps[0]?.waitsFor?.state).toBe('later')
    expect(await play.resume()).toEqual(DONE)
  })

  test('that is set from elsewhere while another step is worked on is seen before the next one', async () => {
    const { play, outcome } = await playTeam({
      plan: () => planOf(3),
      work: (step, n) =>
        step === 1 && n === 1
          ? asksFor('API_KEY')
          : step === 2
            ? { ...worksOut(), during: [{ type: 'secret-set', key: 'API_KEY' }] }
            : worksOut(),
    })
    expect(outcome).toEqual(DONE)
    expect(wordsOf(play.steps).filter(word => /^(step|confirm)/.test(word))).toEqual([
      'step-1',
      'step-2',
      'confirm API_KEY',
      'step-1',
      'step-3',
    ])
  })

  promise('T37', 'A secret that does not work is asked for again with the reason, and not without end')
  test('that does not work is asked for again with the reason, and the worker reads that it failed', async () => {
    const { play, outcome } = await playTeam({
      work: (_, n) => (n === 1 ? asksFor('API_KEY') : n === 2 ? asksFor('API_KEY', 'It answers 401.') : worksOut()),
      secret: (_, n) => (n === 1 ? 'Its check fails with exit code 1.' : null),
      decide: ({ id }) => (id === 'secret' ? ['give'] : null),
    })
    expect(outcome).toEqual(DONE)
    const bodies = play.steps.flatMap(step =>
      step.kind === 'decide' && step.decision.secret ? [step.decision.body] : [],
    )
    expect(bodies).toHaveLength(3)
    expect(bodies[1]).toContain('Its check fails with exit code 1.')
    expect(bodies[2]).toContain('It answers 401.')
    expect(play.inputs('work')[1]).toMatch(/CONFIRM_SECRET API_KEY\nRETURN CODE: 1\nSECRET CONFIRMATION FAILED/)
  })

  test('that nobody has given by the time that the session goes on is not called wrong', async () => {
    const play = await TeamPlay.begin({
      work: (_, n) => (n === 1 ? asksFor('API_KEY') : worksOut()),
      secret: () => undefined,
    })
    await play.run()
    expect(await play.resume()).toMatchObject({ reason: 'Step 1 needs the secret API_KEY.' })
    expect(play.work.steps[0]).toMatchObject({ waitsFor: { problem: null }, told: [] })
  })

  test('whose check fails once the session goes on is asked for with that, and the end says it where nobody is there', async () => {
    const play = await TeamPlay.begin({
      work: (_, n) => (n === 1 ? asksFor('API_KEY') : worksOut()),
      secret: () => 'Its check failed (exit code 22).',
    })
    await play.run()
    const outcome = await play.resume()
    const bodies = play.steps.flatMap(step =>
      step.kind === 'decide' && step.decision.secret ? [step.decision.body] : [],
    )
    expect(bodies).toHaveLength(2)
    expect(bodies[1]).toContain('**The value that was given does not work:** Its check failed (exit code 22).')
    expect(outcome).toMatchObject({
      reason:
        'Step 1 needs the secret API_KEY. The value that was given does not work: Its check failed (exit code 22).',
      hint: { do: 'secret', keys: ['API_KEY'] },
    })
  })

  promise('T37')
  test('that never does is not asked for without end', async () => {
    const { play, outcome } = await playTeam({
      work: () => asksFor('API_KEY', 'It answers 401.'),
      secret: () => 'Its check fails.',
      decide: ({ id }) => (id === 'secret' ? ['give'] : null),
    })
    expect(outcome).toMatchObject({ kind: 'needs-person', hint: { do: 'secret' } })
    expect(play.steps.length).toBeLessThan(30)
  })

  test('that is there is not asked for again and again by a worker that does nothing with it', async () => {
    const { outcome, play } = await playTeam({
      work: () => asksFor('API_KEY'),
      decide: ({ id }) => (id === 'secret' ? ['give'] : null),
    })
    expect(outcome).toMatchObject({ kind: 'needs-person' })
    expect(play.statuses).toEqual(['1 failed'])
    expect(play.inputs('work').length).toBeLessThanOrEqual(12)
  })

  promise('T38', 'Secrets and the network together are confirmed once, before any command has both')
  test('together with the network is confirmed once, before any command has it', async () => {
    const { play, outcome } = await playTeam({
      network: true,
      plan: () => planOf(2),
      work: (step, n) => (n === 1 ? asksFor(`KEY_${step}`) : worksOut()),
      decide: ({ id }) => (id === 'secret-network' ? ['allow'] : id === 'secret' ? ['give'] : null),
    })
    expect(outcome).toEqual(DONE)
    expect(wordsOf(play.steps).filter(word => /^(step|confirm|decide secret)/.test(word))).toEqual([
      'step-1',
      'decide secret-network',
      'confirm KEY_1',
      'step-1',
      'step-2',
      'decide secret',
      'confirm KEY_2',
      'step-2',
    ])
  })

  test('is not used with the network where a person says no, is not asked about again, and waits until they go on', async () => {
    let isAllowed = false
    const play = await TeamPlay.begin({
      network: true,
      plan: () => planOf(2),
      work: (step, n) => (n === 1 ? asksFor(`KEY_${step}`) : worksOut()),
      decide: ({ id }) => (id === 'secret-network' ? [isAllowed ? 'allow' : 'later'] : null),
    })
    expect(await play.run()).toMatchObject({ hint: { do: 'secret', keys: ['KEY_1', 'KEY_2'] } })
    expect(wordsOf(play.steps).filter(word => word === 'decide secret-network')).toHaveLength(1)
    isAllowed = true
    expect(await play.resume()).toEqual(DONE)
  })

  test('with the network is used without a question where all is accepted', async () => {
    const { play, outcome } = await playTeam({
      network: true,
      options: AUTO,
      work: (_, n) => (n === 1 ? asksFor('API_KEY') : worksOut()),
      decide: ({ id }) => (id === 'secret' ? ['give'] : null),
    })
    expect(outcome).toEqual(DONE)
    expect(play.steps.flatMap(step => (step.kind === 'decide' ? [step.decision.id] : []))).toEqual(['secret'])
  })
})

promise(
  'T10',
  'Killed after any event and gone on with, a team comes to the same, and no step that was done is worked on again',
)
test('killed after any event, and gone on with, it comes to the same, and no step that was done is worked on again', async () => {
  const world = {
    options: AUTO,
    plan: () => planOf(3),
    work: (step: number, n: number) =>
      step === 2 && n === 1 ? asksFor('API_KEY') : worksOut('Made.', step === 1 ? ['node --check a.js'] : []),
    decide: ({ id }: { id: string }) => (id === 'secret' ? (['give'] as const) : null),
    review: () => reviewOf('low'),
  }
  const whole = await playTeam(world)
  expect(whole.outcome).toEqual(DONE)
  const most = whole.play.events.length
  for (let kept = 1; kept < most; kept++) {
    const play = await TeamPlay.begin(world)
    await play.run(kept)
    const done = new Set(play.work.steps.filter(({ status }) => status === 'done').map(({ id }) => id))
    const before = play.steps.length
    expect(await play.resume(), `killed after ${kept} events`).toEqual(DONE)
    expect(play.work.steps.every(({ status, tries }) => status === 'done' && tries === 0)).toBe(true)
    const again = play.steps.slice(before).flatMap(step => (step.kind === 'round' ? [step.round.answer?.name] : []))
    for (const id of done) expect(again).not.toContain(`step-${id}`)
  }
})
