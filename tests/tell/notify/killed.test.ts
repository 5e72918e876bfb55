import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { isAlive } from '../../../src/platform/processes.ts'
import { codemachine, type RunningCodemachine, startCodemachine } from '../../support/codemachine.ts'
import { promise } from '../../support/promise.ts'
import { openRealScene, type RealScene } from '../../support/real-scene.ts'
import { claimDone, held, round } from '../../support/rounds.ts'
import { eventsOf } from '../../support/scene.ts'
import { isLinux, isWindows, unless } from '../../support/skipped.ts'
import { untilInFolder } from '../../support/until-in-folder.ts'

/**
 * Never ends by itself, and starts something that does not either; says both pids, and for whom it was started. A program of the system, as
 * codemachine takes none from where an agent can write, and this checkout may lie there.
 */
const HANGS =
  "sleep 300 & trap '' TERM; echo $CODEMACHINE_FOR_PERSON > for-person; echo $$ $! > .pids; mv .pids pids; sleep 300"

/** A run whose first round has ended, whose second one is held, and whose command does not end. */
async function tellForEver(): Promise<RealScene> {
  const scene = await openRealScene([
    round('touch a'),
    [held(new Promise(() => {}))],
    round(claimDone),
    round(claimDone),
  ])
  const folder = join(scene.place.home, '.config', 'codemachine')
  await mkdir(folder, { recursive: true })
  const command = JSON.stringify(['/bin/sh', '-c', HANGS])
  await writeFile(join(folder, 'config.toml'), `[notify]\ncommand = ${command}\nevents = ["round-ended"]\n`)
  return scene
}

/** Resolves with the pids of the command, in the middle of the second round. */
async function told({ place }: RealScene, running: RunningCodemachine): Promise<number[]> {
  await running.event('item-completed', ({ item }) => item.kind === 'agent-message' && item.text === 'Working.')
  const pids = () => readFile(join(place.home, 'pids'), 'utf8').catch(() => null)
  return (await untilInFolder(place.home, 'the pids of the command', pids)).split(' ').map(Number)
}

const living = async (pids: readonly number[]) => {
  const alive = await Promise.all(pids.map(pid => isAlive(pid, process.platform)))
  return pids.filter((_, i) => alive[i])
}

const ARGS = ['--json', '--no-keep-awake']

const byEnvironment = unless(!isWindows, 'nothing finds another process by its environment on Windows')

promise('E32', 'A notification that outlives a killed run is ended')
test.skipIf(isWindows)(
  `a command that outlives a codemachine that was killed is ended by the next one there, which says so${byEnvironment}`,
  async () => {
    await using scene = await tellForEver()
    await using running = startCodemachine(scene.place, [...ARGS, 'build X'])
    const pids = await told(scene, running)
    running.process.kill('SIGKILL')
    await running.ended
    expect(await living(pids)).toEqual(pids)

    const off = { env: { CODEMACHINE_NOTIFY_EVENTS: '[]' } }
    const { exitCode, events } = await codemachine(scene.place, ['resume', ...ARGS], off)
    expect(exitCode).toBe(0)
    expect(await living(pids)).toEqual([])
    const said = eventsOf(events, 'warning').map(({ message }) => message)
    for (const pid of pids)
      expect(said).toContainEqual(
        expect.stringMatching(`^Ended what an earlier run had left running: [^]*\\(${pid}\\)`),
      )
  },
)

test.skipIf(isWindows)(
  `one that a living codemachine started is left alone between its rounds, and by another codemachine${byEnvironment}`,
  async () => {
    await using scene = await tellForEver()
    await using running = startCodemachine(scene.place, [...ARGS, 'build X'])
    const pids = await told(scene, running)
    // What the first round left has been looked for by then.
    expect((await codemachine(scene.place, ARGS.concat('build Y'))).exitCode).toBe(6)
    expect(await living(pids)).toEqual(pids)
    // Without a sandbox, too: what says this is no stray of an agent.
    expect(await readFile(join(scene.place.home, 'for-person'), 'utf8')).toBe(`${running.process.pid}\n`)
  },
)

test.runIf(isLinux)(
  `whoever asks twice to end leaves none running${unless(isLinux, 'it counts processes in /proc')}`,
  async () => {
    await using scene = await tellForEver()
    await using running = startCodemachine(scene.place, [...ARGS, 'build X'])
    const pids = await told(scene, running)
    running.process.kill('SIGINT')
    await running.event('session-ended')
    // It is waiting for the command now.
    running.process.kill('SIGINT')
    await running.ended
    await expect.poll(() => living(pids), { timeout: 30_000, interval: 10 }).toEqual([])
  },
)
