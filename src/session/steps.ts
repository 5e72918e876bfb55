import { TemplateError, unreachable } from '../base/errors.ts'
import { clipEnd, lastLines, truncate, withLineEnd } from '../base/text.ts'
import type { SessionOutcome } from '../core/events/outcome.ts'
import { countContract, proofOf } from '../core/rules/contract.ts'
import type { Output, OutputKind } from '../core/rules/outputs.ts'
import type { SessionState } from '../core/state/state.ts'
import { type OwnStep, type StepFile, templateError } from '../core/template.ts'
import { type FileToWrite, writeAllInside } from '../workspace/files/write-all.ts'
import { tooSlow } from '../workspace/git/git.ts'
import { type Answers, memberOf } from './answers.ts'
import type { Budget } from './budget.ts'
import type { RunnerOptions } from './options.ts'
import type { ClaimProof } from './proof/claim.ts'
import { emitRestored } from './proof/proof.ts'
import { OUTPUT_CHARACTERS } from './proof/run-gate.ts'
import type { Scopes } from './scope/scopes.ts'
import type { SessionShell } from './shell/session-shell.ts'

/** Parts of the session that the steps use. */
interface StepMeans {
  budget: Budget
  claim: ClaimProof
  scopes: Scopes
  answers: Answers
  /** Runs commands with secrets; null: none are run. */
  sessionShell: SessionShell | null
}

/** Most steps in a row without a round; more mean that the template loops. */
const MOST_IN_A_ROW = 20_000
/** Longest time of a look, ms; a longer one counts as hung. */
const LOOK_MS = 10 * 60_000
/** Longest result of a look in its event, bytes of JSON, and its deepest nesting. */
const RESULT_BYTES = 64 * 1024
const MOST_LEVELS = 100
/** Longest result of a look, characters of JSON: the longest output. */
const MOST_CHARACTERS = 1024 * 1024
const NAME_CHARACTERS = 200
const NOTE_CHARACTERS = 1_000

/** Carries out the steps of a template that need no engine. Journals each before and after. */
export class OwnSteps {
  readonly #options: RunnerOptions
  readonly #means: StepMeans
  #breakingOff = new AbortController()
  #isAtWork = false
  /** The round before the last steps, and the number of these steps. */
  #since: { round: unknown; steps: number } = { round: null, steps: 0 }

  constructor(options: RunnerOptions, means: StepMeans) {
    this.#options = options
    this.#means = means
  }

  /** True if a step must wait during a hold: it does work, or a person has interrupted it and would not want it again. */
  waits(step: OwnStep): boolean {
    return !WORKS_ON_NOTHING.has(step.kind) || this.#breakingOff.signal.aborted
  }

  /** Carries out a step on this work tree. Resolves with the fingerprint afterwards; null: take it again. */
  async carryOut(step: OwnStep, tree: string): Promise<string | null> {
    this.#checkScope(step)
    this.#breakingOff = new AbortController()
    this.#isAtWork = true
    try {
      return await this.#take(step, tree)
    } finally {
      this.#isAtWork = false
    }
  }

  async #take(step: OwnStep, tree: string): Promise<string | null> {
    const { log } = this.#options
    const number = log.state.steps + 1
    log.emit({
      type: 'step-started',
      step: number,
      kind: step.kind,
      name: clipEnd(nameOf(step, log.state), NAME_CHARACTERS),
      ...(step.kind === 'command' ? { timeoutMs: this.#mostMs(step) } : {}),
    })
    switch (step.kind) {
      case 'look':
        await this.#look(number, step)
        return tree
      case 'command':
        return await this.#run(number, step, tree)
      case 'write':
        return await this.#write(number, step)
      case 'note': {
        const [name, said] = [clipEnd(step.name, NAME_CHARACTERS), truncate(step.text, NOTE_CHARACTERS)]
        log.emit({ type: 'noted', step: number, name, text: said })
        return tree
      }
      case 'enter': {
        const [state, why] = [clipEnd(step.state, NAME_CHARACTERS), truncate(step.why, NOTE_CHARACTERS)]
        log.emit({ type: 'state-entered', step: number, state, from: log.state.workState, why })
        return tree
      }
      case 'keep':
        await this.#keep(number, step)
        return tree
      case 'gates':
        this.#means.scopes.addGates(step.gates, truncate(step.why, NOTE_CHARACTERS), number)
        return tree
      case 'claim':
        return await this.#means.claim.nominate(number)
      case 'confirm-secret':
        await this.#confirm(number, step.key)
        return null
      case 'leave-scope':
        await this.#means.scopes.giveUp(truncate(step.why, NOTE_CHARACTERS), number)
        return tree
      default:
        return unreachable(step)
    }
  }

  /** Interrupts the running step, if there is one. */
  interrupt(): void {
    if (this.#isAtWork) this.#breakingOff.abort()
  }

  /** Returns the outcome if a template may end a session with it; *done* needs an accepted claim. Otherwise throws. */
  checkedEnd(outcome: SessionOutcome): SessionOutcome {
    const { state } = this.#options.log
    if (outcome.kind !== 'done') return outcome
    if (state.claim.state === 'accepted' && state.scope === null) return provedEnd(outcome.verified, state)
    throw new TemplateError(
      `the template "${state.template}" ends the session as done, and no claim of that has been accepted`,
    )
  }

  /** Throws a `TemplateError` for a step that is only possible inside, or only outside, of a scope. */
  #checkScope({ kind }: OwnStep): void {
    const { template, scope } = this.#options.log.state
    if (kind === 'leave-scope' && scope === null)
      throw new TemplateError(`the template "${template}" leaves a scope, and is in none`)
    if (kind === 'claim' && scope !== null)
      throw new TemplateError(
        `the template "${template}" claims its goal in the scope "${scope.name}", which it has to leave first`,
      )
  }

  /** Counts a step; throws a `TemplateError` after too many without a round between them. */
  count(): void {
    const { last, template } = this.#options.log.state
    this.#since = { round: last, steps: this.#since.round === last ? this.#since.steps + 1 : 1 }
    if (this.#since.steps <= MOST_IN_A_ROW) return
    throw new TemplateError(`the template "${template}" asks for more than ${MOST_IN_A_ROW} steps without a round`)
  }

  /** Returns a signal that aborts when a person interrupts or the session ends. */
  #until(): AbortSignal {
    return AbortSignal.any([this.#options.asked.ending, this.#breakingOff.signal])
  }

  async #look(step: number, { what, keep }: Extract<OwnStep, { kind: 'look' }>): Promise<void> {
    const { log, redactor } = this.#options
    const { answers } = this.#means
    const signal = this.#until()
    const found = await this.#found(what, keep !== undefined, signal)
    if (found === null) return
    // The event omits long results, and readers use their file. So remove secrets from both.
    const json = redactor.line(found.json)
    const isShort = Buffer.byteLength(json) <= RESULT_BYTES
    const kept = await (keep !== undefined && found.text !== null
      ? this.#keepText(keep.file, found.text, what, 'md')
      : isShort
        ? {}
        : { output: await answers.keep(what, 'json', json) })
    if (signal.aborted) return
    const problem = 'problem' in kept && kept.problem !== null ? { problem: kept.problem } : {}
    const { output } = kept
    log.emit({
      type: 'looked',
      step,
      what,
      ...(isShort ? { result: JSON.parse(json) } : {}),
      ...(output === undefined ? {} : { output }),
      ...(keep === undefined ? {} : { file: keep.file }),
      ...problem,
    })
  }

  async #keep(step: number, wanted: Extract<OwnStep, { kind: 'keep' }>): Promise<void> {
    const { log, outputs } = this.#options
    const { file, name } = wanted
    const text = 'text' in wanted ? wanted.text : await outputs.whole(wanted.output)
    const kept =
      text === null
        ? { ...UNWRITTEN, problem: `what was to be kept in ${file} is not kept any more.` }
        : await this.#keepText(file, text, name, kindOf(file))
    log.emit({ type: 'kept', step, file, ...kept })
  }

  async #confirm(step: number, key: string): Promise<void> {
    const { log } = this.#options
    const { sessionShell } = this.#means
    if (sessionShell === null)
      throw new TemplateError(`the template "${log.state.template}" has no commands run with secrets`)
    const confirmed = await sessionShell.confirm(key, this.#until())
    if (confirmed !== null) log.emit({ type: 'secret-confirmed', step, key, ...confirmed })
  }

  /** Writes a text without its secrets to a file of the session's folder; with a name also as an output. */
  async #keepText(
    file: string,
    given: string,
    name: string | undefined,
    kind: OutputKind,
  ): Promise<{ bytes: number | null; sha256: string | null; problem: string | null; output?: Output }> {
    const { log, folder, redactor } = this.#options
    const { answers } = this.#means
    if (folder === null)
      throw new TemplateError(`the template "${log.state.template}" keeps a file, and its session has no folder`)
    const text = redactor.text(given).toWellFormed()
    if (text.length > MOST_CHARACTERS)
      return { ...UNWRITTEN, problem: `what was to be kept in ${file} has more than ${MOST_CHARACTERS} characters.` }
    const wrote = await folder.write(file, text)
    const output = name === undefined ? {} : { output: await answers.keep(name, kind, text) }
    return 'problem' in wrote ? { ...UNWRITTEN, ...wrote, ...output } : { ...wrote, problem: null, ...output }
  }

  /** Returns the result of a look as JSON, and the text to store separately; null if interrupted. */
  async #found(
    what: string,
    keeps: boolean,
    signal: AbortSignal,
  ): Promise<{ json: string; text: string | null } | null> {
    const { template, clock, log } = this.#options
    const over = new AbortController()
    const isOver = (error: unknown) => templateError(log.state.template, `look ${what}`, error)
    try {
      const look = Object.hasOwn(template.looks ?? {}, what) ? template.looks?.[what] : undefined
      if (look === undefined) throw new Error('it has no such look')
      const looking = look(AbortSignal.any([signal, over.signal]), log.state)
      const ended = clock.wait(LOOK_MS, AbortSignal.any([signal, over.signal])).then(() => TOO_LONG)
      const result = await Promise.race([looking, ended])
      if (signal.aborted) return null
      if (result === TOO_LONG)
        throw tooSlow(`Looking at the files for the template "${log.state.template}" (${what})`, LOOK_MS)
      return keeps ? apart(result) : { json: checkedJson(result), text: null }
    } catch (error) {
      if (signal.aborted) return null
      throw isOver(error)
    } finally {
      over.abort()
    }
  }

  async #run(step: number, command: Extract<OwnStep, { kind: 'command' }>, tree: string): Promise<string> {
    const { log, means, workTree, guard } = this.#options
    if (means === null) throw new Error('Nothing is run in this session but its rounds.')
    const timeoutMs = this.#mostMs(command)
    const name = clipEnd(command.name, NAME_CHARACTERS)
    const asked = log.state.replansAsked
    const ran = await means.runCommand({ ...command, timeoutMs }, { workTree, tree, signal: this.#until() })
    const { treeAfter, ...how } = ran
    // A change of plan requested meanwhile makes the result useless.
    const status = log.state.replansAsked === asked ? ran.status : 'broken-off'
    const isKept = status !== 'broken-off' && how.output !== ''
    log.emit({
      type: 'command-ran',
      step,
      name,
      // It runs only once, so it cannot be flaky.
      status: status === 'flaky' ? 'failed' : status,
      exitCode: how.exitCode,
      durationMs: how.durationMs,
      output: lastLines(how.output, OUTPUT_CHARACTERS),
      ...(isKept ? { kept: await this.#means.answers.keep(name, 'txt', how.output) } : {}),
      problem: how.problem,
      tree,
      treeAfter,
      changed: how.changed,
      changedCount: how.changedCount,
    })
    emitRestored(log, await guard.check())
    return treeAfter
  }

  /** Returns the longest time of a command now, ms. */
  #mostMs({ timeoutMs }: Extract<OwnStep, { kind: 'command' }>): number {
    return Math.round(Math.min(timeoutMs, this.#means.budget.leastMs))
  }

  async #write(step: number, { files }: Extract<OwnStep, { kind: 'write' }>): Promise<null> {
    const { log, agents, recordsRoot } = this.#options
    const all = await this.#textsOf(files)
    const options = { key: `${log.state.id} ${step}`, closed: recordsRoot, note: this.#options.writing }
    const wrote = 'problem' in all ? all : await writeAllInside(agents.directory, all.files, options)
    if ('problem' in wrote) log.emit({ type: 'wrote', step, files: [], problem: wrote.problem })
    else log.emit({ type: 'wrote', step, files: wrote.files, problem: null })
    return null
  }

  /** Returns the files with their new texts, or a sentence if an output is no longer kept. */
  async #textsOf(files: readonly StepFile[]): Promise<{ files: readonly FileToWrite[] } | { problem: string }> {
    const all: FileToWrite[] = []
    for (const file of files) {
      const { path, append } = file
      const text = 'text' in file ? file.text : await this.#options.outputs.whole(file.output)
      if (text === null) {
        const { output } = file as Extract<StepFile, { output: unknown }>
        return { problem: `what was to be written to ${path} is not kept any more (${output.file}).` }
      }
      const { member } = file as { member?: readonly string[] }
      // Words of agents and commands have no final newline, and a text file needs one.
      const whole = 'text' in file ? text : withLineEnd(member === undefined ? text : memberOf(text, member))
      all.push({ path, text: whole, ...(append === undefined ? {} : { behind: append.behind }) })
    }
    return { files: all }
  }
}

/** Returns the outcome *done*, with the degree of a contract's proof; or *needs a person* without a required proof. */
function provedEnd(verified: boolean, { contract, id }: SessionState): SessionOutcome {
  if (contract === null) return { kind: 'done', verified }
  const proof = proofOf(contract, verified)
  if (!contract.terms.required || proof === 'proved')
    return { kind: 'done', verified: verified || proof === 'proved', proof }
  const { proved = 0, checkable = 0 } = countContract(contract) ?? {}
  const what = contract.left ?? `${proved} of ${checkable} sentences are proved.`
  const hint = { do: 'say', text: mendProof(id) } as const
  return {
    kind: 'needs-person',
    reason: `The work is done, but not all of it is proved: ${what}`,
    hint,
    goalOnly: true,
  }
}

function mendProof(id: string): string {
  return `codemachine contract ${id} shows which sentences are not. Edit it (codemachine contract edit ${id}), or do without proof (--no-require-proof); codemachine resume ${id} proves it again.`
}

const WORKS_ON_NOTHING: ReadonlySet<OwnStep['kind']> = new Set(['look', 'note', 'enter', 'keep', 'gates'])
const TOO_LONG = Symbol('too long')
const UNWRITTEN = { bytes: null, sha256: null } as const

/** Returns the kind of output for a text in this file. */
function kindOf(file: string): OutputKind {
  if (file.endsWith('.json')) return 'json'
  return file.endsWith('.md') ? 'md' : 'txt'
}

function nameOf(step: OwnStep, { scope }: SessionState): string {
  switch (step.kind) {
    case 'look':
      return step.what
    case 'command':
    case 'note':
      return step.name
    case 'write':
      return step.files[0]?.path ?? ''
    case 'claim':
      return 'done'
    case 'leave-scope':
      return scope?.name ?? ''
    case 'enter':
      return step.state
    case 'keep':
      return step.file
    case 'gates':
      return step.gates[0]?.name ?? ''
    case 'confirm-secret':
      return step.key
    default:
      return unreachable(step)
  }
}

/** Separates the text of a look from the rest as JSON. Throws if there is no text, or it is too long. */
function apart(result: unknown): { json: string; text: string } {
  const { text, ...rest } = { text: undefined, ...(typeof result === 'object' ? result : null) } as Found
  if (typeof text !== 'string') throw new Error('it found no text that could be kept')
  if (text.length > MOST_CHARACTERS) throw new Error(`it found a text of more than ${MOST_CHARACTERS} characters`)
  const json = checkedJson(rest)
  if (Buffer.byteLength(json) <= RESULT_BYTES) return { json, text }
  throw new Error(`it found more than ${RESULT_BYTES} bytes beside its text`)
}

type Found = { readonly text: unknown } & Readonly<Record<string, unknown>>

/** Returns the result of a look as JSON. Throws if it is not data, or too large. */
function checkedJson(result: unknown): string {
  const json = JSON.stringify(result ?? null)
  if (json === undefined) throw new Error('what it found is no data')
  if (json.length > MOST_CHARACTERS) throw new Error(`it found more than ${MOST_CHARACTERS} characters`)
  let level = 0
  for (const [each] of json.matchAll(/"(?:[^"\\]|\\.)*"|[[\]{}]/g)) {
    if (each === '[' || each === '{') level += 1
    else if (each === ']' || each === '}') level -= 1
    if (level > MOST_LEVELS) throw new Error(`what it found is nested more than ${MOST_LEVELS} deep`)
  }
  return json
}
