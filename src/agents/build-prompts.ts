import { createHash } from 'node:crypto'
import { clipEnd } from '../base/clip.ts'
import { unreachable } from '../base/errors.ts'
import { fillPlaceholders } from '../base/fill-placeholders.ts'
import { loadPrompt } from '../base/package-root.ts'
import type { RoundPart } from '../session/build-state.ts'
import type { Agent, MainAgentName } from './agent.ts'
import { shippedPrompt } from './agent-prompt.ts'
import { projectPaths } from './project-paths.ts'

/** Where a build works. */
export interface BuildPlaces {
  /** The work directory, absolute. */
  directory: string
  /** The session's `MAIN.md`, from the work directory. */
  main: string
}

/** Which agent has a round of a build. */
export function agentOfPart(part: RoundPart): MainAgentName {
  switch (part) {
    case 'team-building':
      return 'agents-builder'
    case 'orchestration':
    case 'last-look':
      return 'master-mind'
    case 'summary':
      return 'project-summarizer'
    default:
      return unreachable(part)
  }
}

/**
 * The developer instructions of a main agent in a round of a build; or why there are none, a sentence. Never a prompt of
 * the project's own: agents could write it.
 * @param team those who may be given tasks
 */
export async function buildInstructions(
  agent: Agent,
  part: RoundPart,
  places: BuildPlaces,
  team: readonly Agent[],
): Promise<{ text: string } | { problem: string }> {
  const prompt = part === 'last-look' ? { text: loadPrompt('controls/end') } : await shippedPrompt(agent)
  if ('problem' in prompt) return prompt
  const values = valuesOf(places, team)
  const parts = part === 'orchestration' ? [prompt.text, loadPrompt('templates/build')] : [prompt.text]
  return { text: parts.map(text => fillPlaceholders(text, values).trimEnd()).join('\n\n') }
}

/**
 * What a round of master-mind that goes on is told first. `lastTask`: the one that was finished last; null: none. The
 * summary stands between two lines that it cannot contain, for they hold its hash.
 */
export function retryInput({ lastTask, summary }: { lastTask: string | null; summary: string | null }): string {
  const shown = clipEnd(summary?.trim() || 'There is none.', MOST_SUMMARY)
  return fillPlaceholders(loadPrompt('controls/retry'), {
    lastTask: lastTask ?? 'none yet',
    summary: shown,
    mark: createHash('sha256').update(shown).digest('hex').slice(0, 16),
  }).trimEnd()
}

/** In characters. */
const MOST_SUMMARY = 20_000

function valuesOf({ directory, main }: BuildPlaces, team: readonly Agent[]): Record<string, string> {
  return {
    directory,
    main,
    agents: team
      .filter(each => each.enabled)
      .map(({ name, description }) => `- \`${name}\`: ${description}`)
      .join('\n'),
    ...projectPaths,
  }
}
