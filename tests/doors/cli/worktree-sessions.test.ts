import { mkdirSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import type { SessionEvent } from '../../../src/core/events/events.ts'
import { functionCall, message, reply } from '../../../src/demo/model/reply.ts'
import { openJournal } from '../../../src/session/records/journal.ts'
import { openQueue } from '../../../src/session/records/queue.ts'
import { openRecords, type Records } from '../../../src/session/records/records.ts'
import { takeRunLock } from '../../../src/session/records/run-lock.ts'
import { cliContext } from '../../support/cli-context.ts'
import { codemachineHere } from '../../support/in-process.ts'
import { git, makePlace, type TestPlace } from '../../support/place.ts'
import { promise } from '../../support/promise.ts'
import { claimDone, round } from '../../support/rounds.ts'
import { eventsOf, openScene } from '../../support/scene.ts'
import { hold } from '../../support/scripted-model.ts'
import { test } from '../../support/side-by-side.ts'
import { recorded, sampleEvents } from '../screen/samples.ts'

const created = sampleEvents['session-created']
const ended = [sampleEvents['round-ended'], sampleEvents['session-ended']]
const asked = (text: string): SessionEvent => {
  return { type: 'question-asked', round: 1, question: 'Q1', text, options: [], assumption: 'the first' }
}

async function write(path: string, events: readonly SessionEvent[], id: string): Promise<void> {
  await using journal = openJournal(path)
  for (const event of recorded(events, id)) journal.append(event)
}

/** Journals a session of a directory, written to so many minutes after another. */
async function journal(place: TestPlace, directory: string, id: string, events: readonly SessionEvent[], minute = 0) {
  mkdirSync(directory, { recursive: true })
  const records = await openRecords({ ...cliContext(place), directory })
  mkdirSync(records.sessionFolder(id), { recursive: true })
  await write(
    records.journal(id),
    events.map(event => (event.type === 'session-created' ? { ...event, directory } : event)),
    id,
  )
  const at = new Date(2026, 10, 21, 3, minute)
  utimesSync(records.journal(id), at, at)
  return records
}

/** A checkout whose three worktrees have a session each, all of the same id. */
async function night(place: TestPlace, own: readonly SessionEvent[] | null = null) {
  const top = (name: string) => join(place.root, 'work.worktrees', name)
  const made: Record<string, Records> = {}
  for (const [minute, name] of ['api', 'docs', 'ui'].entries()) {
    git(place, 'worktree', 'add', '-q', '-b', `codemachine/${name}`, top(name))
    const events = [{ ...created, goal: `work on ${name}` }, asked(`Which ${name}?`), ...ended]
    made[name] = await journal(place, top(name), '20261120_1', events, minute)
  }
  if (own !== null) made.own = await journal(place, place.directory, '20261120_1', own, 9)
  return { top, made }
}

/** What a command that is typed in the checkout prints, with exit code 0. */
async function typed(place: TestPlace, ...args: string[]): Promise<string> {
  const { exitCode, stdout, stderr } = await codemachineHere(place, args)
  expect([exitCode, stderr]).toEqual([0, ''])
  return stdout
}

const ids = (text: string) => text.split('\n').flatMap(line => line.match(/^\S+/)?.[0] ?? [])

promise(
  'O45',
  'A checkout lists, shows, reports, verifies and asks about the sessions of its worktrees, each by its worktree',
)
test('after a night in three worktrees the checkout lists their sessions, and its own, each by the name of its worktree', async () => {
  await using place = await makePlace('')
  const { top } = await night(place)
  expect(ids(await typed(place, 'list'))).toEqual(['api:20261120_1', 'docs:20261120_1', 'ui:20261120_1'])
  await journal(place, place.directory, '20261120_1', [created])
  expect(ids(await typed(place, 'list')).sort()).toEqual([
    '20261120_1',
    'api:20261120_1',
    'docs:20261120_1',
    'ui:20261120_1',
  ])
  expect(JSON.parse(await typed(place, 'list', '--json'))).toEqual(
    expect.arrayContaining([
      expect.objectContaining({ worktree: null, directory: place.directory }),
      expect.objectContaining({ id: '20261120_1', worktree: 'docs', directory: top('docs') }),
    ]),
  )
  expect(ids(await typed(place, 'list', '-C', top('docs')))).toEqual(['20261120_1'])
})

test('a folder of the checkout sees the sessions of the same folder of its worktrees', async () => {
  await using place = await makePlace('')
  const { top } = await night(place)
  mkdirSync(join(place.directory, 'packages/one'), { recursive: true })
  await journal(place, join(top('docs'), 'packages/one'), '20261120_7', [created])
  expect(ids(await typed(place, 'list', '-C', 'packages/one'))).toEqual(['docs:20261120_7'])
  // An agent that works there could put a link in its place.
  rmSync(join(top('docs'), 'packages/one'), { recursive: true })
  symlinkSync(place.home, join(top('docs'), 'packages/one'))
  expect(await typed(place, 'list', '-C', 'packages/one')).toMatch(/^No sessions in /)
})

promise('O45')
test('status shows the session that was written to last, where it is, and each other with a line', async () => {
  await using place = await makePlace('')
  const { top } = await night(place)
  const lines = (await typed(place, 'status')).split('\n')
  expect(lines[0]).toBe(`Nothing runs in the worktree ui, ${top('ui')}.`)
  expect(lines[1]).toBe('  session  20261120_1  work on ui')
  expect(lines.slice(lines.indexOf('Elsewhere in this repository:'))).toEqual([
    'Elsewhere in this repository:',
    expect.stringMatching(/^ {2}api {3}20261120_1 {2}done.*, 1 of 20 rounds?: work on api$/),
    expect.stringMatching(/^ {2}docs {2}20261120_1 {2}done.*: work on docs$/),
    '',
  ])
  expect(JSON.parse(await typed(place, 'status', '--json'))).toMatchObject({
    directory: top('ui'),
    worktree: 'ui',
    session: { goal: 'work on ui' },
    elsewhere: [
      { worktree: null, directory: place.directory, session: null },
      { worktree: 'api', session: { goal: 'work on api' } },
      { worktree: 'docs', runner: null },
    ],
  })
})

test('status shows the session that runs, that of the checkout first', async () => {
  await using place = await makePlace('')
  const { top, made } = await night(place)
  const context = cliContext(place)
  const runs = async (name: string) => {
    const lock = made[name]?.lock ?? ''
    return await takeRunLock(lock, { ...context, now: new Date(0) })
  }
  await using _api = await runs('api')
  const running = await typed(place, 'status')
  expect(running).toContain(`codemachine runs in the worktree api, ${top('api')} (pid `)
  expect(running).toMatch(/^ {2}ui {4}20261120_1 /m)

  made.own = await journal(place, place.directory, '20261120_1', [{ ...created, goal: 'mine' }], -60)
  await openQueue(made.own.queue).add('then this', new Date(0))
  expect(await typed(place, 'status')).toMatch(/^ {2}\(checkout\) {2}20261120_1 {2}cut off.*; 1 prompt waiting: mine$/m)
  await using _own = await runs('own')
  expect(await typed(place, 'status')).toContain(`codemachine runs in ${place.directory} (pid `)
})

promise('O46', 'An id that several worktrees have is refused with the name of each')
test('an id that several worktrees have is refused with the names of each, and such a name is understood', async () => {
  await using place = await makePlace('')
  const { top } = await night(place, [{ ...created, goal: 'mine' }])
  await journal(place, top('api'), '20261120_2', [{ ...created, goal: 'only here' }])
  for (const command of ['report', 'verify', 'questions', 'logs', 'watch']) {
    expect(await codemachineHere(place, [command, '20261120_1'])).toMatchObject({
      exitCode: 2,
      stdout: '',
      stderr: [
        `codemachine: "20261120_1" may mean 4 sessions of the checkout and its worktrees; write the worktree's name before it. (CM0604)`,
        '  .:20261120_1, api:20261120_1, docs:20261120_1, ui:20261120_1\n',
      ].join('\n'),
    })
  }
  const said = (where: string) => `codemachine: ${where}.\n`
  const ofDocs = await codemachineHere(place, ['logs', 'docs:20261120_1'])
  expect(ofDocs).toMatchObject({ exitCode: 0, stderr: said(`20261120_1 is of the worktree docs, in ${top('docs')}`) })
  expect(ofDocs.stdout).toContain('work on docs')
  expect(await typed(place, 'logs', '.:1')).toContain('mine')
  expect((await codemachineHere(place, ['report', 'docs:1', '--json'])).stdout).toContain('"goal":"work on docs"')
  // Only one has it.
  expect((await codemachineHere(place, ['logs', '2'])).stdout).toContain('only here')

  const refused = async (word: string) => (await codemachineHere(place, ['logs', word])).stderr
  expect(await refused('web:1')).toContain('No worktree "web" of this repository has sessions. (CM0603)\n')
  expect(await refused('web:1')).toContain('There are: api, docs, ui')
  expect(await refused('9')).toContain(`There is no session "9" in ${place.directory} or its worktrees. (CM0603)\n`)
})

test('what goes on with a session in the checkout says where those of its worktrees are', async () => {
  await using place = await makePlace('')
  await night(place)
  for (const command of [['resume'], ['resume', 'docs:1']]) {
    expect(await codemachineHere(place, command)).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining(
        '\n  Its worktrees have sessions of their own: codemachine list shows them, and -C ',
      ),
    })
  }
})

promise('O45')
test('without a name, report and logs take what was written to last, and name its worktree', async () => {
  await using place = await makePlace('')
  const { top } = await night(place)
  const report = await codemachineHere(place, ['report'])
  expect(report.stderr).toBe(`codemachine: 20261120_1 is of the worktree ui, in ${top('ui')}.\n`)
  expect(report.stdout).toContain(`-C ${top('ui')}`)
  expect((await codemachineHere(place, ['logs'])).stdout).toContain('work on ui')
  const page = join(place.root, 'page.html')
  expect((await codemachineHere(place, ['report', 'api:1', '--output', page])).stdout).toBe(`${page}\n`)
})

promise('O45')
test('questions of all worktrees are shown in the checkout, and an answer goes where it was asked', async () => {
  await using place = await makePlace('')
  const { made } = await night(place)
  const shown = await typed(place, 'questions')
  expect(shown).toMatch(/^api:20261120_1\/Q1 .*\n {2}Which api\?$/m)
  expect(shown).toMatch(/^To answer: codemachine questions answer ui:20261120_1\/Q1 "…"$/m)
  expect(JSON.parse(await typed(place, 'questions', '--json'))).toMatchObject([
    { id: 'api:20261120_1/Q1', worktree: 'api', session: '20261120_1' },
    { worktree: 'docs' },
    { worktree: 'ui' },
  ])
  expect(await codemachineHere(place, ['questions', 'answer', 'Q1', 'blue'])).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining('"Q1" may mean 3 questions of the checkout and its worktrees; write the worktree'),
  })
  expect(await typed(place, 'questions', 'answer', 'docs:20261120_1/Q1', 'blue')).toBe(
    'Answered docs:20261120_1/Q1: blue\nIt waits in the queue of that worktree as 000001, and becomes a session of its own.\n',
  )
  expect(await typed(place, 'questions', 'answer', 'ui:Q1', 'red')).toContain('Answered ui:20261120_1/Q1: red\n')
  const { prompts } = await openQueue(made.docs?.queue ?? '').list()
  expect(prompts.map(({ prompt }) => prompt)).toEqual([expect.stringContaining('blue')])
  expect(await typed(place, 'questions')).not.toContain('docs')
})

promise('B102', 'What lies beside a checkout and leads elsewhere is not taken for a worktree of it')
test('what lies beside the checkout and leads elsewhere is not taken for a worktree of it', async () => {
  await using place = await makePlace('')
  const { top } = await night(place)
  await using other = await makePlace('')
  const elsewhere = { ...other, env: place.env, home: place.home }
  await journal(elsewhere, other.directory, '20261120_5', [{ ...created, goal: 'of another project' }])
  symlinkSync(other.directory, top('link'))
  // A folder that is no worktree, and one whose .git was changed by an agent.
  await journal(place, top('folder'), '20261120_6', [created])
  git(other, 'init', '-q', join(other.root, 'evil'))
  writeFileSync(join(top('docs'), '.git'), `gitdir: ${other.root}/evil/.git\n`)
  const { exitCode, stdout, stderr } = await codemachineHere(place, ['list'])
  expect(exitCode).toBe(0)
  expect(ids(stdout)).toEqual(['api:20261120_1', 'ui:20261120_1'])
  expect(stderr.split('\n')).toEqual([
    `codemachine: ${top('docs')}/.git no longer points to ${place.directory}/.git. Find out who changed it. codemachine ignores its sessions.`,
    `codemachine: ${top('folder')}/.git no longer points to ${place.directory}/.git. Find out who changed it. codemachine ignores its sessions.`,
    '',
  ])
})

promise('O45')
test('what was proved in a worktree is verified from the checkout', async () => {
  await using scene = await openScene([round(`echo hi > a.txt; ${claimDone}`), round(claimDone)])
  const { place } = scene
  const verified = await scene.run(
    '--worktree',
    'docs',
    '--verify',
    'test -f a.txt',
    '--rounds',
    '3',
    '--json',
    'add a',
  )
  expect(verified).toMatchObject({ exitCode: 0 })
  const top = join(place.root, 'work.worktrees/docs')
  const again = await scene.run('verify')
  expect(again).toMatchObject({ exitCode: 0, stdout: expect.stringContaining('still true\n') })
  expect(again.stdout).toContain(` in the worktree docs (${top}), done `)
  rmSync(join(top, 'a.txt'))
  const broken = await scene.run('verify', 'docs:1', '--json')
  expect(broken.exitCode).toBe(4)
  expect(JSON.parse(broken.stdout)).toMatchObject({ worktree: 'docs', directory: top })
})

promise(
  'O47',
  '`list --all` shows the sessions of every directory, also of one that is gone; a broken one hides no other',
)
test('the sessions of all directories are listed by directory, also of one that is gone, and a broken one hides no other', async () => {
  await using place = await makePlace('', { git: false })
  const at = (name: string) => join(place.root, name)
  for (let n = 1; n <= 7; n++) await journal(place, at('one'), `20261118_${n}`, [{ ...created, goal: `goal ${n}` }])
  await journal(place, at('gone'), '20261117_1', [created, ...ended])
  rmSync(at('gone'), { recursive: true })
  const two = await journal(place, at('two'), '20261119_1', [created])
  mkdirSync(two.journal('20261119_2'), { recursive: true })
  const lost = await journal(place, at('lost'), '20261119_9', [created])
  writeFileSync(lost.journal('20261119_9'), 'rubbish\n')
  writeFileSync(join(lost.root, 'state', 'a file'), '')
  // Records of an earlier version do not say themselves whose they are.
  rmSync(lost.directoryFile)
  // A journal that names another directory than that of its records.
  const forged = await journal(place, at('forged'), '20261119_1', [])
  rmSync(forged.directoryFile)
  await write(forged.journal('20261119_1'), [{ ...created, directory: at('one') }], '20261119_1')

  const { exitCode, stdout, stderr } = await codemachineHere(place, ['list', '--all'])
  expect(exitCode).toBe(0)
  expect(
    stdout.split('\n').map(line => line.match(/^ *\S+(?: \(it.*| 2 older.*| .* older ones?)?/)?.[0] ?? ''),
  ).toEqual([
    `${at('gone')} (it is gone)`,
    '  20261117_1',
    '',
    at('one'),
    '  and 2 older ones',
    ...[3, 4, 5, 6, 7].map(n => `  20261118_${n}`),
    '',
    at('two'),
    '  20261119_1',
    '',
  ])
  expect(stderr.trimEnd().split('\n').sort()).toEqual(
    [
      `codemachine: ${two.journal('20261119_2')} cannot be read: it is a directory; restore the journal.`,
      expect.stringMatching(/\/forged-\w+ has sessions, but none of the newest names its directory\.$/),
      expect.stringMatching(/\/lost-\w+ has sessions, but none of the newest names its directory\.$/),
    ].sort(),
  )
  const json = await codemachineHere(place, ['list', '--all', '--json'])
  expect(JSON.parse(json.stdout)).toMatchObject([
    { directory: at('gone'), gone: true, older: 0, sessions: [{ id: '20261117_1', standing: 'ended' }] },
    { directory: at('one'), gone: false, older: 2 },
    { directory: at('two'), gone: false, sessions: [{ id: '20261119_1', standing: 'cut-off' }] },
  ])
})

test('where no session has run on this machine, list --all says so', async () => {
  await using place = await makePlace('', { git: false })
  expect(await typed(place, 'list', '--all')).toMatch(/^No sessions yet\./)
  expect(await typed(place, 'list', '--all', '--json')).toBe('[]\n')
})

promise(
  'O131',
  '`steer`, `stop`, `pause`, `limits`, `decide`, `plan` and an answer typed in a checkout reach the only session that runs in its worktrees; where several run they are named',
)
test('what is said to a session in the checkout reaches the only one that runs in its worktrees', async () => {
  const gate = Promise.withResolvers<void>()
  const question = functionCall('ask_person', { question: 'Which database?', assumption: 'SQLite' })
  await using scene = await openScene([
    [reply(question), reply(message('Working.'), hold(gate.promise)), ...round(claimDone)],
    round(claimDone),
  ])
  const none = await scene.run('steer', 'mind the gap')
  expect([none.exitCode, none.stderr]).toEqual([2, expect.stringContaining('No codemachine runs in ')])
  await using running = scene.start('--json', '--rounds', '1', '--worktree=docs', 'build X')
  await running.event('item-completed', ({ item }) => item.kind === 'agent-message')
  // An older session of the checkout has a question of that name, too.
  await journal(scene.place, scene.place.directory, '20261119_1', [created, asked('Which colour?'), ...ended])
  const steered = await scene.run('steer', 'mind the gap')
  expect([steered.stderr, steered.stdout]).toEqual([
    '',
    'In the worktree docs: The agent of round 1 reads it with its next step.\n',
  ])
  const answer = await scene.run('questions', 'answer', 'Q1', 'Postgres')
  expect([answer.stderr, answer.stdout]).toEqual(['', expect.stringMatching(/^Answered docs:\d{8}_1\/Q1: Postgres\n/)])
  expect((await scene.run('limits', '--rounds', '3')).stdout).toMatch(/^In the worktree docs: .* may take 3 rounds/)
  expect((await scene.run('stop')).stdout).toMatch(/^In the worktree docs: .* stops when round 1 has ended/)
  gate.resolve()
  const { events } = await running.ended
  expect(eventsOf(events, 'steered').map(({ answers = null, delivered }) => [answers, delivered])).toEqual([
    [null, true],
    ['Q1', true],
  ])
  expect(eventsOf(events, 'stop-asked')).toHaveLength(1)
})

promise('O131')
test('where sessions run in several worktrees, the one that is meant has to be named', async () => {
  await using place = await makePlace('')
  const { top, made } = await night(place)
  const runs = async (name: string) =>
    await takeRunLock(made[name]?.lock ?? '', { ...cliContext(place), now: new Date(0) })
  await using _api = await runs('api')
  await using _docs = await runs('docs')
  for (const args of [['stop'], ['steer', 'x'], ['decide', 'accept'], ['pause']])
    expect(await codemachineHere(place, args)).toMatchObject({
      exitCode: 2,
      stderr: `codemachine: Sessions run in 2 worktrees of ${place.directory}; name one with -C. (CM0604)\n  -C ${top('api')}\n  -C ${top('docs')}\n`,
    })
})
