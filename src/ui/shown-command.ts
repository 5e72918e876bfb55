const SHELL = /^(?:\S*\/)?(?:ba|z|da)?sh -l?c (.+)$/s

/** The command that a person would have typed: without the `/bin/bash -lc '…'` that codex puts around it. */
export function shownCommand(command: string): string {
  const script = SHELL.exec(command)?.[1]
  return script === undefined ? command : (unquoted(script) ?? command)
}

/** The one shell word that the whole text is; null if it is anything else. */
function unquoted(text: string): string | null {
  const single = /^'([^']*)'$/.exec(text)
  if (single) return single[1] ?? null
  const double = /^"((?:[^"\\]|\\.)*)"$/s.exec(text)
  if (double) return double[1]?.replace(/\\([\\"$`])/g, '$1') ?? null
  return /^[\w./:=@%+-]+$/.test(text) ? text : null
}
