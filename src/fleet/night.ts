import { dirname, resolve } from 'node:path'
import * as v from 'valibot'
import { UserError } from '../base/errors.ts'
import { problemOfPrompt, truncate } from '../base/text.ts'
import { filePath, Mistakes, named, TableReader, type ValueType } from '../modes/flow/file/file/table-reader.ts'
import { type TomlNode, tomlTree } from '../modes/flow/file/file/toml-tree.ts'
import type { At, Placed } from '../modes/flow/file/file.ts'
import { lineOfMistake } from '../modes/flow/start/prepare.ts'
import { readBoundedText } from '../platform/files.ts'
import { MOST_GATES, type Submission } from './jobs.ts'
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

/** A session of a file of many. */
export interface NightRow {
  /** By which others of the file name it; null: none. */
  name: string | null
  submission: Submission
}

/** The most bytes of a file, and of all goals that it names. */
export const MOST_NIGHT_BYTES = 8 * 1024 * 1024
const MOST_GOAL_BYTES = 64 * 1024 * 1024
const MOST_SESSIONS = 10_000
/** So many mistakes are told. */
const MOST_TOLD = 20
const SESSIONS = '[[sessions]]'

/**
 * Reads a file of sessions, `night.toml`, in the order of the file. Where there is any mistake, a `UserError` that tells all of them.
 * @param file its name in mistakes
 * @param path its absolute path, beside which a `goal_file` is looked for
 */
export async function readNight(
  content: string,
  { file, path, checks }: { file: string; path: string; checks: WishChecks },
): Promise<NightRow[]> {
  const tree = tomlTree(content)
  if ('problem' in tree) throw refused([lineOfMistake({ file, place: '', ...tree })])
  datesAsWritten(tree)
  const mistakes = new Mistakes(file)
  const rows = await new NightReader(dirname(path), mistakes, checks).read(new TableReader(tree, mistakes))
  const found = mistakes.sorted()
  if (found.length > 0) throw refused(found.map(lineOfMistake))
  return rows
}

function refused(lines: readonly string[]): UserError {
  const told = lines.slice(0, MOST_TOLD)
  const beyond = lines.length - told.length
  const head =
    lines.length === 1 ? 'Nothing is submitted:' : `Nothing is submitted, for there are ${lines.length} mistakes:`
  return new UserError([head, ...told, ...(beyond === 0 ? [] : [`And ${beyond} more; mend these first.`])].join('\n'))
}

/** A date may stand in the file without quotes, and is read like one within them. */
function datesAsWritten(node: TomlNode): void {
  if (node.kind === 'table') for (const { node: member } of node.members.values()) datesAsWritten(member)
  else if (node.kind === 'list') for (const item of node.items) datesAsWritten(item)
  else if (node.value instanceof Date) node.value = node.written
}

/** What a table says, with where each of it stands. */
type Said = { [Key in keyof Wish]?: Placed<Wish[Key]> }

/** A table `[[sessions]]`, before those that it names are looked for. */
interface Row {
  at: At
  name: Placed<string> | null
  after: Placed<string> | null
  /** With what the defaults say. */
  said: Said
}

const NAME = /^[A-Za-z][\w.-]{0,63}$/
const nameType: ValueType<string> = v.pipe(
  v.string(),
  v.regex(NAME),
  v.description('a name that begins with a letter: letters, digits, "_", "-" and ".", at most 64'),
)
const goalFile = filePath('goals/api.md')
const afterType: ValueType<string> = v.pipe(
  v.string(),
  v.check(text => NAME.test(text) || SESSION_ID.test(text)),
  v.description('the name of another session of this file, or the id of one of the fleet such as "20261121_14"'),
)

class NightReader {
  readonly #folder: string
  readonly #mistakes: Mistakes
  readonly #checks: WishChecks
  readonly #time: ValueType<Date>
  readonly #texts = new Map<string, string | null>()
  #goalBytes = 0

  constructor(folder: string, mistakes: Mistakes, checks: WishChecks) {
    this.#folder = folder
    this.#mistakes = mistakes
    this.#checks = checks
    this.#time = timeAfter(checks.now)
  }

  async read(root: TableReader): Promise<NightRow[]> {
    const usual = root.table('defaults', '[defaults]')
    const defaults = usual === null ? {} : await this.#said(usual)
    this.#checkTimes(defaults, root.at)
    usual?.hint(['name', 'after'], `it is said of one session, below its line ${SESSIONS}`)
    usual?.refuseOthers()
    const tables = root.listOfTables('sessions', SESSIONS)
    const written = root.node('sessions')
    if (written === null || (written.kind === 'list' && written.items.length === 0))
      this.#mistakes.add(root.atKey('sessions'), `there are no sessions; begin each with a line ${SESSIONS}`)
    if (tables.length > MOST_SESSIONS)
      this.#mistakes.add(
        root.atKey('sessions'),
        `there are ${tables.length} sessions, and a file may have ${MOST_SESSIONS}; use several files`,
      )
    root.hint(['session'], `begin each session with a line ${SESSIONS}`)
    root.hint(['goal', 'repo', 'ref', 'verify'], `it belongs below a line [defaults] or ${SESSIONS}`)
    root.refuseOthers()
    const rows: Row[] = []
    for (const table of tables.slice(0, MOST_SESSIONS)) rows.push(await this.#row(table, defaults))
    return this.#submissions(rows)
  }

  async #row(table: TableReader, defaults: Said): Promise<Row> {
    const name = table.value('name', nameType)
    const after = table.value('after', afterType)
    const own = await this.#said(table)
    const said = { ...defaults, ...own }
    if (said.goal === undefined && !table.has('goal') && !table.has('goal_file'))
      this.#mistakes.add(table.atKey('goal'), 'is missing; write goal = "what is to be done", or goal_file = "a path"')
    if (said.repo === undefined && !table.has('repo'))
      this.#mistakes.add(table.atKey('repo'), 'is missing; write repo = "git@host:team/app.git"')
    // Where both are those of the defaults it is said there.
    if (own.notBefore !== undefined || own.deadline !== undefined) this.#checkTimes(said, table.at)
    table.hint(['tag'], 'write tags = ["gpu"]')
    table.hint(['id'], 'the fleet gives it; write name = "…" to name it within this file')
    table.refuseOthers()
    return { at: table.at, name, after, said }
  }

  /** Reads and checks what a table says of sessions. */
  async #said(table: TableReader): Promise<Said> {
    const said = withoutNulls({
      goal: await this.#goal(table),
      repo: table.value('repo', TYPES.repo),
      ref: table.value('ref', TYPES.ref),
      template: table.value('template', TYPES.template),
      verify: listIn(table, 'verify', TYPES.verify, MOST_GATES),
      rounds: table.value('rounds', TYPES.rounds),
      maxTimeMs: table.value('max_time', TYPES.maxTimeMs),
      maxTokens: table.value('max_tokens', TYPES.maxTokens),
      maxCost: table.value('max_cost', TYPES.maxCost),
      maxUsage: table.value('max_usage', TYPES.maxUsage),
      maxWaitMs: table.value('max_wait', TYPES.maxWaitMs),
      model: table.value('model', TYPES.model),
      effort: table.value('effort', TYPES.effort),
      sandbox: table.value('sandbox', TYPES.sandbox),
      network: table.value('network', TYPES.network),
      review: table.value('review', TYPES.review),
      priority: table.value('priority', TYPES.priority),
      tags: listIn(table, 'tags', TYPES.tag, MOST_TAGS),
      notBefore: table.value('not_before', this.#time),
      deadline: table.value('deadline', this.#time),
      team: table.value('team', TYPES.team),
    })
    for (const { field, problem } of problemsOfWish(valuesOf(said), this.#checks))
      this.#mistakes.add(said[field] ?? table.at, problem)
    return said
  }

  #checkTimes(said: Said, at: At): void {
    const problem = problemOfTimes(valuesOf(said))
    if (problem !== null) this.#mistakes.add(said.deadline ?? at, problem)
  }

  async #goal(table: TableReader): Promise<Placed<string> | null> {
    const typed = table.value('goal', TYPES.goal)
    const from = table.value('goal_file', goalFile)
    if (table.has('goal') && table.has('goal_file'))
      this.#mistakes.add(table.atKey('goal_file'), 'stands beside a goal; leave one of them out')
    if (from === null) return typed
    const text = await this.#textOf(from)
    return text === null ? null : { ...from, value: text }
  }

  async #textOf(from: Placed<string>): Promise<string | null> {
    const path = resolve(this.#folder, from.value)
    const known = this.#texts.get(path)
    if (known !== undefined) return known
    const read = await readBoundedText(path, MOST_NIGHT_BYTES)
    const text = read === 'missing' || 'problem' in read ? null : read.text
    this.#texts.set(path, text)
    if (read === 'missing') this.#mistakes.add(from, `there is no file ${named(from.value)}; name one beside this file`)
    else if ('problem' in read) this.#mistakes.add(from, `${named(from.value)} ${read.problem}`)
    const problem = text === null ? null : problemOfPrompt(text)
    if (problem !== null) this.#mistakes.add(from, `${named(from.value)} holds no goal: ${problem}`)
    return text
  }

  #submissions(rows: readonly Row[]): NightRow[] {
    const byName = new Map<string, number>()
    for (const [index, { name }] of rows.entries()) {
      if (name === null) continue
      if (byName.has(name.value))
        this.#mistakes.add(name, `another session has the name ${named(name.value)} already; use another one`)
      else byName.set(name.value, index)
    }
    const afters = rows.map(({ after }) => this.#after(after, byName))
    this.#refuseCircles(rows, afters)
    return rows.map(({ name, said, at }, index) => {
      const { goal = '', repo = '', ...rest } = valuesOf(said)
      this.#goalBytes += Buffer.byteLength(goal)
      if (this.#goalBytes > MOST_GOAL_BYTES) {
        this.#mistakes.add(at, 'with this one the goals are larger than 64 MiB together; use several files')
        this.#goalBytes = Number.NEGATIVE_INFINITY
      }
      return { name: name?.value ?? null, submission: submissionOf({ ...rest, goal, repo }, afters[index] ?? null) }
    })
  }

  #after(after: Placed<string> | null, byName: ReadonlyMap<string, number>): Submission['after'] {
    if (after === null) return null
    const index = byName.get(after.value)
    if (index !== undefined || SESSION_ID.test(after.value)) return index ?? after.value
    const near = this.#mistakes.nearest(after.value, [...byName.keys()])
    const mend = near === null ? 'give that session a line name = "…"' : `the nearest is ${named(near)}`
    this.#mistakes.add(after, `no session of this file has the name ${named(after.value)}; ${mend}`)
    return null
  }

  /** Each waits for at most one: whoever comes back to where they began go round in a circle. */
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
        if (place)
          this.#mistakes.add(place, `waits for itself (${truncate(circle.join(' → '), 200)}); leave one of them out`)
      }
      for (const index of way) done.add(index)
    }
  }
}

function listIn<T>(table: TableReader, key: string, type: ValueType<T>, most: number): Placed<readonly T[]> | null {
  if (!table.has(key)) return null
  const items = table.list(key, type, most)
  return { ...table.atKey(key), value: items.map(({ value }) => value) }
}

function valuesOf(said: Said): Partial<Wish> {
  return Object.fromEntries(Object.entries(said).map(([key, placed]) => [key, placed.value]))
}

type Defined<T> = { [Key in keyof T]?: Exclude<T[Key], null> }

function withoutNulls<T extends object>(values: T): Defined<T> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== null)) as Defined<T>
}
