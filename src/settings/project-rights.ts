import { UserError, unreachable } from '../base/errors.ts'
import { type Entry, subjectOf } from './entries.ts'
import type { SettingKey } from './schema.ts'

/**
 * Refuses a project's setting that would give an agent more than the person gave it. `codemachine.toml` lies where an
 * agent can write and comes with any repository that is cloned; so it may make the sandbox stricter, never looser, and
 * does not say which program is run. `entries` are all that was written for one setting, the one that counts last.
 */
export function refuseLooser(entries: readonly Entry[]): void {
  const winner = entries.at(-1)
  if (winner?.layer !== 'project') return
  const person = entries.at(-2)?.value
  if (!isLooser(winner.info.key, winner.value, person)) return
  throw new UserError(
    `${subjectOf(winner)} cannot be ${winner.written} by a project's own file; if you want that, use ${winner.info.flag} or your own config.toml.`,
  )
}

const SANDBOXES = ['read-only', 'workspace-write', 'danger-full-access']

function isLooser(key: SettingKey, project: unknown, person: unknown): boolean {
  switch (key) {
    case 'sandbox':
      return SANDBOXES.indexOf(String(project)) > SANDBOXES.indexOf(String(person))
    case 'network':
      return project === true && person === false
    case 'codexBin':
    case 'codexHome':
      return project !== person
    case 'mode':
    case 'rounds':
    case 'model':
    case 'effort':
    case 'requestSeconds':
    case 'endSeconds':
    case 'port':
    case 'logging.level':
      return false
    default:
      return unreachable(key)
  }
}
