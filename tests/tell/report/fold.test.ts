import { appendFile, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { commandsOf } from '../../../src/tell/report/commands.ts'
import { markdownOf } from '../../../src/tell/report/markdown.ts'
import { htmlOf } from '../../../src/tell/report/page/page.ts'
import { outcomeOfRow } from '../../../src/tell/report/words.ts'
import { jsonOf, readReport } from '../../../src/tell/report/write.ts'
import { sampleEvents } from '../../doors/screen/samples.ts'
import { makePlace } from '../../support/place.ts'
import { promise } from '../../support/promise.ts'
import { recordsWith } from '../../support/session-events.ts'
import { badNight, eventfulNight, GATES, gateOf, goodNight, HERE, ID, MadeUpNight } from './made-up-night.ts'

const recording = (name: string) => new URL(`../../core/rules/recorded/${name}.ndjson`, import.meta.url)

describe('a night that ends well', () => {
  const data = goodNight().report()

  test('is told with its proof: the gates before and at the end, the review, and the tests that were deleted', () => {
    expect(data.outcome).toEqual({ kind: 'done', verified: true })
    const { gates, reviews, findings, protectedFiles, verified, claim } = data.proof
    expect({ verified, claim, findings }).toEqual({ verified: true, claim: 'accepted', findings: [] })
    expect(gates.map(({ name, before, last, flaky }) => [name, before?.status, last?.status, flaky])).toEqual([
      ['tests', 'failed', 'flaky', 1],
      ['build', 'passed', 'passed', 0],
    ])
    expect(reviews.entries).toMatchObject([{ review: 1, verdict: 'agreed', causes: ['asked', 'protected'] }])
    expect(protectedFiles).toEqual([{ path: 'tests/old.test.ts', how: 'deleted', round: 2, putBack: false }])
  })

  test('is told with what changed since it began, and with the commits', () => {
    const { from, files, added, commits, savepoints, now } = data.changes
    expect({ from, files, added, savepoints }).toEqual({ from: 'savepoints', files: 12, added: 336, savepoints: 5 })
    expect(commits.entries.map(({ subject }) => subject)).toEqual([1, 2, 3, 4].map(step => `Take step ${step}`))
    expect(now?.round).toBe(4)
    expect(data.tasks).toEqual({ done: 5, total: 5, left: [] })
  })

  test('is told with every attempt at a round, and with what became of its claim', () => {
    expect(data.rounds.entries.map(({ round, outcome, claim }) => [round, outcome, claim])).toEqual([
      [1, 'worked', null],
      [2, 'window', null],
      [2, 'worked', 'refused'],
      [3, 'crashed', null],
      [3, 'worked', 'refused'],
      [4, 'worked', 'accepted'],
    ])
    expect(data.totals).toMatchObject({ rounds: 4, attempts: 6, waitedMs: 118 * 60_000 })
    expect(data.totals.tokens).toBe(data.totals.tokensByKind.total)
    expect(data.refusals.entries.map(({ round, reason }) => [round, reason])).toEqual([
      [2, 'tasks-left'],
      [3, 'gate-failed'],
    ])
    expect(data.questions.entries).toMatchObject([{ id: 'Q1', assumption: expect.stringContaining('follows') }])
  })

  test('is told with its waits and failures, from when to when and why', () => {
    expect(data.trouble.entries.map(({ kind, cause }) => [kind, cause])).toEqual([
      ['failure', 'round 2: usage limit: You have hit your usage limit'],
      ['wait', 'usage limit: You have hit your usage limit'],
      ['slept', 'the machine slept for 12 min'],
      ['failure', 'round 3: codex crashed: exit code 101'],
    ])
    const wait = data.trouble.entries[1]
    expect(Date.parse(wait?.to ?? '') - Date.parse(wait?.from ?? '')).toBe(118 * 60_000)
  })
})

test('a round is said to be tried again only where another try followed', () => {
  const crashed = { outcome: { class: 'crashed', message: null }, counts: false } as const
  const window = { outcome: { class: 'window', message: null }, counts: false } as const
  const night = new MadeUpNight().round(crashed).round(crashed)
  const outcomes = (night: MadeUpNight) => {
    const data = night.report()
    const told = data.rounds.entries.map(row => outcomeOfRow(row, data.rounds))
    const table = htmlOf(data, HERE).split('<h2>Rounds</h2>')[1]
    expect(table?.split('(tried again)').length, 'the page too').toBe(
      told.filter(text => text.includes('again')).length + 1,
    )
    return told
  }
  const once = 'codex crashed (tried again)'
  expect(outcomes(night)).toEqual([once, 'codex crashed'])
  // A change of the plan that comes between is no other try.
  night.add({ ...sampleEvents['replan-asked'] }).add({ ...sampleEvents['round-started'], round: 1 })
  expect(outcomes(night)).toEqual([once, 'codex crashed', 'change of plan: did not finish (does not count as a round)'])
  night.add({ ...sampleEvents['round-ended'], round: 1, counts: false }).add({ ...sampleEvents.replanned, round: 1 })
  expect(outcomes(night.round(window)).slice(0, 2)).toEqual([once, once])
  const page = htmlOf(night.end({ kind: 'limit', limit: 'time' }).report(), HERE)
  expect(page).toContain('Yellow: rounds that ended because of a limit or the network.')
})

test('what a review finds again is left to the person, with its place', () => {
  const { findings, reviews } = badNight().report().proof
  expect(findings).toMatchObject([{ file: 'src/theme.ts', line: 41, repeated: true }])
  expect(reviews.entries).toMatchObject([{ verdict: 'findings', findings: 1, repeated: 1 }])
})

test('a session that was cut off in a round is told as far as it came, and a later resume shows the gap', () => {
  const night = eventfulNight()
  night.add({
    type: 'round-started',
    round: 5,
    agent: 'goal-worker',
    engine: 'codex',
    codex: '0.169.0',
    model: null,
    input: 'Go on.',
  })
  const cut = night.report('cut-off')
  expect(cut).toMatchObject({ outcome: null, standing: 'cut-off' })
  expect(cut.rounds.entries.at(-1)).toMatchObject({ round: 5, outcome: null })
  night.later(90).resumed()
  const gap = night.round().report('running').trouble.entries.at(-1)
  expect(gap).toMatchObject({ kind: 'cut-off' })
  expect(Date.parse(gap?.to ?? '') - Date.parse(gap?.from ?? '')).toBe(90 * 60_000)
})

promise('R27', 'Hours in which codemachine was dead are reported as such, not as waiting or paused')
test.each(['waiting', 'held'] as const)('hours in which codemachine was dead are no time that it was %s', kind => {
  const night = eventfulNight()
  const before = night.report('cut-off').totals.waitedMs
  const hours = (count: number) => count * 60
  if (kind === 'held') night.add({ type: 'paused' }).add({ type: 'held' })
  else {
    const cause = { class: 'window', message: 'You have hit your usage limit.' } as const
    const until = new Date(Date.parse(night.events.at(-1)?.at ?? '') + hours(12) * 60_000).toISOString()
    night.add({ type: 'waiting', round: 5, reason: 'usage-limit', cause, until })
  }
  // The last sign of life.
  night.later(20).add({ type: 'warning', round: null, message: 'x' })
  night.later(hours(8)).resumed()
  const { totals, trouble } = night.report('running')
  expect(totals.waitedMs - before).toBe(kind === 'held' ? 0 : 20 * 60_000)
  const [spent, gap] = trouble.entries.slice(-2)
  const lasted = [spent, gap].map(entry => [entry?.kind, Date.parse(entry?.to ?? '') - Date.parse(entry?.from ?? '')])
  expect(lasted).toEqual([
    [kind === 'held' ? 'held' : 'wait', 20 * 60_000],
    ['cut-off', hours(8) * 60_000],
  ])
})

test('a review that agrees closes the findings of the one before', () => {
  const night = badNight()
  const answer = { verdict: 'agreed' as const, summary: '', findings: [] }
  night.add({
    type: 'review-ended',
    round: 4,
    review: 2,
    outcome: { class: 'worked', message: null },
    answer,
    repeated: [],
    tree: 't',
    durationMs: 1,
    tokens: null,
  })
  expect(night.report().proof.findings).toEqual([])
})

test('10,000 rounds make a report of a bounded size, which says what it leaves out and shows all of them in its charts', () => {
  const night = new MadeUpNight()
  for (let round = 1; round <= 10_000; round++) night.round({ minutes: 1 })
  const data = night.report('running')
  const { entries, count, leftOut, leftOutSums } = data.rounds
  expect([entries.length, count, leftOut]).toEqual([200, 10_000, 9800])
  expect(leftOutSums.durationMs).toBe(9800 * 60_000)
  expect(entries.map(({ round }) => round).slice(19, 21)).toEqual([20, 9821])
  expect(data.series.length).toBeLessThanOrEqual(120)
  expect(data.series.reduce((sum, { rounds }) => sum + rounds, 0)).toBe(10_000)
  const page = htmlOf(data, HERE)
  expect(page).toContain('9800 rounds left out here')
  expect(page.length).toBeLessThan(200_000)
  expect(jsonOf(data).length).toBeLessThan(200_000)
})

test.each(['a-long-build', 'a-person-talks', 'nothing-changes', 'progress', 'same-refusal', 'to-and-fro'])(
  'the recorded session %s is told by its journal as its last event says it',
  async name => {
    const data = await readReport(recordsWith(recording(name).pathname), '20261121_1', null)
    const lines = (await readFile(recording(name), 'utf8')).trim().split('\n')
    const end = JSON.parse(lines.at(-1) ?? '')
    expect(data).toMatchObject({ outcome: end.outcome, exitCode: end.exitCode, goal: 'build X' })
    expect(data?.totals).toMatchObject({ rounds: end.rounds, tokens: end.tokens, durationMs: end.durationMs })
    expect(data?.rounds.entries.filter(({ counts }) => counts)).toHaveLength(end.rounds)
  },
)

test('torn lines, rubbish and events of a later version are passed over', async () => {
  await using place = await makePlace('', { git: false })
  const path = join(place.root, 'journal.ndjson')
  const [header = '', ...lines] = (await readFile(recording('progress'), 'utf8')).trim().split('\n')
  await writeFile(
    path,
    `${header}\n${lines.join('\n{"v":1,"at":"2026-11-21T1\n\n{"v":1,"type":"from-the-future"}\n')}\n`,
  )
  const whole = await readReport(recordsWith(recording('progress').pathname), '20261121_1', null)
  expect(await readReport(recordsWith(path), '20261121_1', null)).toEqual(whole)
  await appendFile(path, '{"v":1,"at":"2026-11-21T10:5')
  expect(await readReport(recordsWith(path), '20261121_1', null)).toEqual(whole)
  expect(await readReport(recordsWith(join(place.root, 'none.ndjson')), '20261121_1', null)).toBeNull()
})

test('where nothing holds what a session began with, its rounds tell what they changed, and no command goes back there', () => {
  const night = new MadeUpNight()
    .round({ changed: ['old.ts'] })
    .savepoint(1, 0)
    .round({ changed: ['new.ts'] })
  const data = night.savepoint(2, 1, ['new.ts']).end({ kind: 'limit', limit: 'rounds' }).report()
  expect(data.changes).toMatchObject({ from: 'rounds', files: 2, start: null, savepoints: 2 })
  expect(data.changes.paths.map(({ path }) => path)).toEqual(['old.ts', 'new.ts'])
  expect(commandsOf(data, HERE).filter(({ command }) => / (diff|rewind) /.test(command))).toEqual([])
})

test('what a gate changed itself, and that no gate protects anything, is in the report', () => {
  const plain = GATES.map(gate => ({ ...gate, protect: [] }))
  const changed = Array.from({ length: 60 }, (_, at) => `dist/${at}.js`)
  const night = new MadeUpNight('x', { gates: plain }).round()
  night.add({ type: 'settings-changed', round: 1 })
  const { proof } = night.gate('tests', 'claim', 'passed', '', changed).report('running')
  expect(proof).toMatchObject({ protected: false, settingsChangedIn: 1 })
  expect(night.report('running').remarks.entries).toEqual([])
  expect(proof.gates[0]).toMatchObject({ changed: changed.slice(0, 50), changedCount: 60 })
  const page = htmlOf(night.report('running'), HERE)
  for (const words of ['changed 60 files itself', 'no gate protects its files', 'round 1 changed codemachine.toml']) {
    expect(page).toContain(words)
    expect(markdownOf(night.report('running'), HERE).toLowerCase()).toContain(words)
  }
  expect(goodNight().report().proof).toMatchObject({ protected: true, settingsChangedIn: null, reviewed: true })
})

test('a gate that was added is said to have run when it was, and one that is no gate any more is not in the report', () => {
  const gates = ['sh check.sh', 'make check', 'npm test'].map(run => ({ ...gateOf(run, run), protect: [] }))
  const night = new MadeUpNight('x', { gates: GATES.slice(0, 1) }).gate('tests', 'before', 'failed').round()
  night.add({ type: 'gates-added', step: 1, gates, why: '' })
  night.gate('sh check.sh', 'before', 'failed').gate('make check', 'before', 'failed')
  const waiting = night.report('running')
  // What the person's own gates run is not run twice.
  expect(waiting.proof.gates.map(({ name, added }) => [name, added])).toEqual([
    ['tests', undefined],
    ['sh check.sh', true],
    ['make check', true],
  ])
  expect(markdownOf(waiting, HERE)).toContain(
    '`sh check.sh` when it was added: failed (exit code 1); has not run since',
  )
  expect(markdownOf(waiting, HERE)).toContain('`tests` before round 1: failed (exit code 1); has not run since')
  night.add({ type: 'gates-added', step: 2, gates: gates.slice(0, 1), why: '' })
  night.gate('sh check.sh', 'claim', 'failed')
  const failed = night.report('running')
  expect(failed.proof.gates.map(({ name }) => name)).toEqual(['tests', 'sh check.sh'])
  expect(markdownOf(failed, HERE)).toContain('41.2 s; it failed when it was added, too')
  night.gate('sh check.sh', 'claim', 'passed')
  expect(htmlOf(night.report('running'), HERE)).toContain('when it was added: failed (exit code 1)')
})

test('what was kept whole is listed, the last 100, and where no output was kept nothing is said of it', () => {
  const night = new MadeUpNight().round()
  expect(markdownOf(night.report('running'), HERE)).not.toContain('Kept whole')
  for (let n = 1; n <= 130; n += 1) {
    const output = {
      n,
      name: 'the | notes',
      file: `${n}-the-notes.md`,
      bytes: 2_048,
      sha256: 'cd'.repeat(32),
      head: '#',
    }
    night.add({ type: 'output-kept', round: 1, output })
  }
  const data = night.report('running')
  const { entries, ...counted } = data.outputs
  expect(counted).toEqual({ count: 130, leftOut: 30, leftOutAfter: 0 })
  expect(entries).toHaveLength(100)
  expect(entries.at(-1)).toEqual({ name: 'the | notes', file: '130-the-notes.md', bytes: 2_048 })
  expect(markdownOf(data, HERE)).toContain('records\n\n- … 30 left out …\n- `31-the-notes.md` the \\| notes, 2 KiB\n')
  expect(htmlOf(data, HERE)).toContain('<code>130-the-notes.md</code> <small>the | notes, 2 KiB</small>')
})

test('what the template had to say is told, and of much of it the middle is left out', () => {
  const night = new MadeUpNight().round()
  expect(markdownOf(night.report('running'), HERE)).not.toContain('## Notes')
  expect(htmlOf(night.report('running'), HERE)).not.toContain('Notes')
  for (let step = 1; step <= 60; step += 1)
    night.add({ type: 'noted', step, name: 'docs', text: `Step ${step} is passed over: *it* has passed <before>.` })
  const data = night.report('running')
  const { entries, ...counted } = data.notes
  expect(counted).toEqual({ count: 60, leftOut: 10, leftOutAfter: 10 })
  const text = 'Step 60 is passed over: *it* has passed <before>.'
  expect(entries.at(-1)).toEqual({ at: expect.any(String), name: 'docs', text })
  expect(markdownOf(data, HERE)).toMatch(/## Notes\n\n- Step 1 is passed over: \\\*it\\\*/)
  expect(htmlOf(data, HERE)).toContain('Step 60 is passed over: *it* has passed &lt;before&gt;.')
})

test('a round that a limit ended is no failure in the charts, and is shown apart from those', () => {
  const { series } = eventfulNight().report('running')
  expect(series.map(({ failed, limited }) => [failed, limited])).toEqual([
    [0, 0],
    [0, 1],
    [0, 0],
    [1, 0],
    [0, 0],
    [0, 0],
  ])
  expect(series[1]?.ofLimited.durationMs).toBe(7 * 60_000)
  expect(htmlOf(eventfulNight().report('running'), HERE)).toContain('var(--chart-wait)')
})

test('while a session runs what it has changed is compared with now', () => {
  const [, , diff] = commandsOf(new MadeUpNight().savepoint(0, 0).report('running'), HERE)
  expect(diff?.command).toBe(`codemachine diff ${ID}/start now`)
})

describe('a file that a gate protects and that is as it was at the start', () => {
  const night = () => {
    const begun = new MadeUpNight('x', { gates: GATES }).savepoint(0, 0).round()
    const files = [{ path: 'tests/run.sh', how: 'changed' as const, gates: ['tests'] }]
    return begun
      .add({ type: 'protected-changed', round: 1, files, count: 1 })
      .savepoint(1, 2, ['a.txt', 'tests/run.sh'])
  }
  const told = (data: ReturnType<MadeUpNight['report']>) => {
    const { protectedFiles } = data.proof
    return {
      putBack: protectedFiles.map(({ putBack }) => putBack),
      text: markdownOf(data, HERE),
      page: htmlOf(data, HERE),
    }
  }

  test('is told as put back', () => {
    const { putBack, text, page } = told(night().round().savepoint(2, 1, ['a.txt']).report())
    expect(putBack).toEqual([true])
    expect(text).toContain('tests/run.sh (changed in round 1, and put back)')
    expect(text).toContain('Rounds changed 1 file that gates protect, and undid these changes')
    expect(page).toContain('changed in round 1, and put back')
  })

  test.each([
    ['it is still different', (begun: MadeUpNight) => begun],
    ['the list of what changed is not complete', (begun: MadeUpNight) => begun.round().savepoint(2, 2, ['a.txt'])],
    ['a later round is in no savepoint', (begun: MadeUpNight) => begun.round().savepoint(2, 1, ['a.txt']).round()],
  ])('is not told as put back where %s', (_, then) => {
    const { putBack, text, page } = told(then(night()).report())
    expect(putBack).toEqual([false])
    expect(text + page).not.toContain('put back')
    expect(text).toContain('tests/run.sh (changed in round 1)')
  })
})
