/** The bytes that `2G`, `1.5 GB`, `500M` or `800k` means, by 1024; null for anything else. */
export function parseBytes(text: string): number | null {
  const [, number, unit = ''] = /^(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?$/i.exec(text.trim()) ?? []
  if (number === undefined) return null
  return Math.round(Number(number) * 1024 ** ' kmgt'.indexOf(unit.toLowerCase() || ' '))
}

/** A number of bytes as a person reads it: `1.4 GiB`, `12 MiB`, `3 KiB`. */
export function formatBytes(bytes: number): string {
  const step = UNITS.findLastIndex((_, index) => bytes >= 1024 ** index)
  const value = bytes / 1024 ** Math.max(0, step)
  return `${value < 10 && step > 1 ? value.toFixed(1) : Math.floor(value)} ${UNITS[Math.max(0, step)]}`
}

const UNITS = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB']
