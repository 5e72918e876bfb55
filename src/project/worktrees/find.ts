import { opendir, realpath } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { systemErrorCode, UserError } from '../../base/errors.ts'
import { isReplayedSession } from '../../session/records/journal.ts'
import type { AskedQuestion } from '../../session/records/questions.ts'
import { type Records, recordsOf } from '../../session/records/records.ts'
import { readRunner } from '../../session/records/run-lock.ts'
import { oneLine } from '../../tell/words/safe-text.ts'
import {
  checkoutWithWorktrees,
  findQuestion,
  findSession,
  latestSession,
  matching,
  type Replays,
  type SessionsPlace,
  some,
  writtenAt,
} from '../find.ts'

/** Most folders next to a checkout to look at. */
const MOST_FOLDERS = 1000

/**
 * Returns a directory, and the same folder of each worktree with a session, by name. Without worktrees it takes only a few
 * file look-ups.
 * @param onProblem receives a sentence for each skipped one
 */
export async function placesAround(records: Records, onProblem: (problem: string) => void): Promise<SessionsPlace[]> {
  return [{ worktree: null, records }, ...(await worktreePlaces(records, onProblem))]
}

/**
 * Does the same as `findSession`, worktrees included: `docs:20261120_1` is in the worktree `docs`, `.:20261120_1` in the
 * directory itself.
 */
export async function findSessionAround(
  records: Records,
  wanted: string | null,
  options: { platform: NodeJS.Platform; onProblem: (problem: string) => void; replays?: Replays },
): Promise<SessionsPlace & { id: string }> {
  const { onProblem, replays } = options
  const places = await placesAround(records, onProblem)
  if (places.length > 1) return await findAmong(places, wanted, options)
  return { worktree: null, records, id: await findSession(records, wanted, onProblem, replays) }
}

/**
 * Returns the same folder of each codemachine worktree around a directory, by name, if a session has begun there. No git
 * runs: place and name are codemachine's own, its `.git` leads to the repository, and it reads only the records, which no
 * agent can write. It follows no links.
 */
async function worktreePlaces(records: Records, onProblem: (problem: string) => void): Promise<SessionsPlace[]> {
  const main = await checkoutWithWorktrees(records.directory)
  if (main === null) return []
  // Load them only if there are worktrees.
  const [{ findRepository }, { isWorktreeName, refuseForgedWorktree, worktreeLocation }] = await Promise.all([
    import('../../workspace/git/git.ts'),
    import('../../workspace/worktree/worktree.ts'),
  ])
  const repository = await findRepository(main)
  if (repository?.root !== main || repository.gitDir !== repository.commonDir) return []
  const inside = relative(main, records.directory)
  const places: SessionsPlace[] = []
  for (const name of await namesIn(`${main}.worktrees`, isWorktreeName, onProblem)) {
    const { top } = worktreeLocation(main, name)
    const directory = join(top, inside)
    if ((await realpath(directory).catch(() => null)) !== directory) continue
    const there = recordsOf(records, directory)
    if ((await there.sessions()).length === 0) continue
    try {
      await refuseForgedWorktree({ repository }, top)
      places.push({ worktree: name, records: there })
    } catch (error) {
      if (!(error instanceof UserError)) throw error
      onProblem(`${error.message} codemachine ignores its sessions.`)
    }
  }
  return places
}

async function namesIn(
  folder: string,
  isName: (name: string) => boolean,
  onProblem: (problem: string) => void,
): Promise<string[]> {
  const names: string[] = []
  try {
    for await (const { name } of await opendir(folder)) {
      if (isName(name)) names.push(name)
      if (names.length === MOST_FOLDERS) break
    }
  } catch (error) {
    const code = systemErrorCode(error)
    if (code === null) throw error
    onProblem(`${folder} cannot be read (${code}), so the sessions of its worktrees are not shown.`)
  }
  return names.sort()
}

/** Returns how to type a session if several places have its id. */
function typedAs({ worktree }: Pick<SessionsPlace, 'worktree'>, id: string): string {
  return `${worktree ?? '.'}:${id}`
}

/**
 * Returns the meant session of several places; without a word that of `placeInFront`. Throws a `UserError` that names
 * similar ones if there is none, or several.
 */
async function findAmong(
  places: readonly SessionsPlace[],
  wanted: string | null,
  options: { platform: NodeJS.Platform; onProblem: (problem: string) => void; replays?: Replays },
): Promise<SessionsPlace & { id: string }> {
  const { onProblem, replays } = options
  if (wanted === null) {
    const place = await placeInFront(places, options)
    return { ...place, id: await findSession(place.records, null, onProblem, replays) }
  }
  const { named, word } = placeNamed(places, wanted)
  if (named !== null) return { ...named, id: await findSession(named.records, word || null, onProblem, replays) }
  const all: (SessionsPlace & { id: string })[] = []
  for (const place of places) for (const id of await place.records.sessions()) all.push({ ...place, id })
  const matches = matching(all, wanted)
  const [match] = matches
  if (match !== undefined && matches.length === 1) return match
  const shown = oneLine(wanted, 60)
  const names = some((matches.length > 0 ? matches : all).map(each => typedAs(each, each.id)))
  if (match !== undefined) throw ambiguous(`"${shown}" may mean ${matches.length} sessions`, names)
  const [own] = places
  throw new UserError('CM0603', `There is no session "${shown}" in ${own?.records.directory} or its worktrees.`, {
    hint: `There are: ${names}`,
  })
}

function ambiguous(what: string, names: string): UserError {
  return new UserError('CM0604', `${what} of the checkout and its worktrees; write the worktree's name before it.`, {
    hint: names,
  })
}

/**
 * Splits `docs:20261120_1` into place (null: none named) and the word after the colon. Throws a `UserError` if there is no
 * such place.
 */
function placeNamed(places: readonly SessionsPlace[], typed: string): { named: SessionsPlace | null; word: string } {
  const colon = typed.indexOf(':')
  if (colon === -1) return { named: null, word: typed }
  const name = typed.slice(0, colon)
  const named = places.find(({ worktree }) => (worktree ?? '.') === name)
  if (named !== undefined) return { named, word: typed.slice(colon + 1) }
  throw new UserError('CM0603', `No worktree "${oneLine(name, 60)}" of this repository has sessions.`, {
    hint: `There are: ${some(places.flatMap(({ worktree }) => worktree ?? []))}`,
  })
}

/** Returns the place of a running session, the directory itself first; if none runs, that of the newest write. */
export async function placeInFront(
  places: readonly SessionsPlace[],
  { platform, replays = 'counted' }: { platform: NodeJS.Platform; replays?: Replays },
): Promise<SessionsPlace> {
  const ranked = await Promise.all(
    places.map(async place => {
      const { records, worktree } = place
      const id = await latestSession(records, () => {}, replays)
      const at = id === null ? null : await writtenAt(records.journal(id))
      const runs = (await readRunner(records.lock, platform)) !== null
      const passedOver = replays === 'passed over' && id !== null && (await isReplayedSession(records, id))
      const rank = at === null ? 0 : runs ? (worktree === null ? 4 : 3) : passedOver ? 1 : 2
      return { place, rank, at: at ?? 0 }
    }),
  )
  const [first] = ranked.sort((a, b) => b.rank - a.rank || b.at - a.at)
  if (first === undefined) throw new Error('There is no place.')
  return first.place
}

/**
 * Returns the place for a command to a running session: the directory, or its checkout's only worktree with a running
 * session if none runs in the directory. Throws a `UserError` if several run.
 */
export async function placeAtWork(
  records: Records,
  { platform, onProblem }: { platform: NodeJS.Platform; onProblem: (problem: string) => void },
): Promise<SessionsPlace> {
  const running: SessionsPlace[] = []
  for (const place of await worktreePlaces(records, onProblem))
    if ((await readRunner(place.records.lock, platform)) !== null) running.push(place)
  const [only] = running
  if (running.length <= 1) return only ?? { worktree: null, records }
  throw new UserError(
    'CM0604',
    `Sessions run in ${running.length} worktrees of ${records.directory}; name one with -C.`,
    {
      hint: running.map(({ records: { directory } }) => `-C ${directory}`).join('\n  '),
    },
  )
}

/** Does the same as `findQuestion`, worktrees included: `docs:20261120_1/Q1`, `docs:Q1`, or `Q1` if only one has it. */
export async function findQuestionAround(
  own: Records,
  typed: string,
  options: { platform: NodeJS.Platform; onProblem: (problem: string) => void },
): Promise<SessionsPlace & { asked: AskedQuestion }> {
  const places = await placesAround(own, options.onProblem)
  if (places.length === 1)
    return { worktree: null, records: own, asked: await findQuestion(own, typed, options.onProblem) }
  const slash = typed.lastIndexOf('/')
  if (slash !== -1) {
    const found = await findAmong(places, typed.slice(0, slash), options)
    const asked = await findQuestion(found.records, `${found.id}${typed.slice(slash)}`, options.onProblem)
    return { ...found, asked }
  }
  const { named, word } = placeNamed(places, typed)
  const found: (SessionsPlace & { asked: AskedQuestion })[] = []
  let refusal: unknown = null
  for (const place of named === null ? places : [named]) {
    try {
      found.push({ ...place, asked: await findQuestion(place.records, word, options.onProblem) })
    } catch (error) {
      if (!(error instanceof UserError)) throw error
      refusal ??= error
    }
  }
  if (found.length === 0) throw refusal
  const [only, ...others] = await likeliest(found, options)
  if (only !== undefined && others.length === 0) return only
  const names = found.map(place => `${typedAs(place, place.asked.session)}/${place.asked.question}`)
  throw ambiguous(`"${oneLine(typed, 60)}" may mean ${found.length} questions`, some(names))
}

/** Of questions with the same name, returns the open ones, and of these, those with a running session, if any. */
async function likeliest<T extends SessionsPlace & { asked: AskedQuestion }>(
  found: readonly T[],
  { platform }: { platform: NodeJS.Platform },
): Promise<readonly T[]> {
  const open = found.filter(({ asked }) => asked.answer === null)
  const all = open.length === 0 ? found : open
  if (all.length === 1) return all
  const runs = await Promise.all(all.map(async ({ records }) => (await readRunner(records.lock, platform)) !== null))
  const running = all.filter((_, i) => runs[i])
  return running.length === 0 ? all : running
}
