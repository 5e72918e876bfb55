import { expect, test } from 'vitest'
import type { ThreadSpec } from '../../../src/core/engine.ts'
import { type Engine, Engines } from '../../../src/core/engine.ts'

const THREAD: ThreadSpec = { agent: 'a', developerInstructions: 'Do it.', model: null, effort: null }

/** Two engines, and what was done with each. */
function scene(): { engines: Engines; done: string[] } {
  const done: string[] = []
  const engine = (name: string): Engine => ({
    name,
    version: '1',
    hidesFiles: true,
    prepare(thread) {
      done.push(`${name} prepares`)
      return new Engines({}).prepare(thread)
    },
    settle: async () => void done.push(`${name} settles`),
    close: async () => void done.push(`${name} closes`),
  })
  return { engines: new Engines({ one: engine('one'), two: engine('two') }, 'one'), done }
}

test('a thread runs on the engine that it names, else on the usual one', () => {
  const { engines, done } = scene()
  engines.prepare(THREAD)
  engines.prepare({ ...THREAD, engine: 'two' })
  engines.prepare({ ...THREAD, engine: 'one' })
  expect(done).toEqual(['one prepares', 'two prepares', 'one prepares'])
})

test('all engines are settled and closed, also those that no thread has named', async () => {
  const { engines, done } = scene()
  engines.prepare({ ...THREAD, engine: 'two' })
  await engines.settle()
  await engines.close()
  expect(done).toEqual(['two prepares', 'one settles', 'two settles', 'one closes', 'two closes'])
})

test('a round on an engine that there is not ends as a wrong configuration, which names those that there are', async () => {
  const { engines } = scene()
  const thread = { ...THREAD, engine: 'three' }
  const run = { round: 1, input: 'x', onEvent() {}, onLive() {}, onRecord() {} }
  expect(await engines.prepare(thread).run(run)).toEqual({
    class: 'config',
    message: 'There is no engine "three"; use one, two.',
  })
  expect(engines.of(thread).name).toBe('three')
})
