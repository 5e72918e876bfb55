import { expect, test } from 'vitest'
import { forEver, runSession, works } from '../support/breaking-in.ts'
import { ofType } from '../support/played-session.ts'

/** The most characters that codex takes in one turn. */
const MOST_OF_CODEX = 1_048_576

test('however much a person says, a round is told no more than codex takes, the newest whole, and the session goes on', async () => {
  const [a, b, c] = ['a', 'b', 'c'].map(letter => letter.repeat(600_000))
  const { inputs, outcome } = await runSession(
    [forEver, works],
    [
      { on: 'turn-started', say: ['interrupt'] },
      { on: 'held', say: [`steer ${a}`, `steer ${b}`, `steer ${c}`, 'unpause'] },
    ],
    { limits: { rounds: 2 } },
  )
  expect(outcome).toEqual({ kind: 'limit', limit: 'rounds' })
  const told = inputs[1] ?? ''
  expect(told.length).toBeLessThan(MOST_OF_CODEX)
  expect(told).toMatch(/A person says: b{400000,}\n\[… \d+ more characters\]\n/)
  expect(told.includes(`A person says: ${c}`)).toBe(true)
  expect(told.slice(-60)).toMatch(/\n- There was no room here for 2 more\.$/)
})

test('a remark of the most that is taken reaches the round but for what the words before it take, and says so', async () => {
  const { inputs } = await runSession(
    [forEver, works],
    [
      { on: 'turn-started', say: ['interrupt'] },
      { on: 'held', say: [`steer ${'x'.repeat(MOST_OF_CODEX)}`, 'unpause'] },
    ],
    { limits: { rounds: 2 } },
  )
  expect(inputs[1]?.length).toBeLessThan(MOST_OF_CODEX)
  expect(inputs[1]).toMatch(/A person says: x{1033000,}\n\[… \d{5} more characters\]/)
})

test('the same goes for a change of plan, of which what was asked for last is whole', async () => {
  const [first, last] = ['a', 'b'].map(letter => letter.repeat(600_000))
  const { inputs } = await runSession(
    [forEver, forEver, works],
    [
      { on: 'turn-started', say: [`replan ${first}`] },
      { on: 'turn-started', nth: 2, say: [`replan ${last}`] },
      { on: 'held', say: ['unpause'] },
    ],
    { limits: { rounds: 1 } },
  )
  expect(inputs[2]?.length).toBeLessThan(MOST_OF_CODEX)
  expect(inputs[2]).toMatch(/^Change the plan:\n\n\[\d+ characters before …\]\na+\n\nb{600000}$/)
})

test('what codex would not take at all, or says nothing, is refused, and nothing happens', async () => {
  const long = 'x'.repeat(MOST_OF_CODEX + 1)
  const { events, replies, inputs } = await runSession(
    [works],
    [{ on: 'round-started', say: [`steer ${long}`, `replan ${long}`, 'steer  '] }],
    { limits: { rounds: 1 } },
  )
  const tooLong = expect.stringMatching(/^The prompt has 1048577 bytes, and may have at most/)
  expect(replies).toEqual([tooLong, tooLong, expect.stringMatching(/^The prompt is empty/)])
  expect(inputs).toHaveLength(1)
  expect([...ofType(events, 'steered'), ...ofType(events, 'replan-asked')]).toEqual([])
})

test('what is said to a session that is to end is not said to reach a next round before it is resumed', async () => {
  const stopped = await runSession([works], [{ on: 'turn-started', say: ['stop', 'steer use tabs'] }], {
    takesSteering: () => false,
  })
  expect(stopped.replies[1]).toMatch(
    /is about to end; when it is resumed, the agent of its next round reads it first\.$/,
  )
  const resumed = await runSession([works], [], { journal: stopped.events })
  expect(resumed.inputs[0]).toContain('A person says: use tabs')
})

test('what is said while the last processes of a session end is not taken', async () => {
  const { events, replies } = await runSession(
    [works],
    [{ on: 'round-ended', afterMs: 500, say: ['steer use tabs'] }],
    {
      limits: { rounds: 1 },
      settle: clock => clock.wait(1000),
    },
  )
  expect(replies).toEqual(['No session is running now. Try again in a moment.'])
  expect(ofType(events, 'steered')).toEqual([])
})
