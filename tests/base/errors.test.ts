import { expect, test } from 'vitest'
import { Cleanup, describeError, readShownError, systemErrorCode, UserError } from '../../src/base/errors.ts'
import { templateError } from '../../src/core/template.ts'
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
  const error = new UserError('CM1110', 'Nothing was submitted, because of 2 mistakes:\na\nb', {
    hint: 'Correct them.',
  })
  const { text } = describeError(error)
  expect(text).toBe('codemachine: Nothing was submitted, because of 2 mistakes: (CM1110)\na\nb\n  Correct them.\n')
  expect(error.message).not.toContain('CM1110')
  expect(systemErrorCode(error)).toBe(null)
  expect(readShownError(text)).toEqual({
    text: 'Nothing was submitted, because of 2 mistakes:\na\nb\n  Correct them.',
    code: 'CM1110',
  })
  expect(readShownError('Killed\n')).toEqual({ text: 'Killed', code: null })
})

promise('O140', 'A disk that fails, or too many open files, is one sentence and exit code 4, and no bug')
test('what the system refuses is one sentence without a stack, also where cleaning up after it fails too', () => {
  const refused = Object.assign(new Error('EIO: i/o error, write'), { code: 'EIO' })
  const shown = {
    text: 'codemachine: The system failed: EIO: i/o error, write. (CM0112)\n  codemachine resume continues; codemachine doctor checks the machine.\n',
    exitCode: 4,
  }
  expect(describeError(refused)).toEqual(shown)
  const later = Object.assign(new Error('An error was suppressed during disposal'), {
    name: 'SuppressedError',
    error: new Error('The lock cannot be removed'),
    suppressed: refused,
  })
  expect(describeError(later)).toEqual(shown)
})

test('a failing disk in a step of a template is a fault of the machine, and any other error one of the template', () => {
  const disk = Object.assign(new Error('EIO: i/o error, fsync'), { code: 'EIO' })
  expect(describeError(templateError('change', 'look context', disk))).toMatchObject({
    text: expect.stringContaining('The system failed: EIO: i/o error, fsync. (CM0112)'),
    exitCode: 4,
  })
  expect(describeError(templateError('change', 'look context', new Error('no x')))).toMatchObject({
    text: expect.stringContaining('the template "change" failed in `look context`: no x'),
    exitCode: 1,
  })
})
