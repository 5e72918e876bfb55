import type { Readable, Writable } from 'node:stream'
import type { Clock } from '../base/clock.ts'

/** What the entry point hands to a command: the only way to the world outside. */
export interface CliContext {
  env: NodeJS.ProcessEnv
  /** Where the command was typed. */
  cwd: string
  home: string
  platform: NodeJS.Platform
  arch: string
  pid: number
  stdin: Readable & { isTTY?: boolean }
  stdout: Writable & { isTTY?: boolean; columns?: number }
  stderr: Writable & { isTTY?: boolean }
  clock: Clock
  /** Aborted with the signal's name when the person, or the system, asks the program to end. */
  signal: AbortSignal
}
