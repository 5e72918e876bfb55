import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { message, reply } from '../../src/demo/model/reply.ts'
import { openProject, processWorld } from '../../src/index.ts'
import { openRealScene } from '../support/real-scene.ts'
import { askHuman, commands, leaksIn, runShell, works } from '../support/team-scene.ts'
import { own, printedBy, runErrands, secretsOf, VALUE } from './shell-scene.ts'

test('a command has a secret for itself: it is taken out of what that prints, and no shell of an agent reads where it lies', async () => {
  const printing = [
    'printf %s "$SHOP_KEY"; printf %s "$SHOP_KEY" | base64 -w 9',
    'printf %s "$SHOP_KEY" | od -An -tx1 >&2; exit 3',
    'for part in 1-9 10-; do printf %s "$SHOP_KEY" | cut -c $part | tr -d "\\n"; sleep 0.2; done; echo',
  ]
  await using scene = await openRealScene([
    [
      ...printing.map(line => runShell(line, 'SHOP_KEY')),
      runShell('env | grep -c ^SHOP_KEY='),
      own('env | grep -c ^SHOP_KEY=; cat .env; echo x > .env; echo "records: $(cat "$RECORDS" 2>&1)"'),
      runShell('cat .env; cat "$RECORDS"'),
      works(),
    ],
  ])
  const { give, records } = await secretsOf(scene)
  await give('SHOP_KEY', VALUE)
  scene.place.env.RECORDS = join(records.secrets, 'SHOP_KEY.json')
  const { of, events } = await runErrands(scene, { rounds: 1 })
  const ran = of('shell-ran')
  expect(ran.map(({ exitCode, printed = [] }) => [exitCode, printed])).toEqual([
    [0, ['SHOP_KEY']],
    [3, ['SHOP_KEY']],
    [0, ['SHOP_KEY']],
    [1, []],
    [1, []],
  ])
  expect(ran[2]?.stdout).toBe('[secret SHOP_KEY]\n')
  const [shown = ''] = printedBy(events)
  expect(shown).toMatch(/^0\n/)
  expect(shown).toMatch(/records: cat: .+: Permission denied/)
  expect(existsSync(join(scene.place.directory, '.env'))).toBe(false)
  expect(leaksIn(scene, VALUE)).toEqual([])
})

test('an agent without tools works in one thread, command by command, with secrets that it names', async () => {
  await using scene = await openRealScene([
    [
      commands('echo hello > hello.txt; cat hello.txt; echo oops >&2'),
      commands('echo "$SHOP_KEY" | rev | rev', { secrets: ['SHOP_KEY'] }),
      reply(message('Well.')),
      commands('sleep 99 & disown; exit 7'),
      commands(null),
    ],
  ])
  const { give } = await secretsOf(scene)
  await give('SHOP_KEY', VALUE)
  const { of } = await runErrands(scene, { rounds: 1, stepwise: true })
  expect(of('shell-ran')).toMatchObject([
    { exitCode: 0, stdout: 'hello\n', stderr: 'oops\n' },
    { exitCode: 0, stdout: '[secret SHOP_KEY]\n', printed: ['SHOP_KEY'] },
    { exitCode: 7 },
  ])
  expect(of('answer-given')).toMatchObject([{ name: 'errand', value: { done: true } }])
  expect(
    of('turn-started')
      .map(({ thread }) => thread)
      .filter((id, n, all) => all.indexOf(id) === n),
  ).toHaveLength(1)
  expect(leaksIn(scene, VALUE)).toEqual([])
})

test('a gate of any session reads nothing of the secrets that the project has', async () => {
  await using scene = await openRealScene([[works()]])
  const { give, records } = await secretsOf(scene)
  await give('SHOP_KEY', VALUE)
  const { place } = scene
  place.env.RECORDS = join(records.secrets, 'SHOP_KEY.json')
  writeFileSync(join(place.directory, '.env'), `SHOP_KEY=${VALUE}\n`)
  const world = processWorld({ env: place.env, home: place.home, cwd: place.directory })
  await using project = await openProject(world, { keepAwake: false, rounds: 1, verify: ['rev "$RECORDS"; rev .env'] })
  const gates: string[] = []
  await project.run('Do it.', {
    onEvent: event => void (event.type === 'gate-ended' && gates.push(event.output)),
  })
  expect(gates.length).toBeGreaterThan(0)
  for (const output of gates) expect(output).toMatch(/Permission denied.+Permission denied/s)
})

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
    { class: 'interrupted', message: expect.stringMatching(/wrote a secret into out\/debug\.log/) },
    { class: 'worked' },
  ])
  expect(printedBy(events).at(-1)).toMatch(/Permission denied\n+debug\.log/)
  expect(readFileSync(join(scene.place.directory, 'out/debug.log'), 'utf8')).toBe(VALUE)
  for (const leak of leaksIn(scene, VALUE)) expect(leak).toContain('/work/out/debug.log: ')
})
