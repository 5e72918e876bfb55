import { dirname } from 'node:path'
import * as v from 'valibot'
import { UserError } from '../../base/errors.ts'
import { nearestName } from '../../base/text.ts'
import type { AgentTable, AgentTables } from '../../core/shapes/agent.ts'
import type { TomlFile } from '../../platform/toml.ts'
import { AGENTS, shortened, type WrittenField, writtenAgents, wrongValue } from './entries.ts'
import { EFFORT, line, trueOrFalse, word } from './schema.ts'

/** The name of an agent: of files and profiles, too. */
const agentName = v.pipe(v.string(), v.regex(/^[a-z][a-z0-9]*(-[a-z0-9]+)*$/), v.maxLength(40))

const FIELDS = {
  prompt: v.pipe(
    v.string(),
    v.maxLength(500),
    // Not on another drive, above the file or in a home directory.
    v.regex(/^(?![\\/~]|[a-z]:)(?!(?:.*[\\/])?\.\.(?:[\\/]|$))\P{Cc}*[^\s\p{Cc}\\/.]\P{Cc}*$/iu),
    v.description(`a path below the folder of this file, without "..", such as "agents/security-expert.md"`),
  ),
  model: line('the name of a model', 200),
  effort: word(EFFORT),
  enabled: trueOrFalse,
  description: line('one line of at most 400 characters that says what it is for', 400),
} as const

type Fields = { [Name in keyof typeof FIELDS]?: v.InferOutput<(typeof FIELDS)[Name]> }

/**
 * The agents of a TOML file, checked but for their prompts. Throws a `UserError` of one sentence, with the place, for the
 * first mistake of a person's file; of a project's, which an agent can write, what cannot be used is passed over.
 * @param path where the file lies, absolute
 */
export function agentTables(file: TomlFile, of: AgentTable['of'], path: string): AgentTables {
  const remarks: string[] = []
  const passOver = ({ message }: UserError) => {
    if (remarks.length < MOST_REMARKS) remarks.push(`${message} It is passed over.`)
    else if (remarks.length === MOST_REMARKS) remarks.push(`${file.name} has more such mistakes, which are not told.`)
  }
  const byName = new Map<string, WrittenField[]>()
  for (const field of writtenAgents(file, of, passOver)) {
    const fields = byName.get(field.table)
    if (fields === undefined) byName.set(field.table, [field])
    else fields.push(field)
  }
  const tables = [...byName.values()].flatMap(fields => {
    try {
      return [tableOf(fields, of, dirname(path))]
    } catch (error) {
      if (of !== 'project' || !(error instanceof UserError)) throw error
      passOver(error)
      return []
    }
  })
  const more = tables.slice(MOST_AGENTS).map(({ place }) => place)
  if (more.length === 0) return { tables, remarks }
  const problem = new UserError(`${more[0]}: there are ${tables.length} agents; ${MOST_AGENTS} are the most.`)
  if (of !== 'project') throw problem
  passOver(problem)
  return { tables: tables.slice(0, MOST_AGENTS), remarks }
}

/** How many one file may have. */
const MOST_AGENTS = 50

/** How many mistakes of one file are told. */
const MOST_REMARKS = 20

function tableOf(written: readonly WrittenField[], of: AgentTable['of'], folder: string): AgentTable {
  const [{ table: name, place } = { table: '', place: '' }] = written
  if (!v.is(agentName, name)) {
    throw new UserError(
      `${place}: "${shortened(name)}" is no name for an agent; use lower-case letters, digits and single dashes, at most 40 characters, such as [${AGENTS}.security-expert].`,
    )
  }
  let fields: Fields = {}
  for (const field of written) fields = { ...fields, ...fieldIn(field) }
  const places = Object.fromEntries(written.map(({ key, place: at }) => [key, at]))
  return { name, of, place, places, folder, ...fields }
}

function fieldIn({ table, key, value, written, place }: WrittenField): Fields {
  const schema = Object.entries<v.GenericSchema>(FIELDS).find(([name]) => name === key)?.[1]
  if (schema === undefined) {
    const known = Object.keys(FIELDS)
    const near = nearestName(key, known)
    const mend = near === null ? `those of an agent are ${known.join(', ')}.` : `did you mean "${near}"?`
    throw new UserError(`${place}: unknown key "${AGENTS}.${table}.${shortened(key)}"; ${mend}`)
  }
  if (!v.is(schema, value)) throw new UserError(`${place}: ${AGENTS}.${table}.${key} ${wrongValue(schema, written)}`)
  return { [key]: value }
}
