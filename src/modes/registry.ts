import type { TemplateKind, TemplateKinds } from '../core/template.ts'
import { agentKind } from './agent/agent.ts'
import { changeKind } from './change/change.ts'
import { flowKind } from './flow/flow.ts'
import { buildKind } from './from-specification/build.ts'
import { goalKind } from './goal/goal.ts'
import { teamKind } from './team/team.ts'

/** The templates of codemachine itself, in the order in which they are listed. */
export const OWN_TEMPLATES: TemplateKinds = byName([buildKind, goalKind, changeKind, agentKind, flowKind, teamKind])

/** The template of a prompt for which nobody has named one. */
export const USUAL_TEMPLATE = goalKind.name

/** The template of an agent that works by itself. */
export const AGENT_CALLS: TemplateKind = agentKind

/** Templates by their names; of two with one name the later one counts. */
function byName(kinds: readonly TemplateKind[]): TemplateKinds {
  return new Map(kinds.map(kind => [kind.name, kind]))
}
