import type { Memory, MemorySnapshot } from '../workspace/memory.ts'
import type { SessionLog } from './session-log.ts'

/** What the memory files say between two rounds: as the last round left them, or read anew. */
export class MemoryAtHand {
  readonly #log: SessionLog
  readonly #memory: Memory
  #left: MemorySnapshot | null = null

  constructor({ log, memory }: { log: SessionLog; memory: Memory }) {
    this.#log = log
    this.#memory = memory
  }

  /** What a round has left: as good as read anew, until something else may have written. */
  leave(memory: MemorySnapshot): void {
    this.#tell(memory)
    this.#left = memory
  }

  /** Somebody may have written since. */
  forget(): void {
    this.#left = null
  }

  /** What they say before a round. A claim is taken back first if that one is to change the plan. */
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

  #tell(memory: MemorySnapshot): void {
    for (const problem of memory.problems) this.#log.emit({ type: 'memory-broken', problem })
  }
}
