import type { Argument, Command } from 'commander'

const MISSING = /^error: missing required argument '(.+)'$/

/** Has each command say what an argument is that was left out, in place of its name alone. */
export function nameMissingArguments(program: Command): void {
  for (const command of program.commands) {
    nameMissingArguments(command)
    command.configureOutput({
      outputError: (text, write) => {
        const [, name] = MISSING.exec(text.trim()) ?? []
        const argument = command.registeredArguments.find(each => each.name() === name)
        write(argument === undefined ? text : `codemachine: ${sentenceOf(command, argument)}\n`)
      },
    })
  }
}

function sentenceOf(command: Command, argument: Argument): string {
  const shown = `<${argument.name()}${argument.variadic ? '...' : ''}>`
  return `${fullNameOf(command)} needs ${shown}: ${argument.description}.`
}

function fullNameOf(command: Command): string {
  return command.parent === null ? command.name() : `${fullNameOf(command.parent)} ${command.name()}`
}
