import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { SessionEvent } from '../../src/core/events/events.ts'
import { fold } from '../../src/core/state/fold.ts'
import { emptyState } from '../../src/core/state/state.ts'
import type { OwnStep } from '../../src/core/template.ts'
import { cpuMs } from '../support/cpu-time.ts'
import { created, recorded, SESSION } from '../support/session-events.ts'
import { playToy, type ToyOptions, withToy } from './toy.ts'

const SHA = 'ab'.repeat(32)
const output = (n: number) => ({ n, name: 'plan', file: `${n}-plan.json`, bytes: 9, sha256: SHA, head: 'x' })

test('a session of 100,000 events of steps folds to a state no larger than one of 2,000', () => {
  const templates = withToy({ steps: [] })
  const events = (count: number): SessionEvent[] => [
    { ...created(), template: 'toy' },
    ...Array.from({ length: count }, (_, i): SessionEvent => {
      const step = 1 + (i >> 1)
      if (i % 2 === 0) return { type: 'step-started', step, kind: 'look', name: 'plan' }
      if (i % 4 === 1) return { type: 'looked', step, what: 'plan', result: null, output: output(step) }
      return { type: 'wrote', step, files: [{ path: `f${i % 1000}`, bytes: 1, sha256: SHA }], problem: null }
    }),
  ]
  const sizeAfter = (count: number) =>
    JSON.stringify(recorded(events(count)).reduce((state, event) => fold(state, event, templates), emptyState(SESSION)))
      .length
  // Numbers have more digits later on.
  expect(sizeAfter(100_000)).toBeLessThan(sizeAfter(2_000) * 1.2)
})

test('a look and a write take less than 10 ms each, with all that is journaled of them', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'codemachine-cost-'))
  try {
    const COUNT = 100
    const steps = Array.from(
      { length: 2 * COUNT },
      (_, n): OwnStep =>
        n % 2 === 0
          ? { kind: 'look', what: 'plan' }
          : { kind: 'write', files: [{ path: `docs/${n}.md`, text: 'A plan.\n'.repeat(100) }] },
    )
    const toy: ToyOptions = { steps, looks: { plan: async () => ({ tasks: 500 }) } }
    const before = cpuMs()
    await playToy(toy, { folder })
    expect((cpuMs() - before) / steps.length).toBeLessThan(10)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})
