import { expect } from 'vitest'
import { roundsOf, startNight } from '../../../support/night.ts'
import { promise } from '../../../support/promise.ts'
import { IMPATIENT, openRealScene } from '../../../support/real-scene.ts'
import { claimDone, folder, held, round, says, writeTasks } from '../../../support/rounds.ts'
import { eventsOf, openScene } from '../../../support/scene.ts'
import { describe, test } from '../../../support/side-by-side.ts'

const claimInFirst = claimDone.replaceAll('tail', 'head')
const never = new Promise<never>(() => {})
const isWords = ({ item }: { item: { kind: string } }) => item.kind === 'agent-message'
const busy = { kind: 'status', status: 429, body: { error: { message: 'slow down' } } } as const

describe('from another terminal', () => {
  test('stop lets the round come to its end, and resume goes on', async () => {
    const gate = Promise.withResolvers<void>()
    await using scene = await openScene([[held(gate.promise), says('So far.')], round(claimDone)])
    const night = startNight(scene, ['build X'])
    await night.run.event('item-completed', isWords)
    expect(await night.meanwhile('stop').ended).toMatchObject({ exitCode: 0, stderr: '' })
    expect(await night.run.event('stop-asked')).toMatchObject({ now: false })
    expect((await night.meanwhile('status').ended).stdout).toMatch(/stop/)
    gate.resolve()
    const { exitCode, events, stderr } = await night.run.ended
    expect(roundsOf(events)).toEqual([[1, 'worked', true]])
    expect(eventsOf(events, 'session-ended')).toMatchObject([{ outcome: { kind: 'interrupted', by: 'stop' } }])
    expect([exitCode, stderr]).toEqual([130, expect.stringContaining('codemachine resume')])
    expect(await startNight(scene, ['resume']).run.ended).toMatchObject({ exitCode: 0 })
  })

  test('stop --now interrupts the round, which does not count', async () => {
    await using scene = await openScene([[held(never)], round(claimDone)])
    const night = startNight(scene, ['--rounds', '1', 'build X'])
    await night.run.event('item-completed', isWords)
    expect(await night.meanwhile('stop', '--now').ended).toMatchObject({ exitCode: 0, stderr: '' })
    const { exitCode, events } = await night.run.ended
    expect(roundsOf(events)).toEqual([[1, 'interrupted', false]])
    expect(eventsOf(events, 'stop-asked')).toMatchObject([{ now: true }])
    expect(exitCode).toBe(130)
    expect(await startNight(scene, ['resume']).run.ended).toMatchObject({ exitCode: 0 })
  })

  test('stop ends a wait', async () => {
    await using scene = await openRealScene([[busy]], { provider: IMPATIENT })
    const night = startNight(scene, ['build X'])
    await night.run.event('waiting')
    await night.meanwhile('stop').ended
    const { exitCode, events } = await night.run.ended
    expect(eventsOf(events, 'wait-ended')).toMatchObject([{ reason: 'stopped' }])
    expect(exitCode).toBe(130)
  })

  test('pause holds the session after its round, hours long, and unpause lets it go on', async () => {
    const gate = Promise.withResolvers<void>()
    await using scene = await openScene([[held(gate.promise), says('So far.')], round(claimDone)])
    const night = startNight(scene, ['--max-time', '5h', 'build X'])
    await night.run.event('item-completed', isWords)
    expect(await night.meanwhile('pause').ended).toMatchObject({ exitCode: 0, stderr: '' })
    await night.run.event('paused')
    gate.resolve()
    await night.run.event('held')
    await night.nothingAsked()
    await night.clock.advance(3 * 3_600_000)
    expect(eventsOf(night.run.events, 'round-started')).toHaveLength(1)
    expect((await night.meanwhile('status').ended).stdout).toMatch(/paused/)
    expect(await night.meanwhile('unpause').ended).toMatchObject({ exitCode: 0, stderr: '' })
    const { exitCode, events } = await night.run.ended
    expect(eventsOf(events, 'unpaused')).toHaveLength(1)
    expect(eventsOf(events, 'winding-down')).toEqual([])
    expect([exitCode, roundsOf(events).length]).toEqual([0, 2])
  })

  promise('W30')
  test('an interruption after which nobody says anything holds for half an hour, and then goes on by itself', async () => {
    await using scene = await openScene([[held(never)], round(claimDone)])
    const night = startNight(scene, ['--max-time', '2h', 'build X'])
    await night.run.event('item-completed', isWords)
    expect(await night.meanwhile('interrupt').ended).toMatchObject({ exitCode: 0, stderr: '' })
    expect(await night.run.event('hold-until')).toMatchObject({ how: 'goes-on' })
    await night.nothingAsked()
    await night.clock.advance(10 * 60_000)
    expect((await night.meanwhile('status').ended).stdout).toMatch(
      /paused since .*, continues by itself in 20 min, at /,
    )
    await night.clock.advance(20 * 60_000)
    const { exitCode, events } = await night.run.ended
    expect(eventsOf(events, 'unpaused')).toMatchObject([{ by: 'default' }])
    expect([exitCode, roundsOf(events).length]).toEqual([0, 2])
  })

  promise('W31')
  test('while somebody watches a session that holds, it does not go on by itself; half an hour after they have gone it does', async () => {
    await using scene = await openScene([[held(never)], round(claimDone)])
    const night = startNight(scene, ['build X'])
    const holdUntil = (nth: number) =>
      night.run.event('hold-until', event => eventsOf(night.run.events, 'hold-until').indexOf(event) === nth - 1)
    await night.run.event('item-completed', isWords)
    expect(await night.meanwhile('interrupt').ended).toMatchObject({ exitCode: 0 })
    const alone = await holdUntil(1)
    // Without a terminal nobody sees it.
    const watching = scene.startInProcess(['watch'], {
      clock: night.clock,
      tty: true,
      // A terminal that can draw, wherever the tests run.
      env: { TERM: 'xterm-256color' },
    })
    const watched = await holdUntil(2)
    expect(watched.how).toBe('goes-on')
    // Until --max-wait.
    expect(Date.parse(watched.until) - Date.parse(alone.until)).toBeGreaterThan(23 * 3_600_000)
    watching.signal('SIGINT')
    await watching.ended
    await night.nothingAsked()
    await night.clock.advance(2 * 60_000)
    const gone = await holdUntil(3)
    expect(Date.parse(gone.until) - Date.parse(gone.at)).toBeLessThanOrEqual(30 * 60_000)
    expect(eventsOf(night.run.events, 'unpaused')).toEqual([])
    // No further: what codex is asked in the next round has its own time.
    await night.clock.advance(Math.max(0, Date.parse(gone.until) - night.clock.now()))
    const { exitCode, events } = await night.run.ended
    expect(eventsOf(events, 'unpaused')).toMatchObject([{ by: 'default' }])
    expect([exitCode, roundsOf(events).length]).toEqual([0, 2])
  })

  promise('O1', 'A second run in the same directory is refused (exit code 6) while queue, status, logs and steer work')
  test('a second run is refused in one sentence while queue, status, logs and steer work', async () => {
    const gate = Promise.withResolvers<void>()
    await using scene = await openScene([[held(gate.promise), ...round(claimDone)], round(claimDone)])
    const night = startNight(scene, ['build X'])
    await night.run.event('item-completed', isWords)
    const second = await night.meanwhile('build Y').ended
    expect([second.exitCode, second.stdout]).toEqual([6, ''])
    expect(second.stderr.trim().split('\n').length).toBeLessThanOrEqual(2)
    for (const command of [['queue', 'add', 'then Y'], ['status'], ['logs'], ['steer', 'mind the gap']])
      expect(await night.meanwhile(...command).ended).toMatchObject({ exitCode: 0, stderr: '' })
    gate.resolve()
    const { exitCode, events } = await night.run.ended
    expect(eventsOf(events, 'session-ended').map(({ outcome }) => outcome.kind)).toEqual(['done', 'done'])
    expect(exitCode).toBe(0)
  })

  promise('O3', '`interrupt` holds the session, and what it is told then reaches the next round')
  test('interrupt ends the turn and holds; told something and let go on, the next round knows of it', async () => {
    await using scene = await openScene([[held(never)], round(claimDone)])
    const night = startNight(scene, ['build X'])
    await night.run.event('item-completed', isWords)
    expect(await night.meanwhile('interrupt').ended).toMatchObject({ exitCode: 0, stderr: '' })
    await night.run.event('held')
    expect((await night.meanwhile('status').ended).stdout).toMatch(/paused since .*; codemachine unpause continues/)
    expect(await night.meanwhile('steer', 'use tabs').ended).toMatchObject({ exitCode: 0 })
    expect((await night.meanwhile('interrupt').ended).stderr).toMatch(/paused already/)
    expect(await night.meanwhile('unpause').ended).toMatchObject({ exitCode: 0 })
    const { exitCode, events } = await night.run.ended
    expect([exitCode, ...roundsOf(events)]).toEqual([0, [1, 'interrupted', true], [2, 'worked', true]])
    expect(scene.input(2)).toContain('A person interrupted the last round')
    expect(scene.input(2)).toContain('A person says: use tabs')
  })

  test('skip leaves the session for the next in the queue, and resume goes on with it', async () => {
    await using scene = await openScene([[held(never)], round(claimDone), round(claimInFirst)])
    const night = startNight(scene, ['build X'])
    await night.run.event('item-completed', isWords)
    await night.meanwhile('queue', 'add', 'then Y').ended
    await night.meanwhile('interrupt').ended
    await night.run.event('held')
    const skipped = await night.meanwhile('skip').ended
    expect(skipped.stdout).toMatch(/the next in the queue starts; codemachine resume .*_1 continues/)
    const { exitCode, events } = await night.run.ended
    expect(eventsOf(events, 'session-ended')).toMatchObject([
      { outcome: { kind: 'interrupted', by: 'skip' }, exitCode: 130 },
      { outcome: { kind: 'done' } },
    ])
    expect(exitCode).toBe(130)
    expect((await night.meanwhile('list').ended).stdout).toMatch(/_1 .*skipped/)
    const resumed = await startNight(scene, ['resume']).run.ended
    expect([resumed.exitCode, resumed.events[0]?.session]).toEqual([0, events[0]?.session])
  })

  promise('O4', '`replan` changes the plan in a round of its own, and shows what changed')
  test('replan edits the plan in a round of its own, shows what changed, and holds: again, or go on', async () => {
    const add = (entry: string) => `sed -i 's/^## Todo$/## Todo\\n\\n- [ ] ${entry}/' ${folder}/MAIN.md`
    const plan = (name: string) => writeTasks([{ id: 'T1', name, done: false }])
    const clean = `sed -i '/^- \\[ \\]/d' ${folder}/MAIN.md`
    const done = writeTasks([{ id: 'T1', name: 'docs', done: true }])
    await using scene = await openScene([
      [held(never)],
      round(add('T1 docs'), plan('docs')),
      round(`sed -i 's/T1 docs/T1 French docs/' ${folder}/MAIN.md`),
      round(clean, done, claimDone),
    ])
    const night = startNight(scene, ['build X'])
    await night.run.event('item-completed', isWords)
    const { exitCode, stdout } = await night.meanwhile('replan', 'write the docs first').ended
    expect([exitCode, stdout]).toEqual([0, expect.stringMatching(/Round 1 is interrupted.*unpause/)])
    await night.run.event('replanned')
    await night.meanwhile('replan', 'in French').ended
    await night.run.event('replanned', event => eventsOf(night.run.events, 'replanned').indexOf(event) === 1)
    expect((await night.meanwhile('logs').ended).stdout).toContain('+ T1 docs')
    await night.meanwhile('unpause').ended
    const { events } = await night.run.ended
    expect(roundsOf(events)).toEqual([
      [1, 'interrupted', true],
      [2, 'worked', false],
      [2, 'worked', false],
      [2, 'worked', true],
    ])
    expect(eventsOf(events, 'replanned').map(({ files }) => files.map(({ file }) => file))).toEqual([
      ['MAIN.md', 'tasks.json'],
      ['MAIN.md'],
    ])
    const changesPlan = (texts: readonly string[]) => texts.some(text => text.includes('wants its plan to be another'))
    const replanning = scene.model.requests.filter(({ developerTexts }) => changesPlan(developerTexts))
    expect(new Set(replanning.map(({ conversation }) => conversation))).toEqual(new Set([1, 2]))
    expect(scene.input(2)).toContain('write the docs first')
    expect(scene.input(4)).toContain('A person had the plan changed.')
    expect(events.at(-1)).toMatchObject({ outcome: { kind: 'done' }, rounds: 2 })
  })

  test('where nothing waits, retry says so', async () => {
    await using scene = await openScene([[held(never)]])
    const night = startNight(scene, ['build X'])
    await night.run.event('item-completed', isWords)
    const { exitCode, stderr } = await night.meanwhile('retry').ended
    expect(exitCode).toBe(2)
    expect(stderr).toMatch(/wait/)
  })
})
