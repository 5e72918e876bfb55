import type { Readable, Writable } from 'node:stream'
import type { Clock } from '../base/clock.ts'
import type { Display } from './display.ts'

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
