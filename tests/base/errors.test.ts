import { expect, test } from 'vitest'
import { Cleanup } from '../../src/base/errors.ts'

test('what has to be undone is undone the last thing first, each after the one before it, and whatever happens to the others', async () => {
  const undone: string[] = []
  const undo = (name: string) => async () => {
    undone.push(`${name} begins`)
    await Promise.resolve()
    undone.push(name)
  }
  const all = new Cleanup()
  all.defer(undo('lock'))
  all.defer(() => Promise.reject(new Error('the journal is gone')))
  all.use({ [Symbol.asyncDispose]: undo('codex') })
  const handedOn = all.move()
  await all[Symbol.asyncDispose]()
  expect(undone).toEqual([])
  await expect(handedOn[Symbol.asyncDispose]()).rejects.toThrow('the journal is gone')
  expect(undone).toEqual(['codex begins', 'codex', 'lock begins', 'lock'])
  await handedOn[Symbol.asyncDispose]()
  expect(undone).toHaveLength(4)
})
