import * as v from 'valibot'
import { UserError, unreachable } from '../base/errors.ts'
import { type Entry, subjectOf } from './entries.ts'
import type { SettingKey } from './schema.ts'

/**
 * The entry that counts of all that was written for one setting, the last one unless it is a project's that goes too
 * far. `codemachine.toml` lies where an agent can write and comes with any repository that is cloned; so it may make
 * the sandbox stricter, never looser, does not say which program is run or where anything is sent, lifts no limit that
 * the person wrote, does not switch off what ends a round or a session that gets nowhere, not even where the person
 * wrote nothing, and does not weaken what done is proven by. A limit that is too high is passed over; for what it must
 * not say a `UserError` is thrown.
 */
export function countingEntry(entries: readonly Entry[]): Entry | undefined {
  const [before, last] = [entries.at(-2), entries.at(-1)]
  if (last?.layer !== 'project') return last
  if (before === undefined) return undefined
  const right = RIGHTS[last.info.key]
  switch (right) {
    case 'free':
      return last
    case 'lower':
      return before.layer === 'person' && rankOf(last) >= rankOf(before) ? before : last
    case 'never-higher':
      return rankOf(last) >= rankOf(before) ? before : last
    case 'not-off':
      return rankOf(last) < rankOf(before) ? before : last
    case 'yields':
      return before.layer === 'person' ? before : last
    case 'not-looser':
      return rankOf(last) > rankOf(before) ? refuse(last, last.written) : last
    case 'the-same':
      return last.value === before.value ? last : refuse(last, last.written)
    case 'none':
      return refuse(last, 'set')
    default:
      return unreachable(right)
  }
}

const RIGHTS = {
  mode: 'free',
  rounds: 'lower',
  maxTime: 'lower',
  maxTokens: 'lower',
  maxUsage: 'lower',
  maxWait: 'lower',
  model: 'free',
  effort: 'free',
  sandbox: 'not-looser',
  network: 'not-looser',
  silenceMinutes: 'never-higher',
  commandMinutes: 'never-higher',
  graceMinutes: 'never-higher',
  stallRounds: 'never-higher',
  keepAwake: 'lower',
  review: 'not-off',
  'reviewer.model': 'yields',
  'reviewer.effort': 'yields',
  'notify.command': 'none',
  'notify.webhook': 'none',
  'notify.bell': 'none',
  'notify.events': 'none',
  'screen.theme': 'none',
  'screen.motion': 'none',
  'screen.reader': 'none',
  'agents.atOnce': 'lower',
  codexBin: 'the-same',
  codexHome: 'the-same',
  requestSeconds: 'free',
  endSeconds: 'free',
  port: 'free',
  'logging.level': 'free',
} as const satisfies Record<SettingKey, Right>

type Right = 'free' | 'lower' | 'never-higher' | 'not-off' | 'yields' | 'not-looser' | 'the-same' | 'none'

const SANDBOXES = ['read-only', 'workspace-write', 'danger-full-access']

/** How much a setting gives: the more, the higher. */
function rankOf({ info, value }: Entry): number {
  const parsed = v.parse(info.schema, value)
  return typeof parsed === 'string' ? SANDBOXES.indexOf(parsed) : Number(parsed)
}

function refuse(entry: Entry, what: string): never {
  const { flag, variable } = entry.info
  throw new UserError(
    `${subjectOf(entry)} cannot be ${what} by a project's own file; if you want that, use ${flag ?? variable} or your own config.toml.`,
  )
}
