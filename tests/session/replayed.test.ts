import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { RoundClass } from '../../src/core/events/outcome.ts'
import { CLAIMED, type Play, type PlayOptions, playSession } from '../support/played-session.ts'
import { promise } from '../support/promise.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'codemachine-replayed-'))
})
afterAll(() => rm(folder, { recursive: true }))

/** A turn of a recording that once ended so. */
const shown =
  (end: RoundClass): Play =>
  ({ run }) => {
    run.onEvent({ type: 'turn-started', round: run.round, thread: 't', turn: 'u' })
    return { class: end, message: end === 'worked' ? null : 'It was so.' }
  }

const replayed = (plays: readonly Play[], options: Partial<PlayOptions> = {}) =>
  playSession(plays, { folder, replays: true, limits: { rounds: 3, timeMs: null, tokens: null }, ...options })

const typesOf = (events: readonly { type: string }[]) => new Set(events.map(({ type }) => type))

promise('D14', 'A claim in a session in which anything was replayed is never accepted')
test('a claim in a session in which anything was replayed is not accepted, whatever the files say', async () => {
  const { outcome, events } = await replayed([shown('worked')], { memory: () => CLAIMED })
  expect(outcome).toEqual({ kind: 'replayed' })
  expect(typesOf(events)).toContain('done-nominated')
  expect(typesOf(events)).not.toContain('done-accepted')
  expect(events.find(({ type }) => type === 'round-started')).toMatchObject({ replayed: true })
  expect(events.at(-1)).toMatchObject({ type: 'session-ended', exitCode: 0 })
})

test('the same claim is accepted where nothing was', async () => {
  const { outcome } = await playSession([shown('worked')], { folder, memory: () => CLAIMED })
  expect(outcome).toEqual({ kind: 'done', verified: false })
})

test('a replay is shown once: how it once ended calls for no wait, and uses up a round', async () => {
  const { outcome, events, tookMs } = await replayed([shown('network'), shown('window'), shown('crashed')])
  expect(outcome).toEqual({ kind: 'limit', limit: 'rounds' })
  expect(typesOf(events)).not.toContain('waiting')
  // The network's second turn in the same thread is asked for after two seconds, and there is none.
  expect(tookMs).toBeLessThan(5_000)
})

test('replays that change nothing are no stall', async () => {
  const { outcome, events } = await replayed([shown('worked')], {
    limits: { rounds: 12, timeMs: null, tokens: null },
    policy: { stallRounds: 3 },
  })
  expect(outcome).toEqual({ kind: 'limit', limit: 'rounds' })
  expect(typesOf(events)).not.toContain('stuck')
})
