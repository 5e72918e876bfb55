import { isEmpty, type Text } from './text.ts'

/** A slash command that the composer offers; `name` is without the slash, `note` says what is special about it now. */
export interface SlashCommand {
  readonly name: string
  readonly description: string
  readonly note: string | null
}

/** A text that is a command: one line that begins with `/name`, where a path such as `/etc/hosts` is none. */
export interface CommandText {
  name: string
  rest: string
}

/** The command that a text of the field is, or null for an ordinary one. */
export function parseCommand({ lines }: Text): CommandText | null {
  const [, name, rest = ''] = (lines.length === 1 && /^\/([^\s/]+)(?:\s+(.*))?$/s.exec(lines[0]?.trimEnd() ?? '')) || []
  return name === undefined ? null : { name, rest }
}

/** What is typed of a command's name while the caret is in it, or null. */
export function commandPrefix(text: Text): string | null {
  if (isEmpty(text) || text.lines.length > 1) return null
  const line = text.lines[0] ?? ''
  if (!/^\/[^\s/]*$/.test(line.slice(0, text.column))) return null
  return /^\/([^\s/]*)\s*$/.exec(line)?.[1] ?? null
}

/** The commands that a beginning may stand for: the very one, those that begin so, those with its letters in order. */
export function matchCommands(commands: readonly SlashCommand[], typed: string): SlashCommand[] {
  const wanted = typed.toLowerCase()
  const ranked = commands.map(command => ({ command, rank: rankOf(command.name.toLowerCase(), wanted) }))
  return ranked
    .filter(({ rank }) => rank < 3)
    .toSorted((a, b) => a.rank - b.rank)
    .map(({ command }) => command)
}

function rankOf(name: string, typed: string): number {
  if (name === typed) return 0
  if (name.startsWith(typed)) return 1
  return isSubsequence(typed, name) ? 2 : 3
}

/** Whether the letters of one text occur in the other in the same order. */
export function isSubsequence(letters: string, text: string): boolean {
  let at = 0
  for (const letter of letters) {
    at = text.indexOf(letter, at) + letter.length
    if (at < letter.length) return false
  }
  return true
}

const MOST_COMPARED = 40

/** The name that was probably meant by a wrong one, at most a third of its letters away; null if there is none. */
export function nearestCommand(commands: readonly SlashCommand[], wrong: string): string | null {
  if (wrong.length > MOST_COMPARED) return null
  const distances = commands.map(({ name }) => ({ name, distance: editDistance(name, wrong.toLowerCase()) }))
  const [nearest] = distances.toSorted((a, b) => a.distance - b.distance)
  if (nearest === undefined) return null
  return nearest.distance <= Math.max(1, Math.ceil(wrong.length / 3)) ? nearest.name : null
}

/** How many letters must be put in, taken out or changed to make one word of the other (Levenshtein). */
function editDistance(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, index) => index)
  for (let i = 0; i < one.length; i += 1) {
    const next = [i + 1]
    for (let j = 0; j < other.length; j += 1) {
      const changed = (row[j] ?? 0) + (one[i] === other[j] ? 0 : 1)
      next.push(Math.min(changed, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1))
    }
    row = next
  }
  return row[other.length] ?? 0
}
