/** What a person said of a session on the command line or in the environment: it counts when the session goes on, too. */
export interface Said {
  sandbox?: string
  network?: boolean
  model?: string
  effort?: string
  /** Per cent. */
  maxUsage?: number
  maxWaitMs?: number
  keepAwake?: boolean
  /** Commands that have to pass before done, as `--verify` names them. */
  verify?: readonly string[]
  review?: boolean
}
