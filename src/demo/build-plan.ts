import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ModelRequest, ReplyItem } from './model/reply.ts'
import { type DemoMemory, findMemory } from './words.ts'

/** A task as the plan's file has it. */
interface PlannedTask {
  id: string
  name: string
  details: string
  done: boolean
  parked?: string
}

/** How a build stands at a request, by its files: what is played cannot depend on where a round was broken off. */
export interface BuildPlace extends DemoMemory {
  /** In their order; none before there is a plan. */
  plan: readonly PlannedTask[]
  /** What the turn was asked for. */
  asked: string
}

/** What the model does in one step of a build. */
export type BuildStep = (place: BuildPlace) => readonly ReplyItem[]

/** Reads how the build of a request stands. */
export function buildPlaceOf({ developerTexts, userTexts }: ModelRequest): BuildPlace {
  // Only the main agents know of a MAIN.md; the plan is everybody's.
  const found = findMemory(developerTexts) ?? { main: 'MAIN.md', kb: '.codemachine/kb' }
  const directory = /<cwd>([^<]+)<\/cwd>/.exec(userTexts.join('\n'))?.[1]
  return {
    ...found,
    tasks: planFile,
    plan: directory === undefined ? [] : readPlan(join(directory, planFile)),
    asked: userTexts.at(-1) ?? '',
  }
}

/** The ids of those of these tasks that are not done. */
export function openOf({ plan }: BuildPlace, ...ids: readonly string[]): string[] {
  return ids.filter(id => plan.find(task => task.id === id)?.done !== true)
}

function readPlan(path: string): PlannedTask[] {
  try {
    return JSON.parse(readFileSync(path, 'utf8')).tasks
  } catch {
    // There is none yet, or a person is writing it.
    return []
  }
}

/** Where a build keeps its plan. */
export const planFile = '.codemachine/plan/tasks.json'

/** What the person has written down. */
export const specificationText = `# Reading list

A command that makes a web page of the books in \`books.json\`, so that I can see what is left to read.

    node bin/reading-list.js books.json index.html

- One page, in one file, with its style in it. What is left to read comes first.
- Titles and authors stand there as they are written, also \`C++ <in> a Nutshell & Beyond\`.
- If the list is wrong, it says which book is, and how.
- Plain JavaScript, no dependencies, tests for \`node --test\`, and a short README.
`

/** The prompts of the project's own, by the agent. */
export const projectPrompts: Readonly<Record<string, string>> = {
  'software-architect': promptText(
    'the architect of reading-list',
    'You decide how the parts fit together and write it down in `docs/design.md`, in half a page. Each part is in a folder of its own, so that people can work side by side. You also write the README, once there is something to say.',
  ),
  'backend-dev': promptText(
    'the one who makes the parts of reading-list that touch files',
    'Plain JavaScript modules for Node 20 and newer, no dependencies. Errors are sentences for the person who keeps the list. Try what you have made before you say that it is done.',
  ),
  'frontend-dev': promptText(
    'the one who makes the page of reading-list',
    'One HTML file with its style in it, light and dark, readable on a phone. What people wrote into their list is text and never HTML.',
  ),
  'qa-engineer': promptText(
    'the one who tests reading-list',
    'You write tests for `node --test` from the specification, not from the code, and never weaken one to make it pass. Say what you have run, and what you could not run.',
  ),
}

function promptText(who: string, how: string): string {
  return `You are ${who}, a small command that makes a web page of the books in a file.

${how}

You are given one task at a time; the specification is in \`.codemachine/inputs/specifications.md\`. Do what the task asks, nothing else, and commit nothing. End with what you have made and how you have checked it.
`
}

/** The plan. `parks`: with a task that nobody can finish without a network, in the place of one that can be. */
export function planText(parks: boolean): string {
  const tasks = TASKS.map(task => (task.id === 'T7' ? (parks ? impossible : task) : task))
  return `${JSON.stringify({ tasks: tasks.map(task => ({ ...task, done: false, subtasks: [] })) }, null, 2)}\n`
}

const TASKS = [
  {
    id: 'T1',
    name: 'Decide how it is put together',
    details: 'docs/design.md: the parts and their folders. package.json.',
    acceptanceCriteria: 'docs/design.md names a folder for each part; package.json parses.',
    phase: 'Planning',
  },
  {
    id: 'T2',
    name: 'Say how it is tested',
    details: 'docs/testing.md: what has to be shown, from the specification.',
    acceptanceCriteria: 'Each sentence of the specification is in it.',
    phase: 'Planning',
  },
  {
    id: 'T3',
    name: 'Read and check the list',
    details: 'src/list/read-list.js: the books of a JSON file.',
    acceptanceCriteria: 'node test/list.test.js passes.',
    phase: 'Building',
  },
  {
    id: 'T4',
    name: 'Render the page',
    details: 'src/page/render-page.js and src/page/style.css: books in, one HTML text out.',
    acceptanceCriteria: 'node test/page.test.js passes; a title with < and & stands there as it was written.',
    phase: 'Building',
  },
  {
    id: 'T5',
    name: 'Make the command',
    details: 'bin/reading-list.js BOOKS.json PAGE.html',
    acceptanceCriteria: 'It makes a page of books.json; without arguments it answers 2.',
    phase: 'Building',
  },
  {
    id: 'T6',
    name: 'Test the list and the page',
    details: 'test/list.test.js and test/page.test.js, from the specification.',
    acceptanceCriteria: 'node --test passes.',
    phase: 'Testing',
  },
  {
    id: 'T7',
    name: 'Test the command as a person uses it',
    details: 'test/command.test.js',
    acceptanceCriteria: 'node test/command.test.js passes.',
    phase: 'Testing',
  },
  {
    id: 'T8',
    name: 'Write the README',
    details: 'How to use and test it.',
    acceptanceCriteria: 'What it says to type works.',
    phase: 'Runtime',
  },
]

const impossible = {
  id: 'T7',
  name: 'Have the page validated',
  details: 'By the validator at validator.w3.org.',
  acceptanceCriteria: 'docs/validation.json holds what validator.w3.org answers, and it has found no error.',
  phase: 'Testing',
}
