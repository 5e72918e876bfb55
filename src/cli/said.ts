import type { Said } from '../session/said.ts'
import type { SettingSources } from '../settings/load-settings.ts'
import type { Settings } from '../settings/schema.ts'
import { durationAsTyped } from './as-typed.ts'
import type { RunFlags } from './flags.ts'

/**
 * What was said on the command line or in the environment. What stands in a file is read anew when the session goes on,
 * so that it can be mended there, but for gates and the review (`gatesAtResume`, `reviewAtResume`).
 * @param verify the commands that `--verify` names
 */
export function saidOf(settings: Settings, sources: SettingSources, verify: readonly string[] = []): Said {
  const isSaid = (key: keyof SettingSources) => ['flag', 'environment'].includes(sources[key].layer)
  const { sandbox, network, model, effort, maxUsage, maxWait, keepAwake, review } = settings
  return {
    ...(isSaid('sandbox') ? { sandbox } : {}),
    ...(isSaid('network') ? { network } : {}),
    ...(isSaid('model') && model !== null ? { model } : {}),
    ...(isSaid('effort') && effort !== null ? { effort } : {}),
    ...(isSaid('maxUsage') && maxUsage !== null ? { maxUsage } : {}),
    ...(isSaid('maxWait') ? { maxWaitMs: maxWait } : {}),
    ...(isSaid('keepAwake') ? { keepAwake } : {}),
    ...(isSaid('review') ? { review } : {}),
    ...(verify.length === 0 ? {} : { verify: [...new Set(verify)] }),
  }
}

/** The flags of a session that goes on: those of now, and before them what was said when it began. */
export function flagsAtResume(said: Said, overrides: readonly string[], now: RunFlags): RunFlags {
  const { maxUsage, maxWaitMs, network, keepAwake, verify = [], ...same } = said
  // Another sandbox than before is meant as it is by itself, not with what the old one allowed.
  const keepsSandbox = now.sandbox === undefined && now.yolo === undefined
  return {
    ...same,
    ...(network === undefined || !keepsSandbox ? {} : { network }),
    ...(maxUsage === undefined ? {} : { maxUsage: String(maxUsage) }),
    ...(maxWaitMs === undefined ? {} : { maxWait: durationAsTyped(maxWaitMs) }),
    config: [...overrides],
    ...now,
    ...(verify.length === 0 ? {} : { verify: [...new Set([...verify, ...(now.verify ?? [])])] }),
    // Commander says true where nobody said anything.
    keepAwake: now.keepAwake !== false && keepAwake !== false,
  }
}
