import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { reply, shell } from '../../../src/demo/model/reply.ts'
import { startCodemachine } from '../../support/codemachine.ts'
import { startInEmulator } from '../../support/emulator.ts'
import { killIfAlive } from '../../support/kill-if-alive.ts'
import { promise } from '../../support/promise.ts'
import { openRealScene, type RealScene } from '../../support/real-scene.ts'
import { claimDone, held, round, says } from '../../support/rounds.ts'
import { eventsOf, openScene } from '../../support/scene.ts'
import { clientOf, openPage } from './client.ts'

/** The process that serves the page of a scene, which outlives who has started it: it is ended with the test. */
function endsWithTest(scene: RealScene): void {
  onTestFinished(async () => {
    const path = join(scene.place.home, '.codemachine', 'web', 'lock')
    if (existsSync(path)) await killIfAlive(Number(/"pid":\s*(\d+)/.exec(readFileSync(path, 'utf8'))?.[1]))
  })
}

test('--web on a run has the page served by a process of its own, which a second run and /web find; web stop ends it', async () => {
  const gate = Promise.withResolvers<void>()
  await using scene = await openRealScene([[held(gate.promise), ...round(claimDone)], round(claimDone)])
  endsWithTest(scene)
  await using running = scene.start('--json', '--web', 'build X')
  await running.event('round-started')
  const said = await scene.run('web', '--json')
  const { link, address } = JSON.parse(said.stdout) as { link: string; address: string }
  const opened = await clientOf(address, '').post('enter', { token: link.split('#t=')[1], name: 'phone' })
  const page = clientOf(address, String(opened.body.key))
  const now = await page.follow('now')
  await now.until(({ data }) => (data.cards as { standing: string }[])[0]?.standing === 'running')
  now.leave()
  gate.resolve()
  const { exitCode, stderr } = await running.ended
  expect([exitCode, stderr]).toEqual([0, expect.stringContaining(`${address}#t=`)])
  // The run has ended, and the page is still there.
  expect((await page.get('me')).status).toBe(200)
  await using terminal = startInEmulator(scene.place, [], { columns: 120 })
  await terminal.until('Type a goal')
  terminal.type('/web\r')
  await terminal.untilInAll(`${address}#t=`)
  expect(await scene.run('web', 'stop')).toMatchObject({ exitCode: 0, stdout: 'The page is no longer served.\n' })
  await expect(fetch(address)).rejects.toThrow()
  expect((await scene.run('web', 'stop')).stdout).toBe('The page is not served.\n')
  expect(await scene.run('web', 'link')).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('not served') })
})

test('where the port of the settings is taken it is the next one, and said; with --port it is refused', async () => {
  await using scene = await openRealScene([])
  const taken = createServer().listen(0, '127.0.0.1')
  await once(taken, 'listening')
  onTestFinished(() => void taken.close())
  const { port } = taken.address() as AddressInfo
  const refused = await scene.run('web', '--port', String(port))
  expect(refused).toMatchObject({ exitCode: 2, stderr: expect.stringContaining(`Port ${port} of 127.0.0.1 is in use`) })
  for (const wrong of ['70000', '-1', 'http'])
    expect(await scene.run('web', `--port=${wrong}`)).toMatchObject({ exitCode: 2 })
  expect(await scene.run('web', '--host', '0.0.0.0')).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining('--cert and --key'),
  })
  // Without it the setting says which, and another one is found.
  const env = { CODEMACHINE_PORT: String(port) }
  await using serving = startCodemachine(scene.place, ['web'], { env })
  const said = Promise.withResolvers<string>()
  serving.process.stdout?.on('data', (text: string) => said.resolve(String(text)))
  expect(await said.promise).toContain(`Port ${port} is taken; it is `)
  const again = await scene.run('web', '--port', '0')
  expect(again.stdout).toMatch(/^The page is already served, on port \d+; --port 0 does not change that\.\n/)
})

promise('P8', 'An agent in the sandbox that reaches the page gets nothing from it, and finds nothing that opens it')
test('an agent in the sandbox that reaches the page gets nothing from it, and finds nothing that opens it', async () => {
  let address = ''
  const attack = () => reply(shell(`node attack.mjs ${address}; ${KEYS_IN} "$CODEMACHINE_TEST_WEB" | wc -l`))
  await using scene = await openRealScene([[attack, says('Tried.')], round(claimDone)])
  await writeFile(join(scene.place.directory, 'attack.mjs'), ATTACK)
  const page = await openPage(scene)
  address = page.address
  const folder = join(scene.place.home, '.codemachine', 'web')
  const env = { CODEMACHINE_TEST_WEB: folder }
  await using running = startCodemachine(scene.place, ['--json', '--network', 'look around'], { env })
  const { events } = await running.ended
  const [command] = eventsOf(events, 'item-completed').flatMap(({ item }) => (item.kind === 'command' ? [item] : []))
  // The page itself says nothing; all else is refused.
  expect(command?.output).toMatch(/^200 401 401 401 403 403 415\n0\n$/)
  // It has tried on the right page: who has the key gets in.
  expect((await page.get('me')).status).toBe(200)
})

const KEYS_IN = 'grep -rhoE "\\b[A-Za-z0-9_-]{43}\\b"'
const ATTACK = `
const [address] = process.argv.slice(2)
const json = { 'content-type': 'application/json', 'x-codemachine': '1' }
const asks = [
  ['', {}],
  ['api/now', {}],
  ['api/me', { headers: { authorization: 'Bearer 0123456789abcdef.' + 'A'.repeat(43) } }],
  ['api/start', { method: 'POST', headers: json, body: '{}' }],
  ['api/enter', { method: 'POST', headers: json, body: JSON.stringify({ token: 'A'.repeat(43), name: 'agent' }) }],
  ['api/now', { headers: { origin: 'http://127.0.0.1:5173' } }],
  ['api/enter', { method: 'POST', body: 'token=x' }],
]
const said = []
for (const [path, init] of asks) said.push((await fetch(address + path, init)).status)
console.log(said.join(' '))
`

promise('P11', 'A session that runs can be given other limits, from its next round on')
test('limits gives the session that runs more, or less, and queue move changes the order', async () => {
  const gate = Promise.withResolvers<void>()
  await using scene = await openScene([
    [held(gate.promise), ...round('true')],
    round('echo 1 > a.txt'),
    round('echo 2 > a.txt'),
  ])
  await using running = scene.start('--json', '--rounds', '1', 'build X')
  await running.event('round-started')
  expect(await scene.run('limits')).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('--max-time') })
  const said = await scene.run('limits', '--rounds', '3', '--max-time', '2h')
  expect([said.exitCode, said.stdout]).toEqual([
    0,
    expect.stringMatching(/^\d{8}_1 may take 3 rounds, 2h in total, from the next round on\.\n$/),
  ])
  expect(await scene.run('limits', '--max-cost', '3')).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining('has no prices'),
  })
  gate.resolve()
  const { events } = await running.ended
  expect(eventsOf(events, 'settings-taken')).toMatchObject([
    {
      changes: [
        { setting: 'rounds', from: '1', to: '3', place: 'as a person asked while it ran' },
        { setting: 'max_time', from: null, to: '2h' },
      ],
      limits: { rounds: 3, timeMs: 7_200_000 },
    },
  ])
  expect(eventsOf(events, 'session-ended')).toMatchObject([{ outcome: { kind: 'limit', limit: 'rounds' } }])
  expect(eventsOf(events, 'round-started')).toHaveLength(3)
  expect(await scene.run('limits', '--rounds', '9')).toMatchObject({ exitCode: 2 })

  for (const prompt of ['one', 'two', 'three']) await scene.run('queue', 'add', `do ${prompt}`)
  expect((await scene.run('queue', 'move', '3', '--before', '1')).stdout).toBe('000003 waits just before 000001.\n')
  expect((await scene.run('queue', 'move', '1')).stdout).toBe('000001 waits behind all others.\n')
  await scene.run('queue', 'add', 'do four')
  const { stdout } = await scene.run('queue', 'list')
  expect(stdout.split('\n').map(line => line.slice(0, 6))).toEqual(['000003', '000002', '000001', '000004', ''])
  expect(await scene.run('queue', 'move', '9')).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining('The queue has no prompt'),
  })
  expect(readdirSync(join(scene.records(), 'queue')).includes('order')).toBe(true)
})

test('web devices lists who can open the page, and web end takes that away while a stream is open', async () => {
  await using scene = await openRealScene([])
  const page = await openPage(scene)
  const stream = await page.follow('now')
  await stream.until(() => true)
  const devices = JSON.parse((await scene.run('web', 'devices', '--json')).stdout) as { id: string; name: string }[]
  expect(devices).toMatchObject([{ name: 'phone', right: 'steer' }])
  expect((await scene.run('web', 'devices')).stdout).toContain('phone')
  const [device] = devices
  expect(await scene.run('web', 'end', device?.id ?? '')).toMatchObject({ exitCode: 0 })
  expect((await page.get('me')).status).toBe(401)
  // Another process has ended it: the stream ends with its next beat.
  await stream.over
  expect(await scene.run('web', 'end', device?.id ?? '')).toMatchObject({ exitCode: 2 })
})
