/** Why a round ended; the classes of docs/design.md, "What ends a round". */
export type RoundClass =
  | 'worked'
  | 'interrupted'
  | 'context-full'
  | 'refused'
  | 'window'
  | 'throttle'
  | 'network'
  | 'quota'
  | 'auth'
  | 'config'
  | 'silent'
  | 'crashed'

const USES_UP_A_ROUND = {
  worked: true,
  interrupted: true,
  'context-full': true,
  refused: true,
  window: false,
  throttle: false,
  network: false,
  quota: false,
  auth: false,
  config: false,
  silent: true,
  crashed: false,
} satisfies Record<RoundClass, boolean>

/** Whether a round that ended so counts against the person's limit. */
export function countsAsRound(end: RoundClass): boolean {
  return USES_UP_A_ROUND[end]
}

/** How a round ended. `message` is codex's own words where it gave any. */
export interface RoundOutcome {
  class: RoundClass
  message: string | null
}

/** How a session ended. */
export type SessionOutcome =
  | { kind: 'done'; verified: boolean }
  | { kind: 'limit'; limit: 'rounds' }
  | { kind: 'needs-person'; reason: string; hint: string | null }
  | { kind: 'interrupted'; signal: 'SIGINT' | 'SIGTERM' | 'SIGHUP' }

/** The exit code of an outcome (docs/design.md, "Outcomes and exit codes"). */
export function exitCodeOf(outcome: SessionOutcome): number {
  switch (outcome.kind) {
    case 'done':
      return 0
    case 'limit':
      return 3
    case 'needs-person':
      return 4
    case 'interrupted':
      return outcome.signal === 'SIGTERM' ? 143 : 130
  }
}
