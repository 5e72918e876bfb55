import { statSync } from 'node:fs'
import { rename } from 'node:fs/promises'
import type { Writable } from 'node:stream'
import { Interrupted, isReaderGone, messageOf, systemErrorCode, UserError } from '../../base/errors.ts'
import type { View } from '../../core/state/state.ts'
import type { SessionsPlace } from '../../project/find.ts'
import type { RunOptions } from '../../project/library.ts'
import type { RunObserver } from '../../project/sessions.ts'
import type { BegunDetached } from '../../project/start/detached.ts'
import { howToGoOn } from '../../tell/words/commands.ts'
import { oneLine } from '../../tell/words/safe-text.ts'
import type { CliContext, Display } from '../screen/cli-context.ts'
import { paintTone, plainView } from '../screen/plain-view.ts'
import { columnsOf, DecisionPrompt } from './decision-prompt.ts'
import { type RunFlags, wantsColour, wantsScreen } from './flags.ts'
import { warnOn } from './warn-on.ts'

/** Writes each event as one line of JSON, the very line that the journal holds. `write` gets whole lines. */
export function jsonView(write: (text: string) => void): View {
  return {
    event: event => write(`${JSON.stringify(event)}\n`),
    live() {},
  }
}

/**
 * Writes no faster than the reader reads, so that a long text never lies in memory: wait for `ready` between writes.
 * `ended` aborts when the reader has gone away or `signal` aborts.
 */
export class PacedOutput implements Disposable {
  readonly ended: AbortSignal
  readonly #stream: Writable
  readonly #signal: AbortSignal
  readonly #end: () => void
  #full = false

  constructor(stream: Writable, signal: AbortSignal) {
    const ending = new AbortController()
    this.ended = ending.signal
    this.#stream = stream
    this.#signal = signal
    this.#end = () => ending.abort()
    if (signal.aborted) this.#end()
    signal.addEventListener('abort', this.#end)
    stream.on('error', this.#end)
    stream.on('close', this.#end)
  }

  write(text: string): void {
    if (!this.ended.aborted) this.#full = !this.#stream.write(text)
  }

  async ready(): Promise<void> {
    if (!this.#full || this.ended.aborted) return
    await new Promise<void>(resolve => {
      const done = () => {
        this.#stream.off('drain', done)
        this.ended.removeEventListener('abort', done)
        resolve()
      }
      this.#stream.on('drain', done)
      this.ended.addEventListener('abort', done)
    })
    this.#full = false
  }

  [Symbol.dispose](): void {
    this.#signal.removeEventListener('abort', this.#end)
    this.#stream.off('error', this.#end)
    this.#stream.off('close', this.#end)
  }
}

/** Rows as lines, in columns of even width, the last of which may be of any. */
export function inColumns(rows: readonly (readonly string[])[]): string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map(row => row[column]?.length ?? 0)))
  return rows.map(row =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  )
}

/** Says on stderr of a session of a worktree where it is. */
export function sayWorktree(
  { stderr }: Pick<CliContext, 'stderr'>,
  { worktree, records, id }: SessionsPlace & { id: string },
): void {
  if (worktree === null) return
  stderr.write(`codemachine: ${id} is of the worktree ${worktree}, in ${oneLine(records.directory, 500)}.\n`)
}

/** Opens a page of a directory in the person's browser; where there is no desktop, or it fails, says so on stderr. */
export async function openInBrowser(
  context: Pick<CliContext, 'env' | 'home' | 'platform' | 'templates' | 'stderr'>,
  path: string,
  directory: string,
) {
  const { env, platform, stderr } = context
  const { hasDesktop, openPage } = await import('../../platform/browser.ts')
  if (!hasDesktop(env, platform)) {
    stderr.write('No desktop can open it here; see the file above.\n')
    return
  }
  const { agentFolders } = await import('../../project/environment/agent-folders.ts')
  const { writableIn } = await import('../../workspace/git/find-git.ts')
  const where = await writableIn(directory, env, await agentFolders(context))
  const problem = await openPage(path, { env, platform, where })
  if (problem !== null) stderr.write(`codemachine: it could not be opened (${problem}); see the file above.\n`)
}

/** Whether a person is there who can be asked. */
export function isAsked({ stdin, stdout }: CliContext, { json }: { json?: boolean }): boolean {
  return stdin.isTTY === true && stdout.isTTY === true && !json
}

/**
 * Asks on the terminal; Enter alone is a yes, and what is neither yes nor no is asked again. Null if the input ends
 * without an answer. Throws `Interrupted` if the program is asked to end while it waits.
 */
export async function askYesOrNo(context: CliContext, question: string): Promise<boolean | null> {
  const [answer = null] = await askEach(context, [question], true)
  return answer
}

/**
 * Asks which of these words is meant, by the word or its first letter; Enter alone is the first. Null if the input ends without
 * an answer. Throws `Interrupted` if the program is asked to end while it waits.
 */
export async function askWord<const Word extends string>(
  context: CliContext,
  question: string,
  words: readonly Word[],
): Promise<Word | null> {
  let chosen: Word | null = null
  await readAnswers(
    context,
    () => `${question} [${words.join('/')}] `,
    line => {
      const typed = line.toLowerCase()
      chosen =
        words.find(word => typed === word || typed === word.slice(0, 1)) ?? (typed === '' ? (words[0] ?? null) : null)
      return chosen !== null
    },
  )
  return chosen
}

/** Asks several such questions, one after the other, until the input ends. @param usual what Enter alone is */
export async function askEach(context: CliContext, questions: readonly string[], usual: boolean): Promise<boolean[]> {
  const answers: boolean[] = []
  const ask = () => `${questions[answers.length]} ${usual ? '[Y/n]' : '[y/N]'} `
  await readAnswers(context, ask, line => {
    const answer = line.toLowerCase()
    if (['y', 'yes'].includes(answer)) answers.push(true)
    else if (['n', 'no'].includes(answer)) answers.push(false)
    else if (answer === '') answers.push(usual)
    return answers.length === questions.length
  })
  return answers
}

/** Asks which of the numbered lines before it is meant; null: none. Throws `Interrupted` if the program is asked to end. */
export async function askWhich(context: CliContext, most: number): Promise<number | null> {
  let chosen: number | null = null
  await readAnswers(
    context,
    () => `Which one? [1-${most}, Enter for none] `,
    line => {
      if (/^\d+$/.test(line) && Number(line) >= 1 && Number(line) <= most) chosen = Number(line)
      return line === '' || chosen !== null
    },
  )
  return chosen
}

/** Asks, and asks again after each line until `take` has had enough, or the input ends. */
async function readAnswers(
  { stdin, stdout, signal }: CliContext,
  ask: () => string,
  take: (line: string) => boolean,
): Promise<void> {
  // Nothing comes any more, and nobody would say so.
  if (stdin.readableEnded) return
  // Loaded only here: it takes longer to load than most commands take to run.
  const { createInterface } = await import('node:readline')
  // Not as a terminal of readline's own, which would take Ctrl-C for itself.
  const lines = createInterface({ input: stdin, terminal: false, signal })
  stdout.write(ask())
  try {
    for await (const line of lines) {
      if (take(line.trim())) return
      stdout.write(ask())
    }
  } finally {
    // Leaving the loop does not do it, and a terminal that is still read keeps the program alive.
    lines.close()
  }
  stdout.write('\n')
  if (signal.aborted) throw new Interrupted(signal.reason)
}

function bothViews(one: View, other: View): View {
  return {
    event(event, state) {
      one.event(event, state)
      other.event(event, state)
    },
    live(event) {
      one.live(event)
      other.live(event)
    },
  }
}

/** Tells whoever has started this runner of its first session. */
function announcing(context: CliContext, log: string): View {
  let isTold = false
  const onProblem = warnOn(context)
  return {
    event({ session }, { directory }) {
      if (isTold) return
      isTold = true
      const said = statSync(log, { throwIfNoEntry: false })?.size ?? 0
      announce(context, { session, directory, log, said }).catch(error => onProblem(messageOf(error)))
    },
    live() {},
  }
}

/**
 * Says to whoever has started this runner that its first session has begun, and gives its output its place in the records
 * of that.
 * @param log where its output goes until now; `said`: how many bytes of it came before
 */
async function announce(context: CliContext, { session, directory, log, said }: BegunDetached): Promise<void> {
  // Loaded only here: whatever prints lines loads this file.
  const { recordsAround } = await import('../../session/records/records.ts')
  const [records] = await recordsAround({ ...context, directory })
  const place = records === undefined ? log : await moved(log, records.runLog)
  context.own.detached?.tell({ session, directory, log: place, said })
}

/** The one of the run before is kept beside it. Where it cannot be moved it stays where it is. */
async function moved(from: string, to: string): Promise<string> {
  await rename(to, `${to}.1`).catch(() => {})
  return await rename(from, to).then(
    () => to,
    () => from,
  )
}

/**
 * Does work of a run on the screen, if a person watches one whose keys are theirs, else in lines.
 * @param goal what was typed for it; `isInputRead`: whether standard input was read to its end, so that no key would come
 */
export async function whereShown(
  context: CliContext,
  options: RunOptions,
  flags: Pick<RunFlags, 'plain' | 'json'>,
  work: (inner: CliContext) => Promise<number>,
  { goal = null, isInputRead = false }: { goal?: string | null; isInputRead?: boolean } = {},
): Promise<number> {
  if (isInputRead || !wantsScreen(context, flags)) return await work(context)
  const { runOnScreen } = await import('../screen/host/screen-home.ts')
  return await runOnScreen(context, options, work, goal)
}

const DUMB =
  'This terminal cannot show the screen (TERM=dumb), so plain lines follow. A terminal with another TERM can, or a browser: codemachine web.'

/** The lines of stdout, as the flags say. */
function displayOn(context: CliContext, flags: RunFlags): Display {
  const { stdin, stdout, stderr } = context
  const { detached } = context.own
  const isAsked = !flags.json && stdin.isTTY === true && stdout.isTTY === true
  const prompt = isAsked ? new DecisionPrompt(context) : null
  if (isAsked && !flags.plain && context.env.TERM === 'dumb') stderr.write(`codemachine: ${DUMB}\n`)
  const write = (text: string) => {
    prompt?.endLine()
    stdout.write(text)
  }
  stdout.once('error', error => {
    const why = isReaderGone(error, stdout.isTTY === true) ? 'The output was closed. ' : ''
    stderr.write(`${why}The work continues; codemachine logs -f follows it.\n`)
  })
  const lines = flags.json ? jsonView(write) : plainView(write, { colour: wantsColour(context), asks: prompt !== null })
  const view = detached === null ? lines : bothViews(announcing(context, detached.log), lines)
  return {
    // Who has let it go can attach to it.
    canAsk: isAsked || detached !== null,
    view: prompt === null ? view : bothViews(view, prompt),
    say: text => void (flags.json ? stderr.write(`${text}\n`) : write(`${text}\n`)),
    card(lines) {
      if (flags.json) return
      const columns = columnsOf(context)
      const paint = wantsColour(context) ? paintTone : (text: string) => text
      write(`${['', ...lines({ columns }).map(({ text, tone }) => paint(text, tone)), ''].join('\n')}\n`)
    },
    reach: sessions => prompt?.reach(sessions),
  }
}

/**
 * Shows a run where the context says, and after each session its report in short and how to go on.
 * @param resumable whether commands that are typed later find the sessions
 */
export function observerOn(context: CliContext, flags: RunFlags, resumable = true): RunObserver {
  const { view, canAsk, hasScreen = false, hasSlash, reach, card, say } = context.display ?? displayOn(context, flags)
  return {
    view,
    canAsk,
    hasScreen,
    reach,
    ended(stop, report) {
      const onScreen = hasSlash?.() ?? false
      card(place => report.card({ ...place, hasSlash: onScreen }))
      if (report.problem !== null) say(report.problem)
      const how = howToGoOn(stop, onScreen)
      if (how !== null && resumable) say(how)
    },
  }
}

/** Waits until a file is written. Throws a `UserError` that names the file and `what` if it cannot be written. */
export async function orUnwritable(what: string, path: string, written: Promise<unknown>): Promise<void> {
  try {
    await written
  } catch (error) {
    const why = systemErrorCode(error) ?? messageOf(error)
    throw new UserError('CM0108', `The ${what} cannot be written to ${path}: ${why}; name another file.`, {
      cause: error,
    })
  }
}
