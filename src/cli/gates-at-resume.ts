import type { Gate } from '../session/gate.ts'
import type { GateSetting } from '../settings/gate-entries.ts'
import { reachesNetwork, withVerified } from '../settings/gates.ts'
import type { Settings } from '../settings/schema.ts'

/** What may have to pass before done in a session that goes on. */
interface AtResume {
  /** What the session had to pass until now. */
  journaled: readonly Gate[]
  /** What the files and `--verify` say now. */
  loaded: readonly GateSetting[]
  /** What `--verify` says now. */
  verify: readonly string[]
  /** Whether the files are to count anew (`--reread-gates`). */
  reread: boolean
}

/**
 * What has to pass from now on: what it was, for the rounds could write the files since, and what `--verify` adds. None
 * reaches the network where the rounds no longer do.
 */
export function gatesAtResume(
  { journaled, loaded, verify, reread }: AtResume,
  settings: Pick<Settings, 'sandbox' | 'network'>,
): readonly Gate[] {
  const gates = reread ? loaded : withVerified(journaled, verify, settings)
  return reachesNetwork(settings) ? gates : gates.map(gate => ({ ...gate, network: false }))
}
