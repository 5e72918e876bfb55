import { UserError } from '../base/errors.ts'

/** Below which all branches of worktrees lie. */
export const BRANCH_PREFIX = 'codemachine/'

/** A worktree's name as it was typed; a `UserError` if it is no good for a folder and a branch. */
export function worktreeName(typed: string): string {
  if (isWorktreeName(typed)) return typed
  const shown = typed.length > 40 ? `${typed.slice(0, 39)}…` : typed
  throw new UserError(
    `"${shown.replace(/\p{Cc}/gu, ' ')}" cannot name a worktree; use letters, digits, "-", "_" and "." only, at most 60 of them.`,
    { hint: 'Without a name it comes after the goal: codemachine "…" --worktree' },
  )
}

/** Whether a name is good for a folder and a branch, and can be typed and shown as it is. */
export function isWorktreeName(name: string): boolean {
  return NAME.test(name) && !/\.\.|\.$|\.lock$/i.test(name)
}

/** The names that a worktree of nobody's choosing may get, the best first: `20261121-1`, `20261121-2`, … */
export function* namesOfDay(now: Date): Generator<string> {
  const [month, day] = [now.getMonth() + 1, now.getDate()].map(part => String(part).padStart(2, '0'))
  for (let counter = 1; counter <= MOST_A_DAY; counter++) yield `${now.getFullYear()}${month}${day}-${counter}`
}

const MOST_A_DAY = 1000

const NAME = /^[\p{L}\p{N}][\p{L}\p{N}._-]{0,59}$/u
