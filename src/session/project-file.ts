/** The project's own settings: a change of it by a round counts from the next run on. */
export const PROJECT_FILE = 'codemachine.toml'

/** What a person is told, in a `warning`, of the first round that changed it. */
export function settingsChanged(round: number): string {
  return `Round ${round} changed ${PROJECT_FILE}; what it says now counts from the next run on.`
}

/** The round that such a warning is about; null if it is about something else. */
export function roundOfSettingsChanged(warning: string): number | null {
  const round = Number(/^Round (\d{1,9}) /.exec(warning)?.[1])
  return warning === settingsChanged(round) ? round : null
}
