/** Name of the contract's file for rounds, in the session's folder in the work directory. */
export const CONTRACT_FILE = 'CONTRACT.md'

/** Returns the path of a file in the session's folder, relative to the work directory. */
export function contractPath(session: string, file: string = CONTRACT_FILE): string {
  return `.codemachine/projects/${session}/${file}`
}

/** Returns the path of a person's pending edit among the session's records. @param roundsDirectory that of the session */
export function editedContract(roundsDirectory: string): string {
  return `${roundsDirectory}/contract.toml`
}
