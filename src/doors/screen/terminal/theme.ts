import { isAbsolute } from 'node:path'
import { pathToFileURL } from 'node:url'

/** The setting `screen.theme`, the terminal's environment, and whether a screen reader is used. */
export interface ThemeOptions {
  theme: 'auto' | 'dark' | 'light' | 'plain'
  env: Readonly<NodeJS.ProcessEnv>
  reader: boolean
  /** The name of this machine, by which a terminal knows files of another one; left out: no file is a link. */
  host?: string
}

/** The theme for a terminal. With `NO_COLOR` and `plain` no SGR is used at all, not even bold and dim. */
export function openTheme({ theme, env, reader, host }: ThemeOptions): Theme {
  const depth = depthOf(theme, env)
  const styles: Styles = depth === 'none' ? {} : stylesOf(theme, depth)
  const links = theme !== 'plain' && !reader && hasLinks(env)
  const link = (text: string, url: string) =>
    links && text !== '' && isSafeUrl(url) ? `${OSC}8;;${url}${BEL}${text}${OSC}8;;${BEL}` : text
  return {
    symbols: !reader,
    paint(role, text) {
      const style = styles[role]
      return style === undefined || text === '' ? text : `${ESC}[${style.open}m${text}${ESC}[${style.close}m`
    },
    link,
    file: (text, path) => (links && host !== undefined && isAbsolute(path) ? link(text, fileUrl(path, host)) : text),
    gradient: lines => inGradient(lines, depth),
  }
}

const ESC = String.fromCharCode(0x1b)
const BEL = String.fromCharCode(0x07)
const OSC = `${ESC}]`

/** Matches the sequences in painted text: SGR for styles, and OSC for links. */
export const STYLE_SEQUENCES = new RegExp(`${ESC}\\[[\\d;:]*m|${ESC}\\][^\\u0007${ESC}]*(?:\\u0007|${ESC}\\\\)`, 'g')

/** The colour depth of a terminal, as far as its environment says it. */
type Depth = 'none' | '16' | '256' | 'full'

/** SGR parameters that begin and end a style. */
interface Style {
  open: string
  close: string
}
type Styles = Partial<Record<Role, Style>>

const BOLD: Style = { open: '1', close: '22' }
const DIM: Style = { open: '2', close: '22' }
const ITALIC: Style = { open: '3', close: '23' }
const UNDERLINED: Style = { open: '4', close: '24' }
const INVERSE: Style = { open: '7', close: '27' }

/** For any background: the terminal's own palette, which its user has made readable. */
const PALETTE = {
  dim: DIM,
  strong: BOLD,
  emphasis: ITALIC,
  accent: palette(36),
  good: palette(32),
  warning: palette(33),
  bad: palette(31),
  heading: { open: '1;36', close: '22;39' },
  code: palette(36),
  link: UNDERLINED,
  quote: ITALIC,
  person: palette(35),
  added: palette(32),
  removed: palette(31),
  hunk: palette(36),
  keyword: palette(35),
  string: palette(32),
  number: palette(33),
  comment: DIM,
  name: palette(34),
  type: palette(36),
  selected: INVERSE,
} as const satisfies Record<string, Style>

/** The exact colours on a dark and on a light background. */
const COLOURS: Readonly<Partial<Record<Role, { dark: string; light: string }>>> = {
  dim: { dark: '8b949e', light: '59636e' },
  accent: { dark: '58a6ff', light: '0550ae' },
  good: { dark: '56d364', light: '116329' },
  warning: { dark: 'e3b341', light: '7d4e00' },
  bad: { dark: 'ff7b72', light: 'b3151e' },
  heading: { dark: '79c0ff', light: '0550ae' },
  code: { dark: 'a5d6ff', light: '0a3069' },
  link: { dark: '58a6ff', light: '0550ae' },
  quote: { dark: '9da7b1', light: '59636e' },
  person: { dark: 'd2a8ff', light: '6639ba' },
  added: { dark: '56d364', light: '116329' },
  removed: { dark: 'ff7b72', light: 'a40e26' },
  hunk: { dark: '79c0ff', light: '0550ae' },
  keyword: { dark: 'ff7b72', light: 'a40e26' },
  string: { dark: 'a5d6ff', light: '0a3069' },
  number: { dark: '79c0ff', light: '0550ae' },
  comment: { dark: '8b949e', light: '59636e' },
  name: { dark: 'd2a8ff', light: '6639ba' },
  type: { dark: 'ffa657', light: '953800' },
}

function depthOf(theme: ThemeOptions['theme'], env: ThemeOptions['env']): Depth {
  if (theme === 'plain' || env.NO_COLOR || env.TERM === 'dumb') return 'none'
  if (/^(?:truecolor|24bit)$/i.test(env.COLORTERM ?? '')) return 'full'
  return /256/.test(env.TERM ?? '') ? '256' : '16'
}

/** The palette's styles, or with exact colours in place of its own. */
function stylesOf(theme: ThemeOptions['theme'], depth: Depth): Styles {
  if (theme === 'auto' || theme === 'plain' || depth === '16') return PALETTE
  const exact = Object.entries(COLOURS).map(([role, on]) => {
    const begin = { heading: '1;', link: '4;' }[role] ?? ''
    const end = { heading: '22;', link: '24;' }[role] ?? ''
    return [role, { open: begin + colour(on[theme], depth), close: `${end}39` }]
  })
  return { ...PALETTE, ...Object.fromEntries(exact) }
}

function palette(code: number): Style {
  return { open: String(code), close: '39' }
}

/** The SGR parameters for a colour `rrggbb`; with 256 colours for the nearest one in the colour cube. */
function colour(hex: string, depth: Depth): string {
  const [red, green, blue] = channels(hex)
  if (depth === 'full') return `38;2;${red};${green};${blue}`
  const step = (channel: number) => Math.round((channel / 255) * 5)
  return `38;5;${16 + 36 * step(red) + 6 * step(green) + step(blue)}`
}

function channels(hex: string): [red: number, green: number, blue: number] {
  const value = Number.parseInt(hex, 16)
  return [value >> 16, (value >> 8) & 255, value & 255]
}

/**
 * Whether OSC 8 links can be used. Most terminals without them ignore the sequence; not these, which print it, and
 * multiplexers that drop it or count it as text. tmux has links from 3.4 on.
 */
function hasLinks(env: ThemeOptions['env']): boolean {
  const term = env.TERM ?? ''
  if (term === '' || term === 'dumb' || term === 'linux' || env.STY) return false
  if (env.VTE_VERSION && Number(env.VTE_VERSION) < 5000) return false
  if (env.TERM_PROGRAM === 'tmux') return Number.parseFloat(env.TERM_PROGRAM_VERSION ?? '') >= 3.4
  return !env.TMUX && !/^(?:screen|tmux)/.test(term)
}

/** Whether a link may have this target: http, https, file or mailto, without spaces and control characters. */
function isSafeUrl(url: string): boolean {
  return url.length <= 2000 && /^(?:https?:\/\/|file:\/\/|mailto:)[!-~]+$/i.test(url)
}

/** A file of a machine as a URL of printable ASCII, whatever its name is; without the name of a machine that is none. */
function fileUrl(path: string, host: string): string {
  const url = pathToFileURL(path)
  if (url.host === '') url.host = host
  return url.href
}

const GRADIENT = ['1d4fd8', '2f7df0', '4fb0ff']
const BLUE = palette(34)

function inGradient(lines: readonly string[], depth: Depth): string[] {
  if (depth === 'none') return [...lines]
  if (depth === '16') return lines.map(line => `${ESC}[${BLUE.open}m${line}${ESC}[${BLUE.close}m`)
  const width = Math.max(2, ...lines.map(line => line.length))
  return lines.map(line => `${paintAcross(line, width, depth)}${ESC}[39m`)
}

/** A line painted from left to right; a sequence is written only where the gradient's colour changes. */
function paintAcross(line: string, width: number, depth: Depth): string {
  let last = ''
  let painted = ''
  for (const [i, character] of [...line].entries()) {
    const now = colour(gradientAt(i / (width - 1)), depth)
    painted += character === ' ' || now === last ? character : `${ESC}[${now}m${character}`
    if (character !== ' ') last = now
  }
  return painted
}

/** The colour of the gradient at a position from 0 to 1. */
function gradientAt(place: number): string {
  const scaled = Math.min(1, place) * (GRADIENT.length - 1)
  const start = Math.min(GRADIENT.length - 2, Math.floor(scaled))
  const from = channels(GRADIENT[start] ?? '')
  const to = channels(GRADIENT[start + 1] ?? '')
  const mixed = from.map((channel, i) => Math.round(channel + ((to[i] ?? 0) - channel) * (scaled - start)))
  return mixed.map(channel => channel.toString(16).padStart(2, '0')).join('')
}

/** The meaning of a piece of text, which decides how it is painted; `plain` never is. */
export type Role = 'plain' | keyof typeof PALETTE

/** Colours, links and symbols for one terminal. */
export interface Theme {
  /** The text with the SGR sequences of its role around it; unchanged without colours. */
  paint(role: Role, text: string): string
  /** The text as a link (OSC 8); unchanged where the terminal has no links. */
  link(text: string, url: string): string
  /** The text as a link to a file of this machine; unchanged where the terminal has no links, or the path is not absolute. */
  file(text: string, path: string): string
  /** The rows of a figure in a horizontal colour gradient; unchanged without colours. */
  gradient(lines: readonly string[]): string[]
  /** Whether box drawing and other symbols are used; false for a screen reader, which gets words. */
  readonly symbols: boolean
}
