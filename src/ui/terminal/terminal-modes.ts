/**
 * What has been switched on in a terminal, read from the bytes that go to it, so that it can be switched off again
 * after any end.
 */
export class TerminalModes {
  /** Depth of the stack of keyboard modes that each screen has of its own (kitty's protocol). */
  readonly #keyboards = { main: 0, alternate: 0 }
  readonly #switchedOn = new Set<string>()
  #hasTitle = false
  #isAlternate = false

  /** Text on its way to the terminal. */
  note(text: string): void {
    if (!text.includes(CSI)) return
    for (const [, mode, switched, keyboard, title] of text.matchAll(SWITCHES)) {
      if (mode !== undefined) this.#switch(mode, switched === 'h')
      else if (keyboard === '>') this.#keyboards[this.#screen]++
      else if (keyboard === '<') this.#keyboards[this.#screen] = Math.max(0, this.#keyboards[this.#screen] - 1)
      else if (title !== undefined) this.#hasTitle = title === '22'
    }
  }

  /** What brings the terminal back to what a shell expects; it can be written twice without harm. */
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

/** Lays the terminal's title aside, for `POP_TITLE` to bring it back; a terminal that cannot do that ignores both. */
export const PUSH_TITLE = '\x1b[22;0t'
const POP_TITLE = '\x1b[23;0t'

const CSI = '\x1b['
const POP_KEYBOARD = `${CSI}<u`
const SWITCHES = new RegExp(`${CSI.replace('[', '\\[')}(?:\\?(\\d+)([hl])|([<>])\\d*u|(2[23]);0t)`, 'g')
const ALWAYS_RESTORED = new Set(['7', '25', '2004', '2026'])
