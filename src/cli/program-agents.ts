import type { Command } from 'commander'
import type { CliContext, Ended } from './context.ts'
import { type DirectoryFlags, directoryOf, withDirectory } from './flags.ts'

/** The commands that show the agents of a build. */
export function addAgents(program: Command, context: CliContext, ended: Ended): void {
  const agents = program.command('agents').description('the agents of a build: who they are, and their prompts')
  const load = () => import('./commands/agents.ts')
  withDirectory(agents.command('list'))
    .description('all agents, with their models and whose prompt they work by')
    .option('--json', 'as JSON')
    .action(async (flags: DirectoryFlags & { json?: true }) => {
      ended(
        await (await load()).agentsList(context, { directory: directoryOf(context, flags), json: flags.json ?? false }),
      )
    })
  withDirectory(agents.command('show'))
    .argument('<name>', 'the agent, as `agents list` shows it')
    .description('the prompt of an agent, as it would get it here')
    .action(async (name: string, flags: DirectoryFlags) => {
      ended(await (await load()).agentsShow(context, { directory: directoryOf(context, flags), name }))
    })
  withDirectory(agents.command('validate'))
    .description("look whether the agents' configuration and all their prompts can be used")
    .action(async (flags: DirectoryFlags) => {
      ended(await (await load()).agentsValidate(context, { directory: directoryOf(context, flags) }))
    })
}
