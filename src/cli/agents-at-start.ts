import { type Agent, type Agents, loadAgents } from '../agents/agent.ts'
import { type OfferedModels, withOfferedModels } from '../codex/offered-models.ts'
import type { AgentProfile } from '../codex/profile-file.ts'
import type { ProfilesUpToDate } from '../codex/profiles.ts'
import type { Records } from '../session/records.ts'
import type { Settings } from '../settings/schema.ts'
import type { ChosenCodex } from './codex-options.ts'
import type { CliContext } from './context.ts'
import { modelsAtHand } from './models-at-hand.ts'
import { profilesAtStart } from './profiles-at-start.ts'

/** What the person has set for all agents. */
type Chosen = Pick<Settings, 'model' | 'effort'>

/** The agents of `config/*.agents.js` as they run here. */
export interface AgentsAtStart {
  /** `model` and `modelReasoningEffort`: what a thread is started with. Null: codex's default. */
  agents: Agents
  profiles: ProfilesUpToDate
  /** What codex said of its models; null if it was not asked. */
  offered: OfferedModels | null
  /** Sentences for the person. */
  remarks: readonly string[]
}

/**
 * Loads the agents, lays the person's model and effort over theirs, and brings their profiles up to date. `asks`: whether
 * codex is asked which models it offers, which takes up to 10 s; without it the models in profiles that are there stay.
 * `inProfiles`: what the profiles get, for what is said for this run alone is not for the next one to find.
 * Throws a `UserError` for agents or a configuration that a person has to mend.
 */
export async function agentsAtStart(
  context: Pick<CliContext, 'clock' | 'platform' | 'signal'>,
  records: Pick<Records, 'folder' | 'directory'>,
  codex: Pick<ChosenCodex, 'binary' | 'home'>,
  options: { settings: Chosen; inProfiles: Chosen; overrides: readonly string[]; asks: boolean },
): Promise<AgentsAtStart> {
  const { settings, inProfiles, overrides, asks } = options
  const agents = loadAgents()
  const offered = asks ? await modelsAtHand(context, records, codex, overrides) : null
  const { agents: fitted, remark } = asChosen(allOf(agents), offered, settings)
  const enabled = asChosen(allOf(agents), offered, inProfiles).agents.filter(agent => agent.enabled)
  const keepModels = offered === null && inProfiles.model === null
  const profiles = await profilesAtStart(codex, enabled, { keepModels })
  const byName = new Map(fitted.map(agent => [agent.name, agent]))
  const asItRuns = (agent: Agent): Agent => {
    const byHand = profiles.byHand.get(agent.name)
    return byHand === undefined ? (byName.get(agent.name) ?? agent) : asSet({ ...agent, ...byHand }, settings)
  }
  return {
    agents: { main: agents.main.map(asItRuns), sub: agents.sub.map(asItRuns), goal: asItRuns(agents.goal) },
    profiles,
    offered,
    remarks: [...(remark === null ? [] : [remark]), ...profiles.remarks],
  }
}

/** The agents with the models that they can have, and what there is to say of those that they cannot. */
function asChosen(
  agents: readonly Agent[],
  offered: OfferedModels | null,
  chosen: Chosen,
): { agents: Agent[]; remark: string | null } {
  // A model that the person has named is theirs, whatever codex lists.
  const isAsked = offered !== null && chosen.model === null
  const { agents: found, remark } = isAsked ? withOfferedModels(agents, offered) : { agents, remark: null }
  return { agents: found.map(agent => asSet(agent, chosen)), remark }
}

function asSet<T extends AgentProfile>(agent: T, { model, effort }: Chosen): T {
  return { ...agent, model: model ?? agent.model, modelReasoningEffort: effort ?? agent.modelReasoningEffort }
}

function allOf({ main, sub, goal }: Agents): Agent[] {
  return [...main, ...sub, goal]
}
