import { test } from '../../../support/side-by-side.ts'
import { inState, surviveChange } from './survive.ts'

// All states: killed.long.test.ts

test('a change that is killed while its plan waits, and once it is accepted, asks again or goes on', async () => {
  const manual = { manual: true }
  await surviveChange(
    [
      { victim: 'codemachine', event: 'decision-asked', when: 'after', n: 1 },
      { victim: 'codemachine', event: 'decision-made', when: 'after', n: 1 },
      inState('EXECUTING_TASKS.decomposition'),
    ],
    manual,
  )
})
