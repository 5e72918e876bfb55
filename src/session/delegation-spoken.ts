import type { Redactor } from '../base/redactor.ts'

/** What an agent says, let out piece by piece without secrets: what may be the beginning of one is kept back. */
export class SpokenText {
  readonly #redactor: Redactor
  readonly #letOut: (text: string) => void
  #held = ''
  #isInLine = false

  constructor(redactor: Redactor, letOut: (text: string) => void) {
    this.#redactor = redactor
    this.#letOut = letOut
  }

  add(piece: string): void {
    const text = this.#held + piece
    const end = text.length - this.#redactor.unfinished(text)
    const [open, held] = [this.#redactor.text(text.slice(0, end)), text.slice(end)]
    const all = this.#redactor.text(text)
    // A secret may end with what another one begins with: then it is whole.
    const isCut = open + this.#redactor.text(held) !== all
    this.#held = isCut ? '' : held
    this.#tell(isCut ? all : open)
  }

  /** A message has come to its end. */
  end(): void {
    this.#tell(this.#redactor.text(this.#held))
    this.#held = ''
    if (this.#isInLine) this.#tell('\n')
  }

  #tell(text: string): void {
    if (text === '') return
    this.#isInLine = !text.endsWith('\n')
    this.#letOut(text)
  }
}
