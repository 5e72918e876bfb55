import { dirname, resolve } from 'node:path'
import * as v from 'valibot'
import { UserError } from '../base/errors.ts'
import { nearestName, problemOfPrompt, quotedName, truncate } from '../base/text.ts'
import { MOST_GATES } from '../core/events/outcome.ts'
import { lineOfMistake } from '../modes/flow/start/prepare.ts'
import { readBoundedText } from '../platform/files.ts'
import { type TomlNode, tomlNodeAt, tomlProgram, tomlTree } from '../platform/toml.ts'
import { checkToml, line, type TomlMistake, table } from '../platform/toml-check.ts'
import type { Submission } from './jobs.ts'
import {
  MOST_TAGS,
  problemOfTimes,
  problemsOfWish,
  SESSION_ID,
  submissionOf,
  TYPES,
  timeAfter,
  type Wish,
  type WishChecks,
} from './submission.ts'

/** A session in a file of sessions. */
export interface NightRow {
  /** Name for other sessions of the file; null: none. */
  name: string | null
  submission: Submission
}

/** Most bytes of a file, and of all its goals. */
export const MOST_NIGHT_BYTES = 8 * 1024 * 1024
const MOST_GOAL_BYTES = 64 * 1024 * 1024
const MOST_SESSIONS = 10_000
/** Most mistakes that are listed. */
const MOST_TOLD = 20
const SESSIONS = '[[sessions]]'

/**
 * Reads a file of sessions, `night.toml`, in order. Throws a `UserError` with all mistakes, if there are any.
 * @param file its name in mistakes
 * @param path its absolute path, beside which a `goal_file` is looked for
 */
export async function readNight(
  content: string,
  { file, path, checks }: { file: string; path: string; checks: WishChecks },
): Promise<NightRow[]> {
  const program = tomlProgram(content)
  if ('problem' in program) throw refused([lineOfMistake({ file, place: '', ...program })])
  const tree = tomlTree({ text: content, program })
  datesAsWritten(tree)
  const { value, mistakes } = checkToml(nightSchema(checks.now), tree)
  const reader = new NightReader(dirname(path), tree, mistakes, checks)
  const rows = await reader.read(value)
  const found = reader.mistakes.toSorted((one, other) => one.line - other.line || one.column - other.column)
  if (found.length > 0) throw refused(found.map(each => lineOfMistake({ file, ...each })))
  return rows
}

function refused(lines: readonly string[]): UserError {
  const told = lines.slice(0, MOST_TOLD)
  const beyond = lines.length - told.length
  const head =
    lines.length === 1 ? 'Nothing was submitted:' : `Nothing was submitted, because of ${lines.length} mistakes:`
  return new UserError(
    'CM1110',
    [head, ...told, ...(beyond === 0 ? [] : [`And ${beyond} more; fix these first.`])].join('\n'),
  )
}

/** Reads an unquoted date in the file like a quoted one. */
function datesAsWritten(node: TomlNode): void {
  if (node.content instanceof Date) node.content = node.written
  else if (typeof node.content === 'object') for (const member of node.content.values()) datesAsWritten(member)
}

/** Fields of a session by their names in a file. */
const FIELDS = {
  goal: 'goal',
  repo: 'repo',
  ref: 'ref',
  template: 'template',
  verify: 'verify',
  rounds: 'rounds',
  max_time: 'maxTimeMs',
  max_tokens: 'maxTokens',
  max_cost: 'maxCost',
  max_usage: 'maxUsage',
  max_wait: 'maxWaitMs',
  model: 'model',
  effort: 'effort',
  sandbox: 'sandbox',
  network: 'network',
  review: 'review',
  priority: 'priority',
  tags: 'tags',
  not_before: 'notBefore',
  deadline: 'deadline',
  team: 'team',
} as const satisfies Record<string, keyof Wish>

const NAME = /^[A-Za-z][\w.-]{0,63}$/

/** Returns the schema of a file of sessions. */
export function nightSchema(now: number) {
  const { tag, verify, ...types } = TYPES
  const byField: Record<keyof Wish, v.GenericSchema> = {
    ...types,
    verify: v.pipe(v.array(verify), v.maxLength(MOST_GATES)),
    tags: v.pipe(v.array(tag), v.maxLength(MOST_TAGS)),
    notBefore: timeAfter(now),
    deadline: timeAfter(now),
  }
  const said: v.ObjectEntries = Object.fromEntries(
    Object.entries(FIELDS).map(([name, field]) => [name, byField[field]]),
  )
  const shared = { ...said, goal_file: line('a path on one line, such as "goals/api.md"', 1000) }
  const OF_ONE = `it belongs to one session; write it below its line ${SESSIONS}`
  const BELOW = `it belongs below a line [defaults] or ${SESSIONS}`
  return table(
    {
      defaults: table(shared, { hints: { name: OF_ONE, after: OF_ONE } }),
      sessions: v.pipe(
        v.array(
          table(
            {
              ...shared,
              name: v.pipe(
                v.string(),
                v.regex(NAME),
                v.description('a name that begins with a letter: letters, digits, "_", "-" and ".", at most 64'),
              ),
              after: v.pipe(
                v.string(),
                v.check(text => NAME.test(text) || SESSION_ID.test(text)),
                v.description(
                  'the name of another session of this file, or the id of one of the fleet such as "20261121_14"',
                ),
              ),
            },
            {
              hints: {
                tag: 'write tags = ["gpu"]',
                id: 'the fleet gives the id; write name = "…" to name the session within this file',
              },
            },
          ),
        ),
        v.maxLength(MOST_SESSIONS),
        v.metadata({ missing: `begin each session with a line ${SESSIONS}` }),
      ),
    },
    {
      hints: {
        session: `begin each session with a line ${SESSIONS}`,
        ...{ goal: BELOW, repo: BELOW, ref: BELOW, verify: BELOW },
      },
    },
  )
}

type At = Omit<TomlMistake, 'problem'>
type Placed<T> = At & { value: T }
type Path = readonly (string | number)[]
type Written = Readonly<Record<string, unknown>>

/** Fields of a table with their places. */
type Said = { [Key in keyof Wish]?: Placed<Wish[Key]> }

/** A table `[[sessions]]`, before its named sessions are resolved. */
interface Row {
  at: At
  name: Placed<string> | null
  after: Placed<string> | null
  /** Fields, including the defaults. */
  said: Said
}

class NightReader {
  readonly mistakes: TomlMistake[]
  readonly #folder: string
  readonly #tree: TomlNode
  readonly #checks: WishChecks
  readonly #texts = new Map<string, string | null>()
  #goalBytes = 0

  constructor(folder: string, tree: TomlNode, mistakes: readonly TomlMistake[], checks: WishChecks) {
    this.mistakes = [...mistakes]
    this.#folder = folder
    this.#tree = tree
    this.#checks = checks
  }

  async read({
    defaults: usual = {},
    sessions = [],
  }: v.InferOutput<ReturnType<typeof nightSchema>>): Promise<NightRow[]> {
    const defaults = await this.#said(usual, ['defaults'])
    this.#checkTimes(defaults, this.#at())
    const rows: Row[] = []
    // Another value than a table is already reported.
    for (const [index, session] of sessions.entries())
      if (session !== undefined) rows.push(await this.#row(session, ['sessions', index], defaults))
    return this.#submissions(rows)
  }

  #add({ place, line: of, column }: At, problem: string): void {
    this.mistakes.push({ place, line: of, column, problem })
  }

  /** Returns the place of a value; for a missing one, the start of its table. */
  #at(...path: Path): At {
    const { path: place, line: of, column } = tomlNodeAt(this.#tree, path) ?? this.#tree
    return { place, line: of, column }
  }

  #placed<T>(value: unknown, ...path: Path): Placed<T> | null {
    return value === undefined ? null : { value: value as T, ...this.#at(...path) }
  }

  async #row(session: Written, path: Path, defaults: Said): Promise<Row> {
    const own = await this.#said(session, path)
    const said = { ...defaults, ...own }
    const at = this.#at(...path)
    const isMissing = (key: string) => tomlNodeAt(this.#tree, [...path, key]) === null
    const missing = (key: string, mend: string) =>
      this.#add({ ...at, place: `${at.place}.${key}` }, `is missing; write ${mend}`)
    if (said.goal === undefined && isMissing('goal') && isMissing('goal_file'))
      missing('goal', 'goal = "what is to be done", or goal_file = "a path"')
    if (said.repo === undefined && isMissing('repo')) missing('repo', 'repo = "git@host:team/app.git"')
    // If both come from the defaults, the mistake is reported there.
    if (own.notBefore !== undefined || own.deadline !== undefined) this.#checkTimes(said, at)
    return {
      at,
      name: this.#placed(session.name, ...path, 'name'),
      after: this.#placed(session.after, ...path, 'after'),
      said,
    }
  }

  /** Reads and checks the fields of a table. */
  async #said(table: Written, path: Path): Promise<Said> {
    const fields = Object.entries(FIELDS).flatMap(([name, field]) => {
      const placed = this.#placed(table[name], ...path, name)
      return placed === null ? [] : [[field, placed]]
    })
    const said: Said = Object.fromEntries(fields)
    const from = this.#placed<string>(table.goal_file, ...path, 'goal_file')
    if (from !== null) {
      if (said.goal !== undefined)
        this.#add(
          { ...from, ...tomlNodeAt(this.#tree, [...path, 'goal_file'])?.key },
          'there is a goal, too; leave one of them out',
        )
      const value = await this.#textOf(from)
      if (value === null) delete said.goal
      else said.goal = { ...from, value }
    }
    for (const { field, problem } of problemsOfWish(valuesOf(said), this.#checks))
      this.#add(said[field] ?? this.#at(...path), problem)
    return said
  }

  #checkTimes(said: Said, at: At): void {
    const problem = problemOfTimes(valuesOf(said))
    if (problem !== null) this.#add(said.deadline ?? at, problem)
  }

  async #textOf(from: Placed<string>): Promise<string | null> {
    const path = resolve(this.#folder, from.value)
    const known = this.#texts.get(path)
    if (known !== undefined) return known
    const read = await readBoundedText(path, MOST_NIGHT_BYTES)
    const text = read === 'missing' || 'problem' in read ? null : read.text
    this.#texts.set(path, text)
    if (read === 'missing') this.#add(from, `there is no file ${quotedName(from.value)}; name one beside this file`)
    else if ('problem' in read) this.#add(from, `${quotedName(from.value)} ${read.problem}`)
    const problem = text === null ? null : problemOfPrompt(text)
    if (problem !== null) this.#add(from, `${quotedName(from.value)} holds no goal: ${problem}`)
    return text
  }

  #submissions(rows: readonly Row[]): NightRow[] {
    const byName = new Map<string, number>()
    for (const [index, { name }] of rows.entries()) {
      if (name === null) continue
      if (byName.has(name.value))
        this.#add(name, `another session has the name ${quotedName(name.value)} already; use another one`)
      else byName.set(name.value, index)
    }
    const afters = rows.map(({ after }) => this.#after(after, byName))
    this.#refuseCircles(rows, afters)
    return rows.map(({ name, said, at }, index) => {
      const { goal = '', repo = '', ...rest } = valuesOf(said)
      this.#goalBytes += Buffer.byteLength(goal)
      if (this.#goalBytes > MOST_GOAL_BYTES) {
        this.#add(at, 'with this one, all goals together are larger than 64 MiB; use several files')
        this.#goalBytes = Number.NEGATIVE_INFINITY
      }
      return { name: name?.value ?? null, submission: submissionOf({ ...rest, goal, repo }, afters[index] ?? null) }
    })
  }

  #after(after: Placed<string> | null, byName: ReadonlyMap<string, number>): Submission['after'] {
    if (after === null) return null
    const index = byName.get(after.value)
    if (index !== undefined || SESSION_ID.test(after.value)) return index ?? after.value
    const near = nearestName(after.value, [...byName.keys()].slice(0, MOST_COMPARED))
    const mend = near === null ? 'give that session a line name = "…"' : `the nearest is ${quotedName(near)}`
    this.#add(after, `no session of this file has the name ${quotedName(after.value)}; ${mend}`)
    return null
  }

  /** Reports cycles: each session waits for at most one, so a return to the start is a cycle. */
  #refuseCircles(rows: readonly Row[], afters: readonly Submission['after'][]): void {
    const done = new Set<number>()
    for (const start of rows.keys()) {
      const way = new Set<number>()
      let at: Submission['after'] = start
      while (typeof at === 'number' && !done.has(at) && !way.has(at)) {
        way.add(at)
        at = afters[at] ?? null
      }
      if (typeof at === 'number' && way.has(at)) {
        const steps = [...way]
        const circle = [...steps.slice(steps.indexOf(at)), at].map(index => rows[index]?.name?.value ?? '')
        const place = rows[at]?.after
        if (place) this.#add(place, `waits for itself (${truncate(circle.join(' → '), 200)}); leave one of them out`)
      }
      for (const index of way) done.add(index)
    }
  }
}

function valuesOf(said: Said): Partial<Wish> {
  return Object.fromEntries(Object.entries(said).map(([key, placed]) => [key, placed.value]))
}

/** Most names that are compared for a suggestion. */
const MOST_COMPARED = 200
