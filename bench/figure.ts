/** One measured number and what it has to be. */
export interface Figure {
  /** What was measured, in a few words. */
  what: string
  value: number
  /** Empty: a number of things. */
  unit: 'x' | 'ms' | 'MB' | '%' | '/s' | ''
  /** Null for a number that is shown and has no target. */
  target: { is: 'at most' | 'at least'; value: number } | null
}

/** Whether a figure is what it has to be. */
export function isMet({ value, target }: Figure): boolean {
  switch (target?.is) {
    case undefined:
      return true
    case 'at most':
      return value <= target.value
    case 'at least':
      return value >= target.value
  }
}

/** Shorthand for the target of a figure. */
export function atMost(value: number): Figure['target'] {
  return { is: 'at most', value }
}

/** Shorthand for the target of a figure. */
export function atLeast(value: number): Figure['target'] {
  return { is: 'at least', value }
}

/** The figures of one benchmark as lines of a table: name, figure, target, `ok` or `MISSED`. */
export function formatFigures(name: string, figures: readonly Figure[]): string {
  return figures.map(figure => `${name.padEnd(14)}${formatFigure(figure)}\n`).join('')
}

function formatFigure(figure: Figure): string {
  const { what, value, unit, target } = figure
  const measured = formatValue(value, unit).padStart(13)
  if (target === null) return `${what.padEnd(58)}${measured}`
  const wanted = `${target.is} ${formatValue(target.value, unit)}`.padEnd(20)
  return `${what.padEnd(58)}${measured}  ${wanted}  ${isMet(figure) ? 'ok' : 'MISSED'}`
}

function formatValue(value: number, unit: Figure['unit']): string {
  if (unit === 'x') return `${value.toFixed(2)} x`
  if (unit === '/s' || unit === '') return `${Math.round(value)} ${unit}`.trim()
  return `${value.toFixed(1)} ${unit}`
}
