import type { Item } from './items.ts'

/** What views may show as it happens and nobody keeps: never journaled, never in `--json`. */
export type LiveEvent =
  /** Comes once a minute while something is waited for. */
  | { type: 'still-waiting'; leftMs: number }
  /** `instance`: the agent whose it is, if that is not the round's own. */
  | { type: 'item-started'; round: number; item: Item; instance?: string }
  | {
      type: 'text-delta'
      round: number
      item: string
      source: 'agent-message' | 'reasoning' | 'plan'
      text: string
      instance?: string
    }
  | { type: 'output-delta'; round: number; item: string; text: string; instance?: string }
