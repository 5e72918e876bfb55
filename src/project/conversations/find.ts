import { join } from 'node:path'
import { UserError } from '../../base/errors.ts'
import type { Conversation, ConversationMaker, ConversationText } from '../../core/shapes/conversation.ts'
import { chooseCodexHome } from '../../engines/codex/find-codex.ts'
import { isFolder } from '../../platform/files.ts'
import { shellWord } from '../../platform/shell-word.ts'
import type { Redactor } from '../../secrets/redactor.ts'
import { openRedactor } from '../../secrets/secrets.ts'
import type { Records } from '../../session/records/records.ts'
import { oneLine } from '../../tell/words/safe-text.ts'
import { codexFor, namedCodex } from '../engine-of-project.ts'
import type { RunOptions } from '../library.ts'
import { settingsOf } from '../open-run.ts'
import type { World } from '../world.ts'
import { claudeConversations } from './claude.ts'
import { codexConversations } from './codex.ts'
import { opencodeConversations } from './opencode.ts'
import type { ConversationSource } from './source.ts'

/** The conversations of a work directory with the agents of this machine. */
export class Conversations {
  /** Removes the secrets of the machine and the project from their text. */
  readonly redactor: Redactor
  readonly #sources: ReadonlyMap<ConversationMaker, ConversationSource>
  readonly #directories: readonly string[]
  readonly #onProblem: (problem: string) => void

  private constructor(
    sources: ReadonlyMap<ConversationMaker, ConversationSource>,
    rest: { redactor: Redactor; directories: readonly string[]; onProblem: (problem: string) => void },
  ) {
    this.#sources = sources
    this.redactor = rest.redactor
    this.#directories = rest.directories
    this.#onProblem = rest.onProblem
  }

  /**
   * Finds where the conversations are, without reading any.
   * @param typed the work directory as it was named; absolute
   * @param onProblem receives one sentence for each agent whose conversations are unreadable
   */
  static async open(
    world: World,
    { records, typed, options }: { records: Records; typed: string; options: RunOptions },
    onProblem: (problem: string) => void,
  ): Promise<Conversations> {
    const { env, home, clock, platform, signal } = world
    const { directory, folder, root, secrets } = records
    // An agent may have recorded either name.
    const directories = [...new Set([directory, typed])]
    const codexHome = await chooseCodexHome({ setting: 'own', env, home, codemachineHome: root, directory: world.cwd })
    const sources = new Map<ConversationMaker, ConversationSource>()
    if (await isFolder(codexHome.path)) {
      try {
        const loaded = await settingsOf(world, directory, options)
        const { path } = await codexFor(world, records, namedCodex(loaded), { makesCopy: true })
        const asked = { path, env: codexHome.env, directory: folder, clock, platform, home: codexHome.path, signal }
        sources.set('codex', codexConversations(directories, asked))
      } catch (error) {
        sayOrThrow(error, onProblem)
      }
    }
    sources.set('claude', claudeConversations(directories, env.CLAUDE_CONFIG_DIR || join(home, '.claude')))
    const data = env.XDG_DATA_HOME || join(home, '.local', 'share')
    sources.set('opencode', opencodeConversations(directories, join(data, 'opencode')))
    const redactor = openRedactor({ env, codexHome: codexHome.path, project: secrets, clock })
    return new Conversations(sources, { redactor, directories, onProblem })
  }

  /** Returns all conversations, newest first. */
  async list(): Promise<Conversation[]> {
    const found = await Promise.all(
      [...this.#sources.values()].map(source =>
        source.list().catch((error: unknown) => {
          sayOrThrow(error, this.#onProblem)
          return []
        }),
      ),
    )
    return found
      .flat()
      .filter(({ id }) => ID.test(id))
      .sort((a, b) => b.at - a.at)
  }

  /** Returns the conversation whose id begins with `wanted`. Throws a `UserError` if there is none here, or several. */
  async find(wanted: string): Promise<Conversation & ConversationText> {
    const shown = oneLine(wanted, 60)
    const listed = (await this.list()).filter(({ id }) => id.startsWith(wanted))
    const matches = listed.some(({ id }) => id === wanted) ? listed.filter(({ id }) => id === wanted) : listed
    if (matches.length > 1) {
      throw new UserError('CM0625', `"${shown}" may mean ${matches.length} conversations; give more of the id.`, {
        hint: matches.map(({ id }) => oneLine(id, 60)).join(', '),
      })
    }
    const [match] = matches
    const found = match === undefined ? await this.#anywhere(wanted) : await this.read(match)
    if (found === null) {
      throw new UserError('CM0625', `There is no conversation "${shown}" of ${this.#directories[0]}.`, {
        hint: 'Those of this directory: codemachine adopt --list',
      })
    }
    if (match !== undefined || this.#directories.includes(found.directory)) return found
    const where = oneLine(found.directory, 500)
    throw new UserError('CM0625', `The conversation ${shown} is of another directory, ${where}; adopt it there.`, {
      hint: `cd ${shellWord(where)} && codemachine adopt ${shown}`,
    })
  }

  /** Reads the text of a listed conversation. */
  async read({ maker, id }: Conversation): Promise<Conversation & ConversationText> {
    const read = (await this.#sources.get(maker)?.read(id)) ?? null
    if (read !== null) return read
    throw new UserError('CM0624', `The conversation ${oneLine(id, 60)} is listed, but can no longer be read.`)
  }

  async #anywhere(id: string): Promise<(Conversation & ConversationText) | null> {
    if (!WHOLE_ID.test(id)) return null
    for (const source of this.#sources.values()) {
      const found = await source.read(id)
      if (found !== null) return found
    }
    return null
  }
}

/** Shape of an id: it becomes part of a goal, and of a path. A complete id is at least 20 characters long. */
const ID = /^[\w-]{1,80}$/
const WHOLE_ID = /^[\w-]{20,80}$/

function sayOrThrow(error: unknown, say: (problem: string) => void): void {
  if (!(error instanceof UserError)) throw error
  say(error.message)
}
