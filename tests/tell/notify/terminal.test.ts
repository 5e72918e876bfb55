import { expect, test } from 'vitest'
import { openForTest } from './opened.ts'
import { ended, recorded, waiting } from './samples.ts'

test('a terminal is rung, and shown the notification', async () => {
  await using opened = await openForTest(() => ({ bell: true }), { isTTY: true })
  opened.tell(waiting(5))
  opened.tell(ended)
  await opened.notifier.close()
  expect(opened.written).toEqual([
    '\x07\x1b]9;codemachine in parser: done, gates pass. Done, gates pass. 3 rounds, 2 h 5 min, 45.2k tokens. Goal: Port the parser. Keep the tests green.\x07',
  ])
})

test('what codex says cannot break out of it', async () => {
  await using opened = await openForTest(() => ({ bell: true }), { isTTY: true })
  opened.tell(
    recorded({
      type: 'session-ended',
      outcome: { kind: 'needs-person', reason: '\x07\x1b]0;owned\x07\u009c\x1b[2J', hint: null },
      exitCode: 4,
      rounds: 0,
      tokens: 0,
      durationMs: 0,
    }),
  )
  await opened.notifier.close()
  const [text = ''] = opened.written
  expect(text.match(/\p{Cc}/gu)).toEqual(['\x07', '\x1b', '\x07'])
})

test('a terminal that knows no sequences is rung only', async () => {
  await using opened = await openForTest(() => ({ bell: true }), { isTTY: true, env: { TERM: 'dumb' } })
  opened.tell(ended)
  await opened.notifier.close()
  expect(opened.written).toEqual(['\x07'])
})

test('where stdout is no terminal nothing is written, and nothing said of it', async () => {
  await using opened = await openForTest(() => ({ bell: true }), { isTTY: false })
  opened.tell(ended)
  await opened.notifier.close()
  expect([opened.written, opened.problems]).toEqual([[], []])
})

test('nothing has happened yet when the event returns to the run', async () => {
  await using opened = await openForTest(() => ({ bell: true }), { isTTY: true })
  opened.tell(ended)
  expect(opened.written).toEqual([])
  await opened.notifier.close()
  expect(opened.written.length).toBe(1)
})
