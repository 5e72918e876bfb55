import { readdirSync, readFileSync, statSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { expect } from 'vitest'
import { detach } from '../../../src/doors/cli/commands/runner/detach.ts'
import { isAlive } from '../../../src/platform/processes.ts'
import { openRealChangeScene, PROJECT, THREE_TASKS } from '../../support/change-scene.ts'
import { cliContext } from '../../support/cli-context.ts'
import { BIN, startCodemachine } from '../../support/codemachine.ts'
import { startInEmulator } from '../../support/emulator.ts'
import { killIfAlive } from '../../support/kill-if-alive.ts'
import { makePlace } from '../../support/place.ts'
import { promise } from '../../support/promise.ts'
import { openRealScene } from '../../support/real-scene.ts'
import { claimDone, held, round } from '../../support/rounds.ts'
import { eventsOf, openScene, type Scene } from '../../support/scene.ts'
import { test } from '../../support/side-by-side.ts'
import { untilInFolder } from '../../support/until-in-folder.ts'
import { VirtualClock } from '../../support/virtual-clock.ts'

/** What `--detach --json` says. */
interface Begun {
  session: string
  directory: string
  pid: number
  log: string
}

/** Resolves with the events of a session that has come to its end, whoever runs it. */
async function ended(scene: Scene, session: string) {
  const { events } = await scene.run('logs', '-f', '--json', session)
  return events
}

function logsIn(scene: Scene): string[] {
  return readdirSync(scene.records()).filter(name => name.includes('.log'))
}

promise(
  'O52',
  '`--detach` says which session began, where its output goes and how to see it; what cannot begin is said at once, with its exit code',
)
test('--detach says the session, the log and how to attach, and ends; the run goes on, and its output is in run.log', async () => {
  const gate = Promise.withResolvers<void>()
  await using scene = await openRealScene([[held(gate.promise), ...round(claimDone)]])
  const said = await scene.run('--detach', 'build X')
  expect([said.exitCode, said.stderr]).toEqual([0, ''])
  const log = join(scene.records(), 'run.log')
  expect(said.stdout).toMatch(
    /^\d{8}_1 continues without this terminal \(pid \d+\)\.\n {2}its log {4}.*run\.log\n {2}see it {5}codemachine attach\n {2}end it {5}codemachine stop\n$/,
  )
  expect(said.stdout).toContain(log)
  const status = await scene.run('status')
  expect(status.stdout).toContain(said.stdout.match(/pid \d+/)?.[0])
  // A second one has no place here.
  const second = await scene.run('--detach', 'build Y')
  expect([second.exitCode, second.stderr]).toEqual([6, expect.stringContaining('is running here since')])
  gate.resolve()
  expect(eventsOf(await ended(scene, said.stdout.slice(0, 10)), 'session-ended')).toMatchObject([
    { outcome: { kind: 'done' } },
  ])
  // It is printed once it has been journaled.
  const isPrinted = () => /session \d{8}_1 {2}build X[\s\S]*ended: done/.test(readFileSync(log, 'utf8'))
  await untilInFolder(scene.records(), 'the end in run.log', () => (isPrinted() ? log : null))
  expect(statSync(log).mode & 0o777).toBe(0o600)
})

promise(
  'R54',
  'A run that `--detach` has started outlives its terminal, closed at any time, and the process that started it',
)
promise('E22', 'A detached run survives the end of its terminal')
test('a detached run outlives its terminal, which is closed while it begins or after', async () => {
  const gate = Promise.withResolvers<void>()
  await using scene = await openRealScene([[held(gate.promise), ...round(claimDone)]])
  await using terminal = startInEmulator(scene.place, ['--detach', 'build X'], { columns: 120 })
  await terminal.until('continues without this terminal')
  const pid = Number(/pid (\d+)/.exec(terminal.all().join(''))?.[1])
  terminal.hangUp()
  await terminal.ended
  expect(await isAlive(pid, process.platform)).toBe(true)
  gate.resolve()
  const id = /(\d{8}_1) continues/.exec(terminal.all().join(''))?.[1] ?? ''
  expect(eventsOf(await ended(scene, id), 'session-ended')).toMatchObject([{ outcome: { kind: 'done' } }])
})

promise('R54')
test('a detached run outlives the process that started it, killed while the session begins', async () => {
  await using scene = await openRealScene([round(claimDone)])
  await scene.run('status')
  const sessions = join(scene.records(), 'sessions')
  const parent = scene.start('--detach', 'build X')
  const session = await untilInFolder(sessions, 'the session', () => readdirSync(sessions)[0] ?? null)
  await killIfAlive(parent.pid)
  await parent.ended
  expect(eventsOf(await ended(scene, session), 'session-ended')).toMatchObject([{ outcome: { kind: 'done' } }])
  expect(logsIn(scene)).toEqual(['run.log'])
})

promise('O52')
test('what cannot begin is said as without --detach, with its exit code, and leaves no log', async () => {
  await using scene = await openRealScene([])
  expect(await scene.run('--detach')).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining('There is no goal, and the queue is empty.'),
  })
  const closed = ['sh', '-c', 'exec "$@" <&-', 'sh']
  const { ended: refused } = startCodemachine(scene.place, ['--detach', '-'], { through: closed })
  expect(await refused).toMatchObject({
    exitCode: 2,
    stderr: 'codemachine: The prompt is empty; say what to do. (CM0107)\n',
  })
  expect(await scene.run('resume', '--detach')).toMatchObject({ exitCode: 2 })
  expect(logsIn(scene)).toEqual([])
})

test('start --detach asks on a terminal, and without one is refused at once; its plan waits as a decision', async () => {
  await using scene = await openRealScene([])
  const inputs = join(scene.place.directory, '.codemachine', 'inputs')
  await mkdir(inputs, { recursive: true })
  await writeFile(join(inputs, 'specifications.md'), '# A list\n\nPrints a list of books.\n')
  expect(await scene.run('start', '--detach')).toMatchObject({
    exitCode: 2,
    stderr:
      'codemachine: Without a terminal, you cannot confirm that the specification is complete; use --yes. (CM0105)\n',
  })
  await using terminal = startInEmulator(scene.place, ['start', '--detach'])
  await terminal.until('[Y/n]')
  terminal.type('n\r')
  expect(await terminal.ended).toEqual({ exitCode: 0 })
  expect(logsIn(scene)).toEqual([])
})

promise('O55', '`queue run` works off what waits')
test('queue run works off what waits, also detached; with nothing there it says so', async () => {
  await using scene = await openRealScene([round(claimDone), round(claimDone)])
  expect(await scene.run('queue', 'run')).toMatchObject({
    exitCode: 0,
    stdout: `The queue is empty in ${scene.place.directory}.\n`,
  })
  await scene.run('queue', 'add', 'one thing')
  await scene.run('queue', 'add', 'another thing')
  const { stdout } = await scene.run('queue', 'run', '--detach', '--json')
  const begun: Begun = JSON.parse(stdout)
  expect(begun).toMatchObject({ directory: scene.place.directory, log: join(scene.records(), 'run.log') })
  await ended(scene, begun.session)
  await ended(scene, begun.session.replace(/1$/, '2'))
  const list = async () => (await scene.run('queue', 'list')).stdout
  await expect.poll(list, { timeout: 60_000 }).toContain('The queue is empty')
})

test('a goal from standard input is handed on whole', async () => {
  await using scene = await openRealScene([round(claimDone)])
  const goal = `build ${'X'.repeat(100_000)} 🚀`
  const { stdout } = await scene.command(['--detach', '--json', '-'], { input: goal }).ended
  const [created] = eventsOf(await ended(scene, JSON.parse(stdout).session), 'session-created')
  expect(created?.goal).toBe(goal)
})

promise('O53', 'What a detached run wants to have decided waits for a person elsewhere')
test('the plan of a detached change waits for a person, who accepts it from another terminal', async () => {
  await using scene = await openRealChangeScene(THREE_TASKS, { files: PROJECT })
  const { stdout } = await scene.run('change', '--detach', '--json', 'Limit the rate.')
  const { session }: Begun = JSON.parse(stdout)
  await using following = scene.start('logs', '-f', '--json', session)
  await following.event('decision-asked')
  expect(await scene.run('decide', 'accept')).toMatchObject({ exitCode: 0, stderr: '' })
  const { events } = await following.ended
  expect(eventsOf(events, 'decision-made')).toMatchObject([{ choice: 'accept', by: 'person' }])
  expect(eventsOf(events, 'session-ended')).toMatchObject([{ outcome: { kind: 'done' } }])
})

promise('O52')
test('a start that takes longer than its bound goes on, and --json says so as JSON', async () => {
  await using place = await makePlace('')
  const stdout = new PassThrough({ encoding: 'utf8' })
  const clock = new VirtualClock(Date.now())
  const command = [process.execPath, '-e', 'setInterval(() => {}, 1000)']
  const context = cliContext(place, { stdout, clock, own: { command, args: [], detached: null } })
  expect(await detach(context, { detach: true, json: true })).toBe(0)
  const { pid, log, ...begun } = JSON.parse(String(stdout.read()))
  try {
    expect(begun).toEqual({ session: null, directory: place.directory })
    expect(statSync(log).mode & 0o777).toBe(0o600)
    expect(await isAlive(pid, process.platform)).toBe(true)
  } finally {
    await killIfAlive(pid)
  }
})

test('an agent that is asked for its answer is not detached', async () => {
  await using scene = await openScene([])
  expect(await scene.run('--agent', 'backend-dev', '--detach', 'say hello')).toMatchObject({
    exitCode: 2,
    stderr:
      'codemachine: --agent waits for the answer of the agent, so it cannot run in the background; leave --detach out. (CM0102)\n',
  })
})

promise('B109', 'What an agent detaches ends with its round')
test('what an agent detaches without a sandbox ends with its round, as all that it starts', async () => {
  const nested = `mkdir ../other; '${process.execPath}' '${BIN}' --detach --json -C ../other 'build Y' > begun.json`
  await using scene = await openRealScene([round(nested), [held(new Promise<never>(() => {}))]])
  const { events } = await scene.run('--yolo', '--rounds', '1', '--json', 'build X')
  const { pid }: Begun = JSON.parse(readFileSync(join(scene.place.directory, 'begun.json'), 'utf8'))
  expect(await isAlive(pid, process.platform)).toBe(false)
  expect(eventsOf(events, 'round-ended')).toMatchObject([{ outcome: { class: 'worked' } }])
})

test('what only prints is not detached', async () => {
  await using scene = await openScene([])
  expect(await scene.run('start', '--dry-run', '--detach')).toMatchObject({
    exitCode: 2,
    stderr:
      'codemachine: --dry-run starts no session, so nothing can run in the background; leave --detach out. (CM0102)\n',
  })
})
