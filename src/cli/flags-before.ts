import type { Command } from 'commander'
import { UserError } from '../base/errors.ts'
import { shellWord } from './as-typed.ts'

/**
 * Refuses flags of a run that stand before a command: it is not told of them, and would do its work in another place,
 * or in another way, than a person meant.
 */
export function refuseFlagsBefore(program: Command, command: Command): void {
  if (command === program) return
  const before = program.options.find(option => program.getOptionValueSource(option.attributeName()) === 'cli')
  if (before === undefined) return
  const flag = before.short ?? before.long ?? ''
  const name = nameOf(command, program)
  if (!command.options.some(({ long }) => long === before.long)) {
    throw new UserError(`${before.long} means nothing to ${name}; leave it out.`)
  }
  const typed = wordsOf(flag, program.getOptionValue(before.attributeName()))
  throw new UserError(`Write ${flag} after ${name}: codemachine ${name} ${typed} …`)
}

/** `queue add`. */
function nameOf(command: Command, program: Command): string {
  const { parent } = command
  return parent === null || parent === program ? command.name() : `${nameOf(parent, program)} ${command.name()}`
}

function wordsOf(flag: string, value: unknown): string {
  if (Array.isArray(value)) return value.map(each => wordsOf(flag, each)).join(' ')
  return typeof value === 'string' ? `${flag} ${shellWord(value)}` : flag
}
