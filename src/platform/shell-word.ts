// A browser page has no platform: it shows commands for a Unix shell.
const HOST: NodeJS.Platform = globalThis.process?.platform ?? 'linux'

/** Quotes a word of a command that a person copies, for the shell of a platform; on Windows see `windowsWord`. */
export function shellWord(text: string, platform: NodeJS.Platform = HOST): string {
  if (platform === 'win32') return windowsWord(text.replace(/\p{Cc}+/gu, ' '))
  return /^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}

/**
 * Quotes a word for `cmd.exe` and PowerShell, without line breaks, which `cmd.exe` cannot read. `cmd.exe` still replaces
 * `%NAME%` by a variable of that name. A word with `$`, a backtick or a curly double quote is for PowerShell alone.
 */
function windowsWord(text: string): string {
  // PowerShell cuts a flag at a dot or colon.
  if (/^[\w.\\/:-]+$/.test(text) && !/^-.*[.:]/.test(text)) return text
  // Otherwise the program takes the backslash for a part of the quote.
  const escaped = text.replace(/(\\+)(?="|$)/g, '$1$1')
  if (/[$`\u201c-\u201e]/.test(text)) return `'${escaped.replace(/['\u2018-\u201b]/g, '$&$&')}'`
  return `"${escaped.replaceAll('"', '""')}"`
}
