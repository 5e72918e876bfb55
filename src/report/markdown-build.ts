import { formatDuration } from '../ui/format-duration.ts'
import { shortNumber } from '../ui/format-tokens.ts'
import type { ReportBuild } from './build-data.ts'
import { instancesInWords, taskInWords, tasksLeftOut } from './build-in-words.ts'
import { escapeMarkdown } from './escape.ts'

/** The tasks of a build as a table of Markdown; empty if there are none. */
export function taskTable(build: ReportBuild): string {
  if (build.tasks.length === 0) return ''
  const rows = build.tasks.map(task =>
    [task.id, task.name, task.phase ?? '', taskInWords(task)].map(escapeMarkdown).join(' | '),
  )
  const left = tasksLeftOut(build)
  const table = ['| id | task | phase | how it stands |', '| --- | --- | --- | --- |', ...rows.map(row => `| ${row} |`)]
  return [...table, ...(left === null ? [] : ['', `${left}.`])].join('\n')
}

/** The agents of a build, likewise. */
export function agentTable({ agents }: ReportBuild): string {
  if (agents.length === 0) return ''
  const rows = agents.map(each => {
    const cells = [escapeMarkdown(each.agent), instancesInWords(each), formatDuration(each.durationMs)]
    return `| ${[...cells, shortNumber(each.tokens)].join(' | ')} |`
  })
  return ['| agent | worked | time | tokens |', '| --- | --- | ---: | ---: |', ...rows].join('\n')
}
