import * as v from 'valibot'
import { UserError } from '../base/errors.ts'
import type { SettingInfo } from './schema.ts'

/** Which of the places a setting came from; a later one counts more. */
export type Layer = 'defaults' | 'person' | 'project' | 'environment' | 'flag'

/** One setting as someone wrote it. */
export interface Entry {
  info: SettingInfo
  layer: Layer
  value: unknown
  /** The value as it was written, for showing. */
  written: string
  /** Where it was written: `codemachine.toml:3`, `CODEMACHINE_ROUNDS`, `--rounds`. */
  place: string
}

/**
 * A setting of a place that knows texts only: it means the text, the number, the truth value or the list (a JSON array)
 * that the setting takes.
 */
export function entryOfText(info: SettingInfo, layer: Layer, place: string, text: string): Entry {
  const number = /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : text
  const truth = text === 'true' ? true : text === 'false' ? false : text
  const value = [text, number, truth, listIn(text)].find(meaning => v.is(info.schema, meaning)) ?? text
  return { info, layer, value, written: JSON.stringify(text), place }
}

/** Refuses a value that the setting cannot have, in one sentence. */
export function checkEntry(entry: Entry): void {
  if (v.is(entry.info.schema, entry.value)) return
  const is = entry.info.secret ? 'is wrong (not shown, as it may hold a secret)' : `is ${shortened(entry.written)}`
  throw new UserError(`${subjectOf(entry)} ${is}; use ${v.getDescription(entry.info.schema)}.`)
}

/** What a sentence about an entry begins with: the place, and in a file the name too. */
export function subjectOf({ layer, info, place }: Entry): string {
  switch (layer) {
    case 'defaults':
      return `${place}: ${info.key}`
    case 'person':
    case 'project':
      return `${place}: ${info.toml}`
    case 'environment':
    case 'flag':
      return place
  }
}

function listIn(text: string): unknown {
  if (!text.trimStart().startsWith('[')) return text
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** On one line of at most 60 characters. */
export function shortened(text: string): string {
  const line = text.replace(/\s+/g, ' ')
  return line.length > 60 ? `${line.slice(0, 59)}…` : line
}
