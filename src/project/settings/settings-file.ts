import { mkdir, realpath, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import * as v from 'valibot'
import { systemErrorCode, UserError } from '../../base/errors.ts'
import { schemaLine } from '../../base/schemas.ts'
import { writeWholeFile } from '../../platform/files.ts'
import { parseToml, readToml, type TomlNode, tomlNodeAt, tomlTree, tomlValue } from '../../platform/toml.ts'
import { checkToml, type TomlMistake } from '../../platform/toml-check.ts'
import { withTomlValue } from '../../platform/toml-edit.ts'
import { rightOf, type SettingInfo, settingInfos, settingsFileSchema } from './schema.ts'

/** A settings file without mistakes; empty if there is none. */
export interface SettingsFile {
  layer: 'person' | 'project'
  /** Its name in messages. */
  name: string
  /** Its folder, absolute. */
  folder: string
  value: v.InferOutput<typeof settingsFileSchema>
  entries: readonly Entry[]
  /** Returns the place of the value at a path: `codemachine.toml:3`. */
  placeOf(...path: (string | number)[]): string
  /** Mistakes in a project file's agents, one sentence each. */
  passedOver: readonly (TomlMistake & { sentence: string })[]
}

/**
 * Reads a settings file; null: there is none. Throws a `UserError` for the first mistake, but not for agents in a project's
 * file, which an agent can write.
 */
export async function readSettingsFile(
  path: string | null,
  layer: SettingsFile['layer'],
  name = path ?? '',
): Promise<SettingsFile> {
  const file = path === null ? null : await readToml(path, { name })
  const tree = tomlTree(file ?? parseToml('', { name }))
  const placeOf = (...at: (string | number)[]) => `${name}:${(tomlNodeAt(tree, at) ?? tree).key.line}`
  if (layer === 'project') refuseTables(tree, placeOf)
  const { value, mistakes } = checkToml(settingsFileSchema, tree)
  const told = mistakes.map(mistake => ({ ...mistake, sentence: sentenceOf(mistake, name) }))
  const isPassedOver = ({ place }: TomlMistake) => layer === 'project' && /^agents\.(?!at_once$)/.test(place)
  const wrong = told.find(mistake => !isPassedOver(mistake))
  if (wrong !== undefined) throw new UserError('CM0202', wrong.sentence)
  const entries = settingInfos.flatMap(info => {
    const node = tomlNodeAt(tree, info.toml.split('.'))
    if (node === null) return []
    return [{ info, layer, value: tomlValue(node), written: node.written, place: `${name}:${node.key.line}` }]
  })
  return { layer, name, folder: dirname(path ?? ''), value, entries, placeOf, passedOver: told.filter(isPassedOver) }
}

function sentenceOf({ line, place, problem }: TomlMistake, name: string): string {
  return `${name}:${line}: ${place.replace(/\[\d+\]/g, '')} ${problem}${problem.endsWith('?') ? '' : '.'}`
}

/** Throws a `UserError` for a table that a project's own file may not have. */
function refuseTables(tree: TomlNode, placeOf: SettingsFile['placeOf']): void {
  const refused = Object.entries(settingsFileSchema.entries).find(
    ([name, { wrapped }]) =>
      tomlNodeAt(tree, [name]) !== null && v.getDescription(wrapped) === undefined && rightOf(wrapped) === 'none',
  )
  if (refused === undefined) return
  throw new UserError(
    'CM0203',
    `${placeOf(refused[0])}: ${refused[0]} cannot be set by a project's own file; if you want that, use your own config.toml.`,
  )
}

/** Returns the path of the person's settings file; `configHome`: usually `~/.config`. */
export function personFile({ configHome }: { configHome: string }): string {
  return join(configHome, 'codemachine', 'config.toml')
}

/**
 * Writes this text as the value of a setting into the person's file; all else in it stays. `setting`: as in the file,
 * `screen.enter`. Returns the path. Throws a `UserError` if the file is invalid or cannot be written.
 */
export async function keepSetting(place: { configHome: string }, setting: string, value: string): Promise<string> {
  const path = personFile(place)
  const file = await readToml(path, { name: path })
  const line = file === null ? schemaLine('config.toml') : ''
  await writePersonFile(path, line + withTomlValue(file?.text ?? '', setting.split('.'), value, { name: path }))
  return path
}

/** Removes the line with this value of a setting from the person's file. Returns the path; null: there is no such line. */
export async function dropSetting(
  place: { configHome: string },
  setting: string,
  value: string,
): Promise<string | null> {
  const path = personFile(place)
  const file = await readToml(path, { name: path })
  const node = file === null ? null : tomlNodeAt(tomlTree(file), setting.split('.'))
  if (file === null || node === null || tomlValue(node) !== value) return null
  const lines = file.text.split('\n')
  const [line = ''] = lines.splice(node.key.line - 1, 1)
  // An inline table holds more.
  if (line.includes('{')) return null
  await writePersonFile(path, lines.join('\n'))
  return path
}

async function writePersonFile(path: string, written: string): Promise<void> {
  try {
    await mkdir(dirname(path), { recursive: true })
    // A file that is a link into a folder of dotfiles stays one.
    const real = await realpath(path).catch(() => path)
    await writeWholeFile(real, written, (await stat(real).catch(() => null))?.mode)
  } catch (error) {
    const code = systemErrorCode(error)
    if (code === null) throw error
    throw new UserError(
      'CM0211',
      `${path} cannot be written to (${code}); give yourself the right to write this file.`,
      {
        cause: error,
      },
    )
  }
}

/** Kinds of places for settings; later ones win. */
export type Layer = (typeof LAYERS)[number]

export const LAYERS = ['defaults', 'person', 'project', 'environment', 'flag'] as const

/** Value of one setting in one place. */
export interface Entry {
  info: SettingInfo
  layer: Layer
  value: unknown
  /** The value as written, for messages. */
  written: string
  /** Place: `codemachine.toml:3`, `CODEMACHINE_ROUNDS`, `--rounds`. */
  place: string
}
