import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { BIN } from '../../support/codemachine.ts'
import { type Span, saidOf, startCollector } from '../../support/collector.ts'
import { promise } from '../../support/promise.ts'
import { openRealScene } from '../../support/real-scene.ts'
import { claimDone, round } from '../../support/rounds.ts'
import { eventsOf } from '../../support/scene.ts'

promise('E53', 'OpenTelemetry gets the spans of rounds, claims and gates, and their metrics')
test('a collector gets three rounds, refused and accepted claims, and no secret; agents and gates get no header', async () => {
  await using collector = await startCollector()
  await using scene = await openRealScene([
    // It claims only if it has no variable of the exporter; so does the gate pass.
    round(`env | grep OTEL_EXPORTER || { ${claimDone}; }`),
    round('touch canary-file'),
    round(claimDone),
  ])
  const gate = '! env | grep OTEL_EXPORTER && test -e canary-file'
  const { env } = collector
  const ended = await scene.command(['--json', '--verify', gate, 'build the canary-goal'], { env }).ended
  expect([ended.exitCode, eventsOf(ended.events, 'done-refused').map(({ reason }) => reason)]).toEqual([
    0,
    ['gate-failed', 'tree-changed'],
  ])
  expect(eventsOf(ended.events, 'warning').filter(({ message }) => message.includes('OpenTelemetry'))).toEqual([])

  const spans = collector.spans()
  const inside = (name: string, parent: Span | undefined) =>
    spans.filter(span => span.name === `codemachine.${name}` && span.parentSpanId === parent?.spanId)
  const [session, ...others] = inside('session', undefined)
  expect(others).toEqual([])
  expect(session && saidOf(session)).toMatchObject({ outcome: 'done', rounds: 3, exit_code: 0, template: 'goal' })
  const rounds = inside('round', session).map(saidOf)
  expect(rounds).toMatchObject([1, 2, 3].map(number => ({ 'round.number': number, outcome: 'worked' })))
  expect(rounds.every(each => Number(each['gen_ai.usage.input_tokens']) > 0)).toBe(true)
  const claims = inside('claim', session)
  expect(claims.map(claim => ({ ...saidOf(claim), isError: claim.status.code === 2 }))).toMatchObject([
    { outcome: 'refused', 'claim.reason': 'gate-failed', isError: true },
    { outcome: 'refused', 'claim.reason': 'tree-changed', isError: true },
    { outcome: 'accepted', verified: true, isError: false },
  ])
  expect(claims.map(claim => inside('gate', claim).map(saidOf))).toMatchObject([
    [{ outcome: 'failed', 'gate.number': 1, 'gate.when': 'claim', exit_code: 1 }],
    [],
    [
      { outcome: 'passed', 'gate.number': 1, 'gate.when': 'claim', exit_code: 0 },
      { outcome: 'stands', 'gate.number': 1, 'gate.when': 'counter-proof' },
    ],
  ])

  const counted = (name: string) =>
    collector
      .metrics()
      .filter(metric => metric.name === name)
      .flatMap(({ sum }) => sum?.dataPoints ?? [])
      .map(point => [saidOf(point).outcome, point.asInt ?? point.asDouble])
  expect(counted('codemachine.rounds')).toEqual([['worked', 3]])
  expect(counted('codemachine.claims').sort()).toEqual([
    ['accepted', 1],
    ['refused', 1],
    ['refused', 1],
  ])
  const names = collector.metrics().map(({ name }) => name)
  expect(names).toEqual(expect.arrayContaining(['gen_ai.client.token.usage', 'codemachine.queue.length']))

  expect(collector.resources().map(saidOf)[0]).toMatchObject({
    'service.name': 'codemachine',
    'deployment.environment.name': 'night',
  })
  expect(new Set(collector.bodies.map(({ authorization }) => authorization))).toEqual(new Set(['canary-header']))
  const all = collector.bodies.map(({ text }) => text).join('\n')
  expect(all).not.toMatch(/canary|process\.|goal-worker/)
  expect(all).not.toContain(scene.place.root)
})

test('a collector that never answers delays the end by 5 s at most, and the person is told', async () => {
  await using collector = await startCollector({ answers: false })
  await using scene = await openRealScene([round(claimDone)])
  const env = { ...collector.env, OTEL_EXPORTER_OTLP_TIMEOUT: '600000' }
  const { exitCode, stderr } = await scene.command(['--json', 'build X'], { env }).ended
  expect([exitCode, stderr]).toEqual([
    0,
    expect.stringContaining('The OpenTelemetry collector did not take everything within 5 s.'),
  ])
  expect(collector.bodies.length).toBeGreaterThan(0)
})

test('without the packages the session runs, and says how to install them', async () => {
  const root = await mkdtemp(join(tmpdir(), 'codemachine-alone-'))
  try {
    for (const part of ['dist', 'package.json', 'settings.js', 'prompts', 'config'])
      await cp(join(dirname(BIN), '..', part), join(root, part), { recursive: true })
    await using scene = await openRealScene([round(claimDone)])
    const options = { env: { OTEL_TRACES_EXPORTER: 'otlp' }, bin: join(root, 'dist/bin.js') }
    const { exitCode, events } = await scene.command(['--json', 'build X'], options).ended
    const said = eventsOf(events, 'warning').flatMap(({ message, more = [] }) => [message, ...more])
    expect([exitCode, said.filter(each => each.includes('OpenTelemetry'))]).toEqual([
      0,
      [
        'OTEL_TRACES_EXPORTER asks for OpenTelemetry, but its packages are not installed. Install them beside codemachine: npm install --global @opentelemetry/api@1.10 @opentelemetry/sdk-node@0.301',
      ],
    ])
  } finally {
    await rm(root, { recursive: true, force: true })
  }
})
