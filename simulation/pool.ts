import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import type { Disturbance } from './kernel.ts'
import { type Played, playNight } from './night.ts'
import { compileProgram } from './program.ts'

/** A night, and what is done to it. */
export interface Asked {
  seed: string
  plan: readonly Disturbance[]
}

/** What a night may take of real time, ms: one that takes longer goes round in a circle that does not end. */
const MOST_MS = 120_000
const NOTHING = { trace: '', done: [], rounds: 0, outcomes: [], ms: 0, calls: 0 }

// A worker plays the nights that it is asked for, one after the other.
if (!isMainThread) {
  const enter = compileProgram((workerData as { text: string }).text)
  parentPort?.on('message', ({ seed, plan }: Asked) => {
    void playNight(seed, plan, enter).then(played => parentPort?.postMessage(played))
  })
}

/** Workers, each of which plays one night at a time. */
export class Pool implements AsyncDisposable {
  readonly #text: string
  readonly #idle: Worker[]
  readonly #waiting: ((worker: Worker) => void)[] = []

  constructor(text: string, jobs: number) {
    this.#text = text
    this.#idle = Array.from({ length: jobs }, () => this.#start())
  }

  async play({ seed, plan }: Asked): Promise<Played> {
    const worker = this.#idle.pop() ?? (await new Promise<Worker>(take => this.#waiting.push(take)))
    const played = await new Promise<Played | null>(resolve => {
      const late = setTimeout(() => resolve(null), MOST_MS)
      const failed = (error: Error) =>
        resolve({ ...NOTHING, seed, broken: { promise: 'simulation', what: error.stack ?? error.message } })
      worker.once('error', failed)
      worker.once('message', (came: Played) => {
        clearTimeout(late)
        worker.off('error', failed)
        resolve(came)
      })
      worker.postMessage({ seed, plan })
    })
    if (played === null || played.broken?.promise === 'simulation') {
      await worker.terminate()
      this.#free(this.#start())
    } else this.#free(worker)
    return (
      played ?? {
        ...NOTHING,
        seed,
        broken: { promise: 'L4', what: `It goes round in a circle: ${MOST_MS / 1000} s of real time.` },
      }
    )
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#idle.map(worker => worker.terminate()))
  }

  #free(worker: Worker): void {
    const take = this.#waiting.shift()
    if (take === undefined) this.#idle.push(worker)
    else take(worker)
  }

  #start(): Worker {
    return new Worker(new URL(import.meta.url), { workerData: { text: this.#text } })
  }
}
