import type { TemplateKind, TemplateKinds } from '../core/template.ts'
import type { ModeParts, Modes } from '../project/modes.ts'
import { agentKind } from './agent/agent.ts'
import { changeKind } from './change/change.ts'
import { flowKind } from './flow/flow.ts'
import { buildKind } from './from-specification/build.ts'
import { goalKind } from './goal/goal.ts'
import { teamKind } from './team/team.ts'

/** The built-in modes in listing order: the kind of their sessions, and their other parts. */
const MODES: readonly { kind: TemplateKind; parts?: () => Promise<ModeParts> }[] = [
  { kind: buildKind },
  { kind: goalKind },
  { kind: changeKind, parts: async () => (await import('./change/start/parts.ts')).changeParts },
  { kind: agentKind },
  { kind: flowKind, parts: async () => (await import('./flow/start/parts.ts')).flowParts },
  { kind: teamKind, parts: async () => (await import('./team/start/parts.ts')).teamParts },
]

/** The built-in templates, by name. */
export const OWN_TEMPLATES: TemplateKinds = new Map(MODES.map(({ kind }) => [kind.name, kind]))

/** Template of a prompt that names none. */
export const USUAL_TEMPLATE = goalKind.name

/** The built-in modes, as a project needs them. */
export const OWN_MODES: Modes = {
  usual: USUAL_TEMPLATE,
  partsOf: async template => (await MODES.find(({ kind }) => kind.name === template)?.parts?.()) ?? null,
}

/** Template of an agent that works alone. */
export const AGENT_CALLS: TemplateKind = agentKind
