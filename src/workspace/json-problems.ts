import type * as v from 'valibot'
import { placeOfJsonError } from './json-place.ts'
import type { Parsed } from './memory.ts'

/**
 * How each thing in a file is mended, by the key that it has there; `''`: the whole, `tasks[]`: an entry of the list
 * `tasks`. Goes on after "; " and ends without a full stop.
 */
export type Mends = Readonly<Record<string, string>>

/** Parses JSON that anybody may have written; a byte order mark is dropped. A problem names line and column. */
export function parseJson(text: string): Parsed<unknown> {
  const json = text.replace(/^\uFEFF/, '')
  try {
    return { ok: true, value: JSON.parse(json) }
  } catch {
    const { line, column, found } = placeOfJsonError(json)
    const what = found === null ? 'the file ends too early' : `${JSON.stringify(found)} is not JSON here`
    return {
      ok: false,
      problem: `line ${line}, column ${column}: ${what}; write JSON without comments or trailing commas.`,
    }
  }
}

/** A schema's issue as a sentence with its place and its mend: `tasks[3].done is "yes"; use true or false.` */
export function problemOfIssue(issue: v.BaseIssue<unknown>, mends: Mends): string {
  const keys = issue.path?.map(item => item.key) ?? []
  const place = keys
    .map(key => (typeof key === 'number' ? `[${key}]` : `.${String(key)}`))
    .join('')
    .slice(1)
  const last = keys.at(-1)
  const mend = mends[typeof last === 'number' ? `${String(keys.at(-2))}[]` : String(last ?? '')]
  const what = issue.input === undefined ? 'is missing' : `is ${shown(issue.input)}`
  return `${place === '' ? 'the whole' : place} ${what}; ${mend ?? mends['']}.`
}

/** Whose id a second one has. @param place such as `tasks[4]` */
export function problemOfDuplicate(id: string, place: string): string {
  return `duplicate id ${shown(id)} at ${place}; give every task its own id.`
}

function shown(value: unknown): string {
  if (Array.isArray(value)) return value.length === 0 ? 'an empty list' : 'a list'
  if (value !== null && typeof value === 'object') return 'an object'
  const text = JSON.stringify(value)
  return text.length > 60 ? `${text.slice(0, 59)}…` : text
}
