import { clipEnd } from '../base/clip.ts'
import type { MemorySnapshot } from '../workspace/memory.ts'
import type { EventOf } from './events.ts'

const MOST_LEFT = 20
const NAME_CHARACTERS = 200

/** What the memory says of the tasks when a round has ended, for the record; nothing if there are none. Pure. */
export function countTasks({ tasks }: Pick<MemorySnapshot, 'tasks'>): Pick<EventOf<'round-ended'>, 'tasks'> {
  if (tasks.length === 0) return {}
  const left = tasks.filter(({ done }) => !done)
  const names = left.slice(0, MOST_LEFT).map(({ id, name }) => clipEnd(`${id} ${name}`, NAME_CHARACTERS))
  return { tasks: { done: tasks.length - left.length, total: tasks.length, left: names } }
}
