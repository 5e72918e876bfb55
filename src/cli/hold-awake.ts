import type { Cleanup } from '../base/cleanup.ts'
import { type KeptAwake, keepAwake } from '../platform/keep-awake.ts'
import type { WritableByAgents } from '../platform/writable-by-agents.ts'
import type { CliContext } from './context.ts'

/** Begins to keep the machine awake for as long as the run is open. */
export function holdAwake(
  { platform, env, pid, clock }: CliContext,
  where: WritableByAgents,
  opened: Cleanup,
): Promise<KeptAwake> {
  const closing = new AbortController()
  const kept = keepAwake({ platform, env, pid, clock, where, signal: closing.signal })
  opened.defer(async () => {
    closing.abort()
    await (await kept)[Symbol.asyncDispose]()
  })
  return kept
}
