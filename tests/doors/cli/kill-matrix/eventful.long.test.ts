import { beforeAll, describe, expect, test, vi } from 'vitest'
import { agentCommand } from '../../../engines/acp/acp-agent.ts'
import { describePoint } from '../../../support/kill-points.ts'
import { promise } from '../../../support/promise.ts'
import { sliceOf } from '../../../support/random.ts'
import { IMPATIENT } from '../../../support/real-scene.ts'
import { eventsOf, writePersonSettings } from '../../../support/scene.ts'
import { eventfulChains } from './points.ts'
import { type SurviveOptions, survive, undisturbedTree } from './survive.ts'
import {
  asked,
  asking,
  brokenOnce,
  busyOnce,
  forceful,
  full,
  idle,
  lingering,
  meddling,
  PROTECTING,
  proving,
  reviewed,
  unsettling,
} from './turnouts.ts'

vi.setConfig({ maxConcurrency: 4 })

let tree = ''
beforeAll(async () => {
  tree = await undisturbedTree()
})

const PROVED = ['--no-keep-awake', '--prove']

const sessions: Record<keyof typeof eventfulChains, () => SurviveOptions> = {
  busy: () => ({ turnout: busyOnce() }),
  retrying: () => ({ turnout: brokenOnce() }),
  continued: () => ({ turnout: brokenOnce(), scene: { provider: IMPATIENT } }),
  forceful: () => ({ turnout: forceful }),
  meddling: () => ({ turnout: meddling }),
  unsettling: () => ({ turnout: unsettling }),
  breaking: () => ({ turnout: meddling }),
  narrowing: () => ({ turnout: meddling }),
  lingering: () => ({ turnout: lingering() }),
  idle: () => ({ turnout: idle, env: { CODEMACHINE_STALL_ROUNDS: '2' } }),
  steered: () => ({ turnout: asked({ type: 'steer', text: 'Mind the draught.' }) }),
  paused: () => ({ turnout: asked({ type: 'pause' }) }),
  held: () => ({ turnout: asked({ type: 'pause' }) }),
  counted: () => ({ turnout: asked({ type: 'pause' }) }),
  configured: () => ({ turnout: reviewed, scene: { person: PROTECTING } }),
  unpaused: () => ({ turnout: asked({ type: 'pause' }, { type: 'unpause' }) }),
  stopped: () => ({ turnout: asked({ type: 'stop', now: false }) }),
  interrupted: () => ({ turnout: asked({ type: 'interrupt' }) }),
  skipped: () => ({ turnout: asked({ type: 'skip' }) }),
  replanned: () => ({ turnout: asked({ type: 'replan', text: 'Make the parts one by one.' }) }),
  changed: () => ({
    turnout: full,
    args: ['--no-keep-awake', '--fallback', 'mine'],
    scene: { provider: IMPATIENT },
    prepare: ({ place, model }) =>
      writePersonSettings(
        place,
        `[engines.mine]\ncommand = ${JSON.stringify(agentCommand(model.url))}\nnetwork = ["127.0.0.1"]\n`,
      ),
  }),
  windingDown: () => ({ args: ['--no-keep-awake', '--max-tokens', '1'], resumeArgs: ['--max-tokens', '50M'] }),
  keptAwake: () => ({ args: [] }),
  asking: () => ({ turnout: asking }),
  gated: () => ({
    args: ['--no-keep-awake', '--verify', 'test -e parts/2.txt'],
    prepare: ({ place }) => writePersonSettings(place, '[hooks.on_claim]\nrun = "test -e parts/2.txt"\n'),
  }),
  reviewed: () => ({ turnout: reviewed, scene: { person: PROTECTING } }),
  contracted: () => ({ turnout: proving, args: PROVED }),
  proved: () => ({ turnout: proving, args: PROVED }),
}

const chains = Object.entries(eventfulChains).map(
  ([name, points]) => [name, points.map(describePoint).join('; then '), points] as const,
)

promise('R2', 'So does one in which much happens: waits, reviews, gates, a person who breaks in')
describe.concurrent('a session in which much happens comes to the same end when SIGKILL ends', () => {
  test.each(sliceOf(chains))('(%s) %s', async (name, _, points) => {
    const options = sessions[name as keyof typeof sessions]()
    const { events } = await survive(points, tree, options)
    const proof = options.args === PROVED ? { proof: 'proved' } : {}
    expect(eventsOf(events, 'session-ended').at(-1)?.outcome).toMatchObject(proof)
    if (name !== 'changed') return
    expect(eventsOf(events, 'engine-changed')).toMatchObject([{ from: 'codex', to: 'mine', round: 2 }])
    const engines = eventsOf(events, 'round-started').map(({ engine }) => engine)
    expect(engines.slice(engines.indexOf('mine')).every(each => each === 'mine')).toBe(true)
  })
})
