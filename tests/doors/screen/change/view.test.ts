import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { SessionEvent } from '../../../../src/core/events/events.ts'
import type { SessionState } from '../../../../src/core/state/state.ts'
import { statusLineOf } from '../../../../src/doors/screen/header/header.ts'
import { taskLines } from '../../../../src/doors/screen/header/tasks.ts'
import { changeKind } from '../../../../src/modes/change/change.ts'
import type { TaskSpec } from '../../../../src/modes/change/tasks.ts'
import type { ChangeWork, TaskRecord } from '../../../../src/modes/change/work.ts'
import { widthOf } from '../../../../src/tell/words/cells.ts'
import { statusLine } from '../../../../src/tell/words/doing.ts'
import { describeEvent } from '../../../../src/tell/words/event.ts'
import { cardOfWork, ownBoard, statusOfWork, titleOfRound, wordsForStep } from '../../../../src/tell/words/work.ts'
import { record, task as spec } from '../../../support/change-work.ts'
import { promise } from '../../../support/promise.ts'
import { created } from '../../../support/session-events.ts'
import { expectFitting } from '../blocks/terminal-lines.ts'
import { NOW, plain, stateAfter } from '../header/session.ts'
import { hostileText } from '../hostile-text.ts'
import { recorded, sampleEvents } from '../samples.ts'

const begun: SessionEvent = { ...created(), goal: 'Add rate limiting to the API' }
const executor = { provider: 'ollama', model: 'qwen3-coder', contextWindow: 32_768 }
const first = changeKind.first({ ...created(), goal: 'Add rate limiting to the API', options: { executor } })

function task(id: string, type: TaskSpec['type'], description: string, more: Partial<TaskRecord> = {}): TaskRecord {
  return record({ ...spec(id), type, description, run: type === 'VERIFICATION' ? 'npm test' : null }, more)
}

const done = { status: 'COMPLETED', who: 'qwen3-coder from ollama', ms: 80_000, tokens: 12_345 } as const
const TASKS = [
  task('T1', 'INFO_GATHERING', 'Find where routes are registered', { ...done, ms: 20_000, tokens: 4_000 }),
  task('T2', 'ACTION', 'Add the bucket\nOne a client address.', { ...done, changed: ['src/limit.ts', 'src/app.ts'] }),
  task('T3', 'VERIFICATION', 'The tests pass', { ...done, who: null, ms: 2_000, tokens: 0, attempts: 2 }),
  task('T4', 'ACTION', '把限流接到每个路由 🪣'),
  task('T5', 'VERIFICATION', 'The tests pass'),
  task('T6', 'ACTION', 'Say it in the docs', { why: 'It needs "limits" of T4, which failed.' }),
]

const VERSION = {
  version: 1,
  author: 'planner',
  feedback: null,
  plan: { description: 'Answer 429 beyond the limit.', files: [], risks: [], verification: [], questions: [] },
  sha256: '',
  files: {},
} as const

const LONG = { ...VERSION, version: 2, plan: { ...VERSION.plan, risks: Array.from({ length: 100 }, () => 'A risk.') } }

const accepted = { version: 2, sha256: '', by: 'person', remark: 'mind the proxies', hasGates: true } as const

/** A change in a state. */
function own(state: ChangeWork['state'], more: Partial<ChangeWork['execution']> = {}): ChangeWork {
  const versions = [VERSION, { ...VERSION, version: 2, feedback: 'leave out the cart' }]
  const planned = state.startsWith('EXECUTING') || state === 'GENERATING_SUMMARY'
  return {
    ...first,
    state,
    planning: { ...first.planning, versions, accepted: planned ? accepted : null },
    execution: { ...first.execution, ...more },
  }
}

const begins: SessionEvent = { ...sampleEvents['round-started'], round: 4, model: 'qwen3-coder' }

function session(work: ChangeWork, { provider = 'ollama', runs = true } = {}): SessionState {
  const events = runs ? [{ ...begins, ...(provider === '' ? {} : { provider }) }] : []
  return { ...stateAfter(events, begun), kind: changeKind, work }
}

function header(state: SessionState, columns = 110): string {
  return statusLineOf({ state, board: null, queued: 0 }, { columns, theme: plain, now: NOW })
}

const atWork = session(own('EXECUTING_TASKS.action', { tasks: TASKS, at: 3, version: 2 }))
const mendingAfter = (result: TaskRecord['results'][number]) =>
  session(
    own('EXECUTING_TASKS.fixing', {
      tasks: TASKS.with(4, { ...(TASKS[4] as TaskRecord), status: 'IN_PROGRESS', results: [result] }),
      at: 4,
      fixing: { ...(first.execution.fixing ?? {}), attempt: 2, by: 'planner', earlier: [], sameFailures: 0 } as never,
    }),
    { provider: '' },
  )
const mending = mendingAfter({ status: 'failed', exitCode: 1, tree: '', tail: '' })

describe('the status line', () => {
  promise(
    'C81',
    'The status line of a change has its state, the version of its plan, the task, whether its model is of this machine, and the attempt at mending',
  )
  test('says the state, the plan, the task, and that the model is of this machine', () => {
    expect(header(atWork, 160)).toMatchInlineSnapshot(
      `"starting codex · EXECUTING_TASKS, plan v2, 3 of 6 tasks · Task 4/6 ACTION (local): 把限流接到每个路由 🪣 · 3:53 · 0 tokens · from ollama"`,
    )
  })

  promise('C81')
  test('says which attempt at mending it is, and that another model makes it', () => {
    expect(header(mending, 160)).toMatchInlineSnapshot(
      `"starting codex · EXECUTING_TASKS, plan v2, 3 of 6 tasks · Task 5/6 VERIFICATION, attempt 2/5 (remote): The tests pass · 3:53 · 0 tokens"`,
    )
  })

  test('says which version of the plan is made', () => {
    expect(statusOfWork(session(own('GENERATING_PLAN')))).toBe('GENERATING_PLAN')
    expect(statusOfWork(session(own('REVIEWING_PLAN.refinement')))).toBe('REVIEWING_PLAN')
    expect(titleOfRound(session(own('GENERATING_PLAN')))?.title).toBe('Plan v3 (local)')
    expect(titleOfRound(session({ ...first, state: 'GATHERING_CONTEXT' }))).toBeNull()
  })

  test('names no version but the accepted one where none is made', () => {
    for (const state of [
      'REVIEWING_PLAN.accepted',
      'REVIEWING_PLAN.auto-accepted',
      'REVIEWING_PLAN.rejected',
    ] as const) {
      expect(titleOfRound(session(own(state)))).toBeNull()
    }
  })

  test('cuts neither the state nor the task in 80 columns: facts beside the state are left out', () => {
    expect(header(atWork, 80)).toMatchInlineSnapshot(
      `"starting codex · EXECUTING_TASKS · Task 4/6 ACTION (local): 把限流接到每… · 3:53"`,
    )
    expect(header(mending, 110)).toMatchInlineSnapshot(
      `"starting codex · EXECUTING_TASKS, plan v2 · Task 5/6 VERIFICATION, attempt 2/5 (remote):… · 3:53 · 0 tokens"`,
    )
    expect(header(session(own('REVIEWING_PLAN.manual-review')), 80)).toMatchInlineSnapshot(
      `"starting codex · REVIEWING_PLAN, plan v2 · round 4 of 3 · 3:53 · 0 tokens"`,
    )
  })

  test.each([40, 60, 80, 200])('fits into %i columns', columns => {
    for (const state of [atWork, mending]) {
      expect(widthOf(header(state, columns))).toBeLessThanOrEqual(columns)
    }
  })

  test('of a session that runs elsewhere is one line', () => {
    expect(statusLine(atWork, null, NOW)).toMatchInlineSnapshot(
      `"Add rate limiting to… · starting codex · EXECUTING_TASKS, plan… · Task 4/6 ACTION…"`,
    )
  })
})

test('the board shows each task with its mark, type, who did it, and how long that took', () => {
  const board = ownBoard(atWork)
  const lines = taskLines(
    { board: null, plan: [], own: board && { ...board, now: NOW } },
    { columns: 110, rows: 20, theme: plain },
  )
  expect(lines.join('\n')).toMatchInlineSnapshot(`
    "  ✔ T1  INFO_GATHERING: Find where routes are registered (20 s, 4,000 tokens)  (qwen3-coder from ollama)
      ✔ T2  ACTION: Add the bucket (1 min 20 s, 12,345 tokens, 2 files)  (qwen3-coder from ollama)
      ✔ T3  VERIFICATION: The tests pass (2 s, fixed 2 times)
      ▸ T4  ACTION: 把限流接到每个路由 🪣  (from ollama 3:52)
      ○ T5  VERIFICATION: The tests pass
      ✘ T6  ACTION: Say it in the docs (It needs "limits" of T4, which failed)"
  `)
})

test('a round is headed by its task, with what it is about below', () => {
  const event = recorded([begins])[0]
  expect(event && describeEvent(event, atWork)?.text).toBe('Task 4/6 ACTION (local): 把限流接到每个路由 🪣')
  expect(event && describeEvent(event, mending)).toMatchObject({
    text: 'Task 5/6 VERIFICATION, attempt 2/5 (remote): The tests pass',
    more: ['$ npm test', 'exit code 1'],
  })
  const timedOut = { status: 'timed-out', exitCode: null, tree: 'a', tail: '' }
  expect(event && describeEvent(event, mendingAfter(timedOut))?.more).toEqual(['$ npm test', 'ran into its timeout'])
})

test('a command says which task it checks, or that nothing was changed yet', () => {
  const command = { kind: 'command', name: 'npm test' }
  expect(wordsForStep(mending, command).words).toBe('Task 5/6 VERIFICATION: npm test')
  const before = session(own('EXECUTING_TASKS.decomposition'), { runs: false })
  expect(wordsForStep(before, command).words).toBe('before anything is changed: npm test')
})

test('what was gathered is told in a line', () => {
  const facts = {
    branch: 'main',
    dirty: 0,
    entries: 1204,
    manifests: ['package.json'],
    rules: ['.cursorrules'],
    commands: [{ run: 'npm test', kind: 'test', from: 'package.json' }],
    mentioned: ['src/a.ts', 'src/b.ts', 'src/c.ts', 'src/d.ts'],
    notes: [],
  } as const
  const work = { ...first, context: { output: {}, facts } } as unknown as ChangeWork
  expect(wordsForStep(session(work), { kind: 'look', name: 'context' }).words).toBe(
    'facts about the project: 1,204 files; branch main; commands: npm test; rules: .cursorrules; named: src/a.ts, src/b.ts +2',
  )
})

test('the card says who accepted the plan, and what was mended', () => {
  expect(cardOfWork(session(own('GENERATING_SUMMARY', { tasks: TASKS })))).toEqual([
    { label: 'plan', text: 'v2, accepted by you: mind the proxies' },
    { label: 'mended', text: 'T3 2 times' },
  ])
})

test('of the states only those are told that nothing else tells of', () => {
  const entered = (state: string, work: ChangeWork) => {
    const [event] = recorded([{ type: 'state-entered', step: 3, state, from: null, why: 'it is next' }])
    const told = event && describeEvent(event, session(work))
    return told == null ? undefined : [told.text, ...told.more].join('\n')
  }
  const work = own('EXECUTING_TASKS.queue', { tasks: TASKS })
  expect(entered('EXECUTING_TASKS.queue', work)).toBeUndefined()
  const taken = entered('REVIEWING_PLAN.auto-accepted', work)?.split('\n') ?? []
  expect(taken.slice(0, 4)).toEqual([
    'plan v2 was accepted automatically',
    '# Plan',
    '',
    'Answer 429 beyond the limit.',
  ])
  const long = { ...work, planning: { ...work.planning, versions: [LONG] } }
  const lines = entered('REVIEWING_PLAN.auto-accepted', long)?.split('\n') ?? []
  expect(lines.length).toBe(62)
  expect(lines.at(-1)).toMatch(/^\[… \d+ more lines; the records have all of it\]$/)
  expect(wordsForStep(session(long), { kind: 'enter', name: 'REVIEWING_PLAN.auto-accepted' }).words).toBe(
    'plan v2 was accepted automatically',
  )
  expect(entered('GENERATING_SUMMARY', { ...work, execution: { ...work.execution, limit: 'rounds' } })).toBe(
    'the limit of rounds is reached; the other tasks stay open',
  )
})

test('an answer of JSON is not shown as the message that it is, and prose is', () => {
  const said = (text: string) => {
    const [, event] = recorded([
      begins,
      { ...sampleEvents['item-completed'], item: { kind: 'agent-message', id: 'm', text, phase: null } as never },
    ])
    const state = {
      ...stateAfter([{ ...begins, part: 'act' }], begun),
      kind: changeKind,
      work: own('EXECUTING_TASKS.action'),
    }
    return event && describeEvent(event, state)
  }
  expect(said('{"outputs":{}}')).toBeNull()
  expect(said('I look first.')?.text).toContain('I look first.')
})

test('whatever a model calls its tasks, the screen stays whole', () => {
  fc.assert(
    fc.property(hostileText, hostileText, (text, id) => {
      const tasks = [
        task(id, 'ACTION', text, { why: text }),
        task('T2', 'VERIFICATION', text, { status: 'FAILED', why: text }),
      ]
      const state = session(own('EXECUTING_TASKS.action', { tasks, at: 0 }))
      const board = ownBoard(state)
      expectFitting(
        [
          header(state, 60),
          ...taskLines(
            { board: null, plan: [], own: board && { ...board, now: NOW } },
            { columns: 60, rows: 9, theme: plain },
          ),
          titleOfRound(state)?.title ?? '',
        ].map(line => line),
        400,
      )
    }),
  )
})
