import type { BuildState } from '../session/build-state.ts'

/**
 * How a build stands that ended before anybody could sum it up, as Markdown, from what codemachine itself knows; null if
 * its last summary still says it. Pure.
 * @param part what the last round was for
 */
export function summaryOfEnd(build: BuildState, part: string | null): string | null {
  if (build.plan !== 'ready' || part === 'summary') return null
  const list = (title: string, tasks: BuildState['tasks'], more: (parked: string | null) => string) =>
    tasks.length === 0
      ? []
      : ['', `## ${title}`, '', ...tasks.map(task => `- ${task.id} ${task.name}${more(task.parked)}`)]
  const { tasks, summary } = build
  return [
    '# How the build stands',
    '',
    'The session ended before this was summed up; so far goes what codemachine itself knows.',
    ...list(
      'Done',
      tasks.filter(({ done }) => done),
      () => '',
    ),
    ...list(
      'Left',
      tasks.filter(({ done, parked }) => !done && parked === null),
      () => '',
    ),
    ...list(
      'Parked',
      tasks.filter(({ done, parked }) => !done && parked !== null),
      why => `: ${why}`,
    ),
    ...(summary === null ? [] : ['', '## What was summed up before', '', summary]),
  ].join('\n')
}
