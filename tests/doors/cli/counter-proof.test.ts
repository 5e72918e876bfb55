import { expect } from 'vitest'
import { incident, promise } from '../../support/promise.ts'
import { test } from '../../support/side-by-side.ts'
import { PYTHON, playWork, SHELL } from './counter-proof-scene.ts'

test('the files that made a gate pass stand in the report and in done.json', async () => {
  const { exitCode, counterProofs, causes, certificate, card } = await playWork({
    ...SHELL,
    does: 'echo "echo 3" > calc.sh; echo more > notes.txt',
  })
  expect(exitCode).toBe(0)
  expect(causes).toEqual([])
  expect(counterProofs).toMatchObject([
    { gate: 'g', result: 'stands', made: ['calc.sh'], isSmallest: true, doubts: [] },
  ])
  expect(certificate.gates).toMatchObject([{ counterProof: { result: 'stands', made: ['calc.sh'], doubts: [] } }])
  expect(card).toContain('fails on the files from before the work; it passes because of: calc.sh')
})

promise('D71', 'A required gate that passes runs again without the work; if it still passes, done needs a review')
test('a gate that has gone blind is found, and done needs a review that agrees', async () => {
  const { exitCode, counterProofs, causes, certificate, card } = await playWork({
    ...SHELL,
    does: 'echo "exit 0" > scripts/test.sh',
  })
  expect(exitCode).toBe(0)
  expect(causes).toEqual(['counter-proof'])
  expect(counterProofs).toMatchObject([{ result: 'blind', made: ['scripts/test.sh'], doubts: ['blind'] }])
  expect(certificate.gates).toMatchObject([{ counterProof: { result: 'blind', doubts: ['blind'] } }])
  expect(card).toContain('now passes without the work. These files make it pass: scripts/test.sh')
})

incident(
  'false done',
  'A gate that failed at the start was believed when an ignored file made it pass and no other file changed',
  {
    since: '2026-11-29',
    fixed: '2026-12-01',
    foundBy: 'a review of the code',
  },
)
test('a gate that an ignored file alone makes pass needs a review that agrees', async () => {
  const { causes, counterProofs } = await playWork({
    files: { '.gitignore': '.env\n', 'scripts/test.sh': 'grep -qs ok .env\n' },
    gate: 'sh scripts/test.sh',
    does: 'echo ok > .env',
  })
  expect(causes).toEqual(['counter-proof'])
  expect(counterProofs).toMatchObject([{ result: 'blind', made: [], doubts: ['blind'] }])
})

test('a program that ends the runner before it reads the tests is found by what is not read any more', async () => {
  const { counterProofs, causes } = await playWork({
    ...PYTHON,
    does: "printf 'import os\\nos._exit(0)\\n' > argparse.py",
  })
  expect(causes).toEqual(['counter-proof'])
  expect(counterProofs).toMatchObject([
    {
      result: 'stands',
      made: ['argparse.py'],
      unread: ['calc.py', 'tests/__init__.py', 'tests/test_calc.py'],
      tests: { now: null, most: 2 },
      doubts: ['unread', 'fewer-tests'],
    },
  ])
})
