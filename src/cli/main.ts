import { type Command, CommanderError } from 'commander'
import type { CliContext } from './context.ts'
import { buildProgram } from './program.ts'

/** Reads the command line, does what it says, and resolves with the exit code. */
export async function runCommandLine(context: CliContext, args: readonly string[]): Promise<number> {
  let exitCode = 0
  const program = buildProgram(context, code => {
    exitCode = code
  })
  await addCompletions(program, args)
  try {
    await program.parseAsync([...args], { from: 'user' })
    return exitCode
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    return error.exitCode === 0 ? 0 : 2
  }
}

/** The library that completes brings its own command; without it, the command is only listed. */
async function addCompletions(program: Command, args: readonly string[]): Promise<void> {
  if (args[0] === 'complete') (await import('@bomb.sh/tab/commander')).default(program)
  else program.command('complete [shell]').description('print the completions for zsh, bash, fish or powershell')
}
