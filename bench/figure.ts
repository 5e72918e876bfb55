import { loadavg } from 'node:os'

/** One measured number and what it has to be. */
export interface Figure {
  /** What was measured, in a few words. */
  what: string
  /** Null: it could not be measured here, and `what` says why. */
  value: number | null
  /** Empty: a number of things. */
  unit: 'x' | 'ms' | 'MB' | '%' | '/s' | ''
  /** Null for a number that is shown and has no target. */
  target: { is: 'at most' | 'at least'; value: number } | null
}

/** Whether a figure is what it has to be; one that could not be measured is. */
export function isMet({ value, target }: Figure): boolean {
  if (value === null) return true
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

/** A number that is shown and has no target. */
export function shown(what: string, value: number, unit: Figure['unit']): Figure {
  return { what, value, unit, target: null }
}

/** The load average of the last minute, as it is printed. */
export function loadNow(): string {
  return (loadavg()[0] ?? 0).toFixed(2)
}

/** The figures of one benchmark as lines of a table: name, figure, target, `ok` or `MISSED`. */
export function formatFigures(name: string, figures: readonly Figure[]): string {
  return figures.map(figure => `${name.padEnd(14)}${formatFigure(figure)}\n`).join('')
}

function formatFigure(figure: Figure): string {
  const { what, value, unit, target } = figure
  const measured = (value === null ? 'not measured' : formatValue(value, unit)).padStart(13)
  if (target === null) return `${what.padEnd(62)}${measured}`
  const wanted = `${target.is} ${formatValue(target.value, unit)}`.padEnd(20)
  const verdict = value === null ? '-' : isMet(figure) ? 'ok' : 'MISSED'
  return `${what.padEnd(62)}${measured}  ${wanted}  ${verdict}`
}

function formatValue(value: number, unit: Figure['unit']): string {
  if (unit === 'x') return `${value.toFixed(2)} x`
  if (unit === '/s') return `${Math.round(value)} /s`
  if (unit === '') return Number.isInteger(value) ? String(value) : value.toFixed(1)
  return `${value.toFixed(1)} ${unit}`
}
