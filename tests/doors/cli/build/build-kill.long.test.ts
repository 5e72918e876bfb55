import { test } from 'vitest'
import { promise } from '../../../support/promise.ts'
import { survive } from './killed-build.ts'

test('a build goes on by itself when its codexes are killed', async () => {
  await survive([
    { victim: 'codex', event: 'turn-started', when: 'after', n: 1 },
    { victim: 'codex', event: 'agent-started', when: 'after', n: 2 },
  ])
})

promise('R3', 'So does a build, at every phase')
test('a build comes to its end when SIGKILL ends codemachine and all of its codexes at every phase', async () => {
  await survive([
    // Team building.
    { victim: 'both', event: 'turn-started', when: 'after', n: 1 },
    { victim: 'codemachine', event: 'plan-ready', when: 'before', n: 1 },
    { victim: 'both', event: 'agent-started', when: 'after', n: 2 },
    { victim: 'both', event: 'agent-ended', when: 'after', n: 1 },
    { victim: 'codemachine', event: 'tasks-judged', when: 'before', n: 1 },
    // The summary.
    { victim: 'both', event: 'turn-started', when: 'after', n: 1 },
    // The last look.
    { victim: 'both', event: 'turn-started', when: 'after', n: 2 },
  ])
})
