import { execFileSync } from 'node:child_process'
import { mkdtemp, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { readValues } from '../../../src/modes/flow/file/variables.ts'
import { promise } from '../../support/promise.ts'

type Sources = Parameters<typeof readValues>[0]

async function makeFolder(files: Readonly<Record<string, string | Buffer>> = {}) {
  const directory = await realpath(await mkdtemp(join(tmpdir(), 'codemachine-values-')))
  for (const [name, content] of Object.entries(files)) await writeFile(join(directory, name), content)
  const read = async (given: readonly string[], options: Partial<Sources> = {}) =>
    await readValues({
      given,
      file: null,
      directory,
      stdin: async () => 'typed\n',
      secretIn: text => (text.includes('sk-123456') ? 'MODEL_KEY' : null),
      ...options,
    })
  return {
    directory,
    read: async (...args: Parameters<typeof read>) => Object.fromEntries(await read(...args)),
    refused: async (...args: Parameters<typeof read>) =>
      await read(...args).then(
        values => `read: ${JSON.stringify([...values])}`,
        (error: unknown) => `${error}`,
      ),
    [Symbol.asyncDispose]: () => rm(directory, { recursive: true, force: true }),
  }
}

promise(
  'O41',
  'A value of a workflow that is given, in whatever way, is text without control characters and secrets, or is refused with its name',
)
describe('a value of the command line', () => {
  test('is a text, the content of a file, or what comes on the standard input', async () => {
    await using folder = await makeFolder({ 'a.diff': '-a\r\n+b\n' })
    expect(await folder.read(['goal=a=b {{goal}}', 'diff=@a.diff', 'note=@-', 'empty=', 'größe=@a.diff'])).toEqual({
      goal: 'a=b {{goal}}',
      diff: '-a\r\n+b\n',
      note: 'typed\n',
      empty: '',
      größe: '-a\r\n+b\n',
    })
  })

  test('counts before that of a file of values, and the last one of a name before the others', async () => {
    await using folder = await makeFolder({ 'v.json': '{ "a": "file", "b": "file" }' })
    expect(await folder.read(['a=first', 'a=last'], { file: 'v.json' })).toEqual({ a: 'last', b: 'file' })
  })

  test.each([
    ['diff', 'UserError: --var diff has no value; write diff=text, diff=@file or diff=@-.'],
    [
      '=x',
      'UserError: --var "=x" does not begin with the name of a variable; write name=value with a name of at most 100 letters, digits, "_" and "-" that begins with a letter, and is not "steps".',
    ],
    [
      '2nd=x',
      'UserError: --var "2nd=x" does not begin with the name of a variable; write name=value with a name of at most 100 letters, digits, "_" and "-" that begins with a letter, and is not "steps".',
    ],
    [
      'a b=x',
      'UserError: --var "a b=x" does not begin with the name of a variable; write name=value with a name of at most 100 letters, digits, "_" and "-" that begins with a letter, and is not "steps".',
    ],
    [
      'steps=x',
      'UserError: --var "steps=x" does not begin with the name of a variable; write name=value with a name of at most 100 letters, digits, "_" and "-" that begins with a letter, and is not "steps".',
    ],
    ['a={"x": 1}', 'read: [["a","{\\"x\\": 1}"]]'],
    ['a=@', 'UserError: --var a=@ names no file; write a=@file, or a=@- for the standard input.'],
    ['a=@none', 'UserError: --var a=@none: there is no such file; correct the path.'],
    ['a=@.', 'UserError: --var a=@.: the file is a directory; a file is expected.'],
    [
      'a=@binary',
      'UserError: The value of a (binary) has the control character U+0000 in line 2, column 3; write plain text.',
    ],
    ['a=@latin1', 'UserError: --var a=@latin1: the file is not UTF-8 text; save it as UTF-8.'],
    ['a=@large', 'UserError: --var a=@large: the file is longer than 1048576 bytes.'],
    [
      'a=\u001b[31mred',
      'UserError: The value of a (--var) has the control character U+001B in line 1, column 1; write plain text.',
    ],
    [
      'a=\u0085',
      'UserError: The value of a (--var) has the control character U+0085 in line 1, column 1; write plain text.',
    ],
    ['a=\ud800', 'UserError: The value of a (--var) has half a character (a lone surrogate); write it as whole text.'],
    [
      'a=my sk-123456 key',
      'UserError: The value of a (--var) holds the secret MODEL_KEY; agents must not get secrets, so leave it out.',
    ],
  ])('%j is told from others', async (given, said) => {
    await using folder = await makeFolder({
      binary: Buffer.from('a\nbc\0d'),
      latin1: Buffer.from([0x66, 0xfc, 0x72]),
      large: Buffer.alloc(1024 * 1024 + 1, 'x'),
    })
    expect(await folder.refused([given])).toBe(said)
  })

  test('of a pipe is refused and not waited for', async () => {
    await using folder = await makeFolder()
    execFileSync('mkfifo', [join(folder.directory, 'pipe')])
    expect(await folder.refused(['a=@pipe'])).toBe('UserError: --var a=@pipe: the file is not a regular file.')
  })

  test('takes the standard input only once, and at most 1 MiB', async () => {
    await using folder = await makeFolder()
    expect(await folder.refused(['a=@-', 'b=@-'])).toBe(
      'UserError: --var b=@-: another value already reads the standard input; use @- only once.',
    )
    // Two bytes each.
    const stdin = async () => 'ü'.repeat(1024 * 512 + 1)
    expect(await folder.refused(['a=@-'], { stdin })).toBe(
      'UserError: The value of a (from the standard input) is longer than 1.0 MiB; give a part of it.',
    )
  })
})

promise('O41')
describe('a file of values', () => {
  test('holds texts, numbers and true or false, as TOML or as JSON', async () => {
    await using folder = await makeFolder({
      'v.toml': '\ufeffa = "x"\n"b" = 1.10\nc = true\nd = """\ntwo\nlines"""\n',
      'v.JSON': '{"a": "x", "b": 1.5, "c": false, "__proto__": "y"}',
    })
    expect(await folder.read([], { file: 'v.toml' })).toEqual({ a: 'x', b: '1.10', c: 'true', d: 'two\nlines' })
    const values = await readValues({
      given: [],
      file: 'v.JSON',
      directory: folder.directory,
      stdin: async () => '',
      secretIn: () => null,
    })
    expect([...values]).toEqual([
      ['a', 'x'],
      ['b', '1.5'],
      ['c', 'false'],
      ['__proto__', 'y'],
    ])
  })

  test.each([
    ['v.toml', 'a = 1\n[b]\nc = 1\n', 'v.toml:2:1: "b" is a table; a file of values holds only names and values.'],
    ['v.toml', 'a.b = 1\n', 'v.toml:1:1: "a" is a table; a file of values holds only names and values.'],
    [
      'v.toml',
      'x = 1\n  a = 2026-01-01\n',
      'v.toml:2:3: "a" is no text, number, true or false; write it as a text in quotes.',
    ],
    ['v.toml', 'a = []\n', 'v.toml:1:1: "a" is no text, number, true or false; write it as a text in quotes.'],
    [
      'v.toml',
      '"a b" = 1\n',
      'v.toml:1:1: "a b" is no name of a variable; use a name of at most 100 letters, digits, "_" and "-" that begins with a letter, and is not "steps".',
    ],
    ['v.toml', 'a = \n', 'v.toml:1:4: not valid TOML: there is no value after "=".'],
    [
      'v.toml',
      'a = "sk-123456"\n',
      'The value of a (v.toml) holds the secret MODEL_KEY; agents must not get secrets, so leave it out.',
    ],
    ['v.json', '[1]', 'v.json contains no JSON object; write { "name": "value" }.'],
    ['v.json', '{"a": null}', 'v.json: "a" is no text, number, true or false; write it as a text in quotes.'],
    ['v.json', '{"a": {}}', 'v.json: "a" is no text, number, true or false; write it as a text in quotes.'],
    [
      'v.json',
      '{"a": "\\ud800"}',
      'The value of a (v.json) has half a character (a lone surrogate); write it as whole text.',
    ],
    [
      'v.json',
      '{"a": 1,}',
      'v.json: line 1, column 9: "}" is not JSON here; write JSON without comments or trailing commas.',
    ],
    [
      'v.json',
      '{"a": 1, "a": 2}',
      'v.json: line 1, column 10: "a" occurs twice in the same object; write every key once.',
    ],
    ['v.yaml', 'a: 1', '--vars-file v.yaml must end in .toml or .json; rename it.'],
    ['v.json', null, '--vars-file v.json: there is no such file; correct the path.'],
  ])('%s with %j is refused', async (name, content, said) => {
    await using folder = await makeFolder(content === null ? {} : { [name]: content })
    expect(await folder.refused([], { file: name })).toBe(`UserError: ${said}`)
  })
})
