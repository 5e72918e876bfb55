import { chmod, mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { writableByAgents } from '../../../src/platform/files.ts'
import { isAlive } from '../../../src/platform/processes.ts'
import { promise } from '../../support/promise.ts'
import { openForTest } from './opened.ts'
import { ended, needsPerson, roundEnded, stuck, waiting } from './samples.ts'

const node = (script: string, ...args: string[]) => [process.execPath, '-e', script, ...args]

/** Writes its stdin into a file of its own in the directory that it was started in. */
const NOTES_STDIN = `
  let text = ''
  process.stdin.on('data', part => (text += part)).on('end', () => {
    const fs = require('fs')
    fs.writeFileSync('.' + process.pid, text)
    fs.renameSync('.' + process.pid, process.argv[1] ?? JSON.parse(text).event + '.json')
  })`

const until = <T>(read: () => Promise<T>) => expect.poll(read, { timeout: 20_000, interval: 10 })
const jsonFiles = async (home: string) => (await readdir(home)).filter(name => name.endsWith('.json')).sort()

test('the command reads the event as JSON from its stdin, in the home directory, with its arguments as they are', async () => {
  await using opened = await openForTest(() => ({ command: node(NOTES_STDIN, 'a "b" $HOME;\n*') }))
  opened.tell(ended)
  const name = 'a "b" $HOME;\n*'
  await until(() => readdir(opened.home)).toEqual([name])
  expect(JSON.parse(await readFile(join(opened.home, name), 'utf8'))).toMatchObject({
    v: 1,
    event: 'ended',
    session: '20261120_1',
    exitCode: 0,
  })
  expect(opened.problems).toEqual([])
})

test('only what the settings ask for is told', async () => {
  await using opened = await openForTest(() => ({ command: node(NOTES_STDIN), events: ['needs-person', 'stuck'] }))
  for (const event of [ended, waiting(90), roundEnded, needsPerson, stuck]) opened.tell(event)
  await opened.notifier.close()
  expect(await jsonFiles(opened.home)).toEqual(['needs-person.json', 'stuck.json'])
})

test('whoever wants to know of the end is told of one that needs a person too', async () => {
  await using opened = await openForTest(() => ({ command: node(NOTES_STDIN), events: ['ended'] }))
  opened.tell(needsPerson)
  await opened.notifier.close()
  expect(await jsonFiles(opened.home)).toEqual(['needs-person.json'])
})

test('nothing is told after it was closed', async () => {
  await using opened = await openForTest(() => ({ command: node(NOTES_STDIN) }))
  await opened.notifier.close()
  opened.tell(ended)
  await opened.notifier.close()
  expect(await readdir(opened.home)).toEqual([])
  expect(opened.problems).toEqual([])
})

test('a command that fails is told once, however often it fails', async () => {
  await using opened = await openForTest(() => ({ command: node('process.exit(7)') }))
  opened.tell(ended)
  opened.tell(ended)
  await opened.notifier.close()
  expect(opened.problems).toEqual([`The notification command ${process.execPath} ended with exit code 7.`])
})

test.each([
  ['no-such-notify', 'does not exist; correct notify.command in the settings.'],
  ['/no-such-notify', 'does not exist, or is not executable; correct notify.command in the settings.'],
])('a command that is not there is told by name: %s', async (name, what) => {
  await using opened = await openForTest(() => ({ command: [name] }))
  opened.tell(ended)
  expect(await opened.saidProblems(1)).toEqual([`The notification command ${name} ${what}`])
})

test('one that cannot be started is told with the reason', async () => {
  await using opened = await openForTest(home => ({ command: [join(home, 'notify')] }))
  await writeFile(join(opened.home, 'notify'), '#!/no/such/shell\n', { mode: 0o755 })
  opened.tell(ended)
  expect(await opened.saidProblems(1)).toEqual([
    `The notification command ${opened.home}/notify could not be started (ENOENT).`,
  ])
})

promise('B5', 'A command of notifications that an agent can write is not run')
test('a command that an agent can write is not run, by path or by name; nor are programs that it starts', async () => {
  await using place = await openForTest(() => ({}))
  const work = join(place.home, 'work')
  await mkdir(work)
  for (const name of ['notify', 'jq']) await writeFile(join(work, name), '#!/bin/sh\ntouch "$HOME/ran.json"\n')
  for (const name of ['notify', 'jq']) await chmod(join(work, name), 0o755)
  const more = {
    env: { PATH: `${work}:/usr/bin:/bin`, HOME: place.home },
    home: place.home,
    where: { ...writableByAgents(work, {}, []), temporary: [] },
  }
  for (const program of ['notify', join(work, 'notify')]) {
    await using opened = await openForTest(() => ({ command: [program] }), more)
    opened.tell(ended)
    expect(await opened.saidProblems(1)).toEqual([
      `codemachine does not run the notification command ${program}, because agents can change it. Move it out of their reach.`,
    ])
  }
  await using opened = await openForTest(() => ({ command: ['sh', '-c', 'notify; jq; echo "$PATH" >path.json'] }), more)
  opened.tell(ended)
  await opened.notifier.close()
  expect(await jsonFiles(place.home)).toEqual(['path.json'])
  expect(await readFile(join(place.home, 'path.json'), 'utf8')).toBe('/usr/bin:/bin\n')
})

const HANGS = `
  const { spawn } = require('child_process')
  const child = spawn(process.execPath, ['-e', 'setTimeout(() => {}, 60_000)'], { stdio: 'ignore' })
  process.on('SIGTERM', () => {})
  require('fs').writeFileSync('.' + process.pid, process.pid + ' ' + child.pid)
  require('fs').renameSync('.' + process.pid, 'pids')
  setTimeout(() => {}, 60_000)`

const pidsIn = async (home: string) =>
  (await readFile(join(home, 'pids'), 'utf8').catch(() => '')).split(' ').map(Number).filter(Boolean)
const livingIn = async (home: string) => {
  const pids = await pidsIn(home)
  const alive = await Promise.all(pids.map(pid => isAlive(pid, process.platform)))
  return pids.filter((_pid, at) => alive[at])
}

test('one that hangs is ended after half a minute, with what it started', async () => {
  await using opened = await openForTest(() => ({ command: node(HANGS) }))
  opened.tell(ended)
  await until(async () => (await livingIn(opened.home)).length).toBe(2)
  await opened.clock.over(30_000)
  expect(await opened.saidProblems(1)).toEqual([
    `The notification command ${process.execPath} did not end within 30 s, and was ended.`,
  ])
  await until(() => livingIn(opened.home)).toEqual([])
})

test('at the end of a run one that hangs is given five seconds, and nothing of it is left', async () => {
  await using opened = await openForTest(() => ({ command: node(HANGS) }))
  opened.tell(ended)
  await until(async () => (await livingIn(opened.home)).length).toBe(2)
  const closed = opened.notifier.close()
  await opened.clock.over(5000)
  await closed
  expect(opened.problems).toEqual([
    'The command for notifications did not finish in time, so the last notification may be missing.',
  ])
  await until(() => livingIn(opened.home)).toEqual([])
})

test('one that ends in time is waited for at the end of a run', async () => {
  await using opened = await openForTest(() => ({ command: node(NOTES_STDIN) }))
  opened.tell(ended)
  expect(await readdir(opened.home)).toEqual([])
  await opened.notifier.close()
  expect(await jsonFiles(opened.home)).toEqual(['ended.json'])
  expect(opened.problems).toEqual([])
})

test('more than eight at a time are dropped, which is told once', async () => {
  await using opened = await openForTest(() => ({ command: node(HANGS.replaceAll("'pids'", "'pids-' + process.pid")) }))
  const started = async () => (await readdir(opened.home)).filter(name => name.startsWith('pids-')).length
  for (let n = 0; n < 8; n++) opened.tell(ended)
  await until(started).toBe(8)
  expect(opened.problems).toEqual([])
  opened.tell(ended)
  expect(await opened.saidProblems(1)).toEqual([
    'The command is too slow for the notifications, so some were not sent.',
  ])
  opened.tell(ended)
  const closed = opened.notifier.close()
  await opened.clock.over(5000)
  await closed
  expect(await started()).toBe(8)
  expect(opened.problems.length).toBe(2)
})

test('one that does not read its stdin, or closes it, is no problem', async () => {
  await using opened = await openForTest(() => ({ command: node('require("fs").closeSync(0); process.exit(0)') }))
  for (let n = 0; n < 4; n++) opened.tell(ended)
  await opened.notifier.close()
  expect(opened.problems).toEqual([])
})
