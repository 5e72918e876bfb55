import { teamKind } from '../../src/modes/team/team.ts'
import type { HowToTest, StepWork, TeamOptions, TeamReview, TeamWork } from '../../src/modes/team/work.ts'
import { created } from './session-events.ts'

const OPTIONS: TeamOptions = { mode: 'all', step: null, stepwise: false, repair: 1, accept: 'ask', workspace: null }

/** What a team keeps when it begins, with what is said. */
export function teamWith(more: Partial<TeamWork> = {}, options: Partial<TeamOptions> = {}): TeamWork {
  const begun = {
    ...created(),
    template: 'team',
    goal: 'a service that says hello',
    options: { ...OPTIONS, ...options },
  }
  return { ...teamKind.first(begun), ...more }
}

/** A step of a plan, of which all that is not said is as when it was planned. */
export function step(id: number, more: Partial<StepWork> = {}): StepWork {
  const [begun] = teamWith({}, { mode: 'work', step: `Do ${id}.` }).steps
  if (begun === undefined) throw new Error('There is no step.')
  return { ...begun, id, kind: 'planned', ...more }
}

/** A step that waits for the secret of this name. */
export function waiting(id: number, key: string, more: Partial<StepWork> = {}): StepWork {
  const waitsFor = {
    key,
    question: `What is ${key}?`,
    reason: null,
    state: 'later',
    problem: null,
    asked: 1,
  } as const
  return step(id, { status: 'needs-secret', waitsFor, ...more })
}

/** A team at work on these steps, whose plan a person has accepted. */
export function atWork(steps: readonly StepWork[], more: Partial<TeamWork> = {}): TeamWork {
  const plan = { goal: 'Say hello.', steps: steps.map(({ id, description }) => ({ id, description })) }
  return teamWith({ plan, isAccepted: true, steps, ...more })
}

export const PASSED: HowToTest = {
  for: 'the tests',
  command: 'npm test',
  ran: { status: 'passed', exitCode: 0, durationMs: 3_200 },
  why: null,
}
export const NOT_RUN: HowToTest = { for: 'starts it', command: './start.sh', ran: null, why: 'needs the network' }

export const REVIEW: TeamReview = {
  overall_assessment: 'It says hello.',
  issues: [
    { type: 'docs', description: 'No port is named.', severity: 'low' },
    { type: 'bug', description: 'It does not start.', severity: 'high' },
  ],
  suggestions: ['Name the port.'],
}
