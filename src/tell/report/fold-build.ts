import { clipEnd } from '../../base/text.ts'
import type { Recorded, RecordedOf } from '../../core/events/events.ts'
import { PLAN_ANSWER, type PlanTask, type TaskPlan } from '../../core/state/plan.ts'
import type { SessionState } from '../../core/state/state.ts'
import { agentOf } from '../words/plan.ts'
import { cardOfWork, ownBoard, sectionOfWork, statusOfWork } from '../words/work.ts'
import { FirstAndLast, type KeptList } from './fold-rounds.ts'
import type { ReportAgent, ReportBuild, ReportData, ReportTask, ReportWork } from './report-data.ts'

const MOST_TASKS = 200
const MOST_TASKS_LEFT = 20
const MOST_AGENTS = 50
const MOST_ROWS = 200
const NAME_CHARS = 300
const TEXT_CHARS = 2000

type Refusal = ReportBuild['refusals']['entries'][number]

/** Collects from the events of a plan which agents worked and which plans were refused. */
export class BuildSoFar {
  readonly #agents: Map<string, ReportAgent>
  readonly #refusals: FirstAndLast<Refusal>

  /** @param kept what it goes on from; left out: nothing */
  constructor(kept?: ReturnType<BuildSoFar['kept']>) {
    this.#agents = new Map(kept?.agents)
    this.#refusals = new FirstAndLast({ first: 5, last: 5 }, undefined, kept?.refusals)
  }

  /** All that it has collected, as data. */
  kept(): { agents: readonly (readonly [string, ReportAgent])[]; refusals: KeptList<Refusal> } {
    return { agents: [...this.#agents], refusals: this.#refusals.kept() }
  }

  add(event: Recorded): void {
    switch (event.type) {
      case 'plan-refused':
        this.#addRefusal(event)
        break
      case 'answer-refused':
        if (event.name === PLAN_ANSWER) this.#addRefusal(event)
        break
      case 'agent-started':
        this.#change(event.instance, agent => ({ ...agent, instances: agent.instances + 1 }))
        break
      case 'agent-ended':
        this.#change(event.instance, agent => withEnd(agent, event))
        break
      default:
        break
    }
  }

  /** The report's part on a plan, with its tasks as codemachine believes them to stand; null if there is none. */
  result(state: SessionState): ReportBuild | null {
    if (state.taskPlan === null) return null
    const { tasks } = state.taskPlan
    return {
      summary: sectionOfWork(state)?.text ?? null,
      tasks: tasks.slice(0, MOST_TASKS).map(reportTask),
      counts: {
        tasks: tasks.length,
        done: tasks.filter(({ done }) => done).length,
        parked: tasks.filter(task => stateOf(task) === 'parked').length,
      },
      agents: [...this.#agents.values()],
      refusals: this.#refusals.shortened(),
    }
  }

  #addRefusal({ at, round, problem }: RecordedOf<'plan-refused' | 'answer-refused'>): void {
    this.#refusals.add({ at, round, problem: clipEnd(problem, TEXT_CHARS) })
  }

  #change(instance: string, how: (agent: ReportAgent) => ReportAgent): void {
    const name = clipEnd(agentOf(instance), NAME_CHARS)
    const known = this.#agents.get(name)
    if (known === undefined && this.#agents.size >= MOST_AGENTS) return
    this.#agents.set(name, how(known ?? newAgent(name)))
  }
}

/** The number of tasks of a plan, of those that are done, and the names of those left that are not parked; null if there are no tasks. */
export function tasksOfPlan({ tasks }: TaskPlan): ReportData['tasks'] {
  if (tasks.length === 0) return null
  const open = tasks.filter(task => stateOf(task) === 'open').slice(0, MOST_TASKS_LEFT)
  return {
    done: tasks.filter(({ done }) => done).length,
    total: tasks.length,
    left: open.map(({ id, name }) => clipEnd(`${id}: ${name}`, NAME_CHARS)),
  }
}

/** The same of the rows of the template's own board; null if it has none, or no row. */
export function tasksOfBoard(state: SessionState): ReportData['tasks'] {
  const board = ownBoard(state)
  if (board === null || board.count === 0) return null
  const open = board.rows.filter(({ mark }) => mark !== 'done')
  return {
    done: board.count - open.length,
    total: board.count,
    left: open.slice(0, MOST_TASKS_LEFT).map(({ id, text }) => clipEnd(`${id} ${text}`, NAME_CHARS)),
  }
}

/** What the template of a session says of it. */
export function reportWork(state: SessionState): ReportWork {
  const board = ownBoard(state)
  return {
    follow: followCommand(state),
    status: statusOfWork(state),
    card: cardOfWork(state),
    section: sectionOfWork(state),
    board: board && { count: board.count, rows: board.rows.slice(0, MOST_ROWS).map(({ since: _, ...row }) => row) },
  }
}

/** Where a template tells a session that goes on what it has come to, its own command begins one. */
function followCommand({ id, kind }: SessionState): string | null {
  const [command, rest] = kind?.view?.followUp === undefined ? [] : kind.command.split(' "…"')
  return command === undefined || rest !== '' ? null : `${command} --follow-up ${id} "…"`
}

function newAgent(agent: string): ReportAgent {
  return { agent, instances: 0, completed: 0, failed: 0, terminated: 0, durationMs: 0, tokens: 0 }
}

function withEnd(agent: ReportAgent, { status, durationMs, tokens }: RecordedOf<'agent-ended'>): ReportAgent {
  return {
    ...agent,
    completed: agent.completed + (status === 'completed' ? 1 : 0),
    failed: agent.failed + (status === 'error' ? 1 : 0),
    terminated: agent.terminated + (status === 'terminated' ? 1 : 0),
    durationMs: agent.durationMs + durationMs,
    tokens: agent.tokens + (tokens?.total ?? 0),
  }
}

function reportTask(task: PlanTask): ReportTask {
  const { id, name, phase, failures, parked } = task
  const state = stateOf(task)
  return {
    id: clipEnd(id, NAME_CHARS),
    name: clipEnd(name, NAME_CHARS),
    phase: phase === null ? null : clipEnd(phase, NAME_CHARS),
    state,
    reason: state === 'parked' ? clipEnd(parked ?? '', TEXT_CHARS) : null,
    failures,
  }
}

function stateOf({ done, parked }: PlanTask): ReportTask['state'] {
  if (done) return 'done'
  return parked === null ? 'open' : 'parked'
}
