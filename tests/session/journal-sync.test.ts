import fs from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openJournal } from '../../src/session/records/journal.ts'
import { type Play, playSession } from '../support/played-session.ts'
import { promise } from '../support/promise.ts'
import { created, worked } from '../support/session-events.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'codemachine-sync-'))
})
afterAll(() => rm(folder, { recursive: true }))

const endings: readonly Play[] = [
  () => worked,
  () => ({ class: 'crashed', message: 'It died.' }),
  () => ({ class: 'context-full', message: 'It is full.' }),
  () => ({ class: 'throttle', message: 'Busy.' }),
  () => worked,
]

promise(
  'J12',
  'Each round, however it ended, is handed to the disk before a wait or the next one begins; where it does not get there the session ends',
)
test('each round, however it ended, is brought to the disk before a wait or the next one begins', async () => {
  const happened: string[] = []
  await playSession(endings, {
    folder,
    limits: { rounds: 3, timeMs: null, tokens: null },
    tree: () => `tree ${happened.length}`,
    append: ({ type }) => void happened.push(type),
    sync: () => void happened.push('synced'),
  })
  const rounds = happened.flatMap((type, i) => (type === 'round-ended' ? [happened.slice(i + 1)] : []))
  expect(rounds).toHaveLength(endings.length)
  const next = rounds.map(rest => rest.find(type => ['synced', 'waiting', 'round-started'].includes(type)))
  expect(next).toEqual(endings.map(() => 'synced'))
  // The end of the session is on the disk, too.
  expect(happened.slice(happened.indexOf('session-ended'))).toContain('synced')
})

test('all that codex sent in a round is in its file when the round has ended', async () => {
  const lines = Array.from({ length: 20_000 }, (_, n) => JSON.stringify({ n }))
  const kept: string[] = []
  const says: Play = ({ run }) => {
    for (const line of lines) run.onRecord(line)
    return worked
  }
  await playSession([says], {
    folder,
    limits: { rounds: 1, timeMs: null, tokens: null },
    append: ({ type }) => {
      if (type === 'round-ended') kept.push(fs.readFileSync(join(folder, '001.ndjson'), 'utf8'))
    },
  })
  expect(kept.map(text => text.split('\n').slice(-lines.length - 1))).toEqual([[...lines, '']])
})

promise('J12')
test('a round that does not get to the disk ends the session, once the next one has ended', async () => {
  const happened: string[] = []
  const full = [Object.assign(new Error('no room left'), { code: 'ENOSPC' })]
  const played = playSession(endings, {
    folder,
    limits: { rounds: 3, timeMs: null, tokens: null },
    tree: () => `tree ${happened.length}`,
    append: ({ type }) => void happened.push(type),
    sync() {
      const error = full.shift()
      if (error !== undefined) throw error
    },
  })
  await expect(played).rejects.toThrow('no room left')
  expect(happened.filter(type => type === 'round-started')).toHaveLength(2)
})

test('what was appended to a journal is handed to the disk when it is synced, and when it is closed', async () => {
  const { fdatasync } = fs
  let calls = 0
  fs.fdatasync = ((fd: number, done: (error: Error | null) => void) => {
    calls++
    fdatasync(fd, done)
  }) as typeof fs.fdatasync
  syncBuiltinESMExports()
  try {
    await using journal = openJournal(join(folder, 'journal.ndjson'))
    journal.append({ ...created(), v: 1, at: new Date(0).toISOString(), session: '20261120_1' })
    expect(calls).toBe(0)
    await journal.sync()
    expect(calls).toBe(1)
  } finally {
    fs.fdatasync = fdatasync
    syncBuiltinESMExports()
  }
  expect(calls).toBe(2)
})
