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
import type { Proof } from '../proof/proof.ts'

type PlanCheckOptions = Pick<RunnerOptions, 'log' | 'memory' | 'template' | 'redactor'>

/** Checks the plan and its tasks between the rounds of a session. */
export class PlanCheck {
  readonly #options: PlanCheckOptions
  readonly #proof: Proof
  /** The tasks of `tasks.json` before the rounds that are judged next. */
  #before: ReturnType<typeof rawTasksById> | null = null

  constructor(options: PlanCheckOptions, proof: Proof) {
    this.#options = options
    this.#proof = proof
  }

  /** True if a check runs gates or reads an agent's plan: it waits during a hold, when a person may edit these files. */
  takesTime(what: 'plan' | 'tasks', tree: string, memory: MemorySnapshot): boolean {
    return what === 'plan' || this.#stillToRun(this.#gatesFor(memory), tree).length > 0
  }

  /** Checks the plan or its tasks. Resolves with the fingerprint afterwards; null: take it again. */
  async look(what: 'plan' | 'tasks', tree: string, memory: MemorySnapshot): Promise<string | null> {
    if (what === 'tasks') return await this.#atTasks(memory, tree)
    await this.#atPlan()
    return null
  }

  /** Journals the plan that an agent wrote, or its problems. */
  async #atPlan(): Promise<void> {
    const { log, template } = this.#options
    const round = log.state.last?.round ?? 0
    const found = await inEffect(log.state.template, 'checkPlan', () => template.checkPlan?.())
    if (found === undefined) throw new Error('A session without a plan has one to be looked at.')
    if (!found.ok) {
      // An unreadable file has been restored, so it no longer shows its problem.
      const broken = log.state.taskPlan?.broken ?? null
      const problems = broken === null ? found.problems : [`.codemachine/plan/tasks.json: ${broken}`]
      return log.emit({ type: 'answer-refused', round, name: PLAN_ANSWER, problem: problems.join('\n') })
    }
    log.emit({ type: 'plan-ready', round, tasks: found.tasks, agents: found.agents })
  }

  /** Notes the tasks at the start of a round. */
  beforeRound(memory: MemorySnapshot): void {
    const { taskPlan, last, replan } = this.#options.log.state
    if (taskPlan?.state !== 'ready') return
    if (taskPlan.judged) this.#tell(editedTasks(taskPlan, this.#tasksOf(memory)))
    // Changes of the interrupted round are not part of the person's change of plan.
    else if (replan !== null && last?.part !== null) this.#noteChanges(memory)
    // Changes of an earlier round that nobody has judged are judged with this one's.
    if (taskPlan.judged || this.#before === null) this.#before = rawTasksById(memory.texts.tasks)
  }

  /**
   * Judges every task after a round. A task that was removed by an interrupted round, or before a change of plan, is only
   * restored: no person removed it. Returns the fingerprint, which gates may have changed.
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
    // Check again later what was interrupted or did not run because the session ends.
    if (!after.isComplete) return after.tree
    const names = new Set(wanted.map(({ name }) => name))
    const results = log.state.gateRuns.filter(({ gate }) => names.has(gate))
    const hasWorked = last?.outcome.class === 'worked' && plan.broken === null && !plan.isCutOff
    const facts = { tasks: memory.tasks, round, results, hasWorked, isAfterRound }
    await this.#take(judgeTasks(log.state.taskPlan ?? plan, facts))
    log.emit({ type: 'tasks-judged', round })
    return after.tree
  }

  /** Journals a round's changes of the tasks, once. */
  #noteChanges(memory: MemorySnapshot): void {
    const { taskPlan } = this.#options.log.state
    if (taskPlan === null) return
    const now = rawTasksById(memory.texts.tasks)
    const changed = changedTasks(taskPlan, this.#tasksOf(memory), { before: this.#before, now })
    this.#tell(changed)
    for (const { task } of changed) this.#before?.set(task, now.get(task) ?? {})
  }

  /** Returns the tasks as they would be journaled, for a comparison with the state. */
  #tasksOf({ tasks }: MemorySnapshot): MemorySnapshot['tasks'] {
    return this.#options.redactor.event(tasks)
  }

  /** Returns the gates for the tasks that are claimed as done. */
  #gatesFor({ tasks }: MemorySnapshot): readonly Gate[] {
    const { taskPlan, gates } = this.#options.log.state
    return taskPlan === null ? [] : gatesForTasks(gates, taskPlan, claimedTasks(taskPlan, tasks))
  }

  #tell(judgements: readonly Judgement[]): void {
    const { log } = this.#options
    const round = log.state.last?.round ?? 0
    for (const judgement of judgements) log.emit({ type: 'task-judged', round, ...judgement })
  }

  /** Journals judgements and marks their tasks in `tasks.json`. */
  async #take(judgements: readonly Judgement[]): Promise<void> {
    const { log, memory } = this.#options
    this.#tell(judgements)
    // Mark also the tasks that were parked during a round.
    const parked = (log.state.taskPlan?.tasks ?? []).flatMap(({ id, parked }) =>
      parked === null ? [] : [{ id, done: false, parked }],
    )
    await memory.markTasks([...judgements.flatMap(each => this.#markOf(each)), ...parked])
  }

  /** Returns the gates that have not run on this tree since the round. */
  #stillToRun(gates: readonly Gate[], tree: string): readonly Gate[] {
    const { gateRuns, last } = this.#options.log.state
    if (last?.treeAfter !== tree) return gates
    const run = gateRuns.filter(({ when, round }) => when === 'after-round' && round === last.round)
    return gates.filter(({ name }) => !run.some(({ gate }) => gate === name))
  }

  /** Returns the marks of a judgement for `tasks.json`. */
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
