import { createWriteStream } from 'node:fs'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import type { Clock } from '../base/clock.ts'
import { unreachable } from '../base/errors.ts'
import type { Memory, MemorySnapshot } from '../workspace/memory.ts'
import { afterRound } from './after-round.ts'
import { judgeDone } from './done-rule.ts'
import type { Engine, PreparedRound, RoundEvent } from './engine.ts'
import type { RefusalReason } from './events.ts'
import { countsAsRound, exitCodeOf, type RoundOutcome, type SessionOutcome } from './outcome.ts'
import type { SessionLog } from './session-log.ts'
import { roundTokens, sessionTokens } from './state.ts'
import type { RoundSpec, Template } from './template.ts'

/** What tells whether a round changed the work tree. */
interface WorkTree {
  /** The fingerprint of the work tree now: a git tree hash. */
  take(): Promise<string>
  changed(before: string, after: string): Promise<{ paths: readonly string[]; count: number }>
}

/** What puts the repository's own settings back if a round changed them. */
interface RepositoryGuard {
  check(): Promise<{
    restored: readonly string[]
    setAside: string | null
    /** A sentence for each thing that could not be put right. */
    problems: readonly string[]
  } | null>
}

export interface RunnerOptions {
  log: SessionLog
  template: Template
  engine: Engine
  memory: Memory
  workTree: WorkTree
  guard: RepositoryGuard
  /** Where `001.ndjson`, … go. */
  roundsDirectory: string
  clock: Clock
  /** What was noticed meanwhile and a person should know, a sentence each; every one is given once. */
  takeRemarks(): readonly string[]
  /** Aborted with the name of the signal that a person ended the run with. */
  signal: AbortSignal
}

/** Different warnings of codex that one session shows. */
const MOST_WARNINGS = 100

/**
 * Runs one session from where its log stands to its end: asks the template, runs the round, judges what it left, and
 * again. Start and resume are the same: the state is the fold of the journal.
 */
export class SessionRunner {
  readonly #options: RunnerOptions
  readonly #log: SessionLog
  readonly #startedAt: number
  readonly #warned = new Set<string>()
  #current: PreparedRound | null = null
  #ahead: PreparedRound | null = null
  /** The fingerprint that the last round left, while nothing but time can have passed since. */
  #tree: string | null = null
  #over = false

  constructor(options: RunnerOptions) {
    this.#options = options
    this.#log = options.log
    this.#startedAt = options.clock.monotonic()
  }

  async run(): Promise<SessionOutcome> {
    const { signal } = this.#options
    const interrupt = () => void this.#current?.interrupt()
    signal.addEventListener('abort', interrupt)
    try {
      this.#tellRemarks()
      return await this.#end(await this.#rounds())
    } finally {
      signal.removeEventListener('abort', interrupt)
      this.#over = true
      this.#ahead?.discard()
      await this.#log.sync()
    }
  }

  /** Adds text to the running turn; if none takes it, the next round is told. `over`: there will be no next round. */
  async steer(text: string): Promise<'delivered' | 'kept' | 'over'> {
    if (this.#over) return 'over'
    const delivered = (await this.#current?.steer(text)) ?? false
    if (this.#over) return delivered ? 'delivered' : 'over'
    this.#log.emit({ type: 'steered', round: this.#log.state.running?.round ?? null, text, delivered })
    return delivered ? 'delivered' : 'kept'
  }

  async #rounds(): Promise<SessionOutcome> {
    const { template, signal } = this.#options
    let memory = await this.#readMemory()
    for (;;) {
      if (signal.aborted) return { kind: 'interrupted', signal: signal.reason }
      const step = template.next(this.#log.state, memory)
      switch (step.kind) {
        case 'end':
          return step.outcome
        case 'round': {
          const outcome = await this.#round(step.round)
          memory = await this.#readMemory()
          await this.#judge(memory)
          const ended = signal.aborted ? null : await this.#follow(outcome)
          if (ended) return ended
          break
        }
        default:
          return unreachable(step)
      }
    }
  }

  async #round(spec: RoundSpec): Promise<RoundOutcome> {
    const { engine, clock, workTree, guard, signal } = this.#options
    const round = this.#log.state.roundsUsed + 1
    const prepared = this.#takePrepared(spec)
    const treeBefore = this.#tree ?? (await workTree.take())
    const startedAt = clock.monotonic()
    this.#log.emit({
      type: 'round-started',
      round,
      agent: spec.thread.agent,
      engine: engine.name,
      codex: engine.version,
      model: spec.thread.model,
      input: spec.input,
    })
    this.#current = prepared
    const outcome = await this.#play(prepared, round, spec.input)
    this.#current = null

    const synced = this.#log.sync()
    const [treeAfter, restored] = await Promise.all([workTree.take(), guard.check()])
    const { paths, count } =
      treeBefore === treeAfter ? { paths: [], count: 0 } : await workTree.changed(treeBefore, treeAfter)
    this.#tree = treeAfter
    this.#log.emit({
      type: 'round-ended',
      round,
      outcome,
      // What a signal cut off is not the person's loss.
      counts: countsAsRound(outcome.class) && !(signal.aborted && outcome.class === 'interrupted'),
      durationMs: Math.round(clock.monotonic() - startedAt),
      tokens: roundTokens(this.#log.state),
      treeBefore,
      treeAfter,
      changed: paths,
      changedCount: count,
    })
    this.#tellRestored(restored)
    this.#tellRemarks()
    await synced
    return outcome
  }

  async #play(prepared: PreparedRound, round: number, input: string): Promise<RoundOutcome> {
    const { roundsDirectory, signal } = this.#options
    const record = createWriteStream(join(roundsDirectory, `${String(round).padStart(3, '0')}.ndjson`), {
      flags: 'a',
      mode: 0o600,
    })
    // What cannot be journaled must not go on: the turn is ended, and what failed is thrown from here.
    const failures: unknown[] = []
    const safely = (action: () => void) => {
      if (failures.length > 0) return
      try {
        action()
      } catch (error) {
        failures.push(error)
        void prepared.interrupt()
      }
    }
    const onEvent = (event: RoundEvent) => {
      if (event.type === 'warning' && !this.#isNews(event.message)) return
      this.#log.emit(event)
      if (event.type === 'turn-started') this.#startAhead()
    }
    record.on('error', ({ message }) =>
      safely(() => this.#log.emit({ type: 'warning', round, message: `The round is not recorded: ${message}` })),
    )
    if (signal.aborted) prepared.discard()
    const outcome = await prepared.run({
      round,
      input,
      onEvent: event => safely(() => onEvent(event)),
      onLive: event => safely(() => this.#log.live(event)),
      onRecord: line => record.write(`${line}\n`),
    })
    record.end()
    if (failures.length > 0) throw failures[0]
    return outcome
  }

  #startAhead(): void {
    const { engine, template, signal } = this.#options
    if (this.#ahead || signal.aborted) return
    const next = template.ahead(this.#log.state)
    if (next) this.#ahead = engine.prepare(next)
  }

  /** Codex gives the same warnings in every round. */
  #isNews(warning: string): boolean {
    if (this.#warned.has(warning) || this.#warned.size >= MOST_WARNINGS) return false
    this.#warned.add(warning)
    return true
  }

  /** The thread that was started ahead, if it is the one that is wanted. */
  #takePrepared(spec: RoundSpec): PreparedRound {
    const ahead = this.#ahead
    this.#ahead = null
    if (ahead && isDeepStrictEqual(ahead.thread, spec.thread)) return ahead
    ahead?.discard()
    return this.#options.engine.prepare(spec.thread)
  }

  async #readMemory(): Promise<MemorySnapshot> {
    const memory = await this.#options.memory.read()
    for (const problem of memory.problems) this.#log.emit({ type: 'memory-broken', problem })
    return memory
  }

  /** What comes after a round that ended so; an outcome if the session ends with it. */
  async #follow(outcome: RoundOutcome): Promise<SessionOutcome | null> {
    const after = afterRound(outcome, this.#log.state.failuresInARow)
    switch (after.kind) {
      case 'end':
        return after.outcome
      case 'again':
        await this.#wait(outcome, after.afterMs)
        return null
      case 'ask-template':
        return null
      default:
        return unreachable(after)
    }
  }

  /** Judges the round that has just ended, however it ended: a claim must not outlive the round that made it. */
  async #judge(memory: MemorySnapshot): Promise<void> {
    const { last } = this.#log.state
    if (!last) return
    const verdict = judgeDone(memory, last)
    if (verdict.kind === 'none') return
    const { round } = last
    this.#log.emit({ type: 'done-nominated', round, by: verdict.by })
    const refusal = verdict.kind === 'refused' ? verdict : await this.#refuseIfStillChanging(verdict.tree)
    if (refusal === null) {
      this.#log.emit({ type: 'done-accepted', round, tree: last.treeAfter })
      return
    }
    this.#log.emit({ type: 'done-refused', round, reason: refusal.reason, detail: refusal.detail })
    await this.#options.memory.withdrawClaim()
  }

  /** Before a claim is believed, nothing may be left that could still change the tree that it is about. */
  async #refuseIfStillChanging(tree: string): Promise<{ reason: RefusalReason; detail: string } | null> {
    const { engine, workTree } = this.#options
    await engine.settle()
    this.#tree = await workTree.take()
    if (this.#tree === tree) return null
    const { paths } = await workTree.changed(tree, this.#tree)
    const detail = `something that was left running changed files (${paths.slice(0, 5).join('; ')}) after the round had ended. Look at the whole with fresh eyes.`
    return { reason: 'tree-changed', detail }
  }

  #tellRestored(restored: Awaited<ReturnType<RepositoryGuard['check']>>): void {
    if (!restored) return
    const round = this.#log.state.last?.round ?? 0
    const { restored: paths, setAside, problems } = restored
    if (paths.length > 0) this.#log.emit({ type: 'repository-restored', round, paths, setAside })
    for (const message of problems) this.#log.emit({ type: 'warning', round, message })
  }

  #tellRemarks(): void {
    for (const message of this.#options.takeRemarks()) this.#log.emit({ type: 'warning', round: null, message })
  }

  async #wait(cause: RoundOutcome, ms: number): Promise<void> {
    const { clock, signal } = this.#options
    this.#tree = null
    this.#log.emit({
      type: 'waiting',
      round: this.#log.state.roundsUsed + 1,
      cause,
      until: new Date(clock.now() + ms).toISOString(),
    })
    await clock.wait(ms, signal)
  }

  async #end(outcome: SessionOutcome): Promise<SessionOutcome> {
    const { clock, engine } = this.#options
    this.#ahead?.discard()
    this.#ahead = null
    await engine.settle()
    this.#tellRestored(await this.#options.guard.check())
    this.#over = true
    const { state } = this.#log
    this.#log.emit({
      type: 'session-ended',
      outcome,
      exitCode: exitCodeOf(outcome),
      rounds: state.roundsUsed,
      tokens: sessionTokens(state),
      durationMs: state.workedMs + Math.round(clock.monotonic() - this.#startedAt),
    })
    return outcome
  }
}
