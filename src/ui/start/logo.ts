import type { Theme } from '../theme.ts'

/** The logo: block letters from 70 columns and 18 rows on, then a smaller figure, then one line; for a screen reader words. */
export function logoLines({ columns, rows, theme }: { columns: number; rows: number; theme: Theme }): string[] {
  if (theme.symbols && columns >= 70 && rows >= 18) return theme.gradient(LARGE)
  if (theme.symbols && columns >= 40 && rows >= 13) return theme.gradient(MEDIUM)
  return theme.gradient(['CODE MACHINE'])
}

const LETTERS = {
  C: [' ████', '█    ', '█    ', '█    ', ' ████'],
  O: [' ███ ', '█   █', '█   █', '█   █', ' ███ '],
  D: ['████ ', '█   █', '█   █', '█   █', '████ '],
  E: ['█████', '█    ', '████ ', '█    ', '█████'],
  M: ['█   █', '██ ██', '█ █ █', '█   █', '█   █'],
  A: [' ███ ', '█   █', '█████', '█   █', '█   █'],
  H: ['█   █', '█   █', '█████', '█   █', '█   █'],
  I: ['███', ' █ ', ' █ ', ' █ ', '███'],
  N: ['█   █', '██  █', '█ █ █', '█  ██', '█   █'],
  ' ': [' ', ' ', ' ', ' ', ' '],
} as const

const LARGE = [0, 1, 2, 3, 4].map(row =>
  (['C', 'O', 'D', 'E', ' ', 'M', 'A', 'C', 'H', 'I', 'N', 'E'] as const).map(letter => LETTERS[letter][row]).join(' '),
)

const MEDIUM = [
  '╔═╗╔═╗╔╦╗╔═╗  ╔╦╗╔═╗╔═╗╦ ╦╦╔╗╔╔═╗',
  '║  ║ ║ ║║║╣   ║║║╠═╣║  ╠═╣║║║║║╣ ',
  '╚═╝╚═╝═╩╝╚═╝  ╩ ╩╩ ╩╚═╝╩ ╩╩╝╚╝╚═╝',
]
