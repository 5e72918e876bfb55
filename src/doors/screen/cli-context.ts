import type { Readable, Writable } from 'node:stream'
import type { View } from '../../core/state/state.ts'
import type { ServedPage } from '../../project/page/served.ts'
import type { Reachable } from '../../project/sessions.ts'
import type { BegunDetached, OwnCommand } from '../../project/start/detached.ts'
import type { World } from '../../project/world.ts'
import type { Tone } from '../../tell/words/names.ts'

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
  /**
   * Gives the terminal back to the shell, below `lines`, and goes on without it; what the process writes from then on goes
   * to the file `log`, and what it starts for that has the environment `env`. Where no shell waits that could take it, `withoutShell` is said. To be called once, when nothing draws
   * on the terminal any more.
   */
  letGo(farewell: { lines: string; withoutShell: string; log: string; env: NodeJS.ProcessEnv }): Promise<void>
}

/** How this process was started, and how it is started once more. */
interface OwnProcess extends OwnCommand {
  /** What was typed behind them. */
  args: readonly string[]
  /** Where it is a runner that `--detach` has started; null: it is not. */
  detached: DetachedRunner | null
}

/** A runner that outlives the terminal which it was typed on. */
interface DetachedRunner {
  /** The file that it writes its output to; absolute. */
  log: string
  /** Tells whoever started it, if they still wait, and lets them go. */
  tell(begun: BegunDetached | ServedPage): void
}

/** What the entry point hands to a command: the world, and the terminal that it was typed on. */
export interface CliContext extends World {
  /** Which program of the package was typed. It begins what is said on stderr. */
  program: 'codemachine' | 'codex-flow'
  stdin: Readable & { isTTY?: boolean }
  stdout: Writable & { isTTY?: boolean; columns?: number }
  stderr: Writable & { isTTY?: boolean }
  /** Where runs are shown; left out: on stdout, as the flags say. */
  display?: Display
  /** What a screen needs of the process beside its streams. */
  host: ScreenProcess
  own: OwnProcess
}

/** Where a run is shown. */
export interface Display {
  view: View
  /** Whether somebody sits before it who can be asked to decide. */
  canAsk: boolean
  /** Whether it is a screen, where a person sees what waits for them; left out: no. */
  hasScreen?: boolean
  /** Whether slash commands can be typed after the end of a session; left out: no. */
  hasSlash?(): boolean
  /** The terminal itself, where one is drawn on. */
  terminal?: { isTTY?: boolean; write(text: string): unknown }
  /** What is said beside the events, such as how to go on: whole lines. */
  say(text: string): void
  /** Shows the card of a session that has ended. `isEndShown`: its outcome, goal and effort are shown just above. */
  card(
    lines: (place: { columns: number; isEndShown?: boolean }) => readonly { text: string; tone: Tone; file?: string }[],
  ): void
  /** Told when a person can reach what runs, and with null when no longer. */
  reach(sessions: Reachable | null): void
}
