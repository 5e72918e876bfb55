import { test } from 'vitest'
import { survive } from './killed-build.ts'

test('a build goes on by itself when its codexes are killed', async () => {
  await survive([
    { victim: 'codex', event: 'turn-started', when: 'after', n: 1 },
    { victim: 'codex', event: 'agent-started', when: 'after', n: 2 },
  ])
})
