import { oneLine } from '../../words/cells.ts'
import type { TerminalOutput } from './output.ts'

/** Characters of a title: no window shows more. */
const TITLE_LENGTH = 200

/** Restores the terminal after any end, a crash too: keyboard mode, echo, cursor, bracketed paste, window title. */
export class TerminalRestorer {
  readonly #options: RestorerOptions
  #title: string | null = null
  #hasLeft = false

  constructor(options: RestorerOptions) {
    this.#options = options
  }

  /** Sets the window's title, as one safe line. */
  setTitle(text: string): void {
    const { output, term = 'dumb' } = this.#options
    const title = oneLine(text, TITLE_LENGTH)
    if (this.#hasLeft || title === this.#title || /^(?:linux|dumb|vt\d)/.test(term)) return
    output.write(`${this.#title === null ? PUSH_TITLE : ''}\x1b]0;${title}\x07`)
    this.#title = title
  }

  /** Restores the terminal and closes the output. May be called again and from anywhere: it never throws. */
  leave(): void {
    if (this.#hasLeft) return
    this.#hasLeft = true
    const { output, writeNow, rawModeOff } = this.#options
    const sequence = output.writable ? output.restoreSequence() : ''
    for (const step of [() => writeNow(sequence), rawModeOff, () => output.close()]) {
      try {
        step()
      } catch {
        // A terminal that is gone has nothing to restore.
      }
    }
  }
}

interface RestorerOptions {
  output: TerminalOutput
  /** The terminal's `TERM`; the Linux console and dumb terminals have no title. */
  term: string | undefined
  /** Writes to the terminal synchronously, also while the program crashes; drops what the terminal does not take. */
  writeNow(text: string): void
  /** Switches the terminal's echo and line editing on again. */
  rawModeOff(): void
}

/** The modes that are switched on in a terminal, read from the bytes written to it, so that they can be switched off again. */
export class TerminalModes {
  /** The depth of each screen's stack of keyboard modes (kitty's protocol). */
  readonly #keyboards = { main: 0, alternate: 0 }
  readonly #switchedOn = new Set<string>()
  #hasTitle = false
  #isAlternate = false

  /** Notes the modes that a written text switches on or off. */
  note(text: string): void {
    if (!text.includes(CSI)) return
    for (const [, mode, switched, keyboard, title] of text.matchAll(SWITCHES)) {
      if (mode !== undefined) this.#switch(mode, switched === 'h')
      else if (keyboard === '>') this.#keyboards[this.#screen]++
      else if (keyboard === '<') this.#keyboards[this.#screen] = Math.max(0, this.#keyboards[this.#screen] - 1)
      else if (title !== undefined) this.#hasTitle = title === '22'
    }
  }

  /** The sequence that restores the modes a shell expects; harmless when written twice. */
  restoreSequence(): string {
    const out = [`${CSI}?2026l`, `${CSI}0m`]
    if (this.#isAlternate) out.push(POP_KEYBOARD.repeat(this.#keyboards.alternate), `${CSI}?1049l`)
    out.push(POP_KEYBOARD.repeat(this.#keyboards.main))
    for (const mode of this.#switchedOn) out.push(`${CSI}?${mode}l`)
    out.push(`${CSI}?2004l`, `${CSI}?7h`, `${CSI}?25h`)
    if (this.#hasTitle) out.push(POP_TITLE)
    const sequence = out.join('')
    this.note(sequence)
    return sequence
  }

  get #screen(): 'main' | 'alternate' {
    return this.#isAlternate ? 'alternate' : 'main'
  }

  #switch(mode: string, isOn: boolean): void {
    if (mode === '1049') this.#isAlternate = isOn
    else if (!ALWAYS_RESTORED.has(mode) && isOn) this.#switchedOn.add(mode)
    else this.#switchedOn.delete(mode)
  }
}

const CSI = '\x1b['
// Saves the window title and brings it back (XTWINOPS); a terminal that cannot do that ignores both.
const PUSH_TITLE = '\x1b[22;0t'
const POP_TITLE = '\x1b[23;0t'

const POP_KEYBOARD = `${CSI}<u`
const SWITCHES = new RegExp(`${CSI.replace('[', '\\[')}(?:\\?(\\d+)([hl])|([<>])\\d*u|(2[23]);0t)`, 'g')
const ALWAYS_RESTORED = new Set(['7', '25', '2004', '2026'])
