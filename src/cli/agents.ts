import { createRequire } from 'node:module'
import { join } from 'node:path'
import * as v from 'valibot'
import { packageRoot } from '../base/package-root.ts'

const agentsSchema = v.array(
  v.strictObject({
    name: v.string(),
    displayName: v.string(),
    description: v.string(),
    promptPath: v.string(),
    model: v.nullable(v.string()),
    modelReasoningEffort: v.nullable(v.string()),
    enabled: v.boolean(),
  }),
)

/** A named role, as `config/*.agents.js` ships it. `promptPath` is relative to the package's root. */
export type Agent = v.InferOutput<typeof agentsSchema>[number]

/** The agent of the `goal` template. */
export function goalAgent(): Agent {
  const path = join(packageRoot, 'config', 'goal.agents.js')
  const [agent] = v.parse(agentsSchema, createRequire(import.meta.url)(path))
  if (!agent) throw new Error(`${path} has no agent.`)
  return agent
}
