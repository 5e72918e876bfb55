import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'vitest'
import { UserError } from '../../../src/base/errors.ts'
import { isRemoteService, serviceOn } from '../../../src/platform/service.ts'
import { runService } from '../../../src/project/service/service.ts'
import { cliContext } from '../../support/cli-context.ts'
import { HandClock } from '../../support/hand-clock.ts'
import { killIfAlive } from '../../support/kill-if-alive.ts'
import { promise } from '../../support/promise.ts'
import { openRealScene } from '../../support/real-scene.ts'
import { claimDone, round } from '../../support/rounds.ts'
import { eventsOf } from '../../support/scene.ts'
import { test } from '../../support/side-by-side.ts'
import { untilInFolder } from '../../support/until-in-folder.ts'
import { asTheManagerDoes, unitOf, withManager, working } from './service-scene.ts'

/** A clock whose waits end when a test says so, and that is moved on by hand. */
class MovedClock extends HandClock {
  movedMs = 0

  override monotonic(): number {
    return this.movedMs
  }
}

const LOOK_MS = 15_000
/** Whether systemd finds nothing wrong with a unit; what it says. */
async function verified(unit: string): Promise<string> {
  const runtime = await mkdtemp(join(tmpdir(), 'systemd-'))
  try {
    const env = { ...process.env, XDG_RUNTIME_DIR: runtime }
    return execFileSync('systemd-analyze', ['--user', 'verify', unit], { env, stdio: 'pipe', encoding: 'utf8' })
  } finally {
    await rm(runtime, { recursive: true })
  }
}

promise('R53', 'The unit is one that systemd reads, whatever stands in its paths')
test('a unit is what systemd reads, whatever stands in its paths', async () => {
  const root = await mkdtemp(join(tmpdir(), 'service-'))
  try {
    const program = join(root, 'a b')
    await writeFile(program, '#!/bin/sh\n', { mode: 0o755 })
    const command = [program, '/two "words" $c %d \\']
    const places = {
      home: root,
      configHome: root,
      command,
      env: { PATH: '/x y:/%z"' },
      log: '/l',
      uid: 501,
      isRemote: false,
    }
    const unit = join(root, 'codemachine.service')
    const { text } = serviceOn('linux', places) ?? { text: '' }
    await writeFile(unit, text)
    expect(await verified(unit)).toBe('')
    await writeFile(unit, text.replace('ExecStart="', 'ExecStart="/nowhere'))
    await expect(verified(unit)).rejects.toThrow('is not executable')
    const agent = serviceOn('darwin', { ...places, command: ['/a & <b>'] })
    expect(agent?.logs).toBe('tail -f /l')
    expect(serviceOn('darwin', { ...places, log: '/my files/l' })?.logs).toBe("tail -f '/my files/l'")
    expect(agent?.path).toBe(join(root, 'Library', 'LaunchAgents', 'codemachine.plist'))
    expect(agent?.text).toContain('<string>/a &amp; &lt;b&gt;</string>')
    const letGo = ['gui', 'user'].map(domain => ['launchctl', 'bootout', `${domain}/501/codemachine`])
    expect(agent?.before).toEqual(letGo)
    expect(agent?.end).toEqual(letGo.slice(0, 1))
    expect(agent?.begin).toEqual([['launchctl', 'bootstrap', 'gui/501', agent?.path]])
    expect(isRemoteService(agent?.text ?? '')).toBe(false)
    const remote = serviceOn('darwin', { ...places, isRemote: true })
    expect(remote?.begin).toEqual([['launchctl', 'bootstrap', 'user/501', agent?.path]])
    expect([remote?.before, remote?.end]).toEqual([letGo, letGo.slice(1)])
    expect(isRemoteService(remote?.text ?? '')).toBe(true)
    expect(serviceOn('win32', places)).toBeNull()
  } finally {
    await rm(root, { recursive: true })
  }
})

test('install writes the unit, shows it and has it begin; status tells it; uninstall takes it away', async () => {
  await using scene = await openRealScene([])
  const { asked } = await withManager(scene)
  const shown = await scene.run('service', 'install', '--dry-run')
  expect([shown.exitCode, existsSync(unitOf(scene)), asked()]).toEqual([0, false, ''])
  expect(shown.stdout).toContain('  [Service]\n')
  const installed = await scene.run('service', 'install')
  expect([installed.exitCode, installed.stderr]).toEqual([0, ''])
  expect(asked()).toBe('--user daemon-reload\n--user enable codemachine.service\n--user restart codemachine.service\n')
  expect(await verified(unitOf(scene))).toBe('')
  expect(JSON.parse((await scene.run('service', 'status', '--json')).stdout)).toEqual({
    file: unitOf(scene),
    installed: true,
    current: true,
    web: false,
    running: null,
    due: [],
  })
  await scene.run('service', 'uninstall')
  expect(existsSync(unitOf(scene))).toBe(false)
  expect(asked()).toContain('--user disable --now codemachine.service\n')
  expect((await scene.run('service', 'uninstall')).stdout).toBe('There is no service to remove.\n')
})

test('where no service manager answers, that is said, with what to type once one does', async () => {
  await using scene = await openRealScene([])
  await withManager(scene, 1)
  const { exitCode, stderr } = await scene.run('service', 'install')
  expect(exitCode).toBe(4)
  expect(stderr).toBe(
    'codemachine: The service is installed, but does not run: No bus\n  Once a service manager runs: systemctl --user daemon-reload && systemctl --user enable codemachine.service && systemctl --user restart codemachine.service\n  Until then: codemachine service run\n',
  )
})

promise('R50', 'After a reboot the service goes on with what was cut off, and the next time with what ended with it')
promise('E23', 'The service resumes sessions after a reboot')
test('after a reboot the service goes on with what was cut off; ended itself, it goes on the next time', async () => {
  await using scene = await openRealScene([working, working, round(claimDone)])
  await withManager(scene)
  await scene.run('service', 'install')
  const { session, pid } = JSON.parse((await scene.run('--detach', '--json', 'build X')).stdout)
  const sessions = join(scene.records(), 'sessions', session)
  const untilWorking = (times: number) =>
    untilInFolder(sessions, 'Working.', () =>
      scene.recorded('journal.ndjson').split('"Working."').length > times ? sessions : null,
    )
  await untilWorking(1)
  await killIfAlive(pid)
  const lock = join(scene.records(), 'lock')
  writeFileSync(lock, readFileSync(lock, 'utf8').replace(/"bootId":"[^"]*"/, '"bootId":"that-of-yesterday"'))
  expect((await scene.run('service', 'status')).stdout).toMatch(
    new RegExp(`to do +${scene.place.directory}: resumes ${session}, which was cut off`),
  )
  const first = asTheManagerDoes(scene)
  await first.until(new RegExp(`${session}, codemachine attach shows it`))
  expect(await scene.run('service', 'run')).toMatchObject({ exitCode: 6 })
  await untilWorking(2)
  expect(await first.end()).toBe(0)
  expect(first.said()).toContain('ended with exit code 143')
  await using second = asTheManagerDoes(scene)
  await second.until(/ended with exit code 0/)
  const { events } = await scene.run('logs', '--json', session)
  expect(eventsOf(events, 'session-ended').map(({ outcome }) => outcome.kind)).toEqual(['interrupted', 'done'])
})

test('a run that fails at once is said, and tried three times at the most, a quarter of an hour apart', async () => {
  await using scene = await openRealScene([])
  await scene.run('queue', 'add', 'one thing')
  const ending = new AbortController()
  const clock = new MovedClock()
  const context = cliContext(scene.place, { clock, signal: ending.signal })
  const said: string[] = []
  const start = () => Promise.reject(new UserError('CM0301', 'There is no codex.'))
  const root = join(scene.place.home, '.codemachine')
  const running = runService(context, { root, say: line => void said.push(line), start, end: () => {} })
  // Between two looks nothing but the clock is waited for.
  for (const [tries, movesMs] of [
    [1, 60_000],
    [1, 16 * 60_000],
    [2, 16 * 60_000],
    [3, 60 * 60_000],
    [3, 0],
  ] as const) {
    await clock.over(LOOK_MS)
    expect(said.filter(line => line.endsWith('There is no codex. (CM0301)'))).toHaveLength(tries)
    clock.movedMs += movesMs
  }
  ending.abort('SIGTERM')
  await running
})
