/**
 * What `codex exec` says, line by line: only what comes after the request that it repeats is worth showing, for before it
 * stand codex's own header and the agent's instructions.
 */
export class ExecOutput {
  readonly #request: readonly string[]
  readonly #onLine: (line: string) => void
  /** The last lines before the request: as many as it has. */
  #before: string[] = []
  #hasBegun = false
  #tail: string[] = []

  /** `request`: the end of the prompt, by which codex's echo of it is known. */
  constructor(request: string, onLine: (line: string) => void) {
    // As codex's lines come here.
    this.#request = request.split('\n').map(line => line.replace(/\r$/, ''))
    this.#onLine = onLine
  }

  push(line: string): void {
    this.#tail.push(line)
    if (this.#tail.length > TAIL_LINES) this.#tail.shift()
    if (this.#hasBegun) {
      this.#onLine(line)
      return
    }
    this.#before.push(line)
    if (this.#before.length > this.#request.length) this.#before.shift()
    if (line !== this.#request.at(-1) || !this.#isRequest()) return
    this.#hasBegun = true
    this.#before = []
    // What the person has written is no reason why codex failed.
    this.#tail = []
  }

  /** Why codex failed, in its own words, as far as it said. */
  reason(): string | null {
    // Once it works, it also shows what commands print.
    const error = this.#hasBegun ? /^ERROR: / : /^(ERROR|Error)\b/
    const at = this.#tail.findLastIndex(line => error.test(line))
    if (at === -1) return null
    const [first = '', ...rest] = this.#tail.slice(at, at + REASON_LINES)
    const words = withoutJson(first.replace(/^ERROR:\s*/, ''))
    // Only of a configuration that it cannot read does codex speak on the next lines.
    if (!/:$/.test(words)) return words
    const more = rest.findIndex(line => line.trim() === '' || /^\s*\|/.test(line))
    return [words, ...rest.slice(0, more === -1 ? rest.length : more)].join(' ').trim()
  }

  #isRequest(): boolean {
    return this.#before.length === this.#request.length && this.#before.every((line, at) => line === this.#request[at])
  }
}

const TAIL_LINES = 40
const REASON_LINES = 4

/** Providers answer with JSON, in which one member is for people. */
function withoutJson(words: string): string {
  if (!words.startsWith('{')) return words
  try {
    const { error }: { error?: { message?: unknown } } = Object(JSON.parse(words))
    return typeof error?.message === 'string' ? error.message : words
  } catch {
    return words
  }
}
