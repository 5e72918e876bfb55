import { expect, test } from 'vitest'
import { exitOutcome } from '../../../src/engines/codex/classify.ts'

const refused = (code: string) => {
  const error = Object.assign(new Error(`spawn /opt/codex ${code}`), { code })
  return exitOutcome({ reason: 'not-started', error, stderr: '' }, true)
}

test.each(['ENOENT', 'EACCES', 'EPERM', 'ENOEXEC', 'ENOTDIR', 'EISDIR', 'ELOOP', 'ENAMETOOLONG', 'E2BIG'])(
  'a codex that is not started for %s is the person’s to mend',
  code => {
    const message = `codex could not be started: spawn /opt/codex ${code}`
    expect(refused(code)).toEqual({ class: 'config', message })
  },
)

test.each(['EAGAIN', 'ENOMEM', 'EMFILE', 'ENFILE', 'ETXTBSY', 'EWHATEVER'])(
  'a codex that is not started for %s may be started a moment later',
  code => {
    expect(refused(code)).toMatchObject({ class: 'crashed', message: expect.stringContaining(code) })
  },
)

test('an error without a code may pass too', () => {
  expect(exitOutcome({ reason: 'not-started', error: new Error('no'), stderr: '' }, true).class).toBe('crashed')
})
