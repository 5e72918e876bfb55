import type { LoginState } from './start-facts.ts'

/** A slash command: its name without the slash, what it does, and what it is about just now. */
export interface SlashCommandInfo {
  name: string
  description: string
  note: string | null
}

/** All slash commands in the order of the popup; of `/login` and `/logout` the one that applies. `login`: null if not known. */
export function slashCommands({ login }: { login: LoginState | null }): SlashCommandInfo[] {
  const account =
    login?.kind === 'in'
      ? command('logout', "Take codemachine's own login away", `rounds use ${login.by}`)
      : command('login', "Log codex in for codemachine's rounds")
  return [
    command('start', 'Start what the specification asks for'),
    command('templates', 'Show and choose what /start starts'),
    account,
    command('version', 'Show the versions of codemachine and codex'),
    command('help', 'Show keys and commands'),
    command('mcp', 'Show the MCP servers that codex has'),
    command('resume', 'Go on with a session'),
    command('queue', 'Show and change what waits'),
    command('report', 'Show what a session has done'),
    command('doctor', 'Look for what is missing or in the way'),
    command('model', 'Choose the model and its effort'),
    command('theme', 'Choose the colours'),
    command('exit', 'Leave; a session can be resumed'),
  ]
}

function command(name: string, description: string, note: string | null = null): SlashCommandInfo {
  return { name, description, note }
}
