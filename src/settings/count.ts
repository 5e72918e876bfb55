/** The whole number that `5000000`, `"2_000_000"`, `"500k"` or `"1.5M"` means; null for anything else. */
export function parseCount(written: number | string): number | null {
  if (typeof written === 'number') return Number.isInteger(written) ? written : null
  const [, whole, fraction = '', unit = ''] = COUNT.exec(written.trim()) ?? []
  const digits = unit === '' ? 0 : unit.toLowerCase() === 'k' ? 3 : 6
  if (whole === undefined || fraction.length > digits) return null
  // By its digits: 2.3 * 1e6 is less than 2300000.
  return Number(`${whole.replaceAll('_', '')}${fraction.padEnd(digits, '0')}`)
}

const COUNT = /^(\d+(?:_\d+)*)(?:\.(\d+))? ?([kKmM]?)$/
