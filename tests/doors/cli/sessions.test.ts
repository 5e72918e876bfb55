import { appendFileSync, mkdirSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { SessionEvent } from '../../../src/core/events/events.ts'
import type { Key } from '../../../src/doors/screen/composer/keys.ts'
import { type SessionsPlace, sessionList } from '../../../src/doors/screen/sessions/session-list.ts'
import type { FullView, Stage } from '../../../src/doors/screen/view/full-view.ts'
import { Keymap } from '../../../src/project/settings/keys.ts'
import { type SessionRow, type SessionsScope, SessionsTable } from '../../../src/project/watch/sessions-table.ts'
import { takeRunLock } from '../../../src/session/records/run-lock.ts'
import { widthOf } from '../../../src/tell/words/cells.ts'
import { cpuMs, timesSlower } from '../../support/cpu-time.ts'
import { HandClock } from '../../support/hand-clock.ts'
import { promise } from '../../support/promise.ts'
import { plain } from '../screen/header/session.ts'
import { recorded, sampleEvents } from '../screen/samples.ts'
import { makePlace } from './place.ts'

type Place = Awaited<ReturnType<typeof makePlace>>

const created = sampleEvents['session-created']
const started = sampleEvents['round-started']
const ended = sampleEvents['session-ended']
const LOOK_MS = 2_000

/** A table of the sessions of a place that is read; `look`: has it look once more. */
async function tableOf(place: Place, scope: SessionsScope = 'here') {
  const over = new AbortController()
  const clock = Object.assign(new HandClock(), { now: () => Date.parse(recorded([created])[0]?.at ?? '') + 60_000 })
  const seen: (readonly SessionRow[])[] = []
  const problems: string[] = []
  const table = new SessionsTable({
    world: { ...place.context, clock },
    records: place.records,
    scope,
    signal: over.signal,
    onChange: () => void seen.push(table.rows),
    onProblem: problem => void problems.push(problem),
  })
  const following = table.follow()
  onTestFinished(async () => {
    over.abort()
    await following
  })
  await expect.poll(() => table.isWhole, { timeout: 20_000 }).toBe(true)
  const look = () => clock.over(LOOK_MS)
  return { table, seen, problems, look, clock }
}

test('the newest sessions stand first, with what has become of them, their rounds, time, tokens, cost and proof', async () => {
  await using place = await makePlace()
  await place.journal('20261120_2', [{ ...created, goal: '\n one\ntwo' }, started, ended])
  await place.journal('20261120_10', [created, started, sampleEvents.usage])
  const { table } = await tableOf(place)
  expect(table.rows).toMatchObject([
    { id: '20261120_10', standing: 'cut-off', goal: 'build X', rounds: 0, tokens: 45_210, outcome: null },
    {
      id: '20261120_2',
      standing: 'ended',
      goal: 'one',
      outcome: ended.outcome,
      rounds: ended.rounds,
      tokens: ended.tokens,
      durationMs: ended.durationMs,
      cost: ended.cost ?? null,
    },
  ])
})

test('of a session that has ended only the ends of its journal are read', async () => {
  await using place = await makePlace()
  await place.journal('20261120_1', [created])
  const path = place.records.journal('20261120_1')
  // 20 MB; to fold them takes a second.
  const [, between] = recorded([created, { ...sampleEvents.steered, text: 'x'.repeat(1000) }])
  appendFileSync(path, `${JSON.stringify(between)}\n`.repeat(20_000))
  const [, last] = recorded([created, ended])
  appendFileSync(path, `${JSON.stringify(last)}\n`)
  const before = cpuMs()
  const { table } = await tableOf(place)
  expect(table.rows).toMatchObject([{ standing: 'ended', goal: 'build X' }])
  expect(cpuMs() - before).toBeLessThan(300 * timesSlower())
})

promise('O82', 'In that table a broken session is a row that says so, and hides no other')
test('a broken session is a row that says so, and hides no other', async () => {
  await using place = await makePlace()
  await place.journal('20261120_1', [created, ended])
  await place.journal('20261120_2', [created])
  await place.journal('20261120_3', [created])
  const newer = place.records.journal('20261120_2')
  rmSync(newer)
  appendFileSync(newer, '{"format":"codemachine-journal","v":99}\n')
  rmSync(place.records.journal('20261120_3'))
  mkdirSync(place.records.journal('20261120_3'))
  const { table } = await tableOf(place)
  const shown = table.rows.map(({ id, standing, problem }) => [id, standing, problem])
  expect(shown).toContainEqual([
    '20261120_2',
    'broken',
    'its journal was written by a newer codemachine (journal format 99); use that version.',
  ])
  expect(shown).toContainEqual([
    '20261120_3',
    'broken',
    expect.stringMatching(/^its journal cannot be read: it is a dir/),
  ])
  expect(shown).toContainEqual(['20261120_1', 'ended', null])
})

test('while it is shown, a session that runs, ends, begins or is removed is seen', async () => {
  await using place = await makePlace()
  await place.journal('20261120_1', [created, started])
  const at = Date.parse(recorded([created])[0]?.at ?? '')
  const lock = await takeRunLock(place.records.lock, { ...place.context, now: new Date(at - 1000) })
  const { table, look } = await tableOf(place)
  const shown = () => table.rows.map(({ id, standing }) => `${id} ${standing}`)
  expect(shown()).toEqual(['20261120_1 running'])
  await place.journal('20261120_2', [created, started])
  const events = recorded([created, started, ended])
  appendFileSync(place.records.journal('20261120_1'), `${JSON.stringify(events[2])}\n`)
  await look()
  await expect.poll(shown).toEqual(['20261120_2 running', '20261120_1 ended'])
  await lock[Symbol.asyncDispose]()
  await look()
  await expect.poll(shown).toEqual(['20261120_2 cut-off', '20261120_1 ended'])
  rmSync(dirname(place.records.journal('20261120_1')), { recursive: true })
  await look()
  await expect.poll(shown).toEqual(['20261120_2 cut-off'])
})

promise('O81')
test('of many sessions the newest are shown before the others have been read', async () => {
  await using place = await makePlace()
  for (let i = 1; i <= 300; i += 1) await place.journal(`20261120_${i}`, [{ ...created, goal: `goal ${i}` }, ended])
  const { table, seen } = await tableOf(place)
  expect(table.rows).toHaveLength(300)
  expect(seen[0]?.length).toBeLessThan(20)
  // Those of the first eight are read at a time, whichever of them comes first.
  expect(Number(seen[0]?.[0]?.id.split('_')[1])).toBeGreaterThan(292)
})

/** The table on a stage. */
async function shownTable(
  place: Place,
  whyNot: SessionsPlace['whyNot'] = () => null,
  home: string = place.context.home,
) {
  const done: string[] = []
  const copied: string[] = []
  const views: { view: FullView; detach: () => void }[] = []
  const stage: Stage = {
    open: view => void views.push({ view, detach: view.attach?.(stage) ?? (() => {}) }),
    close: () => views.pop()?.detach(),
    leaveFor: () => {},
    changed: () => {},
    lend: async () => {},
    start: () => {},
    copy: text => copied.push(text) > 0,
  }
  const list = sessionList({
    world: { ...place.context, home, clock: new HandClock() },
    records: place.records,
    theme: plain,
    keymap: new Keymap(),
    scope: 'here',
    whyNot,
    act: (action, { id }) => void done.push(`${action} ${id}`),
    onFailure: error => {
      throw error
    },
  })
  stage.open(list)
  onTestFinished(() => {
    while (views.length > 0) stage.close()
  })
  const lines = (columns = 120, rows = 8) => {
    const shown = views.at(-1)?.view.frame({ columns, rows }).lines ?? []
    expect(shown).toHaveLength(rows)
    for (const line of shown) {
      expect(widthOf(line)).toBeLessThanOrEqual(columns)
      expect(line).not.toMatch(/[\p{Cc}\p{Bidi_Control}]/u)
    }
    return shown.map(line => line.trimEnd())
  }
  const press = (...keys: string[]) => {
    for (const key of keys) {
      const isName = ['return', 'escape', 'up', 'down'].includes(key)
      const pressed = { input: isName ? '' : key, name: isName ? key : null, ctrl: false, meta: false, shift: false }
      views.at(-1)?.view.press(pressed as unknown as Key, stage)
    }
  }
  await expect.poll(() => lines()[0]).not.toContain('reading')
  return { lines, press, done, copied }
}

promise('O81')
test('Enter offers what can be done with a session, the possible first, and says of the rest why not', async () => {
  await using place = await makePlace()
  await place.journal('20261120_1', [{ ...created, goal: 'the first' }, ended])
  await place.journal('20261120_2', [{ ...created, goal: 'the \x1b[31msecond\u202e' }, started])
  const { lines, press, done, copied } = await shownTable(place, action =>
    action === 'watch' ? 'It is not running' : null,
  )
  expect(lines()[1]).toMatch(/^ {2}State +Session +Began +Goal +Rounds +Time +Tokens +Cost +Proof$/)
  expect(lines()[2]).toMatch(/^› cut off +20261120_2 +2026-11-20 22:41 +the .*second/)
  expect(lines()[3]).toMatch(/^ {2}done +20261120_1 .* the first .* (un)?verified$/)
  press('y', '/', ...'first', 'return')
  expect(copied).toEqual(['20261120_2'])
  expect(lines()[0]).toMatch(/ · 1 of 2 sessions$/)
  press('return')
  expect(lines(80, 8)).toEqual([
    expect.stringMatching(/^20261120_1 · done · the first/),
    '',
    expect.stringMatching(/^› Report/),
    expect.stringMatching(/^ {2}Changes/),
    expect.stringMatching(/^ {2}Resume/),
    expect.stringMatching(/^ {2}Watch +It is not running/),
    '',
    expect.stringMatching(/^Enter does it/),
  ])
  press('return', 'down', 'down', 'down', 'return')
  expect(done).toEqual(['report 20261120_1'])
  expect(lines(80, 8).at(-1)).toBe('Watch: It is not running')
})

test('a session of another day is told by its id from 80 columns on, and found by its date', async () => {
  await using place = await makePlace()
  await place.journal('20261119_7', [{ ...created, goal: 'of yesterday' }, ended])
  await place.journal('20261120_1', [{ ...created, goal: 'of today, which is long enough to be cut' }, ended])
  const { lines, press } = await shownTable(place)
  expect(lines(80, 8)[1]).toMatch(/^ {2}State +Session +Goal +Rounds +Time +Proof$/)
  expect(lines(80, 8)[3]).toMatch(/^ {2}done +20261119_7 +of yesterday /)
  press('/', ...'2026-11-20')
  expect(lines(80, 8)[0]).toMatch(/ · 2 of 2 sessions$/)
  press('escape', 'a')
  await expect.poll(() => lines(80, 8)[1]).toMatch(/^ {2}State +Session +Directory +Goal +Time$/)
})

test('the directory of the table stands behind ~ where it lies in the home directory', async () => {
  await using place = await makePlace()
  const { directory } = place.records
  const home = dirname(directory)
  const { lines } = await shownTable(place, () => null, home)
  expect(lines(400, 8)[0]).toBe(`Sessions of ~${directory.slice(home.length)}`)
  const other = await shownTable(place, () => null, `${home}-other`)
  expect(other.lines(400, 8)[0]).toBe(`Sessions of ${directory}`)
})

test('all directories or this one, at every size', async () => {
  await using place = await makePlace()
  await place.journal('20261120_1', [{ ...created, goal: '長い目標 '.repeat(60) }, ended] as SessionEvent[])
  const { lines, press } = await shownTable(place)
  press('a')
  await expect.poll(() => lines(120, 8)[0]).toBe('All sessions · 1 session')
  expect(lines(120, 8)[1]).toContain('Directory')
  for (const [columns, rows] of [
    [20, 5],
    [40, 10],
    [80, 24],
    [200, 50],
  ] as const)
    lines(columns, rows)
  press('a')
  await expect.poll(() => lines(120, 8)[0]).toMatch(/^Sessions of /)
})
