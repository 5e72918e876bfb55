import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { UserError } from '../../src/base/errors.ts'
import { keyPath, parseToml, readToml, tomlString, tomlTree, tomlValue, topLevel } from '../../src/platform/toml.ts'
import { cpuMs } from '../support/cpu-time.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'toml-'))
})
afterAll(() => rm(folder, { recursive: true }))

test('a file that is not there is none; one that is there has its statements and tables in their order', async () => {
  const path = join(folder, 'a.toml')
  expect(await readToml(path, { name: 'a.toml' })).toBeNull()
  await writeFile(path, 'agents.at_once = 3\n[screen]\nmotion = "full"\n[[gates]]\nrun = "true"')
  const file = await readToml(path, { name: 'a.toml' })
  expect(file && topLevel(file).map(keyPath)).toEqual([['agents', 'at_once'], ['screen'], ['gates']])
})

test('a mistake is told with line and column, and with what the reader asks for', async () => {
  expect(() => parseToml('a = 1\nb = \n', { name: 'x.toml' })).toThrow(
    /^x\.toml:2:4: not valid TOML: there is no value after "="\.$/,
  )
  expect(() => parseToml('a = 1\nb = \n', { name: 'x.toml', mend: 'mend it' })).toThrow(
    /^x\.toml:2:4: not valid TOML: there is no value after "="; mend it\.$/,
  )
  await expect(readToml(folder, { name: 'x.toml', mend: 'mend it' })).rejects.toThrow(
    'x.toml is a directory; a file is expected; mend it.',
  )
})

test.each(['', 'C:\\tools', 'two "words"\n', '\u0000\u007f\u2028', 'größer 😀'])(
  '%j written as TOML is read as it was',
  text => {
    expect(tomlValue(tomlTree(parseToml(`a = ${tomlString(text)}`, { name: 'x.toml' })))).toEqual({ a: text })
  },
)

test('a value of one digit at the very end is read', () => {
  expect(tomlValue(tomlTree(parseToml('a = 7', { name: 'x.toml' })))).toEqual({ a: 7 })
})

test.each(['[__proto__]\nx = 1', '__proto__.x = 1', '__proto__ = { x = 1 }', '[a]\nb = 1\n[__proto__]\nx = 1'])(
  'a key __proto__ is one like any other, and changes no object of the program: %j',
  text => {
    const value = tomlValue(tomlTree(parseToml(text, { name: 'x.toml' })))
    expect(Object.entries(Object(value))).toContainEqual(['__proto__', { x: 1 }])
    expect(Object({}).x).toBeUndefined()
  },
)

test.each([
  ['a text', `a = "${'x'.repeat(200_000)}"`],
  ['lists in lists', `a = ${'['.repeat(200_000)}${']'.repeat(200_000)}`],
])('%s that the parser has no stack for is a mistake of the file, not a bug', (_, text) => {
  expect(() => parseToml(text, { name: 'x.toml' })).toThrow(
    /^x\.toml:1:1: a text in it is longer than 100,000 characters, or its lists are nested too deeply\.$/,
  )
})

test.each([
  ['a = 1\nname\n\n\n', '2:5: not valid TOML: expected equal (=) token; write name = value, and a text in quotes'],
  ['a = [1,\n\n\n', '1:8: not valid TOML: unspecified values are invalid; write a value, or close the list with "]"'],
  ['a = """x\n', '1:9: not valid TOML: unterminated string constant; close it with its quotes'],
  ['[a\n\n', '1:3: not valid TOML: unterminated table-key; close it with "]"'],
  [
    '[agents.提交]\n',
    '1:9: not valid TOML: unexpected character; put a name or text with letters other than a to z in quotes',
  ],
  [
    'größe = 1\n',
    '1:3: not valid TOML: unexpected character; put a name or text with letters other than a to z in quotes',
  ],
  ['a = 1\n\na = 2\n', '3:1: not valid TOML: defining a key multiple times is invalid; leave one of them out'],
])('in %j what is not closed or not there is told where it ought to be', (text, told) => {
  expect(() => parseToml(text, { name: 'x.toml' })).toThrow(new UserError('CM0201', `x.toml:${told}.`))
})

test('a mistake far below the last sign is told in a moment', () => {
  const before = cpuMs()
  expect(() => parseToml(`# =${'\n'.repeat(900_000)}# x\nbad bad`, { name: 'x.toml' })).toThrow(/not valid TOML/)
  expect(cpuMs() - before).toBeLessThan(5000)
})
