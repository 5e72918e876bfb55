import { UserError } from '../../base/errors.ts'
import { nearestName } from '../../base/text.ts'

// Apart from what makes templates of them: the help lists them, and loads nothing else for it.

/** What `start` can start: the kinds of work that a specification can be built by. */
export const TEMPLATES = [
  { name: 'build', description: 'a team of agents plans it, builds it task by task, and tests it' },
  { name: 'goal', description: 'one agent works on it, round after round, until it is done' },
] as const

/** The name of a template. */
export type TemplateName = (typeof TEMPLATES)[number]['name']

/** The template of that name; a `UserError` if there is none. */
export function templateNamed(name: string): TemplateName {
  const found = TEMPLATES.find(each => each.name === name)
  if (found !== undefined) return found.name
  const names = TEMPLATES.map(each => each.name)
  const near = nearestName(name, names)
  const shown = JSON.stringify(name.slice(0, 60))
  throw new UserError(
    `There is no template ${shown}; ${near === null ? `use ${names.join(' or ')}.` : `did you mean "${near}"?`}`,
  )
}
