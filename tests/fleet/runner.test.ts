import { expect, test } from 'vitest'
import type { OutcomeHint } from '../../src/core/events/outcome.ts'
import { asksForIt, hindranceOf } from '../../src/fleet/worker/runner.ts'

const JOB = { goal: 'build X', template: null, gates: [], limits: {} }

test.each<[string, object, OutcomeHint, boolean]>([
  ['a model of its own that codex does not take', { model: 'gpt-nonsense' }, { do: 'mend-codex-configuration' }, true],
  ['an effort of its own that codex does not take', { effort: 'endless' }, { do: 'mend-codex-configuration' }, true],
  ["the worker's own configuration", {}, { do: 'mend-codex-configuration' }, false],
  ["the worker's login", { model: 'gpt-5' }, { do: 'log-in' }, false],
])('a session that is hindered by %s has asked for it or not', (_what, asked, hint, own) => {
  const outcome = { kind: 'needs-person' as const, reason: 'r', hint }
  expect(hindranceOf(outcome)).toBe('r')
  expect(asksForIt({ ...JOB, ...asked }, outcome)).toBe(own)
})
