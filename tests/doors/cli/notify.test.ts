import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect } from 'vitest'
import { claimDone, round } from '../../support/rounds.ts'
import { eventsOf, openScene, type Scene } from '../../support/scene.ts'
import { test } from '../../support/side-by-side.ts'

async function writeConfig({ place }: Scene, text: string): Promise<void> {
  const folder = join(place.home, '.config', 'codemachine')
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, 'config.toml'), text)
}

/** A program that writes what it reads to a file. */
async function writeSink({ place }: Scene): Promise<{ command: string; read(): Promise<Record<string, unknown>> }> {
  const file = join(place.home, 'told.json')
  // Of the system: codemachine takes no program from where an agent can write, and this checkout may lie there.
  const command = JSON.stringify(['/bin/sh', '-c', 'cat > "$0"', file])
  return { command, read: async () => JSON.parse(await readFile(file, 'utf8')) }
}

/** A port of loopback on which nothing listens any more. */
async function closedPort(): Promise<number> {
  await using server = createServer()
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return port
}

test('without a way to be notified, the command says how to set one', async () => {
  await using scene = await openScene([])
  const { exitCode, stderr } = await scene.run('notify')
  expect(exitCode).toBe(2)
  expect(stderr).toMatch(/^codemachine: The settings name no way to notify you; set notify\.command, /)
})

test('a sample goes through every way that is set, and what fails says so', async () => {
  await using scene = await openScene([])
  const bodies: string[] = []
  await using server = createServer((request, response) => {
    request.setEncoding('utf8').on('data', (text: string) => bodies.push(text))
    request.on('end', () => response.end())
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await writeConfig(scene, `[notify]\ncommand = ["no-such-notifier"]\nwebhook = "http://127.0.0.1:${port}/hook"\n`)
  const { exitCode, stdout } = await scene.run('notify')
  expect(exitCode).toBe(4)
  expect(stdout).toMatch(/^command: .*no-such-notifier does not exist.*\nwebhook: sent\n$/)
  expect(JSON.parse(bodies.join(''))).toMatchObject({ v: 1, event: 'test' })
})

test('when a session ends, the command is told how', async () => {
  await using scene = await openScene([round(claimDone)])
  const sink = await writeSink(scene)
  await writeConfig(scene, `[notify]\ncommand = ${sink.command}\n`)
  expect(await scene.run('--json', 'build X')).toMatchObject({ exitCode: 0, stderr: '' })
  expect(await sink.read()).toMatchObject({ event: 'ended', exitCode: 0, outcome: { kind: 'done' }, rounds: 1 })
})

test('a command that is not there, and a webhook to nowhere, cost nothing but a sentence each', async () => {
  await using scene = await openScene([round('touch a'), round(claimDone), round(claimDone)])
  const port = await closedPort()
  await writeConfig(
    scene,
    `[notify]\ncommand = ["no-such-notifier"]\nwebhook = "http://127.0.0.1:${port}/"\nevents = ["round-ended", "ended"]\n`,
  )
  const { exitCode, events, stderr } = await scene.run('--json', 'build X')
  expect(exitCode).toBe(0)
  const said = [...eventsOf(events, 'warning').map(({ message }) => message), stderr].join('\n')
  expect(said.match(/no-such-notifier does not exist/g)).toHaveLength(1)
  expect(said).toContain(`The webhook http://127.0.0.1:${port}/ could not be reached: ECONNREFUSED.`)
})
