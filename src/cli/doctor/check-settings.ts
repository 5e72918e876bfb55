import { pathToFileURL } from 'node:url'
import * as v from 'valibot'
import { UserError } from '../../base/errors.ts'
import { packageFile } from '../../base/package-root.ts'
import { type Settings, settingsSchema } from '../../settings/schema.ts'
import type { CliContext } from '../context.ts'
import { settingsOf } from '../open-run.ts'
import { type Checked, ok, problemOf } from './finding.ts'

/** What the other checks go by. */
export interface SettingsInUse {
  /** The defaults, if there is a mistake in any place. */
  settings: Settings
  /** The codex that a setting or the flag names; what `CODEX_BIN` names is not told here. */
  codexBin: string | null
}

/** Reads the settings of every place. */
export async function checkSettings(
  context: CliContext,
  directory: string,
  codexBin: string | null,
): Promise<Checked<SettingsInUse>> {
  try {
    const { settings, sources, gatePlaces, gateRefusal } = await settingsOf(
      context,
      directory,
      codexBin === null ? {} : { codexBin },
    )
    if (gateRefusal !== null) throw new UserError(gateRefusal)
    const changed = Object.entries(sources).filter(([, { layer }]) => layer !== 'defaults')
    const written = [
      ...changed.map(([key, { place }]) => `${key} from ${place}`),
      ...[...gatePlaces].map(([gate, place]) => `the gate "${gate}" from ${place}`),
    ]
    const message = written.length === 0 ? "codemachine's own defaults; nothing else is set" : written.join(', ')
    return {
      findings: [ok('settings', message)],
      value: { settings, codexBin: sources.codexBin.layer === 'environment' ? null : settings.codexBin },
    }
  } catch (error) {
    const { default: defaults } = await import(pathToFileURL(packageFile('settings.js')).href)
    const mend = 'Correct it, or take it out: see `settings.js` of codemachine for what can be set.'
    return {
      findings: [problemOf('settings', error, mend)],
      value: { settings: v.parse(settingsSchema, defaults), codexBin },
    }
  }
}
