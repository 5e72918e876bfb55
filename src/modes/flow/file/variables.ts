import { basename, extname, resolve } from 'node:path'
import { UserError } from '../../../base/errors.ts'
import { parseJson } from '../../../base/json.ts'
import { formatBytes } from '../../../base/text.ts'
import { readBoundedText } from '../../../platform/files.ts'
import { parseToml, tomlTree } from '../../../platform/toml.ts'
import { isVariableName, VARIABLE_NAME } from './references.ts'

/** Values of variables that a person gave for a run, by name. */
export type GivenValues = ReadonlyMap<string, string>

/** Returns the name of a secret in a text; null: none. */
export type SecretIn = (text: string) => string | null

interface ValueSources {
  /** Value of each `--var`: `key=value`, `key=@file`, `key=@-`. */
  given: readonly string[]
  /** Value of `--vars-file`; null: none. */
  file: string | null
  /** The person's current directory; absolute. */
  directory: string
  /** Reads the standard input to its end. */
  stdin: () => Promise<string>
  secretIn: SecretIn
}

/** Largest value, in bytes. */
export const MOST_VALUE = 1024 * 1024
/** Largest file of values, in bytes. */
const MOST_FILE = 4 * MOST_VALUE
/** Longest name of a variable, in characters. */
const MOST_NAME = 100

/** Reads a person's values: those of `--var` win over those of the file. Throws a `UserError` for a wrong one. */
export async function readValues({ given, file, directory, stdin, secretIn }: ValueSources): Promise<GivenValues> {
  const values = new Map<string, string>()
  const add = (name: string, text: string, from: string) => {
    const problem = valueProblem(text, secretIn)
    if (problem !== null) throw new UserError('CM1003', `The value of ${name} (${from}) ${problem}.`)
    values.set(name, text)
  }
  if (file !== null) {
    for (const { name, text } of await readValuesFile(file, directory)) add(name, text, file)
  }
  let isRead = false
  for (const pair of given) {
    const { name, written } = namedValue(pair)
    if (!written.startsWith('@')) {
      add(name, written, '--var')
    } else if (written === '@-') {
      if (isRead)
        throw new UserError(
          'CM1003',
          `--var ${name}=@-: another value already reads the standard input; use @- only once.`,
        )
      isRead = true
      add(name, await stdin(), 'from the standard input')
    } else {
      add(name, await readValue(name, written.slice(1), directory), written.slice(1))
    }
  }
  return values
}

/** Returns the problem of a value as a clause after its name: `is longer than …`; null: usable. */
export function valueProblem(text: string, secretIn: SecretIn): string | null {
  // UTF-8 is never shorter than the text, so a longer text need not be counted.
  if (text.length > MOST_VALUE || Buffer.byteLength(text) > MOST_VALUE) {
    return `is longer than ${formatBytes(MOST_VALUE)}; give a part of it`
  }
  if (!text.isWellFormed()) return 'has half a character (a lone surrogate); write it as whole text'
  const control = CONTROL.exec(text)
  if (control !== null) return `has ${controlAt(text, control.index)}; write plain text`
  const secret = secretIn(text)
  return secret === null ? null : `holds the secret ${secret}; agents must not get secrets, so leave it out`
}

/** Control characters that no text needs, other than tabs and line ends. */
const CONTROL = /[^\t\n\r\P{Cc}]/u

/** Such as `the control character U+001B in line 3, column 5`. */
function controlAt(text: string, index: number): string {
  const lines = text.slice(0, index).split('\n')
  const code = text.charCodeAt(index).toString(16).toUpperCase().padStart(4, '0')
  return `the control character U+${code} in line ${lines.length}, column ${(lines.at(-1)?.length ?? 0) + 1}`
}

function namedValue(pair: string): { name: string; written: string } {
  const at = pair.indexOf('=')
  const name = at === -1 ? pair : pair.slice(0, at)
  if (!isVariableName(name)) {
    throw new UserError(
      'CM1003',
      `--var ${JSON.stringify(pair.slice(0, MOST_NAME))} does not begin with the name of a variable; write name=value with ${VARIABLE_NAME}.`,
    )
  }
  if (at === -1) {
    throw new UserError('CM1003', `--var ${name} has no value; write ${name}=text, ${name}=@file or ${name}=@-.`)
  }
  return { name, written: pair.slice(at + 1) }
}

async function readValue(name: string, path: string, directory: string): Promise<string> {
  if (path === '')
    throw new UserError(
      'CM1003',
      `--var ${name}=@ names no file; write ${name}=@file, or ${name}=@- for the standard input.`,
    )
  const read = await readBoundedText(resolve(directory, path), MOST_VALUE)
  if (read === 'missing')
    throw new UserError('CM1003', `--var ${name}=@${path}: there is no such file; correct the path.`)
  if ('problem' in read) throw new UserError('CM1003', `--var ${name}=@${path}: the file ${read.problem}.`)
  return read.text
}

interface NamedText {
  name: string
  text: string
}

async function readValuesFile(file: string, directory: string): Promise<NamedText[]> {
  const kind = extname(basename(file)).toLowerCase()
  if (kind !== '.toml' && kind !== '.json') {
    throw new UserError('CM1003', `--vars-file ${file} must end in .toml or .json; rename it.`)
  }
  const read = await readBoundedText(resolve(directory, file), MOST_FILE)
  if (read === 'missing') throw new UserError('CM1003', `--vars-file ${file}: there is no such file; correct the path.`)
  if ('problem' in read) throw new UserError('CM1003', `--vars-file ${file}: the file ${read.problem}.`)
  return kind === '.toml' ? valuesInToml(read.text, file) : valuesInJson(read.text, file)
}

function valuesInToml(text: string, file: string): NamedText[] {
  const { content } = tomlTree(parseToml(text, { name: file }))
  return [...(content instanceof Map ? content : [])].map(([name, { key, content: value, source }]) => {
    const wrong = (problem: string) =>
      new UserError('CM1003', `${file}:${key.line}:${key.column}: ${shown(name)} ${problem}.`)
    if (value instanceof Map) throw wrong(NOT_FLAT)
    if (!isVariableName(name)) throw wrong(NO_NAME)
    // Keep a number's form: `1.10` is more often a version than a number.
    const found = textOfValue(value, source === undefined ? '' : text.slice(...source.range))
    if (found === null) throw wrong(NO_TEXT)
    return { name, text: found }
  })
}

function valuesInJson(text: string, file: string): NamedText[] {
  const parsed = parseJson(text)
  if (!parsed.ok) throw new UserError('CM1003', `${file}: ${parsed.problem}`)
  const { value } = parsed
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new UserError('CM1003', `${file} contains no JSON object; write { "name": "value" }.`)
  }
  return Object.entries(value).map(([name, each]) => {
    if (!isVariableName(name)) throw new UserError('CM1003', `${file}: ${shown(name)} ${NO_NAME}.`)
    const found = textOfValue(each, String(each))
    if (found === null) throw new UserError('CM1003', `${file}: ${shown(name)} ${NO_TEXT}.`)
    return { name, text: found }
  })
}

const NOT_FLAT = 'is a table; a file of values holds only names and values'
const NO_NAME = `is no name of a variable; use ${VARIABLE_NAME}`
const NO_TEXT = 'is no text, number, true or false; write it as a text in quotes'

function textOfValue(value: unknown, number: string): string | null {
  switch (typeof value) {
    case 'string':
      return value
    case 'boolean':
      return String(value)
    case 'number':
    case 'bigint':
      return number
    default:
      return null
  }
}

function shown(name: string): string {
  return JSON.stringify(name.slice(0, MOST_NAME))
}
