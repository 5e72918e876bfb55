import { describe, expect, test } from 'vitest'
import { isShortSecret, problemOfKey, problemOfValue } from '../../../src/core/shapes/secrets.ts'

describe('the name of a secret', () => {
  test.each(['A', 'OPENAI_API_KEY', 'DB_PASSWORD2', 'DOCKER_PASSWORD', 'NODE_AUTH_TOKEN', 'A'.repeat(64)])(
    'can be %s',
    key => expect(problemOfKey(key)).toBeNull(),
  )

  test.each([
    'PATH',
    'HOME',
    'LD_PRELOAD',
    'LD_',
    'DYLD_INSERT_LIBRARIES',
    'NODE_OPTIONS',
    'PYTHONPATH',
    'PYTHON',
    'PYTHONSTARTUP',
    'BASH_ENV',
    'ENV',
    'IFS',
    'SHELL',
    'GIT_SSH_COMMAND',
    'SSH_AUTH_SOCK',
    'CODEX_HOME',
    'CODEMACHINE_HOME',
    'NPM_CONFIG_REGISTRY',
    'TMPDIR',
    'PERL5OPT',
    'DOCKER_HOST',
    'HTTPS_PROXY',
  ])('is never %s, which changes what programs do', key => {
    expect(problemOfKey(key)).toBe(
      `${key} cannot be the name of a secret, because it changes how programs work; use another one, such as MY_${key}.`,
    )
  })

  test.each(['', 'a', 'Api', '1KEY', '_KEY', 'A-B', 'A B', 'A\n', 'A=b', 'KÖNIG', '../A', '\x1b[31m'])(
    'is capital letters, digits and _, with a letter first: not %j',
    key => {
      expect(problemOfKey(key)).toContain('cannot be the name of a secret; use capital letters')
      expect(problemOfKey(key)).toMatch(/^[\x20-\x7e]+$/)
    },
  )

  test('has at most 64 characters, and a long one is not repeated', () => {
    expect(problemOfKey('A'.repeat(2_000_000))).toBe(
      'The name of a secret has at most 64 characters; this one has 2000000.',
    )
  })
})

describe('the value of a secret', () => {
  test('is 1 byte to 64 KiB of UTF-8, over any number of lines', () => {
    for (const value of ['x', 'a\r\nb\n\tc', 'ü'.repeat(32 * 1024), Buffer.from('漢')]) {
      expect(problemOfValue(value)).toBeNull()
    }
  })

  test('is not empty, larger, binary or broken, and the sentence does not have it', () => {
    expect(problemOfValue('')).toBe('The value is empty; a secret has at least one byte.')
    expect(problemOfValue('ü'.repeat(32 * 1024 + 1))).toBe('The value has more than 64 KiB.')
    expect(problemOfValue('a\0b')).toBe('The value contains a zero byte, and a variable cannot.')
    expect(problemOfValue(Buffer.from([0xc3]))).toBe('The value is not UTF-8 text.')
    expect(problemOfValue('\ud800')).toBe('The value is not UTF-8 text.')
  })

  test('is short under 8 characters, white space around it not counted', () => {
    expect([' 1234567\n', '12345678'].map(isShortSecret)).toEqual([true, false])
  })
})
