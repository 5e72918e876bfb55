/**
 * Whether a warning is about what lies where agents can write: the records of a test's place do, and codemachine and its
 * codex do too if this checkout lies in the temporary directory. So it tells of the machine, not of the session.
 */
export function isOnReach(message: string): boolean {
  return message.includes('where the agent can write')
}
