import { expect, test } from 'vitest'
import { type Demand, type DemandedGate, together } from '../../../src/project/worktrees/demands.ts'

const gate = (name: string, run: string, more: Partial<DemandedGate> & { network?: boolean } = {}): DemandedGate => {
  const { network = false, ...rest } = more
  const none = { status: null, exitCode: null, durationMs: null, before: null }
  return {
    gate: { name, run, required: true, network, timeoutMs: 1000, ...none },
    folder: '',
    files: [],
    isKept: true,
    ...rest,
  }
}
const demand = (gates: DemandedGate[], overrides: string[] = []): Demand => ({ gates, overrides, lookedAt: ['.env'] })

test('a command that both sides name runs once on their merge, as the first side names it', () => {
  const both = together([
    demand([gate('test', 'npm test', { network: true })], ['a=1']),
    demand([gate('the tests', 'npm test'), gate('test', 'make')], ['a=1', 'b=2']),
    demand([gate('test', 'npm test', { folder: 'one' })]),
  ])
  expect(both.gates.map(({ gate: { name, run, network }, folder }) => [name, run, network, folder])).toEqual([
    ['test', 'npm test', true, ''],
    ['test (2)', 'make', false, ''],
    ['test (3)', 'npm test', false, 'one'],
  ])
  expect([both.overrides, both.lookedAt]).toEqual([['a=1', 'b=2'], ['.env']])
})

test('two checks with the same command and other files both run', () => {
  const check = (text: string) => gate('x: S1, check 1', 'sh c.sh', { files: [{ path: 'c.sh', text }] })
  const names = together([demand([check('one')]), demand([check('two'), check('one')])]).gates.map(
    each => each.gate.name,
  )
  expect(names).toEqual(['x: S1, check 1', 'x: S1, check 1 (2)'])
})
