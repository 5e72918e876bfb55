import type { BuildReport } from './build-report.ts'
import { requestInWords } from './describe-build.ts'
import { formatSpan } from './format-span.ts'
import { oneLine } from './safe-text.ts'

const MOST_PARKED = 5
const MOST_AGENTS = 10
const NAME_CHARS = 120
const TEXT_CHARS = 200

/** What is told of a build, each with its label: the tasks that are parked, and who is at work. `now` is Unix time, ms. */
export function buildStatusLines({ tasks, agents }: BuildReport, now: number): [label: string, text: string][] {
  const parked = tasks.filter(task => task.parked !== null)
  return [
    ...capped(
      parked.map(({ id, name, parked }) => `${line(id)} ${line(name)}: ${oneLine(parked ?? '', TEXT_CHARS)}`),
      MOST_PARKED,
      'parked',
    ),
    ...capped(
      agents.map(({ agent, tasks, request, since }) => {
        const words = oneLine(requestInWords(tasks, request), TEXT_CHARS)
        return `${line(agent)}, for ${formatSpan(Math.max(0, now - Date.parse(since)))} now: ${words}`
      }),
      MOST_AGENTS,
      'agent',
    ),
  ]
}

function capped(texts: readonly string[], most: number, label: string): [string, string][] {
  const left = texts.length - most
  const shown = left > 0 ? [...texts.slice(0, most), `… and ${left} more`] : texts
  return shown.map(text => [label, text])
}

function line(text: string): string {
  return oneLine(text, NAME_CHARS)
}
