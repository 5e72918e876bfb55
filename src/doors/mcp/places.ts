import { readdir, realpath } from 'node:fs/promises'
import { basename, dirname, join, relative, resolve, sep } from 'node:path'
import { UserError } from '../../base/errors.ts'
import { isWithin } from '../../platform/files.ts'
import { recordsFromOutside } from '../../project/agent-door/inside-round.ts'
import { checkoutWithWorktrees, type SessionsPlace } from '../../project/find.ts'
import { redactorOfProject } from '../../project/secrets/redactor.ts'
import { findSessionAround, placesAround } from '../../project/worktrees/find.ts'
import type { World } from '../../project/world.ts'
import type { Redactor } from '../../secrets/redactor.ts'
import {
  bySessionId,
  copiesIn,
  isSessionId,
  type Records,
  repositoryOfCopy,
  rootOf,
} from '../../session/records/records.ts'
import { oneLine } from '../../tell/words/safe-text.ts'

/** A session that was found, and where. */
export type FoundSession = SessionsPlace & { id: string }

/** A fleet whose copies are shown, once they have been brought up to date; null: none is. */
export type FleetShown = { readonly looked: Promise<void> } | null

/**
 * The directories that a person has named for other agents. One below a named one counts, and so does the worktree that
 * codemachine has made of a named checkout. Each is told apart by its real path, looked up anew each time.
 */
export class NamedPlaces {
  readonly #world: World
  readonly #named: readonly string[]
  readonly #fleet: FleetShown
  readonly #onRecords: (records: Records) => void

  private constructor(
    world: World,
    { named, fleet }: { named: readonly string[]; fleet: FleetShown },
    onRecords: (records: Records) => void = () => {},
  ) {
    this.#world = world
    this.#named = named
    this.#fleet = fleet
    this.#onRecords = onRecords
  }

  /**
   * A `UserError` if one of them is not there.
   * @param dirs absolute or relative to the directory in which this process was started
   * @param fleet whether the copies of a fleet's sessions count as named
   */
  static async open(world: World, dirs: readonly string[], { fleet }: { fleet: FleetShown }): Promise<NamedPlaces> {
    const named: string[] = []
    for (const dir of dirs) {
      const real = await realpath(resolve(world.cwd, dir)).catch(() => null)
      if (real === null)
        throw new UserError('CM0106', `There is no directory ${oneLine(dir, MOST_SHOWN)}; name an existing one.`)
      if (!named.includes(real)) named.push(real)
    }
    return new NamedPlaces(world, { named, fleet })
  }

  /** The same, with a listener that is told of each of the records that it gives. */
  watched(onRecords: (records: Records) => void): NamedPlaces {
    return new NamedPlaces(this.#world, { named: this.#named, fleet: this.#fleet }, onRecords)
  }

  /** By their real paths. */
  get directories(): readonly string[] {
    return this.#named
  }

  /** The records of a directory that counts as named; `wanted` left out: of the only one that is named. A `UserError` otherwise. */
  async recordsOf(wanted: string | undefined): Promise<Records> {
    const directory = await this.#directory(wanted)
    const records = await recordsFromOutside(this.#world, directory)
    if ('sentence' in records) throw new UserError('CM0813', records.sentence)
    this.#onRecords(records)
    return records
  }

  /** A session of such a directory and its worktrees; `wanted` left out: the one in front. A `UserError` if there is none. */
  async session(directory: string | undefined, wanted: string | undefined): Promise<FoundSession> {
    const copy = directory === undefined && wanted !== undefined ? await this.#copyOf(wanted) : null
    if (copy !== null) return { worktree: null, records: await this.recordsOf(copy), id: wanted ?? '' }
    const records = await this.recordsOf(directory)
    const found = await findSessionAround(records, wanted ?? null, {
      platform: this.#world.platform,
      onProblem: () => {},
    })
    await this.#refuseOther(found.records.directory, found.records.directory)
    this.#onRecords(found.records)
    return found
  }

  /** The records with that key, of a directory that counts as named; null: there are none. */
  async recordsWithKey(key: string): Promise<Records | null> {
    for (const each of this.#named) {
      const own = await this.recordsOf(each)
      if (own.key === key) return own
      const found = (await placesAround(own, () => {})).find(({ records }) => records.key === key)
      if (found !== undefined) return await this.recordsOf(found.records.directory)
    }
    for (const copy of await this.copies()) {
      const records = await this.recordsOf(copy)
      if (records.key === key) return records
    }
    return null
  }

  /** The directories of the copies of a fleet's sessions, the newest first, at most `most`; none where they do not count. */
  async copies(most = Number.POSITIVE_INFINITY): Promise<readonly string[]> {
    if (this.#fleet === null) return []
    await this.#fleet.looked
    const root = copiesIn(rootOf(this.#world))
    const ids = (await readdir(root).catch(() => [])).filter(isSessionId)
    const newest = ids.toSorted((a, b) => bySessionId(b, a)).slice(0, most)
    const found = await Promise.all(
      newest.map(async id => {
        const [name] = await readdir(join(root, id)).catch(() => [])
        return name === undefined ? null : await realpath(join(root, id, name)).catch(() => null)
      }),
    )
    return found.filter(each => each !== null)
  }

  redactorOf(records: Pick<Records, 'secrets'>): Redactor {
    return redactorOfProject(this.#world, records)
  }

  /** Where the copy of a session of the fleet is; null: there is none of that id, or one of here has it, too. */
  async #copyOf(id: string): Promise<string | null> {
    const copy = (await this.copies()).find(each => basename(dirname(each)) === id)
    if (copy === undefined) return null
    const [only, ...others] = this.#named
    const isOfHere =
      only !== undefined && others.length === 0 && (await (await this.recordsOf(only)).sessions()).includes(id)
    return isOfHere ? null : copy
  }

  async #directory(wanted: string | undefined): Promise<string> {
    const [only, ...others] = this.#named
    if (wanted === undefined) {
      if (only !== undefined && others.length === 0) return only
      throw new UserError('CM0809', 'Say which directory: this server has more than one.', {
        hint: this.#listed(),
      })
    }
    const path = resolve(only ?? this.#world.cwd, wanted)
    const real = await realpath(path).catch(() => null)
    if (real === null)
      throw new UserError('CM0106', `There is no directory ${oneLine(path, MOST_SHOWN)}.`, { hint: this.#listed() })
    await this.#refuseOther(real, path)
    return real
  }

  async #refuseOther(real: string, shown: string): Promise<void> {
    const isCopy = repositoryOfCopy({ directory: real }) !== null
    if (isCopy && (await this.copies()).some(copy => isWithin(copy, real))) return
    // Records that lie below a named directory name no fleet.
    for (const named of isCopy ? [] : this.#named)
      if (isWithin(named, real) || (await isWorktreeOf(named, real))) return
    throw new UserError(
      'CM0809',
      `${oneLine(shown, MOST_SHOWN)} is not one of this server's directories, so it does nothing there.`,
      {
        hint: `${this.#listed()} A person can add it with codemachine mcp --dir, or with mcp.dirs in their settings.`,
      },
    )
  }

  #listed(): string {
    return `Named: ${this.#named.map(each => oneLine(each, MOST_SHOWN)).join(', ')}.`
  }
}

const MOST_SHOWN = 500

/** Whether a directory is the same folder as a named one, or a folder in that, of a worktree beside the checkout of the named one. */
async function isWorktreeOf(named: string, directory: string): Promise<boolean> {
  const top = await checkoutWithWorktrees(named)
  if (top === null) return false
  const beside = `${top}.worktrees`
  if (!isWithin(beside, directory)) return false
  const [worktree = ''] = relative(beside, directory).split(sep)
  return worktree !== '' && isWithin(join(beside, worktree, relative(top, named)), directory)
}
