import { UserError } from '../../base/errors.ts'
import { isShortSecret, problemOfKey, type SessionSecrets, type StoredSecret } from '../../core/shapes/secrets.ts'
import type { ShellEnd } from '../../core/shapes/shell.ts'
import { openShell } from '../../engines/codex/shell/open-shell.ts'
import { readsLikeWord } from '../../secrets/search.ts'
import { openSecrets } from '../../secrets/store.ts'
import type { Records } from '../../session/records/records.ts'
import { readRunner } from '../../session/records/run-lock.ts'
import { findRepository } from '../../workspace/git/git.ts'
import { openSandboxTraces } from '../../workspace/sandbox-traces.ts'
import { askRun } from '../commands/commands.ts'
import { chooseCodex, codexOptionsOf, writableGit } from '../engine-of-project.ts'
import { latestSession, readableState } from '../find.ts'
import type { RunOptions } from '../library.ts'
import { settingsOf } from '../open-run.ts'
import type { World } from '../world.ts'
import { openSessionSecrets } from './session-secrets.ts'

/** A project's secret as shown to a person: without its value. */
interface ListedSecret {
  key: string
  /** Command that tests it; null: none. */
  check: string | null
  /** When it was stored, ms; null: its file is unreadable. */
  since: number | null
  /** Whether it is too short to search for, so that the output of its commands is withheld. */
  short: boolean
  /** Why it is unusable, one sentence; null: usable. */
  problem: string | null
}

/**
 * Stores a project's secret without its final line end, and tells the running session. Throws a `UserError` for an invalid
 * name, value or check.
 * @param check null: it has none; undefined: unchanged
 * @returns sentences for the person
 */
export async function setSecret(
  world: Pick<World, 'clock' | 'platform'>,
  records: Records,
  key: string,
  value: string,
  check: string | null | undefined,
): Promise<string[]> {
  const secrets = openSecrets(records.secrets)
  const typed = value.replace(/\r?\n$/, '')
  const known = check === undefined ? await checkOf(records, key) : check
  await secrets.set({ key, value: typed, check: known }, new Date(world.clock.now()))
  const untold = await tellRun(world, records, key)
  return [...warningsOf(typed), ...(untold === null ? [] : [untold])]
}

async function checkOf({ secrets }: Pick<Records, 'secrets'>, key: string): Promise<string | null> {
  const { secrets: known } = await openSecrets(secrets).list()
  return known.find(each => each.key === key)?.check ?? null
}

/** Returns a sentence why the running session does not know of it; null: it does, or none runs. */
async function tellRun(
  world: Pick<World, 'clock' | 'platform'>,
  records: Records,
  key: string,
): Promise<string | null> {
  try {
    await askRun(world, records, { type: 'secret', key })
    return null
  } catch (error) {
    if (!(error instanceof UserError)) throw error
    return `It is stored, but the session that runs here could not be told: ${error.message}`
  }
}

/** Returns sentences that warn of a given value, without the value. */
export function warningsOf(value: string): string[] {
  if (isShortSecret(value))
    return [
      'It has fewer than 8 characters, so codemachine cannot search texts for it. It withholds the whole output of commands that use it.',
    ]
  if (!readsLikeWord(value)) return []
  return ['It is an ordinary word: in every text, codemachine shows the name of the secret instead.']
}

/** Returns the secrets of a project, by name. */
export async function listSecrets({ secrets: folder }: Pick<Records, 'secrets'>): Promise<ListedSecret[]> {
  const secrets = openSecrets(folder)
  const { secrets: known, broken } = await secrets.list()
  const listed = known.map(async ({ key, check, at }) => {
    const secret = await secrets.get(key).catch(() => null)
    return { key, check, since: Date.parse(at), short: secret !== null && isShortSecret(secret.value), problem: null }
  })
  const unread = broken.map(({ key, problem }) => ({ key, check: null, since: null, short: false, problem }))
  return [...(await Promise.all(listed)), ...unread].sort((a, b) => (a.key < b.key ? -1 : 1))
}

/** Removes a project's secret; false if there was none of that name. Files that hold it stay hidden from agents. */
export async function removeSecret(
  _world: Pick<World, 'clock' | 'platform'>,
  { secrets }: Pick<Records, 'secrets'>,
  key: string,
): Promise<boolean> {
  return await openSecrets(secrets).remove(key)
}

/** Returns the names of the secrets that the project's newest session waits for. */
export async function waitingKeys(records: Records): Promise<string[]> {
  const id = await latestSession(records, () => {})
  const state = id === null ? null : await readableState(records, id)
  const asked = state?.ended === null ? (state.decision?.secret?.key ?? null) : null
  if (asked !== null) return [asked]
  const outcome = state?.ended?.outcome
  const hint = outcome !== undefined && 'hint' in outcome ? outcome.hint : null
  return hint?.do === 'secret' ? [...hint.keys] : []
}

/** Whether a secret exists and passes its check, if it has one. `problem`: why not, a sentence. */
interface CheckedSecret {
  ok: boolean
  problem: string | null
  /** Sentences on files that the check has changed. */
  words: readonly string[]
}

/**
 * Runs a secret's check in a session's sandbox, with the secret as its only extra variable. It drops the output, and hides
 * files with the secret from agents. Throws a `UserError` for problems that a person must fix first.
 */
export async function checkSecret(
  world: World,
  records: Records,
  options: RunOptions,
  key: string,
): Promise<CheckedSecret> {
  const problem = problemOfKey(key)
  if (problem !== null) throw new UserError('CM0901', problem)
  const secret = await openSecrets(records.secrets).get(key)
  if (secret === null)
    return {
      ok: false,
      problem: `There is no secret ${key} here; codemachine secret set ${key} stores one.`,
      words: [],
    }
  if (secret.check === null) return { ok: true, problem: null, words: [] }
  const loaded = await settingsOf(world, records.directory, options)
  const { settings } = loaded
  const codex = await chooseCodex(world, records, loaded)
  const repository = await findRepository(records.directory)
  const warnings: string[] = []
  const said = { settings, overrides: options.config ?? [], onWarning: (each: string) => void warnings.push(each) }
  const writable = writableGit(records.directory, repository)
  const secrets = openSessionSecrets(records, { ...codex, writable })
  const unreadable = secrets.unreadable()
  // A running session has created them itself, and removes them.
  const isRunning = (await readRunner(records.lock, world.platform)) !== null
  await using traces = isRunning ? null : await openSandboxTraces([records.directory], records.traces)
  await traces?.expectFiles(unreadable)
  await using shell = openShell({
    ...(await codexOptionsOf(world, records, codex, said)),
    directory: records.directory,
    temporary: records.temporary,
    sandbox: {
      mode: settings.sandbox,
      network: settings.network,
      writable,
    },
  })
  const since = world.clock.now()
  const end = await shell.run({
    run: secret.check,
    env: { [key]: secret.value },
    unreadable,
    timeoutMs: Math.min(settings.commandMinutes, MOST_CHECK_MINUTES) * 60_000,
    signal: world.signal,
    mostCharacters: 0,
  })
  const words = (await hideLeaks(secrets, secret, since)).map(codex.redactor.text)
  const failure = codex.redactor.text(wordsForEnd(end))
  return failure === '' ? { ok: true, problem: null, words } : { ok: false, problem: failure, words }
}

/** Hides and reports files in which a check left its secret. The search ignores interruptions. */
async function hideLeaks(
  secrets: Pick<SessionSecrets, 'search' | 'hide'>,
  { key, value }: StoredSecret,
  since: number,
): Promise<string[]> {
  const { files, problem } = await secrets.search(since, [{ name: key, value }], new AbortController().signal)
  if (files.length > 0) await secrets.hide(files)
  const leak = `Its check wrote the secret into ${files.join(', ')}; agents can no longer read that.`
  return [...(files.length === 0 ? [] : [leak]), ...(problem === null ? [] : [problem])]
}

/** Returns a sentence why a check fails; empty if it passes. */
function wordsForEnd(end: ShellEnd): string {
  switch (end.kind) {
    case 'exited':
      return end.exitCode === 0 ? '' : `Its check exited with ${end.exitCode}.`
    case 'timed-out':
      return 'Its check did not finish in time.'
    case 'broken-off':
      return 'Its check was interrupted.'
    case 'not-started':
      return `Its check could not be run: ${end.problem}`
  }
}

const MOST_CHECK_MINUTES = 10
