import type { Command, Reply } from '../../session/command.ts'

/** What a person asks of the session that is shown; whoever passes it on adds the time. */
export type Ask = Command extends infer Each ? (Each extends Command ? Omit<Each, 'at'> : never) : never

/** What the screen's keys and commands set going; the screen itself does nothing but draw. Every sentence is for the person. */
export interface ScreenHost {
  ask(ask: Ask): Promise<Reply>
  /** Enter on a text while a session is shown: it becomes the next one. Answers with a sentence. */
  enqueue(prompt: string): Promise<string>
  /** Takes the last prompt that waits out of the queue, after it has been put where it is kept; whether any waited. */
  takeBack(keep: (prompt: string) => void): Promise<boolean>
  /** Enter on a text while none is. */
  begin(goal: string): void
  /** `/name rest`. */
  command(name: string, rest: string): Promise<void>
  /** Opens the text in the person's editor, with the terminal; null: it stays as it was, which has been said. */
  edit(text: string): Promise<string | null>
  /** Opens the whole log of the session. */
  openLogs(): Promise<void>
  /** Stops the program as Ctrl+Z does, and comes back with `fg`. */
  suspend(): Promise<void>
  /** Ends what this screen runs so that it can be resumed, or only stops watching. */
  leave(): void
  /** The same, without waiting for anything. */
  leaveNow(): void
  /** A text was sent: kept for the next time. */
  remember(text: string): void
}
