import type { SessionLog } from './session-log.ts'

/** What puts the repository's own settings back if a round changed them. */
export interface RepositoryGuard {
  check(): Promise<{
    restored: readonly string[]
    setAside: string | null
    /** A sentence for each thing that could not be put right. */
    problems: readonly string[]
  } | null>
}

/** Journals what was put back, and what could not be. */
export function tellRestored(log: SessionLog, restored: Awaited<ReturnType<RepositoryGuard['check']>>): void {
  if (!restored) return
  const round = log.state.last?.round ?? 0
  const { restored: paths, setAside, problems } = restored
  if (paths.length > 0) log.emit({ type: 'repository-restored', round, paths, setAside })
  for (const message of problems) log.emit({ type: 'warning', round, message })
}
