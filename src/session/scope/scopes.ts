import { TemplateError, UserError } from '../../base/errors.ts'
import { type Gate, MOST_GATES, type SessionOutcome, type StallReason } from '../../core/events/outcome.ts'
import { ownFilesOf } from '../../core/rules/proof/gate-files.ts'
import type { RoundScope, RoundStep, ScopeGate } from '../../core/template.ts'
import type { Answers } from '../answers.ts'
import type { RunnerOptions } from '../options.ts'
import type { Proof } from '../proof/proof.ts'

type ScopesOptions = Pick<RunnerOptions, 'log' | 'scopes' | 'redactor' | 'engines' | 'lacksRoom' | 'workTree'>

/** Enters and leaves the scopes of a session, which is in at most one. */
export class Scopes {
  readonly #options: ScopesOptions
  readonly #proof: Proof
  readonly #answers: Answers

  constructor(options: ScopesOptions, proof: Proof, answers: Answers) {
    this.#options = options
    this.#proof = proof
    this.#answers = answers
  }

  /** Returns the scope to enter before this round; null: none. Throws a `TemplateError` for an impossible request. */
  toEnter({ kind, round }: RoundStep): RoundScope | null {
    const { log, scopes } = this.#options
    const { scope: present, kind: template } = log.state
    const wanted = round.scope ?? null
    if (present !== null) {
      // A change of the plan concerns the current plan.
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

  /** Enters a scope after all processes that could change files have ended. */
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

  /** Prepares to leave the scope: withdraws claims that were written into the session's own files meanwhile. */
  async clear(): Promise<void> {
    if (this.#options.log.state.scope !== null) await this.#options.scopes?.withdrawOfSession()
  }

  /** Leaves the scope as done, after its claim was accepted. */
  leaveDone(): void {
    const { log } = this.#options
    const { scope } = log.state
    if (scope !== null) log.emit({ type: 'scope-left', name: scope.name, outcome: 'done', why: null })
  }

  /** Leaves the scope as not done; `why`: a sentence. */
  async giveUp(why: string, step?: number): Promise<void> {
    const { log } = this.#options
    await this.clear()
    const { scope } = log.state
    if (scope === null) return
    const by = step === undefined ? {} : { step }
    log.emit({ type: 'scope-left', ...by, name: scope.name, outcome: 'given-up', why })
  }

  /** Returns the outcome of the session; null if only its scope stalled: it leaves the scope, and the template decides. */
  async unlessStalled(end: SessionOutcome | null): Promise<SessionOutcome | null> {
    const { log, lacksRoom } = this.#options
    if (end?.kind !== 'stalled' || log.state.scope === null || (await lacksRoom())) return end
    await this.giveUp(STALLED[end.why](end.rounds))
    return null
  }

  /** Sets the template's added gates to these. Throws a `TemplateError` if the template may not add gates. */
  addGates(wanted: readonly ScopeGate[], why: string, step: number): void {
    const { log } = this.#options
    const { kind, scope } = log.state
    if (kind?.addsGates !== true) refuse(kind?.name, 'adds gates, and says nothing of that (`addsGates`)')
    if (scope !== null) refuse(kind?.name, `adds gates in the scope "${scope.name}", which it has to leave first`)
    const problem = problemOfGates(wanted)
    if (problem !== null) refuse(kind?.name, `adds gates that cannot be: ${problem}`)
    log.emit({ type: 'gates-added', step, gates: this.#gatesOf(wanted), why })
  }

  /** Returns the gates. Refuses one with a secret, because gates are journaled and run as journaled. */
  #gatesOf(wanted: readonly ScopeGate[]): readonly Gate[] {
    const { redactor } = this.#options
    const gates = wanted.map(gateOf)
    const gate = gates.find(({ name, run }) => redactor.text(name) !== name || redactor.text(run) !== run)
    if (gate === undefined) return gates
    throw new UserError(
      'CM0904',
      `This gate contains a secret: ${redactor.text(gate.run)}. codemachine records gates, so write the name of a variable in its place, such as "$TOKEN".`,
    )
  }
}

const NAME = /^[\p{L}\p{M}\p{N}][\p{L}\p{M}\p{N}-]{0,59}$/u
/** Reasons to give up a stalled scope. */
const STALLED: Readonly<Record<StallReason, (rounds: number) => string>> = {
  'nothing-changed': rounds => `The last ${rounds} rounds of it left everything as it was.`,
  'same-refusal': rounds => `It was claimed done ${rounds} times, and refused for the same reason each time.`,
}
/** Longest goal of a scope, in characters: agents' text that `MAIN.md` and the journal store. */
const MOST_GOAL_CHARACTERS = 250_000

/** Returns why such a scope is invalid; null if it is valid. */
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

/** Returns a gate like those of `--verify`: required, and it protects the files that its command runs. */
function gateOf({ name, run, timeoutMs, network = false }: ScopeGate): Gate {
  return { name, run, timeoutMs, required: true, network, protect: ownFilesOf(run), everyRound: false }
}

function refuse(template: string | undefined, what: string): never {
  throw new TemplateError(`the template "${template ?? ''}" ${what}`)
}
