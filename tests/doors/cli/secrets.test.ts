import { lstatSync, readdirSync, readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import { applyPatch, message, reply, shell } from '../../../src/demo/model/reply.ts'
import { BIN, codemachine, startCodemachine } from '../../support/codemachine.ts'
import { promise } from '../../support/promise.ts'
import { openRealScene, type RealScene } from '../../support/real-scene.ts'
import { claimDone, held, round } from '../../support/rounds.ts'
import { eventsOf } from '../../support/scene.ts'
import { test } from '../../support/side-by-side.ts'

const TOKEN = 'tk_4711/with"quotes"+and=more'
const LOGIN = 'sk-proj-of-the-login-0815'
const RENEWED = 'sk-proj-after-renewal-0816'
const env = { MY_API_TOKEN: TOKEN }
/** As they stand in a text, and in a line of JSON. */
const secrets = [TOKEN, JSON.stringify(TOKEN).slice(1, -1), LOGIN, RENEWED]

const login = (key: string) => JSON.stringify({ OPENAI_API_KEY: key, tokens: null })
const patch = `*** Begin Patch\n*** Add File: .env\n+MY_API_TOKEN='${TOKEN}'\n*** End Patch`

/** All files below a folder, without what codemachine's private git keeps of the work tree. */
function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter(name => !/(^|\/)git\//.test(name))
    .map(name => join(folder, name))
}

/** Paths below the records, and those of `extra`, that hold one of the secrets. */
function leaksIn(scene: RealScene, texts: Record<string, string>): string[] {
  const files = filesBelow(scene.records()).filter(path => lstatSync(path).isFile())
  const all = [...files.map(path => [path, readFileSync(path, 'utf8')] as const), ...Object.entries(texts)]
  const leaks = all.filter(([, text]) => secrets.some(secret => text.includes(secret))).map(([name]) => name)
  return leaks.map(name => name.replace(scene.records(), ''))
}

function telling() {
  const gate = Promise.withResolvers<void>()
  const rounds = [
    [
      held(gate.promise),
      reply(shell('printenv MY_API_TOKEN; cat $CODEX_HOME/auth.json')),
      reply(applyPatch(patch)),
      reply(message(`The token is ${TOKEN}, that of the login ${LOGIN}.`), shell(`echo '${RENEWED}'`)),
      ...round(claimDone),
    ],
    round(claimDone),
    round(claimDone),
    round(claimDone),
  ]
  return { gate, rounds }
}

promise('B11', 'Secrets reach neither the records nor what is printed')
promise('E18', 'Secrets stand in no record and in nothing that is printed')
test('secrets of the environment and of the login reach neither the records nor what is printed', async () => {
  const { gate, rounds } = telling()
  await using scene = await openRealScene(rounds)
  const { place } = scene
  const login1 = join(place.codexHome, 'auth.json')
  await writeFile(login1, login(LOGIN))
  await codemachine(place, ['queue', 'add', `Then use ${TOKEN} again.`], { env })
  await using running = startCodemachine(place, ['--json', '--rounds', '4', `Use ${TOKEN} and ${LOGIN}.`], { env })
  await running.event('item-completed', ({ item }) => item.kind === 'agent-message')
  // Codex renews its tokens while it runs.
  await writeFile(login1, login(RENEWED))
  const steered = await codemachine(place, ['steer', `It is ${TOKEN}, I say.`], { env })
  expect(steered.exitCode).toBe(0)
  gate.resolve()
  const { stdout, stderr, events, exitCode } = await running.ended
  expect(exitCode).toBe(0)

  // The model has seen them, so they could have been kept.
  const seen = JSON.stringify(scene.model.requests.map(request => request.body))
  for (const secret of [TOKEN, RENEWED]) expect(seen).toContain(JSON.stringify(secret).slice(1, -1))
  expect(readFileSync(join(place.directory, '.env'), 'utf8')).toContain(TOKEN)
  const logs = await codemachine(place, ['logs', '1'], { env })
  expect(logs.stdout).toContain('[secret MY_API_TOKEN]')
  expect(leaksIn(scene, { stdout, stderr, logs: logs.stdout })).toEqual([
    expect.stringMatching(/sessions\/\d+_1\/last-good\/MAIN\.md$/),
    expect.stringMatching(/sessions\/\d+_2\/last-good\/MAIN\.md$/),
  ])

  const [created, next] = eventsOf(events, 'session-created')
  expect(created?.goal).toBe('Use [secret MY_API_TOKEN] and [secret OPENAI_API_KEY].')
  expect(next?.goal).toBe('Then use [secret MY_API_TOKEN] again.')
  expect(eventsOf(events, 'steered')).toMatchObject([{ text: 'It is [secret MY_API_TOKEN], I say.', delivered: true }])
  const said = JSON.stringify(eventsOf(events, 'item-completed'))
  expect(said).toContain('The token is [secret MY_API_TOKEN], that of the login [secret OPENAI_API_KEY].')
  expect(said).toContain("MY_API_TOKEN='[secret MY_API_TOKEN]'")
  expect(scene.recorded('rounds/001.ndjson')).toContain('[secret OPENAI_API_KEY]')
  for (const line of scene.recorded('rounds/001.ndjson').trimEnd().split('\n')) JSON.parse(line)
  // A person's own words stay as they are where the agent reads them.
  expect(scene.memory('MAIN.md')).toContain(TOKEN)
})

test('a person who watches the plain lines does not see them either', async () => {
  const { gate, rounds } = telling()
  gate.resolve()
  await using scene = await openRealScene(rounds)
  const both = JSON.stringify({ OPENAI_API_KEY: LOGIN, renewed_key: RENEWED })
  await writeFile(join(scene.place.codexHome, 'auth.json'), both)
  const { stdout, stderr } = await codemachine(scene.place, ['--rounds', '2', `Use ${TOKEN}.`], { env })
  expect(stdout).toContain('[secret MY_API_TOKEN]')
  expect(leaksIn(scene, { stdout, stderr })).toEqual([expect.stringMatching(/last-good\/MAIN\.md$/)])
})

test('what is said of codemachine itself does not hold them either', async () => {
  const token = 'tk-4711-0123456789'
  const debug = { env: { MY_API_TOKEN: token, CODEMACHINE_LOGGING_LEVEL: 'debug' } }
  // The round must not end before what it leaves has got away from it.
  const away = 'until pgrep -f "^sh -c [s]leep 307" >/dev/null; do sleep 0.05; done'
  const left = round(`setsid sh -c 'sleep 307; : ${token}' >/dev/null 2>&1 </dev/null & ${away}`, claimDone)
  await using scene = await openRealScene([left, round(claimDone)])
  const args = ['--json', '--no-keep-awake', '--sandbox', 'danger-full-access', '--rounds', '2', 'Do this.']
  const { exitCode, stderr } = await codemachine(scene.place, args, debug)
  expect(exitCode).toBe(0)
  expect(stderr).toMatch(/^\[debug\] Ended what a round left running: sh -c sleep 307; : \[secret MY_API_TOKEN\]/m)
  expect(stderr).not.toContain(token)
})

test('nor does a sentence about a mistake', async () => {
  const token = 'tk-4711-0123456789'
  await using scene = await openRealScene([])
  const env = { MY_API_TOKEN: token }
  const { exitCode, stderr } = await codemachine(scene.place, ['--max-time', token, 'Do this.'], { env })
  expect(exitCode).toBe(2)
  expect(stderr).toMatch(/^codemachine: --max-time is "\[secret MY_API_TOKEN\]"; use /)
  expect(stderr).not.toContain(token)
})

test('whatever holds a prompt is for this user alone, though the umask would open everything', async () => {
  const { gate, rounds } = telling()
  await using scene = await openRealScene(rounds)
  const { place } = scene
  const bin = join(place.root, 'open-to-all.mjs')
  await writeFile(bin, `process.umask(0)\nawait import(${JSON.stringify(BIN)})\n`)
  await codemachine(place, ['queue', 'add', 'And then that.'], { bin })
  await codemachine(place, ['queue', 'add', 'And that at last.'], { bin })
  await using running = startCodemachine(place, ['--json', '--rounds', '2', 'Do this.'], { bin })
  await running.event('item-completed', ({ item }) => item.kind === 'agent-message')
  const beforeEnd = modesIn(scene)
  await codemachine(place, ['steer', 'Mind the gap.'], { bin })
  gate.resolve()
  await running.ended
  const all = { ...beforeEnd, ...modesIn(scene) }
  const kinds = Object.keys(all).map(path => path.replace(/\d{8}_\d/, 'id'))
  expect(kinds).toEqual(
    expect.arrayContaining([
      '/queue/000001.json',
      '/lock',
      '/sessions/id/journal.ndjson',
      '/sessions/id/rounds/001.ndjson',
      '/sessions/id/last-good/MAIN.md',
    ]),
  )
  const open = Object.entries(all).filter(([, mode]) => mode !== 'd700' && mode !== 'f600')
  expect(open).toEqual([])
  const memory = join(place.directory, '.codemachine')
  const ours = [memory, ...filesBelow(memory)].map(path => [path, modeOf(path)])
  expect(ours.length).toBeGreaterThan(8)
  expect(ours.filter(([, mode]) => mode !== 'd700' && mode !== 'f600')).toEqual([])
})

/** By path in the records, `d700` of a folder and `f600` of a file; the records' own folder and those above it too. A link has no mode of its own. */
function modesIn(scene: RealScene): Record<string, string> {
  const records = scene.records()
  const paths = [
    join(records, '..', '..'),
    join(records, '..'),
    records,
    ...filesBelow(records).filter(each => !isLink(each)),
  ]
  return Object.fromEntries(paths.map(path => [path.replace(records, ''), modeOf(path)]))
}

function isLink(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true
}

/** `d700` of a folder, `f600` of a file; what has just gone was no more open. */
function modeOf(path: string): string {
  const stat = lstatSync(path, { throwIfNoEntry: false })
  return stat === undefined ? 'f600' : `${stat.isDirectory() ? 'd' : 'f'}${(stat.mode & 0o777).toString(8)}`
}
