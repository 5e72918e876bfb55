import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import type { Reply } from '../../src/demo/reply.ts'
import { reply } from '../../src/demo/reply.ts'
import { codemachine } from '../support/codemachine.ts'
import { claimDone, round } from '../support/rounds.ts'
import { eventsOf, IMPATIENT, openScene } from '../support/scene.ts'
import { describe, test } from '../support/side-by-side.ts'

const status = (status: number, error: object): Reply => ({ kind: 'status', status, body: { error } })

describe('a round that fails in a way that a fresh one may mend uses up one, and the next one works', () => {
  const tooLong: Reply = { ...reply(), end: { kind: 'failed', code: 'context_length_exceeded', message: 'too long' } }
  test.each<[string, Reply, string]>([
    ['a request that is refused', status(400, { message: 'Invalid prompt: no.' }), 'refused'],
    [
      'a prompt against the policy',
      { ...reply(), end: { kind: 'failed', code: 'cyber_policy', message: 'No.' } },
      'refused',
    ],
    ['a context that is full', tooLong, 'context-full'],
  ])('%s', async (_what, fault, end) => {
    await using scene = await openScene([[fault], round(claimDone)])
    const { exitCode, events } = await scene.run('--json', 'build X')
    expect(exitCode).toBe(0)
    expect(eventsOf(events, 'round-ended').map(({ round, outcome }) => [round, outcome.class])).toEqual([
      [1, end],
      [2, 'worked'],
    ])
  })
})

describe('what only a person can mend ends the session at once with exit code 4, in codex’s own words', () => {
  test.each<[string, Reply, string, string]>([
    [
      'no credit',
      status(429, {
        code: 'insufficient_quota',
        type: 'insufficient_quota',
        message: 'You exceeded your current quota.',
      }),
      'Quota exceeded',
      'Add credit',
    ],
    [
      'an unknown model',
      status(404, { code: 'model_not_found', message: 'The model `scripted` does not exist' }),
      'The model `scripted` does not exist',
      'Mend the codex configuration',
    ],
    [
      'a key that is not taken',
      status(401, { message: 'Incorrect API key provided' }),
      '401 Unauthorized',
      'Log in with `codex login`',
    ],
  ])('%s', async (_what, fault, words, mend) => {
    await using scene = await openScene([[fault]], { provider: IMPATIENT })
    const { exitCode, stdout, stderr } = await scene.run('build X')
    expect([exitCode, stderr]).toEqual([4, ''])
    expect(stdout).toMatch(/ ended: needs a person: /)
    expect(stdout).toContain(words)
    expect(stdout).toContain(mend)
    expect(stdout).toMatch(/\nTo go on: codemachine resume \d{8}_1\n$/)
  })

  test('nobody logged in', async () => {
    await using scene = await openScene([])
    await writeFile(join(scene.place.codexHome, 'config.toml'), 'check_for_update_on_startup = false\n')
    const { exitCode, stdout } = await scene.run('build X')
    expect(exitCode).toBe(4)
    expect(stdout).toContain('needs a person: Codex is not logged in')
    expect(stdout).toContain('Log in with `codex login`, then run codemachine again.')
  })

  test('a config.toml that is broken', async () => {
    await using scene = await openScene([])
    await writeFile(join(scene.place.codexHome, 'config.toml'), 'model = "x\n[[[\n')
    const { exitCode, stdout } = await scene.run('build X')
    expect(exitCode).toBe(4)
    expect(stdout).toMatch(/needs a person: .*config\.toml:1:\d+/)
    expect(stdout).toContain('Mend the codex configuration')
  })

  test('a -c that codex does not take', async () => {
    await using scene = await openScene([])
    const env = { RUST_BACKTRACE: '1' }
    const { exitCode, stdout } = await codemachine(scene.place, ['-c', 'model_provider="nobody"', 'build X'], { env })
    expect(exitCode).toBe(4)
    expect(stdout).toMatch(/needs a person: .*Error: Model provider `nobody` not found {2}\(/)
  })
})

describe('what may pass is tried again after a wait, which uses up no round, and given up after the third time', () => {
  test.each<[string, Reply, string]>([
    ['a server that is too busy', status(429, { message: 'slow down' }), 'throttle'],
    ['a stream that breaks off', { ...reply(), end: { kind: 'cut', afterEvents: 1, how: 'reset' } }, 'network'],
  ])('%s', async (_what, fault, end) => {
    await using scene = await openScene([[fault], [fault], [fault], round(claimDone)], { provider: IMPATIENT })
    const { exitCode, events } = await scene.run('--json', '--rounds', '1', 'build X')
    expect(exitCode).toBe(4)
    expect(eventsOf(events, 'round-ended').map(({ round, outcome }) => [round, outcome.class])).toEqual(
      Array(3).fill([1, end]),
    )
    expect(eventsOf(events, 'waiting')).toHaveLength(2)
  })
})

test('a stream that breaks off once does not cost a round', async () => {
  await using scene = await openScene(
    [[{ ...reply(), end: { kind: 'cut', afterEvents: 1, how: 'reset' } }], round(claimDone)],
    { provider: IMPATIENT },
  )
  const { exitCode, events } = await scene.run('--json', '--rounds', '1', 'build X')
  expect(exitCode).toBe(0)
  expect(eventsOf(events, 'round-ended').map(({ round, outcome }) => [round, outcome.class])).toEqual([
    [1, 'network'],
    [1, 'worked'],
  ])
})
