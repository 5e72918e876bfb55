import { HOOK_MOMENTS, type Hook } from '../../core/shapes/hook.ts'
import { checkTimeout } from './gates.ts'
import type { Settings } from './schema.ts'
import type { SettingsFile } from './settings-file.ts'

const USUAL_MS = 5 * 60_000

/** Returns the hooks of both files, the person's first. Throws a `UserError` if a project's has too long a timeout. */
export function hooksOf(files: readonly SettingsFile[], settings: Pick<Settings, 'commandMinutes'>): Hook[] {
  return files.flatMap(({ layer, value, placeOf }) =>
    HOOK_MOMENTS.flatMap((on): Hook[] => {
      const written = value.hooks?.[on]
      if (written === undefined) return []
      const { run = '', timeout: timeoutMs = USUAL_MS } = written
      checkTimeout({ layer, timeoutMs, at: placeOf('hooks', on, 'timeout'), what: `hooks.${on}.timeout` }, settings)
      return [{ on, of: layer, run, timeoutMs, refuses: 'on_error' in written && written.on_error === 'refuse' }]
    }),
  )
}
