import { UserError } from '../base/errors.ts'
import { nearestName } from '../base/nearest-name.ts'

/**
 * Refuses what is more likely a command than a goal, so that no build is started for it: a single plain word, and words
 * of which the first is nearly a command's name. A goal that was quoted is one word with spaces, and is taken as it is.
 */
export function refuseMistypedCommand(words: readonly string[], commands: readonly string[]): void {
  const [word] = words
  if (word === undefined || word === '-' || /\s/.test(word)) return
  const meant = nearestName(word, commands)
  if (meant === null && words.length === 1 && /^[a-z][a-z-]+$/.test(word)) {
    throw new UserError(`There is no command "${word}"; codemachine --help lists them.`, {
      hint: `To work on "${word}" as a goal, say more about it.`,
    })
  }
  if (meant === null) return
  throw new UserError(`There is no command "${word}"; did you mean "codemachine ${meant}"?`, {
    hint:
      words.length > 1 ? 'If it is a goal, put it in quotes.' : `To work on "${word}" as a goal, say more about it.`,
  })
}
