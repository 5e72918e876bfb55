import type { EventOf, Recorded, SessionEvent } from '../../src/core/events/events.ts'
import { countsAsRound, exitCodeOf, type RoundOutcome, type SessionOutcome } from '../../src/core/events/outcome.ts'
import { MOST_ANSWER_REFUSALS, refusedAnswer } from '../../src/core/rules/answer.ts'
import { schemaProblem } from '../../src/core/rules/answer-schema.ts'
import { checkedDecision, type Decision } from '../../src/core/rules/decision.ts'
import { emptyState, type SessionState } from '../../src/core/state/state.ts'
import { NO_KEPT_TEXTS, type RoundSpec, type Step, type Template } from '../../src/core/template.ts'
import { teamKind } from '../../src/modes/team/team.ts'
import { type TeamOptions, type TeamWork, workOf } from '../../src/modes/team/work.ts'
import { NO_AGENTS, UNCLAIMED } from './played-session.ts'
import { created, FIRST_AT, fold, resumed, SESSION, worked } from './session-events.ts'

/** The work directory of a played team. Nothing is written there. */
export const PROJECT = '/work/projects/hello-20261124-093000'

/** What a round of a played team does: its last message, what happens in it before, and how it ends. */
export interface TeamRound {
  says?: unknown
  during?: readonly SessionEvent[]
  ends?: RoundOutcome
  changed?: readonly string[]
}

/** The world that a team is played in; where a test says nothing, all goes well and nobody is there. */
export interface TeamWorld {
  goal?: string
  network?: boolean
  options?: Partial<TeamOptions>
  /** What the planner answers, the n-th time from 1. */
  plan?: (n: number) => unknown
  /** What the worker of a step does, the n-th time that this step is worked on. */
  work?: (step: number, n: number) => TeamRound
  /** What the tester answers. */
  test?: (n: number) => unknown
  review?: (n: number) => unknown
  /** How a command of a template ends. */
  command?: (run: string, n: number) => Partial<EventOf<'command-ran'>>
  /** What a person chooses; null: nobody is there. */
  decide?: (decision: Decision, n: number) => readonly [choice: string, text?: string] | null
  /** Why a secret does not work, when it is looked for the n-th time; undefined: it is not there; null: it does. */
  secret?: (key: string, n: number) => string | null | undefined
  /** Why a claim is refused, the n-th time; null: it is accepted. */
  claim?: (n: number) => string | null
  /** Why a file cannot be written. */
  write?: () => string | null
  /** What happens from elsewhere before the step that comes next is carried out; if anything does, it is asked for again. */
  before?: (step: Step, session: SessionState) => readonly SessionEvent[]
}

/** A plan of so many steps. */
export function planOf(count: number, more: Readonly<Record<number, object>> = {}): unknown {
  const steps = Array.from({ length: count }, (_, at) => ({
    id: at + 1,
    description: `Do part ${at + 1}.`,
    network: false,
    needs: [],
    ...more[at + 1],
  }))
  return { goal: 'A service that says hello.', steps }
}

/** What a worker says at its end. */
export function worksOut(thoughts = 'It is made.', checks: readonly string[] = []): TeamRound {
  return { says: { done: true, thoughts, checks } }
}

/** The same of one that does not come to its end. */
export function fallsShort(thoughts = 'It does not start yet.'): TeamRound {
  return { says: { done: false, thoughts, checks: [] } }
}

/** What a reviewer says, with issues of these severities. */
export function reviewOf(...severities: ('low' | 'medium' | 'high')[]): unknown {
  return {
    overall_assessment: 'It was looked at.',
    issues: severities.map((severity, at) => ({ type: 'bug', description: `Issue ${at + 1}.`, severity })),
    suggestions: [],
  }
}

/** What happens in the round where an agent asks for a secret. */
export function asksFor(key: string, reason: string | null = null): TeamRound {
  const round = 1
  const during: SessionEvent[] = [{ type: 'secret-asked', round, key, question: `What is ${key}?`, reason }]
  return { during, says: { done: false, thoughts: `It needs ${key}.`, checks: [] } }
}

/** Why no step may be carried out any more in one play: a template that goes round in circles. */
const MOST_STEPS = 2_000

/** Plays sessions of the template, without processes: what it wants is done at once, and journaled as the runner does. */
export class TeamPlay {
  readonly events: Recorded[] = []
  readonly steps: Step[] = []
  state: SessionState = emptyState(SESSION)
  readonly #world: TeamWorld
  readonly #template: Template
  readonly #times = new Map<string, number>()

  private constructor(world: TeamWorld, template: Template) {
    this.#world = world
    this.#template = template
  }

  static async begin(world: TeamWorld): Promise<TeamPlay> {
    const memory = { main: `${PROJECT}/MAIN.md`, tasks: `${PROJECT}/tasks.json`, kb: `${PROJECT}/kb` }
    const template = await teamKind.open({
      directory: PROJECT,
      memory,
      scopeFolder: () => memory,
      agents: NO_AGENTS,
      isPlanReady: false,
      tell: () => {},
      kept: NO_KEPT_TEXTS,
    })
    const play = new TeamPlay(world, template)
    play.emit({
      ...created({ rounds: 999 }),
      template: 'team',
      goal: world.goal ?? 'a service that says hello',
      directory: PROJECT,
      network: world.network ?? false,
      options: optionsOf(world.options),
    })
    return play
  }

  get work(): TeamWork {
    return workOf(this.state)
  }

  /** The inputs of the rounds of a part, in their order. */
  inputs(part: string): string[] {
    return this.steps.flatMap(step =>
      step.kind === 'round' && step.round.part === part ? [String(step.round.input)] : [],
    )
  }

  /** What its steps are at: the id of each with its status. */
  get statuses(): string[] {
    return this.work.steps.map(({ id, status }) => `${id} ${status}`)
  }

  emit(event: SessionEvent): void {
    const at = new Date(FIRST_AT + this.events.length * 1_000).toISOString()
    const recorded: Recorded = { v: 1, at, session: SESSION, ...event }
    this.events.push(recorded)
    this.state = fold(this.state, recorded)
  }

  /** The step that comes next. */
  next(): Step {
    return this.#template.next(this.state, UNCLAIMED)
  }

  /** Goes on until it ends. `until`: it is left as it is, as a kill leaves it, after so many events more. */
  async run(until = Number.POSITIVE_INFINITY): Promise<SessionOutcome | null> {
    const most = this.events.length + until
    for (let n = 0; n < MOST_STEPS; n++) {
      const step = this.next()
      const meanwhile = this.#world.before?.(step, this.state) ?? []
      for (const event of meanwhile) this.emit(event)
      if (meanwhile.length > 0) continue
      this.steps.push(step)
      for (const event of this.#eventsOf(step)) {
        if (this.events.length >= most) return null
        this.emit(event)
      }
      const { ended } = this.state
      if (ended !== null) return ended.outcome
    }
    throw new Error(`It has not ended after ${MOST_STEPS} steps: ${JSON.stringify(this.steps.at(-1)).slice(0, 500)}`)
  }

  /** A person goes on with it. */
  async resume(more: { network?: boolean } = {}, until?: number): Promise<SessionOutcome | null> {
    this.emit({ ...resumed(999), ...more })
    return await this.run(until)
  }

  *#eventsOf(step: Step): Generator<SessionEvent> {
    const number = this.state.steps + 1
    switch (step.kind) {
      case 'round':
        return yield* this.#round(step.round)
      case 'decide':
        return yield* this.#decision(step.decision)
      case 'end':
        return yield endedWith(step.outcome)
      case 'command':
        yield { type: 'step-started', step: number, kind: 'command', name: step.name, timeoutMs: step.timeoutMs }
        return yield this.#ran(step, number)
      case 'confirm-secret': {
        yield { type: 'step-started', step: number, kind: step.kind, name: step.key }
        const { secret = () => null } = this.#world
        const problem = secret(step.key, this.#count(`secret ${step.key}`))
        const confirmed = { type: 'secret-confirmed', step: number, key: step.key } as const
        if (problem === undefined)
          return yield { ...confirmed, ok: false, problem: `There is no secret ${step.key}.`, missing: true }
        return yield { ...confirmed, ok: problem === null, problem }
      }
      case 'look':
        yield { type: 'step-started', step: number, kind: 'look', name: step.what }
        return yield { type: 'looked', step: number, what: step.what, result: { files: [] } }
      case 'note':
        yield { type: 'step-started', step: number, kind: 'note', name: step.name }
        return yield { type: 'noted', step: number, name: step.name, text: step.text }
      case 'write':
        yield { type: 'step-started', step: number, kind: 'write', name: step.files[0]?.path ?? '' }
        return yield { type: 'wrote', step: number, files: [], problem: this.#world.write?.() ?? null }
      case 'claim':
        yield { type: 'step-started', step: number, kind: 'claim', name: 'done' }
        return yield* this.#claim(number)
      default:
        throw new Error(`A team does not do this: ${step.kind}.`)
    }
  }

  *#round(spec: RoundSpec): Generator<SessionEvent> {
    const round = this.state.roundsUsed + 1
    const part = spec.part ?? ''
    const { agent } = spec.thread
    const engine = { engine: 'codex', codex: '0.169.0' }
    yield { type: 'round-started', round, part, agent, ...engine, model: null, input: String(spec.input) }
    const { says, during = [], ends = worked, changed = [] } = this.#played(part, spec)
    yield* during
    if (ends.class === 'worked' && spec.answer !== undefined) yield* this.#answer(spec, says, round)
    yield {
      type: 'round-ended',
      round,
      outcome: ends,
      counts: ends.class !== 'interrupted' && countsAsRound(ends.class, true),
      durationMs: 1_000,
      tokens: null,
      treeBefore: 'a',
      treeAfter: 'a',
      changed: [...changed],
      changedCount: changed.length,
      memory: 'm',
    }
    const refusals = spec.answer === undefined ? 0 : (refusedAnswer(this.state, spec.answer.name)?.refusals ?? 0)
    if (refusals >= (spec.answer?.mostRefusals ?? MOST_ANSWER_REFUSALS))
      yield endedWith({ kind: 'needs-person', reason: 'Its answers cannot be used.', hint: null, goalOnly: true })
  }

  #played(part: string, { answer }: RoundSpec): TeamRound {
    const { plan = () => planOf(1), work = () => worksOut(), test, review } = this.#world
    const n = this.#count(answer?.name ?? part)
    switch (part) {
      case 'plan':
        return { says: plan(n) }
      case 'work':
        return work(Number(answer?.name.slice('step-'.length)), n)
      case 'test':
        return { says: test?.(n) ?? { commands: [] } }
      default:
        return { says: review?.(n) ?? reviewOf() }
    }
  }

  *#answer(spec: RoundSpec, value: unknown, round: number): Generator<SessionEvent> {
    const { answer } = spec
    if (answer === undefined) return
    const { name } = answer
    const shape = schemaProblem(value, answer.accepts ?? answer.schema)
    const judged = shape ?? this.#template.answerProblem?.(spec, value, this.state) ?? null
    if (judged !== null) {
      const problem = typeof judged === 'string' ? judged : judged.problem
      return yield { type: 'answer-refused', round, name, problem }
    }
    const output = { n: 1, name, file: '1.json', bytes: 1, sha256: 'a', head: '' }
    yield { type: 'answer-given', round, name, value, output, judged: true }
  }

  *#decision(asked: Decision): Generator<SessionEvent> {
    const decision = checkedDecision(asked)
    yield { type: 'decision-asked', ...decision, until: new Date(FIRST_AT).toISOString() }
    const chosen = this.#world.decide?.(decision, this.#count(`decision ${decision.id}`)) ?? null
    if (chosen === null && decision.default === null)
      return yield endedWith({ kind: 'needs-person', reason: 'Nobody decides.', hint: null, goalOnly: true })
    const [choice, text] = chosen ?? [decision.default ?? '']
    if (!decision.choices.some(({ id }) => id === choice)) throw new Error(`${decision.id} has no choice ${choice}.`)
    yield {
      type: 'decision-made',
      id: decision.id,
      choice,
      text: text ?? null,
      by: chosen === null ? 'default' : 'person',
    }
  }

  #ran({ name, run }: Extract<Step, { kind: 'command' }>, step: number): SessionEvent {
    const said = this.#world.command?.(run, this.#count(`command ${run}`)) ?? {}
    const exitCode = said.status === undefined || said.status === 'passed' ? 0 : 1
    const none = { output: '', problem: null, tree: 'a', treeAfter: 'a', changed: [], changedCount: 0 }
    return { type: 'command-ran', step, name, status: 'passed', exitCode, durationMs: 3_000, ...none, ...said }
  }

  *#claim(step: number): Generator<SessionEvent> {
    const round = this.state.roundsUsed
    yield { type: 'done-nominated', round, step, by: ['template'], tree: 'a' }
    const problem = this.#world.claim?.(this.#count('claim')) ?? null
    if (problem === null) yield { type: 'done-accepted', round, tree: 'a', verified: false }
    else yield { type: 'done-refused', round, reason: 'gate-failed', detail: problem }
  }

  #count(what: string): number {
    const n = (this.#times.get(what) ?? 0) + 1
    this.#times.set(what, n)
    return n
  }
}

/** Plays a team to its end. */
export async function playTeam(world: TeamWorld): Promise<{ play: TeamPlay; outcome: SessionOutcome | null }> {
  const play = await TeamPlay.begin(world)
  const outcome = await play.run()
  return { play, outcome }
}

function optionsOf(said: Partial<TeamOptions> = {}): TeamOptions {
  return { mode: 'all', step: null, stepwise: false, repair: 1, accept: 'ask', workspace: null, ...said }
}

function endedWith(outcome: SessionOutcome): EventOf<'session-ended'> {
  const exitCode = exitCodeOf(outcome)
  return { type: 'session-ended', outcome, exitCode, rounds: 0, tokens: 0, durationMs: 0 }
}
