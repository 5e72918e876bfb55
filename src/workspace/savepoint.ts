import { UserError } from '../base/errors.ts'

/** A state of the work directory that was kept: a commit in codemachine's private git directory. */
export interface Savepoint {
  /** As a person types it: `20261121_1/3`, `20261121_1/start`, `before-rewind-1`. */
  id: string
  /** Null: made before a rewind. */
  session: string | null
  /** The round after which it was made, 0: before the first; the number of a `before-rewind`. */
  round: number
  commit: string
  tree: string
  /** The commit of the one before it in its session; null for the first. */
  parent: string | null
  /** Unix time, ms, in whole seconds. */
  at: number
  /** Where the person's own branch stood; null if that was not known. */
  head: string | null
}

/** What a person means by a name. */
export interface Resolved {
  /** The savepoint's id, or `now`. */
  name: string
  tree: string
  /** Null for the work directory as it is. */
  savepoint: Savepoint | null
}

/** How a savepoint's reference is called. */
export function refOf({ session, round }: Pick<Savepoint, 'session' | 'round'>): string {
  return `${prefix}${session ?? beforeRewind}/${String(round).padStart(3, '0')}`
}

/** What the name of a reference says of its savepoint; null if it is none. */
export function parseRef(ref: string): Pick<Savepoint, 'id' | 'session' | 'round'> | null {
  const [, group, number] = ref.match(/^refs\/savepoints\/(\d{8}_\d{1,10}|before-rewind)\/(\d{3,9})$/) ?? []
  if (group === undefined || number === undefined) return null
  const round = Number(number)
  if (group === beforeRewind) return { id: `${beforeRewind}-${round}`, session: null, round }
  return { id: `${group}/${round === 0 ? start : round}`, session: group, round }
}

/** The older first. */
export function byAge(a: Savepoint, b: Savepoint): number {
  return a.at - b.at || compareSessions(a.session, b.session) || a.round - b.round
}

/** The session in which a savepoint was made last; null if there is none. */
export function newestSession(savepoints: readonly Savepoint[]): string | null {
  return savepoints.toSorted(byAge).findLast(({ session }) => session !== null)?.session ?? null
}

/**
 * The savepoint that a person means: `3` and `start` in the newest session, `20261121_1/3` or `1/3` in another,
 * `before-rewind-1`; a `UserError` that says which there are if there is none, or more than one session is meant.
 */
export function findSavepoint(name: string, savepoints: readonly Savepoint[]): Savepoint {
  const exact = savepoints.find(({ id }) => id === name)
  if (exact !== undefined) return exact
  const [, wanted = null, round = ''] = name.match(/^(?:(.*)\/)?([^/]+)$/) ?? []
  const session = wanted === null ? newestSession(savepoints) : sessionOf(wanted, savepoints)
  const number = round === start ? 0 : /^\d{1,9}$/.test(round) ? Number(round) : null
  const found = savepoints.find(each => session !== null && each.session === session && each.round === number)
  if (found !== undefined) return found
  throw notThere(name, savepoints)
}

function sessionOf(wanted: string, savepoints: readonly Savepoint[]): string | null {
  const sessions = [...new Set(savepoints.flatMap(({ session }) => session ?? []))]
  if (sessions.includes(wanted)) return wanted
  const matches = sessions.filter(id => id.endsWith(`_${wanted}`))
  if (matches.length < 2) return matches[0] ?? null
  throw new UserError(`Session "${wanted}" may be any of ${matches.slice(-8).join(', ')}; use the whole id.`)
}

function notThere(name: string, savepoints: readonly Savepoint[]): UserError {
  const shown = name.slice(0, 60).replace(/[\p{Cc}\p{Bidi_Control}]+/gu, ' ')
  const newest = newestSession(savepoints)
  if (savepoints.length === 0) {
    return new UserError(
      `There is no savepoint "${shown}": no session has made one in this directory yet, or they have been pruned.`,
    )
  }
  const others = savepoints.filter(({ session }) => session === null).map(({ id }) => id)
  const rounds = savepoints.filter(({ session }) => session !== null && session === newest).map(({ round }) => round)
  const there = [...(newest === null ? [] : [`${inRanges(rounds)} of ${newest}`]), ...others.slice(-3), 'now']
  return new UserError(`There is no savepoint "${shown}".`, {
    hint: `There are: ${there.join('; ')}. codemachine savepoints lists those of older sessions, too; others may have been pruned.`,
  })
}

/** `start, 1 to 4, 7`. */
function inRanges(rounds: readonly number[]): string {
  const ranges: { from: number; to: number }[] = []
  for (const round of rounds.toSorted((a, b) => a - b)) {
    const last = ranges.at(-1)
    if (round > 1 && last?.to === round - 1) last.to = round
    else ranges.push({ from: round, to: round })
  }
  const words = ranges.map(({ from, to }) => (from === to ? `${from === 0 ? start : from}` : `${from} to ${to}`))
  return `${words.length > 8 ? '…, ' : ''}${words.slice(-8).join(', ')}`
}

/** By day, then by counter; what is of no session first. */
function compareSessions(a: string | null, b: string | null): number {
  if (a === null || b === null) return Number(a !== null) - Number(b !== null)
  return a.slice(0, 8).localeCompare(b.slice(0, 8)) || Number(a.slice(9)) - Number(b.slice(9))
}

const prefix = 'refs/savepoints/'
const beforeRewind = 'before-rewind'
const start = 'start'
