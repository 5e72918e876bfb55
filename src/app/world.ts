import type { Readable, Writable } from 'node:stream'
import type { Clock } from '../base/clock.ts'
import type { Command, Reply } from '../core/contracts/command.ts'
import type { View } from '../core/events/events.ts'
import type { Tone } from '../words/names.ts'

/** The process that a screen is drawn by. */
export interface ScreenProcess {
  /** Where the process hears of its signals. */
  signals: Pick<NodeJS.EventEmitter, 'once' | 'off'>
  /** Writes to stdout before it returns; drops what it does not take. */
  writeNow(text: string): void
  /** Gives the terminal its echo and line editing back. */
  rawModeOff(): void
  /** Calls the listener before an error is shown that ends the program, until the returned function is called. */
  beforeCrash(listener: () => void): () => void
  /** While the action goes on, Ctrl+C is meant for a program that has been given the terminal. */
  withoutInterrupt<T>(action: () => Promise<T>): Promise<T>
  /** Kills what was started, and ends the program. */
  endNow(): void
}

/** What the entry point hands to a command: the only way to the world outside. */
export interface CliContext {
  env: NodeJS.ProcessEnv
  /** Where the command was typed. */
  cwd: string
  home: string
  /** Where programs keep the person's configuration: `$XDG_CONFIG_HOME`, else `~/.config`. Absolute. */
  configHome: string
  platform: NodeJS.Platform
  arch: string
  /** Version of Node. */
  node: string
  pid: number
  /** Node and the program with which this command line can be run once more; left out: it cannot be. */
  self?: { node: string; program: string }
  stdin: Readable & { isTTY?: boolean }
  stdout: Writable & { isTTY?: boolean; columns?: number }
  stderr: Writable & { isTTY?: boolean }
  clock: Clock
  /** Aborted with the signal's name when the person, or the system, asks the program to end. */
  signal: AbortSignal
  /** Where runs are shown; left out: on stdout, as the flags say. */
  display?: Display
  /** What a screen needs of the process beside its streams. */
  host: ScreenProcess
}

/** Told with which exit code a command has ended. */
export type Ended = (exitCode: number) => void

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
