import { execFile, execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'vitest'
import type { ScriptStep } from '../../../src/demo/model/reply.ts'
import { message, reply, shell } from '../../../src/demo/model/reply.ts'
import { BIN } from '../../support/codemachine.ts'
import { git } from '../../support/place.ts'
import { promise } from '../../support/promise.ts'
import { openRealScene } from '../../support/real-scene.ts'
import { claimDone, flagDone, readMain, round, says, writeMemory, writeTasks } from '../../support/rounds.ts'
import { eventsOf, type OpenScene, openScene, type Scene } from '../../support/scene.ts'
import { describe, test } from '../../support/side-by-side.ts'

const TOKENS_OF_A_WINDOW = 258_400

const contextFull: ScriptStep = {
  kind: 'status',
  status: 400,
  body: { error: { code: 'context_length_exceeded', message: 'Your input exceeds the context window of this model.' } },
}

promise('D1', 'A claim of the round that changed the work is refused, and the next round looks again')
promise('D62', 'The status in `MAIN.md` is `done` once a session is done')
promise('E1', 'A goal is worked on in rounds to its end')
test('a goal is worked on in rounds, a claim in a round that changed files is refused, and the next one accepted', async () => {
  await using scene = await openRealScene([
    round('echo "export {}" > a.js', 'git add a.js && git commit -qm "Add a"'),
    round('echo more > b.txt', flagDone),
    round(flagDone),
  ])
  const { exitCode, events } = await scene.run('--json', '--rounds', '8', 'build X')
  expect(exitCode).toBe(0)
  expect(events.filter(event => event.type.startsWith('done-'))).toMatchObject([
    { type: 'done-nominated', round: 2, by: ['MAIN.md'] },
    { type: 'done-refused', round: 2, reason: 'tree-changed' },
    { type: 'done-nominated', round: 3 },
    { type: 'done-accepted', round: 3 },
  ])
  expect(events.at(-1)).toMatchObject({ type: 'session-ended', outcome: { kind: 'done', verified: false }, rounds: 3 })
  expect(git(scene.place, 'log', '--format=%s')).toBe('Add a\nStart')
  expect(scene.memory('MAIN.md')).toContain('status: done\nfinite_incantatem: true\n')
})

promise('D2', 'A claim is refused while a task or an entry is open, and the reason is told to the next round')
promise('M26')
describe('a done claim is refused, put back in MAIN.md, and the next round is told what is missing', () => {
  const unfinished = { id: 'T2', name: 'Write the docs', done: false }
  test.each<[string, ScriptStep[], string, OpenScene?]>([
    [
      'tasks-left',
      round(writeTasks([{ id: 'T1', name: 'Build', done: true }, unfinished]), flagDone),
      'T2 Write the docs',
      openRealScene,
    ],
    [
      'progress-left',
      round(`sed -i 's/^## Todo/## Todo\\n\\n- [ ] T7 the error page/' ${readMain.file}`, flagDone),
      'T7 the error page',
    ],
    ['tree-changed', round('touch forgotten.txt', flagDone), 'forgotten.txt'],
    ['memory-broken', round(writeMemory('tasks.json', '{ "tasks": ['), flagDone), 'tasks.json could not be read'],
    ['round-not-completed', [reply(shell(flagDone)), contextFull], 'was cut off'],
  ])('%s', async (reason, claiming, missing, open = openScene) => {
    await using scene = await open([claiming, round(readMain.command)])
    const { exitCode, events } = await scene.run('--json', '--rounds', '2', 'build X')
    expect(exitCode).toBe(3)
    expect(eventsOf(events, 'done-refused')).toMatchObject([
      { round: 1, reason, detail: expect.stringContaining(missing) },
    ])
    expect(scene.model.requests.at(-1)?.lastOutputs[0]).toContain('finite_incantatem: false')
    expect(scene.input(2)).toContain(`did not accept the claim that the work is done: `)
    expect(scene.input(2)).toContain(missing)
    // Of a full context codex names the whole window as used.
    expect(eventsOf(events, 'session-ended')[0]?.tokens).toBeLessThan(TOKENS_OF_A_WINDOW)
  })
})

test('tasks.json with every task done is a claim by itself', async () => {
  await using scene = await openScene([round(writeTasks([{ id: 'T1', name: 'Build', done: true }]))])
  const { exitCode, events } = await scene.run('--json', 'build X')
  expect(exitCode).toBe(0)
  expect(eventsOf(events, 'done-nominated')).toMatchObject([{ by: ['tasks.json'] }])
  expect(scene.memory('MAIN.md')).toContain('status: done\nfinite_incantatem: false\n')
})

promise('D62')
test('a MAIN.md whose status cannot be changed alone is left as it is, and that is said once', async () => {
  const status = `sed -i 's/^status: in-progress$/status: >-\\n  in-progress/' ${readMain.file}`
  await using scene = await openScene([round(status, writeTasks([{ id: 'T1', name: 'Build', done: true }]))])
  const { exitCode, events } = await scene.run('--json', 'build X')
  expect(exitCode).toBe(0)
  expect(scene.memory('MAIN.md')).toContain('status: >-\n  in-progress\n')
  const said = eventsOf(events, 'warning').filter(({ message }) => message.startsWith('MAIN.md does not say'))
  expect(said).toMatchObject([{ message: expect.stringContaining('write status: in-progress on a line of its own') }])
})

promise('M1', 'A session that has used its rounds ends with exit code 3 and says how to go on')
test('a session that has used its rounds ends with exit code 3 and says how to go on', async () => {
  await using scene = await openScene([round('true'), round('true'), round(claimDone)])
  const { exitCode, stdout, stderr } = await scene.run('--rounds', '2', 'build X')
  expect(exitCode).toBe(3)
  expect(stderr).toBe('')
  const [command] = /codemachine resume \S+ --rounds \d+/.exec(stdout) ?? []
  expect(command).toBeDefined()
  const resumed = await scene.run(...(command ?? '').split(' ').slice(1))
  expect(resumed).toMatchObject({ exitCode: 0 })
  expect(resumed.stdout).toContain('round 3  ')
})

promise(
  'L1',
  'Each round is a fresh thread that is told where its memory lies, and nothing of rounds, limits or the round before',
)
test('every round is a fresh thread that is told where its memory lies, and nothing of rounds, limits or the round before', async () => {
  const secret = 'only-round-one-knows'
  await using scene = await openRealScene([
    [reply(message(secret), shell(`echo ${secret}-too`)), says('Done for now.')],
    round('true'),
    round('true'),
  ])
  const { events } = await scene.run('--json', '--rounds', '3', 'build X')
  const { requests } = scene.model
  const told = (round: number) =>
    JSON.stringify(requests.filter(each => each.conversation === round - 1).map(each => each.body))
  expect([told(1).includes(secret), told(2).includes(secret), told(3).includes(secret)]).toEqual([true, false, false])
  expect(new Set(requests.map(each => each.thread)).size).toBe(3)

  const instructions = requests.map(each => each.developerTexts.find(text => text.includes('MAIN.md')) ?? '')
  expect(new Set(instructions).size).toBe(1)
  expect(instructions[0]).toContain(`.codemachine/projects/${events[0]?.session}/MAIN.md`)
  const inputs = new Set([1, 2, 3].map(n => scene.input(n)))
  expect(inputs.size).toBe(1)
  for (const text of [...inputs, ...instructions]) expect(text).not.toMatch(/\brounds?\b|\bbudget|\blimit|\b[123] of/i)
})

promise('J9', 'What `--json` printed is the journal')
test('what --json printed is the journal, and logs, list and status tell the same', async () => {
  await using scene = await openScene([round('touch a'), round(claimDone)])
  const { stdout } = await scene.run('--json', '--rounds', '5', 'build X')
  const [, ...journal] = scene.recorded('journal.ndjson').split('\n')
  expect(stdout).toBe(journal.join('\n'))
  expect((await scene.run('logs', '--json')).stdout).toBe(stdout)
  expect((await scene.run('logs')).stdout).toContain('$ touch a  → exit 0')
  expect((await scene.run('list')).stdout).toMatch(/^\d{8}_1 {2}.*done, not verified {2}2 rounds .* build X\n$/)
  expect(JSON.parse((await scene.run('list', '--json')).stdout)).toMatchObject([
    { goal: 'build X', rounds: 2, standing: 'ended' },
  ])
  expect(JSON.parse((await scene.run('status', '--json')).stdout)).toMatchObject({
    runner: null,
    queued: 0,
    session: { goal: 'build X', standing: 'ended', roundsUsed: 2, outcome: { kind: 'done' } },
  })
})

test('the records hold what codex sent in each round, without deltas, and only their owner may read them', async () => {
  await using scene = await openScene([round('touch a'), round(claimDone)])
  await scene.run('--rounds', '5', 'build X')
  const methods = scene
    .recorded('rounds/001.ndjson')
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line).method)
  expect(methods).toContain('item/completed')
  expect(methods).toContain('turn/completed')
  expect(methods.filter(method => /delta/i.test(method))).toEqual([])

  const root = scene.records()
  for (const entry of readdirSync(root, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    // The private git directory is git's own inside a folder that nobody else may enter.
    if (relative(root, path).startsWith('git/') || entry.isSymbolicLink()) continue
    expect([relative(root, path), statSync(path).mode & 0o777]).toEqual([
      relative(root, path),
      entry.isDirectory() ? 0o700 : 0o600,
    ])
  }
})

promise('B7', "The person's repository, index and branches stay as they were")
test('the person’s repository is as it was, but for what the rounds did', async () => {
  await using scene = await openScene([round('echo hi > b.txt'), round(claimDone)])
  const before = filesIn(join(scene.place.directory, '.git'))
  expect(await scene.run('--rounds', '5', 'build X')).toMatchObject({ exitCode: 0 })
  expect(filesIn(join(scene.place.directory, '.git'))).toEqual(before)
  expect(git(scene.place, 'status', '--porcelain')).toBe('?? b.txt')
  expect(readFileSync(join(scene.place.directory, '.codemachine/.gitignore'), 'utf8').trim()).toBe('*')
  expect(readdirSync(scene.place.directory).sort()).toEqual(['.codemachine', '.git', 'README.md', 'b.txt'])
})

promise(
  'L2',
  'A session begins in an empty directory, in a part of a repository, in a worktree, and in a directory of any name',
)
describe('a session comes to its end in', () => {
  const worked = async (scene: Scene, cwd?: string) => {
    const { exitCode, events } = await scene.command(['--json', 'build X'], cwd ? { cwd } : {}).ended
    expect(exitCode).toBe(0)
    expect(eventsOf(events, 'round-ended').map(({ changed }) => changed)).toEqual([['a.txt'], []])
  }
  const rounds = [round('echo hi > a.txt'), round(claimDone)]

  test('an empty directory that is no repository', async () => {
    await using scene = await openRealScene(rounds, { git: false })
    await worked(scene)
    expect(readdirSync(scene.place.directory).sort()).toEqual(['.codemachine', 'a.txt'])
  })

  test('a directory with spaces and letters of any kind in its name', async () => {
    await using scene = await openScene(rounds, { name: "mein Café 'проект' 項目 🚀" })
    await worked(scene)
  })

  test('a subdirectory of a repository, of which only that is looked at', async () => {
    await using scene = await openScene([round('echo hi > a.txt; git add a.txt; git commit -qm Add'), round(claimDone)])
    const cwd = join(scene.place.directory, 'packages', 'one')
    await mkdir(cwd, { recursive: true })
    await worked(scene, cwd)
    expect(git(scene.place, 'status', '--porcelain')).toBe('')
    expect(git(scene.place, 'log', '-1', '--format=%s')).toBe('Add')
  })

  test('a worktree of a repository', async () => {
    await using scene = await openScene([round('echo hi > a.txt; git add a.txt; git commit -qm Add'), round(claimDone)])
    const cwd = join(scene.place.root, 'tree')
    git(scene.place, 'worktree', 'add', '-q', cwd)
    await worked(scene, cwd)
    expect(execFileSync('git', ['log', '-1', '--format=%s'], { cwd, encoding: 'utf8' })).toBe('Add\n')
  })
})

promise('L3', 'A goal is worked on as it was typed, in any script, also with broken bytes')
test('a goal in any script, with emoji and broken bytes, is worked on as it was typed', async () => {
  const goal = 'baue 建造 يبني 👩‍🚀 "quoted" $HOME `x` \u2028 line\ttab'
  await using scene = await openScene([round(readMain.command, claimDone), round(claimDone)])
  const { exitCode, events, stdout } = await scene.run('--json', goal)
  expect(exitCode).toBe(0)
  expect(events[0]).toMatchObject({ goal })
  expect(stdout.split('\n').filter(line => line !== '').length).toBe(events.length)
  expect(scene.memory('MAIN.md')).toContain(goal)
})

test('a goal that is not valid UTF-8 does not end the run', async () => {
  await using scene = await openRealScene([round(claimDone)])
  const script = `exec "$0" "$1" --json "$(printf 'na\\357ve \\355\\240\\275 goal')"`
  const { stdout } = await promisify(execFile)('bash', ['-c', script, process.execPath, BIN], {
    cwd: scene.place.directory,
    env: scene.place.env,
  })
  expect(stdout).toContain('"kind":"done"')
  expect(stdout.isWellFormed()).toBe(true)
})

function filesIn(folder: string): Record<string, string> {
  return Object.fromEntries(
    readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter(entry => entry.isFile())
      .map(entry => join(entry.parentPath, entry.name))
      .map(path => [relative(folder, path), readFileSync(path, 'base64')]),
  )
}
