import { unreachable } from '../../base/errors.ts'
import type { Gate } from '../../core/events/outcome.ts'
import {
  changedTasks,
  claimedTasks,
  editedTasks,
  gatesForTasks,
  type Judgement,
  judgeTasks,
  lostTasks,
} from '../../core/rules/plan-rule.ts'
import type { MemorySnapshot, TaskMark } from '../../core/shapes/memory.ts'
import { PLAN_ANSWER } from '../../core/state/plan.ts'
import { inEffect } from '../../core/template.ts'
import { rawTasksById } from '../../workspace/memory/tasks-file.ts'
import type { RunnerOptions } from '../options.ts'
import type { Proof } from '../proof/gates.ts'

type PlanCheckOptions = Pick<RunnerOptions, 'log' | 'memory' | 'template' | 'redactor'>

/** What codemachine looks at by itself between the rounds of a session with a plan: the plan, and the tasks in it. */
export class PlanCheck {
  readonly #options: PlanCheckOptions
  readonly #proof: Proof
  /** The tasks as they stood in `tasks.json` before the rounds that are judged next. */
  #before: ReturnType<typeof rawTasksById> | null = null

  constructor(options: PlanCheckOptions, proof: Proof) {
    this.#options = options
    this.#proof = proof
  }

  /** Whether a look runs gates, or takes what was written: what a person writes while the session holds is not what a round did. */
  takesTime(what: 'plan' | 'tasks', tree: string, memory: MemorySnapshot): boolean {
    return what === 'plan' || this.#stillToRun(this.#gatesFor(memory), tree).length > 0
  }

  /** Looks at the plan, or at its tasks. Resolves with the fingerprint afterwards; null if it has to be taken again. */
  async look(what: 'plan' | 'tasks', tree: string, memory: MemorySnapshot): Promise<string | null> {
    if (what === 'tasks') return await this.#atTasks(memory, tree)
    await this.#atPlan()
    return null
  }

  /** Takes what an agent has written for the plan, or says what is wrong with it. */
  async #atPlan(): Promise<void> {
    const { log, template } = this.#options
    const round = log.state.last?.round ?? 0
    const found = await inEffect(log.state.template, 'checkPlan', () => template.checkPlan?.())
    if (found === undefined) throw new Error('A session without a plan has one to be looked at.')
    if (!found.ok) {
      // A file that could not be read at all has been put back, and says nothing any more.
      const broken = log.state.taskPlan?.broken ?? null
      const problems = broken === null ? found.problems : [`.codemachine/plan/tasks.json: ${broken}`]
      return log.emit({ type: 'answer-refused', round, name: PLAN_ANSWER, problem: problems.join('\n') })
    }
    log.emit({ type: 'plan-ready', round, tasks: found.tasks, agents: found.agents })
  }

  /** A round begins that finds the tasks like this. */
  beforeRound(memory: MemorySnapshot): void {
    const { taskPlan, last, replan } = this.#options.log.state
    if (taskPlan?.state !== 'ready') return
    if (taskPlan.judged) this.#tell(editedTasks(taskPlan, this.#tasksOf(memory)))
    // What the round did that it broke off is no part of the change that a person asks for.
    else if (replan !== null && last?.part !== null) this.#noteChanges(memory)
    // What a round before it has changed, and nobody has judged yet, is judged with what this one does.
    if (taskPlan.judged || this.#before === null) this.#before = rawTasksById(memory.texts.tasks)
  }

  /**
   * Judges every task after a round. What a round took out that was cut off, or that is followed by a change of plan, is
   * only put back: a person has not taken it out. Answers the fingerprint of the work tree, which gates may have changed.
   */
  async #atTasks(memory: MemorySnapshot, tree: string): Promise<string> {
    const { log } = this.#options
    const { taskPlan: plan, last, replan } = log.state
    if (plan === null) return tree
    const round = last?.round ?? 0
    const lost = replan !== null || plan.isCutOff ? lostTasks(plan, memory.tasks) : []
    if (lost.length > 0) {
      await this.#take(lost)
      return tree
    }
    const isAfterRound = !plan.judged && last?.part !== null
    if (isAfterRound) this.#noteChanges(memory)
    else this.#tell(editedTasks(plan, this.#tasksOf(memory)))
    const wanted = this.#gatesFor(memory)
    const after = await this.#proof.run(this.#stillToRun(wanted, tree), 'tasks', tree)
    // What was broken off, or never run because the session is to end, is looked at again.
    if (!after.isComplete) return after.tree
    const names = new Set(wanted.map(({ name }) => name))
    const results = log.state.gateRuns.filter(({ gate }) => names.has(gate))
    const hasWorked = last?.outcome.class === 'worked' && plan.broken === null && !plan.isCutOff
    const facts = { tasks: memory.tasks, round, results, hasWorked, isAfterRound }
    await this.#take(judgeTasks(log.state.taskPlan ?? plan, facts))
    log.emit({ type: 'tasks-judged', round })
    return after.tree
  }

  /** Journals what a round changed in the tasks, once. */
  #noteChanges(memory: MemorySnapshot): void {
    const { taskPlan } = this.#options.log.state
    if (taskPlan === null) return
    const now = rawTasksById(memory.texts.tasks)
    const changed = changedTasks(taskPlan, this.#tasksOf(memory), { before: this.#before, now })
    this.#tell(changed)
    for (const { task } of changed) this.#before?.set(task, now.get(task) ?? {})
  }

  /** The tasks as they would be journaled, to be compared with what was. */
  #tasksOf({ tasks }: MemorySnapshot): MemorySnapshot['tasks'] {
    return this.#options.redactor.event(tasks)
  }

  /** The gates that what is said to be done has to pass. */
  #gatesFor({ tasks }: MemorySnapshot): readonly Gate[] {
    const { taskPlan, gates } = this.#options.log.state
    return taskPlan === null ? [] : gatesForTasks(gates, taskPlan, claimedTasks(taskPlan, tasks))
  }

  #tell(judgements: readonly Judgement[]): void {
    const { log } = this.#options
    const round = log.state.last?.round ?? 0
    for (const judgement of judgements) log.emit({ type: 'task-judged', round, ...judgement })
  }

  /** Journals judgements, and writes into `tasks.json` what they make of it. */
  async #take(judgements: readonly Judgement[]): Promise<void> {
    const { log, memory } = this.#options
    this.#tell(judgements)
    // Those that were parked in the middle of a round, too.
    const parked = (log.state.taskPlan?.tasks ?? []).flatMap(({ id, parked }) =>
      parked === null ? [] : [{ id, done: false, parked }],
    )
    await memory.markTasks([...judgements.flatMap(each => this.#markOf(each)), ...parked])
  }

  /** Those of the gates that have not run on this tree since the round. */
  #stillToRun(gates: readonly Gate[], tree: string): readonly Gate[] {
    const { gateRuns, last } = this.#options.log.state
    if (last?.treeAfter !== tree) return gates
    const run = gateRuns.filter(({ when, round }) => when === 'after-round' && round === last.round)
    return gates.filter(({ name }) => !run.some(({ gate }) => gate === name))
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
        const done = this.#options.log.state.taskPlan?.tasks.find(task => task.id === id)?.done ?? false
        return [{ id, lost: { ...(this.#before?.get(id) ?? { name, phase }), done } }]
      }
      case 'changed':
      case 'edited':
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
