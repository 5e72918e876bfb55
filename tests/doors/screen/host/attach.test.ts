import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import { type Emulator, startInEmulator } from '../../../support/emulator.ts'
import { promise } from '../../../support/promise.ts'
import { openRealScene, type RealScene } from '../../../support/real-scene.ts'
import { claimDone, held, round } from '../../../support/rounds.ts'
import { eventsOf } from '../../../support/scene.ts'
import { describe, test } from '../../../support/side-by-side.ts'
import { unless } from '../../../support/skipped.ts'
import { untilInFolder } from '../../../support/until-in-folder.ts'

const isRoot = process.getuid?.() === 0
const never = new Promise<never>(() => {})

/** A run that works without a terminal; answers its session. */
async function detached(scene: RealScene): Promise<string> {
  const { stdout, stderr } = await scene.run('--detach', '--json', 'build X')
  expect(stderr).toBe('')
  return JSON.parse(stdout).session
}

const attach = (scene: RealScene, ...args: string[]) =>
  startInEmulator(scene.place, ['attach', ...args], { columns: 100, rows: 30 })

/** Programs of these names where agents can write, which say in `trace` that somebody ran them. */
async function plantPrograms(
  { place }: RealScene,
  names: readonly string[],
): Promise<{ folder: string; trace: string }> {
  const folder = join(place.directory, 'node_modules', '.bin')
  const trace = join(place.root, 'trace')
  await mkdir(folder, { recursive: true })
  const text = `#!/bin/sh\necho "$0" >> '${trace}'\n`
  for (const name of names) await writeFile(join(folder, name), text, { mode: 0o755 })
  return { folder, trace }
}

async function leave(terminal: Emulator): Promise<void> {
  terminal.press('ctrl+c')
  await terminal.until('Do you want to modify the plan?')
  terminal.press('ctrl+c')
  await terminal.until('Leave it running, or stop it?')
}

promise(
  'O54',
  '`attach` is the screen on a run of this machine; who leaves it is asked whether the run goes on, and a terminal that is closed leaves it running',
)
promise('E30', 'A person attaches to a run, and leaves it running')
test('attach is the screen with its keys; Ctrl+C twice asks: it is left running, or stopped', async () => {
  const gate = Promise.withResolvers<void>()
  await using scene = await openRealScene([[held(gate.promise), held(never)], [held(never)]])
  const id = await detached(scene)
  await using one = attach(scene)
  await using two = attach(scene, id)
  await Promise.all([one.until('Working.'), two.until('Working.')])
  one.type('mind the gap')
  await one.until('› mind the gap')
  one.press('enter')
  await one.until('Tell the agent, or queue it?')
  one.press('enter')
  await two.untilInAll(/person.*\n?.*mind the gap/)
  await leave(one)
  one.press('enter')
  expect(await one.ended).toEqual({ exitCode: 0 })
  expect(one.all().join('\n')).toContain(`${id} continues. To see it again: codemachine attach`)
  // The other one stays, and is asked too; Esc stays on the screen.
  await leave(two)
  two.press('esc')
  await two.until('? keys')
  await leave(two)
  two.press({ text: '3' }, 'enter')
  expect(await two.ended).toEqual({ exitCode: 0 })
  const { events } = await scene.run('logs', '-f', '--json', id)
  expect(eventsOf(events, 'session-ended')).toMatchObject([{ outcome: { kind: 'interrupted', by: 'stop' } }])
})

promise('O54')
test('a terminal that is closed leaves what it is attached to running', async () => {
  const gate = Promise.withResolvers<void>()
  await using scene = await openRealScene([[held(gate.promise), ...round(claimDone)]])
  const id = await detached(scene)
  await using terminal = attach(scene)
  await terminal.until('Working.')
  terminal.hangUp()
  await terminal.ended
  gate.resolve()
  const { events } = await scene.run('logs', '-f', '--json', id)
  expect(eventsOf(events, 'session-ended')).toMatchObject([{ outcome: { kind: 'done' } }])
})

test('who is attached when the session ends sees how, and the screen closes', async () => {
  const gate = Promise.withResolvers<void>()
  await using scene = await openRealScene([[held(gate.promise), ...round(claimDone)]])
  await detached(scene)
  await using terminal = attach(scene)
  await terminal.until('Working.')
  gate.resolve()
  expect(await terminal.ended).toEqual({ exitCode: 0 })
  await terminal.untilInAll(/^proof +no gates are configured[\s\S]*^report +\S+report\.html$/m)
})

promise('O54')
test('from another directory the sessions of this machine are listed, and one is chosen', async () => {
  await using scene = await openRealScene([[held(never)]])
  const elsewhere = join(scene.place.root, 'elsewhere')
  await mkdir(elsewhere)
  const open = (...args: string[]) =>
    startInEmulator(scene.place, ['attach', ...args], { columns: 140, rows: 30, cwd: elsewhere })
  await using nothing = open()
  expect(await nothing.ended).toEqual({ exitCode: 2 })
  expect(nothing.all().join('')).toContain('nor anywhere else on this machine, so there is nothing to attach to.')
  const id = await detached(scene)
  await using terminal = open()
  await terminal.until('Which one? [1-1, Enter for none]')
  expect(terminal.all().join('\n')).toMatch(new RegExp(`1 {2}${id} {2}${scene.place.directory} +build X`))
  terminal.type('7\r')
  await terminal.until(/Which one\?[\s\S]*Which one\?/)
  terminal.type('1\r')
  await terminal.until('Working.')
  await using named = open(id)
  await named.until('Working.')
})

promise('O54')
test('what cannot be attached to is refused in a sentence: nothing, what has ended, what runs on another machine', async () => {
  await using scene = await openRealScene([round(claimDone)])
  const refused = async (...args: string[]) => {
    await using terminal = startInEmulator(scene.place, ['attach', ...args], { columns: 300 })
    const { exitCode } = await terminal.ended
    return [exitCode, terminal.all().join('\n').trim()]
  }
  expect(await scene.run('attach')).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining('attach needs a terminal'),
  })
  expect(await refused('-C', '.')).toEqual([2, expect.stringContaining('so there is nothing to attach to.')])
  expect(await refused('7')).toEqual([2, expect.stringContaining('No sessions in')])
  const id = await detached(scene)
  await scene.run('logs', '-f', id)
  expect(await refused(id)).toEqual([
    2,
    `codemachine: ${id} has ended: done, not verified. There is nothing to attach to. (CM0613)\n  Its result: codemachine report ${id}`,
  ])
  const lock = {
    pid: 4711,
    startTime: '1',
    host: 'another-host',
    bootId: 'another-boot',
    at: '2026-11-26T01:00:00Z',
    nonce: 'n',
  }
  writeFileSync(join(scene.records(), 'lock'), JSON.stringify(lock))
  expect(await refused()).toEqual([
    2,
    expect.stringContaining('The session runs on another-host (pid 4711), another machine or container'),
  ])
})

promise(
  'R55',
  'After `/detach` the round goes on, the shell has its terminal back as it was, and closing that ends nothing',
)
promise('B110', '`/detach` runs no program that agents could have put on `PATH`')
test('/detach gives the terminal back to the shell in the middle of a round, which goes on', async () => {
  const gate = Promise.withResolvers<void>()
  await using scene = await openRealScene([[held(gate.promise), ...round('echo one > one.txt')], round(claimDone)])
  const planted = await plantPrograms(scene, ['sed', 'cut', 'ps', 'sleep'])
  const env = { PATH: `${planted.folder}:${process.env.PATH}` }
  await using terminal = startInEmulator(scene.place, ['build X'], { columns: 100, rows: 24, env })
  await terminal.until('Working.')
  terminal.type('/detach\r')
  await terminal.stopped()
  expect(terminal.all().join('\n')).toMatch(
    /(\d{8}_1) continues without this terminal\. To see it again: codemachine attach/,
  )
  expect(await terminal.stty()).toBe(terminal.sttyAtStart())
  const [id = ''] = /\d{8}_1(?= goes on)/.exec(terminal.all().join('\n')) ?? []
  // Nothing was run that an agent could have put there.
  expect(existsSync(planted.trace)).toBe(false)
  terminal.hangUp()
  await using again = attach(scene)
  await again.until('Working.')
  gate.resolve()
  await again.untilInAll('── round 2')
  const { events } = await scene.run('logs', '-f', '--json', id)
  // The round was not broken off.
  expect(eventsOf(events, 'round-started').map(({ round }) => round)).toEqual([1, 2])
  expect(eventsOf(events, 'session-ended')).toMatchObject([{ outcome: { kind: 'done' } }])
  const printed = () => readFileSync(join(scene.records(), 'run.log'), 'utf8')
  const isPrinted = () => (/round 2[\s\S]*ended: done/.test(printed()) ? printed() : null)
  expect(await untilInFolder(scene.records(), 'the end in run.log', isPrinted)).not.toContain('\u001b')
})

const asRoot = isRoot ? test : test.skip
promise('R55')
describe(`/detach where no shell waits${unless(isRoot, 'only root can take a terminal from a session')}`, () => {
  asRoot('says so, and the run goes on when the terminal is closed', async () => {
    const gate = Promise.withResolvers<void>()
    await using scene = await openRealScene([[held(gate.promise), ...round(claimDone)]])
    const command = [
      'setsid',
      '--ctty',
      '--wait',
      process.execPath,
      ...[new URL('../../../../dist/bin.js', import.meta.url).pathname],
    ]
    await using terminal = startInEmulator(scene.place, ['build X'], { columns: 100, rows: 24, command })
    await terminal.until('Working.')
    terminal.type('/detach\r')
    await terminal.untilInAll('No shell is waiting for this terminal.')
    terminal.hangUp()
    gate.resolve()
    const { events } = await scene.run('logs', '-f', '--json')
    expect(eventsOf(events, 'session-ended')).toMatchObject([{ outcome: { kind: 'done' } }])
  })
})
