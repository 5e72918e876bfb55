import { expect, it } from 'vitest'
import { replaceInRow } from '../../scripts/picture-replace.ts'
import { pictureSvg } from '../../scripts/picture-svg.ts'
import type { ScreenCell } from '../support/emulator-screen.ts'

const PLAIN: ScreenCell = {
  chars: '',
  width: 1,
  fg: 'default',
  bg: 'default',
  bold: false,
  dim: false,
  italic: false,
  underline: false,
  inverse: false,
  strikethrough: false,
}

function row(text: string, look: Partial<ScreenCell> = {}): ScreenCell[] {
  return [...text].map(chars => ({ ...PLAIN, ...look, chars: chars === ' ' ? '' : chars }))
}

function shown(cells: readonly ScreenCell[]): string {
  return cells.map(({ chars }) => chars || ' ').join('')
}

function draw(cells: ScreenCell[], scheme: 'light' | 'dark' = 'dark'): string {
  return pictureSvg({ rows: [cells], columns: cells.length, caret: null, title: 't', label: 'l' }, scheme)
}

it('writes neighbours that look alike in one piece, and what stands in columns in one each', () => {
  const svg = draw([...row('ab cd', { fg: 1 }), ...row('ef   gh')])
  expect(svg).toContain('<tspan x="14" style="fill:#ff7b72">ab cd</tspan>')
  expect(svg).toContain('<tspan x="56">ef</tspan><tspan x="98">gh</tspan>')
})

it('puts what follows a wide character into its cell', () => {
  const wide = [
    { ...PLAIN, chars: '漢', width: 2 },
    { ...PLAIN, width: 0 },
  ]
  expect(draw([...wide, ...row('x')])).toContain('<tspan x="14">漢</tspan><tspan x="30.8">x</tspan>')
})

it('escapes what would be markup', () => {
  expect(draw(row('<b>&"'))).toContain('&lt;b>&amp;&quot;')
})

it('has other colours on a light background, and swaps them where they are inverted', () => {
  const cells = row('x', { fg: 2, inverse: true })
  expect(draw(cells, 'light')).toMatch(/<rect [^>]*fill="#116329"\/><text[^>]*><tspan [^>]*fill:#ffffff/)
  expect(draw(cells, 'dark')).toMatch(/<rect [^>]*fill="#3fb950"\/><text[^>]*><tspan [^>]*fill:#0d1117/)
})

it('puts another text in place of a path and leaves what comes after where it was', () => {
  const before = row('in /tmp/x-abc123/linkcheck now   │')
  expect(shown(replaceInRow(before, /\/tmp\/x-\w{6}/, '~'))).toBe('in ~/linkcheck now               │')
  expect(shown(replaceInRow(row('nothing here'), /\/tmp\/x-\w{6}/, '~'))).toBe('nothing here')
})
