import { unreachable } from '../base/errors.ts'
import type { MemorySnapshot, TaskMark } from '../workspace/memory.ts'
import { tasksAsWritten } from '../workspace/task-marks.ts'
import type { Proof } from './proof.ts'
import type { RunnerOptions } from './runner-options.ts'
import { changedTasks, claimedTasks, gatesForTasks, type Judgement, judgeTasks } from './task-rule.ts'

export interface OwnLookOptions extends Pick<RunnerOptions, 'log' | 'memory' | 'build' | 'asked'> {
  proof: Proof
}

/** What codemachine looks at by itself between the rounds of a build: the plan, and the tasks in it. */
export class OwnLook {
  readonly #options: OwnLookOptions
  /** The tasks as they stood in `tasks.json` when they were judged last. */
  readonly #written = new Map<string, Readonly<Record<string, unknown>>>()

  constructor(options: OwnLookOptions) {
    this.#options = options
  }

  /** Takes what the team builder has written for the plan, or says what is wrong with it. */
  async atPlan(): Promise<void> {
    const { log, build, asked } = this.#options
    const round = log.state.last?.round ?? 0
    if (build === null) throw new Error('A session without a plan has one to be looked at.')
    const found = await build.checkPlan()
    if (!found.ok) {
      // A file that could not be read at all has been put back, and says nothing any more.
      const broken = log.state.build?.broken ?? null
      const problems = broken === null ? found.problems : [`.codemachine/plan/tasks.json: ${broken}`]
      return log.emit({ type: 'plan-refused', round, problem: problems.join('\n') })
    }
    log.emit({ type: 'plan-ready', round, tasks: found.tasks, agents: found.agents })
    const { texts } = await this.#options.memory.read()
    for (const [id, task] of tasksAsWritten(texts.tasks)) this.#written.set(id, task)
    if (log.state.build?.asksPlan !== true) return
    log.emit({ type: 'paused' })
    asked.hold()
  }

  /** Judges every task after a round. Answers the fingerprint of the work tree, which gates may have changed. */
  async atTasks(memory: MemorySnapshot, tree: string): Promise<string> {
    const { log, proof } = this.#options
    const { build, gates, last } = log.state
    if (build === null) return tree
    const round = last?.round ?? 0
    const wanted = gatesForTasks(gates, build, claimedTasks(build, memory.tasks))
    const after = await proof.run(
      wanted.filter(({ name }) => !this.#hasJustRun(name, tree)),
      'tasks',
      tree,
    )
    // What was broken off is looked at again.
    if (!after.isComplete) return after.tree
    const names = new Set(wanted.map(({ name }) => name))
    const results = log.state.gateRuns.filter(({ gate }) => names.has(gate))
    const hasWorked = last?.outcome.class === 'worked' && build.broken === null
    const facts = { tasks: memory.tasks, round, results, hasWorked, isAfterRound: !build.judged && last?.part !== null }
    const written = tasksAsWritten(memory.texts.tasks)
    const changed = facts.isAfterRound ? changedTasks(build, this.#written, written) : []
    const judgements = [...judgeTasks(log.state.build ?? build, facts), ...changed]
    for (const judgement of judgements) log.emit({ type: 'task-judged', round, ...judgement })
    // Those that were parked in the middle of a round, too.
    const parked = (log.state.build?.tasks ?? []).flatMap(({ id, parked }) =>
      parked === null ? [] : [{ id, done: false, parked }],
    )
    await this.#options.memory.markTasks([...judgements.flatMap(each => this.#markOf(each)), ...parked])
    for (const [id, task] of written) this.#written.set(id, task)
    log.emit({ type: 'tasks-judged', round })
    return after.tree
  }

  /** Whether a gate has run on this tree since the round. */
  #hasJustRun(gate: string, tree: string): boolean {
    const { gateRuns, last } = this.#options.log.state
    if (last?.treeAfter !== tree) return false
    return gateRuns.some(run => run.gate === gate && run.when === 'after-round' && run.round === last.round)
  }

  /** What of a judgement is written into `tasks.json`. */
  #markOf({ task: id, name, phase, verdict, detail }: Judgement): TaskMark[] {
    switch (verdict) {
      case 'done':
        return [{ id, parked: null }]
      case 'refused':
        return [{ id, done: false }]
      case 'parked':
        return [{ id, done: false, parked: detail }]
      case 'put-back': {
        const done = this.#options.log.state.build?.tasks.find(task => task.id === id)?.done ?? false
        return [{ id, lost: { ...(this.#written.get(id) ?? { name, phase }), done } }]
      }
      case 'changed':
      case 'failed':
      case 'reopened':
      case 'added':
      case 'removed':
        return []
      default:
        return unreachable(verdict)
    }
  }
}
