import picomatch from 'picomatch'
import * as v from 'valibot'
import { parseCount } from './count.ts'
import { parseDuration } from './duration.ts'

// What a setting may be. A description goes on after "use …" and is what a person is told who wrote something else.

/** One of some names. */
export const oneOf = <const Names extends readonly [string, ...string[]]>(names: Names) =>
  v.pipe(v.picklist(names), v.description(names.length === 1 ? `"${names[0]}"` : `one of ${quoted(names)}`))

/** Any of some names, none too. */
export const anyOf = <const Names extends readonly [string, ...string[]]>(names: Names) =>
  v.pipe(v.array(v.picklist(names)), v.description(`a list of any of ${quoted(names)}`))

/** A whole number between two, both allowed. */
export const wholeNumber = (min: number, max: number) =>
  v.pipe(
    v.number(),
    v.integer(),
    v.minValue(min),
    v.maxValue(max),
    v.description(`a whole number from ${min} to ${max}`),
  )

/** A number of seconds. */
export const seconds = v.pipe(
  v.number(),
  v.minValue(0.1),
  v.maxValue(3600),
  v.description('a number of seconds from 0.1 to 3600'),
)

/** A number of minutes. */
export const minutes = v.pipe(
  v.number(),
  v.minValue(0.05),
  v.maxValue(1440),
  v.description('a number of minutes from 0.05 to 1440'),
)

/** Written with its unit, such as `8h`; ms once it is parsed. */
export const duration = v.pipe(
  v.string(),
  v.transform(parseDuration),
  v.number(),
  v.minValue(1000),
  v.maxValue(365 * 24 * 60 * 60 * 1000),
  v.description('a time with its unit from 1 second to 365 days, such as "8h", "90m" or "1h30m"'),
)

/** As `duration`, for one command. */
export const shortDuration = v.pipe(
  v.string(),
  v.transform(parseDuration),
  v.number(),
  v.minValue(1000),
  v.maxValue(24 * 60 * 60 * 1000),
  v.description('a time with its unit from 1 second to 24 hours, such as "90s", "10m" or "1h30m"'),
)

/** A number of tokens, written as one or with `k` or `M`. */
export const tokens = v.pipe(
  v.union([v.number(), v.string()]),
  v.transform(parseCount),
  v.number(),
  v.minValue(1),
  v.maxValue(1e12),
  v.description('a whole number of tokens up to 1000000M, such as 5000000, "5M" or "500k"'),
)

/** From 1 to 100, with or without `%`. */
export const percent = v.pipe(
  v.union([
    v.number(),
    v.pipe(
      v.string(),
      v.regex(/^\d+(\.\d+)? ?%$/),
      v.transform(text => Number.parseFloat(text)),
    ),
  ]),
  v.minValue(1),
  v.maxValue(100),
  v.description('a percentage from 1 to 100, such as 90 or "90%"'),
)

/** A truth value. */
export const trueOrFalse = v.pipe(v.boolean(), v.description('true or false'))

/** One line that is not blank, of so many characters at most. */
export const line = (description: string, most = 10_000) =>
  v.pipe(v.string(), v.maxLength(most), v.regex(/^\P{Cc}*[^\s\p{Cc}]\P{Cc}*$/u), v.description(description))

/** A line for a shell. */
export const command = line('a command on one line, such as "npm test"', 4000)

/** Names of files with `*`, relative to the work directory. One that could name no file in there would protect nothing. */
export const globs = v.pipe(
  v.array(
    v.pipe(line('', 500), v.regex(/^(?![!/]|\.\/|[a-z]:)(?!.*(?:^|\/)\.\.(?:\/|$))[^\\]*[^\\/]$/i), v.check(canBeRead)),
  ),
  v.maxLength(200),
  v.description(
    'a list of globs relative to the work directory, without ".." or an open bracket, such as ["tests/**", "package.json"]',
  ),
)

/** A small word, such as an effort that a model knows. */
export const word = (description: string) => v.pipe(v.string(), v.regex(/^[a-z]+$/), v.description(description))

const argument = v.pipe(v.string(), v.regex(/^[^\0]*[^\s\0][^\0]*$/))

/** A program and its arguments. Not by a relative path: that would lie in the work directory, where agents write. */
export const commandLine = v.pipe(
  v.tupleWithRest([v.pipe(argument, v.regex(/^(?:[^/\\]+$|[/\\]|[a-z]:[/\\])/i))], argument),
  v.metadata({ secret: true }),
  v.description(
    'a list of texts, first the program by its name or absolute path, such as ["notify-send", "codemachine"]',
  ),
)

/** An http or https URL; it may hold credentials. */
export const webAddress = v.pipe(
  v.string(),
  v.regex(/^https?:\/\/[^\s\p{Cc}]+$/iu),
  v.check(text => URL.canParse(text)),
  v.metadata({ secret: true }),
  v.description('an http or https URL, such as "https://example.org/hook"'),
)

/** The same, or null for none. */
export function orNull<const S extends v.GenericSchema>(schema: S) {
  return v.pipe(v.nullable(schema), v.metadata(v.getMetadata(schema)), v.description(v.getDescription(schema) ?? ''))
}

/** A bracket that is never closed is most likely a slip. */
function canBeRead(glob: string): boolean {
  try {
    picomatch.makeRe(glob, { strictBrackets: true })
    return true
  } catch {
    return false
  }
}

function quoted(names: readonly string[]): string {
  return names.map(name => `"${name}"`).join(', ')
}
