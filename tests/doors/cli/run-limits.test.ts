import { expect } from 'vitest'
import { promise } from '../../support/promise.ts'
import { claimDone, held, round } from '../../support/rounds.ts'
import { eventsOf, openScene } from '../../support/scene.ts'
import { test } from '../../support/side-by-side.ts'

promise(
  'M9',
  'The limits are for a run: each session begins with what those before it have left, and when nothing is left what waits is kept (exit code 3), and that is said',
)
test('the limits of a run are for all of its sessions; what waits when nothing is left is kept, and that is said', async () => {
  await using scene = await openScene([round(claimDone), round(claimDone), round('echo four > four.txt')])
  for (const prompt of ['two', 'three', 'four', 'five']) {
    await scene.run('queue', 'add', ...(prompt === 'three' ? ['--rounds', '9'] : []), prompt)
  }
  const { exitCode, events } = await scene.run('--json', '--rounds', '3', 'goal one')
  expect(exitCode).toBe(3)
  const run = (rounds: number) => ({ limits: { rounds: 3 }, used: { rounds } })
  expect(eventsOf(events, 'session-created')).toMatchObject([
    { goal: 'goal one', limits: { rounds: 3 }, run: run(0) },
    { goal: 'two', limits: { rounds: 2 }, run: run(1) },
    { goal: 'four', limits: { rounds: 1 }, run: run(2) },
  ])
  const said =
    'The queue does not start (2 prompts wait): the run has used up its --rounds 3, which is for all its sessions together.'
  expect(eventsOf(events, 'warning').filter(({ message }) => message === said)).toHaveLength(1)
  expect((await scene.run('report', '--md')).stdout).toContain(said)
  const { stdout } = await scene.run('queue', 'list')
  expect(stdout).toContain('three')
  expect(stdout).toContain('five')
})

promise(
  'M10',
  'A run that was killed and resumed has no more than it had, for its session and for what waits behind it',
)
test('a run that was killed and goes on has no more than it had: its session, and what waits behind that', async () => {
  await using scene = await openScene([
    round(claimDone),
    round('echo two > two.txt'),
    [held(new Promise(() => {})), ...round('true')],
    round(claimDone),
    round(claimDone),
  ])
  await scene.run('queue', 'add', 'two')
  await scene.run('queue', 'add', 'three')
  {
    await using running = scene.start('--json', '--rounds', '4', 'goal one')
    await running.event('item-completed', ({ item }) => item.kind === 'agent-message' && item.text === 'Working.')
    const refused = await scene.run('queue', 'add', '--rounds', '9', 'much')
    expect([refused.exitCode, refused.stderr]).toEqual([
      2,
      'codemachine: This session asks for --rounds 9; the run is limited to --rounds 4 in total. (CM0403)\n  Give it a lower limit or none, or start the run with --rounds 9.\n',
    ])
  }
  const { exitCode, events } = await scene.run('resume', '--json')
  expect(exitCode).toBe(0)
  expect(eventsOf(events, 'session-resumed')).toMatchObject([
    { limits: { rounds: 3 }, run: { limits: { rounds: 4 }, used: { rounds: 1 } } },
  ])
  expect(eventsOf(events, 'session-created')).toMatchObject([
    { goal: 'three', limits: { rounds: 1 }, run: { limits: { rounds: 4 }, used: { rounds: 3 } } },
  ])
})

promise(
  'M11',
  "A queued prompt that wants more than the run has is refused with the run's limit, when it is queued or when its turn comes",
)
test('a prompt that wants more than its run has is refused when its turn comes, and the others are worked on', async () => {
  await using scene = await openScene([round(claimDone), round(claimDone)])
  await scene.run('queue', 'add', '--max-tokens', '10M', 'much')
  await scene.run('queue', 'add', 'little')
  const { exitCode, stderr, events } = await scene.run('--json', '--max-tokens', '5M', 'goal one')
  expect(exitCode).toBe(2)
  expect(stderr).toContain(
    'codemachine: 000001 is still queued. This session asks for --max-tokens 10M; the run is limited to --max-tokens 5M in total.',
  )
  expect(eventsOf(events, 'session-created').map(({ goal }) => goal)).toEqual(['goal one', 'little'])
})
