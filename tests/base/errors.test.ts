import { expect, test } from 'vitest'
import { Cleanup, describeError, readShownError, systemErrorCode, UserError } from '../../src/base/errors.ts'
import { promise } from '../support/promise.ts'

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

promise('O139')
test('the code of an error stands behind its first line, and the message is without it', () => {
  const error = new UserError('CM1110', 'Nothing is submitted, for there are 2 mistakes:\na\nb', {
    hint: 'Correct them.',
  })
  const { text } = describeError(error)
  expect(text).toBe('codemachine: Nothing is submitted, for there are 2 mistakes: (CM1110)\na\nb\n  Correct them.\n')
  expect(error.message).not.toContain('CM1110')
  expect(systemErrorCode(error)).toBe(null)
  expect(readShownError(text)).toEqual({
    text: 'Nothing is submitted, for there are 2 mistakes:\na\nb\n  Correct them.',
    code: 'CM1110',
  })
  expect(readShownError('Killed\n')).toEqual({ text: 'Killed', code: null })
})
