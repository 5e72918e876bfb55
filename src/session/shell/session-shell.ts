import type { Clock } from '../../base/clock.ts'
import { UserError } from '../../base/errors.ts'
import type { ThreadSpec, ToolAnswer } from '../../core/engine.ts'
import type { EventOf } from '../../core/events/events.ts'
import {
  isShortSecret,
  keepsGitObjects,
  problemOfKey,
  type Secret,
  type SessionSecrets,
  type StoredSecret,
} from '../../core/shapes/secrets.ts'
import {
  ASK_HUMAN,
  askHumanTool,
  runShellTool,
  type Shell,
  type ShellEnd,
  type WantedCommand,
  type WantedSecret,
} from '../../core/shapes/shell.ts'
import { readAskHuman, readRunShell } from '../../core/shapes/shell-tools.ts'
import type { AnsweredTool } from '../../core/shapes/tools.ts'
import type { Template } from '../../core/template.ts'
import { type Redactor, redactorOf } from '../../secrets/redactor.ts'
import type { SessionLog } from '../session-log.ts'

/** Means to run commands with secrets in a session. */
export interface ShellMeans {
  shell: Shell
  secrets: SessionSecrets
  /** Longest time of a command by the settings, ms. */
  commandMs: number
  /** Creates empty files at missing paths that no command may read, for commands that run at the same time. */
  createPlaceholders(paths: readonly string[]): Promise<void>
}

export interface SessionShellOptions extends ShellMeans {
  log: Pick<SessionLog, 'state' | 'emit'>
  template: Pick<Template, 'refusesSecrets'>
  redactor: Redactor
  clock: Clock
  /** Returns the time left to a command by the session's limits, ms. */
  leftMs(): number
}

/** The requester of a command. */
export interface ShellPlace {
  /** Further unreadable paths of the thread, and if it is read-only. */
  thread: Pick<ThreadSpec, 'unreadable' | 'readOnly'>
  /** Aborts the command. */
  signal: AbortSignal
}

/** The result of a command, for its requester. */
interface ShellAnswer extends ToolAnswer {
  /** Equal for two commands with the same result; null: nothing was run. */
  same: string | null
  /** Files with a secret found after the command. */
  leaked: readonly string[]
}

/** Longest text of each stream for the model and the journal, characters. */
const MOST_OUTPUT = 16_000
/** Longest time of a command, ms, and its share of the setting: the agent must get the answer before that ends. */
const MOST_MS = 10 * 60_000
const SHARE = 0.85
/** Longest encoded form as a multiple of the secret's length, for example an indented list of byte numbers. */
const FORM_LENGTH = 16
/** Longest form of secrets that the command did not get but might print, characters. */
const USUAL_FORM = 8_192
/** Longest search in changed files, ms. */
const SEARCH_MS = 60_000
/** Most files that a sentence names. */
const MOST_NAMED = 10

/**
 * Runs commands with secrets for agents, and asks persons for missing secrets. Only the command's variables get a value.
 * Values are removed from output before anything stores or sends it. Files that contain one are hidden from agents.
 */
export class SessionShell {
  readonly #options: SessionShellOptions
  readonly #running = new Set<Promise<unknown>>()

  constructor(options: SessionShellOptions) {
    this.#options = options
  }

  /** Runs a command and journals its result. Rejects if the journal fails, or files with a secret cannot be hidden. */
  async run(wanted: WantedCommand, place: ShellPlace): Promise<ShellAnswer> {
    const running = this.#run(wanted, place)
    this.#running.add(running)
    try {
      return await running
    } finally {
      this.#running.delete(running)
    }
  }

  /** Resolves when no command runs. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#running)
  }

  /** Asks for a secret unless it exists; `isAsked`: the agent must wait for a person. */
  async ask({ key, question, reason }: WantedSecret): Promise<ToolAnswer & { isAsked: boolean }> {
    const { log, secrets } = this.#options
    const problem = problemOfKey(key)
    if (problem !== null) return { text: `${problem} Nobody was asked.`, success: false, isAsked: false }
    const found = await readable(secrets, key)
    if (found === 'there' && reason === null && this.#refusal === null)
      return { text: isThere(key), success: true, isAsked: false }
    log.emit({ type: 'secret-asked', round: this.#round, key, question, reason })
    return { text: wordsForAsked(key), success: true, isAsked: true }
  }

  /**
   * Checks that a secret exists and passes its check, if any; `problem`: why not, a sentence; `missing`: it does not exist.
   * Null if interrupted.
   */
  async confirm(
    key: string,
    signal: AbortSignal,
  ): Promise<{ ok: boolean; problem: string | null; missing?: true } | null> {
    const refused = problemOfKey(key)
    if (refused !== null) return { ok: false, problem: refused }
    try {
      const secret = await this.#options.secrets.get(key)
      if (secret === null) return { ok: false, problem: `There is no secret ${key}.`, missing: true }
      if (secret.check === null) return { ok: true, problem: null }
      const { end, leaked } = await this.#play(secret.check, [secret], { thread: {}, signal })
      if (leaked.length > 0) this.#warn(wordsForLeak(leaked, key))
      if (signal.aborted || end.kind === 'broken-off') return null
      const how = wordsForEnd(end)
      return how === null ? { ok: true, problem: null } : { ok: false, problem: `Its check ${how}.` }
    } catch (error) {
      if (error instanceof UserError) return { ok: false, problem: error.message }
      throw error
    }
  }

  async #run({ command, secrets: names }: WantedCommand, place: ShellPlace): Promise<ShellAnswer> {
    if (place.thread.readOnly) return nothingRan('This agent may only read; nothing was run.')
    const used = await this.#secretsOf(names)
    if (typeof used === 'string') return nothingRan(used)
    const { end, leaked: files } = await this.#play(command, used, place)
    // A file name may contain a secret that looks like a word.
    const leaked = files.map(redactorOfAll(used).text)
    const shown = this.#shown(end, used)
    const { exitCode, status } = statusOf(end)
    const ran: EventOf<'shell-ran'> = {
      type: 'shell-ran',
      round: this.#round,
      command: this.#options.redactor.text(command),
      secrets: used.map(({ key }) => key),
      status,
      exitCode,
      ...shown,
      durationMs: Math.round(end.durationMs),
      problem: end.kind === 'not-started' ? redactorOfAll(used).text(end.problem) : null,
      ...(leaked.length === 0 ? {} : { leaked: [...leaked] }),
    }
    this.#options.log.emit(ran)
    const committed = leaked.filter(keepsGitObjects)
    if (committed.length > 0) this.#warn(wordsForCommitted(committed, used))
    const same = JSON.stringify([command, status, exitCode, shown.stdout, shown.stderr])
    return { text: wordsForModel(ran), success: true, same, leaked }
  }

  /** Returns the secrets of these names, or a sentence about a missing one. */
  async #secretsOf(names: readonly string[]): Promise<readonly StoredSecret[] | string> {
    const { secrets } = this.#options
    if (names.length > 0 && this.#refusal !== null)
      return `${this.#refusal} Nothing was run. Ask for the secret with ${ASK_HUMAN}, and end your turn.`
    const used: StoredSecret[] = []
    for (const name of new Set(names)) {
      const problem = problemOfKey(name)
      if (problem !== null) return `${problem} Nothing was run.`
      try {
        const secret = await secrets.get(name)
        if (secret === null) return `There is no secret ${name}, so nothing was run. Ask for it with ${ASK_HUMAN}.`
        used.push(secret)
      } catch (error) {
        if (!(error instanceof UserError)) throw error
        this.#warn(error.message)
        return `The secret ${name} cannot be read, so nothing was run. Ask for it again with ${ASK_HUMAN}, with that as the reason.`
      }
    }
    return used
  }

  /** Runs a command, and searches its new or changed files for its secrets. */
  async #play(
    command: string,
    used: readonly StoredSecret[],
    { thread, signal }: ShellPlace,
  ): Promise<{ end: ShellEnd; leaked: readonly string[] }> {
    const { shell, secrets, clock, commandMs, leftMs, createPlaceholders } = this.#options
    const unreadable = [...new Set([...(thread.unreadable ?? []), ...secrets.unreadable()])]
    await createPlaceholders(unreadable)
    // Another process may have stored a secret a moment ago.
    secrets.refresh()
    const since = clock.now()
    const end = await shell.run({
      run: command,
      env: Object.fromEntries(used.map(({ key, value }) => [key, value])),
      unreadable,
      timeoutMs: Math.max(1000, Math.min(MOST_MS, commandMs * SHARE, leftMs())),
      signal,
      // A secret that is cut at the front cannot be found, so keep more text.
      mostCharacters: MOST_OUTPUT + 2 * longestForm(used),
    })
    const searched = used.filter(({ value }) => !isShortSecret(value))
    return { end, leaked: searched.length === 0 ? [] : await this.#search(since, searched) }
  }

  /** Hides files with a secret from agents. An interrupt does not stop the search. */
  async #search(since: number, used: readonly StoredSecret[]): Promise<readonly string[]> {
    const files = await this.#filesWith(since, used)
    // The next command could read a file that is not hidden, so a failure here stops everything.
    if (files.length > 0) await this.#options.secrets.hide(files)
    return files
  }

  async #filesWith(since: number, used: readonly StoredSecret[]): Promise<readonly string[]> {
    const { secrets, clock } = this.#options
    const over = new AbortController()
    const late = new AbortController()
    void clock.wait(SEARCH_MS, over.signal).then(() => late.abort())
    try {
      const asked = used.map(encodedToo)
      const { files, problem } = await secrets.search(since, asked, late.signal)
      if (problem !== null) this.#warn(`Not all files that a command has changed were searched for secrets. ${problem}`)
      return files
    } catch (error) {
      if (!(error instanceof UserError)) throw error
      this.#warn(`Files that a command has changed may hold a secret. ${error.message}`)
      return []
    } finally {
      over.abort()
    }
  }

  /** Returns its output without secrets, as it is stored and sent. */
  #shown(
    { stdout, stderr }: ShellEnd,
    used: readonly StoredSecret[],
  ): Pick<EventOf<'shell-ran'>, 'stdout' | 'stderr' | 'withheld' | 'printed'> {
    const printed = used
      .filter(({ value }) => !isShortSecret(value))
      .filter(secret => [stdout, stderr].some(text => redactorOfAll([secret]).text(text) !== text))
      .map(({ key }) => key)
    const named = printed.length === 0 ? {} : { printed }
    if (used.some(({ value }) => isShortSecret(value))) return { stdout: '', stderr: '', withheld: true, ...named }
    const own = redactorOfAll(used)
    const most = longestForm(used)
    const shown = (text: string) =>
      endOf(this.#options.redactor.text(own.text(text)), text.length >= MOST_OUTPUT + 2 * most, most)
    return { stdout: shown(stdout), stderr: shown(stderr), ...named }
  }

  /** The reason why no command may have a secret now; null: they may. */
  get #refusal(): string | null {
    const { template, log } = this.#options
    return template.refusesSecrets?.(log.state) ?? null
  }

  get #round(): number {
    const { running, last } = this.#options.log.state
    return running?.round ?? last?.round ?? 0
  }

  #warn(message: string): void {
    this.#options.log.emit({ type: 'warning', round: this.#options.log.state.running?.round ?? null, message })
  }
}

/**
 * Returns the tools `run_shell` and `ask_human`.
 * @param placeOf for whom a call is answered
 * @param onLeak told of files in which a command has left a secret
 */
export function shellTools(
  shell: SessionShell,
  placeOf: () => ShellPlace['thread'],
  onLeak: (files: readonly string[]) => void,
): readonly AnsweredTool[] {
  const run: AnsweredTool<WantedCommand> = {
    offer: runShellTool,
    read: readRunShell,
    async answer(wanted, signal) {
      const { text, success, leaked } = await shell.run(wanted, { thread: placeOf(), signal })
      if (leaked.length > 0) onLeak(leaked)
      return { text, success }
    },
  }
  const ask: AnsweredTool<WantedSecret> = {
    offer: askHumanTool,
    read: readAskHuman,
    async answer(wanted) {
      const { text, success } = await shell.ask(wanted)
      return { text, success }
    },
  }
  return [run, ask]
}

/** Adds the paths that no agent's command may read to a thread's unreadable ones. */
export function withoutSecrets(thread: ThreadSpec, deniedPaths: readonly string[]): ThreadSpec {
  if (deniedPaths.length === 0) return thread
  return { ...thread, unreadable: [...new Set([...(thread.unreadable ?? []), ...deniedPaths])] }
}

/** Checks if a secret exists; `broken`: it exists but cannot be read, so a person must give it again. */
async function readable(secrets: SessionSecrets, key: string): Promise<'there' | 'missing' | 'broken'> {
  try {
    return (await secrets.get(key)) === null ? 'missing' : 'there'
  } catch (error) {
    if (error instanceof UserError) return 'broken'
    throw error
  }
}

/** Returns a redactor of these secrets without short values, which would match unrelated words. */
function redactorOfAll(used: readonly StoredSecret[]): Redactor {
  return redactorOf(used.filter(({ value }) => !isShortSecret(value)).map(encodedToo))
}

function encodedToo({ key, value }: StoredSecret): Secret {
  return { name: key, value, isEncoded: true }
}

/** Returns the length of the longest form of these secrets, in characters. */
function longestForm(used: readonly StoredSecret[]): number {
  return Math.max(USUAL_FORM, ...used.map(({ value }) => value.length * FORM_LENGTH))
}

/**
 * Returns the end of the output. If it was cut before the redaction, drops its first `longest` characters, which may be the
 * rest of a secret.
 */
function endOf(redacted: string, isCut: boolean, longest: number): string {
  const from = Math.max(0, redacted.length - MOST_OUTPUT)
  return redacted.slice(isCut ? Math.max(from, longest) : from).toWellFormed()
}

function statusOf(end: ShellEnd): Pick<EventOf<'shell-ran'>, 'status' | 'exitCode'> {
  if (end.kind !== 'exited') return { status: end.kind, exitCode: null }
  return { status: end.exitCode === 0 ? 'passed' : 'failed', exitCode: end.exitCode }
}

/** Returns the end of a check, to follow "Its check"; null if it passed. Repeats no output. */
function wordsForEnd(end: ShellEnd): string | null {
  switch (end.kind) {
    case 'exited':
      return end.exitCode === 0 ? null : `failed (exit code ${end.exitCode})`
    case 'timed-out':
      return 'took too long, and was ended'
    case 'not-started':
      return 'could not be run'
    case 'broken-off':
      return 'was broken off'
  }
}

const NONE: Record<Exclude<ShellEnd['kind'], 'exited' | 'not-started'>, string> = {
  'timed-out': 'none: it took too long, so codemachine ended it and all its processes',
  'broken-off': 'none: it was broken off',
}

/** Returns the answer to the agent about a command that ran. */
function wordsForModel(ran: EventOf<'shell-ran'>): string {
  const { command, status, exitCode, stdout, stderr, problem, withheld, printed = [], leaked = [], secrets } = ran
  const none =
    status === 'timed-out' || status === 'broken-off' ? NONE[status] : `none: ${problem ?? 'it did not start'}`
  const notes = [
    ...(withheld ? [`Its output is withheld, because ${secrets.join(' or ')} is too short to be found in it.`] : []),
    ...(printed.length === 0
      ? []
      : [`It has printed ${printed.join(', ')}: "[secret …]" replaces it. Do not print secrets.`]),
    ...(leaked.length === 0
      ? []
      : [
          `A secret was found in ${named(leaked)}, which no command can read any more. Do not write secrets into files.`,
        ]),
    ...(leaked.some(keepsGitObjects) ? [IN_HISTORY] : []),
  ]
  return [
    `COMMAND: ${command}`,
    `RETURN CODE: ${exitCode ?? none}`,
    `STDOUT:\n${stdout}`,
    `STDERR:\n${stderr}`,
    ...notes.map(note => `NOTE: ${note}`),
  ].join('\n')
}

function nothingRan(text: string): ShellAnswer {
  return { text, success: false, same: null, leaked: [] }
}

function isThere(key: string): string {
  return `${key} is there. You do not see its value: name it in \`secrets\` of the command that needs it, which has it as the variable ${key}. If it does not work, ask again with a \`reason\`.`
}

function wordsForAsked(key: string): string {
  return `The person is asked for ${key}. End your turn now with \`done\` false; you are started again when it is there.`
}

function wordsForLeak(files: readonly string[], key: string): string {
  return `The check of ${key} has left that secret in ${named(files)}. Agents cannot read it any more, and no savepoint has it.`
}

/** Returns the immediate warning to a person: codemachine cannot remove the secret from their repository. */
function wordsForCommitted(files: readonly string[], used: readonly StoredSecret[]): string {
  const keys = used.map(({ key }) => key).join(' or ')
  return `A command has put the secret ${keys} into the git repository (${named(files)}). Agents cannot read these objects any more. Take it out of the history before you push, or give the service another key.`
}

const IN_HISTORY =
  'The git repository now contains it, so git fails to read that commit or file. Do not commit secrets, and do not try to repair the history. Say in your answer what happened.'

function named(files: readonly string[]): string {
  const more = files.length - MOST_NAMED
  return [...files.slice(0, MOST_NAMED), ...(more > 0 ? [`${more} more`] : [])].join(', ')
}
