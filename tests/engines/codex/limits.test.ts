import { existsSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Clock } from '../../../src/base/clock.ts'
import { message, reply, roundsScript, type ScriptStep } from '../../../src/demo/model/reply.ts'
import { makePlace } from '../../support/place.ts'
import { chatGptLogin, startScriptedModel, type UsageWindows, usageLimitReached } from '../../support/scripted-model.ts'
import { writePeer } from '../../support/scripted-peer.ts'
import { TestClock } from '../../support/test-clock.ts'
import { untilInFolder } from '../../support/until-in-folder.ts'
import { endAfterEach } from './end-after-each.ts'
import { openEngine, THREAD } from './open-engine.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'codemachine-limits-'))
})
afterAll(() => rm(folder, { recursive: true }))

const atEnd = endAfterEach()

async function peer(changes: string, more: { requestMs?: number; clock?: Clock } = {}) {
  const path = await writePeer(folder, changes)
  const opened = await openEngine({ path, directory: folder, endMs: 500, ...more })
  atEnd.defer(() => opened.engine.close())
  return opened
}

/** A peer that says nothing of the limits; `asked` resolves once it was asked for them. */
async function silentPeer(requestMs: number) {
  const clock = new TestClock()
  const file = join(folder, `asked-within-${requestMs}`)
  const opened = await peer(
    `const { writeFileSync } = await import('node:fs')
     on['account/rateLimits/read'] = () => writeFileSync(${JSON.stringify(file)}, '')`,
    { requestMs, clock },
  )
  const asked = () => untilInFolder(folder, file, () => existsSync(file) || null)
  return { ...opened, clock, asked }
}

/** The real codex, logged in with ChatGPT where the account is given. */
async function realCodex(account: UsageWindows | null, step: ScriptStep = reply(message('Hello.'))) {
  const model = atEnd.use(await startScriptedModel({ script: roundsScript([[step]]), account: () => account }))
  const place = atEnd.use(await makePlace(model.codexConfig('scripted')))
  if (account) await writeFile(join(place.codexHome, 'auth.json'), chatGptLogin(Date.now()), { mode: 0o600 })
  const opened = await openEngine({ directory: place.directory, env: place.env })
  atEnd.defer(() => opened.engine.close())
  return opened
}

const seconds = (fromNow: number) => Math.floor(Date.now() / 1000) + fromNow
const used = { usedPercent: 42, windowMinutes: 300, resetsAt: seconds(3600) }
const usedOfWeek = { usedPercent: 7, windowMinutes: 10_080, resetsAt: seconds(86_400) }

describe('the real codex', () => {
  test('says before the first round how much of the account is used, and the round runs after it', async () => {
    const { engine, play } = await realCodex({ primary: used, secondary: usedOfWeek })
    const prepared = engine.prepare(THREAD)
    expect(await prepared.limits()).toEqual({
      primary: { ...used, resetsAt: used.resetsAt * 1000 },
      secondary: { ...usedOfWeek, resetsAt: usedOfWeek.resetsAt * 1000 },
    })
    expect(await play(prepared).outcome).toEqual({ class: 'worked', message: null })
  })

  test('that nobody is logged in to does not say, and the round runs all the same', async () => {
    const { engine, play } = await realCodex(null)
    const prepared = engine.prepare(THREAD)
    expect(await prepared.limits()).toBeNull()
    expect(await play(prepared).outcome).toEqual({ class: 'worked', message: null })
  })

  test('that meets a usage limit reports the window, and when it is renewed, before the round ends', async () => {
    const primary = { ...used, usedPercent: 100 }
    const { play } = await realCodex(null, usageLimitReached(used.resetsAt, { primary }))
    const round = play()
    expect(await round.outcome).toMatchObject({ class: 'window' })
    const limits = round.events.filter(({ type }) => type === 'limits')
    expect(limits.at(-1)).toMatchObject({ primary: { usedPercent: 100, resetsAt: used.resetsAt * 1000 } })
  })

  test('that meets a usage limit is taken at its words, whatever window it reports', async () => {
    const at = seconds(2 * 3600)
    const elsewhen = { primary: { ...used, usedPercent: 100, resetsAt: seconds(9 * 3600) } }
    for (const fault of [usageLimitReached(at), usageLimitReached(at, elsewhen)]) {
      const { play } = await realCodex(null, fault)
      const { class: kind, retryAt = 0, message: words } = await play().outcome
      expect([kind, words]).toEqual(['window', expect.stringMatching(/try again at .*[AP]M/)])
      expect(Math.abs(retryAt - at * 1000)).toBeLessThanOrEqual(60_000)
    }
  })
})

const answer = (result: string) => `on['account/rateLimits/read'] = id => send({ id, result: ${result} })`
const limitsOf = async (changes: string) => await (await peer(changes)).engine.prepare(THREAD).limits()

test('of several limits codex’s own is meant', async () => {
  const limits = await limitsOf(
    answer(`{
      rateLimits: { limitId: 'other', primary: { usedPercent: 1 } },
      rateLimitsByLimitId: {
        other: { limitId: 'other', primary: { usedPercent: 1 } },
        codex: { limitId: 'codex', primary: { usedPercent: 55, windowDurationMins: 300, resetsAt: 1795208095 }, secondary: null },
      },
    }`),
  )
  expect(limits).toEqual({
    primary: { usedPercent: 55, windowMinutes: 300, resetsAt: 1_795_208_095_000 },
    secondary: null,
  })
})

test('an older codex, which has one limit, is understood', async () => {
  expect(await limitsOf(answer(`{ rateLimits: { primary: null, secondary: { usedPercent: 3.5 } } }`))).toEqual({
    primary: null,
    secondary: { usedPercent: 3.5, windowMinutes: null, resetsAt: null },
  })
})

test.each([
  ['null', answer('null')],
  ['nothing in it', answer('{}')],
  ['rubbish in it', answer(`{ rateLimits: { primary: { usedPercent: 'much' }, secondary: [] } }`)],
  ['a refusal', `on['account/rateLimits/read'] = id => send({ id, error: { code: -32600, message: 'no' } })`],
  ['an error', `on['account/rateLimits/read'] = id => send({ id, error: { code: -32603, message: 'no' } })`],
  ['the end of codex', `on['account/rateLimits/read'] = () => process.exit(1)`],
  ['a thread that cannot be', `on['thread/start'] = id => send({ id, error: { code: -32600, message: 'no' } })`],
])('an answer with %s says nothing, and is no failure', async (_what, changes) => {
  expect(await limitsOf(changes)).toBeNull()
})

test('an answer that never comes is waited for no longer than a request may take, and the round runs', async () => {
  const { engine, play, logged, clock, asked } = await silentPeer(8_000)
  const prepared = engine.prepare(THREAD)
  const limits = prepared.limits()
  await asked()
  await clock.advance(8_000)
  expect(await limits).toBeNull()
  expect(logged).toEqual([expect.stringContaining('did not answer account/rateLimits/read within 8 s')])
  expect(await play(prepared).outcome).toMatchObject({ class: 'worked' })
})

test('an answer that never comes is waited for ten seconds, however long a request may take', async () => {
  const { engine, clock, asked } = await silentPeer(60_000)
  const limits = engine.prepare(THREAD).limits()
  await asked()
  await clock.advance(10_000)
  expect(await limits).toBeNull()
})

test('the login is asked about once, and again after a round that failed for it', async () => {
  const count = join(folder, 'rounds')
  const { engine, play } = await peer(`
    const { appendFileSync, readFileSync } = await import('node:fs')
    const file = ${JSON.stringify(count)}
    appendFileSync(file, '.')
    const round = readFileSync(file, 'utf8').length
    let asked = false
    on['account/read'] = id => { asked = true; send({ id, result: {} }) }
    on['turn/start'] = id => {
      send({ id, result: {} }); started(); message(String(asked))
      if (round === 2) completed('failed', { message: 'x', codexErrorInfo: 'unauthorized' })
      else completed()
    }`)
  const asked: unknown[] = []
  for (let n = 0; n < 4; n++) {
    const round = play(engine.prepare(THREAD))
    const event = await round.event('item-completed')
    asked.push([event.item.kind === 'agent-message' && event.item.text, (await round.outcome).class])
  }
  expect(asked).toEqual([
    ['true', 'worked'],
    ['false', 'auth'],
    ['true', 'worked'],
    ['false', 'worked'],
  ])
})
