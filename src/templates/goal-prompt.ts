import { relative, sep } from 'node:path'
import { fillPlaceholders } from '../base/fill-placeholders.ts'

/** Where a session's memory lies; absolute paths. */
interface GoalPaths {
  /** The work directory. */
  directory: string
  main: string
  tasks: string
  kb: string
}

/**
 * The developer instructions of the `goal` template: `prompt` (the text of `prompts/goal.md`) with the paths filled in,
 * relative to the work directory where they lie in it. The same text for every round. Throws if a placeholder is left.
 */
export function goalInstructions(prompt: string, paths: GoalPaths): string {
  const { directory, main, tasks, kb } = paths
  return fillPlaceholders(prompt, {
    directory,
    main: fromDirectory(directory, main),
    tasks: fromDirectory(directory, tasks),
    kb: fromDirectory(directory, kb),
  })
}

function fromDirectory(directory: string, path: string): string {
  const short = relative(directory, path)
  return short === '..' || short.startsWith(`..${sep}`) ? path : short
}
