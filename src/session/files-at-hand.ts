import type { Memory, MemorySnapshot } from '../core/shapes/memory.ts'
import type { SessionLog } from './session-log.ts'

/** Keeps what is known of the files between two rounds: their fingerprint, and the memory as the last round left it. */
export class FilesAtHand {
  readonly #log: SessionLog
  readonly #memory: Memory
  #left: MemorySnapshot | null = null
  /** The fingerprint after the last step; null once files may have changed since. */
  tree: string | null = null

  constructor({ log, memory }: { log: SessionLog; memory: Memory }) {
    this.#log = log
    this.#memory = memory
  }

  /** Keeps the memory that a round left, to save a second read until something else may write. */
  leave(memory: MemorySnapshot): void {
    this.#tell(memory)
    this.#left = memory
  }

  /** Drops the kept memory, because something else may have written since. */
  forget(): void {
    this.#left = null
  }

  /** Drops the kept memory and the fingerprint: during a wait anybody may change files. */
  forgetAll(): void {
    this.tree = null
    this.#left = null
  }

  /** Returns the memory before a round. Withdraws a claim first if the round changes the plan. */
  async now(): Promise<MemorySnapshot> {
    for (;;) {
      const { replan } = this.#log.state
      if (replan !== null) await this.#memory.withdrawClaim()
      const memory = (replan === null ? this.#left : null) ?? (await this.#read())
      this.#left = null
      if (replan !== null || this.#log.state.replan === null) return memory
    }
  }

  async #read(): Promise<MemorySnapshot> {
    const memory = await this.#memory.read()
    this.#tell(memory)
    return memory
  }

  #tell({ problems, warning, goalChange }: MemorySnapshot): void {
    for (const problem of problems) this.#log.emit({ type: 'memory-broken', problem })
    const round = this.#log.state.last?.round ?? 0
    if (goalChange !== undefined) this.#log.emit({ type: 'goal-restored', round, ...goalChange })
    if (warning !== undefined) this.#log.emit({ type: 'warning', round: null, message: warning })
  }
}
