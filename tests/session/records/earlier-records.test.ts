import { readdirSync, readFileSync } from 'node:fs'
import { cp, mkdir, mkdtemp, readdir, readFile, rm, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import * as v from 'valibot'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import { parseCertificate } from '../../../src/core/rules/certificate.ts'
import type { SessionState } from '../../../src/core/state/state.ts'
import { keepDraft, openDraftFile, openPromptHistory } from '../../../src/doors/screen/host/drafts-and-history.ts'
import { ScreenModel } from '../../../src/doors/screen/screen/model.ts'
import { tidyAgentRecords } from '../../../src/modes/agent/start/earlier-calls.ts'
import { workOf } from '../../../src/modes/from-specification/next.ts'
import { OWN_TEMPLATES } from '../../../src/modes/registry.ts'
import { Keymap } from '../../../src/project/settings/keys.ts'
import { loadSettings } from '../../../src/project/settings/load.ts'
import { nothingSecret } from '../../../src/secrets/redactor.ts'
import { commandSchema } from '../../../src/session/records/control.ts'
import { foldJournal } from '../../../src/session/records/journal.ts'
import { readPersonAnswer } from '../../../src/session/records/questions.ts'
import { openQueue } from '../../../src/session/records/queue.ts'
import { openRecords, type Records } from '../../../src/session/records/records.ts'
import type { ReportData } from '../../../src/tell/report/report-data.ts'
import type { StatusReport } from '../../../src/tell/words/status.ts'
import { plain } from '../../doors/screen/header/session.ts'
import { codemachineHere } from '../../support/in-process.ts'
import { makePlace, type TestPlace } from '../../support/place.ts'
import { promise } from '../../support/promise.ts'
import { claimDone, round, says, writeTasks } from '../../support/rounds.ts'
import { eventsOf, openScene } from '../../support/scene.ts'
import { recordsWith } from '../../support/session-events.ts'

// What codemachine 0.1 wrote, as its README says. It stays as it is for ever: what fails here, a person's records fail at.
const DATA = fileURLToPath(new URL('../../data/records-0.1', import.meta.url))
/** Where the data was written. */
const NIGHT = '/tmp/night'

/** The work directories with their sessions. */
const PROJECTS = ['project', 'library', 'shelf', 'cut-off'].map(name => ({
  name,
  sessions: readdirSync(join(DATA, name, 'records', 'sessions')),
}))
const SESSIONS = PROJECTS.flatMap(({ name, sessions }) => sessions.map(id => ({ name, id })))

const journalOf = (name: string, id: string) => join(DATA, name, 'records', 'sessions', id, 'journal.ndjson')
const expected = (name: string) => json(join(DATA, 'expected', `${name}.json`))

const json = (path: string) => JSON.parse(readFileSync(path, 'utf8'))

/** A line of a journal of that version, with what it said in a sentence and this one says in data. */
function asData(line: string): string {
  if (line.includes('"type":"waiting"')) {
    const reason = line.includes('--max-usage is 90 %') ? 'max-usage' : 'round-failed'
    return line.replace(/\}$/, `,"reason":"${reason}"}`)
  }
  return line.replace(
    /"type":"warning","round":null,"message":"Round (\d+) changed codemachine.toml; [^"]*"/,
    '"type":"settings-changed","round":$1',
  )
}

/** A state with its fields as that version had them: plan and template were one, and known of a build alone. */
function asThen(session: SessionState): object {
  const { kind, work, taskPlan, unknownPart, replayed, replays, refusedAnswers, outputs, decision, decided, ...later } =
    session
  const {
    step,
    steps,
    follows,
    kept,
    providerInUse,
    providerTokens,
    engine,
    fullUntil,
    waivedUntil,
    roundsOfEngines,
    agentsOfEngines,
    engineChanges,
    login,
    otherLogins,
    run,
    usageTrends,
    maxUsage,
    reachOfEngines,
    adopted,
    issue,
    published,
    ...newer
  } = later
  const { scope, givenUp, hasChangedFiles, toldNothingDone, gateConfiguration, heldMs, holdEnd, prices, ...last } =
    newer
  const {
    cost,
    unkept,
    workState,
    replansAsked,
    addedGates,
    goalRestored,
    counterProofs,
    testCounts,
    contract,
    tests,
    ...then
  } = last
  expect([contract, tests]).toEqual([null, null])
  expect([counterProofs, testCounts]).toEqual([[], []])
  expect(addedGates).toEqual([])
  expect([workState, goalRestored]).toEqual([null, false])
  expect(replansAsked).toBeGreaterThanOrEqual(0)
  const { problem, agreedConfiguration, ...reviews } = then.reviews
  expect([gateConfiguration, agreedConfiguration]).toEqual([null, null])
  expect([scope, givenUp, unkept]).toEqual([null, [], []])
  expect([step, steps, follows, kept, run, maxUsage, holdEnd]).toEqual([null, 0, null, [], null, null, null])
  expect([prices, cost.amount]).toEqual([[], 0])
  expect(Object.keys(usageTrends)).toEqual(['primary', 'secondary'])
  expect(heldMs).toBeGreaterThanOrEqual(0)
  expect([kind?.name, unknownPart, decision, decided]).toEqual([then.template, null, null, null])
  expect([replayed, replays]).toEqual([false, false])
  expect([outputs, problem]).toEqual([[], null])
  expect([typeof hasChangedFiles, toldNothingDone]).toEqual(['boolean', false])
  expect([providerInUse, providerTokens, engine, fullUntil]).toEqual([null, {}, null, {}])
  expect([login, otherLogins, engineChanges, agentsOfEngines]).toEqual(['codex', {}, [], {}])
  expect([reachOfEngines, adopted, issue, published]).toEqual([{}, null, null, null])
  expect(Object.keys(roundsOfEngines).every(name => name === 'codex')).toBe(true)
  const running = then.running && { ...then.running, agentsEnded: undefined }
  expect(then.running?.agentsEnded ?? []).toEqual([])
  const rest = { ...then, running, claim: claimThen(then.claim), reviews, last: lastThen(then.last) }
  const { plan: refused = { refusals: 0, problem: null }, ...more } = refusedAnswers
  expect(more).toEqual({})
  if (taskPlan === null) return { ...rest, build: null }
  const { asksPerson, state, ...plan } = taskPlan
  return { ...rest, build: { ...plan, asksPlan: asksPerson, plan: state, ...refused, ...workOf({ work }) } }
}

/** The last round did not say whether it changed the plan. */
function lastThen(last: SessionState['last']): unknown {
  if (last === null) return null
  const { isReplan, ...rest } = last
  expect(isReplan).toBe(false)
  return rest
}

/** A claim that was accepted did not say who had made it. */
function claimThen(claim: SessionState['claim']): unknown {
  if (claim.state !== 'accepted') return claim
  const { by, ...rest } = claim
  expect(by.length).toBeGreaterThan(0)
  return rest
}

/** A report without the fields that were added to it since. */
function reportThen(report: ReportData): unknown {
  const { rounds, work, totals, outputs, notes, forecast, changes, gateRuns, adopted, ...rest } = report
  expect(adopted).toBeNull()
  expect(gateRuns.count).toBeGreaterThanOrEqual(rest.proof.gates.length)
  const { notLookedAt, unkept, uncommitted, ...changed } = changes
  // Sentences are worded anew.
  const remarks = { ...rest.remarks, entries: rest.remarks.entries.length }
  const none = { paths: [], count: 0 }
  expect([notLookedAt, unkept, uncommitted]).toEqual([none, [], none])
  expect([outputs.count, notes.count, forecast]).toEqual([0, 0, null])
  const { providerTokens, cost, ...sums } = totals
  expect([providerTokens, cost]).toEqual([{}, null])
  const entries = rounds.entries.map(({ purpose, isFree, engine, provider, model, ...row }) => {
    expect([engine, provider]).toEqual(['codex', null])
    const isSummary = row.part === 'summary'
    expect([typeof purpose === 'string', isFree]).toEqual([row.part !== null, isSummary])
    return row
  })
  expect([work.status, work.board, work.section?.text ?? null]).toEqual([null, null, report.build?.summary ?? null])
  const { whyNothing, configuration, counterProofs, would, ...whole } = rest.proof
  expect(would).toEqual({ prove: true, tests: null })
  // Of a gate that passed nothing was told of what it printed.
  const gates = whole.gates.map(({ last, ...gate }) => ({
    ...gate,
    last: last?.status === 'passed' ? { ...last, output: '' } : last,
  }))
  const protectedFiles = whole.protectedFiles.map(({ putBack, ...file }) => {
    expect(typeof putBack).toBe('boolean')
    return file
  })
  const proof = { ...whole, gates, protectedFiles }
  expect([whyNothing, configuration.count, counterProofs]).toEqual([null, 0, []])
  const series = rest.series.map(({ isFree, ...point }) => {
    expect(typeof isFree).toBe('boolean')
    return point
  })
  return { ...rest, remarks, proof, changes: changed, totals: sums, rounds: { ...rounds, entries }, series }
}

/** A report without its sentences, which have other words now, and without `answered`: later answers count now. */
function wordless<T>(report: T): T {
  return JSON.parse(
    JSON.stringify(report, (key, value) => (key === 'cause' ? '' : key === 'answered' ? undefined : value)),
  )
}

/** A report of then, which had a commit once for each savepoint around it. */
function withCommitsOnce({ changes, ...report }: ReportData): object {
  const entries = [...new Map(changes.commits.entries.map(each => [each.commit, each])).values()]
  const remarks = { ...report.remarks, entries: report.remarks.entries.length }
  return {
    ...report,
    remarks,
    changes: { ...changes, commits: { ...changes.commits, entries, count: entries.length } },
  }
}

/** A status without the fields that were added to it since. */
function statusThen({ session: now, worktree, elsewhere, ...rest }: StatusReport): object {
  expect([worktree, elsewhere]).toEqual([null, []])
  if (now === null) return rest
  const { work, isCall, decision, hold, provider, providerTokens, forecast, cost, scope, ...later } = now
  const { warnings, contract, engine, adopted, ...session } = later
  expect([engine, adopted]).toEqual(['codex', null])
  expect(contract).toBeNull()
  expect(Array.isArray(warnings)).toBe(true)
  expect([work.status, isCall, decision, hold, provider, providerTokens, forecast, cost, scope]).toEqual([
    null,
    false,
    null,
    null,
    null,
    {},
    null,
    null,
    null,
  ])
  const claim = claimThen(session.claim)
  const last = session.last && { ...session.last, text: '' }
  if (session.waiting === null) return { ...rest, session: { ...session, claim, last } }
  const { reason, ...waiting } = session.waiting
  expect(reason).toBe('round-failed')
  return { ...rest, session: { ...session, waiting, claim, last } }
}

function recordsOf({ directory, env, home }: TestPlace): Promise<Records> {
  return openRecords({ directory, env, home, platform: process.platform, templates: OWN_TEMPLATES })
}

/** Puts the records of a project, and its memory, where this codemachine looks for those of the place. */
async function bringRecords(name: string, place: TestPlace): Promise<Records> {
  const records = await recordsOf(place)
  const from = join(DATA, name)
  await cp(join(from, 'records'), records.folder, { recursive: true })
  await cp(join(from, 'memory'), join(place.directory, '.codemachine'), { recursive: true })
  // That of another machine, which nobody but a person can tell to be over.
  await rm(records.lock, { force: true })
  return records
}

describe('a session of version 0.1', () => {
  test('of every kind is there', () => {
    expect(SESSIONS.map(({ name, id }) => `${name}-${id}`).toSorted()).toEqual(
      readdirSync(join(DATA, 'expected'))
        .flatMap(file => /^(.+-\d+_\d+)\.json$/.exec(file)?.[1] ?? [])
        .toSorted(),
    )
    expect(SESSIONS).toHaveLength(10)
  })

  test.each(SESSIONS)('has come to the same, by its journal: $name $id', async ({ name, id }) => {
    const state = await foldJournal(recordsWith(journalOf(name, id)), id)
    const then = expected(`${name}-${id}`).state
    // The time for which it was held did not count then.
    expect(state?.beganAt).toBeLessThanOrEqual(then.beganAt)
    expect(JSON.parse(JSON.stringify(state && asThen(state)))).toEqual({ ...then, beganAt: state?.beganAt })
  })

  test.each(
    SESSIONS.filter(({ name, id }) => readdirSync(join(DATA, name, 'records', 'sessions', id)).includes('done.json')),
  )('that is done keeps its certificate: $name $id', ({ name, id }) => {
    const path = join(DATA, name, 'records', 'sessions', id, 'done.json')
    expect(parseCertificate(readFileSync(path, 'utf8'), path)).toEqual(json(path))
  })
})

describe.each(PROJECTS)('in the work directory of version 0.1: $name', ({ name, sessions }) => {
  let place: TestPlace
  let records: Records
  beforeEach(async () => {
    place = await makePlace('', { name, git: false })
    records = await bringRecords(name, place)
  })
  afterEach(() => place[Symbol.asyncDispose]())

  async function shown(...args: string[]): Promise<string> {
    const { exitCode, stderr, stdout } = await codemachineHere(place, args)
    expect([exitCode, stderr]).toEqual([0, ''])
    return stdout
  }

  test('list shows each session as it did', async () => {
    const place = { directory: records.directory, worktree: null }
    const listed = sessions.map(id => ({ ...expected(`${name}-${id}`).listed, ...place }))
    expect(JSON.parse(await shown('list', '--json'))).toEqual(listed)
  })

  test('report says of each session what it did', async () => {
    for (const id of sessions)
      expect(wordless(reportThen(JSON.parse(await shown('report', id, '--json'))))).toEqual(
        wordless(withCommitsOnce(expected(`${name}-${id}`).report)),
      )
  })

  test('status says of each session what it did when that was the last one', async () => {
    for (const [nth, id] of sessions.entries()) {
      const later = Date.now() / 1000 + 60 * (nth + 1)
      await utimes(records.journal(id), later, later)
      const status = JSON.parse(await shown('status', '--json'))
      expect(status.directory).toBe(records.directory)
      const then = expected(`${name}-${id}`).status
      then.session.last &&= { ...then.session.last, text: '' }
      expect({ ...statusThen(status), directory: join(NIGHT, name) }).toEqual(then)
    }
  })

  test('logs shows each event as it was journaled, but for what is data since', async () => {
    for (const id of sessions) {
      const [, ...events] = readFileSync(journalOf(name, id), 'utf8').split('\n').map(asData)
      expect((await shown('logs', id, '--json')).split('\n')).toEqual(events)
    }
  })

  test('what waits, what was asked and what was answered are there', async () => {
    const { queue, questions } = expected(name)
    expect(JSON.parse(await shown('queue', 'list', '--json'))).toEqual(queue)
    const place = { directory: records.directory, worktree: null }
    const asked = questions.map((question: object) => ({ ...question, ...place }))
    expect(JSON.parse(await shown('questions', '--all', '--json'))).toMatchObject(asked)
  })
})

describe('what version 0.1 has written beside the journals', () => {
  let root: string
  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'earlier-records-'))
  })
  afterEach(() => rm(root, { recursive: true }))

  test('is read: three prompts that wait, and the answer that one of them came from', async () => {
    await using place = await makePlace('', { git: false })
    const records = await bringRecords('project', place)
    const queue = openQueue(records.queue)
    const { prompts, problems } = await queue.list()
    expect([prompts, problems]).toEqual([expected('project').queue, []])
    expect(prompts.map(({ id }) => id)).toEqual(['000002', '000004', '000005'])
    // A number is never given twice.
    expect((await queue.add('one more', new Date())).id).toBe('000006')
    expect(await readPersonAnswer(records, '20261122_7', 'Q1')).toMatchObject({ answer: 'Postgres', queued: '000002' })
  })

  test('is read: a command that nobody had taken when the run was killed', async () => {
    const control = join(DATA, 'cut-off', 'records', 'control')
    const commands = (await readdir(control)).map(file => v.parse(commandSchema, json(join(control, file))))
    expect(commands).toEqual([{ type: 'steer', text: 'nobody will read this', at: '2026-11-22T11:45:21.043Z' }])
  })

  test('is read: who ran when the machine went away, so that no second run begins beside it', async () => {
    await using place = await makePlace('', { name: 'cut-off', git: false })
    const { lock } = await bringRecords('cut-off', place)
    const text = await readFile(join(DATA, 'cut-off', 'records', 'lock'), 'utf8')
    // Where the data was written this would be the same machine, on which that process is over.
    await writeFile(lock, text.replace(/"bootId":"[^"]+"/, '"bootId":"of another machine"'))
    const { stdout } = await codemachineHere(place, ['status', '--json'])
    expect(JSON.parse(stdout).runner).toEqual({ pid: 18631, host: 'night', since: '2026-11-22T11:45:14.353Z' })
    expect((await codemachineHere(place, ['--json', 'another goal'])).exitCode).toBe(6)
  })

  test('is read: what was typed on screens, the oldest first', async () => {
    await cp(join(DATA, 'history.jsonl'), join(root, 'history.jsonl'))
    const problems: string[] = []
    const history = openPromptHistory({
      root,
      clock: systemClock,
      redactor: nothingSecret,
      onProblem: problem => problems.push(problem),
    })
    expect(await history.list()).toEqual(['Write a.txt and b.txt', 'then write c.txt'])
    expect(problems).toEqual([])
  })

  test('is read: what was typed and not sent, with what was pasted into it', async () => {
    const model = new ScreenModel({
      theme: plain,
      clock: systemClock,
      motion: 'reduced',
      keymap: new Keymap(undefined, 'queue'),
      isWatching: false,
      size: () => ({ columns: 80, rows: 24 }),
      redact: each => each,
      searchFiles: async () => [],
      onChange: () => {},
    })
    const path = join(DATA, 'cut-off', 'records', 'draft.json')
    await using draft = openDraftFile({ path, clock: systemClock, onProblem: () => {} })
    await keepDraft(model, draft, { pid: process.pid, platform: process.platform })
    const pasted = Array.from({ length: 30 }, (_, n) => `pasted line ${n + 1}`).join('\n')
    expect(model.composer.text).toBe(`${pasted} and a thought that is not s`)
  })

  test('is read: agents that were started without a session, one of them killed', async () => {
    const folder = join(root, 'agents')
    await cp(join(DATA, 'alone', 'records', 'agents'), folder, { recursive: true })
    const before = await readdir(folder)
    expect(before.filter(name => name.endsWith('.last'))).toHaveLength(1)
    await tidyAgentRecords(folder, { platform: process.platform, now: Date.now() })
    const after = (await readdir(folder)).toSorted()
    expect(after).toEqual(before.filter(name => name.endsWith('.json')).toSorted())
    expect(after.map(name => json(join(folder, name))).map(({ agent, state }) => [agent, state])).toEqual([
      ['backend-dev', 'completed'],
      ['frontend-dev', 'terminated'],
    ])
  })

  test('is read: all settings of a person, and with those of a project', async () => {
    const { default: defaults } = await import(new URL('../../../settings.js', import.meta.url).href)
    const config = join(root, 'config')
    const work = join(root, 'work')
    await mkdir(work)
    await cp(join(DATA, 'settings', 'config.toml'), join(config, 'codemachine', 'config.toml'))
    const load = async () => {
      const places = { directory: work, env: {}, configHome: config }
      const { settings: all, gates, lasting } = await loadSettings({ ...places, flags: {}, defaults })
      // A later version has added them.
      const {
        decideAfter,
        provider,
        maxFileSize,
        maxCost,
        change,
        team,
        worktree,
        mcp,
        fleet,
        screen: ofScreen,
        prove,
        verify,
        engine,
        fallback,
        fallbackAfter,
        fallbackOn,
        publish,
        publishRemote,
        reviewer: { engine: reviewEngine, ...reviewer },
        ...rest
      } = all
      const { enter, mouse, ...screen } = ofScreen
      const settings = { ...rest, reviewer, screen }
      expect(Object.values(team)).toEqual([null, null, null])
      expect([engine, fallback, fallbackAfter, fallbackOn, reviewEngine]).toEqual([
        'codex',
        [],
        900_000,
        ['window'],
        null,
      ])
      expect([enter, mouse]).toEqual([null, true])
      expect([publish, publishRemote]).toEqual(['no', null])
      expect([decideAfter, provider, maxFileSize, maxCost, verify]).toEqual([
        1_800_000,
        'codex',
        2 * 1024 ** 3,
        null,
        'nothing',
      ])
      expect(mcp).toEqual({ dirs: [] })
      expect(fleet).toEqual({ queue: null, templates: [] })
      expect([prove.on, prove.require]).toEqual([false, false])
      expect(worktree).toEqual({ setup: null, setupMinutes: 15, copy: [] })
      expect(change).toMatchObject({ review: 'manual', fixAttempts: 5, executor: null })
      return { settings, gates, lasting }
    }
    const { person, both } = expected('settings')
    expect(await load()).toEqual(person)
    await cp(join(DATA, 'settings', 'codemachine.toml'), join(work, 'codemachine.toml'))
    expect(await load()).toEqual(both)
  })
})

promise('R11', 'Records of an earlier version are read, and a session of it goes on')
test('a session that version 0.1 was killed in goes on to its end, and then what waits has its turn', async () => {
  const tasks = [
    { id: 'T1', name: 'One', done: true },
    { id: 'T2', name: 'Two', done: true },
  ]
  await using scene = await openScene(
    [
      round('echo b > b.txt', writeTasks(tasks)),
      round(claimDone),
      // This machine does not have the files of the start, so a reviewer has to agree.
      [says(JSON.stringify({ verdict: 'agreed', summary: 'It is all there.', findings: [] }))],
      round('cat a.txt b.txt', claimDone),
    ],
    { name: 'cut-off' },
  )
  const { place } = scene
  const { directory } = place
  const records = await bringRecords('cut-off', place)
  await moveHere(records)
  await cp(join(DATA, 'cut-off', 'codemachine.toml'), join(directory, 'codemachine.toml'))
  await writeFile(join(directory, 'a.txt'), 'a\n')
  // Planted by the round that was killed.
  const hook = join(directory, '.git', 'hooks', 'post-commit')
  await writeFile(hook, 'planted\n')

  const { exitCode, events } = await scene.command(['resume', '--json', '--no-keep-awake']).ended
  expect(exitCode).toBe(0)
  expect(eventsOf(events, 'session-resumed')).toMatchObject([
    { session: '20261122_1', limits: { rounds: 7, timeMs: null, tokens: null } },
  ])
  expect(eventsOf(events, 'round-started').map(({ session, round }) => [session, round])).toEqual([
    ['20261122_1', 2],
    ['20261122_1', 3],
    [expect.not.stringMatching('20261122_1'), 1],
  ])
  // The round begins again, and is told what the one that was killed had been told.
  expect(scene.input(1)).toContain('keep it short')
  expect(eventsOf(events, 'gate-ended').map(({ gate, status }) => [gate, status])).toContainEqual(['tests', 'passed'])
  expect(eventsOf(events, 'session-ended').map(({ outcome }) => outcome.kind)).toEqual(['done', 'done'])
  expect(eventsOf(events, 'session-created')).toMatchObject([{ goal: 'then write c.txt', queued: '000001' }])
  const warnings = eventsOf(events, 'warning').map(({ message }) => message)
  expect(warnings).toContainEqual(expect.stringContaining('This session ran on another machine (night)'))
  expect(warnings).toContainEqual(expect.stringContaining('.git/hooks/post-commit'))
  expect(await readdir(join(directory, '.git', 'hooks'))).not.toContain('post-commit')
  expect(await readdir(records.queue)).not.toContain('000001.json')
  // The command was meant for the run that was killed.
  expect(scene.model.requests.map(({ userTexts }) => userTexts.join('\n')).join('\n')).not.toContain('nobody will read')
})

/** As though the work directory and the records had always been where they are now. */
async function moveHere(records: Records): Promise<void> {
  const { workTree, setAsideDir } = json(join(DATA, 'cut-off', 'records', 'guard.json'))
  const folder = setAsideDir.replace(/\/sessions\/.*/, '')
  for (const path of [records.guard, records.traces, records.journal('20261122_1')]) {
    const text = await readFile(path, 'utf8')
    await writeFile(path, text.replaceAll(folder, records.folder).replaceAll(workTree, records.directory))
  }
}
