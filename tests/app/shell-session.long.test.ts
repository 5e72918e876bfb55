import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openRealScene } from '../support/real-scene.ts'
import { askHuman, leaksIn, runShell, works } from '../support/team-scene.ts'
import { own, printedBy, runErrands, secretsOf, VALUE } from './shell-scene.ts'

test('an agent that asks for a secret ends its turn; once it is given, from elsewhere, and confirmed, the next one has it', async () => {
  await using scene = await openRealScene([
    [askHuman('SHOP_KEY', { question: 'The key of the shop?' }), works({ done: false })],
    [runShell('printf %s "$SHOP_KEY" | wc -c | grep -x 27', 'SHOP_KEY'), works()],
  ])
  const { give } = await secretsOf(scene)
  const { of } = await runErrands(scene, { rounds: 2 }, (event, ask) => {
    if (event.type !== 'decision-asked') return
    void give('SHOP_KEY', VALUE, 'test -n "$SHOP_KEY" && echo "$SHOP_KEY" && touch checked').then(() => ask('SHOP_KEY'))
  })
  expect(of('secret-asked')).toMatchObject([{ key: 'SHOP_KEY', question: 'The key of the shop?' }])
  expect(of('decision-asked')).toMatchObject([{ secret: { key: 'SHOP_KEY' } }])
  expect(of('decision-made')).toMatchObject([{ choice: 'give', by: 'person' }])
  expect(of('secret-confirmed')).toMatchObject([{ key: 'SHOP_KEY', ok: true }])
  expect(existsSync(join(scene.place.directory, 'checked'))).toBe(true)
  expect(of('shell-ran')).toMatchObject([{ status: 'passed', secrets: ['SHOP_KEY'] }])
  expect(leaksIn(scene, VALUE)).toEqual([])
})

test('a file in which a command has left a secret ends the turn, and no agent reads it any more', async () => {
  await using scene = await openRealScene([
    [runShell('mkdir -p out; printf %s "$SHOP_KEY" > out/debug.log', 'SHOP_KEY'), own('cat out/debug.log'), works()],
    [own('cat out/debug.log; ls out'), runShell('cat out/debug.log'), works()],
  ])
  const { give } = await secretsOf(scene)
  await give('SHOP_KEY', VALUE)
  const { of, events } = await runErrands(scene, { rounds: 2 })
  expect(of('shell-ran')).toMatchObject([{ leaked: ['out/debug.log'] }, { status: 'failed', stdout: '' }])
  expect(of('round-ended').map(({ outcome }) => outcome)).toMatchObject([
    { class: 'interrupted', message: expect.stringMatching(/left a secret in out\/debug\.log/) },
    { class: 'worked' },
  ])
  expect(printedBy(events).at(-1)).toMatch(/Permission denied\n+debug\.log/)
  expect(readFileSync(join(scene.place.directory, 'out/debug.log'), 'utf8')).toBe(VALUE)
  for (const leak of leaksIn(scene, VALUE)) expect(leak).toContain('/work/out/debug.log: ')
})
