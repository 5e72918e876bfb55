import { Worker } from 'node:worker_threads'
import type { Clock } from '../../base/clock.ts'
import { messageOf } from '../../base/errors.ts'
import { packageFile, version } from '../../base/package.ts'
import type { View } from '../../core/state/state.ts'
import { type Measure, Measures } from './measures.ts'

/** A view that exports traces and metrics with OpenTelemetry. It never delays or fails a run. */
export interface Telemetry extends View {
  /** Resolves when all is exported, or after 5 s; never rejects. */
  close(): Promise<void>
}

export interface TelemetryOptions {
  env: Readonly<NodeJS.ProcessEnv>
  clock: Clock
  /** The queue whose length is exported; `length` may reject. */
  queue: { of: 'project' | 'fleet'; length(): Promise<number> }
  /** Receives a sentence for the first problem. */
  onProblem(sentence: string): void
}

/** What the exporter prints would break the screen. */
const THREAD = { execArgv: [], stdout: true, stderr: true }

/** Returns the exporter's environment. Without the detector of processes: it exports the command line, which has the goal. */
function ofExporter(env: Readonly<NodeJS.ProcessEnv>): NodeJS.ProcessEnv {
  const own = `service.name=codemachine,service.version=${version}`
  const theirs = env.OTEL_RESOURCE_ATTRIBUTES?.trim()
  return {
    ...env,
    OTEL_RESOURCE_ATTRIBUTES: theirs ? `${own},${theirs}` : own,
    OTEL_NODE_RESOURCE_DETECTORS: 'env,serviceinstance',
    OTEL_LOGS_EXPORTER: 'none',
  }
}

/** How long `close` waits for the last export, ms. */
const CLOSE_MS = 5000
/** Interval of looks at the queue, ms. */
const QUEUE_MS = 15_000

/** Exports in a thread of its own, which cannot block the session, and ends with all its connections. */
export class ExportThread implements Telemetry {
  readonly #thread: Worker
  readonly #options: TelemetryOptions
  readonly #measures: Measures
  readonly #closing = new AbortController()
  readonly #ended = new AbortController()
  #isTold = false

  constructor(options: TelemetryOptions) {
    const thread = new Worker(packageFile('dist/exporter.js'), { ...THREAD, env: ofExporter(options.env) })
    this.#thread = thread
    this.#options = options
    this.#measures = new Measures(measure => this.#post(measure))
    thread.on('message', (message: 'failed' | 'closed') => {
      if (message === 'closed') this.#ended.abort()
      else this.#tell(`The OpenTelemetry collector does not take all traces and metrics. ${CHECK}`)
    })
    thread.on('error', error => this.#tell(`OpenTelemetry failed: ${messageOf(error).split('\n')[0]}.`))
    thread.on('exit', () => this.#ended.abort())
    for (const stream of [thread.stdout, thread.stderr]) stream.resume()
    thread.unref()
    void this.#followQueue()
  }

  event: View['event'] = (event, state) => this.#measures.event(event, state)

  live(): void {}

  async close(): Promise<void> {
    this.#closing.abort()
    this.#measures.end(this.#options.clock.now())
    this.#post('close')
    await this.#options.clock.wait(CLOSE_MS, this.#ended.signal)
    if (!this.#ended.signal.aborted)
      this.#tell(`The OpenTelemetry collector did not take everything within ${CLOSE_MS / 1000} s. ${CHECK}`)
    await this.#thread.terminate()
  }

  async #followQueue(): Promise<void> {
    const { clock, queue } = this.#options
    const attributes = { 'codemachine.queue': queue.of }
    while (!this.#closing.signal.aborted) {
      // An unreadable queue is reported by its users.
      const value = await queue.length().catch(() => null)
      if (value !== null) this.#post({ does: 'metric', metric: 'codemachine.queue.length', value, attributes })
      await clock.wait(QUEUE_MS, this.#closing.signal)
    }
  }

  #tell(sentence: string): void {
    if (!this.#isTold) this.#options.onProblem(sentence)
    this.#isTold = true
  }

  #post(message: Measure | 'close'): void {
    this.#thread.postMessage(message)
  }
}

const CHECK = 'Check OTEL_EXPORTER_OTLP_ENDPOINT and the collector.'
