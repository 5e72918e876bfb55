import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { startTimeOf } from '../../src/platform/processes.ts'
import { openWorkDirectory } from '../../src/project/open-run.ts'
import { openRecords } from '../../src/session/records/records.ts'
import { cliContext } from '../support/cli-context.ts'
import { codemachineHere } from '../support/in-process.ts'
import { git, makePlace, type TestPlace } from '../support/place.ts'
import { incident, promise } from '../support/promise.ts'

/** Holds a directory as a run does, with the records of another home if one is named. */
async function hold(place: TestPlace, folder: string, home = place.home): Promise<AsyncDisposable> {
  const directory = join(place.directory, folder)
  await mkdir(directory, { recursive: true })
  const env = { ...place.env, HOME: home, CODEMACHINE_HOME: join(home, '.codemachine') }
  const world = { ...cliContext(place, { cwd: directory, env }), home }
  return await openWorkDirectory(world, await openRecords({ ...world, directory }), () => {})
}

async function refused(holding: Promise<AsyncDisposable>): Promise<string> {
  const error = await holding.then(
    () => null,
    (thrown: unknown) => thrown,
  )
  expect(error).toMatchObject({ exitCode: 6 })
  return (error as Error).message
}

async function makeRepository(place: TestPlace, folder: string): Promise<void> {
  await mkdir(join(place.directory, folder), { recursive: true })
  execFileSync('git', ['init', '-q', join(place.directory, folder)], { env: place.env })
}

promise(
  'B16',
  "Two runs never have the same files: one in a folder of the other's directory, around it, or with another HOME is refused (6)",
)
incident('lost work', "Two runs in one directory took each other's changes for the work of their agents", {
  since: '2026-11-21',
  fixed: '2026-11-22',
  foundBy: 'a trial',
})
test('a run in a folder of the directory of another, or around it, is refused, with another HOME too', async () => {
  await using place = await makePlace('')
  const other = join(place.root, 'other-home')
  await mkdir(other)
  for (const [first, second] of [
    ['', 'src/deep'],
    ['src/deep', ''],
  ] as const) {
    await using _ = await hold(place, first)
    expect(await refused(hold(place, second))).toContain(`runs in ${join(place.directory, first)}`)
    expect(await refused(hold(place, second, other))).toContain('two runs cannot use the same files')
    // An agent can delete its marker, and not its lock.
    await rm(join(place.directory, first, '.codemachine/running.json'))
    expect(await refused(hold(place, second))).toContain(`runs in ${join(place.directory, first)}`)
    await using _beside = await hold(place, '../beside')
  }
  {
    await using _ = await hold(place, '')
    expect(await refused(hold(place, '', other))).toContain('runs here already, with other records')
    const said = await codemachineHere(place, ['--rounds', '1', 'build X'], { cwd: join(place.directory, 'src') })
    expect([said.exitCode, said.stderr]).toEqual([6, expect.stringContaining('codemachine stop -C')])
  }
  await using _after = await hold(place, 'src/deep', other)
})

promise('B17', 'A git repository of its own that the outer run ignores may have a run of its own')
test('a run in a git repository of its own, or a worktree, that the outer one ignores is not refused; one that it does not ignore is', async () => {
  await using place = await makePlace('')
  await writeFile(join(place.directory, '.gitignore'), 'projects/\n')
  await writeFile(join(place.directory, '.git/info/exclude'), '/tree\n')
  await makeRepository(place, 'projects/own')
  await makeRepository(place, 'seen')
  git(place, 'worktree', 'add', '-q', 'tree')
  await using _outer = await hold(place, '')
  {
    await using _own = await hold(place, 'projects/own')
    await using _tree = await hold(place, 'tree/src')
  }
  expect(await refused(hold(place, 'seen'))).toContain('two runs')
  expect(await refused(hold(place, 'projects/plain'))).toContain('two runs')
  const other = join(place.root, 'other-home')
  await mkdir(other)
  await using _theirs = await hold(place, 'projects/own', other)
})

promise(
  'B18',
  "The marker of a run is no work of an agent's, goes with the run, and is believed only while its process lives and its lock says the same",
)
promise('B31', 'A marker that names a living process that runs no codemachine here blocks no run')
test('the marker of a run is seen by no git and no fingerprint, and goes with it; one of no living process counts for nothing', async () => {
  await using place = await makePlace('')
  const marker = join(place.directory, '.codemachine/running.json')
  {
    await using opened = (await hold(place, '')) as Awaited<ReturnType<typeof openWorkDirectory>>
    const before = await opened.fingerprints.take()
    expect(JSON.parse(await readFile(marker, 'utf8'))).toMatchObject({ pid: process.pid })
    expect(git(place, 'status', '--porcelain')).toBe('')
    await rm(marker)
    expect(await opened.fingerprints.take()).toBe(before)
  }
  expect(existsSync(join(place.directory, '.codemachine'))).toBe(false)
  {
    await using _ = await hold(place, '')
    expect(existsSync(marker)).toBe(true)
  }
  expect(existsSync(join(place.directory, '.codemachine'))).toBe(false)

  const holder = { pid: process.pid, startTime: '1', host: 'h', bootId: null, at: new Date().toISOString(), nonce: 'x' }
  const boot = (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim()
  await mkdir(join(place.directory, 'sub/.codemachine'), { recursive: true })
  const forged = join(place.directory, 'sub/.codemachine/running.json')
  for (const text of [
    JSON.stringify({ ...holder, bootId: boot }),
    JSON.stringify({ ...holder, bootId: boot, startTime: null }),
    JSON.stringify({ ...holder, host: 'elsewhere' }),
    '{',
  ]) {
    await writeFile(forged, text)
    await using _ = await hold(place, '')
  }
  // A living process that is no run of codemachine, which an agent can name.
  const alive = { bootId: boot, startTime: await startTimeOf(process.pid, process.platform) }
  const planted = join(place.directory, 'sub/lock')
  const lock = JSON.stringify({ ...holder, ...alive, directory: join(place.directory, 'elsewhere') })
  for (const named of [undefined, 7, '/nowhere/lock', '/dev/zero', planted]) {
    await writeFile(planted, lock)
    await writeFile(forged, JSON.stringify({ ...holder, ...alive, lock: named }))
    await using _ = await hold(place, '')
  }
  await rm(forged)
  await symlink('/dev/zero', forged)
  await using _ = await hold(place, '')
})
