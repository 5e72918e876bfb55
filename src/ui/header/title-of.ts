import type { SessionState } from '../../session/state.ts'
import { oneLine } from '../safe-text.ts'
import type { TaskBoard } from '../task-board.ts'

const TITLE_CHARS = 120
const LOOKED_AT_CHARS = 4000

/**
 * What a session is called: of a build the first heading of its specification, else the title that its memory gives it,
 * else the first line of its goal that says something.
 */
export function titleOf({ goal, build }: Pick<SessionState, 'goal' | 'build'>, board: TaskBoard | null): string {
  const beginning = goal.slice(0, LOOKED_AT_CHARS)
  const heading = build === null ? undefined : HEADING.exec(beginning)?.[1]
  const title = oneLine(heading ?? board?.title ?? '', TITLE_CHARS)
  return title === '' ? oneLine(/\S[^\r\n]*/.exec(beginning)?.[0] ?? '', TITLE_CHARS) : title
}

const HEADING = /^#{1,3}[ \t]+(\S[^\r\n]*)/m
