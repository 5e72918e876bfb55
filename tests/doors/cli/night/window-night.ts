import type { Reply } from '../../../../src/demo/model/reply.ts'
import { usageHeaders } from '../../../support/scripted-model.ts'
import type { TestClock } from '../../../support/test-clock.ts'

export const HOUR = 3_600_000

/** What a wait may take longer than the window: a little grace, and a spread. */
export const SPREAD_MS = 60_000

/** Unix time, s, on the clock of the test. */
export const inHours = (clock: TestClock, hours: number) => Math.round((clock.now() + hours * HOUR) / 1000)

/** The answer of a server whose usage window is full. */
export function limitReached(resetsAt: number, headers = true): Reply {
  return {
    kind: 'status',
    status: 429,
    body: { error: { type: 'usage_limit_reached', message: 'limit', resets_at: resetsAt } },
    ...(headers ? { headers: usageHeaders({ primary: { usedPercent: 100, windowMinutes: 300, resetsAt } }) } : {}),
  }
}
