/** What the rounds may read of the contract, in the session's folder in the work directory. */
export const CONTRACT_FILE = 'CONTRACT.md'

/** The path of a file in the session's folder, relative to the work directory. */
export function contractPath(session: string, file: string = CONTRACT_FILE): string {
  return `.codemachine/projects/${session}/${file}`
}

/** Where a person's edit waits for the session, among its records. @param roundsDirectory that of the session */
export function editedContract(roundsDirectory: string): string {
  return `${roundsDirectory}/contract.toml`
}
