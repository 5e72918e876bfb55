import { PassThrough } from 'node:stream'
import { afterAll, expect, test } from 'vitest'
import { runCommandLine } from '../../../../src/doors/cli/entry.ts'
import { type ChangeScene, openRealChangeScene, PROJECT, plans, TWO_TASKS } from '../../../support/change-scene.ts'
import { cliContext } from '../../../support/cli-context.ts'
import { promise } from '../../../support/promise.ts'

const BOUND_MS = 120_000
const ending = new AbortController()
afterAll(() => ending.abort('SIGTERM'))

/** A person at a terminal who reads lines and types answers. */
function sitAt({ place }: ChangeScene, args: readonly string[]) {
  const stdin = Object.assign(new PassThrough(), { isTTY: true })
  const stdout = Object.assign(new PassThrough(), { isTTY: true, columns: 100 })
  const stderr = new PassThrough().resume()
  let shown = ''
  const watchers = new Set<() => void>()
  stdout.setEncoding('utf8').on('data', (text: string) => {
    shown += text
    for (const look of watchers) look()
  })
  const context = cliContext(place, { stdin, stdout, stderr, signal: ending.signal })
  const exitCode = runCommandLine(context, args)
  return {
    exitCode,
    shown: () => shown,
    /** Types a line once this is shown for the nth time. */
    async onceShown(text: string, n: number, line: string): Promise<void> {
      await new Promise<void>((resolve, reject) => {
        const bound = setTimeout(() => reject(new Error(`"${text}" was not shown ${n} times.\n${shown}`)), BOUND_MS)
        const look = () => {
          if (shown.split(text).length <= n) return
          clearTimeout(bound)
          watchers.delete(look)
          resolve()
        }
        watchers.add(look)
        look()
      })
      stdin.write(`${line}\n`)
    },
  }
}

promise('C62')
test('a person at a plain terminal has the plan changed in a line, sees the other one, and accepts it in another', async () => {
  await using scene = await openRealChangeScene(
    {
      ...TWO_TASKS,
      planner: [[plans({ description: 'Write 5 into limit.txt.' })], [plans()]],
    },
    { files: PROJECT },
  )
  const person = sitAt(scene, ['change', '--plain', '--no-keep-awake', 'write the limit'])
  await person.onceShown('Your choice (', 1, 'change "ten, not five"')
  await person.onceShown('Your choice (', 2, '1 gladly')
  expect(await person.exitCode).toBe(0)
  const shown = person.shown()
  expect(shown).toContain('Write 5 into limit.txt.')
  expect(shown).toContain('Write the limit into limit.txt.')
  expect(shown).toContain('sh check.sh')
  expect(scene.begun('planner').at(-1)?.userTexts.at(-1)).toContain('ten, not five')
  expect(scene.begun('executor').at(-1)?.userTexts.at(-1)).toContain('gladly')
})
