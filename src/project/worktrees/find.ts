import { opendir, realpath } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { systemErrorCode, UserError } from '../../base/errors.ts'
import type { AskedQuestion } from '../../session/records/answers.ts'
import { isReplayedSession } from '../../session/records/journal.ts'
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

/** The most folders beside a checkout that are looked at. */
const MOST_FOLDERS = 1000

/**
 * A directory, and the same folder of each worktree of its checkout in which a session has begun, by name. Where no worktree was
 * made it takes a few looks for a folder.
 * @param onProblem told a sentence for each that is passed over
 */
export async function placesAround(records: Records, onProblem: (problem: string) => void): Promise<SessionsPlace[]> {
  return [{ worktree: null, records }, ...(await worktreePlaces(records, onProblem))]
}

/** As `findSession`, also of the worktrees: `docs:20261120_1` is one of the worktree `docs`, `.:20261120_1` one of the directory itself. */
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
 * The same folder of each worktree that codemachine made of the checkout around a directory, by name, if a session has begun
 * there. No git runs: its place and name are those that codemachine gives, its `.git` leads to the repository, and what is read of
 * it are its records, which no agent can write. A link leads nowhere.
 */
async function worktreePlaces(records: Records, onProblem: (problem: string) => void): Promise<SessionsPlace[]> {
  const main = await checkoutWithWorktrees(records.directory)
  if (main === null) return []
  // Only where there are some.
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
      onProblem(`${error.message} Its sessions are not looked at.`)
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

/** How a session of a place is typed where several have one of its id. */
function typedAs({ worktree }: Pick<SessionsPlace, 'worktree'>, id: string): string {
  return `${worktree ?? '.'}:${id}`
}

/**
 * The session that is meant of several places; without a word that of `placeInFront`. A `UserError` that names those near if it
 * is none or not one.
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
  return new UserError('CM0604', `${what}, of the checkout and its worktrees; name the worktree, too.`, { hint: names })
}

/** What `docs:20261120_1` names: the place, null if it names none, and the word behind the colon. A `UserError` if there is no such place. */
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

/** The place whose session runs, the directory itself first; where none does, that whose session was written to last. */
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
 * Where what a person asks of a session that runs is meant for: the directory, or the only worktree of its checkout in which a
 * session runs while none does in the directory. A `UserError` if several do.
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

/** As `findQuestion`, also of the worktrees: `docs:20261120_1/Q1`, `docs:Q1`, or `Q1` where only one has it. */
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

/** Of questions of one name those that are open, and of these those whose session runs, if there are any. */
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
