import type { IssueRef, Published } from '../../core/shapes/published.ts'
import { oneLine } from './safe-text.ts'

/** Says where a result was published, or why not: `published: https://…/pull/7 (draft)`. Safe to show. */
export function wordsForPublished({ url, branch, pushedTo, draft, problem }: Published): string {
  const where = [branch, pushedTo].map(name => oneLine(name ?? '', 200))
  const what =
    url === null ? `the branch ${where[0]} is on ${where[1]}` : `${oneLine(url, 500)}${draft ? ' (draft)' : ''}`
  if (problem === null) return `published: ${what}`
  return `not published: ${oneLine(problem, 1000)}${branch === null ? '' : ` Pushed: ${what}.`}`
}

/** Names the issue of a session, such as `issue 12 (https://…): Bug`. Safe to show. */
export function wordsForIssue({ number, url, title }: IssueRef): string {
  return `issue ${number} (${oneLine(url, 300)}): ${oneLine(title, 100)}`
}
