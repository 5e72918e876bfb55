import { truncate } from '../../base/text.ts'
import { type Mistake, problemOfMistakes } from './plan.ts'
import { MOST_PLAN_BYTES, mistakeAt, problemOfPath, problemOfRun, tooLarge } from './plan-rules.ts'
import type { TaskSpec } from './tasks.ts'

/** Most tasks of a session, and largest parts of one: a local model with a small context window must hold it. */
const MOST_TASKS = 50
const MOST_DESCRIPTION = 4_000
const MOST_PAIRS = 20
const MOST_FILES = 50
const MOST_WHAT = 1_000

/** Facts to check tasks against. */
export interface TasksGround {
  /** Finished tasks of an earlier list, whose outputs are usable; none: it is the first list. */
  done: readonly TaskSpec[]
  /** Number of tasks that may still be made. */
  room: number
  /** Commands of the project, allowed unchanged. */
  projectCommands: readonly string[]
}

/** Returns why tasks are not usable, one line per mistake with its fix; null: they are. Pure. */
export function tasksProblem(tasks: readonly TaskSpec[], ground: TasksGround): string | null {
  const count = countMistake(tasks.length, Math.min(ground.room, MOST_TASKS))
  if (count !== null) return problemOfMistakes([count])
  const size = Buffer.byteLength(JSON.stringify(tasks))
  const mistakes = [
    ...(size > MOST_PLAN_BYTES ? [tooLarge(size)] : []),
    ...tasks.flatMap((task, at) => ownMistakes(task, `tasks[${at}]`)),
    ...idMistakes(tasks, ground),
    ...inputMistakes(tasks, ground),
    ...runMistakes(tasks, ground),
    ...unverified(tasks, ground),
  ]
  return mistakes.length === 0 ? null : problemOfMistakes(mistakes)
}

function countMistake(count: number, most: number): Mistake | null {
  if (count === 0) return { place: 'tasks', wrong: `is empty; give at least one task, and at most ${most}.` }
  if (count <= most) return null
  return {
    place: 'tasks',
    wrong: `has ${count} entries; ${most} are the most. Put steps together that one command verifies.`,
  }
}

/** Names of tasks, inputs and outputs: `T1.summary` has one dot. */
const NAME = /^[\p{L}\p{N}][\p{L}\p{N}_-]{0,59}$/u
const NAMES = 'use letters, digits, "-" and "_", at most 60'

function ownMistakes({ id, description, inputs, outputs, files }: TaskSpec, place: string): Mistake[] {
  const names = (field: 'inputs' | 'outputs', record: TaskSpec['inputs']) => [
    ...(Object.keys(record).length > MOST_PAIRS
      ? [{ place: `${place}.${field}`, wrong: `has more than ${MOST_PAIRS} entries.` }]
      : []),
    ...Object.entries(record).flatMap(([name, text]) =>
      NAME.test(name) && text !== '' && text.length <= MOST_WHAT
        ? []
        : [
            {
              place: `${place}.${field}`,
              wrong: `has ${shown(name)}: ${shown(text)}; of the name, ${NAMES}, and give it a text of at most ${MOST_WHAT} characters.`,
            },
          ],
    ),
  ]
  return [
    ...(NAME.test(id) ? [] : [{ place: `${place}.id`, wrong: `is ${shown(id)}; ${NAMES}, such as "T1".` }]),
    ...(description === '' ? [{ place: `${place}.description`, wrong: 'is empty; say what to do.' }] : []),
    ...(description.length <= MOST_DESCRIPTION
      ? []
      : [
          {
            place: `${place}.description`,
            wrong: `has ${description.length} characters; ${MOST_DESCRIPTION} are the most, for whoever does it has a small memory. Make several tasks of it.`,
          },
        ]),
    ...names('inputs', inputs),
    ...names('outputs', outputs),
    ...(files.length > MOST_FILES
      ? [{ place: `${place}.files`, wrong: `has ${files.length} entries; ${MOST_FILES} are the most. Name folders.` }]
      : []),
    ...files.flatMap((path, at) => mistakeAt(`${place}.files[${at}]`, problemOfPath(path))),
  ]
}

function idMistakes(tasks: readonly TaskSpec[], { done }: TasksGround): Mistake[] {
  const seen = new Set(done.map(({ id }) => id))
  return tasks.flatMap(({ id }, at) => {
    const isTaken = seen.has(id)
    seen.add(id)
    return isTaken
      ? [
          {
            place: `tasks[${at}].id`,
            wrong: `is ${shown(id)}, which another task has already; give every task its own.`,
          },
        ]
      : []
  })
}

function inputMistakes(tasks: readonly TaskSpec[], { done }: TasksGround): Mistake[] {
  const earlier = new Map(done.map(task => [task.id, task]))
  return tasks.flatMap((task, at) => {
    const wrong = Object.entries(task.inputs).flatMap(([name, from]) =>
      mistakeAt(`tasks[${at}].inputs.${truncate(name, 60)}`, problemOfInput(from, { task, tasks, earlier })),
    )
    earlier.set(task.id, task)
    return wrong
  })
}

interface InputGround {
  task: TaskSpec
  tasks: readonly TaskSpec[]
  earlier: ReadonlyMap<string, TaskSpec>
}

function problemOfInput(from: string, { task, tasks, earlier }: InputGround): string | null {
  const [id, output] = referenceOf(from)
  if (id === '' || output === '') return `is ${shown(from)}; write the task and its output as "T1.summary".`
  if (id === task.id) return `is ${shown(from)}, an output of the task itself; take one of an earlier task.`
  const giver = earlier.get(id)
  if (giver === undefined) {
    return tasks.some(each => each.id === id)
      ? `is ${shown(from)}, and ${id} comes later; put ${id} before ${task.id}, or leave the input out.`
      : `is ${shown(from)}, and there is no task ${shown(id)}; take an output of an earlier task, or leave it out.`
  }
  if (Object.hasOwn(giver.outputs, output)) return null
  if (giver.type === 'VERIFICATION')
    return `is ${shown(from)}, and ${id} is a VERIFICATION, which gives nothing; leave it out.`
  const given = Object.keys(giver.outputs)
  const known = given.length === 0 ? `${id} gives nothing` : `${id} gives ${given.map(shown).join(', ')}`
  return `is ${shown(from)}, and ${known}; take one of these, or let ${id} give ${shown(output)}.`
}

/** Returns task and output of `T1.summary`; empty if one is missing. */
function referenceOf(from: string): [id: string, output: string] {
  const at = from.indexOf('.')
  return at === -1 ? ['', ''] : [from.slice(0, at).trim(), from.slice(at + 1).trim()]
}

function runMistakes(tasks: readonly TaskSpec[], { projectCommands }: TasksGround): Mistake[] {
  const known = new Set(projectCommands.map(onOneLine))
  const example = projectCommands[0]
  const hint = example === undefined ? '' : ` The project has \`${truncate(onOneLine(example), 120)}\`.`
  return tasks.flatMap(({ type, run }, at) => {
    const place = `tasks[${at}].run`
    if (type !== 'VERIFICATION') {
      return run === null
        ? []
        : [
            {
              place,
              wrong: `is a command, and only a VERIFICATION runs one; write null, and a VERIFICATION with it after this ${type}.`,
            },
          ]
    }
    if (run === null) {
      return [
        {
          place,
          wrong: `is missing, but a VERIFICATION needs a command. Name one that fails until the work is done.${hint}`,
        },
      ]
    }
    if (known.has(onOneLine(run))) return []
    const wrong = problemOfRun(run)
    return mistakeAt(place, wrong === null ? null : `${wrong}${hint}`)
  })
}

function onOneLine(run: string): string {
  return run.trim().replace(/\s+/g, ' ')
}

/** Returns mistakes for ACTIONs without a timely VERIFICATION. */
function unverified(tasks: readonly TaskSpec[], { done }: TasksGround): Mistake[] {
  const first = done.length
  let open: { task: TaskSpec; at: number }[] = []
  const mistakes: Mistake[] = []
  const add = ({ task, at }: { task: TaskSpec; at: number }, before: string) => {
    const where = at < first ? `done already (${task.id})` : task.id
    const place = at < first ? 'tasks' : `tasks[${at - first}]`
    const what =
      at < first
        ? `have no VERIFICATION of the ACTION that is ${where}`
        : `is the ACTION ${where}, and no VERIFICATION comes after it`
    mistakes.push({ place, wrong: `${what} ${before}; put one there whose \`run\` fails if its work is not done.` })
  }
  for (const [at, task] of [...done, ...tasks].entries()) {
    if (task.type === 'VERIFICATION') open = []
    if (task.type !== 'ACTION') continue
    const same = open.filter(each => haveSameFiles(each.task, task))
    for (const each of same) add(each, `before ${task.id}, an ACTION on the same files`)
    open = [...open.filter(each => !same.includes(each)), { task, at }]
  }
  for (const each of open) add(each, 'before the end')
  return mistakes
}

/** Returns whether two ACTIONs may change the same files: one that names none may change any. */
function haveSameFiles(one: TaskSpec, other: TaskSpec): boolean {
  if (one.files.length === 0 || other.files.length === 0) return true
  const folders = (path: string) => `${path.replace(/\/+$/, '')}/`
  return one.files.some(a =>
    other.files.some(b => folders(a).startsWith(folders(b)) || folders(b).startsWith(folders(a))),
  )
}

function shown(text: string): string {
  return JSON.stringify(truncate(text, 60))
}
