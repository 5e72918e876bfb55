import { expect, test } from 'vitest'
import { emptyState } from '../../../src/core/state/state.ts'
import { planRound } from '../../../src/modes/team/rounds.ts'
import { PROPERTY_RUNS } from '../../support/properties.ts'
import { type Random, randomFrom } from '../../support/random.ts'
import { SESSION } from '../../support/session-events.ts'
import {
  asksFor,
  fallsShort,
  planOf,
  reviewOf,
  TeamPlay,
  type TeamRound,
  type TeamWorld,
  worksOut,
} from '../../support/team-session.ts'
import { atWork, step } from '../../support/team-work.ts'

const SEEDS = Array.from({ length: PROPERTY_RUNS }, (_, seed) => seed + 1)
const HUGE = 'Wörter. '.repeat(5_000)

/** A team to which anything may happen. */
function worldOf(random: Random): TeamWorld {
  const chance = (percent: number) => random.below(100) < percent
  const workOf = (): TeamRound => {
    const ran = {
      type: 'shell-ran',
      round: 1,
      command: HUGE,
      secrets: ['KEY'],
      status: 'failed',
      exitCode: 1,
      stdout: HUGE,
      stderr: HUGE,
      durationMs: 1,
      problem: null,
      ...(chance(20) ? { leaked: Array.from({ length: 50 }, (_, n) => `file-${n}`) } : {}),
    } as const
    const during = chance(50) ? [ran] : []
    const ends = random.one(['interrupted', 'crashed', 'context-full', 'network', 'refused'] as const)
    const changed = Array.from({ length: random.below(60) }, (_, n) => `path-${random.below(9)}-${n}`)
    if (chance(15)) return { during, ends: { class: ends, message: null }, changed }
    if (chance(10)) return { during, says: 'It is made.' }
    if (chance(15)) return fallsShort(HUGE)
    if (chance(15)) return asksFor(random.one(['KEY', 'OTHER_KEY']), chance(30) ? HUGE : null)
    return { ...worksOut('Made.', chance(30) ? ['node --test'] : []), during, changed }
  }
  const network = chance(30)
  return {
    network,
    options: {
      mode: random.one(['all', 'all', 'all', 'plan', 'work', 'review']),
      step: 'One step.',
      repair: random.below(4),
      accept: random.one(['ask', 'auto']),
      stepwise: chance(20),
    },
    plan: () =>
      chance(10)
        ? planOf(0)
        : planOf(1 + random.below(5), {
            2: { needs: chance(50) ? [1] : [], network: chance(20) },
            4: { needs: chance(50) ? [2, 3] : [1] },
          }),
    work: workOf,
    test: () => ({
      commands: Array.from({ length: random.below(4) }, (_, n) => ({
        for: 'x',
        command: `test ${n}`,
        ends_by_itself: chance(70),
        needs_network: chance(30),
      })),
    }),
    review: () =>
      reviewOf(...Array.from({ length: random.below(3) }, () => random.one(['low', 'medium', 'high'] as const))),
    command: () => (chance(20) ? { status: random.one(['failed', 'timed-out', 'not-started']), output: HUGE } : {}),
    decide: ({ choices }) => {
      if (chance(50)) return null
      const { id, text } = random.one(choices as [(typeof choices)[number], ...typeof choices])
      return text === 'must' ? [id, 'Another way.'] : [id]
    },
    secret: () => (chance(40) ? 'It is not there.' : null),
    claim: () => (chance(30) ? HUGE : null),
    before: () => (chance(1) ? [{ type: 'secret-set', key: 'KEY' }] : []),
  }
}

test.each(SEEDS)(
  'whatever happens (%i): one step at a time, done only if every step is, and always an end',
  async seed => {
    const random = randomFrom(seed)
    const play = await TeamPlay.begin(worldOf(random))
    let outcome = null
    for (let sessions = 0; sessions < 6; sessions++) {
      // Now and then it is killed.
      const kill = random.below(3) === 0 ? random.below(40) : undefined
      outcome =
        sessions === 0 ? await play.run(kill) : await play.resume(random.below(5) === 0 ? { network: true } : {}, kill)
      if (outcome?.kind === 'done' || outcome?.kind === 'answered') break
    }
    const atWork = play.work.steps.filter(({ status }) => status === 'running' || status === 'checking')
    expect(atWork.length).toBeLessThanOrEqual(1)
    if (outcome?.kind === 'done') {
      expect(play.work.steps.map(({ status }) => status)).toEqual(play.work.steps.map(() => 'done'))
      expect(play.work.steps.length).toBeGreaterThan(0)
      if (play.work.options.mode !== 'work')
        expect(play.work.review?.issues.filter(({ severity }) => severity === 'high')).toEqual([])
    }
    // What is kept, and what agents are told, is bounded whatever they say.
    expect(JSON.stringify(play.work).length / Math.max(1, play.work.steps.length)).toBeLessThan(120_000)
    for (const part of ['plan', 'work', 'test', 'review'])
      for (const input of play.inputs(part)) expect(input.length).toBeLessThan(500_000)
  },
)

test('what a person wants otherwise is told the planner, however much is done already', () => {
  const files = Array.from({ length: 50 }, (_, n) => `${n}-${'deep/'.repeat(99)}`)
  const steps = Array.from({ length: 150 }, (_, n) => step(n + 1, { status: 'done', thoughts: HUGE, files }))
  const work = atWork(steps, { wanted: 'In Italian, please.' })
  const thread = (agent: string) => ({ agent, developerInstructions: '', model: null, effort: null })
  const { round } = planRound(work, emptyState(SESSION), { thread })
  expect(round.input).toContain('In Italian, please.')
  expect(round.input).toContain('- 150 (done)')
  expect(round.input.length).toBeLessThan(500_000)
})

test('what agents are told of 50 steps at their bounds is less than a turn takes', async () => {
  const long = 'x'.repeat(1_150)
  const plan = planOf(50, Object.fromEntries(Array.from({ length: 50 }, (_, at) => [at + 1, { description: long }])))
  const ran = {
    type: 'shell-ran',
    round: 1,
    command: HUGE,
    secrets: [],
    status: 'failed',
    exitCode: 1,
    stdout: HUGE,
    stderr: HUGE,
    durationMs: 1,
    problem: null,
  } as const
  const changed = (step: number) => Array.from({ length: 50 }, (_, n) => `${step}-${n}-${'deep/'.repeat(800)}`)
  const play = await TeamPlay.begin({
    goal: 'Hello. '.repeat(300_000),
    options: { accept: 'auto', repair: 3 },
    plan: () => plan,
    work: step => ({ ...worksOut(HUGE), during: Array.from({ length: 30 }, () => ran), changed: changed(step) }),
    review: () => ({
      overall_assessment: 'x',
      issues: Array.from({ length: 50 }, () => ({ type: 'bug', description: long, severity: 'high' })),
      suggestions: [],
    }),
  })
  expect(await play.run()).toMatchObject({ kind: 'needs-person' })
  expect(play.work.steps).toHaveLength(200)
  for (const part of ['plan', 'work', 'test', 'review'])
    expect(Math.max(...play.inputs(part).map(input => input.length)), part).toBeLessThan(1_000_000)
  expect(JSON.stringify(play.work.steps).length).toBeLessThan(200 * 60_000)
})
