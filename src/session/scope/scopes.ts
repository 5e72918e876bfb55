import { TemplateError, UserError } from '../../base/errors.ts'
import { type Gate, MOST_GATES, type SessionOutcome, type StallReason } from '../../core/events/outcome.ts'
import { ownFilesOf } from '../../core/rules/proof/gate-files.ts'
import type { RoundScope, RoundStep, ScopeGate } from '../../core/template.ts'
import type { Answers } from '../answers.ts'
import type { RunnerOptions } from '../options.ts'
import type { Proof } from '../proof/gates.ts'

type ScopesOptions = Pick<RunnerOptions, 'log' | 'scopes' | 'redactor' | 'engines' | 'lacksRoom' | 'workTree'>

/** The scopes of a session: it is in one of them, or in none. */
export class Scopes {
  readonly #options: ScopesOptions
  readonly #proof: Proof
  readonly #answers: Answers

  constructor(options: ScopesOptions, proof: Proof, answers: Answers) {
    this.#options = options
    this.#proof = proof
    this.#answers = answers
  }

  /**
   * The scope that is to be entered before this round; null: none. Throws a `TemplateError` if the template asks for what
   * cannot be.
   */
  toEnter({ kind, round }: RoundStep): RoundScope | null {
    const { log, scopes } = this.#options
    const { scope: present, kind: template } = log.state
    const wanted = round.scope ?? null
    if (present !== null) {
      // A change of the plan is one of the plan that is worked on.
      if (wanted?.name === present.name || (wanted === null && kind === 'replan')) return null
      const what = wanted === null ? 'a round outside of it' : `a round in "${wanted.name}"`
      return refuse(
        template?.name,
        `is in the scope "${present.name}" and asks for ${what}; it has to leave that first`,
      )
    }
    if (wanted === null) return null
    if (kind === 'replan') return refuse(template?.name, 'enters a scope with a change of the plan')
    if (scopes === null || template?.hasPlan !== false) return refuse(template?.name, 'cannot have scopes')
    const problem = problemOf(wanted)
    return problem === null ? wanted : refuse(template.name, `enters a scope that cannot be: ${problem}`)
  }

  /** Enters a scope while nothing runs that could change files. */
  async enter({ name, goal, gates: wanted }: RoundScope): Promise<void> {
    const { log, scopes, engines, workTree } = this.#options
    const gates = this.#gatesOf(wanted)
    await engines.settle()
    const text = await this.#answers.textOf(goal, MOST_GOAL_CHARACTERS)
    await scopes?.make({ name, goal: text, gates })
    const tree = await workTree.take()
    const compared = await this.#proof.comparedWith({ name, gates })
    log.emit({ type: 'scope-entered', name, goal: text, gates, tree, ...compared })
    await this.#proof.tellAtEntry()
  }

  /** Makes ready to leave it: what was written into the session's own files meanwhile claims nothing. */
  async clear(): Promise<void> {
    if (this.#options.log.state.scope !== null) await this.#options.scopes?.withdrawOfSession()
  }

  /** Leaves it as done, once its claim has been accepted. */
  leaveDone(): void {
    const { log } = this.#options
    const { scope } = log.state
    if (scope !== null) log.emit({ type: 'scope-left', name: scope.name, outcome: 'done', why: null })
  }

  /** Leaves it without its being done; `why`: a sentence. */
  async giveUp(why: string, step?: number): Promise<void> {
    const { log } = this.#options
    await this.clear()
    const { scope } = log.state
    if (scope === null) return
    const by = step === undefined ? {} : { step }
    log.emit({ type: 'scope-left', ...by, name: scope.name, outcome: 'given-up', why })
  }

  /** The end of the session; null if it is its scope that got nowhere: that is left, and the template says what comes of it. */
  async unlessStalled(end: SessionOutcome | null): Promise<SessionOutcome | null> {
    const { log, lacksRoom } = this.#options
    if (end?.kind !== 'stalled' || log.state.scope === null || (await lacksRoom())) return end
    await this.giveUp(STALLED[end.why](end.rounds))
    return null
  }

  /** Makes these all the gates that the template has added. Throws a `TemplateError` if it may not. */
  addGates(wanted: readonly ScopeGate[], why: string, step: number): void {
    const { log } = this.#options
    const { kind, scope } = log.state
    if (kind?.addsGates !== true) refuse(kind?.name, 'adds gates, and says nothing of that (`addsGates`)')
    if (scope !== null) refuse(kind?.name, `adds gates in the scope "${scope.name}", which it has to leave first`)
    const problem = problemOfGates(wanted)
    if (problem !== null) refuse(kind?.name, `adds gates that cannot be: ${problem}`)
    log.emit({ type: 'gates-added', step, gates: this.#gatesOf(wanted), why })
  }

  /** What is journaled of a gate has no secrets, and it is run as that says. */
  #gatesOf(wanted: readonly ScopeGate[]): readonly Gate[] {
    const { redactor } = this.#options
    const gates = wanted.map(gateOf)
    const gate = gates.find(({ name, run }) => redactor.text(name) !== name || redactor.text(run) !== run)
    if (gate === undefined) return gates
    throw new UserError(
      'CM0904',
      `A command that must pass contains a secret, which codemachine never stores: ${redactor.text(gate.run)}; write the name of a variable instead.`,
    )
  }
}

const NAME = /^[\p{L}\p{M}\p{N}][\p{L}\p{M}\p{N}-]{0,59}$/u
/** Why a scope is given up that got nowhere. */
const STALLED: Readonly<Record<StallReason, (rounds: number) => string>> = {
  'nothing-changed': rounds => `The last ${rounds} rounds of it left everything as it was.`,
  'same-refusal': rounds => `It was claimed done ${rounds} times, and refused for the same reason each time.`,
}
/** The most of a goal, which is made of what agents wrote: `MAIN.md` and the journal hold it. */
const MOST_GOAL_CHARACTERS = 250_000

/** Why there can be no such scope; null if there can. */
function problemOf({ name, gates }: RoundScope): string | null {
  if (!NAME.test(name)) return `${JSON.stringify(name)} is no name of letters, digits and dashes`
  return problemOfGates(gates)
}

function problemOfGates(gates: readonly ScopeGate[]): string | null {
  if (gates.length > MOST_GATES) return `${gates.length} gates are more than ${MOST_GATES}`
  if (new Set(gates.map(gate => gate.name)).size < gates.length) return 'two gates have the same name'
  const bad = gates.find(({ run, timeoutMs }) => run.trim() === '' || !(timeoutMs > 0))
  return bad === undefined ? null : `the gate ${JSON.stringify(bad.name)} has no command, or no time to run`
}

/** A gate as those of `--verify` are: it has to pass, and protects the files that its command runs by itself. */
function gateOf({ name, run, timeoutMs, network = false }: ScopeGate): Gate {
  return { name, run, timeoutMs, required: true, network, protect: ownFilesOf(run), everyRound: false }
}

function refuse(template: string | undefined, what: string): never {
  throw new TemplateError(`the template "${template ?? ''}" ${what}`)
}
