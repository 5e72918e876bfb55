import { shellWords } from './shell-words.ts'

const SHELL = /(?:^|\/)(?:ba|z|da)?sh$/
const OPTION = /^-l?c$/
// More than an event holds of a command.
const MOST_CHARACTERS = 128 * 1024

/** The command as it was written: without the `/bin/bash -lc '…'` that codex puts around it. */
export function shownCommand(command: string): string {
  if (command.length > MOST_CHARACTERS) return command
  const [shell, option, script, ...more] = shellWords(command, 4) ?? []
  if (shell === undefined || option === undefined || script === undefined || more.length > 0) return command
  return SHELL.test(shell) && OPTION.test(option) ? script : command
}
