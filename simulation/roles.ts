import { join } from 'node:path'
import type { Act } from './codex.ts'
import type { Disk } from './disk.ts'
import type { Random } from './kernel.ts'
import { WORK } from './machine.ts'

export const SPECIFICATION = join(WORK, '.codemachine/inputs/specifications.md')
const PLAN = join(WORK, '.codemachine/plan/tasks.json')

/** What an agent of a change or a build has before it as its turn begins. */
export interface Turn {
  disk: Disk
  random: Random
  /** Whether it does something else than honest work. */
  isSly: boolean
  /** How many lines the work is to have. */
  parts: number
  /** How many lines are right, from the first on. */
  right(): number
  isWhole(): boolean
  input: string
  /** Of the answer that is asked for, as JSON; empty: any text will do. */
  schema: string
  /** `MAIN.md` of the session. */
  main: string
  /** Writes so many right lines. */
  write(count: number): Act
  mischief(): Act[]
  /** Told that an agent works on a task of the plan. */
  begun(task: string): void
}

/** What an agent does whose instructions name its role; null: they name none of a change or a build. */
export function actsOfRole(instructions: string, turn: Turn): Act[] | null {
  return ROLES.find(({ says }) => instructions.includes(says))?.acts(turn) ?? null
}

const ROLES: readonly { says: string; acts(turn: Turn): Act[] }[] = [
  { says: 'You plan one change', acts: planner },
  { says: 'You cut an accepted plan', acts: decomposer },
  { says: 'You carry out one task of a plan', acts: executor },
  { says: 'You mend what a check has found', acts: fixer },
  { says: 'You sum up one change', acts: () => say('All is as it was asked for.') },
  { says: 'You prepare the work of a team', acts: teamBuilder },
  { says: 'You lead a team of agents', acts: masterMind },
  { says: 'You begin without any memory, and have been given one task', acts: memberOfTeam },
  { says: 'You say where a project stands', acts: () => say('Some of it is there.') },
  { says: 'You take the last look', acts: lastLook },
  {
    says: 'wants its plan to be another one',
    acts: ({ disk }) => [change(() => withTasks(disk, told)), ...say('So be it.')],
  },
]

function say(text: string): Act[] {
  return [{ do: 'say', text }]
}

function answer(value: object): Act[] {
  return say(JSON.stringify(value))
}

/** Changes files by a command. */
function change(act: () => void): Act {
  return { do: 'command', line: 'edit', ms: 80, exitCode: 0, output: '', act }
}

function planner({ isSly, random }: Turn): Act[] {
  const plan = (path: string, run: string) => {
    const files = [{ path, change: 'the lines' }]
    return answer({
      description: 'Line by line.',
      files,
      risks: [],
      verification: [{ run, why: 'It says so.' }],
      questions: [],
    })
  }
  if (!isSly) return plan('answer.txt', 'check-answer')
  return random.one<() => Act[]>([
    () => say('I have no idea.'),
    () => plan('../answer.txt', 'check-answer'),
    () => plan('answer.txt', 'true'),
    () => plan('answer.txt', 'check-readme'),
  ])()
}

function decomposer({ isSly, random, input }: Turn): Act[] {
  const used = [...input.matchAll(/\bT(\d+)\b/g)].map(([, number]) => Number(number))
  const id = (at: number) => `T${Math.max(0, ...used) + at}`
  const task = (at: number, type: string, description: string, more: object) => {
    return { id: id(at), type, description, inputs: [], outputs: [], files: ['answer.txt'], run: null, ...more }
  }
  const gives = { outputs: [{ name: 'found', what: 'what is there' }] }
  const takes = { inputs: [{ name: 'seen', from: `${id(1)}.found` }], outputs: [{ name: 'lines', what: 'how many' }] }
  const tasks = [
    task(1, 'INFO_GATHERING', 'Look at what is there.', gives),
    task(2, 'ACTION', 'Write the first line.', takes),
    task(3, 'VERIFICATION', 'There is an answer.', { run: 'check-some' }),
    task(4, 'ACTION', 'Write all lines.', takes),
    task(5, 'VERIFICATION', 'All is right.', { run: 'check-answer' }),
  ]
  if (!isSly) return answer({ tasks })
  return random.one<() => Act[]>([
    () => say('I have no idea.'),
    () => answer({ tasks: tasks.slice(0, 2) }),
    () => answer({ tasks: tasks.slice(1) }),
    () => answer({ tasks: tasks.slice(-1) }),
  ])()
}

function executor({ isSly, random, input, schema, parts, right, isWhole, write, mischief }: Turn): Act[] {
  const names: string[] = JSON.parse(schema)?.properties?.outputs?.required ?? []
  const given = answer({ outputs: Object.fromEntries(names.map(name => [name, 'as it is'])) })
  if (input.includes('INFO_GATHERING')) return isSly ? say('I have no idea.') : given
  if (isSly) return [...mischief(), ...(random.chance(0.7) ? given : [])]
  const lines = input.includes('all lines') ? parts - random.below(2) : Math.max(1, right())
  return [...(isWhole() ? [] : [write(lines)]), ...given]
}

function fixer({ isSly, parts, right, isWhole, write, mischief }: Turn): Act[] {
  if (isSly) return mischief()
  return [...(isWhole() ? [] : [write(Math.min(parts, right() + 1))]), ...say('It was a line.')]
}

interface Task {
  id: string
  name: string
  details: string
  acceptanceCriteria: string
  phase: string
  done: boolean
  parked?: string
}

function taskOf(id: string, name: string, phase: string): Task {
  return { id, name, details: `${name}.`, acceptanceCriteria: 'check-answer passes at the end.', phase, done: false }
}

/** Changes the tasks of the plan, if it can be read. */
function withTasks(disk: Disk, edit: (tasks: Task[]) => Task[]): void {
  const tasks = tasksIn(disk)
  if (tasks.length > 0) disk.put(PLAN, `${JSON.stringify({ tasks: edit(tasks) }, null, 2)}\n`)
}

function tasksIn(disk: Disk): Task[] {
  try {
    return JSON.parse(disk.text(PLAN) ?? '').tasks
  } catch {
    return []
  }
}

function told(tasks: Task[]): Task[] {
  return tasks.map(task => (task.done ? task : { ...task, details: `${task.details} A person has asked for it.` }))
}

function teamBuilder({ disk, random, isSly, parts }: Turn): Act[] {
  const lines = Array.from({ length: parts }, (_, at) => `Part ${at + 1}`)
  const phaseOf = (name: string) => (name === lines.at(-1) ? 'Testing' : 'Building')
  const tasks = ['Note a', 'Note b', ...lines].map((name, at) => taskOf(`T${at + 1}`, name, phaseOf(name)))
  const put = (text: string) => change(() => disk.put(PLAN, text))
  const prompt = change(() => disk.put(join(WORK, '.codemachine/agents/backend-dev.md'), '# Writer\n\nWrites lines.\n'))
  if (!isSly)
    return [put(JSON.stringify({ tasks })), ...(random.chance(0.3) ? [prompt] : []), ...say('There is a plan.')]
  return random.one<() => Act[]>([
    () => say('Nothing to do.'),
    () => [put('{"tasks": [')],
    () => [put(JSON.stringify({ tasks: tasks.map(task => ({ ...task, phase: 'Some' })) }))],
    () => [put(JSON.stringify({ tasks: [tasks[0], tasks[0]] }))],
    () => [put(JSON.stringify({ tasks: tasks.map(task => ({ ...task, done: true })) }))],
  ])()
}

function masterMind({ disk, random, isSly, right, mischief }: Turn): Act[] {
  const open = tasksIn(disk).filter(({ done, parked }) => !done && parked === undefined)
  const isThere = ({ name }: Task) =>
    name.startsWith('Note') ? disk.text(noteOf(name)) !== null : right() >= Number(name.split(' ')[1])
  const mark = (given: readonly Task[]) => {
    const ids = new Set(given.map(({ id }) => id))
    return change(() =>
      withTasks(disk, tasks => tasks.map(task => (ids.has(task.id) && isThere(task) ? { ...task, done: true } : task))),
    )
  }
  const give = (given: readonly Task[], agent = 'backend-dev'): Act => ({
    do: 'call',
    calls: given.map(({ id, name }) => {
      const paths = name.startsWith('Note') ? { paths: [`notes/${name.slice(-1)}`] } : {}
      return { tool: 'run_agent', arguments: { agent, task: `${id}: ${name}`, ...paths } }
    }),
  })
  const notes = open.filter(({ name }) => name.startsWith('Note'))
  const others = open.filter(task => !notes.includes(task)).slice(0, 1 + random.below(3))
  if (isSly)
    return random.one<() => Act[]>([
      () => [change(() => withTasks(disk, tasks => tasks.map(task => ({ ...task, done: true }))))],
      () => [change(() => withTasks(disk, tasks => tasks.slice(1)))],
      () => [change(() => disk.put(PLAN, '{"tasks": ['))],
      () => [change(() => disk.put(SPECIFICATION, 'Nothing.\n'))],
      () => [give(open.slice(0, 2), 'nobody')],
      mischief,
    ])()
  const steps = notes.length > 0 ? [notes] : random.chance(0.3) ? [others] : others.map(task => [task])
  return [...steps.flatMap(given => [give(given), mark(given)]), ...say('That is done for now.')]
}

function noteOf(name: string): string {
  return join(WORK, 'notes', name.slice(-1), 'note.txt')
}

function memberOfTeam({ disk, input, isSly, parts, right, isWhole, write, mischief, begun }: Turn): Act[] {
  const [, id = '', name = ''] = input.match(/^(T\d+): (.*)/m) ?? []
  begun(id)
  if (isSly) return mischief()
  const count = Number(name.split(' ')[1])
  const isMissing = right() < count || (count === parts && !isWhole())
  const work = name.startsWith('Note')
    ? [change(() => disk.put(noteOf(name), 'A note.\n'))]
    : isMissing
      ? [write(count)]
      : []
  return [...work, ...say(`${name} is done.`)]
}

function lastLook({ disk, isSly, isWhole, parts, main }: Turn): Act[] {
  const claim = change(() =>
    disk.put(main, (disk.text(main) ?? '').replace('finite_incantatem: false', 'finite_incantatem: true')),
  )
  if (isWhole() || isSly) return [claim, ...say('All is there.')]
  const add = (tasks: Task[]) => [...tasks, taskOf(`T${tasks.length + 1}`, `Part ${parts}`, 'Testing')]
  return [change(() => withTasks(disk, add)), ...say('Something is missing.')]
}
