import { wrapLine } from '../cells.ts'
import type { Description, Tone } from '../description.ts'
import type { Role, Theme } from '../theme.ts'
import { underPrefix } from './under-prefix.ts'

const ROLES: Readonly<Record<Tone, Role>> = {
  plain: 'plain',
  quiet: 'dim',
  strong: 'strong',
  good: 'good',
  warning: 'warning',
  bad: 'bad',
}

/** How a tone is painted. */
export function roleOf(tone: Tone): Role {
  return ROLES[tone]
}

/** A description as lines, what belongs to it moved in; none for null. In the colour of its tone, or as `role`. */
export function describedLines(
  description: Description | null,
  { columns, theme }: { columns: number; theme: Theme },
  role: Role | null = null,
): string[] {
  if (description === null) return []
  const { text, more, tone } = description
  const painted = (line: string) => theme.paint(role ?? roleOf(tone), line)
  return [
    ...wrapLine(painted(text), columns),
    ...underPrefix({ first: '  ', columns }, inner => more.flatMap(line => wrapLine(painted(line), inner))),
  ]
}
