import type { TemplateKind, TemplateKinds } from '../core/template.ts'
import type { ModeParts, Modes } from '../project/modes.ts'
import { agentKind } from './agent/agent.ts'
import { changeKind } from './change/change.ts'
import { flowKind } from './flow/flow.ts'
import { buildKind } from './from-specification/build.ts'
import { goalKind } from './goal/goal.ts'
import { teamKind } from './team/team.ts'

/** The modes of codemachine itself, in the order in which they are listed: the kind of their sessions, and what else they bring. */
const MODES: readonly { kind: TemplateKind; parts?: () => Promise<ModeParts> }[] = [
  { kind: buildKind },
  { kind: goalKind },
  { kind: changeKind, parts: async () => (await import('./change/start/parts.ts')).changeParts },
  { kind: agentKind },
  { kind: flowKind, parts: async () => (await import('./flow/start/parts.ts')).flowParts },
  { kind: teamKind, parts: async () => (await import('./team/start/parts.ts')).teamParts },
]

/** The templates of codemachine itself, by name. */
export const OWN_TEMPLATES: TemplateKinds = new Map(MODES.map(({ kind }) => [kind.name, kind]))

/** The template of a prompt for which nobody has named one. */
export const USUAL_TEMPLATE = goalKind.name

/** What the modes of codemachine itself bring to a project. */
export const OWN_MODES: Modes = {
  usual: USUAL_TEMPLATE,
  partsOf: async template => (await MODES.find(({ kind }) => kind.name === template)?.parts?.()) ?? null,
}

/** The template of an agent that works by itself. */
export const AGENT_CALLS: TemplateKind = agentKind
