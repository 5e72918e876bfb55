import { createRequire } from 'node:module'
import type { Worker } from 'node:worker_threads'
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

interface TelemetryOptions {
  env: Readonly<NodeJS.ProcessEnv>
  clock: Clock
  /** The queue whose length is exported; `length` may reject. */
  queue: { of: 'project' | 'fleet'; length(): Promise<number> }
  /** Receives a sentence for the first problem. */
  onProblem(sentence: string): void
}

/** Starts the export that the standard variables ask for. Null: they ask for none, or the packages are missing. */
export async function openTelemetry(options: TelemetryOptions): Promise<Telemetry | null> {
  const { env, onProblem } = options
  const asking = askingVariable(env)
  if (asking === null) return null
  if (!hasPackages()) {
    onProblem(
      `${asking} asks for OpenTelemetry, but its packages are not installed. Install them beside codemachine: npm install --global @opentelemetry/api@1.10 @opentelemetry/sdk-node@0.301`,
    )
    return null
  }
  const { Worker } = await import('node:worker_threads')
  return new ExportThread(new Worker(packageFile('dist/exporter.js'), { ...THREAD, env: ofExporter(env) }), options)
}

/** What the exporter prints would break the screen. */
const THREAD = { execArgv: [], stdout: true, stderr: true }

/** Returns the variable that asks for an export; null: none does. */
function askingVariable(env: Readonly<NodeJS.ProcessEnv>): string | null {
  const value = (name: string) => env[name]?.trim() ?? ''
  if (value('OTEL_SDK_DISABLED').toLowerCase() === 'true') return null
  const exporters = ['OTEL_TRACES_EXPORTER', 'OTEL_METRICS_EXPORTER']
  if (exporters.every(name => value(name) === 'none')) return null
  const endpoints = ['', '_TRACES', '_METRICS'].map(of => `OTEL_EXPORTER_OTLP${of}_ENDPOINT`)
  return [...endpoints, ...exporters].find(name => !['', 'none'].includes(value(name))) ?? null
}

function hasPackages(): boolean {
  const { resolve } = createRequire(packageFile('package.json'))
  try {
    for (const name of ['@opentelemetry/api', '@opentelemetry/sdk-node']) resolve(name)
    return true
  } catch {
    return false
  }
}

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
class ExportThread implements Telemetry {
  readonly #thread: Worker
  readonly #options: TelemetryOptions
  readonly #measures: Measures
  readonly #closing = new AbortController()
  readonly #ended = new AbortController()
  #isTold = false

  constructor(thread: Worker, options: TelemetryOptions) {
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
