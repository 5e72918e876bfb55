import * as v from 'valibot'
import { quotedName } from '../../../base/text.ts'
import { MOST_GATES } from '../../../core/events/outcome.ts'
import {
  command,
  line,
  oneOf,
  shortDuration,
  type TomlAbout,
  table,
  trueOrFalse,
  wholeNumber,
} from '../../../platform/toml-check.ts'
import { MOST_ITEMS, MOST_RETRIES, MOST_STEPS, slugOf } from './plan.ts'
import { firstReference, isVariableName, VARIABLE_NAME } from './references.ts'

const about = <const Schema extends v.GenericSchema>(schema: Schema, says: TomlAbout) =>
  v.pipe(schema, v.metadata(says))

/** A text where `{{name}}` would look like a placeholder. */
const verbatim = <const Schema extends v.GenericSchema>(schema: Schema) => about(schema, { refuse: refusedReference })

function refusedReference(text: string): string | null {
  const reference = firstReference(text)
  if (reference === null) return null
  return `codemachine fills in no ${reference} here. Write the value itself; references work only in the template of an input, and in when`
}

/** A text without control characters, except tabs and line ends. */
const text = (description: string, most: number) =>
  v.pipe(v.string(), v.maxLength(most), v.regex(/^[\P{Cc}\t\r\n]*$/u), v.description(description))

const filePath = (example: string) => verbatim(line(`a path on one line, such as ${JSON.stringify(example)}`, 1000))

const PROMPT_EXAMPLE = 'prompts/review.md'
const MOST_TEMPLATE = 1024 * 1024
const MOST_OUTPUTS = 20
const MOST_INCLUDED = 20

const engine = v.pipe(
  v.string(),
  v.regex(/^[a-z][a-z0-9-]{0,39}$/),
  v.description('"codex", "codemachine", "mock", or another engine, such as "claude"'),
)
const model = line('the name of a model, such as "gpt-5"', 200)
const bin = verbatim(line('the name or path of a program, such as "codex"', 1000))
const argument = verbatim(line('a text on one line, such as "--color=never"', 1000))
const agentOfStep = line('the name of one of the tables [agents.NAME]', 200)
const ENV = 'a workflow file cannot set environment variables; set them in your own shell'
const OF_ENGINE = 'it is a key of an engine; write it below a line [engines.codex]'

const agents = v.record(
  v.pipe(
    v.string(),
    // It is shown, and begins file names.
    v.regex(/^[\p{L}\p{N}_](?:[\p{L}\p{M}\p{N} _.-]{0,58}[\p{L}\p{M}\p{N}_-])?$/u),
    v.check(name => slugOf(name) !== ''),
    v.description('letters, digits, "_", "-", "." and single spaces between them, at most 60'),
  ),
  table(
    {
      engine,
      model,
      prompt: about(filePath(PROMPT_EXAMPLE), {
        missing: `write prompt = ${JSON.stringify(PROMPT_EXAMPLE)}, the path of its instructions`,
      }),
    },
    { hints: { bin: OF_ENGINE, args: OF_ENGINE, env: OF_ENGINE } },
  ),
)

const output = table({
  kind: oneOf(['stdout', 'file']),
  path: filePath('COMMIT_MESSAGE.md'),
  append: trueOrFalse,
  field: v.pipe(
    v.string(),
    v.regex(/^[^.\p{Cc}]{1,200}(\.[^.\p{Cc}]{1,200})*$/u),
    v.description('a field of the answer, such as "notes"'),
  ),
})

/** Fields of a step, in the newer form of the file. */
const stepEntries = {
  id: about(line('a name of lower-case letters, digits and dashes, such as "run-tests"', 200), { refuse: refusedId }),
  // A blank one counts as none.
  description: v.pipe(
    v.string(),
    v.regex(/^\P{Cc}{0,500}$/u),
    v.description('a text on one line of at most 500 characters, such as "commit-message"'),
  ),
  agent: agentOfStep,
  run: verbatim(command),
  engine,
  model,
  prompt: filePath(PROMPT_EXAMPLE),
  input: table({
    template: about(text(`a text of at most ${MOST_TEMPLATE} characters`, MOST_TEMPLATE), {
      missing: 'write template = "…"; the agent gets this text',
    }),
  }),
  schema: filePath('answer.schema.json'),
  rounds: wholeNumber(1, 1_000),
  verify: v.pipe(v.array(verbatim(command)), v.maxLength(MOST_GATES)),
  retries: wholeNumber(0, MOST_RETRIES),
  approve: trueOrFalse,
  timeout: shortDuration,
  when: line('a condition on one line, such as "{{steps.test.exit}} != 0"', 1000),
  continue_on_error: trueOrFalse,
  for_each: v.pipe(
    v.union([v.string(), v.pipe(v.array(v.string()), v.maxLength(MOST_ITEMS))]),
    v.description(`"{{steps.ID.answer.FIELD}}", another reference, or a list of at most ${MOST_ITEMS} texts`),
  ),
  needs: v.pipe(v.array(line('the id of an earlier step, such as "test"', 200)), v.maxLength(100)),
  sandbox: oneOf(['read-only']),
  output: v.union([output, v.pipe(v.array(output), v.maxLength(MOST_OUTPUTS))]),
}

function refusedId(id: string): string | null {
  const slug = slugOf(id)
  if (slug === id) return null
  const mend = slug === '' ? 'use letters or digits, such as "run-tests"' : `write id = ${quotedName(slug)}`
  return `is not an id; an id has lower-case letters, digits and single dashes, at most 60; ${mend}`
}

/** `header`: table of a workflow. `key`: name of a step's agent field. */
const workflow = (header: string, key: 'agent' | 'use') => {
  const { agent, ...older } = stepEntries
  const entries: typeof stepEntries =
    key === 'agent' ? stepEntries : ({ ...older, use: agent } as unknown as typeof stepEntries)
  const input = `it belongs below a line [${header}.steps.input]`
  const output = `it belongs below a line [${header}.steps.output]`
  const other = `in this form of the file a step names its agent with ${key} = "…"`
  const hints = { template: input, kind: output, path: output, append: output, field: output, agent: other, use: other }
  return table(
    {
      description: text('a text of at most 10,000 characters without control characters', 10_000),
      steps: v.pipe(
        v.array(table(entries, { hints: { ...hints, bin: OF_ENGINE, args: OF_ENGINE, env: OF_ENGINE } })),
        v.maxLength(MOST_STEPS),
        v.metadata({ missing: `begin each step with a line [[${header}.steps]]` }),
      ),
    },
    { hints: { name: 'write the name of the workflow at the top of the file, before the first table' } },
  )
}

/** A workflow file: `workflow` in the newer form, `workflows` in the older. */
export const flowFileSchema = table(
  {
    name: line('a name on one line, such as "commit_flow"', 100),
    include: v.pipe(v.array(filePath('common.workflow.toml')), v.maxLength(MOST_INCLUDED)),
    defaults: table({ engine, mock: trueOrFalse, max_parallel: wholeNumber(1, 8) }),
    engines: table(
      {
        codex: table({ bin, args: v.pipe(v.array(argument), v.maxLength(100)) }, { hints: { env: ENV } }),
        codemachine: table(
          {
            bin,
            args: v.pipe(
              v.array(v.string()),
              v.maxLength(0),
              v.description('an empty list; the engine codemachine takes no arguments'),
            ),
          },
          { hints: { env: ENV } },
        ),
      },
      { hints: { mock: 'the engine mock has no settings; leave the table out' } },
    ),
    agents,
    workflow: workflow('workflow', 'agent'),
    workflows: v.record(
      v.pipe(v.string(), v.regex(/^\P{Cc}{1,100}$/u), v.description('one line of at most 100 characters')),
      workflow('workflows.NAME', 'use'),
    ),
    vars: v.record(
      v.pipe(v.string(), v.check(isVariableName), v.description(VARIABLE_NAME)),
      about(
        v.pipe(
          v.union([
            v.string(),
            v.boolean(),
            v.number(),
            v.strictObject({ run: command }),
            v.strictObject({ file: filePath('x.diff') }),
          ]),
          v.description('a text, { run = "a command" } or { file = "a path" }'),
        ),
        { refuse: (value: { run?: string; file?: string }) => refusedReference(value.run ?? value.file ?? '') },
      ),
    ),
  },
  {
    hints: {
      steps: 'begin each step with a line [[workflow.steps]]',
      step: 'begin each step with a line [[workflow.steps]]',
      engine: 'it belongs below a line [defaults]',
      mock: 'it belongs below a line [defaults]',
      max_parallel: 'it belongs below a line [defaults]',
    },
  },
)

/** The values of a file as written; those with mistakes are left out. */
export type Written = v.InferOutput<typeof flowFileSchema>
export type WrittenStep = v.InferOutput<ReturnType<typeof table<typeof stepEntries>>> & { use?: string | undefined }
export type WrittenOutput = v.InferOutput<typeof output>
