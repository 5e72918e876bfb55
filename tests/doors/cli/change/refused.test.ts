import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { codemachineHere } from '../../../support/in-process.ts'
import { makePlace, type TestPlace } from '../../../support/place.ts'
import { promise } from '../../../support/promise.ts'

const WITHOUT_MODEL = '[providers.local]\nbase_url = "http://127.0.0.1:1/v1"\n'

let place: TestPlace
beforeAll(async () => {
  place = await makePlace('')
  await mkdir(join(place.home, '.config', 'codemachine'), { recursive: true })
  await writeFile(join(place.home, '.config', 'codemachine', 'config.toml'), WITHOUT_MODEL)
})
afterAll(() => place[Symbol.asyncDispose]())

const typed = (args: readonly string[], options: Parameters<typeof codemachineHere>[2] = {}) =>
  codemachineHere(place, ['change', ...args], options)

promise(
  'C60',
  'What a change is begun with is checked before anything begins, and refused in a sentence that says how to mend it',
)
describe('a change that cannot begin is refused in a sentence, and nothing is begun', () => {
  test.each([
    ['without a request', [], 'There is no request; say what to change.'],
    ['with an empty one', ['  '], 'There is no request; say what to change.'],
    ['where the input has none', ['-'], 'The prompt is empty; say what to do.'],
    ['with 0 attempts', ['--fix-attempts', '0', 'x'], '--fix-attempts is "0"; use a whole number from 1 to 10.'],
    ['with 11', ['--fix-attempts', '11', 'x'], '--fix-attempts is "11"; use a whole number from 1 to 10.'],
    ['with half a one', ['--fix-attempts', 'few', 'x'], '--fix-attempts is "few"; use a whole number from 1 to 10.'],
    [
      'with an executor that is mistyped',
      ['--executor', 'locl', 'x'],
      '--executor: there is no provider "locl"; did you mean "local"?',
    ],
    [
      'with one that nobody knows',
      ['--executor', 'elsewhere', 'x'],
      '--executor: there is no provider "elsewhere"; there are codex, ollama, lmstudio, local, and the tables',
    ],
    [
      'with one that has no model',
      ['--executor', 'local', 'x'],
      '--executor: the provider local has no model; add model = "…" to the table [providers.local] of your own config.toml',
    ],
    [
      'with one and none',
      ['--executor', 'local', '--no-local', 'x'],
      '--executor and --no-local cannot be combined; leave one of them out.',
    ],
    ['with an effort of two words', ['--planner-effort', 'very high', 'x'], '--planner-effort is "very high"; use an'],
    ['from a change that there is not', ['--follow-up', '--', 'x'], /work has no earlier change to continue from/],
    ['with a session to follow alone', ['--follow-up', '20260101_1'], 'There is no request; say what to change.'],
    [
      'by the id of a session',
      ['20261123_1'],
      '20261123_1 is a session, not a request. To resume it: codemachine resume 20261123_1. To build on its result: codemachine change --follow-up 20261123_1 "…"',
    ],
    ['from a session that there is not', ['--follow-up', '20260101_1', 'x'], 'No sessions in '],
  ])('%s', async (_which, args, sentence) => {
    const { exitCode, stdout, stderr } = await typed(args)
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' })
    expect(stderr).toMatch(/^codemachine: /)
    expect(stderr).toMatch(sentence)
    expect((await codemachineHere(place, ['list', '--json'])).stdout).toBe('[]\n')
  })

  test('with what it is to say where a person sits at a terminal, and where none does', async () => {
    expect((await typed([], { tty: true })).stderr).toContain(
      'Such as: codemachine change "add rate limiting to the API"',
    )
    expect((await typed([])).stderr).toContain('To read the request from standard input: codemachine change -')
  })
})

test('the setting of an executor that is no provider is told with its place, whatever is asked of codemachine', async () => {
  const { exitCode, stderr } = await typed(['x'], { env: { CODEMACHINE_CHANGE_EXECUTOR: 'olama' } })
  expect({ exitCode, stderr }).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining(
      'CODEMACHINE_CHANGE_EXECUTOR: there is no provider "olama"; did you mean "ollama"?',
    ),
  })
})
