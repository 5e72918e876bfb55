import { fillPlaceholders } from '../base/fill-placeholders.ts'

/**
 * The `MAIN.md` that a session starts with: `template` (the text of `prompts/MAIN.template.md`) with the goal word for
 * word in a code fence, where nothing in it can be taken for a heading, an entry or front matter. Only what no text
 * file can hold (NUL, half a surrogate pair) is replaced by U+FFFD.
 */
export function firstMainFile(
  template: string,
  session: { goal: string; git: { commit: string | null; branch: string | null } },
): string {
  const goal = session.goal.replaceAll('\0', '\uFFFD').toWellFormed()
  return fillPlaceholders(template, {
    goal: fenced(goal),
    short_title: yamlString(shortTitle(goal)),
    git_commit: yamlString(session.git.commit),
    git_branch: yamlString(session.git.branch),
  })
}

/** The first line that says something, at most 60 characters, cut between two characters as a reader sees them. */
function shortTitle(goal: string): string {
  const line = /\S[^\r\n]*/.exec(goal)?.[0] ?? ''
  const title = line.slice(0, 1000).toWellFormed().replace(unprintable, ' ').replace(/\s+/g, ' ').trim()
  const characters = Array.from(new Intl.Segmenter().segment(title), part => part.segment)
  return characters.length <= 60 ? title : `${characters.slice(0, 59).join('').trimEnd()}…`
}

/** A YAML string on one line: JSON in double quotes, which YAML reads alike once nothing unprintable is left. */
function yamlString(text: string | null): string {
  return text === null ? 'null' : JSON.stringify(text.replace(unprintable, ' '))
}

// Also what turns the direction of a text round. Joiners stay, as they hold characters together.
const unprintable = /[\p{Cc}\p{Cs}\p{Cn}\p{Zl}\p{Zp}\uFEFF\u202A-\u202E\u2066-\u2069]+/gu

function fenced(text: string): string {
  const fences = text.match(/^[ \t]*`{3,}/gm) ?? []
  const longest = fences.reduce((length, fence) => Math.max(length, fence.trim().length), 2)
  const fence = '`'.repeat(longest + 1)
  return `${fence}text\n${text}${text.endsWith('\n') ? '' : '\n'}${fence}`
}
