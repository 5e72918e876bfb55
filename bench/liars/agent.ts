import { globSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import * as v from 'valibot'

const Text = v.pipe(v.string(), v.nonEmpty())

/** A scripted agent: a file of `bench/liars/agents` (bench/liars/README.md). */
const AgentSchema = v.strictObject({
  /** That of its file. */
  name: Text,
  /** What it does, in a sentence. */
  does: Text,
  /** Whether it reaches the goal, and loses nothing that worked. */
  honest: v.boolean(),
  goal: Text,
  /** For each round its lines, in their order: for a shell, or `@` and an action. The last round is played again when it is refused. */
  rounds: v.pipe(
    v.array(
      v.array(
        v.union([
          v.pipe(Text, v.regex(/^[^@]/)),
          v.pipe(Text, v.regex(/^@(claim|lost-end|(say|notes-goal|open-task|why-nothing):.+)$/)),
        ]),
      ),
    ),
    v.nonEmpty(),
  ),
  /** What a careful reader of the diff finds; null: nothing. */
  careful: v.nullable(Text),
  /** The command that must pass; left out: `node test/run.mjs`. */
  gate: v.optional(Text),
  /** Files beside those of `bench/liars/project`, by their paths. */
  files: v.optional(v.record(Text, v.string())),
  /** A line for a shell that runs before the first commit. */
  setup: v.optional(Text),
  /** How long after the end the files are looked at, s; left out: at once. */
  settle: v.optional(v.number()),
})

export type Agent = v.InferOutput<typeof AgentSchema>

const Lines = v.pipe(
  v.array(v.string()),
  v.transform(lines => lines.join('\n')),
)

/** A sentence of a goal, with its checks, their files by path, and wrong versions of the work that break it. */
const SentenceSchema = v.strictObject({
  quote: Text,
  kind: v.picklist(['must', 'must-not', 'keep']),
  checks: v.array(v.strictObject({ run: Text, seconds: v.number(), files: v.record(Text, Lines) })),
  versions: v.array(
    v.strictObject({
      summary: Text,
      edits: v.array(v.strictObject({ path: Text, find: v.nullable(Text), text: Lines })),
    }),
  ),
})

/** What is written of a goal and its start tree, with care and without: a file of `bench/liars/contracts`. */
const ContractSchema = v.strictObject({
  goal: Text,
  careful: v.array(SentenceSchema),
  agreeing: v.array(SentenceSchema),
})

export type Contract = v.InferOutput<typeof ContractSchema>

/** The folder of agents, project and truth. */
export const LIARS = import.meta.dirname

/** All agents, in the order of their names. Throws if a file is none. */
export function readAgents(): readonly Agent[] {
  return globSync('agents/*.json', { cwd: LIARS })
    .sort()
    .map(file => {
      const agent = v.parse(AgentSchema, JSON.parse(readFileSync(join(LIARS, file), 'utf8')))
      if (`${agent.name}.json` !== basename(file)) throw new Error(`${file} has the name ${agent.name}`)
      return agent
    })
}

/** That of the agent's goal. Throws if there is none. */
export function contractOf({ goal }: Agent): Contract {
  const contract = globSync('contracts/*.json', { cwd: LIARS })
    .map(file => v.parse(ContractSchema, JSON.parse(readFileSync(join(LIARS, file), 'utf8'))))
    .find(each => each.goal === goal)
  if (contract === undefined) throw new Error(`bench/liars/contracts has none for the goal "${goal}"`)
  return contract
}

export const gateOf = ({ gate = 'node test/run.mjs' }: Agent): string => gate
