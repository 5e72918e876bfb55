import { realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { systemErrorCode, UserError } from '../../base/errors.ts'
import { parseTomlFile } from '../../settings/toml-file.ts'
import { writeFileInside } from '../../workspace/inside-directory.ts'
import { readTextFile } from '../../workspace/read-text-file.ts'
import type { CliContext } from '../context.ts'
import type { RunFlags } from '../flags.ts'
import { settingsOf } from '../open-run.ts'
import { TEMPLATES, type TemplateName } from './templates.ts'

const FILE = 'codemachine.toml'
const MOST_BYTES = 1024 * 1024
/** A person commits it. */
const MODE = 0o644

/**
 * Writes into the project's `codemachine.toml` that this template is what `start` starts, and changes nothing else there.
 * Answers with a sentence for the person. Throws a `UserError` if the file, or what else is set, is not valid.
 */
export async function chooseTemplate(
  context: Pick<CliContext, 'env' | 'home'>,
  directory: string,
  name: TemplateName,
  flags: RunFlags = {},
): Promise<string> {
  const root = await realpath(directory)
  const before = await settingsOf(context, directory, flags).catch(async error => {
    if (!(await isWrongMode(root))) throw error
    return null
  })
  const source = before?.sources.mode
  if (before?.settings.mode === name && source?.layer !== 'environment') {
    return `${name} is chosen already (${source?.place}).`
  }
  await writeMode(root, name)
  const now = await settingsOf(context, directory, flags)
  if (now.settings.mode === name) return `${FILE} says so now: start starts a session of the template ${name}.`
  return `${FILE} says ${name} now, but ${now.sources.mode.place} says ${now.settings.mode}, which counts more.`
}

async function writeMode(root: string, name: TemplateName): Promise<void> {
  const path = join(root, FILE)
  const read = await readTextFile(path, MOST_BYTES)
  if (read.kind === 'broken') throw new UserError(`${FILE}: ${read.problem}`)
  const text = read.kind === 'gone' ? '' : read.text
  try {
    await writeFileInside(root, FILE, withMode(text, name), read.kind === 'text' ? read.state.mode : MODE)
  } catch (error) {
    const code = systemErrorCode(error)
    if (code === null) throw error
    throw new UserError(`${path} cannot be written to (${code}); make its folder one that you can write to.`, {
      cause: error,
    })
  }
}

/** Whether the file has a `mode` that is none: what is chosen mends it. */
async function isWrongMode(root: string): Promise<boolean> {
  const read = await readTextFile(join(root, FILE), MOST_BYTES)
  if (read.kind !== 'text') return false
  const { toml, mode } = partsOf(read.text)
  return mode !== undefined && !TEMPLATES.some(({ name }) => toml.slice(...mode.value.range).slice(1, -1) === name)
}

function partsOf(text: string) {
  const [mark = ''] = /^\uFEFF?/.exec(text) ?? []
  const toml = text.slice(mark.length)
  const keys = parseTomlFile(toml, FILE).body[0].body.filter(node => node.type === 'TOMLKeyValue')
  const mode = keys.find(({ key: { keys: names } }) => names.length === 1 && nameOf(names[0]) === 'mode')
  return { mark, toml, keys, mode }
}

/** The text of a TOML file with that `mode`; a `UserError` if it is not valid. */
function withMode(text: string, name: TemplateName): string {
  const { mark, toml, keys, mode } = partsOf(text)
  const value = `"${name}"`
  if (mode !== undefined) {
    const [start, end] = mode.value.range
    return mark + toml.slice(0, start) + value + toml.slice(end)
  }
  const newline = toml.includes('\r\n') ? '\r\n' : '\n'
  // Before the first table: behind one the key would be its own.
  const last = keys.at(-1)
  if (last === undefined) return `${mark}mode = ${value}${newline}${toml === '' ? '' : newline}${toml}`
  const lineEnd = toml.indexOf('\n', last.range[1])
  const at = lineEnd === -1 ? toml.length : lineEnd + 1
  const before = lineEnd === -1 ? newline : ''
  return `${mark}${toml.slice(0, at)}${before}mode = ${value}${newline}${toml.slice(at)}`
}

function nameOf(key: { type: 'TOMLBare'; name: string } | { type: 'TOMLQuoted'; value: string } | undefined) {
  if (key === undefined) return null
  return key.type === 'TOMLBare' ? key.name : key.value
}
