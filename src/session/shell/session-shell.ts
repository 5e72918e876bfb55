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

/** What commands with secrets are run with in a session. */
export interface ShellMeans {
  shell: Shell
  secrets: SessionSecrets
  /** The most that a command may take by the settings, ms. */
  commandMs: number
  /** Creates empty files at the paths that no command may read and that are missing, for commands that run side by side. */
  createPlaceholders(paths: readonly string[]): Promise<void>
}

export interface SessionShellOptions extends ShellMeans {
  log: Pick<SessionLog, 'state' | 'emit'>
  template: Pick<Template, 'refusesSecrets'>
  redactor: Redactor
  clock: Clock
  /** The time that a command may take by the limits of the session, ms. */
  leftMs(): number
}

/** For whom a command is run. */
export interface ShellPlace {
  /** What the thread may not read, beside what no command may. */
  thread: Pick<ThreadSpec, 'unreadable' | 'readOnly'>
  /** Ends the command. */
  signal: AbortSignal
}

/** What came of a command, for the one who wanted it. */
interface ShellAnswer extends ToolAnswer {
  /** The same for two commands that came to the same; null: nothing was run. */
  same: string | null
  /** Files in which a secret was found after it. */
  leaked: readonly string[]
}

/** The most of each stream that goes to the model and into the journal, characters. */
const MOST_OUTPUT = 16_000
/** The longest time of a command, ms; and the part of the setting, for an agent is given its answer before that is over. */
const MOST_MS = 10 * 60_000
const SHARE = 0.85
/** How often a form of a secret has its length at most: each byte as a number, say, in a list that is indented. */
const FORM_LENGTH = 16
/** Of secrets that the command was not given, and might print all the same. */
const USUAL_FORM = 8_192
/** How long the files that a command has changed may be searched, ms. */
const SEARCH_MS = 60_000
/** Files that a sentence names. */
const MOST_NAMED = 10

/**
 * Runs the commands that agents want run with secrets, and asks for the secrets that they need. A value goes into the
 * variables of its command alone: it is taken out of what that prints before anything is kept or handed over, and files in
 * which the command has left it are closed to agents.
 */
export class SessionShell {
  readonly #options: SessionShellOptions
  readonly #running = new Set<Promise<unknown>>()

  constructor(options: SessionShellOptions) {
    this.#options = options
  }

  /** Runs a command, and journals what came of it. Rejects if that cannot be journaled, or files that hold a secret cannot be closed. */
  async run(wanted: WantedCommand, place: ShellPlace): Promise<ShellAnswer> {
    const running = this.#run(wanted, place)
    this.#running.add(running)
    try {
      return await running
    } finally {
      this.#running.delete(running)
    }
  }

  /** Resolves when no command runs any more. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#running)
  }

  /** Asks for a secret, unless it is there; `isAsked`: a person has to be waited for. */
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
   * Whether a secret is there and its check passes, if it has one; `problem`: why not, a sentence; `missing`: there is none.
   * Null if that was broken off.
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
    // A name may have one that reads like a word.
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

  /** The secrets of these names; else what is said of one that is not there. */
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

  /** Runs it, and searches the files that it has made or changed for the secrets that it had. */
  async #play(
    command: string,
    used: readonly StoredSecret[],
    { thread, signal }: ShellPlace,
  ): Promise<{ end: ShellEnd; leaked: readonly string[] }> {
    const { shell, secrets, clock, commandMs, leftMs, createPlaceholders } = this.#options
    const unreadable = [...new Set([...(thread.unreadable ?? []), ...secrets.unreadable()])]
    await createPlaceholders(unreadable)
    // It may have been stored a moment ago, by another process.
    secrets.refresh()
    const since = clock.now()
    const end = await shell.run({
      run: command,
      env: Object.fromEntries(used.map(({ key, value }) => [key, value])),
      unreadable,
      timeoutMs: Math.max(1000, Math.min(MOST_MS, commandMs * SHARE, leftMs())),
      signal,
      // What is cut off at the front may be a part of a secret, which nothing finds.
      mostCharacters: MOST_OUTPUT + 2 * longestForm(used),
    })
    const searched = used.filter(({ value }) => !isShortSecret(value))
    return { end, leaked: searched.length === 0 ? [] : await this.#search(since, searched) }
  }

  /** Closes files to agents in which a secret is found. It is searched to its end, whatever a person breaks off. */
  async #search(since: number, used: readonly StoredSecret[]): Promise<readonly string[]> {
    const files = await this.#filesWith(since, used)
    // What could not be closed could be read by the next command: nothing goes on with it.
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

  /** What it printed, without secrets, as it is kept and handed over. */
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

  /** Why no command may have a secret now; null: they may. */
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
 * The tools `run_shell` and `ask_human`.
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

/** A thread that may not read, either, what no command of an agent may; as it is where there are no secrets. */
export function withoutSecrets(thread: ThreadSpec, deniedPaths: readonly string[]): ThreadSpec {
  if (deniedPaths.length === 0) return thread
  return { ...thread, unreadable: [...new Set([...(thread.unreadable ?? []), ...deniedPaths])] }
}

/** Whether a secret is there; `broken`: it is, and cannot be read, so that a person has to give it again. */
async function readable(secrets: SessionSecrets, key: string): Promise<'there' | 'missing' | 'broken'> {
  try {
    return (await secrets.get(key)) === null ? 'missing' : 'there'
  } catch (error) {
    if (error instanceof UserError) return 'broken'
    throw error
  }
}

/** Short values are left out: they would be found in words that have nothing to do with them. */
function redactorOfAll(used: readonly StoredSecret[]): Redactor {
  return redactorOf(used.filter(({ value }) => !isShortSecret(value)).map(encodedToo))
}

function encodedToo({ key, value }: StoredSecret): Secret {
  return { name: key, value, isEncoded: true }
}

/** The most characters that a form of one of these secrets has. */
function longestForm(used: readonly StoredSecret[]): number {
  return Math.max(USUAL_FORM, ...used.map(({ value }) => value.length * FORM_LENGTH))
}

/**
 * The end of what was printed. Of a text that was cut before it was redacted the first `longest` characters are left out:
 * they may be the rest of a secret.
 */
function endOf(redacted: string, isCut: boolean, longest: number): string {
  const from = Math.max(0, redacted.length - MOST_OUTPUT)
  return redacted.slice(isCut ? Math.max(from, longest) : from).toWellFormed()
}

function statusOf(end: ShellEnd): Pick<EventOf<'shell-ran'>, 'status' | 'exitCode'> {
  if (end.kind !== 'exited') return { status: end.kind, exitCode: null }
  return { status: end.exitCode === 0 ? 'passed' : 'failed', exitCode: end.exitCode }
}

/** How a check ended, after "Its check"; null if it passed. Nothing that it printed is repeated. */
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
  'timed-out': 'none: it took too long, and was ended with all that it had started',
  'broken-off': 'none: it was broken off',
}

/** What the agent is told of a command that was run. */
function wordsForModel(ran: EventOf<'shell-ran'>): string {
  const { command, status, exitCode, stdout, stderr, problem, withheld, printed = [], leaked = [], secrets } = ran
  const none =
    status === 'timed-out' || status === 'broken-off' ? NONE[status] : `none: ${problem ?? 'it did not start'}`
  const notes = [
    ...(withheld ? [`Its output is kept back, for ${secrets.join(' or ')} is too short to be found in it.`] : []),
    ...(printed.length === 0
      ? []
      : [`It has printed ${printed.join(', ')}: "[secret …]" stands in its place. Do not print secrets.`]),
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

/** What a person is told at once: nothing that codemachine does takes it out of their repository. */
function wordsForCommitted(files: readonly string[], used: readonly StoredSecret[]): string {
  const keys = used.map(({ key }) => key).join(' or ')
  return `A command has put the secret ${keys} into the git repository (${named(files)}). Agents cannot read these objects any more. Take it out of the history before you push, or give the service another key.`
}

const IN_HISTORY =
  'It is in the git repository now: git fails where it has to read that commit or file. Do not commit secrets, do not try to repair the history, and say in your answer what has happened.'

function named(files: readonly string[]): string {
  const more = files.length - MOST_NAMED
  return [...files.slice(0, MOST_NAMED), ...(more > 0 ? [`${more} more`] : [])].join(', ')
}
