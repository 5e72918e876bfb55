const SECOND = 1000
const UNITS = [
  [3600 * SECOND, 'h'],
  [60 * SECOND, 'm'],
  [SECOND, 's'],
] as const

/** A length of time (ms) as a person types it for a flag, up to the whole second: `8h`, `1h30m`, `45s`. */
export function durationAsTyped(ms: number): string {
  let rest = Math.max(1, Math.ceil(ms / SECOND)) * SECOND
  const parts: string[] = []
  for (const [unit, name] of UNITS) {
    if (rest >= unit) parts.push(`${Math.floor(rest / unit)}${name}`)
    rest %= unit
  }
  return parts.join('')
}

/** A number as a person types it for a flag: `5M`, `500k`, `1234`. */
export function countAsTyped(count: number): string {
  if (count % 1_000_000 === 0) return `${count / 1_000_000}M`
  return count % 1000 === 0 ? `${count / 1000}k` : String(count)
}

/** A word as a shell has to be given it. */
export function shellWord(text: string): string {
  return /^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}
