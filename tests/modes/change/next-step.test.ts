import { describe, expect, test } from 'vitest'
import type { Gate } from '../../../src/core/events/outcome.ts'
import { emptyState, type SessionState } from '../../../src/core/state/state.ts'
import { beforeTimeoutMs, nextBefore, projectCommands, statusOf } from '../../../src/modes/change/execution/before.ts'
import { outcomeOf } from '../../../src/modes/change/execution/queue.ts'
import { decomposeRound, fixRound, taskRound } from '../../../src/modes/change/execution/rounds.ts'
import { nextOfChange, STATES } from '../../../src/modes/change/machine.ts'
import type { ChangeParts, ChangeWork, ExecutionWork, StateName } from '../../../src/modes/change/work.ts'
import { changeWith, check, record, task } from '../../support/change-work.ts'
import { UNCLAIMED } from '../../support/played-session.ts'
import { SESSION } from '../../support/session-events.ts'

const session: SessionState = {
  ...emptyState(SESSION),
  network: true,
  limits: { rounds: 9, timeMs: null, tokens: null },
}
const OVER: SessionState = { ...session, roundsUsed: 9 }
const ACCEPTED = { state: 'accepted', by: [], tree: 'a', verified: true, results: [] } as const
const COMPLETED = { status: 'COMPLETED' } as const
const parts: ChangeParts = {
  folder: '.codemachine/projects/x',
  thread: (role, by) => ({ agent: role, developerInstructions: '', model: by, effort: null }),
}
const { next } = nextOfChange(() => parts)
const nextIn = (state: StateName, own: ChangeWork, now: SessionState = session) =>
  next({ ...now, template: 'change', work: { ...own, state } }, UNCLAIMED)
const accepted = (own: ChangeWork, more: Partial<NonNullable<ChangeWork['planning']['accepted']>>): ChangeWork => ({
  ...own,
  planning: { ...own.planning, accepted: { ...own.planning.accepted, ...more } as ChangeWork['planning']['accepted'] },
})

describe('what a change does next', () => {
  const failed = { status: 'failed', exitCode: 1, tree: 'a', tail: 'not ok' }
  const claim = (more: Partial<ExecutionWork['claim']>) => ({ ...changeWith({}).execution.claim, ...more })

  test('at its end: it goes on where what was accepted is not what lies there any more', () => {
    const own = changeWith({ tasks: [record(task('T1'), COMPLETED)] }, { outcome: { kind: 'done', verified: true } })
    expect(nextIn('WAITING_FOR_INPUT', own, { ...session, claim: ACCEPTED })).toMatchObject({ kind: 'end' })
    expect(nextIn('WAITING_FOR_INPUT', own)).toMatchObject({ kind: 'enter', state: 'EXECUTING_TASKS.queue' })
  })

  test('a command of a task that is a gate runs as long as that may, and reaches the network where that may', () => {
    const gate: Gate = {
      name: 'tests',
      run: 'npm test',
      timeoutMs: 1_234_000,
      required: true,
      network: false,
      protect: [],
      everyRound: false,
    }
    const own = changeWith({ tasks: [record(check('T1', 'npm test'))], at: 0 })
    const run = (now: SessionState) => nextIn('EXECUTING_TASKS.verification', own, now)
    const usual = { kind: 'command', run: 'npm test', timeoutMs: 600_000 }
    expect(run(session)).toMatchObject({ ...usual, network: true })
    expect(run({ ...session, network: false })).toMatchObject({ ...usual, network: false })
    expect(run({ ...session, gates: [gate] })).toMatchObject({ timeoutMs: 1_234_000, network: false })
    const open = { ...gate, network: true }
    expect(run({ ...session, gates: [open] })).toMatchObject({ network: true })
    expect(run({ ...session, gates: [open], network: false })).toMatchObject({ network: false })
  })

  test('tasks.json says how tasks stand before anything else is done', () => {
    const own = changeWith({ tasks: [record(check('T1', 'npm test'), { status: 'IN_PROGRESS' })], at: 0 })
    for (const within of ['queue', 'info-gathering', 'action', 'verification', 'result'] as const) {
      const stale = { ...own, execution: { ...own.execution, isWritten: false } }
      expect(nextIn(`EXECUTING_TASKS.${within}`, stale), within).toMatchObject({ kind: 'keep', file: 'tasks.json' })
    }
  })

  test('what was mended as often as may be has failed, also where no round is left', () => {
    const left = { status: 'IN_PROGRESS', results: [failed] } as const
    const own = changeWith({ tasks: [record(check('T1', 'npm test'), { ...left, attempts: 5 })], at: 0 })
    expect(nextIn('EXECUTING_TASKS.result', own, OVER)).toMatchObject({ state: 'EXECUTING_TASKS.failure' })
    const other = changeWith({ tasks: [record(check('T1', 'npm test'), { ...left, attempts: 4 })], at: 0 })
    expect(nextIn('EXECUTING_TASKS.result', other, OVER)).toMatchObject({ state: 'EXECUTING_TASKS.queue' })
  })

  test('a claim that was refused is not made again without a round that could mend it', () => {
    const own = changeWith({ tasks: [record(task('T1'), COMPLETED)], claim: claim({ attempts: 1, refused: 'no' }) })
    expect(nextIn('EXECUTING_TASKS.queue', own, OVER)).toMatchObject({ state: 'GENERATING_SUMMARY' })
  })

  test('the person is told that nothing proves the work where no gate has to pass', () => {
    const own = changeWith({ tasks: [record(task('T1'))], before: [{ run: 'npm test', status: 'passed' }] })
    const gate = { name: 'x', run: 'x', timeoutMs: 1, network: false, protect: [], everyRound: false }
    const with_ = (required: boolean) => ({ ...session, gates: [{ ...gate, required }] })
    expect(nextIn('EXECUTING_TASKS.decomposition', own, with_(false))).toMatchObject({ kind: 'note', name: 'no-proof' })
    expect(nextIn('EXECUTING_TASKS.decomposition', own, with_(true))).toMatchObject({ kind: 'enter' })
  })

  test('lines are counted where only what mended the claim has changed files', () => {
    const work = { ...claim({}).work, treeBefore: 'a', treeAfter: 'b' }
    const own = changeWith({ tasks: [record(task('T1'), COMPLETED)], claim: claim({ work }) })
    const now = { ...session, claim: ACCEPTED }
    expect(nextIn('GENERATING_SUMMARY', own, now)).toEqual({ kind: 'look', what: 'lines' })
  })

  test('what is summed up once more is not what it had come to before', () => {
    const own = changeWith(
      { tasks: [record(task('T1'), { status: 'FAILED', why: 'It gave no answer.' })] },
      { outcome: { kind: 'done', verified: true } },
    )
    const entered = STATES.GENERATING_SUMMARY.state.enter?.(own, session) ?? own
    const step = nextIn('GENERATING_SUMMARY', entered)
    expect(step.kind === 'round' && step.round.input).toContain('Not done, a person is needed: T1 failed.')
  })

  test('each time that proved files are others after the summary counts as an attempt', () => {
    const own = changeWith({ tasks: [record(task('T1'), COMPLETED)], claim: claim({ attempts: 3 }) })
    expect(STATES.GENERATING_SUMMARY.state.exit?.(own, session)?.execution.claim.attempts).toBe(4)
    const left = changeWith({ tasks: [record(task('T1'))], claim: claim({ attempts: 3 }) })
    expect(STATES.GENERATING_SUMMARY.state.exit?.(left, session)?.execution.claim.attempts).toBe(3)
  })

  test('200 rounds need a person; fewer are a limit', () => {
    const tasks = [record(task('T1'))]
    expect(outcomeOf(changeWith({ tasks, limit: 'rounds', rounds: 199 }), session).kind).toBe('limit')
    expect(outcomeOf(changeWith({ tasks, limit: 'rounds', rounds: 200 }), session)).toMatchObject({
      kind: 'needs-person',
      reason: expect.stringContaining('200 rounds'),
    })
  })
})

describe('before anything is changed', () => {
  const tasks = [record(task('T1')), record(check('T2', 'make t1'))]

  test('the commands of the tasks and those of the plan run, until their time is used up', () => {
    const own = changeWith({ tasks })
    expect(nextBefore(own, session)).toBe('make t1')
    const ran = { before: [{ run: 'make t1', status: 'failed' as const }] }
    expect(nextBefore(changeWith({ tasks, ...ran }), session)).toBe('npm test')
    expect(nextBefore(changeWith({ tasks, ...ran, beforeMs: 10 * 60_000 }), session)).toBeNull()
    expect(beforeTimeoutMs(own)).toBe(2 * 60_000)
    expect(beforeTimeoutMs(changeWith({ beforeMs: 9 * 60_000 }))).toBe(60_000)
  })

  test('of a command that took too long, or could not be started, it is not said that it failed', () => {
    expect(['passed', 'failed', 'timed-out', 'not-started'].map(statusOf)).toEqual([
      'passed',
      'failed',
      'unknown',
      'unknown',
    ])
  })

  test('a command of a plan that nobody has seen is none of the project', () => {
    const own = changeWith({ tasks })
    expect(projectCommands(own, session)).toEqual(['npm test'])
    expect(projectCommands(accepted(own, { by: 'auto' }), session)).toEqual([])
    expect(projectCommands(accepted(own, { by: 'go' }), session)).toEqual([])
  })
})

describe('what a round is told', () => {
  const told: SessionState = {
    ...session,
    notices: [
      { from: 'person', text: 'Keep it small.' },
      { from: 'codemachine', text: 'The work was cut off.' },
      { from: 'codemachine', text: 'The claim was refused.', isOfProof: true },
      { from: 'gate', text: 'tests: failed' },
    ],
  }
  const failed = { status: 'failed', exitCode: 1, tree: 'a', tail: 'not ok' }
  const fixing = {
    attempt: 1,
    by: 'executor',
    earlier: [],
    sameFailures: 0,
    failure: '',
    hasChanged: false,
  } as const
  const fix = (execution: Partial<ExecutionWork>) =>
    accepted(changeWith({ fixing, ...execution }), { remark: 'No new packages.' })
  const verification = record(check('T2', 'npm test'), { status: 'IN_PROGRESS', results: [failed] })

  test('what a person says while it works, whatever the round is for', () => {
    const act = changeWith({ tasks: [record(task('T1'))], at: 0 })
    const gather = changeWith({ tasks: [record(task('T1', { type: 'INFO_GATHERING' }))], at: 0 })
    const mend = fix({ tasks: [verification], at: 0 })
    const inputs = {
      decompose: decomposeRound(changeWith({}), told, parts).round.input,
      gather: taskRound(gather, told, parts).step.round.input,
      act: taskRound(act, told, parts).step.round.input,
      fix: fixRound(mend, told, parts).step.round.input,
    }
    for (const [part, input] of Object.entries(inputs)) {
      expect(input, part).toContain('Keep it small.')
      // Who can change files has to know what codemachine has seen of them; why a claim was refused stands where that is mended.
      expect(input.includes('The work was cut off.'), part).toBe(part === 'act' || part === 'fix')
      expect(input, part).not.toContain('The claim was refused.')
      expect(input, part).not.toContain('tests: failed')
    }
    expect(inputs.fix).toContain('No new packages.')
  })

  test('that a round before it has worked on the same task', () => {
    const input = (rounds: number) =>
      taskRound(changeWith({ tasks: [record(task('T1'), { rounds })], at: 0 }), session, parts).step.round.input
    expect(input(0)).not.toContain('An earlier round already')
    expect(input(1)).toContain('An earlier round already worked on this task.')
  })

  test('what is wrong with the last list of tasks, once', () => {
    const own = changeWith({ version: 0, problem: 'T1 is there twice.' })
    expect(decomposeRound(own, session, parts).round.input).toContain('cannot be carried out:\nT1 is there twice.')
    const isTold = { ...session, refusedAnswers: { tasks: { problem: 'T1 is there twice.', refusals: 1 } } }
    expect(decomposeRound(own, isTold as SessionState, parts).round.input).not.toContain('T1 is there twice.')
  })

  test('which files were changed since the same command passed last, those of the claim included', () => {
    const tasks = [
      record(task('T1'), { ...COMPLETED, changed: ['old.js'] }),
      record(check('T2', 'npm test'), COMPLETED),
      record(task('T3'), { ...COMPLETED, changed: ['new.js'] }),
      record(check('T4', 'npm test'), { status: 'IN_PROGRESS', results: [failed] }),
    ]
    expect(fixRound(fix({ tasks, at: 3 }), session, parts).step.round.input).toContain(
      'Files that were changed since T2, when it passed last:\n- new.js\n\n',
    )
    const work = { ...changeWith({}).execution.claim.work, changed: ['mended.js'] }
    const claim = { attempts: 1, refused: 'no', work }
    expect(fixRound(fix({ tasks, claim }), session, parts).step.round.input).toContain(
      'Files that were changed since the work began:\n- old.js\n- new.js\n- mended.js\n\n',
    )
  })

  test('answers are asked for by other names once the plan is another', () => {
    const own = changeWith({ version: 2, tasks: [record(task('T1'))], at: 0 })
    const name = (version: number) => {
      const of = accepted(own, { version })
      const rounds = [decomposeRound(of, session, parts), taskRound(of, session, parts).step]
      return rounds.map(({ round }) => round.answer?.name)
    }
    expect(name(1)).toEqual(['tasks', 'T1'])
    expect(name(2)).toEqual(['tasks~2', 'T1~2'])
  })

  test('what has room in the context of the executor, with its instructions; who plans takes all', () => {
    const small = (contextWindow: number, own: ChangeWork): ChangeWork => ({
      ...own,
      options: { ...own.options, executor: { provider: 'local', model: 'small', contextWindow } },
    })
    const own = changeWith({ tasks: [record(task('T1'))], at: 0 })
    const long: ChangeParts = {
      ...parts,
      thread: (role, by) => ({ ...parts.thread(role, by), developerInstructions: 'x'.repeat(30_000) }),
    }
    expect(taskRound(small(20_000, own), session, parts)).toMatchObject({ by: 'executor', note: null })
    expect(taskRound(small(20_000, own), session, long)).toMatchObject({ by: 'planner' })
    const full = { ...own, execution: { ...own.execution, byPlanner: 'its context was full' } }
    const { by, step } = taskRound(small(20_000, full), session, parts)
    expect([by, step.round.materialsMost]).toEqual(['planner', undefined])
    const mended = fixRound(small(20_000, fix({ tasks: [verification], at: 0 })), session, long)
    expect(mended.by).toBe('planner')
    expect(mended.step.round.thread.model).toBe('planner')
    expect(mended.note).toContain("The planner's model fixes it: its input does not fit")
  })
})
