import { expect, test } from 'vitest'
import type { MemorySnapshot } from '../../../src/core/shapes/memory.ts'
import { redactorOf } from '../../../src/secrets/redactor.ts'
import { busy, forEver, HOUR, roundsOf, runSession, works, written } from '../../support/breaking-in.ts'
import { CLAIMED, endsAs, ofType, type Play, UNCLAIMED } from '../../support/played-session.ts'
import { incident, promise } from '../../support/promise.ts'
import { says, worked } from '../../support/session-events.ts'

const asksThenGoesOn = [
  { on: 'turn-started', say: ['replan docs first'] },
  { on: 'held', say: ['unpause'] },
] as const
const silent = { class: 'silent', message: 'nothing for 10 minutes.' } as const

/** A round in which the agent does something before it ends so. */
function worksThenEndsAs(outcome: Awaited<ReturnType<Play>>): Play {
  return ({ run }) => {
    const said = says(run.round, 'Half of it.')
    if (said.type === 'item-completed') run.onEvent(said)
    return outcome
  }
}

test('a claim that codemachine itself takes back is not shown as a change of the plan', async () => {
  let isWithdrawn = false
  const { events } = await runSession([forEver, works], asksThenGoesOn, {
    limits: { rounds: 1 },
    memory: () => ({
      ...(isWithdrawn ? UNCLAIMED : CLAIMED),
      texts: { main: `finite_incantatem: ${!isWithdrawn}\n`, tasks: '' },
    }),
    onWithdraw: () => {
      isWithdrawn = true
    },
  })
  expect(ofType(events, 'done-refused')).toHaveLength(1)
  expect(ofType(events, 'replanned')).toMatchObject([{ files: [] }])
})

test('nor is one that was believed a moment before a change was asked for', async () => {
  let isWithdrawn = false
  const { events, inputs } = await runSession([works, works], [{ on: 'held', say: ['stop'] }], {
    limits: { rounds: 2 },
    memory: () => ({
      ...(isWithdrawn ? UNCLAIMED : CLAIMED),
      texts: { main: `finite_incantatem: ${!isWithdrawn}\n`, tasks: '' },
    }),
    onWithdraw: () => {
      isWithdrawn = true
    },
    settle: clock => clock.wait(10_000),
    onEvent: ({ type }, { runner, asked }) => {
      if (type !== 'done-nominated') return
      runner.tell({ type: 'replan-asked', text: 'docs first' })
      asked.hold()
    },
  })
  expect(inputs[1]).toContain('docs first')
  expect(ofType(events, 'replanned')).toMatchObject([{ files: [] }])
})

test('what the round that changes the plan was told, or failed of, is nothing to the round that works', async () => {
  const { inputs } = await runSession(
    [forEver, works, works],
    [...asksThenGoesOn, { on: 'turn-started', nth: 2, say: ['steer put it last'] }],
    { limits: { rounds: 2 } },
  )
  expect(inputs[2]).not.toContain('put it last')
  const refused = await runSession(
    [forEver, endsAs({ class: 'refused', message: 'not that' }), works],
    asksThenGoesOn,
    { limits: { rounds: 2 } },
  )
  expect(refused.inputs[2]).not.toContain('was refused')
})

test('but the next round that tries to change it is told, also after a cut', async () => {
  const failsOnceTold: Play = async ({ steered }) => {
    await steered
    return { class: 'throttle', message: 'slow down' }
  }
  const cues = [...asksThenGoesOn, { on: 'turn-started', nth: 2, say: ['steer put it last'] } as const]
  const { inputs, events } = await runSession([forEver, failsOnceTold, works], cues, { limits: { rounds: 2 } })
  expect(inputs[2]).toBe('Change the plan:\n\ndocs first\n\nA person says: put it last')
  expect(inputs[3]).not.toContain('put it last')
  const cut = events.slice(0, events.findIndex(({ type }) => type === 'steered') + 1)
  const resumed = await runSession([works], [], { journal: cut })
  expect(resumed.inputs[0]).toBe(inputs[2])
  expect(resumed.inputs[1]).not.toMatch(/put it last|was cut off/)
})

incident('lost work', 'A change of the plan was lost if it was asked for just after the round of another one', {
  since: '2026-11-22',
  fixed: '2026-11-27',
  foundBy: 'a trial',
})
test('one that is asked for just after that round is not lost: the next round makes both', async () => {
  let isAsked = false
  const { events, inputs } = await runSession(
    [forEver, works, works, works],
    [...asksThenGoesOn, { on: 'held', nth: 2, say: ['unpause'] }],
    {
      limits: { rounds: 2 },
      onEvent: (event, { runner, asked }) => {
        if (isAsked || event.type !== 'round-ended' || event.round !== 2) return
        isAsked = true
        runner.tell({ type: 'replan-asked', text: 'tests first' })
        asked.hold()
      },
    },
  )
  expect(inputs[2]).toContain('docs first\n\ntests first')
  expect(ofType(events, 'replanned')).toHaveLength(1)
})

test('a change of plan that the context was too small for is over', async () => {
  const { events, inputs } = await runSession(
    [forEver, endsAs({ class: 'context-full', message: null }), works],
    asksThenGoesOn,
    { limits: { rounds: 2 } },
  )
  expect([ofType(events, 'replanned').length, inputs.length]).toEqual([1, 3])
  expect(inputs[2]).not.toContain('context of the last round was full')
})

test.each(['silent', 'crashed'] as const)(
  'one that breaks off in the middle three times in a row is given up, which is said, and the session holds: %s',
  async end => {
    const plans = ['old\n', 'old\n', 'half\n']
    const { events, tookMs } = await runSession(
      [forEver, worksThenEndsAs({ ...silent, class: end })],
      [
        { on: 'turn-started', say: ['replan docs first'] },
        { on: 'held', say: ['stop'] },
      ],
      { limits: { rounds: 9 }, memory: rounds => written(plans[Math.min(rounds, 2)] ?? '') },
    )
    expect(roundsOf(events).slice(1)).toEqual([2, 2, 2].map(round => [round, end, false]))
    expect(ofType(events, 'warning')).toMatchObject([{ message: expect.stringMatching(/^The plan was not changed: /) }])
    expect(ofType(events, 'replanned')).toMatchObject([{ files: [{ diff: expect.stringContaining('+half') }] }])
    expect(events.map(({ type }) => type).indexOf('held')).toBeGreaterThan(
      events.map(({ type }) => type).indexOf('replanned'),
    )
    expect(ofType(events, 'waiting').length).toBeLessThan(3)
    expect(tookMs).toBeLessThan(HOUR)
  },
)

test('one that breaks off, and then comes to its end, is made', async () => {
  const breaksOff = worksThenEndsAs(silent)
  const { events } = await runSession(
    [forEver, breaksOff, breaksOff, endsAs({ class: 'throttle', message: null }), breaksOff, breaksOff, works],
    asksThenGoesOn,
    { limits: { rounds: 1 } },
  )
  expect(ofType(events, 'warning')).toEqual([])
  expect(ofType(events, 'replanned')).toHaveLength(1)
})

test('a server that does not answer at all is waited for', async () => {
  const { events } = await runSession(
    [forEver, ...Array.from({ length: 5 }, () => endsAs(silent)), works],
    asksThenGoesOn,
    { limits: { rounds: 1 } },
  )
  expect(ofType(events, 'warning')).toEqual([])
  expect(ofType(events, 'replanned')).toHaveLength(1)
})

test('a server that is busy before and after a change of plan is not taken for one that was busy all the time', async () => {
  const { outcome } = await runSession(
    [busy, works, busy, works],
    [
      { on: 'waiting', say: ['replan x'] },
      { on: 'held', afterMs: 25 * HOUR, say: ['unpause'] },
    ],
    { limits: { rounds: 1 } },
  )
  expect(outcome).toEqual({ kind: 'limit', limit: 'rounds' })
})

test('no part of a secret is left where the bound of a diff cuts it', async () => {
  const value = `sk-${'0123456789'.repeat(40)}`
  const long = (secret: string) => `${'x'.repeat(8000)}\n${`${secret}\n`.repeat(30)}`
  const { events } = await runSession([forEver, works], asksThenGoesOn, {
    limits: { rounds: 1 },
    memory: rounds => written(rounds < 2 ? 'old\n' : long(value), rounds < 2 ? value : `${value} `),
    redactor: redactorOf([{ name: 'KEY', value }]),
  })
  const [{ files } = { files: [] }] = ofType(events, 'replanned')
  expect(files.map(({ file }) => file)).toEqual(['MAIN.md', 'tasks.json'])
  for (const { diff } of files) expect(diff).not.toContain('sk-0')
  expect(files[0]?.diff).toContain('[secret KEY]')
})

test('on resume the thread that changes the plan is the one that codex is asked by for the usage', async () => {
  const first = await runSession(
    [forEver, works],
    [
      { on: 'turn-started', say: ['replan x'] },
      { on: 'turn-started', nth: 2, say: ['stop --now'] },
    ],
  )
  const usage = { primary: { usedPercent: 1, windowMinutes: 300, resetsAt: null }, secondary: null }
  const { inputs, prepared, discarded } = await runSession([endsAs(worked)], [], {
    journal: first.events,
    usage,
    limits: { rounds: 1 },
  })
  expect(inputs[0]).toBe('Change the plan:\n\nx')
  expect([prepared - discarded, discarded]).toEqual([inputs.length, 0])
})

/** Memory files of one task with this name. */
const named = (name: string, main = '# X\n', more: object = {}) =>
  written(main, JSON.stringify({ tasks: [{ id: 'T1', name, done: false, ...more }] }))

promise('O102')
test('the change is journaled by its tasks and the lines of MAIN.md, and can be put back while the session holds', async () => {
  let texts: MemorySnapshot | null = null
  const { events, codes, replies, inputs } = await runSession(
    [forEver, works, works],
    [
      { on: 'turn-started', say: ['put-plan-back', 'replan docs first'] },
      { on: 'held', say: ['put-plan-back', 'put-plan-back', 'unpause'] },
    ],
    {
      limits: { rounds: 2 },
      memory: rounds => texts ?? (rounds < 2 ? named('Sing') : named('Write', '# X\n\n- docs\n')),
      onReplaceTexts: ({ main, tasks }) => {
        texts = written(main, tasks)
      },
    },
  )
  expect(ofType(events, 'replanned')).toMatchObject([
    {
      tasks: { changes: [{ id: 'T1', name: 'Write', how: ['renamed'], was: 'Sing' }], count: 1 },
      main: { added: 2, removed: 0 },
      kept: true,
    },
    { tasks: { changes: [{ id: 'T1', name: 'Sing', was: 'Write' }] }, main: { added: 0, removed: 2 }, putBack: true },
  ])
  expect(texts).toEqual(named('Sing'))
  expect(codes).toEqual(['not-paused', 'done', 'done', 'refused', 'done'])
  expect(replies.slice(2, 4)).toEqual([
    'The plan of s is as it was before its last change; codemachine unpause continues.',
    'No earlier plan is stored that could be restored.',
  ])
  expect(inputs.at(-1)).toContain('Read MAIN.md and tasks.json again')
})

promise('O102')
test.each<[string, MemorySnapshot, string | null]>([
  ['a person has edited tasks.json', named('By hand', '# Y\n'), 'tasks.json'],
  ['a person has edited MAIN.md', named('Write', '# Z\n'), 'MAIN.md'],
  ['codemachine has parked a task', named('Write', '# Y\n', { parked: 'too hard' }), null],
])('the old plan is put back over no later change: %s', async (_, later, file) => {
  let isHeld = false
  const wanted: string[] = []
  const { replies } = await runSession(
    [forEver, works, works],
    [
      { on: 'turn-started', say: ['replan docs first'] },
      { on: 'held', say: ['put-plan-back', 'stop'] },
    ],
    {
      limits: { rounds: 2 },
      memory: rounds => (isHeld ? later : rounds < 2 ? named('Sing') : named('Write', '# Y\n')),
      onEvent: ({ type }) => {
        isHeld ||= type === 'held'
      },
      onReplaceTexts: ({ tasks }) => void wanted.push(tasks),
    },
  )
  if (file === null) expect(wanted).toEqual([named('Sing').texts.tasks])
  else expect([wanted, replies[1]]).toEqual([[], expect.stringContaining(`${file} was changed after the plan;`)])
})
