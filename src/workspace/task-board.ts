import { clipEnd } from '../base/clip.ts'
import { readFrontMatter } from './front-matter.ts'
import { parseMainFile } from './main-file.ts'
import { openEntries } from './open-entries.ts'
import { parseTasksFile } from './tasks-file.ts'

/** What a `MAIN.md` says of what is at work. */
export interface MainOfBoard {
  /** Its `short_title`. */
  title: string | null
  /** The open entries under "In progress", in their order. */
  inProgress: readonly string[]
}

/** A task as a board shows it. */
export interface TaskOfBoard {
  id: string
  name: string
  phase: string | null
  done: boolean
}

/** The most of one text that a board shows, in characters. */
const MOST_CHARACTERS = 1000

/** What a text of `MAIN.md` says; null if it is not whole. */
export function parseMainOfBoard(text: string): MainOfBoard | null {
  const main = parseMainFile(text)
  const front = readFrontMatter(text)
  if (!main.ok || !front.ok) return null
  const { shortTitle } = main.value
  return {
    title: shortTitle === null ? null : clipEnd(shortTitle, MOST_CHARACTERS),
    inProgress: openEntries(front.value.body, ['inprogress']),
  }
}

/** The tasks in a text of `tasks.json`; null if it is not whole. */
export function parseTasksOfBoard(text: string): readonly TaskOfBoard[] | null {
  const tasks = parseTasksFile(text)
  if (!tasks.ok) return null
  const phases = phasesIn(text)
  return tasks.value.map(({ id, name, done }, index) => ({
    id,
    name: clipEnd(name, MOST_CHARACTERS),
    phase: phases[index] ?? null,
    done,
  }))
}

/** Id of the task at work: that of the first entry in progress that names one, else the first not done. */
export function currentTask(tasks: readonly TaskOfBoard[], inProgress: readonly string[]): string | null {
  const open = new Set(tasks.filter(({ done }) => !done).map(({ id }) => id))
  for (const entry of inProgress) {
    const named = namedIn(entry, open)
    if (named !== null) return named
  }
  return tasks.find(({ done }) => !done)?.id ?? null
}

/** `**T3**: build it`, `T3 build it`. */
function namedIn(entry: string, ids: ReadonlySet<string>): string | null {
  const words = entry.slice(0, MOST_CHARACTERS).split(/[\s*_`~:;,()[\]]+/)
  return words.find(word => ids.has(word)) ?? null
}

/** Nothing depends on the phase, so one that is no text does not make a file broken. */
function phasesIn(text: string): readonly (string | null)[] {
  const { tasks } = JSON.parse(text.replace(/^\uFEFF/, '')) as { tasks: readonly { phase?: unknown }[] }
  return tasks.map(({ phase }) => (typeof phase === 'string' ? clipEnd(phase, MOST_CHARACTERS) : null))
}
