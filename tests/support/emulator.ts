import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { spawn } from '@lydell/node-pty'
import xterm from '@xterm/headless'
import { BIN } from './codemachine.ts'
import { bytesOfKey, inApplicationMode, type Key } from './emulator-keys.ts'
import { closeTerminal, followLife, pidOf } from './emulator-life.ts'
import { followModes, type TerminalModes } from './emulator-modes.ts'
import { allRows, cellAt, type ScreenCell, visibleRows } from './emulator-screen.ts'
import { type EndInShell, SHELL_OSC, shellFor } from './emulator-shell.ts'
import { inWholeUpdates } from './emulator-updates.ts'
import { type Awaited, type WaitOptions, waitFor } from './emulator-wait.ts'
import { measureAsTodaysTerminals } from './emulator-widths.ts'
import type { TestPlace } from './place.ts'

export interface EmulatorOptions {
  /** 80 if not said. */
  columns?: number
  /** 24 if not said. */
  rows?: number
  /** Beyond the place's; undefined takes one away. */
  env?: Record<string, string | undefined>
  /** What to run in place of the built command line. */
  command?: readonly string[]
  /** Where; the place's work directory if not said. */
  cwd?: string
  /** The terminal answers no query. */
  mute?: boolean
  /** What it answers when it is asked for its background; `dark` if not said. */
  background?: 'dark' | 'light'
  /** For how long it may run, ms; 280,000 if not said. */
  lifeMs?: number
}

/** What a person sees and does at a terminal. */
export interface Terminal {
  /** The rows that are seen, without the blanks at their ends. */
  screen(): string[]
  /** What has scrolled out of the normal screen, and that screen. */
  all(): string[]
  cursor(): { x: number; y: number; visible: boolean }
  /** A cell of the screen, counted from 0 at the top left. */
  cellAt(x: number, y: number): ScreenCell
  /** Resolves when the screen shows it; rejects, with the screen, after a bounded time or when the program ends without. */
  until(what: Awaited, options?: WaitOptions): Promise<void>
  /** The same over `all()`. */
  untilInAll(what: Awaited, options?: WaitOptions): Promise<void>
  /** Sends the keys at once; wait for what Esc does before the next key, or the two are one. */
  press(...keys: Key[]): void
  type(text: string): void
  /** As a terminal pastes: newlines are returns; in brackets if the program has switched them on. */
  paste(text: string): void
  resize(columns: number, rows: number): void
  modes(): TerminalModes
  title(): string
  /** All that the program has written. */
  bytes(): string
}

/** A program that draws in a terminal which is read back as a person sees it. Disposing of it ends it. */
export interface Drawn extends Terminal, AsyncDisposable {
  ended: Promise<{ exitCode: number | null }>
}

/** The same in a real pseudo-terminal. */
export interface Emulator extends Drawn {
  /** `stty -a` as it is now, without the size. */
  stty(): Promise<string>
  /** The same as it was before the program was started. */
  sttyAtStart(): string
  /** Of the program. */
  pid(): Promise<number>
  /** Sends a signal to the program. */
  kill(signal: NodeJS.Signals): Promise<void>
  /** The terminal is gone, as when its window is closed: SIGHUP, and reading and writing fail; nobody hears the exit code. */
  hangUp(): void
  /** Resolves when the program has stopped (Ctrl+Z). */
  stopped(): Promise<void>
  /** What a person types in the shell to let a stopped program go on. */
  foreground(): void
  ended: Promise<EndInShell>
}

/** Starts `codemachine args`, or `options.command`, there. */
export function startInEmulator(place: TestPlace, args: readonly string[], options: EmulatorOptions = {}): Emulator {
  const { columns = 80, rows = 24, command = [process.execPath, BIN], cwd = place.directory } = options
  const shell = shellFor([...command, ...args], place.root)
  const env = terminalEnvironment({ ...place.env, ...options.env })
  const pty = spawn(shell.program, shell.args, { name: 'xterm-256color', cwd, env, cols: columns, rows })
  const { terminal, xterm, write, look } = emulate(options, {
    send: bytes => pty.write(bytes),
    resize: (columns, rows) => pty.resize(columns, rows),
    isOver: () => life.isOver(),
  })
  const life = followLife(pty, shell, xterm, options.lifeMs)
  pty.onData(write)
  life.ended.then(look, look)
  return {
    ...terminal,
    stty: () => stty(shell.tty()),
    sttyAtStart: () => withoutSize(shell.stty()),
    pid: () => pidOf(shell),
    async kill(signal) {
      process.kill(await pidOf(shell), signal)
    },
    hangUp: () => closeTerminal(pty),
    stopped: life.stopped,
    foreground: () => pty.write('fg\n'),
    ended: life.ended,
    [Symbol.asyncDispose]: life.dispose,
  }
}

/** What is at the other end of an emulated terminal. */
interface Program {
  send(bytes: string): void
  resize(columns: number, rows: number): void
  isOver(): boolean
}

interface Emulated {
  terminal: Terminal
  xterm: xterm.Terminal
  write(data: string): void
  /** Resolves when all that was written is drawn. */
  drawn(): Promise<void>
  /** To be called when the program has ended. */
  look(): void
}

/** A terminal for what a program writes. */
export function emulate(
  { columns = 80, rows = 24, mute = false, background = 'dark' }: EmulatorOptions,
  program: Program,
): Emulated {
  const terminal = openTerminal(columns, rows)
  const answer = (text: string) => {
    if (!mute) program.send(text)
  }
  const modes = followModes(terminal, answer)
  answerQueries(terminal, answer, background)
  const written: string[] = []
  let title = ''
  terminal.onTitleChange(changed => {
    title = changed
  })
  const watchers = new Set<() => void>()
  const look = () => {
    for (const each of [...watchers]) each()
  }
  const show = inWholeUpdates(text => terminal.write(text, look))
  const shown = () => visibleRows(terminal)
  const waitIn = (read: () => string[]) => (what: Awaited, wait?: WaitOptions) =>
    waitFor(what, { read, screen: shown, watchers, isOver: program.isOver }, wait)
  return {
    xterm: terminal,
    look,
    drawn: () => new Promise(resolve => terminal.write('', resolve)),
    write(data) {
      written.push(data)
      show(data)
    },
    terminal: {
      screen: shown,
      all: () => allRows(terminal),
      cursor() {
        const { cursorX: x, cursorY: y } = terminal.buffer.active
        return { x, y, visible: modes().cursorVisible }
      },
      cellAt: (x, y) => cellAt(terminal, x, y),
      until: waitIn(shown),
      untilInAll: waitIn(() => allRows(terminal)),
      press(...keys) {
        for (const key of keys) {
          const { kitty, applicationCursor } = modes()
          const bytes = bytesOfKey(key, kitty % 2 === 1)
          program.send(applicationCursor ? inApplicationMode(bytes) : bytes)
        }
      },
      type: text => program.send(text),
      paste(text) {
        const typed = text.replaceAll(/\r?\n/g, '\r')
        program.send(modes().bracketedPaste ? `\x1b[200~${typed}\x1b[201~` : typed)
      },
      resize(columns, rows) {
        terminal.resize(columns, rows)
        program.resize(columns, rows)
      },
      modes,
      title: () => title,
      bytes: () => written.join('').replaceAll(new RegExp(`\\x1b\\]${SHELL_OSC};[^\\x07]*\\x07`, 'g'), ''),
    },
  }
}

function openTerminal(cols: number, rows: number): xterm.Terminal {
  const terminal = new xterm.Terminal({
    cols,
    rows,
    allowProposedApi: true,
    scrollback: 10_000,
    windowOptions: { pushTitle: true, popTitle: true },
  })
  measureAsTodaysTerminals(terminal)
  return terminal
}

/** What would tell the program of the terminal in which the tests run, or that there is none. */
const TELLING = /^(CI|CI_.*|CONTINUOUS_INTEGRATION|GITHUB_ACTIONS|TMUX|STY|TERM_.*|COLORTERM|COLORFGBG|FORCE_COLOR)$/
const INSIDE = { COLORTERM: 'truecolor' }

/** The variables of a program in such a terminal. */
export function terminalEnvironment(wanted: Record<string, string | undefined>): Record<string, string> {
  const inherited = Object.entries(wanted).filter(([name, value]) => !TELLING.test(name) || value !== process.env[name])
  const entries = [...Object.entries(INSIDE), ...inherited]
  return Object.fromEntries(entries.filter((entry): entry is [string, string] => entry[1] !== undefined))
}

function answerQueries(terminal: xterm.Terminal, answer: (text: string) => void, background: 'dark' | 'light'): void {
  terminal.onData(answer)
  const colours = background === 'dark' ? ['e6e6', '0d0d'] : ['1f1f', 'ffff']
  for (const [i, value] of colours.entries()) {
    terminal.parser.registerOscHandler(10 + i, asked => {
      if (asked === '?') answer(`\x1b]${10 + i};rgb:${value}/${value}/${value}\x1b\\`)
      return true
    })
  }
}

async function stty(tty: string): Promise<string> {
  const { stdout } = await promisify(execFile)('stty', ['-a', process.platform === 'darwin' ? '-f' : '-F', tty])
  return withoutSize(stdout)
}

function withoutSize(settings: string): string {
  return settings.replace(/rows \d+; columns \d+;/, '').trim()
}
