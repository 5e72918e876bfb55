import { execFileSync, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statfsSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import { BIN, type Ended } from '../../support/codemachine.ts'
import { makePlace } from '../../support/place.ts'
import { processesOf } from '../../support/processes.ts'
import { promise } from '../../support/promise.ts'
import { openRealScene } from '../../support/real-scene.ts'
import { claimDone, held, round } from '../../support/rounds.ts'
import { openScene, type Scene } from '../../support/scene.ts'
import { isLinux, problemOfMounting, unless } from '../../support/skipped.ts'

const mountProblem = problemOfMounting()
const skipped = mountProblem === null ? '' : ` (skipped: ${mountProblem})`

/** A disk of a few MiB at a path, that can be filled up to what is left, and emptied again. */
class SmallDisk implements Disposable {
  readonly #path: string

  constructor(path: string, bytes: number) {
    this.#path = path
    mkdirSync(path, { recursive: true })
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${bytes},mode=0700`, 'tmpfs', path])
  }

  fill(leave = 0): void {
    const { bavail, bsize } = statfsSync(this.#path)
    writeFileSync(join(this.#path, 'ballast'), randomBytes(Math.max(0, bavail * bsize - leave)))
  }

  empty(file = 'ballast'): void {
    rmSync(join(this.#path, file))
  }

  [Symbol.dispose](): void {
    execFileSync('umount', ['--lazy', this.#path])
  }
}

const MIB = 1024 * 1024

/** One clear sentence on stderr, exit code 4, nothing left running, and no file but a whole one. */
function expectClearStop({ exitCode, stderr }: Ended, scene: Scene): void {
  expect(stderr).not.toContain('bug in codemachine')
  expect(stderr).not.toMatch(/^ +at /m)
  expect(stderr).toMatch(
    /^codemachine: The disk is full: .+ cannot be written\. \(CM0109\)\n {2}Free some space, then type codemachine resume; /m,
  )
  expect(exitCode).toBe(4)
  expect(processesOf(scene.place)).toEqual([])
  expectWholeFiles(scene)
}

function expectWholeFiles({ place }: Scene): void {
  for (const root of [join(place.home, '.codemachine'), join(place.directory, '.codemachine')]) {
    if (!existsSync(root)) continue
    const names = readdirSync(root, { recursive: true, encoding: 'utf8', withFileTypes: true })
    for (const entry of names.filter(each => each.isFile())) {
      const path = join(entry.parentPath, entry.name)
      expect(path).not.toMatch(/\.tmp$/)
      if (path.endsWith('.json') || entry.name === 'lock') expect([path, isJson(path)]).toEqual([path, true])
      if (entry.name === 'journal.ndjson') expectOnlyTornAtTheEnd(path)
      if (entry.name === 'MAIN.md') expect(readFileSync(path, 'utf8')).toMatch(/^---\n.*# Goal.*## Done/s)
      if (entry.name === '.gitignore') expect(readFileSync(path, 'utf8')).toBe('*\n')
    }
  }
}

function isJson(path: string): boolean {
  try {
    JSON.parse(readFileSync(path, 'utf8'))
    return true
  } catch {
    return false
  }
}

function expectOnlyTornAtTheEnd(path: string): void {
  const lines = readFileSync(path, 'utf8').split('\n')
  const last = lines.length - 1
  for (const line of lines.slice(0, last)) expect(() => JSON.parse(line)).not.toThrow()
}

describe.runIf(mountProblem === null)(`the disk of the records${skipped}`, () => {
  // From nothing at all to enough for the first files: every write of a start is the one that fails.
  test.each([0, 8, 16, 32, 48, 64, 128])(
    'is full with %i KiB left when a session starts: a clear stop, and the work is done once there is room',
    async kib => {
      await using scene = await openScene(Array.from({ length: 6 }, () => round(claimDone)))
      using disk = new SmallDisk(join(scene.place.home, '.codemachine'), 4 * MIB)
      disk.fill(kib * 1024)
      const ended = await scene.run('--rounds', '4', 'build X')
      expectClearStop(ended, scene)
      disk.empty()
      const again = await goOn(scene, 'build X')
      expect([again.exitCode, again.stderr]).toEqual([0, ''])
      expectWholeFiles(scene)
    },
  )

  promise('R7', 'A full disk is a clear stop, and with room again resume goes on')
  test('fills while a round runs: the round ends, and resume goes on to done', async () => {
    const gate = Promise.withResolvers<void>()
    const loud = round(`head -c 300000 /dev/urandom | base64 > big.txt; cat big.txt`, claimDone)
    await using scene = await openScene([[held(gate.promise), ...loud], ...Array(4).fill(round(claimDone))])
    using disk = new SmallDisk(join(scene.place.home, '.codemachine'), 8 * MIB)
    await using running = scene.start('--json', '--rounds', '5', 'build X')
    await running.event('item-completed', ({ item }) => item.kind === 'agent-message')
    disk.fill()
    gate.resolve()
    expectClearStop(await running.ended, scene)
    expect((await scene.run('list')).stdout).toContain('needs a person')
    disk.empty()
    const { exitCode, stderr } = await scene.run('resume')
    expect([exitCode, stderr]).toEqual([0, ''])
  })

  test('fills while an agent works without a session: the journal of its call says so, too', async () => {
    const gate = Promise.withResolvers<void>()
    const loud = round(`head -c 300000 /dev/urandom | base64 > big.txt; cat big.txt`)
    await using scene = await openRealScene([[held(gate.promise), ...loud]])
    const records = join(scene.place.home, '.codemachine')
    using disk = new SmallDisk(records, 8 * MIB)
    mkdirSync(join(scene.place.directory, '.codemachine'))
    const running = scene.startInProcess(['--agent', 'backend-dev', 'build X'], { clock: systemClock })
    await vi.waitUntil(() => scene.model.requests.length > 0, { timeout: 60_000 })
    disk.fill()
    gate.resolve()
    const { exitCode, stderr } = await running.ended
    expect([exitCode, stderr]).toEqual([4, expect.stringContaining('The disk is full')])
    const journals = readdirSync(records, { recursive: true, encoding: 'utf8' }).filter(path =>
      path.endsWith('journal.ndjson'),
    )
    const [last] = journals.map(path => readFileSync(join(records, path), 'utf8').trim().split('\n').at(-1) ?? '')
    expect(JSON.parse(last ?? '')).toMatchObject({
      type: 'session-ended',
      outcome: { kind: 'needs-person', hint: null },
    })
  })

  test('is full when a prompt is added: it is not half in the queue, and the others still are', async () => {
    await using scene = await openScene([])
    using disk = new SmallDisk(join(scene.place.home, '.codemachine'), MIB)
    await scene.run('queue', 'add', 'first')
    disk.fill()
    const ended = await scene.run('queue', 'add', `second ${'x'.repeat(100_000)}`)
    expectClearStop(ended, scene)
    const { stdout } = await scene.run('queue', 'list')
    expect(stdout).toContain('first')
    expect(stdout).not.toContain('second')
    disk.empty()
    expect((await scene.run('queue', 'add', 'second')).exitCode).toBe(0)
  })

  test('is full when a person says something: they are told so, and the run goes on', async () => {
    const gate = Promise.withResolvers<void>()
    await using scene = await openScene([[held(gate.promise), ...round(claimDone)], round(claimDone), round(claimDone)])
    using disk = new SmallDisk(join(scene.place.home, '.codemachine'), 4 * MIB)
    await using running = scene.start('--json', '--rounds', '5', 'build X')
    await running.event('item-completed', ({ item }) => item.kind === 'agent-message')
    disk.fill()
    const said = await scene.run('steer', 'x'.repeat(50_000))
    expect(said.stderr).toMatch(/^codemachine: The disk is full: /)
    expect(said.exitCode).toBe(4)
    disk.empty()
    gate.resolve()
    const { exitCode } = await running.ended
    expect(exitCode).toBe(0)
    expectWholeFiles(scene)
  })
})

describe.runIf(mountProblem === null)(`the disk of the work directory${skipped}`, () => {
  test('is filled by a command of the agent, and MAIN.md is cut off: a clear stop, and resume goes on', async () => {
    const fills = `cat /dev/zero > big; printf '%s' '---' > $(ls -d .codemachine/projects/*)/MAIN.md; true`
    await using scene = await openScene([round(fills), round(claimDone), round(claimDone)], { git: false })
    using disk = new SmallDisk(scene.place.directory, 2 * MIB)
    expectClearStop(await scene.run('--rounds', '5', 'build X'), scene)
    disk.empty('big')
    const { exitCode, stdout } = await scene.run('resume')
    expect([exitCode, stdout]).toEqual([0, expect.stringContaining('done')])
    expectWholeFiles(scene)
    expect(scene.memory('MAIN.md')).toContain('build X')
  })

  test.each([0, 4, 8])('has %i KiB left when a session starts: a clear stop, nothing half made', async kib => {
    await using scene = await openScene([round(claimDone), round(claimDone)], { git: false })
    using disk = new SmallDisk(scene.place.directory, MIB)
    disk.fill(kib * 1024)
    expectClearStop(await scene.run('--rounds', '5', 'build X'), scene)
    const projects = join(scene.place.directory, '.codemachine', 'projects')
    expect(existsSync(projects) ? readdirSync(projects) : []).toEqual([])
    disk.empty()
    expect((await scene.run('--rounds', '5', 'build X')).exitCode).toBe(0)
    expectWholeFiles(scene)
  })
})

describe.runIf(isLinux)(`a limit on the size of files${unless(isLinux, 'it is set as on Linux')}`, () => {
  test('is a clear stop too, and without it resume goes on', async () => {
    const gate = Promise.withResolvers<void>()
    const loud = round('for i in $(seq 2000); do echo "line $i of what is said"; done', claimDone)
    await using scene = await openRealScene([[held(gate.promise), ...loud], ...Array(4).fill(round(claimDone))])
    await using running = scene.start('--json', '--rounds', '5', 'build X')
    await running.event('item-completed', ({ item }) => item.kind === 'agent-message')
    execFileSync('prlimit', ['--pid', String(running.pid), '--fsize=12000:12000'])
    gate.resolve()
    expectClearStop(await running.ended, scene)
    const { exitCode, stderr } = await scene.run('resume')
    expect([exitCode, stderr]).toEqual([0, ''])
  })
})

/** What a person does when there is room again: goes on if there is something to go on with, else starts anew. */
async function goOn(scene: Scene, goal: string): Promise<Ended> {
  const resumed = await scene.run('resume')
  return resumed.exitCode === 2 ? await scene.run('--rounds', '4', goal) : resumed
}

const FULL = '/dev/full'

promise(
  'O136',
  'What a command cannot write to its output is a sentence and exit code 4; a reader that goes away is neither',
)
test
  .skipIf(!existsSync(FULL))
  .each([
    [['--version']],
    [['--help']],
    [['list', '--help']],
    [['list', '--json']],
    [['queue', 'list']],
    [['complete', 'zsh']],
    [['mcp']],
  ])('what %j cannot write is said, and is no success (only where there is /dev/full)', async args => {
  await using place = await makePlace('')
  const { directory, env } = place
  const full = openSync(FULL, 'w')
  const child = spawn(process.execPath, [BIN, ...args], { cwd: directory, env, stdio: ['pipe', full, 'pipe'] })
  let said = ''
  child.stderr?.setEncoding('utf8').on('data', text => {
    said += text
  })
  child.stdin?.end('{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
  const [exitCode] = await once(child, 'close')
  closeSync(full)
  expect(said).toMatch(
    /^codemachine: The output is incomplete, because it cannot be written: ENOSPC.*\n {2}Free some space/m,
  )
  expect(exitCode).toBe(4)
})
