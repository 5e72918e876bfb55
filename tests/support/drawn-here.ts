import { EventEmitter } from 'node:events'
import { PassThrough, Writable } from 'node:stream'
import { systemClock } from '../../src/base/clock.ts'
import { runCommandLine, showError } from '../../src/doors/cli/entry.ts'
import { cliContext } from './cli-context.ts'
import { type Drawn, type EmulatorOptions, emulate, terminalEnvironment } from './emulator.ts'
import { NO_PROCESS } from './no-process.ts'
import type { Scene } from './scene.ts'

/** What the end of one gets when its test is over, ms. */
const END_MS = 10_000

/**
 * Starts `codemachine args` in this process, before a terminal that is emulated whole: for what is seen and what keys do. What
 * a process does to a real terminal (modes, signals, Ctrl+Z, its end) needs one: `startInEmulator`.
 */
export function drawHere(
  { place, engines }: Pick<Scene, 'place' | 'engines'>,
  args: readonly string[],
  options: Omit<EmulatorOptions, 'command' | 'lifeMs'> = {},
): Drawn {
  const { columns = 80, rows = 24, cwd = place.directory } = options
  const ending = new AbortController()
  let isOver = false
  const stdin = new TerminalInput(() => ending.abort('SIGINT'))
  const { terminal, write, drawn, look } = emulate(options, {
    send: bytes => void stdin.write(bytes),
    resize: (columns, rows) => stdout.resize(columns, rows),
    isOver: () => isOver,
  })
  const stdout = new TerminalOutput(columns, rows, write)
  const context = cliContext(place, {
    env: { ...terminalEnvironment({ ...place.env, ...options.env }), TERM: 'xterm-256color' },
    cwd,
    stdin,
    stdout,
    stderr: new TerminalOutput(columns, rows, write),
    clock: systemClock,
    engines,
    signal: ending.signal,
    host: {
      ...NO_PROCESS,
      signals: new EventEmitter(),
      writeNow: text => write(text),
      rawModeOff: () => void stdin.setRawMode(false),
    },
  })
  const ended = runCommandLine(context, args)
    .catch((error: unknown) => showError(error, context))
    .then(async exitCode => {
      await new Promise<void>(resolve => stdout.end(resolve))
      await drawn()
      return { exitCode }
    })
    .finally(() => {
      isOver = true
      look()
    })
  return {
    ...terminal,
    ended,
    async [Symbol.asyncDispose]() {
      ending.abort('SIGTERM')
      const late = new AbortController()
      await Promise.race([ended.catch(() => {}), systemClock.wait(END_MS, late.signal)])
      late.abort()
    },
  }
}

/** Keys, as a terminal hands them over; one that is not raw makes an interrupt of Ctrl+C. */
class TerminalInput extends PassThrough {
  readonly isTTY = true
  isRaw = false
  readonly #interrupt: () => void

  constructor(interrupt: () => void) {
    super()
    this.#interrupt = interrupt
  }

  setRawMode(isRaw: boolean): this {
    this.isRaw = isRaw
    return this
  }

  override write(bytes: string): boolean {
    if (this.isRaw || !bytes.includes('\x03')) return super.write(bytes)
    this.#interrupt()
    return true
  }

  ref(): this {
    return this
  }

  unref(): this {
    return this
  }
}

class TerminalOutput extends Writable {
  readonly isTTY = true
  columns: number
  rows: number
  readonly #show: (text: string) => void

  constructor(columns: number, rows: number, show: (text: string) => void) {
    super({ decodeStrings: false })
    this.columns = columns
    this.rows = rows
    this.#show = show
  }

  resize(columns: number, rows: number): void {
    this.columns = columns
    this.rows = rows
    this.emit('resize')
  }

  override _write(chunk: string | Buffer, _encoding: BufferEncoding, done: () => void): void {
    // As a terminal's driver does with the end of a line.
    this.#show(chunk.toString().replaceAll(/\r?\n/g, '\r\n'))
    done()
  }
}
