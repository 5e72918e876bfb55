import { readdirSync } from 'node:fs'
import { glob } from 'node:fs/promises'
import { join } from 'node:path'
import { execa } from 'execa'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { packageRoot } from '../../src/base/package.ts'
import type { Recorded } from '../../src/core/events/events.ts'
import { runnerOf } from '../doors/cli/verify/action-run.ts'
import { agentKey } from '../doors/cli/verify/agent-key.ts'
import { engineNamed, play, setupIn, THREAD } from '../engines/contract.ts'
import { mostAtOnce, verdictsOf, workOf } from '../support/build-scene.ts'
import { codemachine, startCodemachine } from '../support/codemachine.ts'
import { codemachineHere } from '../support/in-process.ts'
import { withOlderBubblewrap } from '../support/older-bubblewrap.ts'
import { git, makePlace, type TestPlace } from '../support/place.ts'
import { promise } from '../support/promise.ts'
import { eventsOf } from '../support/scene.ts'

/** A minute and a half on an idle machine. */
const DEMO_MS = 560_000

test(
  'the demo of a build shows a team that builds a small program to its end, without the person’s own codex',
  async () => {
    await using place = await makePlace('')
    const env = { TMPDIR: place.root }
    const { exitCode, stderr, events } = await codemachine(place, ['demo', '--template', 'build', '--fast', '--json'], {
      env,
      boundMs: DEMO_MS,
    })
    expect(exitCode).toBe(0)
    expect(stderr).toContain('node bin/reading-list.js books.json index.html')
    expect(stderr).toMatch(/^Its report: .*\/codemachine report --open$/m)
    expect(stderr.trimEnd().split('\n').slice(-2)).toEqual([
      `Now yours: npm install --global ${packageRoot}`,
      'In your project: codemachine "test the riskiest code that no test covers"',
    ])
    expect(eventsOf(events, 'warning'), 'it greets with none').toEqual([])
    expect(events.at(-1)).toMatchObject({ type: 'session-ended', outcome: { kind: 'done', verified: true } })
    expect(eventsOf(events, 'round-started').map(({ part }) => part)).toEqual([
      'team-building',
      'orchestration',
      'summary',
      'orchestration',
      'summary',
      'last-look',
    ])
    expect(workOf(events).filter(each => each.endsWith('completed'))).toHaveLength(9)
    expect(mostAtOnce(events)).toBe(3)
    expect(verdictsOf(events)).toEqual(['T1', 'T2', 'T3', 'T4', 'T5', 'T6', 'T7', 'T8'].map(task => `${task} done`))
    // Here a patch that does not fit would show. The only commands that fail show a defect before its fix.
    const failed = eventsOf(events, 'item-completed').flatMap(({ item }) =>
      'status' in item && item.status === 'failed' ? [item.kind === 'command' ? item.command : item.kind] : [],
    )
    expect(failed).toHaveLength(3)
    for (const command of failed) expect(command).toMatch(/node (--test|test\/page\.test\.js)/)
    expect(readdirSync(place.codexHome)).toEqual(['config.toml'])
    await replaysAsItWas(place, events)
  },
  2 * DEMO_MS,
)

describe('the demo of a goal', () => {
  let place: TestPlace
  let demo: Awaited<ReturnType<typeof codemachine>>

  beforeAll(async () => {
    place = await makePlace('')
    await using older = await withOlderBubblewrap(place)
    demo = await codemachine(place, ['demo', '--fast', '--json'], { env: older.env, boundMs: DEMO_MS })
  }, 2 * DEMO_MS)

  afterAll(() => place?.[Symbol.asyncDispose]())

  test('shows a contract: a claim that misses a sentence, a weak check that is mended, and all proved', async () => {
    const { exitCode, events, stderr } = demo
    expect(exitCode).toBe(0)
    expect(stderr).toMatch(/^This builds linkcheck, /)
    expect(eventsOf(events, 'warning'), 'it greets with none').toEqual([])
    expect(events.at(-1)).toMatchObject({
      type: 'session-ended',
      outcome: { kind: 'done', proof: 'proved' },
      rounds: 6,
    })
    expect(eventsOf(events, 'done-refused')).toMatchObject([
      { round: 3, reason: 'tree-changed' },
      {
        round: 4,
        reason: 'contract-failed',
        detail: expect.stringMatching(/^these requirements are not met: S3 "A name may be percent-enc/),
      },
    ])
    expect(eventsOf(events, 'contract-frozen').map(({ version, by }) => [version, by])).toEqual([
      [1, 'default'],
      [2, 'controls'],
    ])
    const tried = eventsOf(events, 'control-tried').map(({ sentence, result }) => `${sentence} ${result}`)
    expect(tried).toEqual(['S1 not-caught', ...['S1', 'S2', 'S3', 'S4'].map(id => `${id} caught`)])
    // The only commands that fail are tests that show a defect before its fix.
    const items = eventsOf(events, 'item-completed').filter(({ item }) => item.kind === 'command')
    const failed = items.filter(({ item }) => 'status' in item && item.status !== 'completed')
    expect(failed.map(({ round }) => round)).toEqual([2, 2, 5])
    const [cwd = ''] = await Array.fromAsync(
      glob('codemachine-demo-*/linkcheck', { cwd: join(place.root, 'temporary') }),
    )
    const run = async (file: string, ...args: string[]) =>
      (await execa(file, args, { cwd: join(place.root, 'temporary', cwd), env: place.env })).stdout
    expect(await run('node', '--test')).toMatch(/# fail 0|ℹ fail 0/)
    expect(await run('node', 'bin/linkcheck.js', 'README.md', 'IDEA.md')).toBe('No broken links.')
    expect((await run('git', 'log', '--format=%s')).split('\n')).toHaveLength(4)
    const [, look = ''] = /^Its session: (.+)$/m.exec(stderr) ?? []
    expect(await run('sh', '-c', look)).toMatch(/round 6[\s\S]*done/)
    expect(look).toMatch(/^~\/\.codemachine\/demo\/\w+\/codemachine logs$/)
    expect(await run('sh', '-c', look.replace(' logs', ' contract'))).toContain('4 of 4 sentences proved')
    const [, verify = ''] = /^Prove it again: (.+)$/m.exec(stderr) ?? []
    expect(await run('sh', '-c', verify)).toMatch(/^still true[\s\S]*S1, check 2: passes \(/)
  })

  promise('D99')
  test('the action proves its contract in a fresh clone, and fails where its certificate was tampered with', async () => {
    const [path = ''] = await Array.fromAsync(
      glob('codemachine-demo-*/linkcheck', { cwd: join(place.root, 'temporary') }),
    )
    const name = path.slice('codemachine-demo-'.length).split('/')[0] ?? ''
    const records = join(place.home, '.codemachine', 'demo', name)
    const linkcheck = {
      ...place,
      directory: join(place.root, 'temporary', path),
      env: { ...place.env, CODEMACHINE_HOME: records },
    }
    using key = await agentKey(linkcheck)
    const made = await codemachineHere(linkcheck, ['certificate', '--sign', key.path, '--note'], key)
    expect([made.exitCode, made.stderr]).toEqual([0, ''])

    await using runner = await runnerOf(linkcheck, key.signers)
    const head = git(linkcheck, 'rev-parse', 'HEAD')
    const passed = await runner.step(head, { REQUIRE: 'proved' })
    expect(passed.log).toContain('failures: none: ')
    expect(passed.exitCode).toBe(0)
    expect(passed.summary).toMatch(/^## Certificate passed: still true\n/)
    for (const id of ['S1', 'S2', 'S3', 'S4']) expect(passed.summary).toContain(`\n| ${id} | `)
    expect(passed.summary).toMatch(/\| S3 \| .* \| proved \| 1 of 1 \|/)

    const note = git(linkcheck, 'notes', '--ref=codemachine', 'show', head)
    const changed = note.replace(/"payload":"([^"]+)"/g, (_, payload: string) => {
      const text = Buffer.from(payload, 'base64').toString().replaceAll('node --test', 'true # test')
      return `"payload":"${Buffer.from(text).toString('base64')}"`
    })
    git(linkcheck, 'notes', '--ref=codemachine', 'add', '-f', '-m', changed, head)
    const tampered = await runner.step(head, { REQUIRE: 'proved' })
    expect([tampered.exitCode, tampered.summary]).toEqual([
      2,
      expect.stringContaining('signed it: the signature no longer matches'),
    ])
  })
})

test('a demo that is stopped says that it cannot be resumed, and names only commands that work', async () => {
  await using place = await makePlace('')
  await using running = startCodemachine(place, ['demo', '--fast', '--json'], { env: { TMPDIR: place.root } })
  await running.event('contract-drafted')
  running.signal('SIGINT')
  const { stderr } = await running.ended
  const broken = stderr
    .split('\n')
    .slice(0, 4)
    .filter(line => line.length > 80 && line.includes(' '))
  expect(broken, 'its greeting breaks between words').toEqual([])
  expect(stderr).toContain('A demo cannot be resumed; the same command begins another.')
  expect(stderr).not.toContain('Prove it again')
  const look = /^Its session: (.+)$/m.exec(stderr)?.[1] ?? ''
  const typed = (line: string) => execa('sh', ['-c', line], { env: place.env, reject: false })
  expect((await typed(look)).stdout).toContain('contract, version 1')
  expect(await typed(look.replace(' logs', ' resume'))).toMatchObject({
    exitCode: 2,
    stderr: 'A demo cannot be resumed: begin another.',
  })
})

test('after a queued prompt the last lines of a demo still show its own session', async () => {
  await using place = await makePlace('')
  await using running = startCodemachine(place, ['demo', '--fast', '--json'], { env: { TMPDIR: place.root } })
  const { session } = await running.event('contract-drafted')
  const [project = ''] = await Array.fromAsync(glob(join(place.root, 'codemachine-demo-*/linkcheck')))
  const [records = ''] = await Array.fromAsync(glob(join(place.home, '.codemachine/demo/*')))
  const ask = (...args: string[]) =>
    codemachine({ ...place, directory: project }, args, { env: { CODEMACHINE_HOME: records } })
  expect((await ask('queue', 'add', 'Say hello.')).exitCode).toBe(0)
  expect((await ask('skip')).exitCode).toBe(0)
  await running.event('session-created', each => each.session !== session)
  running.signal('SIGINT')
  expect((await running.ended).stderr).toMatch(new RegExp(`^Its session: .*/codemachine logs ${session}$`, 'm'))
})

/** Replays each recorded round of a night, and compares what it shows with what was shown then. */
async function replaysAsItWas(place: TestPlace, events: readonly Recorded[]): Promise<void> {
  const engine = await engineNamed('replay').open(await setupIn(place))
  const started = eventsOf(events, 'round-started')
  // A round that uses up none shares its number, and its recording, with the one after it.
  const alone = started.filter(({ round }) => started.filter(each => each.round === round).length === 1)
  expect(alone.length).toBeGreaterThan(1)
  for (const { round } of alone) {
    const name = `${String(round).padStart(3, '0')}.ndjson`
    const [path = ''] = await Array.fromAsync(
      glob(`.codemachine/demo/*/state/*/sessions/*/rounds/${name}`, { cwd: place.home }),
    )
    const recording = { path: join(place.home, path), pace: 'at-once' } as const
    const replayed = play(engine.prepare({ ...THREAD, recording }))
    expect(await replayed.outcome).toMatchObject({ class: 'worked' })
    const shown = replayed.events.flatMap(event => (event.type === 'item-completed' ? event.item : []))
    const then = eventsOf(events, 'item-completed').flatMap(event =>
      event.round === round && event.instance === undefined ? event.item : [],
    )
    expect(then.length).toBeGreaterThan(2)
    expect(shown).toEqual(then)
  }
  await engine.close()
}
