/** Different warnings of codex that one session shows. */
const MOST_WARNINGS = 100

/** The warnings that a session has shown: codex gives the same ones in every round. */
export class KnownWarnings {
  readonly #known = new Set<string>()
  readonly #isUsual: (warning: string) => boolean

  /** @param isUsual whether a warning is about what codemachine itself has brought about */
  constructor(isUsual: (warning: string) => boolean) {
    this.#isUsual = isUsual
  }

  /** Whether to show it: it is new, and there were not too many. */
  add(warning: string): boolean {
    if (this.#known.has(warning) || this.#isUsual(warning) || this.#known.size >= MOST_WARNINGS) return false
    this.#known.add(warning)
    return true
  }
}
