import { existsSync } from 'node:fs'
import { chmod, lstat, mkdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { UserError } from '../../../src/base/errors.ts'
import { type ReportFlags, report } from '../../../src/doors/cli/commands/report.ts'
import { runProcess } from '../../../src/platform/run-process.ts'
import { reportAtEnd } from '../../../src/project/reports.ts'
import { takeRunLock } from '../../../src/session/records/run-lock.ts'
import { makePlace, type Place } from '../../doors/cli/place.ts'
import { BIN, codemachine } from '../../support/codemachine.ts'
import { startInEmulator } from '../../support/emulator.ts'
import { promise } from '../../support/promise.ts'
import { openRealScene } from '../../support/real-scene.ts'
import { round } from '../../support/rounds.ts'
import { eventfulNight, goodNight, ID, type MadeUpNight } from './made-up-night.ts'

function show({ context, directory }: Place, { session, ...flags }: ReportFlags & { session?: string } = {}) {
  return report({ ...context, cwd: directory }, session, flags)
}

const ASKED = { encoding: 'utf8', outputLimit: 100_000, timeoutMs: 20_000 } as const

const refusal = (promise: Promise<number>) =>
  promise.then(
    () => null,
    (error: unknown) => (error instanceof UserError ? [error.exitCode, error.message, error.hint] : error),
  )

/** Puts the night into the records, and answers the folder of its memory in the work directory. */
async function lived(place: Place, night: MadeUpNight, id = ID): Promise<string> {
  const path = place.records.journal(id)
  await mkdir(join(path, '..'), { recursive: true })
  const lines = night.events.map(event => `${JSON.stringify({ ...event, session: id })}\n`)
  await writeFile(path, `{"format":"codemachine-journal","v":1}\n${lines.join('')}`)
  const folder = join(place.directory, '.codemachine', 'projects', id)
  await mkdir(folder, { recursive: true })
  return folder
}

test('without a format the card is shown, and says how the whole report is had', async () => {
  await using place = await makePlace()
  await lived(place, goodNight())
  expect(await show(place)).toBe(0)
  expect(place.written()).toContain(
    `${ID}  done, gates pass: verified by 2 gates, reviewed; flaky: tests; your\nrequest itself was not checked\n`,
  )
  expect(place.written()).toMatch(/report +codemachine report 20261120_1 --open\n$/)
})

test('--html writes one page into the session’s folder and prints its path; the card knows it from then on', async () => {
  await using place = await makePlace()
  const folder = await lived(place, goodNight())
  await show(place, { html: true })
  const path = join(folder, 'report.html')
  expect(place.written()).toBe(`${path}\n`)
  expect(await readFile(path, 'utf8')).toContain('<svg')
  expect((await lstat(path)).mode & 0o777).toBe(0o600)
  await show(place)
  expect(place.written()).toContain(`${path}\n`.slice(-20))
})

test('--json and --md go to stdout, or into a file', async () => {
  await using place = await makePlace()
  await lived(place, goodNight())
  await show(place, { json: true })
  expect(JSON.parse(place.written())).toMatchObject({
    format: 'codemachine-report',
    v: 1,
    session: ID,
    standing: 'ended',
  })
  await show(place, { md: true, output: 'report.md' })
  expect(await readFile(join(place.directory, 'report.md'), 'utf8')).toMatch(
    /^# Done, gates pass: verified by 2 gates, reviewed; flaky: tests; your request itself was not checked\n/,
  )
  const missing = join(place.directory, 'no', 'such.md')
  expect(await refusal(show(place, { md: true, output: missing }))).toEqual([
    2,
    `The report cannot be written to ${missing}: its folder does not exist; name another file.`,
    null,
  ])
})

test('a session that nobody knows is refused, and so is one of which the journal holds nothing', async () => {
  await using place = await makePlace()
  expect(await refusal(show(place))).toMatchObject([2, expect.stringContaining('No sessions'), expect.anything()])
  await lived(place, goodNight())
  expect(await refusal(show(place, { session: 'nope' }))).toMatchObject([
    2,
    expect.stringContaining('no session "nope"'),
    expect.stringContaining(ID),
  ])
  await lived(place, goodNight(), '20261121_1')
  await writeFile(place.records.journal('20261121_1'), '')
  expect(await refusal(show(place, { session: '20261121_1' }))).toMatchObject([
    2,
    expect.stringContaining('has no session'),
    null,
  ])
})

test('a session that runs is told as being at work, one that was cut off as such', async () => {
  await using place = await makePlace()
  await lived(place, eventfulNight())
  await show(place)
  expect(place.written()).toContain(`${ID}  cut off`)
  expect(place.written()).toContain(`  codemachine resume ${ID}\n`)
  await using _lock = await takeRunLock(place.records.lock, { ...place.context, now: new Date(0) })
  await symlink(place.directory, join(place.directory, '..', 'else where'))
  await show(place, { cd: '../else where' })
  expect(place.written()).toContain(`${ID}  at work`)
  expect(place.written()).toContain(`  codemachine watch ${ID} -C '../else where'\n`)
})

test('a link that an agent put in the place of the page is not followed, and one in the place of its folder is refused', async () => {
  await using place = await makePlace()
  const folder = await lived(place, goodNight())
  const mine = join(place.directory, 'mine.txt')
  await writeFile(mine, 'mine')
  await symlink(mine, join(folder, 'report.html'))
  await show(place, { html: true })
  expect(await readFile(mine, 'utf8')).toBe('mine')
  await lived(place, goodNight(), '20261121_1')
  await symlink(place.directory, join(place.directory, '.codemachine', 'projects', '20261122_1'))
  await mkdir(join(place.records.journal('20261122_1'), '..'))
  await writeFile(place.records.journal('20261122_1'), await readFile(place.records.journal(ID)))
  expect(await refusal(show(place, { session: '20261122_1', html: true }))).toMatchObject([
    2,
    expect.stringContaining('is not a real folder'),
    '--output FILE writes it to another place.',
  ])
})

test('where the session’s folder is gone its page lies in the records, and what was pruned is not offered', async () => {
  await using place = await makePlace()
  await lived(place, goodNight())
  place.context.env.PATH = process.env.PATH
  await rm(join(place.directory, '.codemachine'), { recursive: true })
  await show(place, { html: true })
  const path = join(place.records.sessionFolder(ID), 'report.html')
  expect(place.written()).toBe(`${path}\n`)
  expect(await readFile(path, 'utf8')).toContain('5 savepoints, which were pruned')
  await show(place)
  expect(place.written()).toContain('4 commits; its savepoints were pruned')
  expect(place.written()).not.toMatch(/codemachine (diff|rewind)/)
})

promise('O7', 'The report is written at the end, from the journal')
test('the end of a session writes three reports; what cannot be written is one sentence, and no error', async () => {
  await using place = await makePlace()
  const folder = await lived(place, goodNight())
  const { records } = place
  const good = await reportAtEnd({ records, id: ID, named: null, resumable: true })
  expect(good).toMatchObject({ html: join(folder, 'report.html'), problem: null })
  expect(good.card({ columns: 80 }).length).toBeGreaterThan(5)
  expect(JSON.parse(await readFile(join(records.sessionFolder(ID), 'report.json'), 'utf8'))).toMatchObject({
    session: ID,
  })
  expect(await readFile(join(folder, 'report.md'), 'utf8')).toContain('# Done')
  await chmod(folder, 0o700)
  await symlink('/nowhere', join(place.directory, '.codemachine', 'projects', '20261121_1'))
  await mkdir(records.sessionFolder('20261121_1'))
  await writeFile(records.journal('20261121_1'), await readFile(records.journal(ID)))
  const bad = await reportAtEnd({ records, id: '20261121_1', named: null, resumable: true })
  expect(bad.html).toBeNull()
  expect(bad.problem).toContain('is not a real folder')
  expect(bad.card({ columns: 80 }).length).toBeGreaterThan(5)
  expect(await reportAtEnd({ records, id: '20300101_1', named: null, resumable: true })).toMatchObject({
    html: null,
    problem: expect.any(String),
  })
})

test('--open has no program of an agent open the page, and while the session is at work it is one that the agent cannot change', async () => {
  await using place = await makePlace()
  const folder = await lived(place, eventfulNight())
  const opened = join(place.directory, 'opened.txt')
  const programs = join(place.directory, 'programs')
  await mkdir(programs)
  await writeFile(join(programs, 'xdg-open'), `#!/bin/sh\necho "$1" > '${opened}'\n`, { mode: 0o755 })
  const env = { PATH: programs, HOME: place.context.home, DISPLAY: ':0' }
  const show = (more: Record<string, string>) =>
    runProcess(process.execPath, [BIN, 'report', '--open'], {
      directory: place.directory,
      env: { ...env, ...more },
      ...ASKED,
    })
  const nowhere = await show({ DISPLAY: '' })
  expect(nowhere).toMatchObject({ exitCode: 0, stdout: `${join(folder, 'report.html')}\n` })
  expect(nowhere.stderr).toContain('No desktop')
  const lock = await takeRunLock(place.records.lock, { ...place.context, now: new Date(0) })
  expect(await show({})).toMatchObject({
    exitCode: 0,
    stderr: expect.stringContaining(`an agent can write, so codemachine does not use it: ${programs}/xdg-open`),
    stdout: `${join(place.records.sessionFolder(ID), 'report.html')}\n`,
  })
  expect(existsSync(opened)).toBe(false)
  await lock[Symbol.asyncDispose]()
})

test('the reports at the end of a session have the name that the person gave the directory in every command', async () => {
  await using place = await makePlace()
  const folder = await lived(place, goodNight())
  const { records } = place
  const made = await reportAtEnd({ records, id: ID, named: '../work', resumable: true })
  expect(made.problem).toBeNull()
  const page = await readFile(join(folder, 'report.html'), 'utf8')
  expect(page).toContain('<svg')
  const rewinds = `codemachine rewind ${ID}/start -C ../work`
  expect(page).toContain(rewinds)
  expect(await readFile(join(folder, 'report.md'), 'utf8')).toContain(rewinds)
  expect(made.card({ columns: 100 }).map(({ text }) => text)).toContain(`  ${rewinds}`)
  expect(JSON.parse(await readFile(join(records.sessionFolder(ID), 'report.json'), 'utf8'))).toMatchObject({
    session: ID,
    standing: 'ended',
  })
})

test('a page that cannot be written at the end of a session is one sentence, and the other reports are there', async () => {
  await using place = await makePlace()
  const folder = await lived(place, goodNight())
  const { records } = place
  await mkdir(join(folder, 'report.html'))
  const { html, problem, card } = await reportAtEnd({ records, id: ID, named: null, resumable: true })
  expect(html).toBeNull()
  expect(problem).toContain('The report could not be written')
  expect(problem?.length).toBeLessThan(1000)
  expect(await readFile(join(folder, 'report.md'), 'utf8')).toContain('# Done')
  expect(card({ columns: 80 }).length).toBeGreaterThan(5)
})

test('where several reports cannot be written, each is a sentence with its full stop', async () => {
  await using place = await makePlace()
  const folder = await lived(place, goodNight())
  const { records } = place
  await mkdir(join(records.sessionFolder(ID), 'report.json'))
  await mkdir(join(folder, 'report.html'))
  const { problem } = await reportAtEnd({ records, id: ID, named: null, resumable: true })
  expect(problem).toMatch(/^The report could .*[^.]\. The report could not be written to .*report\.html.*[^.]\.$/)
})

promise('E31', 'The report tells a session')
test('after a session of the real codex its report tells its rounds, and /report shows the card on the screen', async () => {
  await using scene = await openRealScene([round('echo one > one.txt; : > codemachine.toml')])
  await scene.run('--rounds', '1', 'Make a file <b>now</b>')
  const told = await codemachine(scene.place, ['report', '--json'])
  const data = JSON.parse(told.stdout)
  expect(data).toMatchObject({ outcome: { kind: 'limit', limit: 'rounds' }, totals: { rounds: 1 } })
  expect(data.changes.paths.map(({ path }: { path: string }) => path)).toEqual(['codemachine.toml', 'one.txt'])
  expect(data.proof.settingsChangedIn).toBe(1)
  const page = await codemachine(scene.place, ['report', '--html', '--output', '-'])
  expect(page.stdout).toContain('Make a file &lt;b&gt;now&lt;/b&gt;')
  const both = await codemachine(scene.place, ['report', '--md', '--json'])
  expect(both).toMatchObject({ exitCode: 2, stdout: '' })
  await using seen = startInEmulator(scene.place, [], { rows: 40 })
  await seen.until('codemachine')
  seen.type('/report')
  await seen.until('› /report')
  seen.press('enter')
  await seen.untilInAll('limit reached: all rounds are used up')
  await seen.untilInAll('codemachine resume')
  seen.press('ctrl+d')
})
