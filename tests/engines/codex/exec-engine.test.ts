import { existsSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import type { EngineEvent, EngineSetup, PreparedRound, ThreadSpec } from '../../../src/core/engine.ts'
import { emptyState } from '../../../src/core/state/state.ts'
import { reply, roundsScript, type ScriptStep, shell } from '../../../src/demo/model/reply.ts'
import { OWN_TEMPLATES } from '../../../src/modes/registry.ts'
import { nothingSecret } from '../../../src/secrets/redactor.ts'
import { PricedThread } from '../../../src/session/play-round.ts'
import { SessionLog } from '../../../src/session/session-log.ts'
import { sampleEvents } from '../../doors/screen/samples.ts'
import { makePlace } from '../../support/place.ts'
import { processesOf, untilRuns } from '../../support/processes.ts'
import { promise } from '../../support/promise.ts'
import { says } from '../../support/rounds.ts'
import { startScriptedModel } from '../../support/scripted-model.ts'
import { writePeer } from '../../support/scripted-peer.ts'
import { TestClock } from '../../support/test-clock.ts'
import { engineNamed, play, setupIn, THREAD } from '../contract.ts'
import { endAfterEach } from './end-after-each.ts'
import { MINUTE } from './open-engine.ts'

const atEnd = endAfterEach()

/** With what a session is logged of which nothing is kept. */
const NOWHERE = {
  journal: { append: () => {}, sync: async () => {}, [Symbol.asyncDispose]: async () => {} },
  views: [],
  templates: OWN_TEMPLATES,
  redactor: nothingSecret,
}

/** Rounds of the real codex, whose config.toml ends with `config`. */
async function real(
  steps: readonly ScriptStep[],
  { config = '', env = {} }: { config?: string; env?: NodeJS.ProcessEnv } = {},
) {
  const model = atEnd.use(await startScriptedModel({ script: roundsScript([steps]) }))
  const place = atEnd.use(await makePlace(`${model.codexConfig('scripted')}\n${config}`))
  const engine = await engineNamed('exec').open(await setupIn(place, { env: { ...place.env, ...env } }))
  atEnd.defer(() => engine.close())
  return { model, place, prepare: (more: Partial<ThreadSpec> = {}) => engine.prepare({ ...THREAD, ...more }) }
}

/** A round of a peer that does this, and writes a file where it was to be `codex exec`. */
async function peer(changes: string, more: Partial<EngineSetup> = {}) {
  const place = atEnd.use(await makePlace(''))
  const begun = join(place.root, 'exec-has-begun')
  const path = await writePeer(
    place.root,
    `import { writeFileSync } from 'node:fs'
    const isExec = process.argv.includes('exec')
    if (isExec) writeFileSync(${JSON.stringify(begun)}, '')
    ${changes}`,
  )
  const logged: string[] = []
  const log = (message: string) => void logged.push(message)
  const engine = await engineNamed('exec').open(
    await setupIn(place, { binary: { path, version: '0.169.0' }, log, ...more }),
  )
  atEnd.defer(() => engine.close())
  return { place, path, engine, logged, hasBegun: () => existsSync(begun), ...play(engine.prepare(THREAD)) }
}

test('commands of exec do not see what the person has kept from them', async () => {
  const { prepare } = await real(
    [reply(shell('echo "<$KEPT_BACK> <$GIT_DIR> <$PLAIN>"', { login: false })), says('Done.')],
    { config: '[shell_environment_policy]\nexclude = ["KEPT_BACK"]\n', env: { KEPT_BACK: 'a', PLAIN: 'b' } },
  )
  const { outcome, events } = play(prepare())
  expect(await outcome).toEqual({ class: 'worked', message: null })
  expect(JSON.stringify(events)).toContain('<> <> <b>')
})

promise('M13')
test('a turn of exec is charged by the model that is named, and where the cost is limited ended at once if none is', async () => {
  const limited = (prepared: PreparedRound) => {
    const state = {
      ...emptyState('20261121_1'),
      prices: [{ model: 'scripted', in: 1, cached: 1, out: 1 }],
      limits: { rounds: null, timeMs: null, tokens: null, cost: 4 },
    }
    return new PricedThread(prepared, new SessionLog(state, { ...NOWHERE, clock: systemClock }))
  }
  const { model, prepare } = await real([says('Done.'), says('Done.')])
  const events: EngineEvent[] = []
  for (const model of ['scripted', null]) {
    const prepared = prepare({ model })
    const priced = limited(prepared)
    const onEvent = (event: EngineEvent) => void events.push(priced.note(event))
    const outcome = await prepared.run({ round: 1, input: 'Go on.', onEvent, onLive() {}, onRecord() {} })
    if (model !== null) expect(priced.outcomeOf(outcome)).toEqual({ class: 'worked', message: null })
    else
      expect(priced.outcomeOf(outcome)).toEqual({
        class: 'config',
        message: 'Codex does not report its model, so --max-cost cannot be enforced; name one with --model.',
      })
  }
  expect(events.filter(({ type }) => type === 'usage')).toMatchObject([{ model: 'scripted' }])
  expect(model.requests.length).toBeLessThanOrEqual(2)
  // Nor is what an engine tells that says nothing of the turn's beginning.
  const untold = limited(prepare({ model: null }))
  untold.note(sampleEvents.usage)
  expect(untold.outcomeOf({ class: 'worked', message: null }).class).toBe('config')
})

test('the model is asked for an answer in a shape', async () => {
  const { model, prepare } = await real([says('{}')])
  const schema = { type: 'object', properties: {}, required: [], additionalProperties: false }
  const run = { round: 1, input: 'Go on.', onEvent() {}, onLive() {}, onRecord() {}, outputSchema: schema }
  expect(await prepare().run(run)).toEqual({ class: 'worked', message: null })
  expect(model.requests[0]?.body.text).toMatchObject({ format: { type: 'json_schema', strict: true, schema } })
})

test('a thread of exec does not see what it is not to read', async () => {
  const { place, prepare } = await real([reply(shell('cat .env; cat README.md', { login: false })), says('Done.')])
  for (const file of ['.env', 'README.md']) await writeFile(join(place.directory, file), `of ${file}\n`)
  const config = await readFile(join(place.codexHome, 'config.toml'), 'utf8')
  const { outcome, events } = play(prepare({ unreadable: [join(place.directory, '.env')] }))
  expect(await outcome).toEqual({ class: 'worked', message: null })
  expect(JSON.stringify(events)).toContain('of README.md')
  expect(JSON.stringify(events)).not.toContain('of .env')
  // Codex writes there what it has come to trust.
  expect(await readFile(join(place.codexHome, 'config.toml'), 'utf8')).toBe(config)
})

test('where codex ends when it is asked what commands are not to see, nothing is run', async () => {
  const { outcome, hasBegun } = await peer("on['config/read'] = () => process.exit(3)")
  expect(await outcome).toEqual({ class: 'crashed', message: 'codex ended with exit code 3.' })
  expect(hasBegun()).toBe(false)
})

test('what is closed while codex is asked leaves no process', async () => {
  const { engine, place, path, outcome } = await peer("on['config/read'] = () => {}; on.end = () => {}")
  await untilRuns(place, `${process.execPath} ${path}`)
  await engine.close()
  expect(processesOf(place)).toEqual([])
  expect((await outcome).class).toBe('interrupted')
})

test('exec that says nothing any more is silent, and nothing of it is left', async () => {
  const clock = new TestClock()
  const { engine, place, outcome, hasBegun } = await peer(
    'if (isExec) await new Promise(() => setInterval(() => {}, 1000))',
    { clock },
  )
  await expect.poll(hasBegun, { timeout: 30_000 }).toBe(true)
  await clock.advance(6 * MINUTE + 5_000)
  expect(await outcome).toEqual({ class: 'silent', message: 'Nothing came from codex for 6 minutes.' })
  await engine.settle()
  expect(processesOf(place)).toEqual([])
})

promise('W4')
test('exec that waits for a server which is not there is ended as far as it may wait, once', async () => {
  const clock = new TestClock()
  const { engine, place, outcome, events, logged } = await peer(
    `if (isExec) {
      send({ type: 'thread.started', thread_id: 't' })
      send({ type: 'turn.started' })
      for (const _ of [1, 2]) send({ type: 'error', message: 'Reconnecting... waiting for network (Connection failed)' })
      raw('Both were said.\\n')
      await new Promise(() => setInterval(() => {}, 1000))
    }`,
    { clock, networkMs: 2 * MINUTE },
  )
  await expect.poll(() => logged.join(), { timeout: 30_000 }).toContain('Both were said.')
  expect(events.filter(({ type }) => type === 'error')).toHaveLength(1)
  expect(clock.waits().filter(left => left > 5_000 && left <= 15_000)).toHaveLength(1)
  await clock.advance(16_000)
  expect(await outcome).toEqual({
    class: 'network',
    message: 'Reconnecting... waiting for network (Connection failed)',
  })
  await engine.settle()
  expect(processesOf(place)).toEqual([])
})

test('exec that reaches its server again in time is not ended', async () => {
  const clock = new TestClock()
  const { prepared, outcome, events } = await peer(
    `if (isExec) {
      send({ type: 'thread.started', thread_id: 't' })
      send({ type: 'turn.started' })
      send({ type: 'error', message: 'Reconnecting... waiting for network (Connection failed)' })
      send({ type: 'item.completed', item: { id: 'm', type: 'agent_message', text: 'Back.' } })
      await new Promise(() => setInterval(() => {}, 1000))
    }`,
    { clock, networkMs: 2 * MINUTE },
  )
  await expect.poll(() => events.map(({ type }) => type), { timeout: 30_000 }).toContain('item-completed')
  await clock.advance(16_000)
  await prepared.interrupt()
  expect((await outcome).class).toBe('interrupted')
})

test('a line of exec that is far too long is passed over, and logged', async () => {
  const { outcome, logged } = await peer(`if (isExec) {
    send({ type: 'thread.started', thread_id: 't' })
    send({ type: 'turn.started' })
    raw('x'.repeat(17 * 1024 * 1024) + '\\n')
    send({ type: 'turn.completed' })
    await new Promise(resolve => process.stdout.write('', resolve))
    process.exit(0)
  }`)
  expect(await outcome).toEqual({ class: 'worked', message: null })
  expect(logged).toContain('codex wrote a line that is not a message: (a line of 17825792 bytes)')
})

promise('B95')
test('codex is handed the arguments of a thread; with one that it may not have, nothing is run', async () => {
  const { model, prepare } = await real([says('Done.')], { config: '' })
  const refused = play(prepare({ args: ['--color', 'never', '--add-dir', '/'] }))
  expect(await refused.outcome).toEqual({
    class: 'config',
    message: 'The argument "--add-dir" cannot be passed to codex exec; remove it.',
  })
  expect(model.requests).toEqual([])
  const args = ['--color', 'never', '--skip-git-repo-check', '-c', 'model_reasoning_effort="high"']
  expect(await play(prepare({ args, effort: 'low' })).outcome).toEqual({ class: 'worked', message: null })
  expect(model.requests[0]?.body.reasoning).toMatchObject({ effort: 'high' })
})
