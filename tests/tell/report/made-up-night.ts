import type { EventOf, Recorded, SessionEvent } from '../../../src/core/events/events.ts'
import type { GateResult, RoundOutcome, SessionOutcome } from '../../../src/core/events/outcome.ts'
import type { SessionStatus } from '../../../src/core/state/state.ts'
import { OWN_TEMPLATES } from '../../../src/modes/registry.ts'
import { ReportFold } from '../../../src/tell/report/fold-report.ts'
import type { ReportData } from '../../../src/tell/report/report-data.ts'

export const ID = '20261120_1'
const MINUTE = 60_000
const TREE = 'a94a8fe5ccb19ba61c4c0873d391e987982fbbd3'
const WORKED: RoundOutcome = { class: 'worked', message: null }

/** A session that nobody had to live through: its events are put down one after the other, with time between them. */
export class MadeUpNight {
  readonly events: Recorded[] = []
  #at = new Date(2026, 10, 20, 22, 31).getTime()
  #round = 0

  constructor(goal = 'Add a dark mode, with tests.', more: Partial<EventOf<'session-created'>> = {}) {
    this.add({
      type: 'session-created',
      goal,
      template: 'goal',
      directory: '/home/person/project',
      limits: { rounds: 20, timeMs: null, tokens: null },
      sandbox: 'workspace-write',
      network: false,
      model: 'gpt-6',
      effort: 'high',
      overrides: [],
      said: {},
      queued: null,
      host: 'night-desk',
      codemachine: '0.1.0',
      ...more,
    })
  }

  add(event: SessionEvent): this {
    this.events.push({ v: 1, at: new Date(this.#at).toISOString(), session: ID, ...event } as Recorded)
    return this
  }

  resumed(): this {
    return this.add({
      type: 'session-resumed',
      limits: { rounds: 20, timeMs: null, tokens: null },
      said: {},
      gates: GATES,
      host: 'night-desk',
      codemachine: '0.1.0',
    })
  }

  later(minutes: number): this {
    this.#at += minutes * MINUTE
    return this
  }

  savepoint(
    round: number,
    files: number,
    paths: readonly string[] = [],
    more: Partial<EventOf<'savepoint'>> = {},
  ): this {
    return this.add({
      type: 'savepoint',
      round,
      commit: `c0ffee${round}`,
      tree: TREE,
      changes: {
        files,
        added: files * 28,
        removed: files * 3,
        paths: paths.map((path, index) => ({ path, added: 40 - index, removed: index })),
      },
      head: 'feedc0de',
      commits: round === 0 ? [] : [{ commit: `${round}badc0ffee0ddf00d`, subject: `Take step ${round}` }],
      ...more,
    })
  }

  gate(
    gate: string,
    when: 'before' | 'claim',
    status: GateResult['status'],
    output = '',
    changed: readonly string[] = [],
  ): this {
    const round = this.#round
    this.add({ type: 'gate-started', round, when, gate })
    return this.later(1).add({
      type: 'gate-ended',
      round,
      when,
      gate,
      status,
      exitCode: status === 'passed' ? 0 : 1,
      durationMs: 41_200,
      output,
      problem: null,
      tree: TREE,
      changed,
      changedCount: changed.length,
    })
  }

  /** A whole round. */
  round({
    minutes = 20,
    outcome = WORKED,
    counts = true,
    tasks,
    files = 3,
    changed = ['src/theme.ts'],
  }: MadeUpRound = {}): this {
    if (this.events.every(({ type }) => type !== 'round-ended') || this.#lastCounted) this.#round += 1
    this.#lastCounted = counts
    const round = this.#round
    this.add({
      type: 'round-started',
      round,
      agent: 'goal-worker',
      engine: 'codex',
      codex: '0.169.0',
      model: 'gpt-6',
      input: 'Continue with the goal.',
    })
    this.later(minutes)
    const input = 40_000 + 9000 * (round % 5)
    const total = { input, cachedInput: Math.round(input * 0.7), output: 1200, reasoning: 300, total: input + 1200 }
    this.add({ type: 'usage', round, thread: `t${this.events.length}`, total, last: total, contextWindow: 272_000 })
    return this.add({
      type: 'round-ended',
      round,
      outcome,
      counts,
      durationMs: minutes * MINUTE,
      tokens: total,
      treeBefore: TREE,
      treeAfter: TREE,
      changed,
      changedCount: files,
      memory: 'm',
      ...(tasks === undefined ? {} : { tasks }),
    })
  }

  end(outcome: SessionOutcome, exitCode = 0): this {
    const rounds = this.events.filter(event => event.type === 'round-ended' && event.counts).length
    return this.add({ type: 'session-ended', outcome, exitCode, rounds, tokens: 500_000, durationMs: 312 * MINUTE })
  }

  report(standing: SessionStatus = 'ended'): ReportData {
    const report = new ReportFold(ID, OWN_TEMPLATES)
    for (const event of this.events) report.add(event)
    const data = report.data(() => standing)
    if (data === null) throw new Error('The events hold no session.')
    return data
  }

  #lastCounted = true
}

export interface MadeUpRound {
  minutes?: number
  outcome?: RoundOutcome
  counts?: boolean
  tasks?: { done: number; total: number; left?: readonly string[] }
  files?: number
  changed?: readonly string[]
}

/** A gate that protects tests. */
export const gateOf = (name: string, run: string) => ({
  name,
  run,
  timeoutMs: 10 * MINUTE,
  required: true,
  network: false,
  protect: ['tests/**'],
  everyRound: false,
})

export const GATES = [gateOf('tests', 'npm test'), gateOf('build', 'npm run build')]

/** A night in which everything happens, up to the end that is given. */
export function eventfulNight(goal?: string): MadeUpNight {
  const night = new MadeUpNight(goal, { gates: GATES, review: { model: null, effort: null } })
  night.add({ type: 'keep-awake', by: 'systemd-inhibit', problem: null })
  night.savepoint(0, 0).gate('tests', 'before', 'failed', 'FAIL theme.test.ts').gate('build', 'before', 'passed')
  night.round({ minutes: 34, tasks: { done: 1, total: 5, left: ['Switch', 'Colours', 'Tests', 'Docs'] } })
  night.savepoint(1, 4, ['src/theme.ts', 'src/app.tsx', 'tests/theme.test.ts', 'README.md'])
  night.add({
    type: 'question-asked',
    round: 1,
    question: 'Q1',
    text: 'Should the switch follow the system by default?',
    options: ['yes', 'no'],
    assumption: 'Yes: it follows the system until a person chooses.',
  })
  night.round({ minutes: 7, outcome: { class: 'window', message: 'You have hit your usage limit.' }, counts: false })
  night.add({
    type: 'waiting',
    round: 2,
    reason: 'round-failed',
    cause: { class: 'window', message: 'You have hit your usage limit.' },
    until: new Date(2026, 10, 21, 1, 30).toISOString(),
  })
  night.later(118).add({ type: 'wait-ended', round: 2, reason: 'over' })
  night.round({ minutes: 41, tasks: { done: 3, total: 5, left: ['Tests', 'Docs'] } })
  night.savepoint(2, 9, ['src/theme.ts', 'src/app.tsx', 'tests/theme.test.ts', 'README.md'])
  night.add({
    type: 'protected-changed',
    round: 2,
    files: [{ path: 'tests/old.test.ts', how: 'deleted', gates: ['tests'] }],
    count: 1,
  })
  night.add({ type: 'done-nominated', round: 2, by: ['MAIN.md'], tree: TREE })
  night.add({
    type: 'done-refused',
    round: 2,
    reason: 'tasks-left',
    detail: 'tasks.json still has open tasks: Tests, Docs.',
  })
  night.add({ type: 'machine-slept', round: null, ms: 12 * MINUTE })
  night.round({ minutes: 22, outcome: { class: 'crashed', message: 'exit code 101' }, counts: false })
  night.round({ minutes: 29, tasks: { done: 5, total: 5 } })
  night.savepoint(3, 12, ['src/theme.ts', 'src/app.tsx', 'tests/theme.test.ts', 'docs/theming.md', 'README.md'])
  night.add({ type: 'done-nominated', round: 3, by: ['MAIN.md', 'tasks.json'], tree: TREE })
  night.gate('tests', 'claim', 'failed', 'FAIL theme.test.ts > dark\nexpected #111 to be #000\n 1 failed, 41 passed')
  night.add({ type: 'done-refused', round: 3, reason: 'gate-failed', detail: 'The check `tests` fails (exit code 1).' })
  night.round({ minutes: 18, tasks: { done: 5, total: 5 } })
  night.savepoint(4, 12, ['src/theme.ts', 'src/app.tsx', 'tests/theme.test.ts', 'docs/theming.md', 'README.md'])
  night.add({
    type: 'item-completed',
    round: 4,
    item: { kind: 'agent-message', id: 'm', text: 'Dark mode works, follows the system, and is tested.', phase: null },
  })
  return night
}

/** A night that ends well. */
export function goodNight(goal?: string): MadeUpNight {
  const night = eventfulNight(goal)
  night.add({ type: 'done-nominated', round: 4, by: ['MAIN.md'], tree: TREE })
  night.gate('tests', 'claim', 'flaky', '1 failed').gate('build', 'claim', 'passed')
  night.add({ type: 'review-started', round: 4, review: 1, causes: ['asked', 'protected'], model: null, effort: null })
  night.later(6).add({
    type: 'review-ended',
    round: 4,
    review: 1,
    outcome: WORKED,
    answer: {
      verdict: 'agreed',
      summary: 'The goal is reached; the test that went was of the old theme.',
      findings: [],
    },
    repeated: [],
    tree: TREE,
    durationMs: 6 * MINUTE,
    tokens: null,
  })
  return night
    .add({ type: 'done-accepted', round: 4, tree: TREE, verified: true })
    .end({ kind: 'done', verified: true })
}

/** A night of which something is left to the person. */
export function badNight(goal?: string): MadeUpNight {
  const night = eventfulNight(goal)
  const finding = {
    severity: 'major' as const,
    file: 'src/theme.ts',
    line: 41,
    problem: 'The choice is not kept over a reload.',
    mend: 'Write it to localStorage.',
  }
  night.add({ type: 'review-started', round: 4, review: 1, causes: ['asked'], model: null, effort: null })
  night.later(6).add({
    type: 'review-ended',
    round: 4,
    review: 1,
    outcome: WORKED,
    answer: { verdict: 'findings', summary: 'Nearly there.', findings: [finding] },
    repeated: [finding],
    tree: TREE,
    durationMs: 6 * MINUTE,
    tokens: null,
  })
  const reason = 'the review goes round in circles'
  const text = 'Decide whether the finding has to be mended, and say so with codemachine steer.'
  return night.end({ kind: 'needs-person', reason, hint: { do: 'say', text }, goalOnly: true }, 4)
}

/** How the commands of these reports are typed. */
export const HERE = { here: '', resume: `codemachine resume ${ID}` }
