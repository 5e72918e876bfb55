import { type Agents, loadAgents } from '../../agents/agent.ts'
import { writeAgentsConfig } from '../../agents/agents-config.ts'
import { formatCount } from '../../ui/format-count.ts'
import { oneLine } from '../../ui/safe-text.ts'
import { makeProjectFolders, specificationFile } from '../../workspace/project-folders.ts'
import { readSpecification, type Specification } from '../../workspace/specification.ts'
import { formatBytes } from '../byte-count.ts'
import { refuseUnusablePrompts } from './refuse-unusable-prompts.ts'
import type { TemplateName } from './templates.ts'

/**
 * The specification of a work directory, whose folders and `agents-config.json` are made first; a `UserError` if it cannot
 * be built by, or not with the agents that there are.
 */
export async function specificationOf(
  directory: string,
  template: TemplateName,
  agents: Agents = loadAgents(),
): Promise<Specification> {
  await makeProjectFolders(directory)
  await writeAgentsConfig(directory, agents)
  const specification = await readSpecification(directory)
  await refuseUnusablePrompts(directory, template, agents)
  return specification
}

/** The goal of a session that builds what a specification asks for; its first line says so in short. */
export function goalOf({ text, title }: Specification): string {
  const file = specificationFile.replaceAll('\\', '/')
  return `Build ${oneLine(title, TITLE_CHARACTERS).replace(/[.:]+$/, '')}, as ${file} says.\n\n${text.trim()}`
}

/** What a person looks at before they say that it is complete, a line each. */
export function describeSpecification({ title, size, others, hasMore }: Specification): string[] {
  const shown = others.slice(0, MOST_SHOWN)
  const left = others.length - shown.length
  const more = hasMore ? 'and more' : left > 0 ? `and ${formatCount(left, 'more file')}` : null
  return [
    `${specificationFile}, ${formatBytes(size)}: ${oneLine(title, TITLE_CHARACTERS)}`,
    ...shown.map(file => `  beside it ${oneLine(file.name, NAME_CHARACTERS)}, ${formatBytes(file.size)}`),
    ...(more === null ? [] : [`  ${more}`]),
    ...(others.length === 0 ? ['  no files beside it'] : []),
  ]
}

/** What a person is asked. */
export const IS_IT_COMPLETE = 'Is this all that the agents need to know?'

const MOST_SHOWN = 15
const TITLE_CHARACTERS = 80
const NAME_CHARACTERS = 100
