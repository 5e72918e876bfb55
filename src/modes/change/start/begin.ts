import type { Clock } from '../../../base/clock.ts'
import { UserError } from '../../../base/errors.ts'
import type { ProvidersByName } from '../../../core/shapes/provider.ts'
import { modelsOffered } from '../../../engines/ask-provider.ts'
import { findSession, readableState } from '../../../project/find.ts'
import type { RunOptions } from '../../../project/library.ts'
import type { Run } from '../../../project/open-run.ts'
import { settingsOf } from '../../../project/open-run.ts'
import type { NewSession } from '../../../project/sessions.ts'
import { LOCAL_PROVIDERS } from '../../../project/settings/providers.ts'
import type { World } from '../../../project/world.ts'
import { isReplayedSession } from '../../../session/records/journal.ts'
import type { Records } from '../../../session/records/records.ts'
import { CHANGE, type ChangeSaid, changeTerms } from './options.ts'

/** A change to make. */
export interface WantedChange {
  /** The person's request; checked. */
  request: string
  said: ChangeSaid
  /** Session that it follows, as typed; null: the newest change here; left out: none. */
  follows?: string | null
}

/** Creates a change's session for `OpenProject.runQueue`. Queries to local servers continue while the run opens. */
export function newChange(
  world: Pick<World, 'env' | 'configHome' | 'clock' | 'signal'>,
  directory: string,
  options: RunOptions,
  { request, said, follows }: WantedChange,
): (run: Run) => Promise<Omit<NewSession, 'queued'>> {
  const local = said.executor === undefined ? remarkOnLocalModels(world, directory, options) : Promise.resolve(null)
  return async run => {
    const terms = changeTerms(run, said)
    const followed = follows === undefined ? null : await sessionToFollow(run.records, follows)
    const remark = await local
    if (remark !== null) run.remarks.push(remark)
    if (run.repository === null) run.remarks.push(NO_REPOSITORY)
    return {
      text: request,
      template: CHANGE,
      terms: { options: terms, ...(followed === null ? {} : { follows: followed }) },
    }
  }
}

const NO_REPOSITORY =
  'This directory is not a git repository, so the planner sees no branch and no history. codemachine diff and rewind work as usual.'

/** Number of sessions to search for the newest change. */
const MOST_LOOKED_AT = 200

/** Returns the id of the session that a change follows; null: the newest change. Throws a `UserError` if there is none. */
export async function sessionToFollow(records: Records, wanted: string | null): Promise<string> {
  if (wanted !== null) return await findSession(records, wanted)
  const newest = await newestChange(records)
  if (newest !== null) return newest
  throw new UserError('CM0605', `${records.directory} has no earlier change to continue from; leave --follow-up out.`, {
    hint: 'To follow another session, name it: --follow-up <session>. To list the sessions: codemachine list',
  })
}

/** Returns the newest change here, a running one included, but no mere replay. Null: none. */
export async function newestChange(records: Records): Promise<string | null> {
  for (const id of (await records.sessions()).reverse().slice(0, MOST_LOOKED_AT)) {
    const state = await readableState(records, id)
    if (state?.template === CHANGE && !(await isReplayedSession(records, id))) return id
  }
  return null
}

/** How long a server on this machine may take to answer, ms: it runs parallel to the start, which waits no longer. */
const LOCAL_MS = 1_000

/** Returns a line on how a local server could carry out tasks, if nobody chose an executor. Null: no server, or chosen. */
async function remarkOnLocalModels(
  world: Pick<World, 'env' | 'configHome' | 'clock' | 'signal'>,
  directory: string,
  options: RunOptions,
): Promise<string | null> {
  // The opening of the run reports their mistakes.
  const read = await settingsOf(world, directory, options).catch(() => null)
  if (read === null) return null
  const { settings, sources, providers } = read
  const isSaid = sources['change.executor'].layer !== 'defaults'
  if (isSaid || providers.has(settings.provider)) return null
  return await firstThatAnswers(providers, world)
}

async function firstThatAnswers(
  providers: ProvidersByName,
  world: { env: Readonly<NodeJS.ProcessEnv>; clock: Clock; signal: AbortSignal },
): Promise<string | null> {
  const found = await Promise.all(
    LOCAL_PROVIDERS.map(async name => {
      const provider = providers.get(name)
      const models = provider === undefined ? null : await modelsOffered(provider, { ...world, withinMs: LOCAL_MS })
      return provider === undefined || models === null ? null : { provider, models }
    }),
  )
  const [first] = found.filter(each => each !== null)
  if (first === undefined) return null
  const { provider, models } = first
  const { name } = provider
  const how = `codemachine change --executor ${name} "…", or executor = "${name}" below [change] of your config.toml`
  if (provider.model !== null) return `${name} runs on this machine. To let it carry out the tasks: ${how}.`
  const [model = 'qwen3-coder:30b'] = models
  return `${name} runs on this machine. To let it carry out the tasks, name its model first, such as model = "${model}" below [providers.${name}] of your config.toml; then ${how}.`
}
