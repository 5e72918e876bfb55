import { createHash } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { UserError, unreachable } from '../../../base/errors.ts'
import { clipEnd } from '../../../base/text.ts'
import type { ThreadSpec } from '../../../core/engine.ts'
import type { EventOf } from '../../../core/events/events.ts'
import type { RoundOutcome, SessionOutcome } from '../../../core/events/outcome.ts'
import type { AskedAnswer } from '../../../core/rules/answer.ts'
import {
  bystandersOf,
  type CheckRun,
  CONTRACT,
  CONTROLS,
  type ContractProof,
  type ContractState,
  type ContractStep,
  type Control,
  checkable,
  contractFile,
  type Draft,
  failureOnTree,
  isGivenUp,
  MORE_CHECKS,
  MOST_CONTROLS,
  nextContractStep,
  quotable,
  readContract,
  readControls,
  readMoreChecks,
  runOf,
  type Sentence,
} from '../../../core/rules/contract.ts'
import type { Decision } from '../../../core/rules/decision.ts'
import { WIND_DOWN_REVIEW } from '../../../core/rules/notices.ts'
import type { Parsed } from '../../../core/shapes/memory.ts'
import {
  BEHIND_CHOICES,
  BEHIND_DECISION,
  CONTRACT_CHOICES,
  CONTRACT_DECISION,
} from '../../../core/state/fold-contract.ts'
import { roundTokens } from '../../../core/state/state.ts'
import { readBoundedText } from '../../../platform/files.ts'
import { findObstacle, readTextFile } from '../../../workspace/files/inside-directory.ts'
import { readAnswer } from '../../answers.ts'
import type { Budget } from '../../budget.ts'
import type { ProofEnvironment, RunnerOptions } from '../../options.ts'
import { playRound, type RoundPlayOptions } from '../../play-round.ts'
import { fenced } from '../../round-input.ts'
import { contractToml, parseContract } from './contract-file.ts'
import { authorInput, contractBody, controlInput, secondInput } from './contract-input.ts'
import { CONTRACT_FILE, contractPath, editedContract } from './contract-path.ts'

/** A turn for the contract, not for the work. */
export type ContractTurn =
  | { role: 'author' }
  | { role: 'control'; sentence: Sentence }
  | { role: 'second'; sentence: Sentence; control: Control }

/** Means to play a turn. */
export interface ContractTurnMeans {
  /** Returns the thread as it is started, with its provider. */
  threadOf(thread: ThreadSpec): ThreadSpec
  playOf(thread: ThreadSpec): Omit<RoundPlayOptions, 'windDown'>
}

/** File for a person's edits, in the session's folder in the work directory. */
const EDITED = 'contract.toml'
const EDITED_BYTES = 1024 * 1024

/** Makes the contract of a session before its rounds, and proves a claim by it. Journals each step. */
export class ContractWork {
  readonly #options: RunnerOptions
  readonly #budget: Budget
  #breakingOff = new AbortController()
  /** Version of the draft whose edited file cannot be parsed; the file stays. */
  #kept: number | null = null

  constructor(options: RunnerOptions, budget: Budget) {
    this.#options = options
    this.#budget = budget
  }

  /** Returns the contract step before the next round; null: none. */
  next(tree: string): ContractStep | null {
    const { contract, last, replayed, scope, claim } = this.#options.log.state
    if (contract === null || replayed || scope !== null || this.#options.means === null) return null
    if (claim.state === 'nominated' || claim.state === 'accepted') return null
    return nextContractStep(contract, tree, last !== null)
  }

  /** Accepts a person's later edit as a new version. */
  async takeEdit(): Promise<void> {
    const { log, roundsDirectory, redactor } = this.#options
    if (log.state.contract === null) return
    const path = editedContract(roundsDirectory)
    const read = await readBoundedText(path, EDITED_BYTES)
    if (read === 'missing') return
    try {
      if ('problem' in read) throw new UserError('CM0111', `${path} ${read.problem}.`)
      const text = parseContract(redactor.text(read.text), { name: path }, quotable(log.state))
      log.emit(this.#drafted('person', text))
      // After the first round, no check can fail before the work any more.
      if (log.state.last !== null) await this.freeze('person')
    } catch (error) {
      if (!(error instanceof UserError)) throw error
      log.emit({ type: 'warning', round: null, message: error.message })
    }
    // Remove the file only after the journal entry: a kill would lose the edit. Reading it twice gives the same version.
    await rm(path, { force: true })
  }

  /** Outcome of a session that only makes a contract, or requires one and has none; null: it continues. */
  get end(): SessionOutcome | null {
    const { contract, last } = this.#options.log.state
    if (contract === null || last !== null) return null
    const { terms, left, frozen } = contract
    if (left !== null && (terms.only || terms.required))
      return { kind: 'needs-person', reason: `There is no contract. ${left}`, hint: null, goalOnly: true }
    return terms.only && frozen !== null ? { kind: 'planned', what: 'contract' } : null
  }

  /** Returns the thread of a turn, without its provider. */
  threadOf({ role }: ContractTurn): ThreadSpec {
    return this.#means.contractThread(role === 'control' ? 'control' : 'author', this.#contract.terms)
  }

  /** Gives up the contract, or its new version, after too many useless answers. False: its author may try again. */
  giveUp(): boolean {
    const { log } = this.#options
    const { frozen, versions, problem } = this.#contract
    if (!isGivenUp(this.#contract)) return false
    const why = `Its author gave no contract that could be used. ${problem?.split('\n')[0] ?? ''}`.trim()
    if (frozen === null) log.emit({ type: 'contract-left', by: 'codemachine', why })
    else log.emit({ type: 'contract-dropped', version: versions + 1, why })
    return true
  }

  /** Plays a turn and journals its result. Resolves with its outcome. */
  async play(turn: ContractTurn, tree: string, { threadOf, playOf }: ContractTurnMeans): Promise<RoundOutcome> {
    const { log, engines, clock, redactor } = this.#options
    const { state } = log
    const round = state.last?.round ?? 0
    const thread = threadOf(this.threadOf(turn))
    const of = {
      round,
      role: turn.role === 'control' ? ('control' as const) : ('author' as const),
      ...(turn.role === 'author' ? {} : { sentence: turn.sentence.id }),
    }
    const startedAt = clock.monotonic()
    const prepared = engines.prepare(thread)
    log.emit({
      type: 'contract-turn-started',
      ...of,
      ...engines.named(thread),
      ...(thread.provider === undefined ? {} : { provider: thread.provider }),
      model: thread.model,
      effort: thread.effort,
    })
    const asked = askedOf(turn)
    const { outcome, message } = await playRound(
      prepared,
      { round, input: inputOf(turn, state), record: `${of.role}-${state.events}`, outputSchema: asked.schema },
      {
        ...playOf(thread),
        windDown: WIND_DOWN_REVIEW,
        onToolCall: async () => ({ text: 'Nobody answers: decide for yourself.', success: false }),
      },
    )
    const answer = outcome.class === 'worked' ? await readAnswer(asked, message, redactor) : NO_ANSWER
    const made = answer.ok ? this.#read(turn, answer.value, tree) : answer
    log.emit({
      type: 'contract-turn-ended',
      ...of,
      outcome,
      problem: made.ok ? null : made.problem,
      durationMs: Math.round(clock.monotonic() - startedAt),
      tokens: roundTokens(log.state),
    })
    if (made.ok) log.emit(made.value)
    return outcome
  }

  /** Parses the answer of a turn into its event. */
  #read(turn: ContractTurn, value: unknown, tree: string): Parsed<EventOf<'contract-drafted' | 'controls-written'>> {
    const { state } = this.#options.log
    const { last } = state
    const contract = this.#contract
    switch (turn.role) {
      case 'author': {
        const read = readContract(value, quotable(state))
        return read.ok ? { ok: true, value: this.#drafted('author', read.value) } : read
      }
      case 'second': {
        const read = readMoreChecks(value)
        const { frozen } = contract
        if (!read.ok) return read
        const { id } = turn.sentence
        const sentences = (frozen?.sentences ?? []).map(each =>
          each.id === id ? { ...each, checks: [...each.checks, ...read.value] } : each,
        )
        const draft = this.#drafted('author', { sentences, uncovered: frozen?.uncovered ?? [] })
        return { ok: true, value: { ...draft, sentence: id } }
      }
      case 'control': {
        const read = readControls(value, Math.min(contract.terms.controls, MOST_CONTROLS - contract.made))
        if (!read.ok) return read
        const { id } = turn.sentence
        const written = { type: 'controls-written' as const, round: last?.round ?? 0, sentence: id, tree }
        return { ok: true, value: { ...written, versions: read.value } }
      }
      default:
        return unreachable(turn)
    }
  }

  #drafted(by: Draft['by'], text: Pick<Draft, 'sentences' | 'uncovered'>): EventOf<'contract-drafted'> {
    return { type: 'contract-drafted', version: this.#contract.versions + 1, by, ...text }
  }

  /** Runs one check on a copy of the tree and journals its result. An interrupted check runs again. */
  async check(
    { sentence, check: number, when }: Extract<ContractStep | ContractProof, { kind: 'check' }>,
    tree: string,
  ): Promise<void> {
    const { log } = this.#options
    const check = sentence.checks[number - 1]
    if (check === undefined) throw new Error(`${sentence.id} has no check ${number}.`)
    const of = { round: log.state.last?.round ?? 0, sentence: sentence.id, check: number, when }
    log.emit({ type: 'check-started', ...of })
    const one = { sentence: sentence.id, number, check }
    const came = await this.#means.runCheck(one, {
      tree,
      when,
      failedHere: failureOnTree(this.#contract.runs, one, tree),
      timeoutMs: Math.min(check.seconds * 1000, this.#budget.leastMs),
      signal: this.#signal(),
    })
    log.emit({ type: 'check-ended', ...of, ...came, tree })
  }

  /** Returns the last result of a check; null: it has not run. */
  lastRun({ sentence, check }: Extract<ContractProof, { kind: 'check' }>): CheckRun | null {
    return runOf(this.#contract.runs, sentence.id, check)
  }

  /** Runs a sentence's checks on a wrong version. An interrupted attempt runs again. */
  async tryControl({ control, check: sentence }: Extract<ContractProof, { kind: 'try' }>, tree: string): Promise<void> {
    const { log } = this.#options
    const tried = await this.#means.tryControl(sentence, control, {
      tree,
      bystanders: bystandersOf(this.#contract, sentence.id),
      mostMs: this.#budget.leastMs,
      signal: this.#signal(),
    })
    if (tried === null) return
    const of = { round: log.state.last?.round ?? 0, sentence: sentence.id, control: control.control }
    log.emit({ type: 'control-tried', ...of, ...tried })
  }

  /** Freezes a new check that catches a missed wrong version, or drops it. */
  settle({ draft, isBetter }: Extract<ContractProof, { kind: 'settle' }>): void {
    const { frozen } = this.#contract
    if (isBetter) this.#freeze('controls', frozen?.heldOut ?? [], null)
    else this.#options.log.emit({ type: 'contract-dropped', version: draft.version, why: NOT_BETTER })
  }

  /** Writes the file that the person may edit, and returns the decision for them. */
  async decision(): Promise<Decision> {
    const contract = this.#contract
    const { draft } = contract
    const isKept = draft !== null && draft.version === this.#kept
    const wrote = draft === null || isKept ? null : await this.#options.folder?.write(EDITED, contractToml(draft))
    const canEdit = isKept || (wrote != null && 'bytes' in wrote)
    const { required } = contract.terms
    return {
      id: CONTRACT_DECISION,
      title: `Is this what you asked for? ${howChecked(draft)}`,
      body: contractBody(contract),
      choices: [
        { id: CONTRACT_CHOICES.accept, label: 'Yes', hint: 'from then on only you can change it' },
        {
          id: CONTRACT_CHOICES.change,
          label: 'Change it',
          hint: 'say what to change; you see the new version',
          text: 'must',
        },
        ...(canEdit
          ? [{ id: CONTRACT_CHOICES.edit, label: 'Edit it yourself', hint: 'in your editor', opensFile: true as const }]
          : []),
        ...(required
          ? []
          : [{ id: CONTRACT_CHOICES.without, label: 'Continue without it', hint: 'only gates check the work' }]),
      ],
      default: CONTRACT_CHOICES.accept,
      ...(canEdit ? { file: this.#pathOf(EDITED) } : {}),
    }
  }

  /** Returns the decision for a person who has changed the goal: if the contract must include the change. */
  decisionBehind(): Decision {
    return {
      id: BEHIND_DECISION,
      title: 'You changed what you asked for. Is the contract still right?',
      body: `The contract does not know of this:\n\n${fenced(clipEnd(this.#contract.behind?.text ?? '', MOST_BEHIND))}`,
      choices: [
        { id: BEHIND_CHOICES.keep, label: 'Keep it', hint: 'the contract stays as it is' },
        {
          id: BEHIND_CHOICES.renew,
          label: 'Write a new version',
          hint: 'the author writes a new version, which you see first',
        },
      ],
      default: BEHIND_CHOICES.keep,
    }
  }

  /** Carries out a decision. */
  async decided(choice: string, by: 'person' | 'default'): Promise<void> {
    const { log } = this.#options
    switch (choice) {
      case CONTRACT_CHOICES.accept:
        return await this.freeze(by)
      case CONTRACT_CHOICES.without:
        log.emit({ type: 'contract-left', by: 'person', why: 'A person wanted none.' })
        return
      case CONTRACT_CHOICES.edit:
        return await this.#takeEdited()
      // The fold stores the requested change.
      default:
    }
  }

  async #takeEdited(): Promise<void> {
    const { log, agents, redactor } = this.#options
    const path = this.#pathOf(EDITED)
    try {
      const obstacle = await findObstacle(agents.directory, dirname(path))
      const read = obstacle === null ? await readTextFile(join(agents.directory, path), EDITED_BYTES) : null
      if (read?.kind !== 'text') throw new UserError('CM0111', `${path} cannot be read.`)
      const text = parseContract(redactor.text(read.text), { name: path }, quotable(log.state))
      log.emit(this.#drafted('person', text))
    } catch (error) {
      if (!(error instanceof UserError)) throw error
      this.#kept = this.#contract.draft?.version ?? null
      log.emit({ type: 'warning', round: null, message: error.message })
    }
  }

  /** Freezes the draft, and tells the rounds what they may know of it. */
  async freeze(by: 'person' | 'default'): Promise<void> {
    const { log, template, engines, folder } = this.#options
    const { draft, terms } = this.#contract
    const wanted = draft === null ? [] : drawLots(checkable(draft.sentences), terms.holdOut, log.state.id)
    const hides = template.threads.every(({ thread }) => engines.of(thread).hidesFiles)
    const emptied = wanted.length > 0 && hides ? await folder?.write(EDITED, '') : undefined
    const problem = hides ? (emptied && 'problem' in emptied ? emptied.problem : null) : NOT_HIDDEN
    this.#freeze(by, problem === null ? wanted : [], wanted.length === 0 ? null : problem)
    await this.tellRounds()
  }

  #freeze(by: EventOf<'contract-frozen'>['by'], heldOut: readonly string[], problem: string | null): void {
    const version = this.#contract.draft?.version ?? this.#contract.versions
    this.#options.log.emit({ type: 'contract-frozen', version, by, heldOut, problem })
  }

  /** Writes the contract's file for the rounds. They must not see the file that the person may have edited. */
  async tellRounds(): Promise<void> {
    const { log, folder } = this.#options
    const { contract } = log.state
    if (contract === null || contract.frozen === null || folder === null) return
    await folder.write(CONTRACT_FILE, contractFile(contract))
    await folder.write(EDITED, '')
  }

  /** Interrupts the running check, if there is one. */
  interrupt(): void {
    this.#breakingOff.abort()
  }

  #signal(): AbortSignal {
    this.#breakingOff = new AbortController()
    return AbortSignal.any([this.#options.asked.ending, this.#breakingOff.signal])
  }

  #pathOf(file: string): string {
    return contractPath(this.#options.log.state.id, file)
  }

  get #contract(): ContractState {
    const { contract } = this.#options.log.state
    if (contract === null) throw new Error('This session has no contract.')
    return contract
  }

  get #means(): ProofEnvironment {
    const { means } = this.#options
    if (means === null) throw new Error('Nothing of this session is proved.')
    return means
  }
}

/** Longest text of a person's changes in a decision, characters. */
const MOST_BEHIND = 8_000

const NO_ANSWER = { ok: false, problem: 'It gave no answer.' } as const
const NOT_BETTER = 'It fails on the finished work, or also passes on the wrong version.'
const NOT_HIDDEN = 'Agents could read them in this sandbox; only workspace-write prevents that.'

function askedOf({ role }: ContractTurn): AskedAnswer {
  if (role === 'author') return CONTRACT
  return role === 'second' ? MORE_CHECKS : CONTROLS
}

function inputOf(turn: ContractTurn, state: RunnerOptions['log']['state']): string {
  switch (turn.role) {
    case 'author':
      return authorInput(state)
    case 'control':
      return controlInput(state, turn.sentence)
    case 'second':
      return secondInput(state, turn.sentence, turn.control)
    default:
      return unreachable(turn)
  }
}

function howChecked(draft: Draft | null): string {
  const count = draft === null ? 0 : checkable(draft.sentences).flatMap(({ checks }) => checks).length
  if (count === 0) return 'No check can test it.'
  return `codemachine checks it by ${count === 1 ? 'one check' : `${count} checks`} before it accepts done.`
}

/** Draws the sentences with held-out checks: this share, at least 1, seeded by session; none of a single one. */
function drawLots(sentences: readonly Sentence[], share: number, seed: string): string[] {
  if (share === 0 || sentences.length < 2) return []
  const lot = (id: string) => createHash('sha256').update(`${seed} ${id}`).digest('hex')
  const drawn = sentences.map(({ id }) => id).sort((a, b) => lot(a).localeCompare(lot(b)))
  return drawn.slice(0, Math.max(1, Math.floor(share * sentences.length))).sort()
}
