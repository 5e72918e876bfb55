import type { UsageWindow } from '../../session/limits.ts'
import type { SessionState } from '../../session/state.ts'

/** The window of the account's usage limits that is fuller, of those that have not been renewed by `now` (Unix time, ms). */
export function usedWindow(
  { primaryWindow, secondaryWindow }: Pick<SessionState, 'primaryWindow' | 'secondaryWindow'>,
  now: number,
): UsageWindow | null {
  const known = [primaryWindow, secondaryWindow].filter(window => window !== null)
  const current = known.filter(({ resetsAt }) => resetsAt === null || resetsAt > now)
  return current.reduce<UsageWindow | null>(
    (fuller, window) => (fuller === null || window.usedPercent > fuller.usedPercent ? window : fuller),
    null,
  )
}
