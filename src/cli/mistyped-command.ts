import { UserError } from '../base/errors.ts'
import { nearestName } from '../settings/nearest-name.ts'

/** A goal of one short word that is nearly a command's name is more likely that command, and a build is not started for it. */
export function refuseMistypedCommand(words: readonly string[], commands: readonly string[]): void {
  const [word] = words
  if (word === undefined || words.length > 1 || word === '-' || /\s/.test(word)) return
  const meant = nearestName(word, commands)
  if (meant === null) return
  throw new UserError(`There is no command "${word}"; did you mean "codemachine ${meant}"?`, {
    hint: `To work on "${word}" as a goal, say more about it.`,
  })
}
