import type { Command, Reply } from '../session/command.ts'
import type { View } from '../session/view.ts'
import type { Tone } from '../ui/description.ts'

/** How a person reaches the sessions of a run. */
export interface Reachable {
  ask(command: Command): Promise<Reply>
}

/** Where a run is shown. */
export interface Display {
  view: View
  /** The terminal itself, where one is drawn on. */
  terminal?: { isTTY?: boolean; write(text: string): unknown }
  /** What is said beside the events, such as how to go on: whole lines. */
  say(text: string): void
  /** Shows what a session has come to. `isEndShown`: whether its outcome stands just above, with goal and effort. */
  card(lines: (place: { columns: number; isEndShown?: boolean }) => readonly { text: string; tone: Tone }[]): void
  /** Told when a person can reach what runs, and with null when no longer. */
  reach(sessions: Reachable | null): void
}
