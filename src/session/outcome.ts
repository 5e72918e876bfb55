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

/** Whether a round that ended so counts against the person's limit; a silent one does once it has worked. */
export function countsAsRound(end: RoundClass, hasWorked: boolean): boolean {
  return end === 'silent' ? hasWorked : USES_UP_A_ROUND[end]
}

/** How a round ended. `message` is codex's own words where it gave any. */
export interface RoundOutcome {
  class: RoundClass
  message: string | null
  /** When codex said that it may be tried again: Unix time, ms; left out if it did not. */
  retryAt?: number
}

/** What shows that a session does not get on. */
export type StallReason = 'nothing-changed' | 'same-refusal'

/** How a person ends a session: by a signal, `codemachine stop`, or `codemachine skip`. */
export type EndedBy = 'SIGINT' | 'SIGTERM' | 'SIGHUP' | 'stop' | 'skip'

/** How a session ended. */
export type SessionOutcome =
  | { kind: 'done'; verified: boolean }
  | { kind: 'limit'; limit: 'rounds' | 'time' | 'tokens' }
  /** `goalOnly`: what has to be mended is the goal, and other sessions can go on. */
  | { kind: 'needs-person'; reason: string; hint: string | null; goalOnly?: true }
  | { kind: 'stalled'; rounds: number; why: StallReason }
  | { kind: 'interrupted'; by: EndedBy }

/** The exit code of an outcome (docs/design.md, "Outcomes and exit codes"). */
export function exitCodeOf(outcome: SessionOutcome): number {
  switch (outcome.kind) {
    case 'done':
      return 0
    case 'limit':
      return 3
    case 'needs-person':
      return 4
    case 'stalled':
      return 5
    case 'interrupted':
      return outcome.by === 'SIGTERM' ? 143 : 130
  }
}
