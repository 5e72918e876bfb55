/** What a text asks for that is a command: one that there is, or `nearest`, which was probably meant. */
export type CommandIntent =
  | { kind: 'command'; name: string; rest: string }
  | { kind: 'unknown-command'; name: string; nearest: string | null }

/** What a key asks for that is not the composer's to do; `unhandled`: it means nothing to a composer. */
export type ComposerIntent =
  | { kind: 'submit'; text: string }
  | { kind: 'steer'; text: string }
  | CommandIntent
  | { kind: 'take-back' }
  | { kind: 'open-editor' }
  | { kind: 'help' }
  | { kind: 'exit' }
  | { kind: 'interrupt' }
  | { kind: 'unhandled' }

/** The keys that ask for the same thing whatever has been written. */
export const FIXED_INTENTS: ReadonlyMap<string, ComposerIntent> = new Map<string, ComposerIntent>([
  ['alt+up', { kind: 'take-back' }],
  ['ctrl+g', { kind: 'open-editor' }],
  ['escape', { kind: 'interrupt' }],
])
