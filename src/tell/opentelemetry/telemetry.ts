import { createRequire } from 'node:module'
import { packageFile } from '../../base/package.ts'
import type { Telemetry, TelemetryOptions } from './export-thread.ts'

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
  const { ExportThread } = await import('./export-thread.ts')
  return new ExportThread(options)
}

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
