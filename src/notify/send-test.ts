import type { Door } from './door.ts'
import { sampleNotification } from './notification-of.ts'
import { type DoorOptions, type NotifySettings, openDoors } from './notifier.ts'

/** What became of a test: `problem` is a sentence, or null if it has arrived. */
export interface TestResult {
  door: Door['name']
  problem: string | null
}

/** Sends a sample through every way that the settings name, whatever `events` says; empty if they name none. */
export async function sendTest(
  settings: NotifySettings,
  options: DoorOptions & { host: string; directory: string; signal: AbortSignal },
): Promise<TestResult[]> {
  const at = new Date(options.clock.now()).toISOString()
  const sample = sampleNotification(at, options.host, options.directory)
  return await Promise.all(
    openDoors(settings, options).map(async door => {
      const problem = await door.deliver(sample, options.signal)
      return { door: door.name, problem: problem?.sentence ?? null }
    }),
  )
}
