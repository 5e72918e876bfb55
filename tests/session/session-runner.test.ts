import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { UserError } from '../../src/base/errors.ts'
import type { Recorded } from '../../src/core/events/events.ts'
import type { RoundOutcome } from '../../src/core/events/outcome.ts'
import type { MemorySnapshot } from '../../src/core/shapes/memory.ts'
import {
  CLAIMED,
  endsAs,
  ofType,
  type Play,
  type PlayOptions,
  playSession,
  UNCLAIMED,
} from '../support/played-session.ts'
import { incident, promise } from '../support/promise.ts'
import { worked } from '../support/session-events.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'codemachine-runner-'))
})
afterAll(() => rm(folder, { recursive: true }))

const runSession = (plays: readonly Play[], options: Omit<PlayOptions, 'folder'> = {}) =>
  playSession(plays, { folder, ...options })

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const fails = (end: RoundOutcome['class'], message = 'words of codex') => endsAs({ class: end, message })
const works = endsAs(worked)

const warn: Play = ({ run }) => {
  run.onEvent({ type: 'warning', round: run.round, message: 'no bubblewrap' })
  return worked
}

const spend =
  (total: number, then: Play = works): Play =>
  played => {
    const counts = { input: total, cachedInput: 0, output: 0, reasoning: 0, total }
    const { run } = played
    run.onEvent({ type: 'usage', round: run.round, thread: 't', total: counts, last: counts, contextWindow: null })
    return then(played)
  }

/** Works until it is told to stop, and then at once. */
const untilTold: Play = async ({ steered }) => {
  await steered
  return worked
}
const forEver: Play = () => new Promise(() => {})

function waitsOf(events: readonly Recorded[]): number[] {
  return ofType(events, 'waiting').map(({ at, until }) => Date.parse(until) - Date.parse(at))
}

test('a crash uses up no round, is tried again after a growing wait, and three in a row without work need a person', async () => {
  const { outcome, events } = await runSession([fails('crashed', 'killed')])
  expect(outcome).toMatchObject({ kind: 'needs-person', reason: 'killed' })
  expect(waitsOf(events)).toEqual([2000, 4000])
  expect(ofType(events, 'round-started').map(event => event.round)).toEqual([1, 1, 1])
  expect(events.at(-1)).toMatchObject({ type: 'session-ended', exitCode: 4, rounds: 0 })
})

test('a crash of a round that had done something does not count among the three', async () => {
  const working: Play = ({ run }) => {
    const item = { kind: 'agent-message', id: 'm', text: 'Done so far.', phase: null } as const
    run.onEvent({ type: 'item-completed', round: run.round, item })
    return { class: 'crashed', message: 'killed' }
  }
  const { outcome } = await runSession([working, working, working, working, works], { limits: { rounds: 1 } })
  expect(outcome).toEqual({ kind: 'limit', limit: 'rounds' })
})

test('a failure between rounds that work is forgotten', async () => {
  const network = fails('network')
  const { outcome, events } = await runSession([network, works, network, network, works])
  expect(outcome).toEqual({ kind: 'limit', limit: 'rounds' })
  expect(waitsOf(events)).toEqual([2000, 2000, 4000])
})

promise('W5', 'Nothing is waited for longer than `--max-wait`')
test('the network is waited for as long as the person allows, in steps of at most five minutes', async () => {
  const { outcome, events, tookMs } = await runSession([fails('network', 'gone')], { policy: { maxWaitMs: 3 * HOUR } })
  expect(outcome).toMatchObject({ kind: 'needs-person', reason: 'gone', hint: { do: 'mend-cause' } })
  expect(Math.max(...waitsOf(events))).toBe(5 * MINUTE)
  expect(tookMs).toBeGreaterThan(2.8 * HOUR)
  expect(tookMs).toBeLessThanOrEqual(3 * HOUR + MINUTE)
})

promise('W22', "After a wait the files are looked at anew: what a person did meanwhile is not the round's")
test('after a wait the files are looked at anew: what a person did meanwhile is not the next round’s, and memory that they broke is told', async () => {
  const problem = { file: 'tasks.json', problem: 'It is broken.', setAside: null, restored: false } as const
  let hasWaited = false
  const { events } = await runSession([fails('network'), works], {
    limits: { rounds: 1 },
    tree: () => (hasWaited ? 'of the person' : 'at first'),
    memory: () => ({ ...UNCLAIMED, problems: hasWaited ? [problem] : [] }),
    onEvent: ({ type }) => {
      hasWaited ||= type === 'waiting'
    },
  })
  const [, second] = ofType(events, 'round-ended')
  expect(second).toMatchObject({ treeBefore: 'of the person', treeAfter: 'of the person', changedCount: 0 })
  const types = events.map(({ type }) => type)
  expect(types.slice(types.indexOf('wait-ended'), types.lastIndexOf('round-started'))).toContain('memory-broken')
})

promise('W20')
test('a server that refuses access (403) three times in a row needs a person, and is waited for before', async () => {
  const refuses: Play = () => ({ class: 'network', message: 'Access is refused.', status: 403 })
  const { outcome, events } = await runSession([refuses, refuses, refuses], {})
  expect(outcome).toMatchObject({ kind: 'needs-person', hint: { do: 'mend-access' } })
  expect(ofType(events, 'waiting')).toHaveLength(2)
  const between = await runSession([refuses, refuses, fails('network'), refuses, works], { limits: { rounds: 1 } })
  expect(between.outcome).toEqual({ kind: 'limit', limit: 'rounds' })
})

test('a turn that lost the network goes on once in the same thread, and only then is the round begun anew', async () => {
  const once = await runSession([fails('network')], { limits: { rounds: 1 }, carryOn: works })
  expect(once.events.map(event => event.type).filter(type => /round|continued|waiting/.test(type))).toEqual([
    'round-started',
    'turn-continued',
    'round-ended',
  ])
  expect(once.outcome).toEqual({ kind: 'limit', limit: 'rounds' })
  const twice = await runSession([fails('network'), works], { limits: { rounds: 1 }, carryOn: fails('network') })
  expect(ofType(twice.events, 'turn-continued')).toHaveLength(1)
  expect(ofType(twice.events, 'round-started')).toHaveLength(2)
})

const full = (resetsAt: number, usedPercent = 100) => ({ usedPercent, windowMinutes: 300, resetsAt })
const hitsLimit =
  (inMs: number): Play =>
  ({ run, clock }) => {
    run.onEvent({ type: 'limits', primary: full(clock.now() + inMs), secondary: null })
    return { class: 'window', message: 'You have hit your usage limit.' }
  }

test('a usage limit is waited out until the time that codex gave and a little longer, then the same round starts', async () => {
  const { outcome, events, live } = await runSession([hitsLimit(5 * HOUR), works], { limits: { rounds: 1 } })
  expect(outcome).toEqual({ kind: 'limit', limit: 'rounds' })
  expect(waitsOf(events)).toEqual([5 * HOUR + 35_000])
  expect(ofType(events, 'wait-ended')).toMatchObject([{ round: 1, reason: 'over' }])
  expect(ofType(events, 'round-started').map(({ round }) => round)).toEqual([1, 1])
  expect(live.filter(event => event.type === 'still-waiting')).toHaveLength(300)
})

test('a usage limit that is lifted later than a person wants to wait needs that person, who is told when', async () => {
  const { outcome, events } = await runSession([hitsLimit(30 * HOUR)])
  expect(outcome).toMatchObject({
    kind: 'needs-person',
    hint: { do: 'resume', session: expect.any(String), at: expect.stringMatching(/^\d{4}-\d\d-\d\dT/) },
  })
  expect(waitsOf(events)).toEqual([])
})

test('a reset that has just passed, by a clock that is ahead of the server’s, is tried again soon, and then less soon', async () => {
  const { events } = await runSession([hitsLimit(-MINUTE), hitsLimit(-2 * MINUTE), works], { limits: { rounds: 1 } })
  expect(waitsOf(events)).toEqual([35_000, 12.5 * MINUTE])
})

test('rounds that fall silent one after the other are backed off, and are no stall', async () => {
  const silent: Play = ({ run }) => {
    const item = { kind: 'agent-message', id: 'm', text: 'Looking.', phase: null } as const
    run.onEvent({ type: 'item-completed', round: run.round, item })
    return { class: 'silent', message: 'Nothing came from codex for 6 minutes.' }
  }
  const { events, outcome } = await runSession([silent], { limits: { rounds: 5 }, policy: { stallRounds: 3 } })
  expect(outcome).toEqual({ kind: 'limit', limit: 'rounds' })
  expect(waitsOf(events)).toEqual([2000, 4000, 8000, 16_000])
})

test('a usage limit without a time is tried again after longer and longer waits', async () => {
  const { events } = await runSession([fails('window'), fails('window'), works], { limits: { rounds: 1 } })
  expect(waitsOf(events)).toEqual([6.25 * MINUTE, 12.5 * MINUTE])
})

test('a run that starts inside a usage limit waits before its first round', async () => {
  const at = 1_795_000_000_000
  const usage = { primary: full(at + HOUR), secondary: full(at + 90 * MINUTE, 40) }
  const { events } = await runSession([works], { limits: { rounds: 1 }, usage })
  expect(events.map(({ type }) => type).slice(1, 6)).toEqual([
    'limits',
    'savepoint',
    'waiting',
    'wait-ended',
    'round-started',
  ])
  expect(waitsOf(events)[0]).toBeGreaterThanOrEqual(HOUR)
  expect(waitsOf(events)[0]).toBeLessThan(HOUR + MINUTE)
})

test('the files are looked at and kept while codex is asked what is used of the account', async () => {
  const kept = Promise.withResolvers<null>()
  const { events, tookMs } = await runSession([works], {
    limits: { rounds: 1 },
    usageOnceAsked: () => kept.promise,
    onEvent: ({ type }) => type === 'savepoint' && kept.resolve(null),
  })
  expect(ofType(events, 'round-started')).toHaveLength(1)
  expect(tookMs).toBe(0)
})

test('files that a person may have changed while codex was asked for long are looked at again, so that no round is said to have changed them', async () => {
  let looks = 0
  const { events } = await runSession([works], {
    limits: { rounds: 1 },
    usageOnceAsked: () => new Promise(() => {}),
    tree: () => `tree-${++looks}`,
  })
  expect(ofType(events, 'savepoint')[0]).toMatchObject({ round: 0, tree: 'tree-1' })
  expect(ofType(events, 'round-ended')).toMatchObject([{ treeBefore: 'tree-2', treeAfter: 'tree-3' }])
})

test('an account with credits does not wait for a window that is full, and tries', async () => {
  const usage = { primary: full(1_795_000_000_000 + HOUR), secondary: null, credits: true }
  const { events } = await runSession([works], { limits: { rounds: 1 }, usage })
  expect(waitsOf(events)).toEqual([])
})

test('with --max-usage a round is brought to a safe stop, and the next one waits until the window is renewed', async () => {
  const uses =
    (percent: number): Play =>
    async played => {
      played.run.onEvent({ type: 'limits', primary: full(played.clock.now() + HOUR, percent), secondary: null })
      return percent < 90 ? worked : await untilTold(played)
    }
  const { events, inputs } = await runSession([uses(50), uses(91), works], {
    policy: { maxUsage: 90 },
    limits: { rounds: 3 },
  })
  expect(ofType(events, 'winding-down')).toMatchObject([{ round: 2, limit: 'usage', graceMs: 300_000 }])
  expect(ofType(events, 'waiting')).toMatchObject([
    {
      round: 3,
      reason: 'max-usage',
      cause: { class: 'window', message: '91 % of it are used, and --max-usage is 90 %.' },
    },
  ])
  expect(inputs).toHaveLength(3)
})

test('a person who does not want to wait for a usage limit is believed until it is lifted', async () => {
  const uses: Play = ({ run, clock }) => {
    run.onEvent({ type: 'limits', primary: full(clock.now() + HOUR, 95), secondary: null })
    return worked
  }
  const { events, tookMs } = await runSession([uses], {
    policy: { maxUsage: 90 },
    limits: { rounds: 3 },
    onEvent: (event, { asked }) => {
      if (event.type === 'waiting') queueMicrotask(() => setImmediate(() => asked.retry()))
    },
  })
  expect(ofType(events, 'wait-ended').map(({ reason }) => reason)).toContain('retry')
  expect(tookMs).toBeLessThan(MINUTE)
})

test('time that is up in the middle of a round: the agent is asked to stop safely, and need not be interrupted', async () => {
  const { outcome, events, tookMs } = await runSession([untilTold], { limits: { timeMs: HOUR } })
  expect(outcome).toEqual({ kind: 'limit', limit: 'time' })
  expect(ofType(events, 'winding-down')).toMatchObject([{ round: 1, limit: 'time' }])
  expect(ofType(events, 'round-ended')).toMatchObject([{ outcome: { class: 'worked' }, counts: true }])
  expect(events.at(-1)).toMatchObject({ type: 'session-ended', exitCode: 3 })
  expect(tookMs).toBe(HOUR)
})

test('an agent that does not stop when asked is interrupted after the time it was given', async () => {
  const { outcome, events, tookMs } = await runSession([forEver], { limits: { timeMs: HOUR } })
  expect(outcome).toEqual({ kind: 'limit', limit: 'time' })
  expect(ofType(events, 'round-ended')).toMatchObject([{ outcome: { class: 'interrupted' } }])
  expect(tookMs).toBe(HOUR + 5 * MINUTE)
})

test('tokens that are used up stop the round safely, and no further one starts', async () => {
  const { outcome, events } = await runSession([spend(600), spend(500, untilTold), works], { limits: { tokens: 1000 } })
  expect(outcome).toEqual({ kind: 'limit', limit: 'tokens' })
  expect(ofType(events, 'winding-down')).toMatchObject([{ round: 2, limit: 'tokens' }])
  expect(events.at(-1)).toMatchObject({ tokens: 1100, rounds: 2 })
})

test('a wait is not longer than the time that the session has left', async () => {
  const { outcome, tookMs } = await runSession([hitsLimit(5 * HOUR)], { limits: { timeMs: HOUR } })
  expect(outcome).toEqual({ kind: 'limit', limit: 'time' })
  expect(tookMs).toBe(HOUR)
})

test('three refusals in a row need a person; one in between does not', async () => {
  const refused = fails('refused', 'not allowed')
  const { outcome, inputs } = await runSession([refused, refused, works, refused, refused, refused], { limits: {} })
  expect(outcome).toMatchObject({ kind: 'needs-person', reason: 'not allowed' })
  expect(inputs).toHaveLength(6)
  expect(inputs[1]).toContain('The last request was refused: not allowed')
})

test('a round that hung before it did anything uses up none; the next is told of what hung', async () => {
  const hung = fails('silent', '`npm test` was still running after 60 minutes.')
  const { events, inputs } = await runSession([hung, works], { limits: { rounds: 1 } })
  expect(ofType(events, 'round-ended').map(({ counts }) => counts)).toEqual([false, true])
  expect(inputs[1]).toContain('`npm test` was still running after 60 minutes.')
})

promise(
  'W25',
  'A session that gets nowhere because the disk of the work directory is full needs a person (exit code 4), and is not stalled',
)
test('rounds that leave everything as it was because the disk of the work directory is full need a person, and are no stall', async () => {
  const { outcome } = await runSession([works], { limits: {}, policy: { stallRounds: 3 }, lacksRoom: true })
  expect(outcome).toMatchObject({
    kind: 'needs-person',
    reason: expect.stringMatching(/^No room left on the disk of .+\.$/),
    hint: { do: 'free-disk-space' },
  })
})

test('where the rounds are used up and the last ones left everything as it was because the disk is full, that is said', async () => {
  const warningsOf = async (lacksRoom: boolean) => {
    const { outcome, events } = await runSession([works], { limits: { rounds: 2 }, lacksRoom })
    expect(outcome).toEqual({ kind: 'limit', limit: 'rounds' })
    return ofType(events, 'warning').map(({ message }) => message)
  }
  expect(await warningsOf(true)).toEqual([
    expect.stringMatching(
      /^The disk of \S+ is full, and the last rounds changed nothing: free some space before the session continues\.$/,
    ),
  ])
  expect(await warningsOf(false)).toEqual([])
})

test('rounds that leave everything as it was are told so, then think harder, then the session ends as stalled', async () => {
  const { outcome, events, inputs, efforts } = await runSession([works], { limits: {}, policy: { stallRounds: 3 } })
  expect(outcome).toEqual({ kind: 'stalled', rounds: 5, why: 'nothing-changed' })
  expect(ofType(events, 'stuck').map(({ round, remedy }) => [round, remedy])).toEqual([
    [3, 'another-way'],
    [4, 'more-effort'],
  ])
  expect(inputs[3]).toContain('changed no file')
  expect(efforts).toEqual([null, null, null, null, 'high'])
  expect(events.at(-1)).toMatchObject({ type: 'session-ended', exitCode: 5 })
})

test('the same refusal three times is a stall too, though files change', async () => {
  let trees = 0
  const { outcome, events } = await runSession([works], {
    limits: {},
    policy: { stallRounds: 3 },
    tree: () => String(trees++),
    memory: () => ({ ...UNCLAIMED, main: { ...CLAIMED.main, open: ['write the docs'] } }),
  })
  expect(outcome).toEqual({ kind: 'stalled', rounds: 5, why: 'same-refusal' })
  expect(ofType(events, 'stuck')).toMatchObject([{ why: 'same-refusal', rounds: 3 }, { rounds: 4 }])
})

test('progress after a stall gives the session its retryPolicy and its effort back', async () => {
  const trees = ['a', 'a', 'a', 'a', 'a', 'b', 'b', 'c']
  const { efforts, outcome } = await runSession([works], {
    limits: { rounds: 8 },
    policy: { stallRounds: 3 },
    tree: () => trees.shift() ?? 'd',
  })
  expect(efforts).toEqual([null, null, null, null, 'high', null, null, null])
  expect(outcome.kind).toBe('limit')
})

test('stop ends the session after the round, stop --now at once, and neither counts against it', async () => {
  const afterRound = await runSession([endsAs(worked, MINUTE)], {
    onEvent: ({ type }, { asked }) => {
      if (type === 'turn-started') asked.stopAfterRound()
    },
  })
  expect(afterRound.outcome).toEqual({ kind: 'interrupted', by: 'stop' })
  expect(afterRound.events.at(-1)).toMatchObject({ rounds: 1, exitCode: 130 })
  const atOnce = await runSession([forEver], {
    onEvent: ({ type }, { asked }) => {
      if (type === 'turn-started') setImmediate(() => asked.endNow('stop'))
    },
  })
  expect(atOnce.outcome).toEqual({ kind: 'interrupted', by: 'stop' })
  expect(atOnce.events.at(-1)).toMatchObject({ rounds: 0 })
})

test('a claim that is accepted in the round after which a person wanted to stop is done', async () => {
  const { outcome } = await runSession([works], {
    memory: () => CLAIMED,
    onEvent: ({ type }, { asked }) => {
      if (type === 'turn-started') asked.stopAfterRound()
    },
  })
  expect(outcome).toEqual({ kind: 'done', verified: false })
})

test('a session that was cut off when its claim had been accepted is done, unless files have changed since', async () => {
  const { events } = await runSession([works], { memory: () => CLAIMED, limits: { rounds: 1 } })
  const cut = events.slice(0, events.findIndex(({ type }) => type === 'done-accepted') + 1)
  const resumed = await runSession([works], { journal: cut, memory: () => CLAIMED })
  expect(resumed.outcome).toEqual({ kind: 'done', verified: false })
  expect(resumed.inputs).toEqual([])
  const changed = await runSession([works], { journal: cut, tree: () => 'other' })
  expect(ofType(changed.events, 'done-refused')).toMatchObject([{ reason: 'tree-changed' }])
  expect(changed.outcome).toEqual({ kind: 'limit', limit: 'rounds' })
})

test('what a person says in the moment before a round starts is told to that round', async () => {
  let said = false
  const { inputs } = await runSession([fails('throttle'), works], {
    limits: { rounds: 1 },
    tree: playing => {
      if (playing && !said && playing.runner.state.failures.inARow === 1 && playing.runner.state.waiting === null) {
        said = true
        void playing.runner.steer('use tabs')
      }
      return 'same'
    },
  })
  expect(said).toBe(true)
  expect(inputs.at(-1)).toContain('A person says: use tabs')
})

test('a stop in the moment before a round starts is obeyed, and so is one while codex is asked for the usage', async () => {
  const beforeRound = await runSession([works], {
    tree: playing => {
      playing?.asked.stopAfterRound()
      return 'same'
    },
  })
  expect(beforeRound.inputs).toEqual([])
  expect(beforeRound.outcome).toEqual({ kind: 'interrupted', by: 'stop' })
  for (const stop of ['stopAfterRound', 'endNow'] as const) {
    const whileAsked = await runSession([works], {
      onBegin: ({ asked }) => setImmediate(() => (stop === 'endNow' ? asked.endNow('SIGINT') : asked.stopAfterRound())),
      usageOnceAsked: () => new Promise(() => {}),
    })
    expect(whileAsked).toMatchObject({ inputs: [], outcome: { kind: 'interrupted' }, discarded: 1, tookMs: 0 })
  }
})

test('what was started before its thread was known is ended where no round comes, or another engine plays it', async () => {
  const none = await runSession([works], { onBegin: ({ asked }) => asked.stopAfterRound() })
  expect([none.inputs, none.cooled > 0]).toEqual([[], true])
  const cooledBefore: number[] = []
  await runSession([works], {
    limits: { rounds: 1 },
    onEvent: ({ type }, { cooled }) => type === 'round-started' && cooledBefore.push(cooled()),
  })
  expect(cooledBefore).toEqual([1])
})

test('a codex that does not say what is used of the account holds up the first round for 15 s, and runs it', async () => {
  const { outcome, events, prepared } = await runSession([works], {
    limits: { rounds: 1 },
    usageOnceAsked: () => new Promise(() => {}),
  })
  expect(outcome).toEqual({ kind: 'limit', limit: 'rounds' })
  const [created, started] = [events[0], ...ofType(events, 'round-started')]
  expect(Date.parse(started?.at ?? '') - Date.parse(created?.at ?? '')).toBe(15_000)
  expect(prepared).toBe(1)
})

test('an agent that could not be told of the limit before its turn had started is told then', async () => {
  const late: Play = async played => {
    await played.clock.wait(10 * MINUTE, played.interrupted)
    played.run.onEvent({ type: 'turn-started', round: played.run.round, thread: 't', turn: 'v' })
    return await untilTold(played)
  }
  const { events, tookMs } = await runSession([late], {
    limits: { timeMs: 8 * MINUTE },
    takesSteering: said => said.length > 1,
  })
  expect(ofType(events, 'round-ended')).toMatchObject([{ outcome: { class: 'worked' } }])
  expect(tookMs).toBe(10 * MINUTE)
})

test('a turn that lost the network is not gone on with once its time is up', async () => {
  const { events, outcome } = await runSession([endsAs({ class: 'network', message: null }, 59_000)], {
    limits: { timeMs: MINUTE },
    carryOn: forEver,
  })
  expect(ofType(events, 'turn-continued')).toEqual([])
  expect(outcome).toEqual({ kind: 'limit', limit: 'time' })
})

test('claims that are refused because the round failed are no stall', async () => {
  const allDone: MemorySnapshot = { ...CLAIMED, tasks: [{ id: 'T1', name: 'x', done: true }] }
  const { events, outcome } = await runSession([...Array(5).fill(fails('network')), works, works], {
    limits: { rounds: 2 },
    policy: { stallRounds: 3 },
    memory: rounds => (rounds < 6 ? allDone : UNCLAIMED),
  })
  expect(ofType(events, 'stuck')).toEqual([])
  expect(outcome).toEqual({ kind: 'limit', limit: 'rounds' })
})

test('a wait that a wrong clock had made endless is not longer than a person allows when the session is resumed', async () => {
  const { events } = await runSession([hitsLimit(HOUR), works], { limits: { rounds: 1 } })
  const cut = events.slice(0, events.findIndex(({ type }) => type === 'waiting') + 1)
  const wrong = cut.map(event => (event.type === 'waiting' ? { ...event, until: '2031-01-01T00:00:00.000Z' } : event))
  const { tookMs } = await runSession([works], { journal: wrong, policy: { maxWaitMs: 2 * HOUR } })
  expect(tookMs).toBe(2 * HOUR)
})

test('a server that always says "in a second" is asked less and less often', async () => {
  const told: Play = ({ clock }) => ({ class: 'throttle', message: 'try again in 1 s', retryAt: clock.now() + 1000 })
  const { events } = await runSession([told, told, told, told, told, works], { limits: { rounds: 1 } })
  expect(waitsOf(events)).toEqual([2000, 4000, 8000, 16_000, 32_000])
})

promise('W9', 'A paused session starts no round, and its time counts')
test('a paused session starts no round, and its time counts', async () => {
  const { outcome, events } = await runSession([endsAs(worked, MINUTE)], {
    limits: { timeMs: 6 * HOUR, rounds: 2 },
    onEvent: ({ type }, { asked, runner, clock }) => {
      if (type !== 'turn-started' || asked.isPaused || runner.state.roundsUsed > 0) return
      asked.pause()
      runner.tell({ type: 'paused' })
      void clock.wait(5 * HOUR).then(() => {
        runner.tell({ type: 'unpaused' })
        asked.unpause()
      })
    },
  })
  expect(outcome).toEqual({ kind: 'limit', limit: 'rounds' })
  const [, second] = ofType(events, 'round-started')
  expect(Date.parse(second?.at ?? '')).toBeGreaterThan(Date.parse(ofType(events, 'paused')[0]?.at ?? '') + 4.9 * HOUR)
  expect(events.at(-1)).toMatchObject({ durationMs: 5 * HOUR + MINUTE })
})

test('the next thread is started while a round works, and none for a round that will not be', async () => {
  const { prepared, discarded, inputs } = await runSession([works], { limits: { rounds: 3 } })
  expect({ prepared, discarded, rounds: inputs.length }).toEqual({ prepared: 3, discarded: 0, rounds: 3 })
})

test('the same warning of codex is shown once', async () => {
  const { events } = await runSession([warn])
  expect(ofType(events, 'warning')).toHaveLength(1)
})

test('a journal that cannot be written ends the run with what is wrong', async () => {
  const diskFull = new UserError('CM0109', 'The disk is full.', { exitCode: 4 })
  const append = (event: Recorded) => {
    if (event.type === 'warning') throw diskFull
  }
  await expect(runSession([warn], { append })).rejects.toBe(diskFull)
})

test('no agent goes on in a round that cannot be journaled any more, though its own turn has ended', async () => {
  const diskFull = new UserError('CM0109', 'The disk is full.', { exitCode: 4 })
  const started = Promise.withResolvers<void>()
  const ownTurn: Play = async () => {
    await started.promise
    return worked
  }
  const ofAgent: Play = async ({ run, clock }) => {
    started.resolve()
    await clock.wait(MINUTE)
    run.onEvent({ type: 'warning', round: run.round, message: 'no bubblewrap' })
    return await new Promise(() => {})
  }
  const asked = { agent: 'a', task: 'Go.', paths: null, door: 'command-line', thread: null, isOutside: true } as const
  let isAsked = false
  const session = runSession([ownTurn, ofAgent], {
    book: {
      thread: async agent => ({ thread: { agent, developerInstructions: '', model: null, effort: null } }),
      remember: async () => null,
      clean: text => text,
    },
    append: ({ type }) => {
      if (type === 'warning') throw diskFull
    },
    onEvent: ({ type }, { runner }) => {
      if (type !== 'turn-started' || isAsked) return
      isAsked = true
      void runner.delegation.run(asked, new AbortController().signal)
    },
  })
  await expect(session).rejects.toBe(diskFull)
})

test('a claim of a round that failed is refused then and there, and the next round is told', async () => {
  const { events, inputs } = await runSession([fails('network', 'cut'), works], {
    memory: rounds => (rounds === 1 ? CLAIMED : UNCLAIMED),
  })
  expect(ofType(events, 'done-refused')).toMatchObject([{ round: 1, reason: 'round-not-completed' }])
  expect(inputs[1]).toContain('did not accept the claim')
})

test('what a round was told is told again if that round did not count', async () => {
  let trees = 0
  const { inputs } = await runSession([works, fails('throttle', 'slow down'), works], {
    limits: { rounds: 3 },
    tree: () => String(Math.min(trees++, 1)),
    memory: rounds => (rounds === 1 ? CLAIMED : UNCLAIMED),
  })
  expect(inputs).toHaveLength(4)
  expect(inputs[1]).toContain('did not accept the claim')
  expect(inputs[2]).toContain('did not accept the claim')
  expect(inputs[3]).not.toContain('did not accept the claim')
})

promise('D3')
incident('false done', 'A claim could be judged before a process that its round had left changed files once more', {
  since: '2026-11-21',
  fixed: '2026-11-22',
  foundBy: 'mutation tests',
})
test('what a round left running is ended before its claim is judged, and what it changed until then refuses it', async () => {
  let settled = 0
  const { outcome, events } = await runSession([works], {
    limits: { rounds: 2 },
    // What is left running writes until it is ended, which is later than any look before that.
    settle: async () => void settled++,
    tree: () => (settled === 0 ? 'a' : 'b'),
    memory: () => CLAIMED,
  })
  expect(ofType(events, 'done-refused')).toMatchObject([{ round: 1, reason: 'tree-changed' }])
  expect(outcome).toEqual({ kind: 'done', verified: false })
})

promise('D3', 'A claim is not believed if the tree changes once more when all that the round left has ended')
test('a claim is not believed if the tree changes once more when all that the round left has ended', async () => {
  const trees = ['a', 'a', 'b', 'b', 'b']
  const { outcome, events } = await runSession([works], {
    limits: { rounds: 2 },
    tree: () => trees.shift() ?? 'b',
    memory: () => CLAIMED,
  })
  // Before anything is proved of it.
  const detail = expect.stringContaining('something that was left running changed files')
  expect(ofType(events, 'done-refused')).toMatchObject([{ round: 1, reason: 'tree-changed', detail }])
  expect(outcome).toEqual({ kind: 'done', verified: false })
})
