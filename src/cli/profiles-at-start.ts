import type { AgentProfile } from '../codex/profile-file.ts'
import { bringProfilesUpToDate, type ProfilesUpToDate } from '../codex/profiles.ts'
import type { ChosenCodex } from './codex-options.ts'

/**
 * Brings the agents' profiles up to date, where codex's home is codemachine's own; writes nothing into a person's home, in
 * which no profile is usable then. `keepModels`: as for `bringProfilesUpToDate`.
 */
export async function profilesAtStart(
  { home, binary }: Pick<ChosenCodex, 'home' | 'binary'>,
  agents: readonly AgentProfile[],
  { keepModels }: { keepModels: boolean },
): Promise<ProfilesUpToDate> {
  if (home.owner === 'person') return { remarks: [], byHand: new Map(), usable: new Set(), unreadable: new Map() }
  return await bringProfilesUpToDate({ codexHome: home.path, codexVersion: binary.version, agents, keepModels })
}
