/** The environment variable by which an agent that works outside of a session is told which agents wait for it. */
export const AGENTS_VARIABLE = 'CODEMACHINE_AGENTS'

/** The agents that wait for what is run with this environment, the nearest last; none where a person runs it. */
export function waitingAgents(env: NodeJS.ProcessEnv): string[] {
  return (env[AGENTS_VARIABLE] ?? '').split('/').filter(name => name !== '')
}
